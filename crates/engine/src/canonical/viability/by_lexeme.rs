//! The first layer of a mask: tokens that are viable in any context, or wherever their lexeme comes.

use super::layer::Layer;
use super::question::Question;
use crate::error::EngineError;

/// A token is viable if some next byte begins another piece in any case, or if the lexeme of a dense thread continues
/// after it. All results are cached for all grammars of the vocabulary.
pub(crate) struct ByLexeme;

impl Layer for ByLexeme {
    fn decide(&self, question: &mut Question<'_, '_>) -> Result<(), EngineError> {
        let Question { search, threads, cursor, dense, context_independent, anywhere, .. } = question;
        for &thread in threads.iter() {
            let found = context_independent.of_thread(search, anywhere, thread, *cursor)?;
            dense.extend(found.map(|found| (thread, found)));
        }
        Ok(())
    }
}
