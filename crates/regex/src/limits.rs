//! How much work and memory an expression may cost before it is refused.

use crate::watch::{check, check_after};

/// A derivative takes as long as so many usual steps.
const STEPS_OF_A_DERIVATIVE: u32 = 8;

/// A bound was reached. The text says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitExceeded {
    /// Too many expressions were derived.
    #[error("the expression needs more than {0} derived expressions; simplify it")]
    Expressions(usize),
    /// The search for a matching string was too long.
    #[error("deciding whether an intersection or complement matches anything took more than {0} steps; simplify it")]
    Search(usize),
    /// Expressions and automata hold too much.
    #[error("working this out takes more than {0} bytes of memory; simplify the expression")]
    Memory(usize),
    /// The automaton has too many states.
    #[error("the automaton needs more than {0} states; simplify the expression")]
    States(usize),
    /// It took too long.
    #[error("the operation took more than {0} ms; simplify what it works on")]
    Time(u64),
    /// Its [`CancelToken`](crate::CancelToken) was set.
    #[error("the operation was cancelled by its token; give another token to what is still wanted")]
    Cancelled,
    /// Whoever asked for it does not want it any more.
    #[error("the operation was interrupted; ask again where it is still wanted")]
    Interrupted,
}

impl LimitExceeded {
    /// The sentence for who has a notation read: of these bounds only the time is his to raise.
    pub fn while_reading(&self) -> String {
        match self {
            LimitExceeded::Time(_) => format!("{self}, or raise `milliseconds` of the limits"),
            _ => self.to_string(),
        }
    }
}

/// Bounds on derived expressions, on the search for emptiness, on automaton states, and on the memory of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The greatest number of expressions that may be derived between two calls of [`Deriver::begin`](crate::Deriver::begin).
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
        check_after(STEPS_OF_A_DERIVATIVE)?;
        if count > self.max_exprs { Err(LimitExceeded::Expressions(self.max_exprs)) } else { Ok(()) }
    }

    pub(crate) fn check_search(&self, count: usize) -> Result<(), LimitExceeded> {
        check()?;
        if count > self.max_search { Err(LimitExceeded::Search(self.max_search)) } else { Ok(()) }
    }

    pub(crate) fn check_bytes(&self, count: usize) -> Result<(), LimitExceeded> {
        if count > self.max_bytes { Err(LimitExceeded::Memory(self.max_bytes)) } else { Ok(()) }
    }

    pub(crate) fn check_states(&self, count: usize) -> Result<(), LimitExceeded> {
        if count > self.max_states { Err(LimitExceeded::States(self.max_states)) } else { Ok(()) }
    }
}
