//! Numbers that may have an exponent, by the values that they can become.
//!
//! An exponent moves the decimal point. So digits that were read can become every number that begins with them,
//! wherever its point is. After the mark of an exponent the digits are fixed, and each exponent gives one value.

use rustc_hash::FxHashSet;
use stencilm_regex::{Deriver, Expr, ExprId, ExprSet, NumberForm};
use stencilm_support::{LOOKED_AT, LimitExceeded, SEARCHED};

/// The residual of numbers after some text, split by whether an exponent may follow.
pub(crate) struct WithExponents {
    /// The plain texts, after the sign that was read, of all members of the sets in which an exponent may follow.
    pub members: ExprId,
    /// The residual of the other numbers.
    pub others: ExprId,
}

/// A reading of digits with the point at some position.
pub(crate) struct Place {
    /// The plain text after the sign.
    pub text: Vec<u8>,
    /// The residual from there to members.
    pub rest: ExprId,
}

impl WithExponents {
    /// Splits the residual of a number after a text without an exponent; `None` where it contains no set of numbers
    /// that may have one.
    pub(crate) fn of(
        deriver: &mut Deriver,
        residual: ExprId,
        written: &[u8],
    ) -> Result<Option<WithExponents>, LimitExceeded> {
        let parts = match deriver.exprs.get(residual) {
            Expr::Or(parts) => parts.to_vec(),
            _ => vec![residual],
        };
        let (mut members, mut others) = (Vec::new(), Vec::new());
        for part in parts {
            let number = match deriver.exprs.get(part) {
                Expr::Number(number) => Some(number.clone()),
                _ => None,
            };
            let of_set = number.and_then(|number| {
                let plain = deriver.exprs.members_without_exponent(&number)?;
                Some((plain, deriver.exprs.numbers(number.set().clone())))
            });
            match of_set {
                // The text may have begun before the number did.
                Some((plain, whole)) if behind(deriver, whole, written)? == part => members.push(plain),
                _ => others.push(part),
            }
        }
        if members.is_empty() {
            return Ok(None);
        }
        let exprs = &mut deriver.exprs;
        Ok(Some(WithExponents { members: exprs.or(&members), others: exprs.or(&others) }))
    }

    /// The positions of the point in the digits from which members continue. Each member whose first digits are these
    /// continues from exactly one of them. `None` where the texts are too long.
    pub(crate) fn places(&self, deriver: &mut Deriver, written: &[u8]) -> Result<Option<Vec<Place>>, LimitExceeded> {
        let digits: Vec<u8> = written.iter().copied().filter(u8::is_ascii_digit).collect();
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        let digits = &digits[zeros..];
        if digits.is_empty() {
            return Ok(Some(vec![Place { text: Vec::new(), rest: self.members }]));
        }
        let mut places = Vec::new();
        let mut whole = deriver.after(self.members, digits[0])?;
        for point in 1..digits.len() {
            let fraction = deriver.after(whole, b'.')?;
            let rest = behind(deriver, fraction, &digits[point..])?;
            places.push(Place { text: [&digits[..point], b".", &digits[point..]].concat(), rest });
            whole = deriver.after(whole, digits[point])?;
            if whole == ExprId::NOTHING {
                break;
            }
        }
        // From the position after the last digit, larger numbers continue as well.
        places.push(Place { text: digits.to_vec(), rest: whole });
        let mut small = b"0.".to_vec();
        let mut fraction = behind(deriver, self.members, &small)?;
        while fraction != ExprId::NOTHING {
            if small.len() > LOOKED_AT {
                return Ok(None);
            }
            places.push(Place { text: [&small, digits].concat(), rest: behind(deriver, fraction, digits)? });
            small.push(b'0');
            // If zeros lead back to the same residual, further digits would belong to infinitely many numbers.
            let next = deriver.after(fraction, b'0')?;
            fraction = if next == fraction { ExprId::NOTHING } else { next };
        }
        places.retain(|place| place.rest != ExprId::NOTHING);
        Ok(Some(places))
    }
}

/// The residual after some bytes.
fn behind(deriver: &mut Deriver, expr: ExprId, bytes: &[u8]) -> Result<ExprId, LimitExceeded> {
    let mut rest = expr;
    for &byte in bytes {
        if rest == ExprId::NOTHING {
            break;
        }
        rest = deriver.after(rest, byte)?;
    }
    Ok(rest)
}

/// The values that a number can become after the mark of its exponent, as canonical JSON texts; `None` where the
/// exponent can be too large.
pub(crate) fn values_in_exponent(
    deriver: &mut Deriver,
    residual: ExprId,
    mantissa: &str,
    exponent: &[u8],
) -> Result<Option<Vec<String>>, LimitExceeded> {
    let (sign, unsigned) = mantissa.split_at(usize::from(mantissa.starts_with('-')));
    let places = unsigned.split_once('.').map_or(0, |(_, fraction)| fraction.len()) as i64;
    let digits = unsigned.replace('.', "");
    let significant = digits.trim_end_matches('0');
    let zeros = (digits.len() - significant.len()) as i64;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Ok(Some(vec!["0".to_owned()]));
    }
    let value = |exponent: i64| match exponent + zeros - places {
        0 => format!("{sign}{significant}"),
        power => format!("{sign}{significant}e{power}"),
    };
    let exponents =
        Exponent::after(exponent).map(|begun| begun.continuations(deriver, residual)).transpose()?.flatten();
    Ok(exponents.map(|exponents| exponents.into_iter().map(value).collect()))
}

/// Whether the residual consists only of sets that contain every spelling of their numbers.
pub(crate) fn is_spelled_freely(exprs: &ExprSet, residual: ExprId) -> bool {
    match exprs.get(residual) {
        Expr::Or(parts) => parts.iter().all(|&part| is_spelled_freely(exprs, part)),
        Expr::Number(number) => number.set().form() == NumberForm::Any,
        _ => false,
    }
}

/// The possible exponents after the mark, ascending; `None` where there are too many, or too large ones.
pub(crate) fn exponents_after_mark(deriver: &mut Deriver, residual: ExprId) -> Result<Option<Vec<i64>>, LimitExceeded> {
    let found = Exponent::default().continuations(deriver, residual)?;
    let sorted = |found: FxHashSet<i64>| {
        let mut exponents: Vec<i64> = found.into_iter().collect();
        exponents.sort_unstable();
        exponents
    };
    Ok(found.map(sorted))
}

/// The part of an exponent that was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Exponent {
    /// Whether a sign or a digit was read.
    has_begun: bool,
    has_digits: bool,
    is_negative: bool,
    size: i64,
}

impl Exponent {
    /// An exponent of which these characters were read; `None` where they are too many or invalid.
    fn after(read: &[u8]) -> Option<Exponent> {
        read.iter().try_fold(Exponent::default(), |begun, &byte| begun.with(byte))
    }

    fn with(self, byte: u8) -> Option<Exponent> {
        match byte {
            b'+' | b'-' if !self.has_begun => Some(Exponent { has_begun: true, is_negative: byte == b'-', ..self }),
            b'0'..=b'9' => {
                let size = self.size * 10 + i64::from(byte - b'0');
                let is_small = size <= LOOKED_AT as i64;
                is_small.then_some(Exponent { has_begun: true, has_digits: true, size, ..self })
            }
            _ => None,
        }
    }

    /// The exponents that it can become; `None` where there are too many, or too large ones.
    fn continuations(self, deriver: &mut Deriver, residual: ExprId) -> Result<Option<FxHashSet<i64>>, LimitExceeded> {
        let (mut found, mut known) = (FxHashSet::default(), FxHashSet::from_iter([(residual, self)]));
        let mut work = vec![(residual, self)];
        while let Some((rest, begun)) = work.pop() {
            if begun.has_digits && deriver.exprs.is_nullable(rest) {
                found.insert(if begun.is_negative { -begun.size } else { begun.size });
            }
            for &(bytes, next) in deriver.derivatives(rest)?.iter() {
                if !deriver.is_live(next)? {
                    continue;
                }
                for byte in bytes.iter() {
                    let Some(begun) = begun.with(byte).filter(|_| known.len() < SEARCHED) else { return Ok(None) };
                    if known.insert((next, begun)) {
                        work.push((next, begun));
                    }
                }
            }
        }
        Ok(Some(found))
    }
}
