//! Grammar times vocabulary: the trie of a tokenizer, the pushdown machine of a grammar, and the masks between them.
//!
//! The flow is one way: [`Grammar`](stencilm_grammar::Grammar) × [`Vocabulary`] → [`CompiledGrammar`] →
//! [`GrammarMatcher`] → mask words.

mod cache;
mod compiled;
mod error;
mod first;
mod json_text;
mod left;
mod lexicon;
mod machine;
mod mask;
mod matcher;
pub mod naive;
mod run;
mod stacks;
mod token_edges;
mod tokens;
mod tokenset;
mod trie;
mod vocabulary;
mod walk;

pub use compiled::CompiledGrammar;
pub use error::{EngineError, MatcherError};
pub use matcher::{GrammarMatcher, MatcherOptions};
pub use tokens::{Tokens, VocabularyError};
pub use tokenset::TokenSet;
pub use trie::Trie;
pub use vocabulary::Vocabulary;
