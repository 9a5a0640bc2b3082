//! The result for a mask of many tokens: those that are not viable, for every possible token before them.

use super::search::Search;
use crate::canonical::cursor::table::CursorId;
use crate::canonical::encoding::Encoding;
use crate::canonical::viability::ends::last_character;
use crate::vocabulary::token_set;

/// Tokens of a mask that are not viable.
#[derive(Clone, Default)]
pub(crate) struct DeadEnds {
    /// Where no merge joins them with the token before, and where one does; ascending.
    tokens: [Vec<u32>; 2],
    /// Whether both lists are equal, as for whitespace; set once they are sorted.
    same: bool,
    /// Tokens that were not examined, each with whether it is unmerged: they did not fit after the token before.
    open: Vec<(u32, bool)>,
}

impl DeadEnds {
    /// Removes them from a mask after a token.
    pub fn clear(&self, encoding: &Encoding, before: Option<u32>, mask: &mut [u32]) {
        if self.same {
            return self.tokens[0].iter().for_each(|&token| token_set::clear(mask, token));
        }
        for (tokens, unmerged) in self.tokens.iter().zip([true, false]) {
            for &token in tokens {
                if token_set::get(mask, token) && encoding.stay_unmerged(before, token) == unmerged {
                    token_set::clear(mask, token);
                }
            }
        }
    }

    pub(crate) fn add(&mut self, token: u32, unmerged: bool) {
        self.tokens[usize::from(!unmerged)].push(token);
    }

    /// Replaces the lists.
    pub fn set(&mut self, tokens: &[Vec<u32>; 2]) {
        self.tokens.clone_from(tokens);
    }

    /// How a token follows the token before: whether unmerged, and the cursor after it; `None` where it does not fit.
    /// The cases that are not examined are noted as open.
    pub fn case(
        &mut self,
        search: &mut Search<'_, '_>,
        (cursor, before): (CursorId, Option<u32>),
        token: u32,
        fits: bool,
    ) -> Option<(bool, CursorId)> {
        if !fits {
            self.open.extend([(token, true), (token, false)]);
            return None;
        }
        let unmerged = search.encoding.stay_unmerged(before, token);
        let after_both = search.cursors.advance_both(search.encoding, cursor, token);
        if after_both[usize::from(unmerged)].is_some() {
            self.open.push((token, !unmerged));
        }
        Some((unmerged, after_both[usize::from(!unmerged)]?))
    }

    pub(crate) fn sort(&mut self) {
        self.tokens.iter_mut().for_each(|tokens| tokens.sort_unstable());
        self.same = self.tokens[0] == self.tokens[1];
    }

    /// The same without some tokens, which must be ascending.
    pub(crate) fn but_for(&self, tokens: &[u32]) -> DeadEnds {
        let is_other = |token: &u32| tokens.binary_search(token).is_err();
        DeadEnds {
            tokens: self.tokens.each_ref().map(|tokens| tokens.iter().copied().filter(is_other).collect()),
            same: self.same,
            open: self.open.iter().copied().filter(|(token, _)| is_other(token)).collect(),
        }
    }

    /// Whether a token is a dead end. `unmerged` says that no merge joins it with the token before.
    pub fn has(&self, token: u32, unmerged: bool) -> bool {
        self.tokens[usize::from(!unmerged)].binary_search(&token).is_ok()
    }

    /// Whether another result is equal for the tokens of a mask that fit after a token. Tokens that end within a
    /// character are not compared: they are not searched where a lexeme shows that it continues after them.
    pub fn answers_the_same(
        &self,
        others: &DeadEnds,
        encoding: &Encoding,
        before: Option<u32>,
        fitting: &[u32],
        mask: &[u32],
    ) -> bool {
        let of = |dead_ends: &DeadEnds| -> std::collections::BTreeSet<u32> {
            let ends_whole = |token: u32| encoding.tokens().token_bytes(token).and_then(last_character).is_some();
            let comes =
                |&&token: &&u32| token_set::get(mask, token) && token_set::get(fitting, token) && ends_whole(token);
            let all = dead_ends.tokens.iter().flatten().filter(comes).copied();
            all.filter(|&token| dead_ends.has(token, encoding.stay_unmerged(before, token))).collect()
        };
        of(self) == of(others)
    }

    /// Whether a token that was not examined fits after a token.
    pub fn is_open(&self, encoding: &Encoding, before: Option<u32>, fitting: &[u32]) -> bool {
        let fits = |&(token, unmerged): &(u32, bool)| {
            token_set::get(fitting, token) && encoding.stay_unmerged(before, token) == unmerged
        };
        self.open.iter().any(fits)
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        (self.tokens[0].len() + self.tokens[1].len()) * 4 + self.open.len() * 8 + size_of::<DeadEnds>()
    }
}
