//! Whether the rest of a set of numbers can be completed, and by which exponents: arithmetic on the digits of bounds.
//!
//! The digits to come may put the first digit at different powers of ten, its *orders*. At the orders of the two bounds
//! the digits must follow those of the bound; at all others they are free.

use super::NumberForm;
use super::set::{Bound, LARGE_EXPONENTS, SMALL_EXPONENTS, Step, times_ten};
use super::state::{Number, Phase, Relation, Rest};

/// An interval of integers; a missing end is infinite.
type Range = (Option<i64>, Option<i64>);

/// After this many free digits some multiple always fits: steps are below 2^62, and among 2^8 consecutive multiples
/// there is one that is no multiple of any of eight others.
const ALWAYS: i64 = 22;
/// A cap for differences, large enough.
const LARGE: i128 = 1 << 100;
/// The greatest number of orders tried for the length of the shortest text.
const MAX_TRIED: i64 = 40;

fn meet(a: Range, b: Range) -> Range {
    let at_least = a.0.into_iter().chain(b.0).max();
    let at_most = a.1.into_iter().chain(b.1).min();
    (at_least, at_most)
}

fn is_empty(range: Range) -> bool {
    range.0.zip(range.1).is_some_and(|(least, most)| least > most)
}

/// The exponents of [`NumberForm::Scientific`].
fn scientific() -> [Range; 2] {
    [SMALL_EXPONENTS, LARGE_EXPONENTS].map(|(least, most)| (Some(least), Some(most)))
}

impl Number {
    /// Whether a digit other than 0 may still come, if none has come yet.
    pub(super) fn may_start(&self) -> bool {
        let orders = match (self.set.form, self.phase) {
            (NumberForm::Any | NumberForm::Scientific, _) | (NumberForm::Plain, Phase::Start | Phase::Unsigned) => {
                (None, None)
            }
            (NumberForm::Digits, Phase::Start | Phase::Unsigned) => (Some(0), None),
            (NumberForm::Plain, _) => (None, Some(self.unit - 1)),
            (NumberForm::Digits, _) => return false,
        };
        self.side().is_some()
            && (1..=9).any(|digit| {
                let mut number = self.clone();
                number.unit = 0;
                number.begin(0, digit);
                if self.set.form == NumberForm::Scientific { number.is_live() } else { number.exists(orders) }
            })
    }

    /// Whether the text can be completed, after a digit other than 0.
    pub(super) fn is_live(&self) -> bool {
        if self.side().is_none() {
            false
        } else if self.is_placed() {
            self.fits_at(self.unit, self.lower == Relation::Equal, self.upper == Relation::Equal)
        } else if self.set.form == NumberForm::Any {
            self.exists((None, None))
        } else if self.set.form == NumberForm::Scientific {
            // With one digit before the point, the exponent is its power of ten.
            scientific().into_iter().any(|orders| self.exists(orders))
        } else {
            self.exists((Some(self.order), None))
        }
    }

    /// Whether some member begins with these digits, the first one at one of these orders.
    fn exists(&self, orders: Range) -> bool {
        let bound =
            |relation, bound: Option<&Bound>| bound.filter(|_| relation != Relation::Free).map(|bound| bound.order);
        let (lower, upper) = (bound(self.lower, self.lower_bound()), bound(self.upper, self.upper_bound()));
        let above = lower.map(|order| if self.lower == Relation::Less { order + 1 } else { order });
        let below = upper.map(|order| if self.upper == Relation::Greater { order - 1 } else { order });
        let orders = meet(orders, (above, below));
        if is_empty(orders) {
            return false;
        }
        let at_lower = lower.filter(|_| self.lower == Relation::Equal);
        let at_upper = upper.filter(|_| self.upper == Relation::Equal);
        for order in [at_lower, at_upper].into_iter().flatten() {
            let inside = !is_empty(meet(orders, (Some(order), Some(order))));
            let unit = self.unit + (order - self.order);
            if inside && self.fits_at(unit, at_lower == Some(order), at_upper == Some(order)) {
                return true;
            }
        }
        self.exists_freely(meet(orders, (at_lower.map(|order| order + 1), at_upper.map(|order| order - 1))))
    }

    /// The same for orders at which the digits are free.
    fn exists_freely(&self, orders: Range) -> bool {
        if is_empty(orders) {
            return false;
        }
        let (Some(step), (least, Some(most))) = (self.set.step, orders) else { return true };
        // From the greatest order down, since more digits to come allow more.
        let unit_at = |order: i64| self.unit + (order - self.order);
        let mut order = most;
        while least.is_none_or(|least| order >= least) && unit_at(order) >= step.scale {
            if self.fits_at(unit_at(order), false, false) {
                return true;
            }
            order -= 1;
        }
        // From here on only zeros may follow.
        let shift = |order: i64| unit_at(order) + self.zeros;
        let Some(powers) = self.powers() else { return false };
        !is_empty(meet(powers, (least.map(shift), Some(shift(order)))))
    }

    /// Whether digits can follow the last one, whose power of ten is `unit`, so that the number is a member. Where a
    /// bound must be followed, the digits so far are those of the bound.
    fn fits_at(&self, unit: i64, at_lower: bool, at_upper: bool) -> bool {
        let bound = |followed: bool, bound: Option<&'_ Bound>| bound.filter(|_| followed).cloned();
        let (lower, upper) = (bound(at_lower, self.lower_bound()), bound(at_upper, self.upper_bound()));
        let low = lower.as_ref().map_or(&[][..], |bound| self.rest_of(bound));
        let high = upper.as_ref().map_or(&[][..], |bound| self.rest_of(bound));
        let without_lower = lower.as_ref().is_some_and(|bound| bound.exclusive);
        let without_upper = upper.as_ref().is_some_and(|bound| bound.exclusive);
        let only_zeros_fit =
            (low.is_empty() && !without_lower) && !(upper.is_some() && high.is_empty() && without_upper);
        let Some(step) = self.set.step else {
            return match (&lower, &upper) {
                // Two equal bounds allow one number, which was checked when the set was made.
                (Some(_), Some(_)) => low < high || (low == high && !without_lower && !without_upper),
                (None, Some(_)) if high.is_empty() => only_zeros_fit && self.divides_as_asked(unit + self.zeros),
                _ => true,
            };
        };
        let places = unit - step.scale;
        if places < 0 {
            return only_zeros_fit && self.divides_as_asked(unit + self.zeros);
        }
        if lower.is_none() && upper.is_none() && places >= ALWAYS {
            return true;
        }
        // `places` more digits follow the digits so far. They form an integer from `least`, of which the remainder is
        // enough, to `least + width`.
        let modulus = self.set.counted;
        let digit = |digits: &[u8], place: usize, free: u8| digits.get(place).copied().unwrap_or(free);
        let free = if upper.is_some() { 0 } else { 9 };
        let digits_read = low.len().max(high.len()).min(usize::try_from(places).unwrap_or(usize::MAX));
        let (mut least, mut width) = (0, 0i128);
        for place in 0..digits_read {
            let (from, to) = (digit(low, place, 0), digit(high, place, free));
            least = super::set::append(least, 1, from, modulus);
            width = (width * 10 + i128::from(to) - i128::from(from)).clamp(-1, LARGE);
        }
        let undecided_places = places - digits_read as i64;
        least = times_ten(least, undecided_places, modulus);
        let grown = 10i128.pow(undecided_places.min(ALWAYS) as u32);
        let width_after = if free == 9 { (width + 1).saturating_mul(grown) - 1 } else { width.saturating_mul(grown) };
        width = width_after.min(LARGE);
        let short = |digits: &[u8]| digits.len() as i64 <= places;
        let raised = lower.is_some() && (without_lower || !short(low));
        let lowered = upper.is_some() && without_upper && short(high);
        width -= i128::from(raised) + i128::from(lowered);
        least = (least + u64::from(raised)) % modulus;
        self.has_multiple(step, places, least, width)
    }

    /// Among `width + 1` consecutive integers of `places` digits after the digits so far, the first of which has the
    /// remainder `least`: whether one makes a multiple of the step and of none of the others.
    fn has_multiple(&self, step: Step, places: i64, least: u64, width: i128) -> bool {
        let factor = u128::from(step.factor);
        let before = u128::from(times_ten(self.remainder, self.zeros + places, step.factor));
        let mut after = u128::from(least) + (factor - (before + u128::from(least)) % factor) % factor;
        // The remainders of the digits so far with regard to the others; none for those that no further digits can make
        // a multiple, because the digits end with too few zeros.
        let others = self.set.others.iter().filter_map(|other| {
            let zeros = other.scale - step.scale;
            let unit = 10u64.checked_pow(u32::try_from(zeros).ok()?)?;
            let power = self.zeros + places - zeros;
            let before = (power >= 0).then(|| times_ten(self.remainder, power, other.factor))?;
            Some((u128::from(before) * u128::from(unit), u128::from(unit) * u128::from(other.factor)))
        });
        let others: Vec<(u128, u128)> = others.collect();
        for _ in 0..1u32 << others.len() {
            if after as i128 - i128::from(least) > width {
                return false;
            }
            if !others.iter().any(|(before, of)| (before + after).is_multiple_of(*of)) {
                return true;
            }
            after += factor;
        }
        false
    }

    /// The powers of ten at which the digits without their trailing zeros make a member, as far as divisors are
    /// concerned; `None` where there are none.
    fn powers(&self) -> Option<Range> {
        let needed = |step: &Step| {
            let mut rest = self.remainder % step.factor;
            for more in 0..64 {
                if rest == 0 {
                    return Some(step.scale + more);
                }
                rest = times_ten(rest, 1, step.factor);
            }
            None
        };
        let least = match &self.set.step {
            Some(step) => Some(needed(step)?),
            None => None,
        };
        let most = self.set.others.iter().filter_map(needed).min().map(|power| power - 1);
        Some((least, most))
    }

    /// Whether the digits without their trailing zeros, times this power of ten, make a member, as far as divisors are
    /// concerned.
    fn divides_as_asked(&self, power: i64) -> bool {
        self.settled || self.powers().is_some_and(|powers| !is_empty(meet(powers, (Some(power), Some(power)))))
    }

    /// The orders that the bounds allow after all digits were read.
    fn allowed_orders(&self) -> Range {
        let kept = |bound: &Bound| self.rest_of(bound).is_empty() && !bound.exclusive;
        let lower = self.lower_bound().filter(|_| self.lower != Relation::Free).map(|bound| {
            let reached = self.lower == Relation::Greater || (self.lower == Relation::Equal && kept(bound));
            if reached { bound.order } else { bound.order + 1 }
        });
        let upper = self.upper_bound().filter(|_| self.upper != Relation::Free).map(|bound| {
            let short = self.upper == Relation::Equal && !self.rest_of(bound).is_empty();
            let reached = self.upper == Relation::Less || short || (self.upper == Relation::Equal && kept(bound));
            if reached { bound.order } else { bound.order - 1 }
        });
        (lower, upper)
    }

    /// Whether the text may end here.
    pub(crate) fn accepts(&self) -> bool {
        let may_end = matches!(self.phase, Phase::Zero | Phase::Int | Phase::Fraction);
        if !may_end || self.set.form == NumberForm::Scientific {
            return false;
        }
        if !self.started {
            return self.set.zero;
        }
        let orders = self.allowed_orders();
        let in_bounds = if self.is_placed() {
            // The remaining bounds have the same order as the number.
            let at = |bound: Option<&Bound>| bound.map(|bound| bound.order);
            orders.0 <= at(self.lower_bound()) && orders.1.is_none_or(|most| Some(most) >= at(self.upper_bound()))
        } else {
            !is_empty(meet(orders, (Some(self.order), Some(self.order))))
        };
        in_bounds && self.divides_as_asked(self.unit + self.zeros)
    }

    /// What may follow the mark of an exponent.
    pub(super) fn exponent(&self) -> Rest {
        if !self.started {
            return if self.set.zero { Rest::Exponent(None, None) } else { Rest::Nothing };
        }
        let Some(powers) = self.powers() else { return Rest::Nothing };
        let less = |range: Range, by: i64| (range.0.map(|end| end - by), range.1.map(|end| end - by));
        let exponents = meet(less(self.allowed_orders(), self.order), less(powers, self.unit + self.zeros));
        if self.set.form == NumberForm::Scientific {
            let any = scientific().into_iter().any(|range| !is_empty(meet(range, exponents)));
            return if any { Rest::ScientificExponent(exponents.0, exponents.1) } else { Rest::Nothing };
        }
        if is_empty(exponents) { Rest::Nothing } else { Rest::Exponent(exponents.0, exponents.1) }
    }

    /// A lower bound on the length of the shortest completion.
    pub(crate) fn shortest(&self) -> u32 {
        if self.accepts() {
            return 0;
        }
        let digits = if self.started { self.digits_needed().max(1) } else { 1 };
        if self.set.form == NumberForm::Scientific {
            // The mark, and an exponent of two characters.
            return digits.max(self.places_needed() + 3);
        }
        if self.phase != Phase::Int || self.set.form == NumberForm::Any {
            return digits;
        }
        let below = self.lower_bound().filter(|_| self.lower != Relation::Free).map(|bound| bound.order - self.order);
        let first = below.unwrap_or(0).max(0);
        let found = (first..first + MAX_TRIED).find(|more| {
            let order = self.order + more;
            self.exists((Some(order), Some(order)))
        });
        u32::try_from(found.unwrap_or(first)).unwrap_or(u32::MAX).max(digits)
    }

    /// For [`NumberForm::Scientific`]: a lower bound on the number of digits that must follow so that the number is no
    /// multiple of those others whose factors are only 2 and 5.
    fn places_needed(&self) -> u32 {
        if !self.started {
            return 0;
        }
        let bound = self.lower_bound().filter(|_| self.lower != Relation::Free).map(|bound| bound.order);
        let order = match bound.into_iter().chain(self.set.step.map(|step| step.scale)).max() {
            Some(least) if least > SMALL_EXPONENTS.1 => least.max(LARGE_EXPONENTS.0),
            least => least.unwrap_or(SMALL_EXPONENTS.0),
        };
        // If the last digit has this power of ten or a greater one, the number is a multiple of one of the others.
        let multiple = self.set.others.iter().filter_map(|other| other.power_of_ten()).min();
        let missing = multiple.map_or(0, |multiple| order - multiple + 1 + self.unit);
        u32::try_from(missing.max(0)).unwrap_or(0)
    }

    /// A lower bound on the number of digits that must follow, wherever the point is, so that all digits together are a
    /// multiple of the step as far as its factors other than 2 and 5 are concerned.
    fn digits_needed(&self) -> u32 {
        let Some(step) = self.set.step else { return 0 };
        let odd = step.factor >> step.factor.trailing_zeros();
        let rest = (0..27).fold(odd, |rest, _| if rest.is_multiple_of(5) { rest / 5 } else { rest });
        let mut after = times_ten(self.remainder, self.zeros, rest);
        let mut width = 1u64;
        for digits in 0..19 {
            // Of `width` consecutive numbers one is a multiple if the first is at most `width - 1` below one.
            if after == 0 || rest - after < width {
                return digits;
            }
            after = times_ten(after, 1, rest);
            width *= 10;
        }
        19
    }
}
