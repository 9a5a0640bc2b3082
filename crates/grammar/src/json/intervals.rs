//! Plain decimals as expressions: JSON numbers (RFC 8259 section 6) and exact decimal intervals of any length.
//!
//! An interval is walked digit by digit from both ends at once, as one compares two numbers by hand: as long as the
//! digits read equal those of an end, that end still binds. The walk is built backwards, so nothing recurses.

use stencilm_regex::{ByteSet, End, ExprId, ExprSet, NumberForm, NumberSet, Plain};

use super::kind::{Kind, MAX_READ_DIGITS, readable_ends};

/// Digits from `first` to `last`.
fn digits(exprs: &mut ExprSet, first: u8, last: u8) -> ExprId {
    if first > last { ExprId::NOTHING } else { exprs.bytes(ByteSet::range(b'0' + first, b'0' + last)) }
}

fn many_digits(exprs: &mut ExprSet, min: u32) -> ExprId {
    let digit = digits(exprs, 0, 9);
    exprs.repeat(digit, min, None)
}

/// At least `min` zeros.
pub(crate) fn many_zeros(exprs: &mut ExprSet, min: u32) -> ExprId {
    let zero = digits(exprs, 0, 0);
    exprs.repeat(zero, min, None)
}

/// An optional minus and an integer part without leading zeros.
fn signed_int(exprs: &mut ExprSet) -> ExprId {
    let minus = exprs.literal(b"-");
    let minus = exprs.optional(minus);
    let zero = digits(exprs, 0, 0);
    let first = digits(exprs, 1, 9);
    let rest = many_digits(exprs, 0);
    let long = exprs.concat(first, rest);
    let int = exprs.or(&[zero, long]);
    exprs.concat(minus, int)
}

/// Any JSON number, exponents included.
pub(crate) fn any_number(exprs: &mut ExprSet) -> ExprId {
    let int = signed_int(exprs);
    let point = exprs.literal(b".");
    let digits = many_digits(exprs, 1);
    let frac = exprs.concat(point, digits);
    let frac = exprs.optional(frac);
    let mark = exprs.bytes([b'e', b'E'].into_iter().collect());
    let sign = exprs.bytes([b'+', b'-'].into_iter().collect());
    let sign = exprs.optional(sign);
    let exponent = exprs.concat_all(&[mark, sign, digits]);
    let exponent = exprs.optional(exponent);
    exprs.concat_all(&[int, frac, exponent])
}

/// Numbers with an exponent as common JSON writers print them ([`NumberForm::Scientific`](stencilm_regex::NumberForm)).
/// Bit 0 of `which` selects small positive numbers, bit 1 large positive ones, bits 2 and 3 the small and large
/// negative ones.
pub(crate) fn scientific(exprs: &mut ExprSet, which: u8) -> ExprId {
    let first = digits(exprs, 1, 9);
    let point = exprs.literal(b".");
    let rest = many_digits(exprs, 1);
    let rest = exprs.concat(point, rest);
    let rest = exprs.optional(rest);
    let mark = exprs.literal(b"e");
    let mut magnitudes = |which: u8| match which {
        0 => ExprId::NOTHING,
        _ => {
            let least = if which & 1 == 0 { Some(0) } else { None };
            let most = if which & 2 == 0 { Some(0) } else { None };
            let exponent = exprs.scientific_exponent(least, most);
            exprs.concat_all(&[first, rest, mark, exponent])
        }
    };
    let (above, below) = (magnitudes(which & 3), magnitudes(which >> 2));
    let minus = exprs.literal(b"-");
    if above == below {
        let minus = exprs.optional(minus);
        return exprs.concat(minus, above);
    }
    let below = exprs.concat(minus, below);
    exprs.or(&[above, below])
}

/// Any integer as a plain decimal.
pub(crate) fn any_integer(exprs: &mut ExprSet, kind: Kind) -> ExprId {
    let int = signed_int(exprs);
    let zeros = if kind == Kind::Pointless { ExprId::EMPTY } else { point_zeros(exprs) };
    exprs.concat(int, zeros)
}

/// Plain decimals of a kind in an interval. Where no end bounds them, they have at most `longest` digits before the
/// point, and then no -0. [`ExprId::NOTHING`] if there are none, `None` if an end has too many digits.
pub(crate) fn between(
    exprs: &mut ExprSet,
    lower: Option<&End>,
    upper: Option<&End>,
    kind: Kind,
    longest: Option<u32>,
) -> Option<ExprId> {
    let zero = || Side { plain: Plain { int: vec![0], frac: vec![] }, exclusive: false };
    let side = |end: &End| Some(Side { plain: end.value.plain()?, exclusive: end.exclusive });
    let above_zero = |end: &End| !end.value.negative && !end.value.is_zero();
    let mut parts = Vec::new();
    // Zero belongs to both signs, because -0 equals 0; but a text that Python reads as an int has no -0.
    let has_two_zeros = kind != Kind::Pointless || longest.is_none();
    if upper.is_none_or(|end| !end.value.negative) {
        let least = lower.filter(|end| !end.value.negative).map_or(Some(zero()), side)?;
        let most = upper.map(side);
        let most = if let Some(most) = most { Some(most?) } else { None };
        parts.push(Walk::new(exprs, least, most, kind).magnitudes(longest));
    }
    if lower.is_none_or(|end| !above_zero(end)) {
        let least = upper.filter(|end| !above_zero(end)).map_or(Some(zero()), side)?;
        let most = lower.map(side);
        let most = if let Some(most) = most { Some(most?) } else { None };
        let is_zero = least.plain.int == [0] && least.plain.frac.is_empty();
        let least = Side { exclusive: least.exclusive || (is_zero && !has_two_zeros), ..least };
        let magnitude = Walk::new(exprs, least, most, kind).magnitudes(longest);
        let minus = exprs.literal(b"-");
        parts.push(exprs.concat(minus, magnitude));
    }
    Some(exprs.or(&parts))
}

struct Side {
    plain: Plain,
    exclusive: bool,
}

/// Which ends still bind, because all digits so far equal theirs.
const FREE: usize = 0;
const LOW: usize = 1;
const HIGH: usize = 2;
const BOTH: usize = 3;

struct Walk<'a> {
    exprs: &'a mut ExprSet,
    least: Side,
    most: Option<Side>,
    /// What may follow the integer part, by which ends still bind.
    after_int: [ExprId; 4],
}

/// A point and zeros, or nothing.
pub(crate) fn point_zeros(exprs: &mut ExprSet) -> ExprId {
    let point = exprs.literal(b".");
    let zeros = many_zeros(exprs, 1);
    let tail = exprs.concat(point, zeros);
    exprs.optional(tail)
}

impl<'a> Walk<'a> {
    fn new(exprs: &'a mut ExprSet, least: Side, most: Option<Side>, kind: Kind) -> Walk<'a> {
        let mut walk = Walk { exprs, least, most, after_int: [ExprId::NOTHING; 4] };
        walk.after_int = walk.fractions(kind);
        walk
    }

    /// Whether the text may end after `place` digits of the fraction.
    fn may_stop(&self, place: usize, bound: usize) -> bool {
        let low = place >= self.least.plain.frac.len() && !self.least.exclusive;
        let high = self.most.as_ref().is_none_or(|most| place < most.plain.frac.len() || !most.exclusive);
        (bound & LOW == 0 || low) && (bound & HIGH == 0 || high)
    }

    fn fractions(&mut self, kind: Kind) -> [ExprId; 4] {
        if kind != Kind::Number {
            let zeros = if kind == Kind::Integer { point_zeros(self.exprs) } else { ExprId::EMPTY };
            return std::array::from_fn(|bound| if self.may_stop(0, bound) { zeros } else { ExprId::NOTHING });
        }
        let most = self.most.as_ref().map_or(Vec::new(), |most| most.plain.frac.clone());
        let least = self.least.plain.frac.clone();
        let places = least.len().max(most.len());
        let mut more = self.beyond_the_ends(places);
        for place in (0..places).rev() {
            let next: [ExprId; 4] = std::array::from_fn(|bound| {
                let stop = if self.may_stop(place + 1, bound) { ExprId::EMPTY } else { ExprId::NOTHING };
                self.exprs.or(&[stop, more[bound]])
            });
            let (low, high) = (least.get(place).copied().unwrap_or(0), most.get(place).copied().unwrap_or(0));
            more = std::array::from_fn(|bound| self.digit(bound, 0, low, high, &next));
        }
        let point = self.exprs.literal(b".");
        std::array::from_fn(|bound| {
            let stop = if self.may_stop(0, bound) { ExprId::EMPTY } else { ExprId::NOTHING };
            let tail = self.exprs.concat(point, more[bound]);
            self.exprs.or(&[stop, tail])
        })
    }

    /// One or more digits after all digits of both ends.
    fn beyond_the_ends(&mut self, places: usize) -> [ExprId; 4] {
        let any = many_digits(self.exprs, 1);
        let zeros = many_zeros(self.exprs, 1);
        let not_zero = {
            let (before, digit, after) =
                (many_zeros(self.exprs, 0), digits(self.exprs, 1, 9), many_digits(self.exprs, 0));
            self.exprs.concat_all(&[before, digit, after])
        };
        let low = if self.least.exclusive { not_zero } else { any };
        let high = if self.may_stop(places, HIGH) { zeros } else { ExprId::NOTHING };
        let both = if self.may_stop(places, BOTH) { zeros } else { ExprId::NOTHING };
        [any, low, high, both]
    }

    /// One digit, at least `first`, followed by `next` for the ends that still bind after it.
    fn digit(&mut self, bound: usize, first: u8, low: u8, high: u8, next: &[ExprId; 4]) -> ExprId {
        let mut parts = Vec::with_capacity(3);
        let mut step = |exprs: &mut ExprSet, from: u8, to: u8, after: usize| {
            let head = digits(exprs, from.max(first), to);
            parts.push(exprs.concat(head, next[after]));
        };
        match bound {
            FREE => step(self.exprs, 0, 9, FREE),
            LOW => {
                step(self.exprs, low, low, LOW);
                step(self.exprs, low + 1, 9, FREE);
            }
            HIGH => {
                step(self.exprs, high, high, HIGH);
                if high > 0 {
                    step(self.exprs, 0, high - 1, FREE);
                }
            }
            _ if low == high => step(self.exprs, low, low, BOTH),
            _ if low < high => {
                step(self.exprs, low, low, LOW);
                step(self.exprs, high, high, HIGH);
                step(self.exprs, low + 1, high - 1, FREE);
            }
            _ => {}
        }
        self.exprs.or(&parts)
    }

    /// All unsigned numbers from `least` to `most`; without `most`, those with at most `unbounded` digits before the
    /// point.
    fn magnitudes(&mut self, unbounded: Option<u32>) -> ExprId {
        let shortest = self.least.plain.int.len();
        let Some(longest) = self.most.as_ref().map(|most| most.plain.int.len()) else {
            let same = self.integers(shortest, LOW);
            let longer = self.longer_integers(shortest, unbounded.map(|longest| longest as usize));
            return self.exprs.or(&[same, longer]);
        };
        if shortest > longest {
            return ExprId::NOTHING;
        }
        if shortest == longest {
            return self.integers(shortest, BOTH);
        }
        let low = self.integers(shortest, LOW);
        let between = self.longer_integers(shortest, Some(longest - 1));
        let high = self.integers(longest, HIGH);
        self.exprs.or(&[low, between, high])
    }

    /// Integer parts with more than `shorter` and at most `longest` digits, where no end binds.
    fn longer_integers(&mut self, shorter: usize, longest: Option<usize>) -> ExprId {
        if longest.is_some_and(|longest| longest <= shorter) {
            return ExprId::NOTHING;
        }
        let first = digits(self.exprs, 1, 9);
        let digit = digits(self.exprs, 0, 9);
        let rest = self.exprs.repeat(digit, shorter as u32, longest.map(|longest| longest as u32 - 1));
        self.exprs.concat_all(&[first, rest, self.after_int[FREE]])
    }

    /// Integer parts with exactly `length` digits, where the ends in `bound` have as many.
    fn integers(&mut self, length: usize, bound: usize) -> ExprId {
        let digit = |side: Option<&Side>, place: usize| side.and_then(|side| side.plain.int.get(place)).copied();
        let mut next = self.after_int;
        for place in (0..length).rev() {
            let low = digit(Some(&self.least), place).unwrap_or(0);
            let high = digit(self.most.as_ref(), place).unwrap_or(0);
            let first = u8::from(place == 0 && length > 1);
            next = std::array::from_fn(|bound| self.digit(bound, first, low, high, &next));
        }
        next[bound]
    }
}

/// Any number of a kind that common readers can represent, written with digits only, or with a point or an exponent.
pub(crate) fn any_readable(exprs: &mut ExprSet, kind: Kind) -> ExprId {
    let [least, most] = readable_ends(kind);
    match kind {
        Kind::Pointless => {
            between(exprs, None, None, kind, Some(MAX_READ_DIGITS)).expect("there is no end with too many digits")
        }
        _ => {
            let numbers = NumberSet::new(Some(&least), Some(&most), &[], &[], NumberForm::Any);
            exprs.numbers(numbers.expect("there are no steps"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencilm_regex::{Decimal, Deriver, Limits};

    fn end(text: &str) -> Option<End> {
        let (text, exclusive) = text.strip_prefix('x').map_or((text, false), |rest| (rest, true));
        (!text.is_empty()).then(|| End { value: Decimal::parse(text).unwrap(), exclusive })
    }

    /// Compares every decimal with few digits with the bounds.
    #[test]
    fn intervals_are_exact() {
        let ends = ["", "0", "x0", "1", "x1", "-1", "x-1", "1.5", "x1.5", "-0.05", "12", "99", "x100", "-12.5", "0.09"];
        let mut texts = Vec::new();
        for int in (0..=13).chain([19, 90, 98, 99, 100, 101, 112, 120, 999, 1000]) {
            for frac in ["", ".0", ".00", ".5", ".50", ".4", ".51", ".05", ".049", ".1", ".09", ".9", ".000001"] {
                texts.push(format!("{int}{frac}"));
                texts.push(format!("-{int}{frac}"));
            }
        }
        for lower in ends {
            for upper in ends {
                for kind in [Kind::Number, Kind::Integer, Kind::Pointless] {
                    let mut deriver = Deriver::new(Limits::default());
                    let (low, high) = (end(lower), end(upper));
                    let expr = between(&mut deriver.exprs, low.as_ref(), high.as_ref(), kind, None).unwrap();
                    for text in &texts {
                        let value = Decimal::parse(text).unwrap();
                        let fits = low
                            .as_ref()
                            .is_none_or(|low| if low.exclusive { value > low.value } else { value >= low.value })
                            && high.as_ref().is_none_or(|high| {
                                if high.exclusive { value < high.value } else { value <= high.value }
                            })
                            && match kind {
                                Kind::Number | Kind::Fraction | Kind::Pointed => true,
                                Kind::Integer => value.is_integer(),
                                Kind::Pointless => !text.contains('.'),
                            };
                        let found = deriver.matches(expr, text.as_bytes()).unwrap();
                        assert_eq!(found, fits, "{text} in {lower}..{upper}, {kind:?}");
                    }
                    for text in ["", "-", "01", "00", "1.", ".5", "+1", "1e0", "--1", "-01"] {
                        assert!(!deriver.matches(expr, text.as_bytes()).unwrap(), "{text} is not a plain decimal");
                    }
                }
            }
        }
    }

    #[test]
    fn an_empty_interval_is_nothing() {
        let mut exprs = ExprSet::new();
        for (lower, upper, kind) in [
            ("2", "1", Kind::Number),
            ("1.2", "1.8", Kind::Integer),
            ("x1", "1", Kind::Number),
            ("x1", "x2", Kind::Pointless),
        ] {
            let expr = between(&mut exprs, end(lower).as_ref(), end(upper).as_ref(), kind, None);
            assert_eq!(expr, Some(ExprId::NOTHING), "{lower}..{upper}");
        }
    }

    #[test]
    fn long_numbers_are_linear() {
        let mut exprs = ExprSet::new();
        let value = Decimal::parse("1e4000").unwrap();
        let end = End { value, exclusive: false };
        between(&mut exprs, Some(&end), Some(&end), Kind::Number, None).unwrap();
        assert!(exprs.len() < 60_000, "{}", exprs.len());
    }
}
