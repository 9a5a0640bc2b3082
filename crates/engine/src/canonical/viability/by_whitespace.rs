//! The layer of whitespace tokens, of which vocabularies have hundreds.

use super::layer::Layer;
use super::question::Question;
use crate::canonical::whitespace::runs::numbered;
use crate::error::EngineError;

/// Applies if all threads are before whitespace, or one of several is. What may follow the whitespace, and how much of
/// it may come, decides. The results are cached for all grammars of the vocabulary.
pub(crate) struct ByWhitespace;

impl Layer for ByWhitespace {
    fn decide(&self, question: &mut Question<'_, '_>) -> Result<(), EngineError> {
        let Question { search, threads, cursor, whitespace_cache, in_lexemes, .. } = question;
        question.whitespace = search.before_whitespace(in_lexemes, threads)?;
        if let Some(whitespace) = &question.whitespace {
            let decided = whitespace_cache.decided_anyway(search.encoding, search.cursors, whitespace, *cursor);
            question.found.set(&decided.dead);
            question.pending.decide_whitespace(&decided.open);
            return Ok(());
        }
        if question.threads.len() > 1 {
            question.list_pending();
            for thread in question.threads.clone() {
                let Question { search, cursor, whitespace_cache, in_lexemes, .. } = question;
                let Some(whitespace) = search.before_whitespace(in_lexemes, &[thread])? else { continue };
                let known = whitespace_cache.known(search.encoding, search.cursors, whitespace.next, *cursor);
                for (token, numbered_token) in numbered(search.encoding) {
                    let answers = known.is_viable_anyway(numbered_token, &whitespace);
                    if answers.is_some_and(|answers| answers.iter().all(|&is_viable| is_viable != Some(false))) {
                        question.pending.settle(token);
                    }
                }
            }
        }
        Ok(())
    }
}
