//! How the tokenizer makes tokens of a piece of text: merges, and what follows from them for two neighbours.
//!
//! One idea: byte-pair encoding is decided where tokens meet. Two tokens are neighbours in the tokenizer's own output
//! exactly if no merge joins parts of them at their border ([`merges`]).
//!
//! # Example
//! The tokenizer merges `{` and `"`, so `{` followed by a token that begins with `"` is never its own output: `{"` is.

pub(crate) mod facts;
pub(crate) mod left_spine;
pub(crate) mod merges;
pub(crate) mod pairs;
pub(crate) mod source;
pub(crate) mod texts;
