//! A tokenizer as the engine sees it: its tokens, and the lexemes that all grammars compiled for it share.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use crate::lexicon::Lexicon;
use crate::tokens::{Tokens, VocabularyError};

/// The tokens of a tokenizer. Immutable; shared by every grammar compiled for it.
pub struct Vocabulary {
    tokens: Tokens,
    lexicon: Mutex<Arc<Mutex<Lexicon>>>,
}

impl Vocabulary {
    /// A vocabulary of these tokens: see [`Tokens::new`].
    ///
    /// # Errors
    /// [`VocabularyError`] for ids or sizes that do not fit.
    pub fn new<T: AsRef<[u8]>>(
        tokens: &[Option<T>],
        vocab_size: usize,
        stop_token_ids: &[u32],
        special_tokens: &[(u32, String)],
    ) -> Result<Vocabulary, VocabularyError> {
        let tokens = Tokens::new(tokens, vocab_size, stop_token_ids, special_tokens)?;
        let lexicon = Lexicon::new(tokens.trie().max_depth());
        Ok(Vocabulary { tokens, lexicon: Mutex::new(Arc::new(Mutex::new(lexicon))) })
    }

    /// The lexemes that all grammars of this vocabulary share. A lexicon that has outgrown its budget is
    /// replaced by an empty one for grammars to come; the old one lives as long as the grammars that use it.
    pub(crate) fn lexicon(&self, budget_bytes: usize) -> Arc<Mutex<Lexicon>> {
        let mut current = self.lexicon.lock().expect("no thread panics while it holds the lexicon");
        let too_large = current.try_lock().is_ok_and(|mut lexicon| lexicon.has_outgrown(budget_bytes));
        if too_large {
            *current = Arc::new(Mutex::new(Lexicon::new(self.tokens.trie().max_depth())));
        }
        current.clone()
    }

    /// Gives grammars to come an empty lexicon in place of this one, which has reached a limit.
    pub(crate) fn retire_lexicon(&self, full: &Arc<Mutex<Lexicon>>) {
        let mut current = self.lexicon.lock().expect("no thread panics while it holds the lexicon");
        if Arc::ptr_eq(&current, full) {
            *current = Arc::new(Mutex::new(Lexicon::new(self.tokens.trie().max_depth())));
        }
    }
}

impl Deref for Vocabulary {
    type Target = Tokens;

    fn deref(&self) -> &Tokens {
        &self.tokens
    }
}
