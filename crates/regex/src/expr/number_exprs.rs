//! Sets of numbers as expressions, and their rests after some text.

use std::sync::Arc;

use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};
use crate::numbers::{Decimal, End, LARGE_EXPONENTS, Number, NumberForm, NumberSet, Rest, SMALL_EXPONENTS};

impl ExprSet {
    /// The texts of all members of a set of numbers.
    pub fn numbers(&mut self, set: NumberSet) -> ExprId {
        match Number::start(Arc::new(set)) {
            Some(number) => self.number(number),
            None => ExprId::NOTHING,
        }
    }

    /// The same texts as a number from another set of expressions.
    pub fn number_again(&mut self, number: &Number) -> ExprId {
        self.number(number.clone())
    }

    fn number(&mut self, number: Number) -> ExprId {
        self.intern(Expr::Number(Box::new(number)))
    }

    /// The plain texts, after the sign, of all members with the sign of a number that has begun, whatever else was read
    /// of it; `None` where no exponent can follow.
    pub fn members_without_exponent(&mut self, number: &Number) -> Option<ExprId> {
        if !number.set().form().has_exponent() {
            return None;
        }
        let members = number.set().plain().into_iter().filter_map(|set| number.after_same_sign(set));
        let members: Vec<ExprId> = members.map(|number| self.number(number)).collect();
        Some(self.or(&members))
    }

    /// The same alternatives with sets of numbers replaced by the plain texts of their members: the same values with
    /// fewer states.
    pub fn without_exponents(&mut self, expr: ExprId) -> ExprId {
        let alternatives: Vec<ExprId> = match self.get(expr) {
            Expr::Or(parts) => parts.clone().iter().map(|&part| self.without_exponents(part)).collect(),
            Expr::Number(number) => match number.whole().filter(|set| set.form().has_exponent()) {
                Some(set) => set.plain().into_iter().map(|set| self.numbers(set)).collect(),
                None => return expr,
            },
            _ => return expr,
        };
        self.or(&alternatives)
    }

    /// The rest of a set of numbers after some text.
    pub(crate) fn number_rest(&mut self, rest: Rest) -> ExprId {
        match rest {
            Rest::Nothing => ExprId::NOTHING,
            Rest::Number(number) => self.number(number),
            Rest::Zeros => self.digits(b'0', 0),
            Rest::Digits => self.digits(b'9', 0),
            Rest::Exponent(least, most) => self.exponent(least, most),
            Rest::ScientificExponent(least, most) => self.scientific_exponent(least, most),
        }
    }

    /// At least `count` digits, each at most `greatest`.
    fn digits(&mut self, greatest: u8, count: u32) -> ExprId {
        let digit = self.bytes(ByteSet::range(b'0', greatest));
        self.repeat(digit, count, None)
    }

    /// An exponent between two ends, with any fitting sign and any leading zeros.
    fn exponent(&mut self, least: Option<i64>, most: Option<i64>) -> ExprId {
        let mut alternatives = Vec::new();
        if most.is_none_or(|most| most >= 0) {
            let plus = self.literal(b"+");
            let plus = self.optional(plus);
            let size = self.exponent_size(least.unwrap_or(0).max(0), most);
            alternatives.push(self.concat(plus, size));
        }
        if least.is_none_or(|least| least <= 0) {
            let minus = self.literal(b"-");
            let size = self.exponent_size(-most.unwrap_or(0).min(0), least.map(|least| -least));
            alternatives.push(self.concat(minus, size));
        }
        self.or(&alternatives)
    }

    /// An exponent of [`NumberForm::Scientific`] between two ends.
    pub fn scientific_exponent(&mut self, least: Option<i64>, most: Option<i64>) -> ExprId {
        let within = |(from, to): (i64, i64)| {
            (least.map_or(from, |least| least.max(from)), most.map_or(to, |most| most.min(to)))
        };
        let mut alternatives = Vec::new();
        let (least_small, most_small) = within(SMALL_EXPONENTS);
        if least_small <= most_small {
            let size = self.integers(-most_small, Some(-least_small));
            let padded = if -most_small <= 9 {
                let zero = self.literal(b"0");
                let size = self.integers(-most_small, Some((-least_small).min(9)));
                self.concat(zero, size)
            } else {
                ExprId::NOTHING
            };
            let size = self.or(&[size, padded]);
            let minus = self.literal(b"-");
            alternatives.push(self.concat(minus, size));
        }
        let (least_large, most_large) = within(LARGE_EXPONENTS);
        if least_large <= most_large {
            let plus = self.literal(b"+");
            let plus = self.optional(plus);
            let size = self.integers(least_large, Some(most_large));
            alternatives.push(self.concat(plus, size));
        }
        self.or(&alternatives)
    }

    /// The digits of a non-negative integer between two ends, after any zeros.
    fn exponent_size(&mut self, least: i64, most: Option<i64>) -> ExprId {
        if (least, most) == (0, None) {
            return self.digits(b'9', 1);
        }
        let zeros = self.digits(b'0', 0);
        let number = self.integers(least, most);
        self.concat(zeros, number)
    }

    /// The digits of a non-negative integer between two ends.
    fn integers(&mut self, least: i64, most: Option<i64>) -> ExprId {
        let end = |value: i64| End { value: Decimal::from_integer(value), exclusive: false };
        let most = most.map(end);
        let set = NumberSet::new(Some(&end(least)), most.as_ref(), &[], &[], NumberForm::Digits);
        // A step of 1 respects every limit, and the ends are in order, so there are such integers.
        let Some(number) = set.ok().and_then(|set| Number::unsigned(Arc::new(set))) else { return ExprId::NOTHING };
        self.number(number)
    }
}
