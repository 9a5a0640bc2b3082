//! How the tokenizer cuts a text into pieces before it merges: its pattern as an automaton.
//!
//! One idea: whether there is a cut at a border depends on a few characters after it, so each border has a small set of
//! next bytes that decide it ([`PreTokenizer::after`](pattern::PreTokenizer::after)).
//!
//! # Example
//! If the pattern separates digits from punctuation, the tokenizer itself never writes `2}` as one token.

pub(crate) mod pattern;
pub(crate) mod suffixes;
