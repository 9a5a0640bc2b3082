//! Grammar times vocabulary: the trie of a tokenizer, the pushdown machine of a grammar, and the masks between them.
//!
//! The flow is one way: [`Grammar`](stencilm_grammar::Grammar) × [`Vocabulary`] → [`CompiledGrammar`] →
//! [`GrammarMatcher`] → mask words.

mod arrays;
mod batch;
mod blanks;
mod cache;
mod candidates;
mod captures;
mod classes;
mod compiled;
mod completion;
mod costs;
mod cpus;
mod draft;
mod error;
mod exits;
mod first;
mod fork;
mod frame;
mod index;
mod interner;
mod json_text;
mod left;
mod lexicon;
mod limits;
mod machine;
mod marks;
mod mask;
mod matcher;
pub mod naive;
mod names;
mod objects;
mod open_runs;
mod query;
mod record;
mod row;
mod rows;
mod run;
mod serialize;
mod spans;
mod stacks;
mod token_edges;
mod tokens;
mod tokenset;
mod trie;
mod unique;
mod vocabulary;
mod walk;

pub use batch::Workers;
pub use candidates::Candidate;
pub use compiled::CompiledGrammar;
pub use cpus::available_cpus;
pub use draft::{DraftTree, DraftTreeError};
pub use error::{EngineError, MatcherError};
pub use index::{IndexBuilder, IndexError, IndexLimits, SavedIndexError, TokenIndex};
pub use limits::Limits;
pub use matcher::{GrammarMatcher, MatcherOptions};
pub use query::{Expected, Explanation, MAX_FORCED_BYTES, Status, Verdict, shown};
pub use serialize::SavedError;
pub use spans::Span;
pub use tokens::{Tokens, VocabularyError};
pub use tokenset::TokenSet;
pub use trie::Trie;
pub use vocabulary::Vocabulary;
