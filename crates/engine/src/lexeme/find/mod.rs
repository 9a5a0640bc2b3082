//! Finding a lexeme mask: the finders in the order in which they are tried, from the cheapest to the walk, which always
//! works.
//!
//! One idea: most states of most lexemes resemble something known. A state that reads any run of characters is counted,
//! not walked ([`by_runs`], [`char_runs`], [`unbounded_runs`], [`language_runs`]); a state that resembles another takes
//! its mask and corrects the difference ([`by_larger`], [`by_difference`], [`bounded_patterns`], [`limits`]);
//! alternatives are computed one by one ([`alternatives`]); what is left is a walk through the trie ([`by_walk`]). All
//! give the same mask, which property tests check.
//!
//! Entry points: [`order`], which lists the finders, and [`finder`], the trait that each of them implements. [`found`]
//! turns their results into a mask.
//!
//! # Example
//! The integer of the example is tiny, so the walk finds its mask: it enters the subtrees of `1` and `2` and skips all
//! others.

pub(crate) mod alternatives;
pub(crate) mod bounded_patterns;
pub(crate) mod by_difference;
pub(crate) mod by_larger;
pub(crate) mod by_runs;
pub(crate) mod by_walk;
pub(crate) mod char_runs;
pub(crate) mod finder;
pub(crate) mod found;
pub(crate) mod language_runs;
pub(crate) mod limits;
pub(crate) mod order;
pub(crate) mod unbounded_runs;
