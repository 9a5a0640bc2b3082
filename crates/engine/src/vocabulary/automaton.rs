//! The automaton that reads tokens in a walk through a vocabulary.

use stencilm_regex::{Deriver, Dfa, StateId};
use stencilm_support::LimitExceeded;

/// An automaton with which a walk reads.
pub(crate) trait Automaton {
    /// The state after a byte, and whether a match ends there.
    fn step(&mut self, state: StateId, byte: u8) -> Result<(StateId, bool), LimitExceeded>;

    /// The first byte that the automaton never distinguishes from this one.
    fn representative(&self, byte: u8) -> u8;
}

/// An automaton, and the deriver of its expressions.
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
