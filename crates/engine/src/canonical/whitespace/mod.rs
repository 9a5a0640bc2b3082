//! Whitespace between the parts of a JSON text, which tokenizers merge into long runs.
//!
//! One idea: a run of whitespace is read as a whole, so that its many spellings cost one query.
//!
//! # Example
//! The layout of the example has one space after `:`, and `: ` is one token; `:` and a space as two tokens are not
//! canonical.

pub(crate) mod before;
pub(crate) mod cached;
pub(crate) mod json;
pub(crate) mod runs;
