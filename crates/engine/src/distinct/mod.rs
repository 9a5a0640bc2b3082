//! Distinct values: keys of an object and elements of a `uniqueItems` array, which must not repeat; and elements of
//! which two must be equal.
//!
//! One idea: almost always infinitely many values are left, so nothing needs to be checked until a value ends
//! ([`cardinality`]). Only if few are left, the engine asks whether a value that has begun can still become a new one,
//! by counting or by a search that stops at the first.
//!
//! Entry points: [`elements`], [`fresh_keys`], [`reserved_names`].
//!
//! # Example
//! If additional properties were allowed, the key after `"a": 1, "` could be any but `a`: the tokens that would
//! complete the name `a` are refused ([`reserved_names`]), and all others stay as they are.

pub(crate) mod cardinality;
pub(crate) mod elements;
pub(crate) mod exponents;
pub(crate) mod fresh_keys;
pub(crate) mod lasting;
pub(crate) mod new_values;
pub(crate) mod number_counts;
pub(crate) mod quoting;
pub(crate) mod reserved_names;
pub(crate) mod string_counts;
