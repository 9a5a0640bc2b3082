//! Regular expressions over bytes as hash-consed values: equal expressions have one number.
//!
//! One idea: constructors bring expressions into a normal form, so that languages that are obviously equal are one
//! expression, and an expression has few derivatives.
//!
//! Entry points: [`expr_set::ExprSet`], [`byte_set::ByteSet`].
//!
//! # Example
//! The integer `-?(0|[1-9][0-9]*)` is a concatenation of an optional byte and a union; `[0-9]*` is an unbounded
//! repetition.

pub(crate) mod arena;
mod bound;
pub(crate) mod byte_classes;
pub(crate) mod byte_set;
pub(crate) mod clamp;
pub(crate) mod expr_set;
mod giving_up;
pub(crate) mod heads;
mod import;
pub(crate) mod language;
mod language_exprs;
pub(crate) mod node;
pub(crate) mod normal;
mod number_exprs;
pub(crate) mod print;
pub(crate) mod required_bytes;
pub(crate) mod reverse;
