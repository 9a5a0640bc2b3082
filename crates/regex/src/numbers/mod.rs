//! Sets of numbers as states: the JSON texts of all numbers between two bounds that are multiples of some numbers and
//! of none of some others.
//!
//! The rest of such a set after some digits ([`Number`]) is found by arithmetic, not by building an automaton: the rest
//! of the text depends only on how the digits compare with those of the bounds, on their remainder, and on the position
//! of the decimal point. Whether anything is left is arithmetic as well, so a set never leads into a dead end and no
//! search is needed.
//!
//! [`decimal`] has exact numbers, [`set`] the requested set, [`state`] its rest after some text, [`reach`] whether that
//! can be completed.
//!
//! # Example
//! Of the integers from 10 to 15, after `1` one digit from 0 to 5 is left, and after `2` nothing.

mod decimal;
mod reach;
mod set;
mod state;
#[cfg(test)]
mod tests;

pub use decimal::{Decimal, MAX_DIGITS, Plain};
pub use set::{End, LARGE_EXPONENTS, NumberForm, NumberSet, NumberSetError, SMALL_EXPONENTS};
pub use state::Number;
pub(crate) use state::Rest;
