//! Requirements on numbers as expressions: bounds, divisors and excluded numbers, in the chosen spelling.
//!
//! Plain decimals between bounds are [`intervals`](crate::json::intervals), and numbers with an exponent that no bound
//! can cut are built once for all grammars; everything else is a [`NumberSet`], whose derivatives are arithmetic.

use stencilm_regex::{
    Decimal, End, ExprId, ExprSet, LARGE_EXPONENTS, NumberForm, NumberSet, NumberSetError, Plain, SMALL_EXPONENTS,
};
use stencilm_support::{LimitExceeded, check_time};

use super::intervals::{between, many_zeros, point_zeros};
use super::kind::{Kind, MAX_READ_DIGITS, readable_ends};
use super::spelling::Spelling;
use super::values::common;
use crate::word_trie::{Part, common_beginning, trie};

/// The requirements on a number.
pub(crate) struct Numbers<'a> {
    pub(crate) kind: Kind,
    pub(crate) lower: Option<&'a End>,
    pub(crate) upper: Option<&'a End>,
    /// The number is a multiple of all of these.
    pub(crate) multiple_of: Vec<Decimal>,
    /// The number is a multiple of none of these.
    pub(crate) not_multiple_of: Vec<Decimal>,
    /// The number is none of these.
    pub(crate) excluded: Vec<Decimal>,
    /// Whether to allow only numbers that common readers can represent: integers of at most [`MAX_READ_DIGITS`] digits,
    /// and other numbers within the range of a double.
    pub(crate) readable: bool,
}

impl Numbers<'_> {
    /// The bounds of readable numbers, below and above, if they are required.
    fn readable_ends(&self) -> Option<[End; 2]> {
        self.readable.then(|| readable_ends(self.kind))
    }
}

/// Why there is no expression for the numbers.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NumbersError {
    #[error("a bound needs too many digits; use a smaller number")]
    TooManyDigits,
    #[error(transparent)]
    Set(#[from] NumberSetError),
}

/// The numbers that meet the requirements, in a spelling.
pub(crate) fn numbers(exprs: &mut ExprSet, asked: Numbers, spelling: Spelling) -> Result<ExprId, NumbersError> {
    let ends = asked.readable_ends();
    let Numbers { kind, lower, upper, mut multiple_of, mut not_multiple_of, mut excluded, readable } = asked;
    let is_plain = spelling == Spelling::Natural;
    // Plain decimals of these kinds need no arithmetic if there are only bounds.
    let no_steps = multiple_of.is_empty() && not_multiple_of.is_empty();
    let laid_out = no_steps && kind != Kind::Fraction && (is_plain || kind == Kind::Pointless);
    let form = match kind {
        Kind::Pointless => NumberForm::Digits,
        _ if is_plain => NumberForm::Plain,
        _ => NumberForm::Any,
    };
    match kind {
        Kind::Integer if !laid_out => multiple_of.push(Decimal::from_integer(1)),
        Kind::Fraction => not_multiple_of.push(Decimal::from_integer(1)),
        _ => {}
    }
    let shape = if kind == Kind::Pointed { Kind::Number } else { kind };
    excluded.sort_unstable();
    excluded.dedup();
    // The intervals between the excluded numbers.
    let mut alternatives = Vec::with_capacity(excluded.len() + 1);
    let mut from = lower.cloned();
    let cuts = excluded.iter().map(|value| Some(End { value: value.clone(), exclusive: true }));
    for cut in cuts.chain([None]) {
        let to = match &cut {
            Some(cut) if upper.is_none_or(|upper| cut.value <= upper.value) => Some(cut),
            _ => upper,
        };
        let (from_end, to_end) = (from.as_ref(), to);
        let is_free = (from_end, to_end) == (None, None) && multiple_of.is_empty() && not_multiple_of.is_empty();
        let is_cut = ends.is_some() && (from_end.is_none() || to_end.is_none());
        let (from_end, to_end) = match &ends {
            Some([least, most]) if kind != Kind::Pointless || !laid_out => {
                let from_end = Some(from_end.filter(|end| end.value > least.value).unwrap_or(least));
                (from_end, Some(to_end.filter(|end| end.value < most.value).unwrap_or(most)))
            }
            _ => (from_end, to_end),
        };
        alternatives.push(match () {
            () if is_free => common().number(shape, readable),
            () if laid_out && (!is_cut || kind == Kind::Pointless) => {
                let longest = readable.then_some(MAX_READ_DIGITS);
                between(exprs, from_end, to_end, shape, longest).ok_or(NumbersError::TooManyDigits)?
            }
            () => exprs.numbers(NumberSet::new(from_end, to_end, &multiple_of, &not_multiple_of, form)?),
        });
        if !is_free && is_plain && matches!(shape, Kind::Number | Kind::Fraction) {
            let free = if no_steps && shape == Kind::Number { free_scientific(from_end, to_end) } else { None };
            alternatives.push(match free {
                Some(free) => common().scientific(free),
                None => {
                    let form = NumberForm::Scientific;
                    exprs.numbers(NumberSet::new(from_end, to_end, &multiple_of, &not_multiple_of, form)?)
                }
            });
        }
        // An excluded number below the lower bound has no effect.
        if cut.as_ref().is_some_and(|cut| lower.is_none_or(|lower| cut.value >= lower.value)) {
            from = cut;
        }
    }
    let mut all = exprs.or(&alternatives);
    if kind == Kind::Pointless && readable && !laid_out {
        let minus_zero = exprs.literal(b"-0");
        let others = exprs.not(minus_zero);
        all = exprs.and(&[all, others]);
    }
    if kind != Kind::Pointed {
        return Ok(all);
    }
    let pointless = common().number(Kind::Pointless, false);
    let pointed = exprs.not(pointless);
    Ok(exprs.and(&[all, pointed]))
}

/// Which numbers with an exponent lie between two ends, with the bits of
/// [`Common::scientific`](crate::json::common::Common::scientific). `None` if an end lies among them.
fn free_scientific(lower: Option<&End>, upper: Option<&End>) -> Option<u8> {
    // The order of magnitude decides: it's the exponent, since the mantissa has one digit before the point.
    let order = |end: &End| (!end.value.is_zero()).then(|| end.value.order());
    let mut free = 0;
    for (negative, near, far) in [(false, lower, upper), (true, upper, lower)] {
        // If the far end has the other sign, no number of this sign is in the interval. If only the near end does, it
        // doesn't restrict this sign.
        if far.is_some_and(|far| far.value.is_zero() || far.value.negative != negative) {
            continue;
        }
        let near = near.filter(|near| near.value.negative == negative).and_then(order);
        let far = far.and_then(order);
        for (bit, (least, most)) in [SMALL_EXPONENTS, LARGE_EXPONENTS].into_iter().enumerate() {
            let all = near.is_none_or(|near| near < least) && far.is_none_or(|far| far > most);
            let none = near.is_some_and(|near| near > most) || far.is_some_and(|far| far < least);
            match (all, none) {
                (true, _) => free |= 1 << (bit + 2 * usize::from(negative)),
                (false, true) => {}
                (false, false) => return None,
            }
        }
    }
    Some(free)
}

/// How single numbers are written.
#[derive(Clone, Copy)]
pub(crate) struct Written {
    /// Which numbers count.
    pub(crate) kind: Kind,
    pub(crate) spelling: Spelling,
    /// As in [`Numbers`].
    pub(crate) readable: bool,
}

/// Exactly one value; `None` if it has too many digits.
pub(crate) fn exactly(
    exprs: &mut ExprSet,
    value: &Decimal,
    Written { kind, spelling, readable }: Written,
) -> Option<ExprId> {
    let end = End { value: value.clone(), exclusive: false };
    let asked = Numbers {
        kind,
        lower: Some(&end),
        upper: Some(&end),
        multiple_of: Vec::new(),
        not_multiple_of: Vec::new(),
        excluded: Vec::new(),
        readable,
    };
    numbers(exprs, asked, spelling).ok()
}

/// Adds the texts of exactly this number, each with what may follow it (zeros after the point), if it has no spellings
/// with an exponent. Many such texts are read by one trie; separate expressions would be compared one by one at every
/// byte.
pub(crate) fn plain_texts(
    exprs: &mut ExprSet,
    value: &Decimal,
    Written { kind, spelling, readable }: Written,
    texts: &mut Vec<(String, ExprId)>,
) -> bool {
    let end = End { value: value.clone(), exclusive: false };
    let is_plain = match kind {
        Kind::Pointless => true,
        _ if spelling != Spelling::Natural => false,
        Kind::Integer => true,
        Kind::Number => free_scientific(Some(&end), Some(&end)) == Some(0),
        Kind::Fraction | Kind::Pointed => false,
    };
    if !is_plain || (kind != Kind::Number && !value.is_integer()) {
        return false;
    }
    let Some(Plain { int, frac }) = value.plain() else { return false };
    let written = |digits: &[u8]| digits.iter().map(|digit| char::from(b'0' + digit)).collect::<String>();
    let mut text = written(&int);
    let follows = match kind {
        Kind::Pointless => ExprId::EMPTY,
        _ if frac.is_empty() => point_zeros(exprs),
        _ => many_zeros(exprs, 0),
    };
    if !frac.is_empty() {
        text = format!("{text}.{}", written(&frac));
    }
    // Zero has both signs, unless it's read as an int by Python.
    let is_negative_too = value.is_zero() && (kind != Kind::Pointless || !readable);
    if is_negative_too || (value.negative && !value.is_zero()) {
        texts.push((format!("-{text}"), follows));
    }
    if !value.negative || value.is_zero() {
        texts.push((text, follows));
    }
    true
}

/// Any of these texts, each with what follows it.
///
/// # Errors
/// A limit, where it takes too long.
pub(crate) fn any_text(exprs: &mut ExprSet, texts: &[(String, ExprId)]) -> Result<ExprId, LimitExceeded> {
    let texts = texts.iter().map(|(text, follows)| (&**text, *follows)).collect();
    let mut in_time = Ok(());
    let any = trie(texts, common_beginning, |part| {
        if in_time.is_ok() {
            in_time = check_time();
        }
        match part {
            _ if in_time.is_err() => ExprId::NOTHING,
            Part::Text(text, follows) => {
                let text = exprs.literal(text.as_bytes());
                exprs.concat(text, follows)
            }
            Part::Any(alternatives) => exprs.or(alternatives),
        }
    });
    in_time.map(|()| any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::values::common_exprs;
    use stencilm_regex::{Deriver, Limits};

    /// Whether some common JSON writer prints a number text with an exponent in this way, except for zeros.
    fn is_scientific(text: &str) -> bool {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = unsigned.split_once('e').unwrap_or(("", "0"));
        let power: i64 = exponent.parse().unwrap();
        let padded = if power < 0 && power > -10 { format!("-0{}", -power) } else { format!("+{power}") };
        let is_digit = mantissa.split('.').next().is_some_and(|int| int.len() == 1 && int != "0");
        is_digit
            && (exponent == power.to_string() || exponent == padded)
            && ((-324..=-5).contains(&power) || (13..=308).contains(&power))
    }

    /// Given numbers have the same spellings one by one and in a trie.
    #[test]
    fn given_numbers_are_spelled_the_same_in_a_trie() {
        let given =
            ["0", "-0.0", "7", "7.00", "-12", "120", "1.5", "-0.25", "1e2", "1e12", "1e13", "0.0001", "1e-5", "1e400"];
        for kind in [Kind::Number, Kind::Integer, Kind::Fraction, Kind::Pointless, Kind::Pointed] {
            for spelling in [Spelling::Natural, Spelling::Any] {
                let mut deriver = Deriver::over(common_exprs(), Limits::default());
                let exprs = &mut deriver.exprs;
                let (mut texts, mut alternatives) = (Vec::new(), Vec::new());
                for value in given.map(|text| Decimal::parse(text).unwrap()) {
                    let written = Written { kind, spelling, readable: false };
                    if plain_texts(exprs, &value, written, &mut texts) {
                        alternatives.push(exactly(exprs, &value, written).unwrap());
                    }
                }
                assert_eq!(
                    alternatives.is_empty(),
                    matches!(kind, Kind::Fraction | Kind::Pointed)
                        || (spelling == Spelling::Any && kind != Kind::Pointless)
                );
                let one_by_one = exprs.or(&alternatives);
                let all = any_text(exprs, &texts).unwrap();
                let (more, less) = (exprs.not(one_by_one), exprs.not(all));
                let (more, less) = (exprs.and(&[all, more]), exprs.and(&[one_by_one, less]));
                assert!(!deriver.is_live(more).unwrap() && !deriver.is_live(less).unwrap(), "{kind:?} {spelling:?}");
            }
        }
    }

    /// Texts of numbers of every shape: with and without a sign, a fraction and an exponent.
    fn texts_of_numbers() -> Vec<String> {
        ["", "-"]
            .iter()
            .flat_map(|sign| ["0", "1", "2", "3", "7", "10", "14", "21", "100"].map(|int| format!("{sign}{int}")))
            .flat_map(|int| ["", ".0", ".5", ".25", ".50"].map(|fraction| format!("{int}{fraction}")))
            .flat_map(|plain| {
                ["", "e0", "E1", "e-1", "e+02", "e-5", "e-06", "E-7", "e-009", "e-10", "e13", "e+16", "e-325"]
                    .map(|exponent| format!("{plain}{exponent}"))
            })
            .collect()
    }

    /// Tests every kind and spelling with all requirements against comparison and division of decimals.
    #[test]
    fn what_is_asked_is_what_is_left() {
        let texts = texts_of_numbers();
        let number = |text: &str| Decimal::parse(text).unwrap();
        let list = |texts: &[&str]| texts.iter().map(|text| number(text)).collect::<Vec<_>>();
        let end = |text: &str, exclusive| End { value: number(text), exclusive };
        let ends = [
            (None, None),
            (Some(end("-1", true)), None),
            (None, Some(end("21", false))),
            (Some(end("-1", true)), Some(end("21", false))),
            (Some(end("0", true)), Some(end("7e-6", false))),
            (Some(end("-1e13", true)), Some(end("-0.00001", true))),
            (Some(end("3e16", false)), None),
        ];
        let steps: [&[&str]; 3] = [&[], &["7"], &["0.5", "0.2"]];
        for kind in [Kind::Number, Kind::Integer, Kind::Fraction, Kind::Pointless, Kind::Pointed] {
            for (lower, upper) in &ends {
                let (lower, upper) = (lower.as_ref(), upper.as_ref());
                for multiple_of in steps {
                    for not_multiple_of in steps {
                        for excluded in [&[][..], &["7.0", "0", "100", "-2", "7"]] {
                            for spelling in [Spelling::Natural, Spelling::Any] {
                                let mut deriver = Deriver::over(common_exprs(), Limits::default());
                                let asked = Numbers {
                                    kind,
                                    lower,
                                    upper,
                                    multiple_of: list(multiple_of),
                                    not_multiple_of: list(not_multiple_of),
                                    excluded: list(excluded),
                                    readable: false,
                                };
                                let expr = numbers(&mut deriver.exprs, asked, spelling).unwrap();
                                for text in &texts {
                                    let value = number(text);
                                    let divides = |step: &&str| {
                                        let set = NumberSet::new(None, None, &[number(step)], &[], NumberForm::Any);
                                        set.unwrap().contains(&value)
                                    };
                                    let free = matches!(kind, Kind::Number | Kind::Pointed)
                                        && lower.is_none()
                                        && upper.is_none()
                                        && steps[0] == multiple_of
                                        && steps[0] == not_multiple_of
                                        && excluded.is_empty();
                                    let pointed = text.contains(['.', 'e', 'E']);
                                    let with_exponent = matches!(kind, Kind::Number | Kind::Fraction | Kind::Pointed);
                                    let natural = !text.contains(['e', 'E']) || (with_exponent && is_scientific(text));
                                    let expected = (spelling == Spelling::Any || free || natural)
                                        && match kind {
                                            Kind::Number => true,
                                            Kind::Integer => value.is_integer(),
                                            Kind::Fraction => !value.is_integer(),
                                            Kind::Pointless => !pointed,
                                            Kind::Pointed => pointed,
                                        }
                                        && lower.is_none_or(|end| {
                                            value > end.value || !end.exclusive && value == end.value
                                        })
                                        && upper.is_none_or(|end| {
                                            value < end.value || !end.exclusive && value == end.value
                                        })
                                        && multiple_of.iter().all(divides)
                                        && !not_multiple_of.iter().any(divides)
                                        && !list(excluded).contains(&value);
                                    let found = deriver.matches(expr, text.as_bytes()).unwrap();
                                    assert_eq!(
                                        found, expected,
                                        "{text} of {kind:?}, {spelling:?}, {multiple_of:?}, {not_multiple_of:?}, {excluded:?}"
                                    );
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
