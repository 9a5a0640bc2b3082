//! Questions about an expression that need no text: how far away a match is, short matches, all matches if they are
//! few.
//!
//! One idea: each is a search over derivatives, nearest first, with bounded work.
//!
//! # Example
//! The shortest match of the integer is one byte, `0`; after `-` one more byte is needed.

pub(crate) mod cardinality;
pub(crate) mod completions;
pub(crate) mod first_bytes;
pub(crate) mod fold;
pub(crate) mod languages;
pub(crate) mod shortest;
pub(crate) mod suffixes;
pub(crate) mod texts;
pub(crate) mod witness;
