//! What ends an operation: a bound, a deadline, a token, or the caller.

/// A bound was reached; the text tells which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitExceeded {
    /// Too many expressions were derived.
    #[error("the expression needs more than {0} derived expressions; simplify it")]
    Expressions(usize),
    /// The search for a matching string was too long.
    #[error("deciding whether an intersection or complement matches anything took more than {0} steps; simplify it")]
    Search(usize),
    /// Expressions and automata take too much memory.
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
    /// The caller does not want the result any more.
    #[error("the operation was interrupted; ask again where it is still wanted")]
    Interrupted,
}

impl LimitExceeded {
    /// The sentence for the author of a notation, who can raise only the limit of time.
    pub fn while_reading(&self) -> String {
        match self {
            LimitExceeded::Time(_) => format!("{self}, or raise `milliseconds` of the limits"),
            _ => self.to_string(),
        }
    }
}
