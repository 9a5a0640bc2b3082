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

/// Takes out of a set what is not in another one.
pub(crate) fn keep(words: &mut [u32], others: &[u32]) {
    words.iter_mut().zip(others).for_each(|(word, other)| *word &= other);
}

/// Whether all of so many tokens are in a set.
pub(crate) fn has_all(words: &[u32], vocab_size: usize) -> bool {
    let whole = vocab_size / BITS as usize;
    let rest = (1u32 << (vocab_size as u32 % BITS)) - 1;
    words[..whole].iter().all(|&word| word == u32::MAX) && words.get(whole).is_none_or(|word| word & rest == rest)
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
