//! Elements that are numbers: counting decides whether a new one is left, as for strings.
//!
//! A number without an exponent has one spelling, apart from zeros after its point. So an element that has begun as a
//! number can become new exactly if more values continue it than the array has. The number of values that continue a
//! residual is computed once. Where an exponent may come, the plain spellings of the possible values are counted
//! ([`exponents`]).
//!
//! [`exponents`]: crate::distinct::exponents

use rustc_hash::FxHashMap;
use stencilm_regex::{Cardinalities, Cardinality, Deriver, ExprId, StateId, Step, Steps};
use stencilm_support::{Extension, FEW, LimitExceeded, SEARCHED};

use crate::distinct::exponents::{Place, WithExponents, values_in_exponent};
use crate::distinct::quoting::Quoting;
use crate::error::EngineError;
use crate::lexeme::cache::DfaId;
use crate::machine::expansion::IN_WHITESPACE;
use crate::machine::layout::ExpansionId;
use crate::parse::stepper::{Run, offers_tokens};
use crate::parse::unverified::Unverified;
use crate::state::plain_number::plain_number;
use crate::state::stacks::{Entry, ItemsState};
use crate::state::used_strings::UsedStrings;
use crate::vocabulary::tokens::Tokens;

/// Where the residual of a number begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Part {
    /// Before the sign, if any.
    Sign,
    /// After the sign, if any.
    First,
    /// After a 0 before the point.
    Zero,
    /// After another digit before the point.
    Int,
    /// After the point.
    Fraction,
}

impl Part {
    /// The position after one more character, if JSON allows it there.
    fn after(self, byte: u8) -> Option<Part> {
        match (self, byte) {
            (Part::Sign, b'-') => Some(Part::First),
            (Part::Sign | Part::First, b'0') => Some(Part::Zero),
            (Part::Sign | Part::First, b'1'..=b'9') | (Part::Int, b'0'..=b'9') => Some(Part::Int),
            (Part::Zero | Part::Int, b'.') | (Part::Fraction, b'0'..=b'9') => Some(Part::Fraction),
            _ => None,
        }
    }

    /// Whether there are digits, so that the number may end.
    fn has_digits(self) -> bool {
        !matches!(self, Part::Sign | Part::First)
    }
}

/// How many values continue a residual of a number without an exponent.
#[derive(Default)]
pub(crate) struct NumberCounts(Cardinalities<(ExprId, Part)>);

impl Extension for NumberCounts {
    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// An element that has begun as a number.
struct Begun<'t> {
    /// The sign and the digits so far.
    text: &'t [u8],
    part: Part,
}

impl<'t> Begun<'t> {
    /// The number in an element's text, if it has no exponent; `None` otherwise.
    fn of(text: &'t [u8]) -> Option<Begun<'t>> {
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let part = digits.iter().try_fold(Part::First, |part, &byte| part.after(byte)).filter(|_| !text.is_empty())?;
        Some(Begun { text, part })
    }

    /// The number so far, in the form of [`plain_number`](crate::state::plain_number::plain_number). A sign alone gives
    /// 0, since only 0 can also be written without the sign.
    fn value(&self) -> Vec<u8> {
        if self.part == Part::First {
            return b"0".to_vec();
        }
        let mut text = self.text.to_vec();
        if self.part == Part::Fraction {
            while text.last() == Some(&b'0') {
                text.pop();
            }
            if text.last() == Some(&b'.') {
                text.pop();
            }
        }
        if text == b"-0" { b"0".to_vec() } else { text }
    }
}

/// Data about a thread that is before or within a lexeme which is a whole element.
pub(crate) struct CountedElement {
    pub dfa: DfaId,
    /// The only array in which the element must be new.
    pub array: ItemsState,
}

impl Run<'_> {
    /// Whether an element that has begun as a number can become one that its array does not have; `None` where counting
    /// does not decide that.
    pub(crate) fn has_number_left(&mut self, thread: Entry, text: u32) -> Result<Option<bool>, EngineError> {
        let Some(number) = self.counted_element(thread)? else { return Ok(None) };
        let written = self.stacks.since(text, number.array.start);
        let written = written.trim_ascii_start();
        let seen = self.seen_strings(&[number.array]);
        let in_whitespace = thread.state & IN_WHITESPACE != 0;
        match written.is_empty() {
            true if in_whitespace || thread.state == StateId::START.0 => self.is_any_number_left(number.dfa, &seen),
            false if !in_whitespace => self.is_number_left(number.dfa, StateId(thread.state), written, &seen),
            _ => Ok(None),
        }
    }

    /// Whether any new number is left. If so, one is left after one of the characters that a number can begin with.
    fn is_any_number_left(&mut self, dfa: DfaId, seen: &UsedStrings) -> Result<Option<bool>, EngineError> {
        let mut is_decided = true;
        for byte in *b"123456789-0" {
            let (state, _) = self.lexeme_cache.step(dfa, StateId::START, byte)?;
            if state == StateId::DEAD {
                continue;
            }
            match self.is_number_left(dfa, state, &[byte], seen)? {
                Some(true) => return Ok(Some(true)),
                Some(false) => {}
                None => is_decided = false,
            }
        }
        // Anything that begins in another way is no number.
        let live = self.lexeme_cache.live_bytes(dfa, StateId::START)?;
        let are_all = live.iter().all(|byte| byte == b'-' || byte.is_ascii_digit());
        Ok((is_decided && are_all).then_some(false))
    }

    /// Decides the allowed tokens that consist of digits: those after which no new number is left are refused, and
    /// those for which that is not decided are unverified. The others are right.
    pub(crate) fn sort_out_digits(
        &mut self,
        vocabulary: &Tokens,
        threads: &[Entry],
        text: u32,
        tokens: impl Iterator<Item = u32>,
        unverified: &mut Vec<Unverified>,
        refused: &mut Vec<u32>,
    ) -> Result<(), EngineError> {
        let mut numbers = Vec::with_capacity(threads.len());
        for &thread in threads {
            let number = self.counted_element(thread)?;
            numbers.push(match number {
                Some(number) => {
                    let written = self.stacks.since(text, number.array.start);
                    let seen = self.seen_strings(&[number.array]);
                    Some((number, written.trim_ascii_start().to_vec(), seen))
                }
                None => None,
            });
        }
        // Most tokens lead to a few states.
        let mut safe: FxHashMap<(usize, u32), bool> = FxHashMap::default();
        for token in tokens {
            let bytes = vocabulary.token_bytes(token).expect("a token that was allowed spells bytes");
            let (mut is_left, mut is_unclear) = (false, false);
            let is_whitespace_first = bytes.first().is_some_and(u8::is_ascii_whitespace);
            for (index, &thread) in threads.iter().enumerate() {
                let Some(state) = self.state_after(thread, bytes)? else {
                    // The space may end a separator that requires one, and then the digits begin the element.
                    is_unclear |= is_whitespace_first;
                    continue;
                };
                let moved = Entry { state, ..thread };
                let is_safe = match safe.get(&(index, state)) {
                    Some(&known) => known,
                    None => {
                        let is_safe = self.is_safe(moved, Quoting::Outside)?;
                        safe.insert((index, state), is_safe);
                        is_safe
                    }
                };
                let left = match &numbers[index] {
                    _ if is_safe => Some(true),
                    Some((number, written, seen)) => {
                        let written = [written, bytes.trim_ascii_start()].concat();
                        self.is_number_left(number.dfa, StateId(state), &written, seen)?
                    }
                    None => None,
                };
                is_left |= left == Some(true);
                is_unclear |= left.is_none();
            }
            if !is_left && is_unclear {
                unverified.push(Unverified::element(token));
            } else if !is_left {
                refused.push(token);
            }
        }
        Ok(())
    }

    /// The state of a thread after some bytes, if it stays within its lexeme.
    fn state_after(&mut self, thread: Entry, bytes: &[u8]) -> Result<Option<u32>, LimitExceeded> {
        if thread == Entry::BOTTOM || offers_tokens(thread) {
            return Ok(None);
        }
        let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
        let mut state = thread.state;
        for &byte in bytes {
            state = expansion.step(self.lexeme_cache, state, byte)?.0;
            if state == StateId::DEAD.0 {
                return Ok(None);
            }
        }
        Ok(Some(state))
    }

    /// The data about a thread that is before or within a lexeme which is a whole element.
    pub(crate) fn counted_element(&mut self, thread: Entry) -> Result<Option<CountedElement>, EngineError> {
        if thread == Entry::BOTTOM || offers_tokens(thread) {
            return Ok(None);
        }
        let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
        let Some(dfa) = expansion.dfa() else { return Ok(None) };
        if !self.is_pending(expansion.frame, thread.register) {
            return Ok(None);
        }
        let state = if thread.state & IN_WHITESPACE != 0 { StateId::START } else { StateId(thread.state) };
        for &(tag, _) in self.lexeme_cache.residuals(dfa, state) {
            for frames in self.machine.continuations(&expansion, tag).iter() {
                if !matches!(frames[..], [(behind, _)] if self.machine.unique_items(behind).is_some()) {
                    return Ok(None);
                }
            }
        }
        let mut pending = Vec::new();
        self.pending(thread, &mut pending);
        let &[array] = &pending[..] else { return Ok(None) };
        Ok(Some(CountedElement { dfa, array }))
    }

    /// Whether, after these digits, more numbers continue from a state than were used.
    fn is_number_left(
        &mut self,
        dfa: DfaId,
        state: StateId,
        written: &[u8],
        seen: &UsedStrings,
    ) -> Result<Option<bool>, EngineError> {
        debug_assert!(state.0 & IN_WHITESPACE == 0, "a number has begun");
        let residuals: Vec<ExprId> =
            self.lexeme_cache.residuals(dfa, state).iter().map(|&(_, residual)| residual).collect();
        let deriver = self.lexeme_cache.deriver();
        let left = deriver.exprs.or(&residuals);
        Ok(self.machine.extensions.get::<NumberCounts>().is_left(deriver, left, written, seen)?)
    }
}

impl NumberCounts {
    /// Whether, after this text, more numbers continue a residual than were used; `None` where counting does not decide
    /// that.
    fn is_left(
        &mut self,
        deriver: &mut Deriver,
        residual: ExprId,
        written: &[u8],
        seen: &UsedStrings,
    ) -> Result<Option<bool>, LimitExceeded> {
        if !seen.has_plain_numbers() {
            return Ok(None);
        }
        let mark = written.iter().position(|byte| byte.eq_ignore_ascii_case(&b'e'));
        let mantissa = &written[..mark.unwrap_or(written.len())];
        let Some(begun) = Begun::of(mantissa) else { return Ok(None) };
        if let Some(mark) = mark {
            let mantissa = std::str::from_utf8(mantissa).expect("a sign, digits and a point were read");
            let values = values_in_exponent(deriver, residual, mantissa, &written[mark + 1..])?;
            let plain = values.and_then(|all| all.iter().map(|value| plain_number(value.as_bytes())).collect());
            return Ok(plain.map(|all: Vec<_>| all.iter().any(|value| !seen.has_number(value))));
        }
        // In JSON no number ends with its point.
        if written.ends_with(b".") && deriver.exprs.is_nullable(residual) {
            return Ok(None);
        }
        let Some(split) = WithExponents::of(deriver, residual, written)? else {
            return self.is_counted_left(deriver, residual, begun, seen);
        };
        // Infinitely many are not counted.
        if self.count(deriver, split.members, Part::First)?.is_none() {
            return Ok(None);
        }
        let Some(places) = split.places(deriver, written)? else { return Ok(None) };
        let mut decided = self.is_counted_left(deriver, split.others, begun, seen)?;
        let sign = &written[..usize::from(written.starts_with(b"-"))];
        for Place { text, rest } in places {
            if decided == Some(true) {
                break;
            }
            let is_before = text.is_empty();
            let text = [sign, &text].concat();
            let part = if is_before { Some(Part::First) } else { Begun::of(&text).map(|begun| begun.part) };
            let Some(part) = part else { return Ok(None) };
            match self.is_counted_left(deriver, rest, Begun { text: &text, part }, seen)? {
                Some(false) => {}
                left => decided = left,
            }
        }
        Ok(decided)
    }

    /// Whether more numbers without an exponent continue a residual than were used.
    fn is_counted_left(
        &mut self,
        deriver: &mut Deriver,
        residual: ExprId,
        begun: Begun<'_>,
        seen: &UsedStrings,
    ) -> Result<Option<bool>, LimitExceeded> {
        let written = begun.text;
        let Some(count) = self.count(deriver, residual, begun.part)? else { return Ok(None) };
        // The number as it is may have more zeros than the spelling that was used.
        let this = Some(begun.value()).filter(|value| seen.has_number(value));
        let others = seen.count_numbers(written);
        if ((others + usize::from(this.is_some())) as u64) < count {
            return Ok(Some(true));
        }
        // The used numbers may be of another kind.
        let mut used = 0;
        if let Some(value) = &this {
            let rest = if begun.part == Part::First { &value[..] } else { b"" };
            used += u64::from(has(deriver, residual, begun.part, rest)?);
        }
        for number in seen.numbers(written).filter(|number| this.as_deref() != Some(number)) {
            used += u64::from(has(deriver, residual, begun.part, &number[written.len()..])?);
        }
        Ok(Some(used < count))
    }

    /// How many values continue a residual.
    fn count(&mut self, deriver: &mut Deriver, root: ExprId, part: Part) -> Result<Option<u64>, LimitExceeded> {
        match self.0.of((root, part), SEARCHED, |place| steps(deriver, place))? {
            Cardinality::Finite(count) => Ok(Some(count)),
            Cardinality::Infinite | Cardinality::Unknown => Ok(None),
        }
    }
}

/// Whether a number continues with these characters, and perhaps with zeros after the point.
fn has(deriver: &mut Deriver, residual: ExprId, part: Part, rest: &[u8]) -> Result<bool, LimitExceeded> {
    let (mut at, mut part) = (residual, part);
    for &byte in rest {
        at = deriver.after(at, byte)?;
        part = part.after(byte).unwrap_or(part);
    }
    Ok(part.has_digits() && ends(deriver, (at, part))?)
}

/// The digits with which a number continues, and the point, without continuations that are only zeros after the point;
/// `None` where it continues with other characters, or not as in JSON.
#[expect(clippy::type_complexity, reason = "a list of steps, each with the place behind it")]
fn digits(
    deriver: &mut Deriver,
    (residual, part): (ExprId, Part),
) -> Result<Option<Vec<(u8, (ExprId, Part))>>, LimitExceeded> {
    let mut digits = Vec::new();
    for &(bytes, rest) in deriver.derivatives(residual)?.iter() {
        if !deriver.is_live(rest)? {
            continue;
        }
        for byte in bytes.iter() {
            let Some(next) = part.after(byte) else { return Ok(None) };
            if next == Part::Fraction && part != Part::Fraction && deriver.exprs.is_nullable(rest) {
                return Ok(None);
            }
            // Zeros alone give no other value.
            if !(keeps_the_value(byte, next) && only_zeros(deriver, rest)?) {
                digits.push((byte, (rest, next)));
            }
        }
    }
    Ok(Some(digits))
}

/// Whether a number that may end after a character has the same value as before it.
fn keeps_the_value(byte: u8, behind: Part) -> bool {
    behind == Part::Fraction && matches!(byte, b'.' | b'0')
}

/// The steps of a number; `None` where these are not digits and a point as in JSON.
fn steps(deriver: &mut Deriver, place: (ExprId, Part)) -> Result<Option<Steps<(ExprId, Part)>>, LimitExceeded> {
    let Some(digits) = digits(deriver, place)? else { return Ok(None) };
    let mut same_step: FxHashMap<((ExprId, Part), bool), u64> = FxHashMap::default();
    for (byte, to) in digits {
        let is_same = keeps_the_value(byte, to.1) && ends(deriver, to)?;
        *same_step.entry((to, is_same)).or_default() += 1;
    }
    // A number that may end there with the same value as before is already counted.
    let step = |((to, is_same), edges)| Step { to, edges, known: u64::from(is_same) };
    let may_end = place.1.has_digits() && ends(deriver, place)?;
    Ok(Some(Steps { ends: u64::from(may_end), steps: same_step.into_iter().map(step).collect() }))
}

/// The steps from the residual of a number.
pub(crate) struct NumberSteps {
    /// The number of zeros, including the point, after which it ends with its current value; `None` where it may not
    /// end.
    pub zeros: Option<u64>,
    /// The digits and the point with which it continues to other values, each with the residual.
    pub digits: Vec<(u8, (ExprId, Part))>,
}

impl NumberSteps {
    /// The steps from a position; `None` where such numbers are not counted.
    pub fn of(deriver: &mut Deriver, place: (ExprId, Part)) -> Result<Option<NumberSteps>, LimitExceeded> {
        let Some(digits) = digits(deriver, place)? else { return Ok(None) };
        let zeros = if place.1.has_digits() { zeros_to_end(deriver, place)? } else { None };
        Ok(Some(NumberSteps { zeros, digits }))
    }

    /// Whether the number read so far has one value, whatever continuation of the residual follows.
    pub fn is_settled(deriver: &mut Deriver, residual: ExprId, written: &[u8]) -> Result<bool, LimitExceeded> {
        let Some(begun) = Begun::of(written) else { return Ok(false) };
        Ok(digits(deriver, (residual, begun.part))?.is_some_and(|digits| digits.is_empty()))
    }

    /// The text of the value that ends after this text, if one does; trailing zeros are counted with the text without
    /// them.
    pub fn end(&self, text: &[u8], part: Part) -> Option<Vec<u8>> {
        let is_other = part != Part::Fraction || !(text.ends_with(b".") || text.ends_with(b"0"));
        let zeros = self.zeros.filter(|_| is_other)? as usize;
        let point: &[u8] = if part == Part::Fraction { b"" } else { b"." };
        let rest = point.iter().copied().chain(std::iter::repeat(b'0')).take(zeros);
        Some(text.iter().copied().chain(rest).collect())
    }
}

/// Whether a number may end here, perhaps with a point and zeros.
fn ends(deriver: &mut Deriver, place: (ExprId, Part)) -> Result<bool, LimitExceeded> {
    Ok(zeros_to_end(deriver, place)?.is_some())
}

/// The number of zeros, including the point, after which a number ends with its current value.
fn zeros_to_end(deriver: &mut Deriver, (residual, part): (ExprId, Part)) -> Result<Option<u64>, LimitExceeded> {
    let (mut at, mut byte) = (residual, if part == Part::Fraction { b'0' } else { b'.' });
    let mut seen = Vec::new();
    loop {
        if deriver.exprs.is_nullable(at) {
            return Ok(Some(seen.len() as u64));
        }
        if seen.contains(&at) || seen.len() > FEW {
            return Ok(None);
        }
        seen.push(at);
        at = deriver.after(at, byte)?;
        byte = b'0';
    }
}

/// Whether only zeros continue a residual.
fn only_zeros(deriver: &mut Deriver, residual: ExprId) -> Result<bool, LimitExceeded> {
    let (mut at, mut seen) = (residual, Vec::new());
    while !seen.contains(&at) && seen.len() <= FEW {
        seen.push(at);
        let mut next = None;
        for &(bytes, rest) in deriver.derivatives(at)?.iter() {
            if deriver.is_live(rest)? {
                if bytes.len() > 1 || !bytes.contains(b'0') {
                    return Ok(false);
                }
                next = Some(rest);
            }
        }
        match next {
            Some(rest) => at = rest,
            None => return Ok(true),
        }
    }
    Ok(seen.contains(&at))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use stencilm_grammar::canonical_json;
    use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};
    use stencilm_regex::{Decimal, ExprSet, Limits, NumberSet};

    use super::*;
    use crate::state::used_strings::Strings;

    const PATTERNS: [&str; 7] = [
        r"-?(0|[1-9][0-9]?)(\.0+)?",
        r"(0|1|12)(\.[05]0*)?",
        r"1\.25|1\.5|-0|0|10|1",
        r"[1-3][0-9]{0,2}",
        r"-(0|5)(\.0{0,2})?|7\.0+",
        r"0\.(0[1-3]|1|100|2)0?",
        r"(1|2)\.(00)*5?",
    ];

    /// All texts of a pattern of at most six characters.
    fn texts(deriver: &mut Deriver, expr: ExprId) -> Vec<Vec<u8>> {
        let (mut found, mut work) = (Vec::new(), vec![(Vec::new(), expr)]);
        while let Some((text, expr)) = work.pop() {
            if deriver.exprs.is_nullable(expr) {
                found.push(text.clone());
            }
            for byte in b"-.0123456789".iter().filter(|_| text.len() < 6) {
                let rest = deriver.after(expr, *byte).unwrap();
                if rest != ExprId::NOTHING {
                    work.push(([&text[..], &[*byte]].concat(), rest));
                }
            }
        }
        found
    }

    proptest! {
        #[test]
        fn a_number_is_left_where_not_all_were_seen(index in 0..PATTERNS.len(), choice in any::<u64>(), other in 0u32..150) {
            let mut exprs = ExprSet::new();
            let options = PatternOptions { dialect: Dialect::Standard, anchoring: Anchoring::Whole };
            let expr = parse_pattern(&mut exprs, PATTERNS[index], &options, &mut Utf8).unwrap();
            let mut deriver = Deriver::over(exprs, Limits::default());
            let texts = texts(&mut deriver, expr);
            let values: BTreeSet<Vec<u8>> = texts.iter().map(|text| canonical_json(text)).collect();
            let chosen = |(at, _): &(usize, &Vec<u8>)| choice.rotate_left(*at as u32 % 64) & 3 != 0;
            let mut used: Vec<Vec<u8>> = values.iter().enumerate().filter(chosen).map(|(_, value)| value.clone()).collect();
            let other = canonical_json(other.to_string().as_bytes());
            if !used.contains(&other) {
                used.push(other); // no value is seen twice
            }
            let seen = used.iter().fold(Strings::default(), |strings, value| strings.with([value.clone()]));
            let seen = UsedStrings::new(vec![seen]);
            let mut counts = NumberCounts::default();
            let mut decided = 0;
            for beginning in texts.iter().flat_map(|text| (1..=text.len().min(4)).map(|end| &text[..end])).collect::<BTreeSet<_>>() {
                let mut rest = expr;
                for &byte in beginning {
                    rest = deriver.after(rest, byte).unwrap();
                }
                let going_on = texts.iter().filter(|text| text.starts_with(beginning)).map(|text| canonical_json(text));
                let is_left = going_on.into_iter().any(|value| !used.contains(&value));
                if let Some(found) = counts.is_left(&mut deriver, rest, beginning, &seen).unwrap() {
                    decided += 1;
                    prop_assert_eq!(found, is_left, "{} {:?}", PATTERNS[index], beginning.escape_ascii().to_string());
                }
            }
            prop_assert!(decided > 0 || index == 6);
        }
    }

    /// Sets of numbers, some of them written with exponents.
    const SETS: [&[&str]; 8] = [
        &[">=1 <=3 *1 any"],
        &[">=5 <=5 any", ">=-2 <=2 *1 any", ">=1e-2 <=1e-2 any"],
        &[">=-0.3 <=0.3 *0.1 any"],
        &[">=98 <=110 *1 !*2 any"],
        &[">=0 <=1e-6 *1e-7 plain", ">=0 <=1e-6 *1e-7 scientific"],
        &[">=8e12 <=3e13 *1e12 plain", ">=8e12 <=3e13 *1e12 scientific"],
        &[">=1e13 <=3e13 *5e12 scientific", ">=-2e-5 <-1e-6 *2e-6 scientific"],
        &[">=0 <=20 *5 any", ">=5 <=15 *2.5 plain"],
    ];

    /// Many texts of a canonical number above 0: with zeros around its digits, and with the point at every position and
    /// an exponent that makes up for it.
    fn spellings(value: &str) -> Vec<String> {
        let (sign, size) = value.split_at(usize::from(value.starts_with('-')));
        let (digits, power) = size.split_once('e').unwrap_or((size, "0"));
        let power: i64 = power.parse().unwrap();
        let mut found = Vec::new();
        // All digits of 0 are zeros: as many as other numbers have before their digits.
        let (before, behind) = if digits == "0" { (0, 7) } else { (8, 3) };
        for (before, behind) in (0..=before).flat_map(|before| (0..=behind).map(move |behind| (before, behind))) {
            let all = format!("{}{digits}{}", "0".repeat(before), "0".repeat(behind));
            for point in 1..=all.len() {
                let (int, fraction) = all.split_at(point);
                if int.len() > 1 && int.starts_with('0') {
                    continue;
                }
                let point = if fraction.is_empty() { "" } else { "." };
                let mantissa = format!("{sign}{int}{point}{fraction}");
                let exponent = power - behind as i64 + fraction.len() as i64;
                let size = exponent.unsigned_abs();
                let signs: &[&str] = if exponent < 0 {
                    &["-"]
                } else if exponent == 0 {
                    &["", "+", "-"]
                } else {
                    &["", "+"]
                };
                let zeros: &[&str] = if exponent == 0 { &[""] } else { &["", "0"] };
                for (sign, zeros) in signs.iter().flat_map(|sign| zeros.iter().map(move |zeros| (sign, zeros))) {
                    found.extend(["e", "E"].map(|mark| format!("{mantissa}{mark}{sign}{zeros}{size}")));
                }
                found.extend((exponent == 0).then_some(mantissa));
            }
        }
        if digits == "0" {
            found = found.iter().flat_map(|text| [text.clone(), format!("-{text}")]).collect();
        }
        found
    }

    #[test]
    fn values_of_numbers_with_exponents_are_counted() {
        let numbers =
            "0 1 2 3 5 -1 -2 10 1e-2 0.1 0.3 -0.2 7.5 99 101 105 20 1e13 8e12 29e12 1.5e13 -4e-6 -1e-5 2e-7 1e-6 9e-7";
        for set_texts in SETS {
            let sets: Vec<NumberSet> = set_texts.iter().map(|set| NumberSet::parse(set).unwrap()).collect();
            let is_member = |value: &[u8]| {
                let number = Decimal::parse(std::str::from_utf8(value).unwrap()).unwrap();
                sets.iter().any(|set| set.contains(&number))
            };
            let candidates = (-400..=400).flat_map(|count| [-7, -2, -1, 0, 12].map(|power| format!("{count}e{power}")));
            let values: BTreeSet<Vec<u8>> =
                candidates.map(|text| canonical_json(text.as_bytes())).filter(|value| is_member(value)).collect();
            let mut exprs = ExprSet::new();
            let parts: Vec<ExprId> = sets.iter().map(|set| exprs.numbers(set.clone())).collect();
            let expr = exprs.or(&parts);
            let mut deriver = Deriver::over(exprs, Limits::default());
            let mut texts: Vec<(String, &[u8])> = Vec::new();
            for value in &values {
                for text in spellings(std::str::from_utf8(value).unwrap()) {
                    if deriver.matches(expr, text.as_bytes()).unwrap() {
                        assert_eq!(canonical_json(text.as_bytes()), *value);
                        texts.push((text, value));
                    }
                }
            }
            let mut counts = NumberCounts::default();
            let one_left =
                values.iter().map(|left| values.iter().filter(move |&value| value != left).cloned().collect());
            let some: Vec<Vec<u8>> = numbers.split(' ').map(|text| canonical_json(text.as_bytes())).collect();
            for used in one_left.chain([some, values.iter().cloned().collect::<Vec<_>>()]) {
                let seen = UsedStrings::new(vec![Strings::default().with(used.clone())]);
                for beginning in
                    texts.iter().flat_map(|(text, _)| (1..=text.len()).map(|end| &text[..end])).collect::<BTreeSet<_>>()
                {
                    let rest = beginning.bytes().fold(expr, |rest, byte| deriver.after(rest, byte).unwrap());
                    let going_on = texts.iter().filter(|(text, _)| text.starts_with(beginning));
                    let is_left = going_on.into_iter().any(|(_, value)| !used.iter().any(|used| used == value));
                    let found = counts.is_left(&mut deriver, rest, beginning.as_bytes(), &seen).unwrap();
                    assert_eq!(found, Some(is_left), "{} {beginning:?} {used:?}", set_texts.join(" "));
                }
            }
        }
    }

    #[test]
    fn numbers_without_an_end_are_not_counted() {
        for pattern in ["[0-9]+", r"1\.[0-9]*", "1(e[0-9])?", r"1\.0*5"] {
            let mut exprs = ExprSet::new();
            let options = PatternOptions { dialect: Dialect::Standard, anchoring: Anchoring::Whole };
            let expr = parse_pattern(&mut exprs, pattern, &options, &mut Utf8).unwrap();
            let mut deriver = Deriver::over(exprs, Limits::default());
            let rest = deriver.after(expr, b'1').unwrap();
            let count = NumberCounts::default().count(&mut deriver, rest, Part::Int).unwrap();
            assert_eq!(count, None, "{pattern}");
        }
    }

    #[test]
    fn canonical_numbers_are_written_out() {
        for (canonical, plain) in
            [("0", "0"), ("12e2", "1200"), ("-125e-2", "-1.25"), ("5e-3", "0.005"), ("15e-1", "1.5"), ("-7", "-7")]
        {
            assert_eq!(plain_number(canonical.as_bytes()).as_deref(), Some(plain.as_bytes()));
        }
        assert!(["1e6000", "true", "\"1\"", "-"].iter().all(|text| plain_number(text.as_bytes()).is_none()));
    }
}
