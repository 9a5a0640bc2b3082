//! Lexemes: the regular parts of a grammar, as automata, and the tokens that each state of an automaton can read.
//!
//! One idea: what a token does *inside* a lexeme depends only on the automaton's state, not on the grammar around it.
//! So it is computed once for each state and shared by all grammars of a vocabulary: the **lexeme mask** ([`mask`]). It
//! holds the tokens that stay inside and, separately, the **crossing tokens** ([`crossing`]), which end the lexeme
//! within the token and go on with a suffix that only the grammar can judge.
//!
//! Entry points: [`cache`] (automata and lexeme masks, shared), [`mask`], [`find`].
//!
//! # Example
//! At the beginning of the integer `-?(0|[1-9][0-9]*)`, `1` and `12` stay inside. `2}` crosses: the lexeme ends after
//! `2`, and the suffix is `}`. No other token begins with a digit or a minus.

pub(crate) mod cache;
pub(crate) mod crossing;
pub(crate) mod find;
pub(crate) mod ids;
pub(crate) mod mask;
pub(crate) mod shared;
pub(crate) mod single_tokens;
pub(crate) mod whitespace;
