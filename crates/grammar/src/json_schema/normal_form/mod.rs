//! Normal form: a schema as alternatives, each a conjunction of constraints on one type, without `not`, `oneOf` or
//! `if`.
//!
//! One idea: alternatives are searched for, not multiplied out: what is already chosen decides most of what is left
//! ([`propagation`], [`case_split`]).
//!
//! [`atoms`], [`goals`] and [`merged`] are its data, [`normal`] what was found so far; [`clauses`] walks the goals
//! according to [`negation`], [`products`] and [`search`] combine their alternatives, and [`merge`] makes one
//! constraint of several.
//!
//! # Example
//! The schema of the example, which has no `type`, has one alternative for objects, with the member `a` required to be
//! an integer, and one for every other type.

pub(crate) mod atoms;
pub(crate) mod case_split;
pub(crate) mod cases;
pub(crate) mod clauses;
pub(crate) mod conflicts;
pub(crate) mod discriminators;
pub(crate) mod entailment;
pub(crate) mod evaluated;
pub(crate) mod goals;
pub(crate) mod merge;
pub(crate) mod merged;
pub(crate) mod negation;
pub(crate) mod normal;
pub(crate) mod overlap;
pub(crate) mod patterns;
pub(crate) mod products;
pub(crate) mod propagation;
pub(crate) mod search;
pub(crate) mod string_alternatives;
pub(crate) mod structural_key;
pub(crate) mod sums;
