//! A mask under construction, and what is known about it when it is done.

use std::sync::Arc;

use crate::lexeme::mask::LexemeMask;
use crate::parse::assumptions::Assumptions;
use crate::parse::unverified::{Unverified, VerifyReason};
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

/// A mask under construction; see [`OptimisticMask`].
pub(crate) struct Draft<'a> {
    pub vocabulary: &'a Tokens,
    pub mask: &'a mut [u32],
    pub lexeme_mask: Option<Arc<LexemeMask>>,
    pub flipped: Vec<u32>,
    pub joined: bool,
    pub cleared: Vec<u32>,
    pub unverified: Vec<Unverified>,
}

impl Draft<'_> {
    /// An empty mask.
    pub fn new<'a>(vocabulary: &'a Tokens, mask: &'a mut [u32], flipped: Vec<u32>) -> Draft<'a> {
        Draft {
            vocabulary,
            mask,
            lexeme_mask: None,
            flipped,
            joined: false,
            cleared: Vec::new(),
            unverified: Vec::new(),
        }
    }

    /// Adds a token.
    pub fn allow(&mut self, token: u32) {
        if token_set::insert(self.mask, token) {
            self.flipped.push(token);
        }
    }

    /// Adds many tokens. There are hundreds of tokens of whitespace beside digits, so this loop is worth its own
    /// function.
    pub fn allow_all(&mut self, tokens: &[u32]) {
        let Draft { mask, flipped, .. } = self;
        flipped.reserve(tokens.len());
        for &token in tokens {
            if token_set::insert(mask, token) {
                flipped.push(token);
            }
        }
    }

    /// Adds the tokens contained in a lexeme.
    pub fn add_lexeme_mask(&mut self, lexeme_mask: &Arc<LexemeMask>) {
        if self.lexeme_mask.is_none() && self.flipped.is_empty() {
            lexeme_mask.write(self.mask);
            self.lexeme_mask = Some(lexeme_mask.clone());
        } else if let Some(listed) = &lexeme_mask.listed {
            self.allow_all(listed);
        } else if self.has_finite() {
            // The new lexeme mask is the greater one: start from it, and add the few tokens so far.
            let before = self.lexeme_mask.replace(lexeme_mask.clone());
            let listed = before.as_ref().and_then(|before| before.listed.as_deref()).unwrap_or_default();
            let mut others = Vec::with_capacity(listed.len() + self.flipped.len());
            for &token in listed.iter().chain(&self.flipped) {
                if token_set::get(self.mask, token) {
                    token_set::clear(self.mask, token);
                    others.push(token);
                }
            }
            self.flipped.clear();
            lexeme_mask.write(self.mask);
            self.allow_all(&others);
            self.cleared.clear();
        } else {
            lexeme_mask.add_inside(self.mask);
            self.joined = true;
        }
    }

    /// Whether the tokens so far are few and all listed.
    fn has_finite(&self) -> bool {
        !self.joined && self.lexeme_mask.as_ref().is_none_or(|before| before.listed.is_some())
    }

    /// Notes a token as unverified if one of its keys may not be new. `within` says that the first of these keys began
    /// before the token.
    #[inline]
    pub fn note(&mut self, token: u32, assumed: Assumptions, within: bool) {
        if assumed.is_any() {
            self.note_assumed(token, assumed, within);
        }
    }

    fn note_assumed(&mut self, token: u32, assumed: Assumptions, within: bool) {
        if within {
            if assumed.seen || assumed.whole || assumed.reserved {
                self.unverified.push(Unverified::begun_key(token));
            }
        } else if (assumed.seen || assumed.whole || assumed.reserved) && self.vocabulary.whole_keys().are_in(token) {
            let escapes = || self.vocabulary.token_bytes(token).is_some_and(|bytes| bytes.contains(&b'\\'));
            if assumed.seen || assumed.whole || escapes() {
                let unclear = self.vocabulary.whole_keys().are_unclear_in(token);
                self.unverified.push(Unverified { token, cause: VerifyReason::WholeKey { unclear } });
            }
        }
        if assumed.locally_finite {
            self.unverified.push(Unverified::begun_key(token));
        }
        if assumed.element {
            self.unverified.push(Unverified::element(token));
        }
        if assumed.repeat {
            self.unverified.push(Unverified::repeat(token));
        }
    }
}

/// How a mask was made: from a lexeme mask, and the tokens in which it differs from that.
pub(crate) struct OptimisticMask {
    /// The lexeme mask that the mask started from; `None` if it started empty.
    pub lexeme_mask: Option<Arc<LexemeMask>>,
    /// The tokens flipped since, in any order. A token that was flipped back is listed twice.
    pub flipped: Vec<u32>,
    /// Whether a second lexeme mask was added, in which case `flipped` is incomplete.
    pub joined: bool,
    /// The tokens that were cleared; they may have been set again. They are few.
    pub cleared: Vec<u32>,
    /// The tokens that are wrong if one of their keys or elements is not new.
    pub unverified: Vec<Unverified>,
}
