//! The explicit automaton over tokens of a regular grammar: its states, and which token leads from each to which.
//!
//! It is built from the minimal automaton over bytes, by one walk of the trie for each state. Numbered along the trie,
//! the tokens that lead to one state come in long runs (all that begin with a word lead the same way), so transitions
//! are stored as runs. For a class of characters, that takes a tenth of what single entries would take, and never more
//! than one and a half times as much.
//!
//! # Example
//! `[0-9]+` has two states. From both, the tokens `1` and `12` lead to the second, at which the text may end; no other
//! token leads anywhere.

mod build;
mod bytes;
mod error;
mod minimize;
mod saved;
mod spelling;
mod token_index;

pub use build::IndexBuilder;
pub use error::{IndexError, IndexLimits, Unspelled};
pub use saved::SavedIndexError;
pub use token_index::TokenIndex;
