//! Which numbers count, and which of them common readers have a number for.

use stencilm_regex::{Decimal, End};

/// A kind of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// All numbers.
    Number,
    /// Numbers without a fractional part; zeros after the point are allowed.
    Integer,
    /// Numbers with a fractional part.
    Fraction,
    /// Numbers written without a point or exponent, which is what draft 4 means by an integer.
    Pointless,
    /// Numbers written with a point or exponent.
    Pointed,
}

/// Python doesn't read integers with more digits, because that takes quadratic time.
pub(crate) const MAX_READ_DIGITS: u32 = 4_300;

/// The greatest double.
const GREATEST_DOUBLE: &str = "1.7976931348623157e308";

/// The bounds beyond which no number of a kind is read.
pub(crate) fn readable_ends(kind: Kind) -> [End; 2] {
    let (greatest, exclusive) = match kind {
        Kind::Pointless => (format!("1e{MAX_READ_DIGITS}"), true),
        _ => (GREATEST_DOUBLE.into(), false),
    };
    [format!("-{greatest}"), greatest]
        .map(|text| End { value: Decimal::parse(&text).expect("it is a number"), exclusive })
}
