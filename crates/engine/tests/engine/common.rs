//! What the tests of the engine share.

use std::sync::Arc;

use stencilm_engine::{CompiledGrammar, GrammarMatcher, MatcherOptions, Vocabulary};
use stencilm_grammar::Grammar;

/// A matcher at the beginning of a text.
pub fn matcher(grammar: Grammar, vocabulary: Arc<Vocabulary>) -> GrammarMatcher {
    let compiled = Arc::new(CompiledGrammar::new(Arc::new(grammar), vocabulary).unwrap());
    GrammarMatcher::new(compiled, &MatcherOptions::default()).unwrap()
}
