//! What tokens are made of: the groups of their characters, how many bytes they have, and where a byte stands in them.
//!
//! Found once for a vocabulary. With it the tokens that are runs of a class of characters, as `[a-z0-9-]+` reads them, are nearly
//! all found by a few operations on sets of tokens, and where such runs stop before a quote or a dash is read off a list.

use std::sync::Arc;

use crate::groups::groups_on_the_way;
use crate::tokenset::TokenSet;
use crate::trie::Trie;

/// Tokens of more bytes are listed one by one.
const MANY_BYTES: usize = 24;

/// Tokens by the number of their bytes.
pub struct Lengths {
    /// By number of bytes, those that have no more.
    no_longer: Vec<TokenSet>,
    /// Those that have more than all of these, each with its number.
    longer: Vec<(u32, u32)>,
}

impl Lengths {
    /// Takes out the tokens of more bytes than this.
    pub fn cut(&self, tokens: &mut TokenSet, most: u32) {
        match self.no_longer.get(most as usize) {
            Some(short) => tokens.words_mut().iter_mut().zip(short.words()).for_each(|(word, short)| *word &= short),
            None => self.longer.iter().filter(|&&(_, len)| len > most).for_each(|&(token, _)| tokens.remove(token)),
        }
    }

    fn memory_bytes(&self) -> usize {
        let sets: usize = self.no_longer.iter().map(|set| set.words().len() * 4).sum();
        sets + self.longer.len() * size_of::<(u32, u32)>()
    }
}

/// See the module.
pub struct Makeup {
    /// By group of characters, the tokens in which one of it is.
    with_group: Vec<TokenSet>,
    lengths: Arc<Lengths>,
    /// By byte, the nodes of the trie to which it leads, and the groups of what is before it; for some bytes.
    before: Vec<Vec<(u32, u32)>>,
}

/// Whether the places of a byte are listed: letters and digits stand nearly everywhere, and seldom end anything.
fn is_listed(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric()
}

impl Makeup {
    /// Of the tokens of a trie, whose entries are below `vocab_size`.
    pub fn new(trie: &Trie, vocab_size: usize) -> Makeup {
        let mut with_group = vec![TokenSet::empty(vocab_size); 32];
        let mut no_longer = vec![TokenSet::empty(vocab_size); MANY_BYTES + 1];
        let mut longer = Vec::new();
        let mut before = vec![Vec::new(); 128];
        let groups = groups_on_the_way((0..trie.len()).map(|node| (trie.byte(node), trie.depth(node))));
        let mut path = vec![0u32; trie.max_depth() + 1];
        for (node, &on_the_way) in groups.iter().enumerate() {
            let (byte, depth) = (trie.byte(node), trie.depth(node));
            path[depth] = on_the_way;
            if is_listed(byte) {
                before[usize::from(byte)].push((node as u32, path[depth - 1]));
            }
            let Some(token) = trie.entry_at(node) else { continue };
            let mut rest = on_the_way;
            while rest != 0 {
                with_group[rest.trailing_zeros() as usize].insert(token);
                rest &= rest - 1;
            }
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
        before.iter_mut().for_each(Vec::shrink_to_fit);
        Makeup { with_group, lengths: Arc::new(Lengths { no_longer, longer }), before }
    }

    /// The tokens by their lengths.
    pub fn lengths(&self) -> &Arc<Lengths> {
        &self.lengths
    }

    /// The tokens of `all` that have characters of some groups only.
    pub fn within(&self, all: &TokenSet, groups: u32) -> TokenSet {
        let mut tokens = all.clone();
        for others in (0..32).filter(|group| groups & 1 << group == 0).map(|group| &self.with_group[group]) {
            tokens.words_mut().iter_mut().zip(others.words()).for_each(|(word, others)| *word &= !others);
        }
        tokens
    }

    /// The nodes to which a byte leads, ascending, each with the groups of the characters before it; `None` for a byte
    /// whose places are not listed.
    pub fn places(&self, byte: u8) -> Option<&[(u32, u32)]> {
        is_listed(byte).then(|| &*self.before[usize::from(byte)])
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let sets: usize = self.with_group.iter().map(|set| set.words().len() * 4).sum();
        let before: usize = self.before.iter().map(|nodes| nodes.len() * size_of::<(u32, u32)>()).sum();
        sets + before + self.lengths.memory_bytes()
    }
}
