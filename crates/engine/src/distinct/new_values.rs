//! The search for a value that an array does not have yet, where it is not obvious that there is one.

use stencilm_grammar::{Items, Node, NodeId, Repeats};
use stencilm_regex::{ByteSet, StateId};
use stencilm_support::{FEW, SEARCHED};

use crate::distinct::exponents::{exponents_after_mark, is_spelled_freely};
use crate::distinct::quoting::Quoting;
use crate::error::EngineError;
use crate::machine::expansion::IN_WHITESPACE;
use crate::machine::layout::{ExpansionId, Frame};
use crate::parse::stepper::{Mode, Run, offers_tokens};
use crate::state::stacks::{Entry, NIL};

/// The goal of a search.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// A thread that can certainly still become something new.
    Safe,
    /// The end of the text.
    End,
}

/// A position in a search: threads, the text so far, and the choices left, the best last.
struct Level {
    threads: Vec<Entry>,
    text: u32,
    /// The bytes that led here; empty at the start of the search.
    last: Vec<u8>,
    choices: Vec<Vec<u8>>,
    string: Quoting,
}

/// Properties of the number at the end of a text.
struct NumberTail {
    /// Whether it is zero whatever its exponent is.
    is_zero: bool,
    /// Whether its last characters contain a digit other than 0, before any exponent.
    has_digits: bool,
    /// Whether it ends with a zero right after the point.
    begins_fraction: bool,
    /// The number of zeros that it ends with.
    zeros: usize,
    /// Whether it ends with digits after its point, so that more zeros do not change its value.
    is_fraction: bool,
}

impl Run<'_> {
    /// Searches for a continuation from some threads, with bytes that end something first. Every choice is tried, so if
    /// none is found, there is none.
    pub(crate) fn search(&mut self, threads: &[Entry], text: u32, goal: Goal) -> Result<bool, EngineError> {
        // The attempts must not change what was read and recorded.
        let before = (self.text, self.compared.take());
        let found = self.in_mode(Mode::Exact, |run| run.search_from(threads, text, goal));
        (self.text, self.compared) = before;
        found
    }

    pub(crate) fn search_from(&mut self, threads: &[Entry], text: u32, goal: Goal) -> Result<bool, EngineError> {
        let mut pending = Vec::new();
        for &thread in threads {
            self.pending(thread, &mut pending);
        }
        let string = self.quoting(text, &pending);
        let first = Level { threads: threads.to_vec(), text, last: Vec::new(), choices: Vec::new(), string };
        let mut levels = vec![self.with_choices(first)?];
        let mut steps = 0;
        while let Some(level) = levels.last_mut() {
            let Some(choice) = level.choices.pop() else {
                levels.pop();
                continue;
            };
            steps += 1;
            if steps > SEARCHED {
                return Err(EngineError::UniqueTooCostly(SEARCHED));
            }
            let (mut threads, mut text, mut string) = (level.threads.clone(), level.text, level.string);
            for &byte in &choice {
                string = string.after(byte);
                text = self.stacks.append(text, u32::from(byte));
                self.text = Some(text);
                let mut behind = Vec::new();
                for thread in threads {
                    self.step_thread(thread, byte, &mut behind)?;
                }
                self.stacks.join(&mut behind)?;
                threads = behind;
            }
            if goal == Goal::Safe && string == Quoting::Within && self.are_new(&threads, text) {
                return Ok(true);
            }
            let mut open = Vec::with_capacity(threads.len());
            for thread in threads {
                let left = self.has_counted_left(thread, text)?;
                let is_there = match (goal, left) {
                    (Goal::End, _) => thread == Entry::BOTTOM,
                    (Goal::Safe, Some(is_left)) => is_left,
                    (Goal::Safe, None) => self.is_safe(thread, string)?,
                };
                if is_there {
                    return Ok(true);
                }
                // If none is left, nothing that continues here is new.
                if left != Some(false) {
                    open.push(thread);
                }
            }
            if !open.is_empty() {
                let next = Level { threads: open, text, last: choice, choices: Vec::new(), string };
                let next = self.with_choices(next)?;
                levels.push(next);
            }
        }
        Ok(false)
    }

    /// Adds the choices: bytes that are live and may lead to a new value.
    fn with_choices(&mut self, mut level: Level) -> Result<Level, EngineError> {
        let mut alive = ByteSet::EMPTY;
        let mut is_complete = false;
        for &thread in &level.threads {
            if thread == Entry::BOTTOM || offers_tokens(thread) {
                continue;
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            is_complete |= !expansion.accepts(self.lexeme_cache, thread.state).is_empty();
            let is_before = thread.state & IN_WHITESPACE != 0;
            let mut bytes =
                expansion.live_bytes(self.lexeme_cache, if is_before { StateId::START.0 } else { thread.state })?;
            if let Some(whitespace) = expansion.whitespace.filter(|_| is_before) {
                bytes = bytes.union(&whitespace.set);
            }
            for byte in bytes.iter() {
                if expansion.step(self.lexeme_cache, thread.state, byte)?.0 != StateId::DEAD.0 {
                    alive.insert(byte);
                }
            }
        }
        let mut bytes: Vec<u8> = alive.iter().collect();
        if level.string == Quoting::Outside {
            let is_whitespace = |byte: &u8| b" \t\r\n".contains(byte);
            // Without indentation, whatever is possible after whitespace is possible without it, too.
            if bytes.iter().any(|byte| !is_whitespace(byte))
                && !self.machine.does_whitespace_decide(self.lexeme_cache)?
            {
                bytes.retain(|byte| !is_whitespace(byte));
            }
            self.leave_out_spellings(&level, is_complete, &mut bytes)?;
        }
        let exponents = self.exponents_to_try(&level)?;
        if exponents.is_some() {
            let has_many_zeros = self.number_tail(level.text).zeros >= FEW;
            bytes.retain(|&byte| !b".eE".contains(&byte) && (byte != b'0' || !has_many_zeros));
        }
        // The last choice is tried first: within a string, a byte that no earlier element continues with. Continuing a
        // number that may end is tried last.
        let mut known = ByteSet::EMPTY;
        if level.string == Quoting::Within {
            let mut pending = Vec::new();
            for &thread in &level.threads {
                self.pending(thread, &mut pending);
            }
            if let Some(open) = self.open_string(level.text, &pending) {
                known = self.seen_strings(&pending).next_bytes(&open);
            }
        }
        let is_number = level.string == Quoting::Outside && is_complete;
        bytes.sort_by_key(|&byte| match byte {
            b'"' | b'}' | b']' => 9,
            byte if known.contains(byte) => 1,
            b'0'..=b'9' if is_number => 2,
            b'1'..=b'9' | b'a'..=b'z' => 8,
            b'0' => 6,
            b'\\' => 0,
            0x80.. => 1,
            _ => 7,
        });
        // Exponents come after everything else if the number may end, and before its digits if it may not.
        let choices = bytes.into_iter().map(|byte| vec![byte]);
        let exponents = exponents.into_iter().flatten();
        level.choices = if is_number { exponents.chain(choices).collect() } else { choices.chain(exponents).collect() };
        Ok(level)
    }

    /// Removes bytes that only give another spelling of the number at the end of the text. For that, another thread
    /// must try the number as it is, except at the start of the search.
    fn leave_out_spellings(
        &mut self,
        level: &Level,
        is_complete: bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        if level.last.is_empty() {
            return Ok(());
        }
        let NumberTail { is_zero, zeros, is_fraction, .. } = self.number_tail(level.text);
        if is_zero && (is_complete || bytes.iter().any(|byte| !byte.is_ascii_digit())) {
            bytes.retain(|byte| !byte.is_ascii_digit());
        }
        let is_unchanged = is_fraction && self.leads_nowhere_else(&level.threads, b'0')?;
        if is_unchanged || (zeros >= FEW && (is_complete || bytes.iter().any(|&byte| byte != b'0'))) {
            bytes.retain(|&byte| byte != b'0');
        }
        // An exponent was chosen with all its digits.
        if level.last.len() > 1 {
            bytes.retain(|byte| !byte.is_ascii_digit());
        }
        Ok(())
    }

    /// The exponents, with their marks, to try for an open number that exists in every spelling, if its value depends
    /// on them. Of all spellings of a value one is tried: without a point, and without zeros after the digits if there
    /// is an exponent. `None` elsewhere.
    fn exponents_to_try(&mut self, level: &Level) -> Result<Option<Vec<Vec<u8>>>, EngineError> {
        let mut residuals = Vec::new();
        let NumberTail { has_digits, begins_fraction, .. } = self.number_tail(level.text);
        let is_first = level.last.is_empty();
        // If only zeros were written, the point may be needed; other texts need no exponent, since other digits can be
        // tried.
        if level.string != Quoting::Outside || (is_first && !has_digits) {
            return Ok(None);
        }
        for &thread in &level.threads {
            if thread == Entry::BOTTOM || offers_tokens(thread) {
                continue;
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            let mut goes_on = false;
            for byte in *b"0123456789.eE" {
                goes_on |= expansion.step(self.lexeme_cache, thread.state, byte)?.0 != StateId::DEAD.0;
            }
            // If the number may have ended, other threads wait for what comes after it.
            if !goes_on {
                continue;
            }
            let Some(dfa) = expansion.dfa().filter(|_| thread.state & IN_WHITESPACE == 0) else { return Ok(None) };
            let state = StateId(thread.state);
            residuals.extend(self.lexeme_cache.residuals(dfa, state).iter().map(|&(_, residual)| residual));
        }
        let deriver = self.lexeme_cache.deriver();
        let residual = deriver.exprs.or(&residuals);
        if residuals.is_empty() || !is_spelled_freely(&deriver.exprs, residual) {
            return Ok(None);
        }
        if level.last == b"0" && !begins_fraction {
            return Ok(Some(Vec::new()));
        }
        let behind = deriver.after(residual, b'e')?;
        // At the start of the search, the number as it is is tried with an exponent of 0.
        let makes_a_value = |exponent: &i64| is_first || *exponent != 0;
        let text = |exponent: i64| format!("e{exponent}").into_bytes();
        let exponents = exponents_after_mark(deriver, behind)?;
        Ok(exponents.map(|exponents| exponents.into_iter().filter(makes_a_value).map(text).collect()))
    }

    /// Whether a byte leads some threads only to where they already are.
    fn leads_nowhere_else(&mut self, threads: &[Entry], byte: u8) -> Result<bool, EngineError> {
        for &thread in threads {
            if thread == Entry::BOTTOM || offers_tokens(thread) {
                continue;
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            let state = expansion.step(self.lexeme_cache, thread.state, byte)?.0;
            if state != StateId::DEAD.0 && state != thread.state {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The properties of the number at the end of a text.
    fn number_tail(&self, text: u32) -> NumberTail {
        let is_part = |byte: &u32| u8::try_from(*byte).is_ok_and(|byte| b"0123456789+-.eE".contains(&byte));
        let mut tail: Vec<u8> =
            self.stacks.list(text).take(FEW + 2).take_while(is_part).map(|byte| byte as u8).collect();
        tail.reverse();
        let zeros = tail.iter().rev().take_while(|&&byte| byte == b'0').count();
        let exponent = tail.iter().position(|byte| byte.eq_ignore_ascii_case(&b'e'));
        let is_zero = exponent.is_some_and(|at| {
            let mantissa_is_zero = at > 0 && tail[..at].iter().all(|byte| b"-0.".contains(byte));
            mantissa_is_zero && tail.last().is_some_and(u8::is_ascii_digit)
        });
        let mut parts = tail.strip_prefix(b"-").unwrap_or(&tail).split(|&byte| byte == b'.');
        let mut are_digits =
            || parts.next().is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit));
        let is_fraction = are_digits() && are_digits() && parts.next().is_none();
        let has_digits = tail[..exponent.unwrap_or(tail.len())].iter().any(|byte| (b'1'..=b'9').contains(byte));
        NumberTail { is_zero, has_digits, begins_fraction: tail.ends_with(b".0"), zeros, is_fraction }
    }

    /// Whether an array whose elements must differ and which has some text can always be completed if its counts alone
    /// allow it.
    ///
    /// Whatever a counter still needs must then be left: of the values that it counts, only those that it counted are
    /// used. This holds if a value that several counters count is not needed more often than it exists, and if no
    /// counter restricts another one or elements that no counter counts.
    fn can_count_unique(&mut self, items: &Items) -> Result<bool, EngineError> {
        let is_bounded = items.max.is_some() || items.contains.iter().any(|(_, max)| max.is_some());
        if !items.prefix.is_empty() || (is_bounded && items.contains.len() > 1) {
            return Ok(false);
        }
        let has_max = |counts: u32| {
            let mut bounds = items.contains.iter().enumerate();
            bounds.any(|(index, (_, max))| counts & (1 << index) != 0 && max.is_some())
        };
        for element in items.rest.iter().filter(|element| !has_max(element.counts)) {
            if self.is_element_infinite(element.value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Refuses arrays for which it cannot be shown that enough different elements are left.
    pub(crate) fn check_unique(&mut self) -> Result<(), EngineError> {
        let grammar = self.machine.grammar().clone();
        for (index, node) in grammar.nodes().iter().enumerate() {
            let Node::Items(id) = node else { continue };
            let items = grammar.items(*id);
            if items.repeats != (Repeats::Never { counted: false }) {
                continue;
            }
            let mut infinite = true;
            for element in items.elements() {
                infinite &= self.is_element_infinite(element.value)?;
            }
            if infinite {
                continue;
            }
            if !items.contains.is_empty() && !self.can_count_unique(items)? {
                return Err(EngineError::NotRun(
                    "an array whose elements must differ, with values that may run out for some counter,",
                ));
            }
            // An array that may end need not begin an element for which no value is left.
            let counts_to = items.contains.iter().map(|(min, _)| *min).max();
            if counts_to.map_or(items.min < 2, |most| most < 2) {
                continue;
            }
            if !items.prefix.is_empty() {
                // Earlier elements cannot use up all values of a position with infinitely many.
                let last = (items.min as usize - 1).min(items.prefix.len());
                for place in 1..=last {
                    let mut infinite = false;
                    for element in items.at(place) {
                        infinite |= self.is_element_infinite(element.value)?;
                    }
                    if !infinite {
                        return Err(EngineError::NotRun(
                            "an array whose elements must differ, with values that may run out at a leading place that it must \
                             have,",
                        ));
                    }
                }
                continue;
            }
            let frame = self.machine.frame_id(Frame::Node(NodeId(index as u32)));
            let start = self.initial_at(frame)?;
            let mut threads = self.stacks.entries(start).to_vec();
            self.take_text(&mut threads);
            if !self.search(&threads, NIL, Goal::End)? {
                return Err(EngineError::TooFewValues(items.min));
            }
        }
        Ok(())
    }
}
