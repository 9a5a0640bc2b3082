//! Tokens in the order of the trie, so that tokens with a common beginning have adjacent ranks.

use crate::vocabulary::trie::Trie;

/// The rank of a token that is not in the trie.
pub(crate) const NO_RANK: u32 = u32::MAX;

/// The tokens of a trie in trie order.
pub(crate) struct Ranks {
    /// The tokens by rank.
    pub tokens: Vec<u32>,
    /// The ranks by token; [`NO_RANK`] for tokens without bytes.
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
