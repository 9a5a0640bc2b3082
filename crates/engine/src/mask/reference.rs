//! Whole masks that others share: masks that differ from one in few tokens store only these tokens.
//!
//! The masks along the key of an object have the same tokens inside it and nearly the same ones that leave it, and so
//! do the keys of other grammars. Each of them took sixteen kilobytes of fresh memory, and writing these took longer
//! than comparing.

use std::sync::{Arc, OnceLock};

use stencilm_support::{Extension, MANY, Recent};

use crate::lexeme::mask::LexemeMask;
use crate::switches::Switch;
use crate::vocabulary::token_set;

/// A whole mask that others refer to.
pub(crate) struct Base {
    words: Box<[u32]>,
    /// The address of the lexeme mask that it was built from. A later lexeme mask may reuse the address, which only
    /// makes a comparison useless.
    lexeme_mask: usize,
    /// See [`crate::mask::delta::NamedRows`].
    pub number: OnceLock<u32>,
}

impl Base {
    /// Writes the mask.
    pub fn write(&self, mask: &mut [u32]) {
        token_set::copy(mask, &self.words);
    }

    /// Whether the mask has a token.
    pub fn has(&self, token: u32) -> bool {
        token_set::get(&self.words, token)
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        self.words.len() * 4
    }
}

/// The reference masks used most recently.
#[derive(Default)]
pub(crate) struct Bases(Recent<Arc<Base>>);

impl Bases {
    /// A recent reference mask that was built from the same lexeme mask, and the tokens, at most [`MANY`], in which
    /// this mask differs from it. Where there is none, this mask becomes one.
    pub fn near(&mut self, words: &[u32], lexeme_mask: Option<&Arc<LexemeMask>>) -> (Arc<Base>, Vec<u32>) {
        let lexeme_mask = lexeme_mask.map_or(0, |lexeme_mask| Arc::as_ptr(lexeme_mask).addr());
        let few = |base: &Arc<Base>| Some((base.clone(), few_differences(words, &base.words)?));
        let is_near =
            |base: &&Arc<Base>| Switch::MaskReference.is_on() && lexeme_mask != 0 && base.lexeme_mask == lexeme_mask;
        let near = self.0.iter().filter(is_near).find_map(few);
        if let Some((near, flipped)) = near {
            self.0.find(|base| Arc::ptr_eq(base, &near));
            return (near, flipped);
        }
        let base = Arc::new(Base { words: words.into(), lexeme_mask, number: OnceLock::new() });
        if lexeme_mask != 0 {
            self.0.push(base.clone());
        }
        (base, Vec::new())
    }
}

impl Extension for Bases {
    fn memory_bytes(&self) -> usize {
        self.0.iter().map(|base| base.bytes()).sum()
    }
}

/// The tokens that only one of two masks has, if they are few.
fn few_differences(a: &[u32], b: &[u32]) -> Option<Vec<u32>> {
    let mut tokens = Vec::new();
    for (index, (a, b)) in a.chunks(token_set::CHUNK).zip(b.chunks(token_set::CHUNK)).enumerate() {
        if a != b {
            let before = (index * token_set::CHUNK) as u32 * token_set::BITS;
            tokens.extend(token_set::difference(a, b).into_iter().map(|token| before + token));
            if tokens.len() > MANY {
                return None;
            }
        }
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::token_set::TokenSet;
    use stencilm_support::RECENT;

    #[test]
    fn near_masks_of_a_lexeme_mask_share_their_words() {
        let lexeme_mask = || Some(Arc::new(LexemeMask::of_set(TokenSet::empty(12_800), None, Box::default())));
        let (mut bases, one, other) = (Bases::default(), lexeme_mask(), lexeme_mask());
        let first = vec![0x0f0f_0f0f; 400];
        let (base, flipped) = bases.near(&first, one.as_ref());
        assert!(flipped.is_empty());
        let mut second = first.clone();
        (second[3], second[399]) = (0, u32::MAX);
        let (same, flipped) = bases.near(&second, one.as_ref());
        assert!(Arc::ptr_eq(&base, &same));
        assert_eq!(flipped.len(), 32);
        let mut written = vec![0; 400];
        base.write(&mut written);
        flipped.iter().for_each(|&token| token_set::flip(&mut written, token));
        assert_eq!(written, second);
        for (words, lexeme_mask) in [(vec![0; 400], &one), (first.clone(), &other), (first.clone(), &None)] {
            let (far, flipped) = bases.near(&words, lexeme_mask.as_ref());
            assert!(!Arc::ptr_eq(&base, &far) && flipped.is_empty());
        }
        for number in 0..2 * RECENT as u32 {
            bases.near(&vec![number << 8 | 0xff00_00ff; 400], one.as_ref());
        }
        assert_eq!(bases.memory_bytes(), RECENT * 1600);
    }
}
