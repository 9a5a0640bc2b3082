//! Reading a lexeme byte by byte, for questions about the tokens within it.

use stencilm_regex::{ByteSet, StateId, Tag};
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

    /// The bytes that may come in a state; the set may be too large.
    pub fn bytes(&self, lexeme_cache: &mut LexemeCache, state: u32) -> Result<ByteSet, LimitExceeded> {
        match self.expansion {
            Some(expansion) => expansion.bytes_from(lexeme_cache, state, StateId::START),
            None => lexeme_cache.live_bytes(self.dfa, StateId(state)).copied(),
        }
    }

    /// The tags of the lexemes that are complete in a state.
    pub fn accepts<'a>(&'a self, lexeme_cache: &'a LexemeCache, state: u32) -> &'a [Tag] {
        match self.expansion {
            Some(expansion) => expansion.accepts(lexeme_cache, state),
            None => lexeme_cache.accepts(self.dfa, StateId(state)),
        }
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
