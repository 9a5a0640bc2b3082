//! A set of token ids as 32-bit words: bit `id % 32` of word `id / 32`, the layout every engine uses for its masks.

use stencilm_support::memory;

pub(crate) const BITS: u32 = 32;

/// The number of words that are tested together when searching for tokens.
pub(crate) const CHUNK: usize = 16;

/// A set of tokens that owns its words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenSet {
    words: Vec<u32>,
}

impl TokenSet {
    /// The empty set for a vocabulary of `vocab_size`.
    pub fn empty(vocab_size: usize) -> TokenSet {
        TokenSet { words: vec![0; vocab_size.div_ceil(32)] }
    }

    /// The words, lowest ids first.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        memory::of_list(&self.words)
    }

    /// The words, for writing.
    pub fn words_mut(&mut self) -> &mut [u32] {
        &mut self.words
    }

    /// Whether the token is in the set.
    pub fn contains(&self, id: u32) -> bool {
        get(&self.words, id)
    }

    /// Adds a token.
    pub fn insert(&mut self, id: u32) {
        set(&mut self.words, id);
    }

    /// Adds the tokens of a range.
    pub fn insert_range(&mut self, ids: std::ops::Range<u32>) {
        if ids.is_empty() {
            return;
        }
        let (first, last) = (ids.start / BITS, (ids.end - 1) / BITS);
        for word in first..=last {
            let from = if word == first { ids.start % BITS } else { 0 };
            let to = if word == last { (ids.end - 1) % BITS } else { BITS - 1 };
            self.words[word as usize] |= (u32::MAX << from) & (u32::MAX >> (BITS - 1 - to));
        }
    }

    /// Takes a token out.
    pub fn remove(&mut self, id: u32) {
        clear(&mut self.words, id);
    }

    /// How many tokens are in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no token is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The tokens, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        iter(&self.words)
    }
}

/// The tokens whose bits are set, ascending.
pub(crate) fn iter(words: &[u32]) -> impl Iterator<Item = u32> + '_ {
    let (chunks, rest) = words.as_chunks::<CHUNK>();
    Tokens { chunks, rest, here: &[], word: 0, next: 0 }
}

/// The part of a set that an iterator has not visited yet.
struct Tokens<'w> {
    chunks: &'w [[u32; CHUNK]],
    rest: &'w [u32],
    /// The remaining words of the current chunk, and the remaining bits of the word before them.
    here: &'w [u32],
    word: u32,
    /// The number of the next word.
    next: u32,
}

impl Iterator for Tokens<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        while self.word == 0 {
            if let Some((&word, after)) = self.here.split_first() {
                (self.word, self.here) = (word, after);
                self.next += 1;
                continue;
            }
            // Most masks are empty almost everywhere.
            let empty =
                self.chunks.iter().take_while(|chunk| chunk.iter().fold(0, |all, word| all | word) == 0).count();
            self.next += (empty * CHUNK) as u32;
            match self.chunks[empty..].split_first() {
                Some((chunk, after)) => (self.here, self.chunks) = (chunk, after),
                None if self.rest.is_empty() => {
                    self.chunks = &[];
                    return None;
                }
                None => (self.here, self.chunks, self.rest) = (self.rest, &[], &[]),
            }
        }
        let token = (self.next - 1) * BITS + self.word.trailing_zeros();
        self.word &= self.word - 1;
        Some(token)
    }
}

/// Removes the tokens that are not in another set.
pub(crate) fn keep(words: &mut [u32], others: &[u32]) {
    words.iter_mut().zip(others).for_each(|(word, other)| *word &= other);
}

/// Adds the tokens of another set.
pub(crate) fn add(words: &mut [u32], others: &[u32]) {
    words.iter_mut().zip(others).for_each(|(word, other)| *word |= other);
}

/// Removes the tokens of another set.
pub(crate) fn take_out(words: &mut [u32], others: &[u32]) {
    words.iter_mut().zip(others).for_each(|(word, other)| *word &= !other);
}

/// Whether a set contains all of the first `vocab_size` tokens.
pub(crate) fn has_all(words: &[u32], vocab_size: usize) -> bool {
    let whole = vocab_size / BITS as usize;
    let rest = (1u32 << (vocab_size as u32 % BITS)) - 1;
    words[..whole].iter().all(|&word| word == u32::MAX) && words.get(whole).is_none_or(|word| word & rest == rest)
}

/// The number of words that are copied at once. It is less than what makes the C library use the processor's string
/// instructions: on some AMD processors these are eight times as slow if the target lies a few bytes after the source
/// modulo 4,096, as may happen with a large numpy array.
const COPIED: usize = 500;

/// Writes a whole mask.
///
/// # Panics
/// When the masks have different numbers of words.
pub(crate) fn copy(mask: &mut [u32], words: &[u32]) {
    assert_eq!(mask.len(), words.len(), "masks of one vocabulary");
    for (mask, words) in mask.chunks_mut(COPIED).zip(words.chunks(COPIED)) {
        mask.copy_from_slice(words);
    }
}

/// Whether a bit is set.
#[inline]
pub(crate) fn get(words: &[u32], id: u32) -> bool {
    words[id as usize / 32] & (1 << (id % 32)) != 0
}

/// Sets a bit.
#[inline]
pub(crate) fn set(words: &mut [u32], id: u32) {
    words[id as usize / 32] |= 1 << (id % 32);
}

/// Sets a bit; returns whether it was clear.
#[inline]
pub(crate) fn insert(words: &mut [u32], id: u32) -> bool {
    let (word, bit) = (&mut words[id as usize / 32], 1 << (id % 32));
    let is_new = *word & bit == 0;
    *word |= bit;
    is_new
}

/// Flips a bit.
#[inline]
pub(crate) fn flip(words: &mut [u32], id: u32) {
    words[id as usize / 32] ^= 1 << (id % 32);
}

/// Clears a bit.
#[inline]
pub(crate) fn clear(words: &mut [u32], id: u32) {
    words[id as usize / 32] &= !(1 << (id % 32));
}

/// The tokens that only one of two masks has, ascending.
pub(crate) fn difference(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut tokens = Vec::new();
    for (index, (a, b)) in a.iter().zip(b).enumerate() {
        let mut differ = a ^ b;
        while differ != 0 {
            tokens.push(index as u32 * BITS + differ.trailing_zeros());
            differ &= differ - 1;
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn differences_are_found_by_bit() {
        assert_eq!(difference(&[0b101, 1 << 31], &[0b110, 0]), [0, 1, 63]);
        assert!(difference(&[7], &[7]).is_empty());
    }

    proptest! {
        #[test]
        fn tokens_are_the_bits_that_are_set(picks in prop::collection::vec(0u32..3000, 0..40), len in 0usize..100) {
            let mut words = vec![0; len];
            picks.iter().filter(|&&id| (id as usize) < len * 32).for_each(|&id| set(&mut words, id));
            let expected: Vec<u32> = (0..len as u32 * 32).filter(|&id| get(&words, id)).collect();
            prop_assert_eq!(iter(&words).collect::<Vec<u32>>(), expected);
        }
    }
}
