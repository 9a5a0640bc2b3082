//! Tokens that are asked about: a list and a set, with the room kept from mask to mask.

use crate::vocabulary::token_set;

/// Some tokens of a vocabulary.
#[derive(Default)]
pub(crate) struct PendingTokens {
    /// All that were added since it was empty.
    added: Vec<u32>,
    /// Those of them that are left.
    left: Vec<u32>,
}

impl PendingTokens {
    /// Forgets all of them, and makes room for a vocabulary of so many words.
    pub fn clear(&mut self, words: usize) {
        self.added.drain(..).for_each(|token| token_set::clear(&mut self.left, token));
        self.left.resize(words, 0);
    }

    /// Adds a token.
    pub fn add(&mut self, token: u32) {
        if !self.has(token) {
            token_set::set(&mut self.left, token);
            self.added.push(token);
        }
    }

    /// Takes out a token, which is not added again.
    pub fn settle(&mut self, token: u32) {
        token_set::clear(&mut self.left, token);
    }

    pub fn has(&self, token: u32) -> bool {
        token_set::get(&self.left, token)
    }

    /// Those that are left.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.added.iter().copied().filter(|&token| self.has(token))
    }
}
