//! Derivatives and automata: what is left of an expression after a byte (Brzozowski, 1964), kept as states.
//!
//! One idea: an automaton over several expressions at once is built lazily, each state when it is first reached; an
//! accepting state says which of them matched.
//!
//! Entry points: [`deriver::Deriver`], [`dfa::Dfa`].
//!
//! # Example
//! After `1` the integer is `[0-9]*`, after `0` or after `-0` the empty string, after `-` it is `0|[1-9][0-9]*`. Four
//! states.

mod absorb;
pub(crate) mod deriver;
pub(crate) mod dfa;
pub(crate) mod search;
pub(crate) mod split;
