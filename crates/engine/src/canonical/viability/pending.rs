//! The tokens of a mask that are still undecided.

use super::context_independent::IndependentTokens;
use crate::canonical::encoder::facts::Encoder;
use crate::mask::cache::KeptMask;
use crate::vocabulary::token_set;

/// The tokens of a mask of which it is undecided whether they are viable.
pub(crate) struct Pending<'m> {
    encoding: &'m Encoder,
    mask: &'m [u32],
    /// The tokens that fit after the token before.
    fitting: &'m [u32],
    pending_tokens: &'m mut PendingTokens,
    /// Whether the whitespace tokens are decided, except those that were added.
    whitespace_decided: bool,
    /// If set, classes of equivalent tokens are added where they are not known to be viable. Otherwise all tokens were
    /// added before, and the viable ones are removed.
    pub by_groups: bool,
    pub is_listed: bool,
}

impl<'m> Pending<'m> {
    /// None of them is listed yet.
    pub fn new(
        encoding: &'m Encoder,
        (mask, fitting): (&'m [u32], &'m [u32]),
        pending_tokens: &'m mut PendingTokens,
    ) -> Pending<'m> {
        pending_tokens.clear(mask.len());
        let (whitespace_decided, by_groups, is_listed) = Default::default();
        Pending { encoding, mask, fitting, pending_tokens, whitespace_decided, by_groups, is_listed }
    }

    /// Adds a token if it is in the mask.
    pub fn add(&mut self, token: u32) {
        if token_set::get(self.mask, token) && !(self.whitespace_decided && self.encoding.is_whitespace(token)) {
            self.pending_tokens.add(token);
        }
    }

    /// Records that the whitespace tokens are decided except these.
    pub fn decide_whitespace(&mut self, open: &[u32]) {
        self.whitespace_decided = true;
        open.iter()
            .filter(|&&token| token_set::get(self.mask, token))
            .for_each(|&token| self.pending_tokens.add(token));
    }

    /// Adds the whitespace tokens, unless they are decided.
    pub fn add_whitespace_tokens(&mut self) {
        if !self.whitespace_decided {
            self.encoding.whitespace_tokens.iter().for_each(|&token| self.add(token));
        }
    }

    /// Adds all tokens that no dense thread decides.
    pub fn add_all<'r>(&mut self, dense: impl Iterator<Item = &'r IndependentTokens>) {
        let mut tokens = self.mask.to_vec();
        dense.for_each(|independent| independent.known.clear_independent(&mut tokens));
        token_set::iter(&tokens).for_each(|token| self.add(token));
    }

    /// Adds the tokens within the lexeme of a dense thread that are grouped by equivalence.
    pub fn add_inside(&mut self, independent: &IndependentTokens) {
        let groups = independent.known.inside.iter().flat_map(|equivalence| &equivalence.groups);
        groups.flat_map(|group| &group.tokens).for_each(|&(_, token)| self.add(token));
    }

    /// Adds the tokens that end or cross the lexeme of the dense thread with whose lexeme mask the mask began, and
    /// those outside that lexeme mask.
    pub fn add_outside(&mut self, independent: &IndependentTokens, kept: Option<&KeptMask>) {
        independent.ending.iter().flat_map(|ending| &ending.tokens).for_each(|&token| self.add(token));
        let beside = kept.and_then(|kept| kept.beside(&independent.dense.here.mask));
        beside.into_iter().flatten().for_each(|&token| self.add(token));
    }

    /// Whether it is undecided whether a fitting token is viable.
    pub fn asks(&self, token: u32) -> bool {
        let is_open = if self.by_groups { token_set::get(self.mask, token) } else { self.pending_tokens.has(token) };
        is_open && self.fits(token)
    }

    /// Whether a token fits after the token before.
    pub fn fits(&self, token: u32) -> bool {
        token_set::get(self.fitting, token)
    }

    /// Records whether equivalent tokens are known to be viable.
    pub fn decide(&mut self, tokens: impl Iterator<Item = u32>, are_viable: bool) {
        match self.by_groups {
            true if are_viable => {}
            true => tokens.for_each(|token| self.add(token)),
            false if are_viable => tokens.for_each(|token| self.settle(token)),
            false => {}
        }
    }

    /// Records that a token is viable.
    pub fn settle(&mut self, token: u32) {
        self.pending_tokens.settle(token);
    }

    /// The undecided tokens.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.pending_tokens.iter()
    }
}

/// Some tokens of a vocabulary, as a list and a set, whose memory is reused from mask to mask.
#[derive(Default)]
pub(crate) struct PendingTokens {
    /// All tokens added since it was last cleared.
    added: Vec<u32>,
    /// Those of them that are left, as a set.
    left: Vec<u32>,
}

impl PendingTokens {
    /// Removes all tokens, and reserves `words` words for a vocabulary.
    pub fn clear(&mut self, words: usize) {
        self.added.drain(..).for_each(|token| token_set::clear(&mut self.left, token));
        self.left.resize(words, 0);
    }

    pub fn add(&mut self, token: u32) {
        if !self.has(token) {
            token_set::set(&mut self.left, token);
            self.added.push(token);
        }
    }

    /// Removes a token; it must not be added again.
    pub fn settle(&mut self, token: u32) {
        token_set::clear(&mut self.left, token);
    }

    pub fn has(&self, token: u32) -> bool {
        token_set::get(&self.left, token)
    }

    /// The tokens that are left.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.added.iter().copied().filter(|&token| self.has(token))
    }
}
