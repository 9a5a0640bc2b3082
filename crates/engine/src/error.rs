//! What can go wrong between a grammar and a mask. Each is an answer to the caller; none is a panic.

use stencilm_support::LimitExceeded;

/// An error of the engine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EngineError {
    /// Too many paths lead to the first bytes of a place in the grammar.
    #[error(
        "more than {0} steps lead to what may come first at one place of the grammar; split it, or give its alternatives \
         a first part in common"
    )]
    TooManyWays(usize),
    /// A special token that the vocabulary does not have.
    #[error("no special token is named {name:?}: {way_out}")]
    UnknownToken {
        /// The name.
        name: String,
        /// What to write instead.
        way_out: String,
    },
    /// An object or an array that the machine does not run.
    #[error("{0} cannot be matched without dead ends; leave that constraint out")]
    NotRun(&'static str),
    /// Elements must differ, and there are not enough values.
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
    /// Token ids that the vocabulary does not have.
    #[error(
        "token ids {from} to {to} do not fit a vocabulary of size {vocab_size}; give ids from 0 to vocab_size - 1, the \
         lower one first"
    )]
    TokenOutOfRange {
        /// The first id.
        from: u32,
        /// The last id.
        to: u32,
        /// The size of the vocabulary.
        vocab_size: usize,
    },
    /// All tokens but those that there are.
    #[error("all tokens are left out where a single token must come; leave out fewer ids")]
    NoTokenLeft,
    /// Work or memory ran out.
    #[error("{}", sentence(.0))]
    Limit(#[from] LimitExceeded),
    /// The grammar is too large.
    #[error(
        "the grammar has {count} parts of regular expressions, more than {limit}; shorten its literals, split it, or raise \
         `grammar_expressions` of the limits"
    )]
    GrammarTooLarge {
        /// Its parts.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// Finding the captures takes too long.
    #[error("finding the captures of this text took more than {0} steps; capture less, or a smaller part")]
    CapturesTooCostly(usize),
    /// Finding a completion takes too long.
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
    /// One matcher holds too much.
    #[error(
        "the matcher holds more than {0} bytes of stacks; the grammar is too ambiguous for this text; simplify it, or raise \
         `stack_bytes` of the limits"
    )]
    StacksFull(usize),
}

/// What is said of a limit of the lexemes, with its name in [`crate::Limits`] where it may be raised.
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

/// What a matcher refuses without changing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MatcherError {
    /// More tokens to take back than were accepted.
    #[error("cannot roll back {asked} tokens: only {accepted} were accepted; roll back at most that many")]
    RollbackPastStart {
        /// How many were asked for.
        asked: usize,
        /// How many there are.
        accepted: usize,
    },
    /// The text is over.
    #[error("the matcher has terminated: a stop token was accepted and nothing can follow; call reset() or rollback()")]
    Terminated,
    /// The mask of a state that no token of this vocabulary can leave.
    #[error(
        "the text is not complete, but no token of the vocabulary spells any way on; change the grammar or the tokenizer"
    )]
    NoTokenFits,
    /// The mask of a text that can only end, in a vocabulary without a stop token.
    #[error(
        "the text is complete and cannot go on, but there is no stop token to end it; name one with \
         override_stop_tokens, or end it yourself when is_completed() says so"
    )]
    NoStopToken,
    /// A stop token that the vocabulary does not have.
    #[error("stop token {id} is outside of the vocabulary of size {vocab_size}; give ids from 0 to vocab_size - 1")]
    StopTokenOutOfRange {
        /// The id.
        id: u32,
        /// The size of the vocabulary.
        vocab_size: usize,
    },
    /// The words of a mask are too few or too many.
    #[error("a mask of {words} 32-bit words does not fit a vocabulary of {vocab_size} tokens, which takes {expected}")]
    MaskSize {
        /// The words given.
        words: usize,
        /// The words needed.
        expected: usize,
        /// The size of the vocabulary.
        vocab_size: usize,
    },
    /// The text that completes the grammar is too long.
    #[error("completing the text takes {bytes} bytes at least, and max_bytes is {max_bytes}; allow more")]
    CompletionTooLong {
        /// The bytes it takes at least.
        bytes: u64,
        /// The bytes allowed.
        max_bytes: usize,
    },
    /// A budget of tokens that is too small from the start.
    #[error(
        "token_budget is {budget}, and the shortest completion that was found takes {needed} tokens; give at least that many"
    )]
    BudgetTooSmall {
        /// The tokens allowed.
        budget: usize,
        /// The tokens that are needed, as far as is known.
        needed: usize,
    },
    /// No tokens are known that complete the text.
    #[error(
        "no tokens of the vocabulary are found that complete the text from here; leave token_budget out, or change the grammar"
    )]
    NoTokensComplete,
    /// Only single tokens may come.
    #[error("no text completes the grammar from here: a single token must come, which has no text")]
    NoTextCompletes,
    /// Canonical tokens are asked for, and it is not known what they are.
    #[error("canonical masks need the merges of the tokenizer; let the vocabulary learn its encoding first")]
    NoEncoding,
    /// The mask of a state in which each continuation is written otherwise by the tokenizer.
    #[error(
        "the text is not complete, and the tokenizer would not have written what leads on after these tokens; leave          canonical=True out, or allow more texts"
    )]
    NoCanonicalToken,
    /// The engine gave up.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
