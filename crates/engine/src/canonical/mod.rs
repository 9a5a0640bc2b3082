//! Canonical tokens: whether a sequence of tokens is what the tokenizer itself would write for its text.
//!
//! One idea: a tokenizer cuts a text into pieces and merges each piece, and both are decided where tokens meet. So a
//! token may follow if it fits what is open at the end of the sequence, if no merge joins it with the token before, and
//! if the grammar then allows a continuation that the tokenizer would write.
//!
//! Rooms: [`encoder`] (how a tokenizer makes tokens: merges of two neighbours), [`pretokenizer`] (where pieces end),
//! [`cursor`] (what is open, as states of an automaton), [`viability`] (whether the grammar allows a canonical
//! continuation), [`whitespace`] (runs of whitespace), [`masks`] (a plain mask without what is not canonical).
//! [`encoding`] joins the first with what was built while it was used.
//!
//! # Example
//! The tokenizer merges `{` and `"`. At the start the plain mask is `{` and `{"`; after `{` a `"` must come, with which
//! it merges, so the canonical mask is `{"` alone.

pub(crate) mod cursor;
pub(crate) mod encoder;
pub(crate) mod encoding;
pub(crate) mod masks;
pub(crate) mod pretokenizer;
pub(crate) mod viability;
pub(crate) mod whitespace;

pub use self::encoder::source::{Alphabet, EncodingSource};
