//! What reads a lexeme byte by byte, for questions about the tokens within it.

use stencilm_regex::{ByteSet, LimitExceeded, StateId};

use crate::fork::Fork;
use crate::groups::groups_within;
use crate::lexicon::{DfaId, Lexicon};

/// What reads a lexeme: its automaton, perhaps behind the blanks of a fork.
pub(super) struct Reader<'f> {
    pub fork: Option<&'f Fork>,
    pub dfa: DfaId,
}

impl Reader<'_> {
    /// The state after one byte; `None` where nothing leads on.
    #[inline]
    pub fn next(&self, lexicon: &mut Lexicon, state: u32, byte: u8) -> Result<Option<u32>, LimitExceeded> {
        let next = match self.fork {
            Some(fork) => fork.step(lexicon, state, byte)?.0,
            None => lexicon.step(self.dfa, StateId(state), byte)?.0.0,
        };
        Ok((next != StateId::DEAD.0).then_some(next))
    }

    /// The groups of bytes that lead from a state to itself, of those that may come there.
    pub fn loops(&self, lexicon: &mut Lexicon, state: u32, live: &ByteSet) -> Result<u32, LimitExceeded> {
        let mut same = ByteSet::EMPTY;
        for byte in live.iter() {
            if self.next(lexicon, state, byte)? == Some(state) {
                same.insert(byte);
            }
        }
        Ok(groups_within(same))
    }
}
