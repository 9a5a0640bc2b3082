//! A set of token ids as 32-bit words: bit `id % 32` of word `id / 32`, the layout every engine uses for its masks.

/// Bits of a word.
pub(crate) const BITS: u32 = 32;

/// So many words are looked at together where tokens are looked for.
const CHUNK: usize = 16;

/// A mask that owns its words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenSet {
    words: Vec<u32>,
}

impl TokenSet {
    /// No token out of a vocabulary of `vocab_size`.
    pub fn empty(vocab_size: usize) -> TokenSet {
        TokenSet { words: vec![0; vocab_size.div_ceil(32)] }
    }

    /// The words, lowest ids first.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The words, to write.
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
    // Most masks are empty nearly everywhere.
    let some = words.chunks(CHUNK).enumerate().filter(|(_, chunk)| chunk.iter().fold(0, |all, word| all | word) != 0);
    let words =
        some.flat_map(|(at, chunk)| chunk.iter().enumerate().map(move |(index, &word)| (at * CHUNK + index, word)));
    words.filter(|&(_, word)| word != 0).flat_map(|(index, word)| {
        let bits = std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)));
        bits.take_while(|&word| word != 0).map(move |word| index as u32 * 32 + word.trailing_zeros())
    })
}

/// Takes out of a set what is not in another one; says how many are left.
pub(crate) fn keep(words: &mut [u32], others: &[u32]) -> usize {
    // Bits are counted in four lanes of bytes, with no more words between two sums than the lanes can hold.
    let mut left = 0;
    for (words, others) in words.chunks_mut(CHUNK).zip(others.chunks(CHUNK)) {
        let mut lanes = 0u32;
        for (word, other) in words.iter_mut().zip(others) {
            *word &= other;
            let pairs = *word - (*word >> 1 & 0x5555_5555);
            let fours = (pairs & 0x3333_3333) + (pairs >> 2 & 0x3333_3333);
            lanes += (fours + (fours >> 4)) & 0x0F0F_0F0F;
        }
        let sums = (lanes & 0x00FF_00FF) + (lanes >> 8 & 0x00FF_00FF);
        left += (sums & 0xFFFF) + (sums >> 16);
    }
    left as usize
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

/// Turns a bit over.
#[inline]
pub(crate) fn flip(words: &mut [u32], id: u32) {
    words[id as usize / 32] ^= 1 << (id % 32);
}

/// Clears a bit.
#[inline]
pub(crate) fn clear(words: &mut [u32], id: u32) {
    words[id as usize / 32] &= !(1 << (id % 32));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_counted() {
        let mut word = 1u32;
        let mut next = || {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if word & 7 == 0 { u32::MAX } else { word }
        };
        for len in [0, 1, 15, 16, 17, 400] {
            let others: Vec<u32> = (0..len).map(|_| next()).collect();
            for words in [vec![u32::MAX; len], (0..len).map(|_| next()).collect()] {
                let expected: Vec<u32> = words.iter().zip(&others).map(|(word, other)| word & other).collect();
                let mut kept = words;
                let left = keep(&mut kept, &others);
                assert_eq!(kept, expected);
                assert_eq!(left, expected.iter().map(|word| word.count_ones() as usize).sum::<usize>());
                assert_eq!(iter(&kept).count(), left);
            }
        }
    }
}
