//! What the tests of the engine share.

use std::sync::Arc;

use stencilm_engine::{CompiledGrammar, GrammarMatcher, Limits, MatcherOptions, Vocabulary};
use stencilm_grammar::Grammar;

/// A matcher at the beginning of a text. Its lexemes are let go as often as they can be, so that what it has accepted is read
/// again and again.
pub fn matcher(grammar: Grammar, vocabulary: Arc<Vocabulary>) -> GrammarMatcher {
    let limits = Limits { lexicon_bytes: 0, ..Limits::default() };
    let compiled = Arc::new(CompiledGrammar::with_limits(Arc::new(grammar), vocabulary, limits).unwrap());
    GrammarMatcher::new(compiled, &MatcherOptions::default()).unwrap()
}
