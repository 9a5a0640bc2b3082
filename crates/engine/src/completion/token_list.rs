//! Lists of tokens in their shortest form: most places of a mask have few tokens, and one place has nearly all.

use crate::switches::Switch;
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

/// The tokens that lead to one place.
pub(crate) enum TokenList {
    Few(Box<[u32]>),
    /// A bit for each token.
    Many(Box<[u32]>),
    /// All except these, one bit each.
    AllBut(Box<[u32]>),
}

impl TokenList {
    pub fn of(tokens: &[u32], vocabulary: &Tokens, words: usize) -> TokenList {
        if tokens.len() > words && Switch::CompletionLists.is_on() {
            return TokenList::Many(bits_of(tokens, vocabulary, words));
        }
        let mut all: Vec<u32> = tokens.iter().flat_map(|&token| same(vocabulary, token)).collect();
        all.sort_unstable();
        TokenList::Few(all.into())
    }

    pub fn has(&self, token: u32) -> bool {
        match self {
            TokenList::Few(tokens) => tokens.binary_search(&token).is_ok(),
            TokenList::Many(bits) => token_set::get(bits, token),
            TokenList::AllBut(bits) => !token_set::get(bits, token),
        }
    }

    /// At most `most` of those that a mask has.
    pub fn within(&self, mask: &[u32], most: usize) -> Vec<u32> {
        match self {
            TokenList::Few(tokens) => {
                tokens.iter().copied().filter(|&token| token_set::get(mask, token)).take(most).collect()
            }
            _ => token_set::iter(mask).filter(|&token| self.has(token)).take(most).collect(),
        }
    }

    pub fn take_from(&self, mask: &mut [u32]) {
        match self {
            TokenList::Few(tokens) => tokens.iter().for_each(|&token| token_set::clear(mask, token)),
            TokenList::Many(bits) => mask.iter_mut().zip(bits).for_each(|(mask, bits)| *mask &= !bits),
            TokenList::AllBut(bits) => mask.iter_mut().zip(bits).for_each(|(mask, bits)| *mask &= bits),
        }
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        let (TokenList::Few(words) | TokenList::Many(words) | TokenList::AllBut(words)) = self;
        words.len() * 4
    }
}

/// One bit for each token and for those with equal bytes.
pub(crate) fn bits_of(tokens: &[u32], vocabulary: &Tokens, words: usize) -> Box<[u32]> {
    let mut bits = vec![0; words];
    tokens.iter().flat_map(|&token| same(vocabulary, token)).for_each(|token| token_set::set(&mut bits, token));
    bits.into()
}

/// A token and those with equal bytes.
fn same(vocabulary: &Tokens, token: u32) -> impl Iterator<Item = u32> {
    vocabulary.same_bytes(token).iter().copied().chain([token])
}
