//! Paths to the end of a text: their cost in bytes or tokens, short ones, and masks that keep one within a budget.
//!
//! One idea: a budget can be kept as long as a path to the end is known that fits in the rest of it. Far from the end,
//! a bound on what one token can add shows that; near the end, every position that a token may lead to is examined.
//!
//! Rooms: [`costs`] (the cost of parts of a grammar), [`token_counts`] (the cost of lexemes in tokens), [`search`] (a
//! short path), [`bounds`] (its cost after any one token), [`worst_cases`] (after the worst beginning of a lexeme),
//! [`fresh`] (the cost of a text that differs from others), [`numbers_left`] (the cost of arrays of different numbers,
//! by counting), [`references`] (the cost of references to declared names), [`narrowing`] (masks near the end of a
//! budget), [`shared_path`] (the tokens for which one path to the end is enough), [`token_list`] (the tokens that lead
//! to one position).
//!
//! # Example
//! With two tokens left after `{"a": 1`, the mask has `2` and `}`, because `2` and then `}` fit; with one left, it has
//! `}` alone.

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
