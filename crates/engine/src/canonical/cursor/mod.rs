//! How far a sequence of tokens is settled: a cursor of a few bytes, numbered, with the tokens that may follow it.
//!
//! One idea: cursors are states, and reading a token is a step of an automaton ([`table`]), so what may follow is computed once
//! for each cursor.
//!
//! # Example
//! After `{"` the cursor waits at the border after `"`: whether `a` may follow is settled by the merges of `"` and `a`.

pub(crate) mod class_strings;
pub(crate) mod history;
pub(crate) mod masks;
pub(crate) mod state;
pub(crate) mod table;
