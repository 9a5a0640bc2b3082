//! A budget of whitespace for a whole JSON text: near its end, masks leave out the tokens that would exceed it.
//!
//! Whitespace can nearly always be left out, so there is no search after a token. If the grammar or the vocabulary has
//! no other way on, the budget gives way and not the text.

use super::GrammarMatcher;
use crate::vocabulary::token_set;

impl GrammarMatcher {
    /// How many bytes of whitespace between the parts of a JSON text are left; less than none where the budget gave way, and
    /// `None` without a budget.
    pub fn whitespace_budget_left(&self) -> Option<i64> {
        let budget = self.whitespace.as_ref()?;
        Some(budget.bytes as i64 - self.now().whitespace.bytes as i64)
    }

    /// How many bytes of whitespace the whole text may have between its parts, where that is bounded.
    pub fn whitespace_budget(&self) -> Option<usize> {
        self.whitespace.as_ref().map(|budget| budget.bytes)
    }

    /// Whether some token could overrun the budget.
    pub(super) fn is_short_of_whitespace(&self) -> bool {
        let longest = self.compiled.vocabulary().trie().max_depth();
        self.whitespace_budget_left().is_some_and(|left| left < i64::try_from(longest).unwrap_or(i64::MAX))
    }

    /// Takes from a mask the tokens that would overrun the budget, if others are left; says whether it did anything.
    pub(super) fn spare_whitespace(&self, mask: &mut [u32]) -> bool {
        if !self.is_short_of_whitespace() {
            return false;
        }
        let Some(budget) = &self.whitespace else { return false };
        let (vocabulary, now) = (self.compiled.vocabulary(), self.now().whitespace);
        let most = budget.bytes.max(now.bytes);
        let ids = 0..u32::try_from(vocabulary.vocab_size()).expect("ids of tokens are 32 bits wide");
        let tokens = ids.filter_map(|id| Some((id, vocabulary.token_bytes(id)?)));
        let mut taken: Vec<u32> = Vec::new();
        for &token in budget.spending(now, tokens) {
            // Most tokens with whitespace are words, which a mask between the parts of a text does not have.
            if !token_set::get(mask, token) {
                continue;
            }
            if vocabulary.token_bytes(token).is_some_and(|bytes| now.after(bytes).bytes > most) {
                token_set::clear(mask, token);
                taken.push(token);
            }
        }
        if mask.iter().all(|&word| word == 0) {
            taken.drain(..).for_each(|token| token_set::set(mask, token));
        }
        !taken.is_empty()
    }
}
