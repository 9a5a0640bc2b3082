//! How much of a sequence of tokens is decided: a numbered cursor of a few bytes, with the tokens that may follow it.
//!
//! One idea: cursors are states, and reading a token is a step of an automaton ([`table`]), so what may follow is
//! computed once for each cursor.
//!
//! # Example
//! After `{"` the cursor waits at the border after `"`: whether `a` may follow depends on the merges of `"` and `a`.

pub(crate) mod class_strings;
pub(crate) mod history;
pub(crate) mod masks;
pub(crate) mod state;
pub(crate) mod table;
