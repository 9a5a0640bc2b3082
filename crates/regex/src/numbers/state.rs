//! The rest of a set of numbers after some text: everything that the rest of the text can depend on, and nothing else.
//!
//! Of the digits read, only this is stored: how they compare with those of the bounds, their remainder, the number of
//! zeros at their end, and the powers of ten of the first and the last one. Whatever can no longer change the result is
//! dropped, so that a number has few states.

use std::cmp::Ordering;
use std::sync::Arc;

use super::set::{Bound, Magnitudes, NumberForm, NumberSet, append, times_ten};

/// The part of the text that comes next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    /// The sign or the first digit.
    Start,
    /// The first digit.
    Unsigned,
    /// After a 0 before the point.
    Zero,
    /// After another digit before the point.
    Int,
    /// The first digit after the point.
    Point,
    /// After that digit.
    Fraction,
}

/// How the digits so far compare with as many digits of a bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Relation {
    /// There is no bound, or it holds whatever follows.
    Free,
    Less,
    Equal,
    Greater,
}

/// The rest of a [`NumberSet`] after a prefix of a text. It can always be completed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Number {
    pub(super) set: Arc<NumberSet>,
    pub(super) phase: Phase,
    negative: bool,
    /// Whether a digit other than 0 was read.
    pub(super) started: bool,
    /// The power of ten of the first such digit, without the exponent, which is not known yet.
    pub(super) order: i64,
    /// The power of ten of the last digit read.
    pub(super) unit: i64,
    /// The number of zeros that the digits end with, as far as it matters.
    pub(super) zeros: i64,
    /// The number of digits compared, as far as it matters.
    matched: usize,
    pub(super) lower: Relation,
    pub(super) upper: Relation,
    /// The remainder of the digits without those zeros.
    pub(super) remainder: u64,
    /// Whether the number can no longer become a multiple of the others.
    pub(super) settled: bool,
}

/// The rest after one more byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    Nothing,
    Number(Number),
    /// Any zeros.
    Zeros,
    /// Any digits.
    Digits,
    /// An exponent between two ends.
    Exponent(Option<i64>, Option<i64>),
    /// The same as [`NumberForm::Scientific`] has it.
    ScientificExponent(Option<i64>, Option<i64>),
}

impl Number {
    /// The whole set; `None` when it is empty.
    pub(crate) fn start(set: Arc<NumberSet>) -> Option<Number> {
        let of = |negative| {
            let number = Number::new(set.clone(), negative);
            (set.zero || number.may_start()).then_some(number)
        };
        match (of(false), of(true)) {
            (Some(number), Some(_)) => Some(Number { phase: Phase::Start, ..number }),
            (Some(number), None) => Some(number),
            (None, Some(number)) => Some(Number { phase: Phase::Start, ..number }),
            (None, None) => None,
        }
    }

    /// The members of 0 and more, without a sign; `None` when there are none.
    pub(crate) fn unsigned(set: Arc<NumberSet>) -> Option<Number> {
        let number = Number::new(set, false);
        (number.set.zero || number.may_start()).then_some(number)
    }

    /// The members of another set with the same sign, after the sign; `None` where there are none.
    pub(crate) fn after_same_sign(&self, set: NumberSet) -> Option<Number> {
        let number = Number::new(Arc::new(set), self.negative);
        (number.set.zero || number.may_start()).then_some(number)
    }

    fn new(set: Arc<NumberSet>, negative: bool) -> Number {
        Number {
            set,
            phase: Phase::Unsigned,
            negative,
            started: false,
            order: 0,
            unit: 0,
            zeros: 0,
            matched: 0,
            lower: Relation::Free,
            upper: Relation::Free,
            remainder: 0,
            settled: false,
        }
    }

    /// The set of which this is the rest.
    pub fn set(&self) -> &NumberSet {
        &self.set
    }

    /// The set, if nothing was read yet.
    pub fn whole(&self) -> Option<&NumberSet> {
        (Number::start(self.set.clone()).as_ref() == Some(self)).then_some(&*self.set)
    }

    /// Sets of bytes that may lead to different states.
    pub(crate) const BYTES: [&'static [u8]; 15] =
        [b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9", b".", b"e", b"E", b"+", b"-"];

    /// The rest after one byte.
    pub(crate) fn after(&self, byte: u8) -> Rest {
        let mut next = self.clone();
        next.phase = match (self.phase, byte) {
            (Phase::Start, b'-') => {
                next.negative = true;
                Phase::Unsigned
            }
            (Phase::Start | Phase::Unsigned, b'0') if self.set.form != NumberForm::Scientific => {
                next.negative &= self.phase == Phase::Unsigned;
                Phase::Zero
            }
            (Phase::Int, b'0'..=b'9') if self.set.form == NumberForm::Scientific => return Rest::Nothing,
            (Phase::Start | Phase::Unsigned, b'0') => return Rest::Nothing,
            (Phase::Start | Phase::Unsigned | Phase::Int, b'0'..=b'9') => {
                next.negative &= self.phase != Phase::Start;
                next.push(byte - b'0');
                Phase::Int
            }
            (Phase::Zero | Phase::Int, b'.') if self.set.form != NumberForm::Digits => Phase::Point,
            (Phase::Point | Phase::Fraction, b'0'..=b'9') => {
                next.push(byte - b'0');
                Phase::Fraction
            }
            (Phase::Zero | Phase::Int | Phase::Fraction, b'e' | b'E') if self.set.form == NumberForm::Any => {
                return self.exponent();
            }
            (Phase::Int | Phase::Fraction, b'e') if self.set.form == NumberForm::Scientific => return self.exponent(),
            _ => return Rest::Nothing,
        };
        next.normal(self.started && self.is_placed())
    }

    /// Reads one more digit, before or after the point.
    fn push(&mut self, digit: u8) {
        if matches!(self.phase, Phase::Point | Phase::Fraction) {
            self.unit -= 1;
        } else if self.started {
            self.order += 1;
        }
        if !self.started {
            if digit == 0 {
                return;
            }
            self.begin(self.unit, digit);
            return;
        }
        self.compare(digit);
        if digit == 0 {
            self.zeros += 1;
        } else {
            self.remainder = append(self.remainder, self.zeros + 1, digit, self.set.modulus);
            self.zeros = 0;
        }
    }

    /// Reads the first digit that is not 0, which has this power of ten.
    pub(super) fn begin(&mut self, order: i64, digit: u8) {
        let bound = |bound: bool| if bound { Relation::Equal } else { Relation::Free };
        (self.lower, self.upper) = (bound(self.lower_bound().is_some()), bound(self.upper_bound().is_some()));
        self.started = true;
        self.order = order;
        self.remainder = u64::from(digit) % self.set.modulus;
        self.compare(digit);
    }

    fn compare(&mut self, digit: u8) {
        let set = self.set.clone();
        let Some(side) = &set.sides[usize::from(self.negative)] else { return };
        for (relation, bound) in [(&mut self.lower, &side.lower), (&mut self.upper, &side.upper)] {
            if let (Relation::Equal, Some(bound)) = (*relation, bound) {
                *relation = match digit.cmp(bound.digits.get(self.matched).unwrap_or(&0)) {
                    Ordering::Less => Relation::Less,
                    Ordering::Equal => Relation::Equal,
                    Ordering::Greater => Relation::Greater,
                };
            }
        }
        self.matched += 1;
    }

    /// The magnitudes with the sign that was read.
    pub(super) fn side(&self) -> Option<&Magnitudes> {
        self.set.sides[usize::from(self.negative)].as_ref()
    }

    pub(super) fn lower_bound(&self) -> Option<&Bound> {
        self.side()?.lower.as_ref()
    }

    pub(super) fn upper_bound(&self) -> Option<&Bound> {
        self.side()?.upper.as_ref()
    }

    /// The digits of a bound that have not been compared yet.
    pub(super) fn rest_of<'a>(&self, bound: &'a Bound) -> &'a [u8] {
        &bound.digits[self.matched.min(bound.digits.len())..]
    }

    /// Whether the digits have their final powers of ten: after the point, where no exponent can follow.
    pub(super) fn is_placed(&self) -> bool {
        !self.set.form.has_exponent() && matches!(self.phase, Phase::Point | Phase::Fraction)
    }

    /// The same state in normal form, or a simpler rest that it is equal to.
    fn normal(mut self, was_placed: bool) -> Rest {
        if !self.started {
            return self.normal_zero();
        }
        if !self.set.form.has_exponent() && !self.settle_bounds(was_placed) {
            return Rest::Nothing;
        }
        self.forget();
        if !self.is_live() {
            return Rest::Nothing;
        }
        if self.is_placed() && self.phase == Phase::Fraction {
            match self.set.step {
                Some(step) if self.unit <= step.scale => {
                    return if self.accepts() { Rest::Zeros } else { Rest::Nothing };
                }
                None if self.settled_others() && self.lower == Relation::Free && self.upper == Relation::Free => {
                    return Rest::Digits;
                }
                _ => {}
            }
        }
        Rest::Number(self)
    }

    fn normal_zero(mut self) -> Rest {
        let starts = self.may_start();
        if !starts {
            if !self.set.zero {
                return Rest::Nothing;
            }
            // Only zeros can follow, and their number does not matter.
            self.unit = 0;
            if self.is_placed() && self.phase == Phase::Fraction {
                return Rest::Zeros;
            }
        }
        let bounded = self.lower_bound().is_some() || self.upper_bound().is_some();
        if !bounded && self.set.step.is_none() && self.set.others.is_empty() {
            self.unit = 0;
        }
        Rest::Number(self)
    }

    /// Whether the number cannot become a multiple of the others any more, or there are none.
    fn settled_others(&self) -> bool {
        self.settled || self.set.others.is_empty()
    }

    /// For plain decimals: before the point a number only grows, and after it its order is fixed. So some bounds hold
    /// whatever follows; returns `false` if one is violated.
    fn settle_bounds(&mut self, was_placed: bool) -> bool {
        let order = self.order;
        let at = |bound: &Bound| if was_placed { Ordering::Equal } else { order.cmp(&bound.order) };
        let (lower, upper) = (self.lower_bound().map(at), self.upper_bound().map(at));
        let placed = self.is_placed();
        match (lower, self.lower) {
            (_, Relation::Free) | (None, _) => {}
            (Some(Ordering::Greater), _) | (Some(Ordering::Equal), Relation::Greater) => self.lower = Relation::Free,
            (Some(Ordering::Equal), Relation::Equal) => {}
            _ if placed => return false,
            _ => {}
        }
        if !placed {
            return true;
        }
        self.order = 0;
        match (upper, self.upper) {
            (_, Relation::Free) | (None, _) | (Some(Ordering::Equal), Relation::Equal) => {}
            (Some(Ordering::Less), _) | (Some(Ordering::Equal), Relation::Less) => self.upper = Relation::Free,
            _ => return false,
        }
        true
    }

    /// Drops what cannot matter any more.
    fn forget(&mut self) {
        let set = self.set.clone();
        let lengths = [(self.lower, self.lower_bound()), (self.upper, self.upper_bound())];
        let longest = lengths.iter().filter(|(relation, _)| *relation == Relation::Equal);
        let longest = longest.filter_map(|(_, bound)| bound.map(|bound| bound.digits.len())).max();
        self.matched = self.matched.min(longest.unwrap_or(0));
        if self.lower == Relation::Free && self.upper == Relation::Free {
            self.order = 0;
        }
        let scales = set.step.iter().chain(&set.others).map(|step| step.scale);
        let (Some(least), Some(greatest)) = (scales.clone().min(), scales.max()) else {
            self.unit = 0;
            self.zeros = 0;
            return;
        };
        if set.form.has_exponent() {
            return;
        }
        if self.is_placed() && set.step.is_none() {
            if self.settled || self.unit + self.zeros < least {
                self.settled = true;
                (self.unit, self.zeros, self.remainder) = (0, 0, 0);
                return;
            }
            // Any further digit decides, so its distance from the point makes no difference.
            let beyond = (least - self.unit).clamp(0, self.zeros);
            self.unit += beyond;
            self.zeros -= beyond;
        }
        let most = (greatest - self.unit).max(0);
        if self.zeros > most {
            self.remainder = times_ten(self.remainder, self.zeros - most, set.modulus);
            self.zeros = most;
        }
    }
}
