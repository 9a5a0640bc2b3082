//! The limits of an index, and the reasons why none can be built.

use crate::error::EngineError;

/// Bounds on a [`TokenIndex`](super::TokenIndex).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexLimits {
    /// The greatest number of states.
    pub max_states: usize,
    /// The greatest size of its transitions in bytes.
    pub max_bytes: usize,
}

/// Why no index can be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IndexError {
    /// The machine of the grammar has too many configurations, perhaps infinitely many.
    #[error(
        "the index has more than {0} states; the grammar nests or counts too far for an explicit automaton, so use a \
         GrammarMatcher, bound its repetitions, or raise max_states"
    )]
    TooManyStates(usize),
    /// There are too many transitions.
    #[error("the transitions of the index take more than {0} bytes; use a GrammarMatcher, or raise max_bytes")]
    TooLarge(usize),
    /// There would be far too many transitions, according to a sample of the states.
    #[error(
        "the transitions of the index would take about {estimate} bytes, as a sample of its {states} states shows, more \
         than twice the limit of {limit}; use a GrammarMatcher, bound its repetitions, or raise max_bytes"
    )]
    WouldBeTooLarge {
        /// The estimated size of the transitions in bytes.
        estimate: usize,
        /// The number of states.
        states: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The forced texts are too long.
    #[error(
        "the {stretches} stretches of this index take more than {limit} bytes; follow next_state from the states that \
         matter"
    )]
    TooMuchForced {
        /// The number of stretches.
        stretches: usize,
        /// The limit in bytes, for their texts and a fixed amount for each stretch.
        limit: u64,
    },
    /// The grammar names single tokens.
    #[error("the grammar asks for single tokens, which an automaton over texts does not have; use a GrammarMatcher")]
    SingleTokens,
    /// The grammar has token budgets.
    #[error(
        "the grammar has parts with max_tokens, which depend on how a text was cut into tokens; use a GrammarMatcher"
    )]
    TokenBudgets,
    /// The grammar declares names. A reference depends on the names before it, of which there are infinitely many.
    #[error(
        "the grammar declares names, to which later parts refer, so it has endlessly many states; use a GrammarMatcher"
    )]
    DeclaredNames,
    /// The vocabulary cannot spell every text that it can begin.
    #[error(
        "the vocabulary cannot spell all texts of the grammar: {0}; give a vocabulary with tokens for it, or leave it out \
         of the grammar"
    )]
    Unspelled(Unspelled),
    /// The engine reached a limit.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A point at which the vocabulary has no tokens for what must follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unspelled {
    /// A text that tokens spell.
    pub text: Vec<u8>,
    /// What follows it in the shortest text of the grammar and cannot be spelled by tokens, extended to whole
    /// characters.
    pub missing: Vec<u8>,
}

impl std::fmt::Display for Unspelled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "after {} no tokens make up {}", Shown(&self.text), Shown(&self.missing))
    }
}

struct Shown<'a>(&'a [u8]);

/// The greatest number of bytes of a text that a message shows; these are its last ones.
const MAX_SHOWN: usize = 60;

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut bytes = self.0;
        if bytes.len() > MAX_SHOWN {
            let cut = bytes.len() - MAX_SHOWN;
            let start = (cut..).find(|&at| bytes.get(at).is_none_or(|byte| byte & 0xC0 != 0x80));
            bytes = &bytes[start.unwrap_or(cut).min(bytes.len())..];
            f.write_str("...")?;
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => write!(f, "{text:?}"),
            Err(_) => write!(f, "the bytes \"{}\"", bytes.escape_ascii()),
        }
    }
}
