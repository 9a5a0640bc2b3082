//! What reads a lexeme byte by byte, for questions about the tokens within it.

use stencilm_regex::{LimitExceeded, StateId};

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::machine::expansion::Expansion;

/// What reads a lexeme: its automaton, perhaps behind the blanks of an expansion.
pub(crate) struct Reader<'f> {
    pub expansion: Option<&'f Expansion>,
    pub dfa: DfaId,
}

impl Reader<'_> {
    /// The state after one byte; `None` where nothing leads on.
    #[inline]
    pub fn next(&self, lexeme_cache: &mut LexemeCache, state: u32, byte: u8) -> Result<Option<u32>, LimitExceeded> {
        let next = match self.expansion {
            Some(expansion) => expansion.step(lexeme_cache, state, byte)?.0,
            None => lexeme_cache.step(self.dfa, StateId(state), byte)?.0.0,
        };
        Ok((next != StateId::DEAD.0).then_some(next))
    }
}
