//! Canonical masks: a plain mask less the tokens that the tokenizer would not write there.
//!
//! Entry point: [`masks`].
//!
//! # Example
//! At the start the plain mask is `{` and `{"`; canonical is `{"` alone, for the tokenizer merges the two.

pub(crate) mod masks;
