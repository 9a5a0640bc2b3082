//! A whitespace budget for a whole JSON text: near its end, masks leave out the tokens that would exceed it.
//!
//! Whitespace can nearly always be left out, so no search is needed. If the grammar or the vocabulary allows nothing
//! else, the budget is exceeded rather than the text cut off.

use super::GrammarMatcher;
use crate::vocabulary::token_set;

impl GrammarMatcher {
    /// The bytes of whitespace left between the parts of a JSON text; negative where the budget was exceeded, `None`
    /// without a budget.
    pub fn whitespace_budget_left(&self) -> Option<i64> {
        let budget = self.whitespace.as_ref()?;
        Some(budget.bytes as i64 - self.now().whitespace.bytes as i64)
    }

    /// The number of whitespace bytes that the text may have between its parts, if there is a budget.
    pub fn whitespace_budget(&self) -> Option<usize> {
        self.whitespace.as_ref().map(|budget| budget.bytes)
    }

    /// Whether some token could exceed the budget.
    pub(super) fn is_short_of_whitespace(&self) -> bool {
        let longest = self.compiled.vocabulary().trie().max_depth();
        self.whitespace_budget_left().is_some_and(|left| left < i64::try_from(longest).unwrap_or(i64::MAX))
    }

    /// Removes the tokens from a mask that would exceed the budget, if others are left; returns whether it removed any.
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
            // Most tokens with whitespace are words, which are not allowed between the parts of a text.
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
