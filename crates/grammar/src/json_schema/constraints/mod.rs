//! Constraints of one type: numbers, lengths, elements and members, merged and checked for contradictions.
//!
//! One idea: two constraints on the same thing become one, by intersection.
//!
//! # Example
//! `{"type": "integer"}` beside `{"minimum": 1}` is the integers from 1 on.

pub(crate) mod elements;
pub(crate) mod members;
