//! Limits on the work and memory that expressions may take.

use stencilm_support::{LimitExceeded, check_time, check_time_after};

/// A derivative counts as this many steps when the clock is checked.
const STEPS_OF_A_DERIVATIVE: u32 = 8;

/// Limits on derived expressions, on searches for a match, on automaton states, and on the memory of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The greatest number of expressions that may be derived between two calls of
    /// [`Deriver::begin`](crate::Deriver::begin).
    pub max_exprs: usize,
    /// The greatest number of expressions visited by one search for a match.
    pub max_search: usize,
    /// The greatest number of states in one automaton.
    pub max_states: usize,
    /// The greatest number of bytes by which expressions and automata may grow between two calls of
    /// [`Deriver::begin`](crate::Deriver::begin).
    pub max_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_exprs: 1_000_000, max_search: 100_000, max_states: 500_000, max_bytes: 256 << 20 }
    }
}

impl Limits {
    pub(crate) fn check_exprs(&self, count: usize) -> Result<(), LimitExceeded> {
        check_time_after(STEPS_OF_A_DERIVATIVE)?;
        if count > self.max_exprs { Err(LimitExceeded::Expressions(self.max_exprs)) } else { Ok(()) }
    }

    pub(crate) fn check_search(&self, count: usize) -> Result<(), LimitExceeded> {
        check_time()?;
        if count > self.max_search { Err(LimitExceeded::Search(self.max_search)) } else { Ok(()) }
    }

    pub(crate) fn check_bytes(&self, count: usize) -> Result<(), LimitExceeded> {
        if count > self.max_bytes { Err(LimitExceeded::Memory(self.max_bytes)) } else { Ok(()) }
    }

    pub(crate) fn check_states(&self, count: usize) -> Result<(), LimitExceeded> {
        if count > self.max_states { Err(LimitExceeded::States(self.max_states)) } else { Ok(()) }
    }
}
