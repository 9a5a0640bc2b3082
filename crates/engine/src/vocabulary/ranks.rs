//! Tokens by their order in the trie, which neighbours in an index share.

use crate::vocabulary::trie::Trie;

/// In place of a rank: the token is not in the trie.
pub(crate) const NO_RANK: u32 = u32::MAX;

/// The tokens of a trie in its own order.
pub(crate) struct Ranks {
    /// By rank.
    pub tokens: Vec<u32>,
    /// By token; [`NO_RANK`] for those that spell nothing.
    pub rank_of: Vec<u32>,
}

impl Ranks {
    pub fn new(trie: &Trie, vocab_size: usize) -> Ranks {
        let tokens: Vec<u32> = (0..trie.len()).filter_map(|node| trie.entry_at(node)).collect();
        let mut rank_of = vec![NO_RANK; vocab_size];
        for (rank, &token) in tokens.iter().enumerate() {
            rank_of[token as usize] = rank as u32;
        }
        Ranks { tokens, rank_of }
    }
}
