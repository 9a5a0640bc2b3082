//! Whether the grammar allows a canonical continuation after a token: the only question for which both are needed.
//!
//! One idea: most tokens are decided without the grammar ([`context_independent`]) or within their lexeme ([`in_lexeme`]); for
//! the rest a search looks for one continuation that is canonical and allowed ([`search`]).
//!
//! # Example
//! If the tokenizer would have written `{"a` otherwise whatever comes, `{"` followed by `a` is a dead end, and `a` is refused.

pub(crate) mod context_independent;
pub(crate) mod crossing;
pub(crate) mod dead_ends;
pub(crate) mod ends;
pub(crate) mod equivalence;
pub(crate) mod forced;
pub(crate) mod in_lexeme;
pub(crate) mod judging;
pub(crate) mod pending;
pub(crate) mod pending_tokens;
pub(crate) mod queries;
pub(crate) mod search;
pub(crate) mod sparse;
pub(crate) mod successors;
pub(crate) mod unmergeable;
