//! Paths to the end of a text: what they take in bytes or tokens, short ones, and masks that keep one within a budget.
//!
//! One idea: a budget is kept as long as some path to the end is known that fits in what is left of it. Far from the end that
//! is plain from a bound on what one token can add; near it every place that a token may lead to is looked at.
//!
//! Rooms: [`costs`] (what parts of a grammar take), [`token_counts`] (what lexemes take in tokens), [`search`] (a short
//! path), [`bounds`] (what it takes after any one token), [`worst_cases`] (after the worst beginning of a lexeme), [`fresh`]
//! (what a text takes that differs from others), [`numbers_left`] (what arrays of different numbers take, by counting),
//! [`references`] (what references to declared names take), [`narrowing`] (masks near the end of a budget), [`shared_path`]
//! (for which tokens one path to the end is enough), [`token_list`] (those that lead to one place).
//!
//! # Example
//! With two tokens left after `{"a": 1` the mask has `2` and `}`, for `2` and then `}` fit; with one left it has `}` alone.

pub(crate) mod bounds;
pub(crate) mod costs;
pub(crate) mod fresh;
pub(crate) mod narrowing;
pub(crate) mod numbers_left;
pub(crate) mod references;
pub(crate) mod search;
pub(crate) mod shared_path;
pub(crate) mod token_counts;
pub(crate) mod token_list;
pub(crate) mod worst_cases;
