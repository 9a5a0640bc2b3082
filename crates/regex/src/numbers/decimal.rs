//! Exact decimal numbers of any length: the values of JSON numbers, without floating point.
//!
//! A value is `0.DIGITS × 10^point` with neither leading nor trailing zeros, so equal numbers are equal values.

use std::cmp::Ordering;
use std::fmt;

/// The greatest number of digits of a number written without an exponent.
pub const MAX_DIGITS: i64 = 4_096;

/// An exact decimal number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Decimal {
    /// Whether it is below 0.
    pub negative: bool,
    digits: Box<[u8]>,
    point: i64,
}

/// The magnitude of a number as digits (values 0 to 9) before and after the point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plain {
    /// At least one digit; no leading zero, except for zero itself.
    pub int: Vec<u8>,
    /// No trailing zero.
    pub frac: Vec<u8>,
}

impl Decimal {
    /// The number 0.
    pub fn zero() -> Decimal {
        Decimal { negative: false, digits: Box::default(), point: 0 }
    }

    /// An integer as a number.
    pub fn from_integer(value: i64) -> Decimal {
        let text = value.unsigned_abs().to_string();
        let significant = text.trim_end_matches('0');
        let digits: Box<[u8]> = significant.bytes().map(|digit| digit - b'0').collect();
        let point = if digits.is_empty() { 0 } else { text.len() as i64 };
        Decimal { negative: value < 0, digits, point }
    }

    /// A power of ten with a sign.
    pub(super) fn power_of_ten(power: i64, negative: bool) -> Decimal {
        Decimal { negative, digits: [1].into(), point: power + 1 }
    }

    /// Reads a well-formed JSON number; `None` where the exponent is absurdly large.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let (int, frac) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: Vec<u8> = int.bytes().chain(frac.bytes()).map(|digit| digit - b'0').collect();
        let Some(start) = digits.iter().position(|&digit| digit != 0) else {
            return Some(Decimal::zero());
        };
        let end = digits.iter().rposition(|&digit| digit != 0).map_or(0, |last| last + 1);
        let exponent: i64 = match exponent {
            Some(exponent) => exponent.parse().ok().filter(|exponent: &i64| exponent.abs() < 1 << 60)?,
            None => 0,
        };
        let point = int.len() as i64 - start as i64 + exponent;
        Some(Decimal { negative, digits: digits[start..end].into(), point })
    }

    /// Reads a text that may not be a JSON number; `None` also where the exponent is absurdly large.
    pub fn parse_checked(text: &str) -> Option<Decimal> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(a, b)| (a, Some(b)));
        let (int, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(a, b)| (a, Some(b)));
        let well_formed = digits(int)
            && (int == "0" || !int.starts_with('0'))
            && fraction.is_none_or(digits)
            && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
        if well_formed { Decimal::parse(text) } else { None }
    }

    /// The digits without zeros around them, and the power of ten of the first.
    pub(super) fn leading(&self) -> (&[u8], i64) {
        (&self.digits, self.point - 1)
    }

    /// The power of ten of the first digit; -1 for 0.
    pub fn order(&self) -> i64 {
        self.point - 1
    }

    /// A JSON text of this exact number.
    pub fn exact(&self) -> String {
        if self.is_zero() {
            return "0".into();
        }
        let digits: String = self.digits.iter().map(|&digit| char::from(b'0' + digit)).collect();
        let sign = if self.negative { "-" } else { "" };
        match self.point - self.digits.len() as i64 {
            0 => format!("{sign}{digits}"),
            power => format!("{sign}{digits}e{power}"),
        }
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether it has no fraction.
    pub fn is_integer(&self) -> bool {
        self.digits.len() as i64 <= self.point || self.is_zero()
    }

    /// The number as a count, if it is one and fits.
    pub fn to_u64(&self) -> Option<u64> {
        if self.negative || !self.is_integer() || self.point > 19 {
            return None;
        }
        let zeros = self.point as usize - self.digits.len().min(self.point as usize);
        let digits = self.digits.iter().copied().chain(std::iter::repeat_n(0, zeros));
        digits.into_iter().try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit)))
    }

    /// The magnitude without an exponent; `None` where that takes more than [`MAX_DIGITS`] digits.
    pub fn plain(&self) -> Option<Plain> {
        let length = self.digits.len() as i64;
        if self.point > MAX_DIGITS || length.checked_sub(self.point)? > MAX_DIGITS {
            return None;
        }
        let digit = |place: i64| usize::try_from(place).ok().and_then(|place| self.digits.get(place)).copied();
        let int = if self.point <= 0 { vec![0] } else { (0..self.point).map(|at| digit(at).unwrap_or(0)).collect() };
        let frac = (self.point..length.max(self.point)).map(|at| digit(at).unwrap_or(0)).collect();
        Some(Plain { int, frac })
    }

    /// Compares the magnitudes, ignoring the signs.
    pub(super) fn compare_magnitude(&self, other: &Decimal) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // Digits without leading zeros compare as text if the points are equal.
            _ => self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits)),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let text = |digits: &[u8]| digits.iter().map(|&digit| char::from(b'0' + digit)).collect::<String>();
        match self.plain().filter(|plain| plain.int.len() + plain.frac.len() <= 40) {
            Some(plain) if plain.frac.is_empty() => write!(f, "{sign}{}", text(&plain.int)),
            Some(plain) => write!(f, "{sign}{}.{}", text(&plain.int), text(&plain.frac)),
            None => {
                let first = &self.digits[..self.digits.len().min(20)];
                let more = if self.digits.len() > 20 { "…" } else { "" };
                write!(f, "{sign}0.{}{more}e{}", text(first), self.point)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_equal_values() {
        for (a, b) in [("1", "1.0"), ("1", "10e-1"), ("-0", "0.00"), ("1e3", "1000"), ("0.012", "12E-3"), ("0e99", "0")]
        {
            assert_eq!(Decimal::parse(a), Decimal::parse(b), "{a} = {b}");
        }
    }

    #[test]
    fn orders_as_numbers_do() {
        let ascending = ["-1e40", "-2", "-1.5", "-1", "-0.1", "0", "1e-9", "0.5", "1", "1.01", "9", "10", "1e400"];
        let ascending: Vec<Decimal> = ascending.iter().map(|text| Decimal::parse(text).unwrap()).collect();
        assert!(ascending.is_sorted());
        assert!(ascending.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn prints_and_counts() {
        for (text, shown, count) in [
            ("12", "12", Some(12)),
            ("1e2", "100", Some(100)),
            ("0.050", "0.05", None),
            ("-7.5", "-7.5", None),
            ("3.0", "3", Some(3)),
            ("-1", "-1", None),
            ("18446744073709551616", "18446744073709551616", None),
            ("0", "0", Some(0)),
        ] {
            let value = Decimal::parse(text).unwrap();
            assert_eq!((value.to_string().as_str(), value.to_u64()), (shown, count), "{text}");
        }
        assert_eq!(Decimal::parse("1e99999999999999999999"), None);
        assert!(Decimal::parse("1e5000").unwrap().plain().is_none());
        assert!(Decimal::parse("1e-5000").unwrap().plain().is_none());
    }
}
