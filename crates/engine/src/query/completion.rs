//! A short text that completes the grammar from a matcher's state.

use crate::completion::costs::Costs;
use crate::completion::references::shortest_name;
use crate::completion::search::{Completion, Piece};
use crate::error::MatcherError;
use crate::matcher::GrammarMatcher;

impl GrammarMatcher {
    /// A text that completes the grammar after what was accepted; empty if the text is complete already. It is a
    /// shortest one, with these exceptions: where alternatives are compared, intersections and complements count with a
    /// lower bound of their length; a key must be new; a reference counts as one to a name that exists; and the search
    /// for a shorter text ends after too many paths. The same state gives the same text. Nothing is changed.
    ///
    /// # Errors
    /// [`MatcherError::CompletionTooLong`] when it takes more than `max_bytes`, [`MatcherError::NoTextCompletes`] when
    /// only single tokens that spell no text may come, and limits.
    pub fn shortest_completion(&mut self, max_bytes: usize) -> Result<Vec<u8>, MatcherError> {
        if self.is_terminated() {
            return Ok(Vec::new());
        }
        let compiled = self.compiled().clone();
        let completion = self.probe(|run, start| {
            let reference = shortest_name(run, start);
            run.complete(&mut Costs::in_bytes(compiled.grammar(), reference)?, start, max_bytes as u64)
        })?;
        match completion {
            Completion::Found(pieces) => {
                let texts = pieces.into_iter().map(|piece| match piece {
                    Piece::Text(text) => text,
                    Piece::Token(_) => unreachable!("tokens do not come where bytes are counted"),
                });
                Ok(texts.collect::<Vec<_>>().concat())
            }
            Completion::TooLong(bytes) => Err(MatcherError::CompletionTooLong { bytes, max_bytes }),
            Completion::Never => Err(MatcherError::NoTextCompletes),
        }
    }
}
