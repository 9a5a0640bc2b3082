//! A grammar's configuration before whitespace: how much may come, and what comes after it.

use stencilm_regex::{ByteSet, StateId};
use stencilm_support::{FEW, MANY};

use super::json::{JSON_WHITESPACE, json_whitespace};
use super::runs::{BeforeWhitespace, WhitespaceInLexemes, without_whitespace};
use crate::canonical::viability::search::Search;
use crate::error::EngineError;
use crate::machine::expansion::{Automaton, Expansion, IN_WHITESPACE};
use crate::machine::layout::ExpansionId;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::Entry;

impl Search<'_, '_> {
    /// What these threads share, if they are before whitespace that the lexemes do not end with.
    pub(crate) fn before_whitespace(
        &mut self,
        in_lexemes: &mut WhitespaceInLexemes,
        threads: &[Entry],
    ) -> Result<Option<BeforeWhitespace>, EngineError> {
        let (mut starts, mut least, mut most) = (Vec::new(), usize::MAX, 0);
        for &thread in threads.iter().filter(|&&thread| thread != Entry::BOTTOM && !offers_tokens(thread)) {
            let expansion = self.run.machine.fork(ExpansionId(thread.head)).clone();
            let (state, left) = if thread.state & IN_WHITESPACE == 0 {
                let left = match in_lexemes.get(&(thread.head, thread.state)) {
                    Some(&known) => known,
                    None => {
                        let found = self.run.whitespace_in_lexeme(&expansion, thread.state)?;
                        in_lexemes.insert((thread.head, thread.state), found, 0);
                        found
                    }
                };
                let Some(left) = left else { return Ok(None) };
                (thread.state, left)
            } else if expansion.whitespace.is_some_and(|whitespace| whitespace.set == json_whitespace()) {
                (IN_WHITESPACE, expansion.whitespace_left(thread.state).map_or(usize::MAX, |left| left as usize))
            } else {
                return Ok(None);
            };
            if left == 0 {
                continue;
            }
            starts.push(Entry { state, ..thread });
            (least, most) = (least.min(left), most.max(left));
        }
        if starts.is_empty() {
            return Ok(None);
        }
        let same = self.run.stacks.configuration(&mut starts)?;
        // Whether the others may come is not certain.
        let mut next = json_whitespace();
        for byte in without_whitespace(&self.next(same)?.bytes).iter() {
            if self.may_come(same, &ByteSet::of(byte))? {
                next.insert(byte);
            }
        }
        Ok(Some(BeforeWhitespace { same, next, left: least, is_exact: least == most }))
    }
}

impl Run<'_> {
    /// How much whitespace a lexeme may continue with before anything else: 0 where whitespace ends it or is dead,
    /// `None` where whitespace makes a difference to it.
    fn whitespace_in_lexeme(&mut self, expansion: &Expansion, state: u32) -> Result<Option<usize>, EngineError> {
        let first = JSON_WHITESPACE.map(|byte| expansion.step(self.lexeme_cache, state, byte));
        let mut reached = Vec::with_capacity(JSON_WHITESPACE.len());
        for step in first {
            reached.push(step?);
        }
        if reached.iter().all(|&(next, _)| next == StateId::DEAD.0) {
            return Ok(Some(0));
        }
        if matches!(expansion.automaton, Automaton::Names(..)) || expansion.additional {
            return Ok(None);
        }
        let others = without_whitespace(&expansion.live_bytes(self.lexeme_cache, state)?);
        // With more live bytes it is treated like any other lexeme.
        if others.len() > FEW {
            return Ok(None);
        }
        let mut here = state;
        for left in 0..MANY {
            let (next, accepts) = expansion.step(self.lexeme_cache, here, JSON_WHITESPACE[0])?;
            for &byte in &JSON_WHITESPACE[1..] {
                if expansion.step(self.lexeme_cache, here, byte)? != (next, accepts) {
                    return Ok(None);
                }
            }
            if next == StateId::DEAD.0 {
                return Ok(Some(left));
            }
            if accepts || without_whitespace(&expansion.live_bytes(self.lexeme_cache, next)?) != others {
                return Ok(None);
            }
            for byte in others.iter() {
                if expansion.step(self.lexeme_cache, next, byte)? != expansion.step(self.lexeme_cache, state, byte)? {
                    return Ok(None);
                }
            }
            if next == here {
                return Ok(Some(usize::MAX));
            }
            here = next;
        }
        Ok(None)
    }
}
