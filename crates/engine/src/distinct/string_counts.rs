//! Elements that are strings of which there are finitely many: counting decides whether a new one is left.
//!
//! Without escapes each text is one value. So an element that has begun as a string can become new exactly if more
//! strings continue it than the array has. The number of strings that continue a residual is computed once.

use stencilm_regex::{Cardinalities, Cardinality, Deriver, ExprId, StateId, Step, Steps};
use stencilm_support::{Extension, LimitExceeded, SEARCHED};

use crate::distinct::number_counts::CountedElement;
use crate::error::EngineError;
use crate::lexeme::cache::DfaId;
use crate::machine::expansion::IN_WHITESPACE;
use crate::parse::stepper::Run;
use crate::state::stacks::Entry;
use crate::state::used_strings::UsedStrings;
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

/// How many strings without escapes continue a residual within a string.
#[derive(Default)]
struct StringCounts(Cardinalities<ExprId>);

impl Extension for StringCounts {
    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// A thread within a string that is a whole element, of which there are finitely many.
struct CountedString {
    dfa: DfaId,
    state: StateId,
    /// The text of the string so far, from its quote on.
    open: Vec<u8>,
    seen: UsedStrings,
    /// How many strings continue from here.
    count: u64,
}

impl Run<'_> {
    /// Whether an element that has begun as a string or a number can become one that its array does not have; `None`
    /// where counting does not decide that.
    pub(crate) fn has_counted_left(&mut self, thread: Entry, text: u32) -> Result<Option<bool>, EngineError> {
        match self.has_string_left(thread, text)? {
            None => self.has_number_left(thread, text),
            known => Ok(known),
        }
    }

    /// The same for strings.
    fn has_string_left(&mut self, thread: Entry, text: u32) -> Result<Option<bool>, EngineError> {
        let Some(CountedString { dfa, state, open, seen, count }) = self.counted_string(thread, text)? else {
            return Ok(None);
        };
        // Nearly always more strings are left than the array has elements.
        if (seen.whole_rests(&open).count() as u64) < count {
            return Ok(Some(true));
        }
        let mut used = 0;
        for rest in seen.whole_rests(&open) {
            used += u64::from(self.is_whole(dfa, state, rest)?);
        }
        Ok(Some(used < count))
    }

    /// Within a string, refuses the tokens of a mask after which no new string is left; only tokens that continue used
    /// strings are examined. `false` where counting does not decide that.
    pub(crate) fn refuse_used_strings(
        &mut self,
        vocabulary: &Tokens,
        thread: Entry,
        text: u32,
        mask: &[u32],
        refused: &mut Vec<u32>,
    ) -> Result<bool, EngineError> {
        let Some(CountedString { dfa, state, open, seen, .. }) = self.counted_string(thread, text)? else {
            return Ok(false);
        };
        let mut rests: Vec<&[u8]> = seen.whole_rests(&open).collect();
        rests.sort_unstable();
        let trie = vocabulary.trie();
        // After each byte of a rest: the node of the vocabulary, and the state.
        let mut path: Vec<(usize, StateId)> = Vec::new();
        for (first, rest) in rests.iter().enumerate() {
            // The part shared with the previous rest is already done.
            let shared = first.checked_sub(1).map_or(0, |before| common(rests[before], rest));
            if path.len() < shared {
                continue;
            }
            path.truncate(shared);
            // A token with the quote ends the element, and what comes after it matters, too.
            for (depth, &byte) in rest.iter().enumerate().skip(shared).take_while(|&(_, &byte)| byte != b'"') {
                let (before, state) = path.last().map_or((None, state), |&(node, state)| (Some(node), state));
                let next = before.map_or_else(|| trie.root(byte), |node| trie.child(node, byte));
                let Some(node) = next else { break };
                let (state, _) = self.lexeme_cache.step(dfa, state, byte)?;
                path.push((node, state));
                let Some(token) = trie.entry_at(node).filter(|&token| token_set::get(mask, token)) else { continue };
                let Some(count) = self.strings_from(dfa, state)? else { return Ok(false) };
                let sharing =
                    &rests[first..first + rests[first..].partition_point(|other| common(other, rest) > depth)];
                if (sharing.len() as u64) < count {
                    continue;
                }
                let mut used = 0;
                for other in sharing {
                    used += u64::from(self.is_whole(dfa, state, &other[depth + 1..])?);
                }
                if used >= count {
                    refused.push(token);
                }
            }
        }
        Ok(true)
    }

    /// The data about a thread within a string that is a whole element, if there are finitely many such strings.
    fn counted_string(&mut self, thread: Entry, text: u32) -> Result<Option<CountedString>, EngineError> {
        if thread.state & IN_WHITESPACE != 0 {
            return Ok(None);
        }
        let Some(CountedElement { dfa, array }) = self.counted_element(thread)? else { return Ok(None) };
        let state = StateId(thread.state);
        let Some(open) = self.open_string(text, &[array]) else { return Ok(None) };
        if self.stacks.since(text, array.start).trim_ascii_start() != open {
            return Ok(None);
        }
        let Some(count) = self.strings_from(dfa, state)? else { return Ok(None) };
        Ok(Some(CountedString { dfa, state, open, seen: self.seen_strings(&[array]), count }))
    }

    /// How many strings continue from a state within one.
    fn strings_from(&mut self, dfa: DfaId, state: StateId) -> Result<Option<u64>, LimitExceeded> {
        let residuals: Vec<ExprId> =
            self.lexeme_cache.residuals(dfa, state).iter().map(|&(_, residual)| residual).collect();
        let deriver = self.lexeme_cache.deriver();
        let left = deriver.exprs.or(&residuals);
        let counts = &mut self.machine.extensions.get::<StringCounts>().0;
        match counts.of(left, SEARCHED, |residual| steps(deriver, residual))? {
            Cardinality::Finite(count) => Ok(Some(count)),
            Cardinality::Infinite | Cardinality::Unknown => Ok(None),
        }
    }

    /// Whether a lexeme ends with these bytes.
    fn is_whole(&mut self, dfa: DfaId, mut state: StateId, bytes: &[u8]) -> Result<bool, LimitExceeded> {
        let mut is_whole = false;
        for &byte in bytes {
            (state, is_whole) = self.lexeme_cache.step(dfa, state, byte)?;
        }
        Ok(is_whole)
    }
}

/// The length of the common prefix of two texts.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// The steps of strings from a residual within one; `None` where some have escapes, or where a program decides the
/// language, which has a different residual for each of its texts.
fn steps(deriver: &mut Deriver, residual: ExprId) -> Result<Option<Steps<ExprId>>, LimitExceeded> {
    if deriver.exprs.has_language(residual) {
        return Ok(None);
    }
    let mut all = Steps { ends: 0, steps: Vec::new() };
    for &(bytes, rest) in deriver.derivatives(residual)?.iter() {
        if !deriver.is_live(rest)? {
            continue;
        }
        let ends = bytes.contains(b'"');
        let is_plain = !bytes.contains(b'\\') && !deriver.exprs.is_nullable(residual);
        if !is_plain || (ends && (rest != ExprId::EMPTY || bytes.len() > 1)) {
            return Ok(None);
        }
        match ends {
            true => all.ends += 1,
            false => all.steps.push(Step { to: rest, edges: bytes.len() as u64, known: 0 }),
        }
    }
    Ok(Some(all))
}
