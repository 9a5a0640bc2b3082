//! Whether the grammar allows a canonical continuation after a token: the only question that needs both.
//!
//! One idea: it is one query over layers ([`layer`]; their order is in [`order`]). Most tokens are decided without the
//! grammar or within their lexeme ([`context_independent`]); for the rest, a search looks for one continuation that is
//! canonical and allowed ([`search`]).
//!
//! # Example
//! If the tokenizer would have written `{"a` otherwise whatever follows, `{"` followed by `a` is a dead end, and `a` is
//! refused.

pub(crate) mod ahead;
pub(crate) mod by_lexeme;
pub(crate) mod by_whitespace;
pub(crate) mod context_independent;
pub(crate) mod crossing;
pub(crate) mod dead_ends;
pub(crate) mod ends;
pub(crate) mod equivalence;
pub(crate) mod equivalent_tokens;
pub(crate) mod forced;
pub(crate) mod in_lexeme;
pub(crate) mod judging;
pub(crate) mod layer;
pub(crate) mod next_characters;
pub(crate) mod one_by_one;
pub(crate) mod order;
pub(crate) mod pending;
pub(crate) mod question;
pub(crate) mod search;
pub(crate) mod sparse;
pub(crate) mod successors;
pub(crate) mod unmergeable;
