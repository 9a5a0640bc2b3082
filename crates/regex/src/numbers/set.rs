//! The requested set of numbers, checked and brought into the form that the arithmetic needs.

use std::fmt;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::decimal::Decimal;

/// Remainders are below this, so that a product of two fits in 128 bits.
const MAX_MODULUS: u64 = 1 << 62;
/// The greatest number of numbers that must not be divisors.
const MAX_OTHERS: usize = 8;

/// One end of an interval.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct End {
    /// The bound.
    pub value: Decimal,
    /// Whether the value itself is excluded.
    pub exclusive: bool,
}

/// How numbers are spelled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NumberForm {
    /// In every spelling that JSON allows.
    Any,
    /// Without an exponent. A fraction may have trailing zeros.
    Plain,
    /// With an exponent as common writers of JSON write it: one digit other than 0 before the point, and an exponent in
    /// [`SMALL_EXPONENTS`] or [`LARGE_EXPONENTS`]. The exponent may have a plus sign; if it is negative and has one
    /// digit, it may have a leading zero.
    Scientific,
    /// Only digits and a sign.
    Digits,
}

impl NumberForm {
    /// Whether an exponent can still move the point.
    pub(crate) fn has_exponent(self) -> bool {
        matches!(self, NumberForm::Any | NumberForm::Scientific)
    }
}

/// The exponents with which common writers of JSON write small numbers. Python begins with 1e-05; below 5e-324 there is
/// no double.
pub const SMALL_EXPONENTS: (i64, i64) = (-324, -5);
/// The same for large numbers. Rust begins with 1e13 for `f32` and with 1e16 for `f64`, like Python.
pub const LARGE_EXPONENTS: (i64, i64) = (13, 308);

/// Why a set of numbers is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NumberSetError {
    /// A common multiple has too many digits.
    #[error("the common multiples of these numbers need more than 18 digits; use rounder numbers")]
    TooManyDigits,
    /// A step is not above 0.
    #[error("only of a number above 0 there are multiples")]
    NotPositive,
    /// There are too many numbers that must not be divisors.
    #[error("at most 8 numbers can be kept from being divisors at once")]
    TooManyOthers,
}

/// `factor × 10^scale`, where `factor` is not a multiple of 10.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Step {
    pub(super) factor: u64,
    pub(super) scale: i64,
}

/// A bound on magnitudes: its digits, the power of ten of the first, and whether the bound itself is excluded.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Bound {
    pub(super) digits: Box<[u8]>,
    pub(super) order: i64,
    pub(super) exclusive: bool,
}

/// The magnitudes above 0 of one sign.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Magnitudes {
    pub(super) lower: Option<Bound>,
    pub(super) upper: Option<Bound>,
}

/// Numbers between bounds that are multiples of some numbers and not of others, in one form of spelling.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NumberSet {
    /// A hash of all other fields.
    fingerprint: u64,
    pub(super) form: NumberForm,
    lower: Option<End>,
    upper: Option<End>,
    /// All members are multiples of this.
    pub(super) step: Option<Step>,
    /// No member is a multiple of these; they are multiples of `step` themselves.
    pub(super) others: Box<[Step]>,
    /// A common multiple of the factors of `step` and of all `others`.
    pub(super) modulus: u64,
    /// The same for `step` and `others` scaled to the power of ten of `step`.
    pub(super) counted: u64,
    /// Whether 0 is a member.
    pub(super) zero: bool,
    /// The positive members and the negative ones.
    pub(super) sides: [Option<Magnitudes>; 2],
}

impl Hash for NumberSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

impl NumberSet {
    /// The numbers between two ends that are multiples of every number of one list and of none of the other.
    ///
    /// # Errors
    /// [`NumberSetError`] for a step that is not above 0, or when the arithmetic would need too many digits.
    pub fn new(
        lower: Option<&End>,
        upper: Option<&End>,
        multiple_of: &[Decimal],
        not_multiple_of: &[Decimal],
        form: NumberForm,
    ) -> Result<NumberSet, NumberSetError> {
        let mut step = if form == NumberForm::Digits { Some(Step { factor: 1, scale: 0 }) } else { None };
        for number in multiple_of {
            let next = Step::of(number)?;
            step = Some(match step {
                Some(step) => step.common(next)?,
                None => next,
            });
        }
        if not_multiple_of.len() > MAX_OTHERS {
            return Err(NumberSetError::TooManyOthers);
        }
        let mut others = Vec::with_capacity(not_multiple_of.len());
        for number in not_multiple_of {
            let other = Step::of(number)?;
            others.push(step.map_or(Ok(other), |step| step.common(other))?);
        }
        others.sort_unstable_by_key(|other| (other.scale, other.factor));
        others.dedup();
        let all = others.clone();
        let is_decided = |other: &Step| all.iter().any(|of| of != other && of.common(*other) == Ok(*other));
        others.retain(|other| !is_decided(other));
        let mut modulus = step.map_or(1, |step| step.factor);
        let mut counted = modulus;
        for &other in &others {
            modulus = common_multiple(modulus, Step { scale: 0, ..other })?;
            if let Some(step) = step {
                counted = common_multiple(counted, Step { scale: other.scale - step.scale, ..other })?;
            }
        }
        let set = NumberSet {
            fingerprint: 0,
            form,
            lower: None,
            upper: None,
            zero: false,
            others: others.into(),
            sides: [None, None],
            step,
            modulus,
            counted,
        };
        Ok(set.between(lower.cloned(), upper.cloned()))
    }

    /// The same set with other ends.
    fn between(mut self, lower: Option<End>, upper: Option<End>) -> NumberSet {
        let fits_zero = fits(&Decimal::zero(), lower.as_ref(), upper.as_ref());
        self.zero = self.form != NumberForm::Scientific && self.others.is_empty() && fits_zero;
        let only_zero = self.step.is_some_and(|step| self.others.contains(&step));
        let sides = if only_zero { [None, None] } else { [false, true].map(|sign| magnitudes(sign, &lower, &upper)) };
        self.sides = match (&lower, &upper) {
            (Some(low), Some(high)) if low.value == high.value && !self.divides_as_asked(&low.value) => [None, None],
            _ => sides,
        };
        (self.lower, self.upper) = (lower, upper);
        self.fingerprint = self.hashed();
        self
    }

    /// The members in the form [`NumberForm::Plain`], as sets each of which contains a member once.
    pub(crate) fn plain(&self) -> Vec<NumberSet> {
        let plain = NumberSet { form: NumberForm::Plain, ..self.clone() };
        if self.form != NumberForm::Scientific {
            return vec![plain.between(self.lower.clone(), self.upper.clone())];
        }
        // There is one digit before the point, so the exponent is the power of ten of the first digit.
        let ranges = [SMALL_EXPONENTS, LARGE_EXPONENTS].into_iter().flat_map(|(least, most)| {
            let end = |order, negative, exclusive| End { value: Decimal::power_of_ten(order, negative), exclusive };
            [
                (end(least, false, false), end(most + 1, false, true)),
                (end(most + 1, true, true), end(least, true, false)),
            ]
        });
        ranges.map(|(low, high)| plain.clone().between(above(&self.lower, low), below(&self.upper, high))).collect()
    }

    fn hashed(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.form, &self.lower, &self.upper, self.step, &self.others).hash(&mut hasher);
        hasher.finish()
    }

    /// The spelling of the members.
    pub fn form(&self) -> NumberForm {
        self.form
    }

    /// Whether a number is a member, whatever its spelling.
    pub fn contains(&self, number: &Decimal) -> bool {
        fits(number, self.lower.as_ref(), self.upper.as_ref()) && self.divides_as_asked(number)
    }

    fn divides_as_asked(&self, number: &Decimal) -> bool {
        self.step.is_none_or(|step| step.divides(number)) && !self.others.iter().any(|other| other.divides(number))
    }

    /// Reads what [`NumberSet`] prints.
    ///
    /// # Errors
    /// A description of the mistake in the text.
    pub fn parse(text: &str) -> Result<NumberSet, String> {
        let (mut lower, mut upper) = (None, None);
        let (mut multiple_of, mut not_multiple_of) = (Vec::new(), Vec::new());
        let mut form = NumberForm::Any;
        for word in text.split_ascii_whitespace() {
            let number = |text: &str| {
                Decimal::parse_checked(text)
                    .ok_or_else(|| format!("{text:?} is not a JSON number with a usable exponent"))
            };
            let end = |text: &str, exclusive| Ok::<_, String>(Some(End { value: number(text)?, exclusive }));
            match word {
                "any" => form = NumberForm::Any,
                "plain" => form = NumberForm::Plain,
                "scientific" => form = NumberForm::Scientific,
                "digits" => form = NumberForm::Digits,
                _ => {
                    if let Some(value) = word.strip_prefix(">=") {
                        lower = end(value, false)?;
                    } else if let Some(value) = word.strip_prefix('>') {
                        lower = end(value, true)?;
                    } else if let Some(value) = word.strip_prefix("<=") {
                        upper = end(value, false)?;
                    } else if let Some(value) = word.strip_prefix('<') {
                        upper = end(value, true)?;
                    } else if let Some(value) = word.strip_prefix("!*") {
                        not_multiple_of.push(number(value)?);
                    } else if let Some(value) = word.strip_prefix('*') {
                        multiple_of.push(number(value)?);
                    } else {
                        return Err(format!(
                            "{word:?} is not known; there are >=1, >1, <=1, <1, *1 (a multiple of 1), !*1 (no multiple), any, \
                             plain, scientific and digits"
                        ));
                    }
                }
            }
        }
        NumberSet::new(lower.as_ref(), upper.as_ref(), &multiple_of, &not_multiple_of, form)
            .map_err(|error| error.to_string())
    }
}

impl fmt::Display for NumberSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(end) = &self.lower {
            write!(f, ">{}{} ", if end.exclusive { "" } else { "=" }, end.value.exact())?;
        }
        if let Some(end) = &self.upper {
            write!(f, "<{}{} ", if end.exclusive { "" } else { "=" }, end.value.exact())?;
        }
        if let Some(step) = self.step {
            write!(f, "*{}e{} ", step.factor, step.scale)?;
        }
        for other in &self.others {
            write!(f, "!*{}e{} ", other.factor, other.scale)?;
        }
        f.write_str(match self.form {
            NumberForm::Any => "any",
            NumberForm::Plain => "plain",
            NumberForm::Scientific => "scientific",
            NumberForm::Digits => "digits",
        })
    }
}

fn fits(number: &Decimal, lower: Option<&End>, upper: Option<&End>) -> bool {
    let above = |end: &End| *number > end.value || (!end.exclusive && *number == end.value);
    let below = |end: &End| *number < end.value || (!end.exclusive && *number == end.value);
    lower.is_none_or(above) && upper.is_none_or(below)
}

/// The greater one of two lower ends.
fn above(one: &Option<End>, other: End) -> Option<End> {
    let is_greater = |one: &&End| one.value > other.value || (one.value == other.value && one.exclusive);
    one.as_ref().filter(is_greater).cloned().or(Some(other))
}

/// The lesser one of two upper ends.
fn below(one: &Option<End>, other: End) -> Option<End> {
    let is_less = |one: &&End| one.value < other.value || (one.value == other.value && one.exclusive);
    one.as_ref().filter(is_less).cloned().or(Some(other))
}

/// The magnitudes above 0 of one sign between two ends.
fn magnitudes(negative: bool, lower: &Option<End>, upper: &Option<End>) -> Option<Magnitudes> {
    let (lower, upper) = (lower.as_ref(), upper.as_ref());
    let (near, far) = if negative { (upper, lower) } else { (lower, upper) };
    let same_sign = |end: &&End| end.value.negative == negative && !end.value.is_zero();
    // An end on the other side of 0, or 0 itself, excludes this sign if it is the end farther from 0; otherwise it does
    // not restrict it.
    if far.is_some_and(|end| !same_sign(&end)) {
        return None;
    }
    let bound = |end: &End| {
        let (digits, order) = end.value.leading();
        Bound { digits: digits.into(), order, exclusive: end.exclusive }
    };
    if let (Some(near), Some(far)) = (near.filter(same_sign), far) {
        let order = near.value.compare_magnitude(&far.value);
        if order.is_gt() || (order.is_eq() && (near.exclusive || far.exclusive)) {
            return None;
        }
    }
    Some(Magnitudes { lower: near.filter(same_sign).map(bound), upper: far.map(bound) })
}

impl Step {
    /// A number above 0 as a step.
    fn of(number: &Decimal) -> Result<Step, NumberSetError> {
        let (digits, order) = number.leading();
        if number.negative || number.is_zero() {
            return Err(NumberSetError::NotPositive);
        }
        if digits.len() > 18 {
            return Err(NumberSetError::TooManyDigits);
        }
        let factor = digits.iter().fold(0, |value, &digit| value * 10 + u64::from(digit));
        Ok(Step { factor, scale: order + 1 - digits.len() as i64 })
    }

    /// The least common multiple.
    fn common(self, other: Step) -> Result<Step, NumberSetError> {
        let ((twos, fives, rest), (other_twos, other_fives, other_rest)) = (self.powers(), other.powers());
        let (twos, fives) = (twos.max(other_twos), fives.max(other_fives));
        let scale = twos.min(fives);
        let power = |base: u64, power: i64| u32::try_from(power).ok().and_then(|power| base.checked_pow(power));
        let rest = (rest / gcd(rest, other_rest)).checked_mul(other_rest);
        let factor = || rest?.checked_mul(power(2, twos - scale)?)?.checked_mul(power(5, fives - scale)?);
        match factor() {
            Some(factor) if factor < MAX_MODULUS => Ok(Step { factor, scale }),
            _ => Err(NumberSetError::TooManyDigits),
        }
    }

    /// The powers of 2 and 5, including the scale, and the other factors.
    fn powers(self) -> (i64, i64, u64) {
        let (mut twos, mut fives, mut rest) = (self.scale, self.scale, self.factor);
        while rest.is_multiple_of(2) {
            rest /= 2;
            twos += 1;
        }
        while rest.is_multiple_of(5) {
            rest /= 5;
            fives += 1;
        }
        (twos, fives, rest)
    }

    /// The least power of ten that is a multiple of the step, if there is one.
    pub(super) fn power_of_ten(self) -> Option<i64> {
        let (twos, fives, rest) = self.powers();
        (rest == 1).then_some(twos.max(fives))
    }

    /// The step as an integer, if it is one and fits.
    pub(super) fn whole(self) -> Option<u64> {
        let power = 10u64.checked_pow(u32::try_from(self.scale).ok()?)?;
        self.factor.checked_mul(power).filter(|&whole| whole < MAX_MODULUS)
    }

    fn divides(self, number: &Decimal) -> bool {
        let (digits, order) = number.leading();
        let digits_at = order + 1 - digits.len() as i64;
        let remainder = digits.iter().fold(0, |value, &digit| append(value, 1, digit, self.factor));
        number.is_zero() || (digits_at >= self.scale && times_ten(remainder, digits_at - self.scale, self.factor) == 0)
    }
}

fn common_multiple(a: u64, b: Step) -> Result<u64, NumberSetError> {
    Step { factor: a, scale: 0 }.common(b)?.whole().ok_or(NumberSetError::TooManyDigits)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// `value × 10^power` modulo `modulus`.
pub(super) fn times_ten(value: u64, power: i64, modulus: u64) -> u64 {
    let times = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(modulus)) as u64;
    let (mut result, mut square, mut power) = (value % modulus, 10 % modulus, power.max(0));
    while power > 0 && result != 0 {
        if power & 1 == 1 {
            result = times(result, square);
        }
        square = times(square, square);
        power >>= 1;
    }
    result
}

/// The remainder after `places` more digits, the last of which is `digit`.
pub(super) fn append(value: u64, places: i64, digit: u8, modulus: u64) -> u64 {
    ((u128::from(times_ten(value, places, modulus)) + u128::from(digit)) % u128::from(modulus)) as u64
}
