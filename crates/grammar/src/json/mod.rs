//! JSON as text: strings, numbers, layout and formats, as expressions over bytes. Grammars are unknown here.
//!
//! One idea: a JSON value has many spellings; each option that says which ones are allowed is decided here, in one
//! place, and the schema compiler never writes bytes of its own.
//!
//! What nearly every grammar needs is built once, in [`values`], from [`strings`], [`intervals`] and [`layout`]; those
//! take it as [`common::Common`], so that they can build it, too.
//!
//! # Example
//! The integer is `-?(0|[1-9][0-9]*)`; the key `a` is the bytes `"a"`, and the layout puts `: ` after it.

pub(crate) mod common;
pub(crate) mod format;
pub(crate) mod formats;
pub(crate) mod intervals;
pub(crate) mod kind;
pub(crate) mod layout;
pub(crate) mod lengths;
pub(crate) mod numbers;
pub(crate) mod spelling;
pub(crate) mod string_value;
pub(crate) mod strings;
pub(crate) mod surface;
pub(crate) mod values;
