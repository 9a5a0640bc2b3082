//! Grammar times vocabulary: the trie of a tokenizer, the pushdown machine of a grammar, and the masks that both give.
//!
//! The flow is one way: [`Grammar`](stencilm_grammar::Grammar) × [`Vocabulary`] → [`CompiledGrammar`] →
//! [`GrammarMatcher`] → mask words.

mod batch;
mod canonical;
mod compiled;
mod completion;
mod distinct;
mod error;
mod index;
mod lexeme;
mod limits;
mod machine;
mod mask;
mod matcher;
pub mod naive;
mod parse;
mod query;
mod serialize;
mod shared;
mod state;
mod switches;
mod vocabulary;
mod warm_up;

pub use batch::Workers;
pub use canonical::{Alphabet, EncodingSource};
pub use compiled::CompiledGrammar;
pub use error::{EngineError, MatcherError};
pub use index::{IndexBuilder, IndexError, IndexLimits, SavedIndexError, TokenIndex, Unspelled};
pub use limits::Limits;
pub use mask::delta::MaskPatch;
pub use matcher::preparation::{Preparation, PreparationBudget, PreparationEnd, PreparationStep};
pub use matcher::{GrammarMatcher, MatcherOptions};
pub use query::boundary_tokens::Span;
pub use query::candidates::Candidate;
pub use query::draft_tree::{DraftTree, DraftTreeError};
pub use query::prefix::{Expected, Explanation, MAX_FORCED_BYTES, Status, Verdict, shown};
pub use serialize::SavedError;
pub use shared::Vocabulary;
#[cfg(feature = "switches")]
pub use switches::Switch;
pub use vocabulary::token_set::TokenSet;
pub use vocabulary::tokens::{Tokens, VocabularyError};
pub use vocabulary::trie::Trie;
