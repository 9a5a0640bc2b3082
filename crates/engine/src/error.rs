//! What can go wrong between a grammar and a mask. All of it is returned as an error; nothing panics.

use stencilm_support::LimitExceeded;

/// An error of the engine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EngineError {
    /// Too many paths lead to the first bytes at one point of the grammar.
    #[error(
        "more than {0} steps lead to what may come first at one place of the grammar; split it, or give its alternatives \
         a first part in common"
    )]
    TooManyWays(usize),
    /// The vocabulary has no special token with this name.
    #[error("no special token is named {name:?}: {way_out}")]
    UnknownToken {
        /// The name.
        name: String,
        /// What to write instead.
        way_out: String,
    },
    /// The machine does not support an object or an array of this kind.
    #[error("{0} cannot be matched without dead ends; leave that constraint out")]
    NotRun(&'static str),
    /// Elements must differ, but there are not enough values.
    #[error(
        "an array must have {0} different elements, and its element has fewer values; lower the least number of elements, or \
         allow more values"
    )]
    TooFewValues(u32),
    /// Deciding whether a new element is left takes too long.
    #[error(
        "telling whether an element can still differ from those before it took more than {0} steps; allow elements of which \
         there are endlessly many, or fewer elements"
    )]
    UniqueTooCostly(usize),
    /// Deciding whether a new key is left takes too long.
    #[error(
        "telling whether a key can still differ from those that the object has took more than {0} steps; allow keys of \
         which there are endlessly many, or fewer members"
    )]
    KeysTooCostly(usize),
    /// The vocabulary does not have these token ids.
    #[error(
        "{} a vocabulary of size {vocab_size}; give ids from 0 to vocab_size - 1, the lower one first",
        if from == to { format!("token id {from} does not fit") } else { format!("token ids {from} to {to} do not fit") }
    )]
    TokenOutOfRange {
        /// The first id.
        from: u32,
        /// The last id.
        to: u32,
        /// The size of the vocabulary.
        vocab_size: usize,
    },
    /// Every token of the vocabulary is excluded.
    #[error("all tokens are left out where a single token must come; leave out fewer ids")]
    NoTokenLeft,
    /// A limit of work or memory was reached.
    #[error("{}", sentence(.0))]
    Limit(#[from] LimitExceeded),
    /// The grammar is too large.
    #[error(
        "the grammar has {count} parts of regular expressions, more than {limit}; shorten its literals, split it, or raise \
         `grammar_expressions` of the limits"
    )]
    GrammarTooLarge {
        /// The number of its parts.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// Finding the captures takes too long.
    #[error("finding the captures of this text took more than {0} steps; capture less, or a smaller part")]
    CapturesTooCostly(usize),
    /// Finding the shortest completion takes too long.
    #[error(
        "finding the shortest completion of this text took more than {0} steps; write more of the text, or require fewer \
         elements"
    )]
    CompletionTooCostly(usize),
    /// One operation of a matcher takes too long.
    #[error(
        "one step looked at more than {0} entries of stacks; the grammar is too ambiguous for this text, so write what can \
         be read in several ways only once"
    )]
    StacksTooCostly(usize),
    /// One matcher holds too much memory.
    #[error(
        "the matcher holds more than {0} bytes of stacks; the grammar is too ambiguous for this text; simplify it, or raise \
         `stack_bytes` of the limits"
    )]
    StacksFull(usize),
}

/// The sentence for a limit of the lexemes, with the name of the limit in [`crate::Limits`] where it can be raised.
fn sentence(limit: &LimitExceeded) -> String {
    let name = match limit {
        LimitExceeded::Expressions(_) => "derived_expressions",
        LimitExceeded::Search(_) => "search_steps",
        LimitExceeded::States(_) => "automaton_states",
        LimitExceeded::Memory(_) => "working_bytes",
        LimitExceeded::Time(_) => "milliseconds",
        LimitExceeded::Interrupted | LimitExceeded::Cancelled => return limit.to_string(),
    };
    format!("{limit}, or raise `{name}` of the limits")
}

/// Why a matcher refuses a call. The matcher is unchanged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MatcherError {
    /// More tokens were to be taken back than were accepted.
    #[error("cannot roll back {asked} tokens: only {accepted} were accepted; roll back at most that many")]
    RollbackPastStart {
        /// The number of tokens to take back.
        asked: usize,
        /// The number of accepted tokens.
        accepted: usize,
    },
    /// The sequence has ended.
    #[error("the matcher has terminated: a stop token was accepted and nothing can follow; call reset() or rollback()")]
    Terminated,
    /// The text is not complete, and no token of the vocabulary fits.
    #[error(
        "the text is not complete, but no token of the vocabulary spells any way on; change the grammar or the tokenizer"
    )]
    NoTokenFits,
    /// The text can only end, but the vocabulary has no stop token.
    #[error(
        "the text is complete and cannot go on, but there is no stop token to end it; name one with \
         override_stop_tokens, or end it yourself when is_completed() says so"
    )]
    NoStopToken,
    /// The vocabulary does not have this stop token.
    #[error("stop token {id} is outside of the vocabulary of size {vocab_size}; give ids from 0 to vocab_size - 1")]
    StopTokenOutOfRange {
        /// The id.
        id: u32,
        /// The size of the vocabulary.
        vocab_size: usize,
    },
    /// A mask has the wrong number of words.
    #[error("a mask of {words} 32-bit words does not fit a vocabulary of {vocab_size} tokens, which takes {expected}")]
    MaskSize {
        /// The number of words given.
        words: usize,
        /// The number of words needed.
        expected: usize,
        /// The size of the vocabulary.
        vocab_size: usize,
    },
    /// The shortest completion is too long.
    #[error("completing the text takes {bytes} bytes at least, and max_bytes is {max_bytes}; allow more")]
    CompletionTooLong {
        /// A lower bound of its length in bytes.
        bytes: u64,
        /// The greatest length allowed.
        max_bytes: usize,
    },
    /// A token budget is too small from the start.
    #[error(
        "token_budget is {budget}, and the shortest completion that was found takes {needed} tokens; give at least that many"
    )]
    BudgetTooSmall {
        /// The given budget.
        budget: usize,
        /// The number of tokens of the shortest completion that was found.
        needed: usize,
    },
    /// No tokens are found that complete the text.
    #[error(
        "no tokens of the vocabulary are found that complete the text from here; leave token_budget out, or change the grammar"
    )]
    NoTokensComplete,
    /// Only single tokens without text may come.
    #[error("no text completes the grammar from here: a single token must come, which has no text")]
    NoTextCompletes,
    /// Canonical tokens were asked for, but the vocabulary has not learned its tokenizer's merges.
    #[error("canonical masks need the merges of the tokenizer; let the vocabulary learn its encoding first")]
    NoEncoding,
    /// The text is not complete, and the tokenizer would write every continuation with other tokens.
    #[error(
        "the text is not complete, and the tokenizer would not have written what leads on after these tokens; leave canonical=True out, or allow more texts"
    )]
    NoCanonicalToken,
    /// The engine reached a limit.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
