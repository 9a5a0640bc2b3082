//! What reads the tokens in a walk through a vocabulary.

use stencilm_regex::{Deriver, Dfa, StateId};
use stencilm_support::LimitExceeded;

/// An automaton that a walk reads with.
pub(crate) trait Automaton {
    /// The state after a byte, and whether something ends there.
    fn step(&mut self, state: StateId, byte: u8) -> Result<(StateId, bool), LimitExceeded>;

    /// The first byte that is never distinguished from this one.
    fn representative(&self, byte: u8) -> u8;
}

/// An automaton, and what derives its expressions.
pub(crate) struct Derived<'a> {
    pub automaton: &'a mut Dfa,
    pub deriver: &'a mut Deriver,
}

impl Automaton for Derived<'_> {
    #[inline]
    fn step(&mut self, state: StateId, byte: u8) -> Result<(StateId, bool), LimitExceeded> {
        self.automaton.step(self.deriver, state, byte)
    }

    fn representative(&self, byte: u8) -> u8 {
        self.automaton.representative(byte)
    }
}
