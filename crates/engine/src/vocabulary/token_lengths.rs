//! Tokens by the number of their bytes.

use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::trie::Trie;

/// Longer tokens, in bytes or in characters, are listed one by one; for shorter ones there are sets.
pub(crate) const LONG_TOKEN: usize = 24;

/// The tokens of a vocabulary by length.
pub struct Lengths {
    /// For each number of bytes, the tokens that have at most this many.
    no_longer: Vec<TokenSet>,
    /// The tokens that are longer than that, each with its number of bytes.
    longer: Vec<(u32, u32)>,
}

impl Lengths {
    /// Collects the tokens of a trie, whose ids are below `vocab_size`.
    pub fn new(trie: &Trie, vocab_size: usize) -> Lengths {
        let mut no_longer = vec![TokenSet::empty(vocab_size); LONG_TOKEN + 1];
        let mut longer = Vec::new();
        for node in 0..trie.len() {
            let (Some(token), depth) = (trie.entry_at(node), trie.depth(node)) else { continue };
            match no_longer.get_mut(depth) {
                Some(set) => set.insert(token),
                None => longer.push((token, depth as u32)),
            }
        }
        for most in 1..no_longer.len() {
            let (shorter, set) = no_longer.split_at_mut(most);
            let shorter = shorter[most - 1].words();
            set[0].words_mut().iter_mut().zip(shorter).for_each(|(word, shorter)| *word |= shorter);
        }
        Lengths { no_longer, longer }
    }

    /// Removes the tokens of more than `most` bytes.
    pub fn cut(&self, tokens: &mut TokenSet, most: u32) {
        match self.no_longer.get(most as usize) {
            Some(short) => tokens.words_mut().iter_mut().zip(short.words()).for_each(|(word, short)| *word &= short),
            None => self.longer.iter().filter(|&&(_, len)| len > most).for_each(|&(token, _)| tokens.remove(token)),
        }
    }

    /// The tokens of more than `most` bytes.
    pub fn longer(&self, most: u32) -> impl Iterator<Item = u32> + '_ {
        let all = self.no_longer.last().expect("there are many sets");
        let short = self.no_longer.get(most as usize).unwrap_or(all);
        let words = all.words().iter().zip(short.words()).map(|(all, short)| all & !short);
        let listed = words.zip((0..).step_by(32)).flat_map(|(mut word, first)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros())?;
                word &= word - 1;
                Some(first + bit)
            })
        });
        listed.chain(self.longer.iter().filter(move |&&(_, len)| len > most).map(|&(token, _)| token))
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let sets: usize = self.no_longer.iter().map(|set| set.words().len() * 4).sum();
        sets + self.longer.len() * size_of::<(u32, u32)>()
    }
}
