//! The intermediate form that every notation becomes: rules over regular lexemes, with special nodes for JSON objects
//! and arrays.
//!
//! One idea: a [`grammar`] is frozen data. It knows no notation, no vocabulary and no text. A [`builder`] collects its
//! nodes, and what matches no text is dropped before it is frozen ([`productive`]). It knows JSON only as text
//! ([`crate::json`]): every set of expressions begins with the strings and numbers that nearly all grammars have.
//!
//! Entry points: [`grammar::Grammar`], [`builder::GrammarBuilder`], [`crate::serialize`].
//!
//! # Example
//! The schema of an object with one required integer member `a`, laid out as `{"a": 12}`, is one object node: opened by
//! `{`, closed by `}`, with the declared member `"a"` whose value is the lexeme `-?(0|[1-9][0-9]*)`.

pub(crate) mod builder;
pub(crate) mod cardinality_bounds;
mod declared_before;
pub(crate) mod exprs;
pub(crate) mod fixpoint;
pub(crate) mod free_text;
pub(crate) mod grammar;
pub(crate) mod key_space;
pub(crate) mod markers;
pub(crate) mod names;
pub(crate) mod objects;
pub(crate) mod productive;
pub(crate) mod report;
mod split_literals;
pub(crate) mod syntax_error;
