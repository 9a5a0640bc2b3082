//! Reading a lexeme byte by byte, for questions about the tokens within it.

use stencilm_regex::{ByteSet, StateId};
use stencilm_support::LimitExceeded;

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::machine::expansion::Expansion;

/// A lexeme's automaton, perhaps after the whitespace of an expansion.
pub(crate) struct Reader<'f> {
    pub expansion: Option<&'f Expansion>,
    pub dfa: DfaId,
}

impl Reader<'_> {
    /// The state after one byte; `None` where it is dead.
    #[inline]
    pub fn next(&self, lexeme_cache: &mut LexemeCache, state: u32, byte: u8) -> Result<Option<u32>, LimitExceeded> {
        let next = match self.expansion {
            Some(expansion) => expansion.step(lexeme_cache, state, byte)?.0,
            None => lexeme_cache.step(self.dfa, StateId(state), byte)?.0.0,
        };
        Ok((next != StateId::DEAD.0).then_some(next))
    }

    /// The number of live bytes that lead from a state to itself.
    pub fn loops(&self, lexeme_cache: &mut LexemeCache, state: u32, live: &ByteSet) -> Result<usize, LimitExceeded> {
        let mut loops = 0;
        for byte in live.iter() {
            loops += usize::from(self.next(lexeme_cache, state, byte)? == Some(state));
        }
        Ok(loops)
    }
}
