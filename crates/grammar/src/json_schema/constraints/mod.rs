//! Constraints on the parts of a value: elements and members, merged and checked for contradictions.
//!
//! One idea: two constraints on the same thing become one, by intersection.
//!
//! # Example
//! `{"required": ["a"]}` beside `{"properties": {"a": {"type": "integer"}}}` is one declared member, `a`, required and
//! an integer.

pub(crate) mod elements;
pub(crate) mod members;
