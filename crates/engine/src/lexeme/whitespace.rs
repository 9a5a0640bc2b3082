//! The tokens of a vocabulary by the whitespace that they begin with.
//!
//! Whitespace may come at every second position of a JSON text, and nearly all nodes that a walk through the vocabulary
//! visits there are runs of whitespace. The tokens that are only whitespace are the same everywhere: a lexeme mask.
//! What comes after a run depends only on the next byte, so a walk starts from the nodes after runs that have such a
//! byte.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;

use crate::lexeme::mask::LexemeMask;
use crate::vocabulary::tokens::Tokens;

/// Whitespace before a lexeme that does not begin with it. It is counted in the state itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OptionalWhitespace {
    /// The bytes.
    pub set: ByteSet,
    /// The greatest number of bytes; `None` where there is no bound.
    pub max: Option<u32>,
}

/// Set in the state of a thread that is before or within the whitespace of its expansion; the other bits count the
/// bytes left.
pub const IN_WHITESPACE: u32 = 1 << 30;

/// The runs of the bytes of one set in a vocabulary.
pub struct WhitespaceRuns {
    /// Tokens that are such runs entirely, with their lengths, shortest first.
    tokens: Vec<(u32, u32)>,
    /// For every other byte, the nodes of the trie that it leads to after a run, with the run's length, shortest first;
    /// the run may be empty.
    after: Vec<Vec<(u32, u32)>>,
    longest: u32,
    masks: FxHashMap<u32, Arc<LexemeMask>>,
}

impl WhitespaceRuns {
    /// Collects the runs of these bytes.
    pub fn new(vocabulary: &Tokens, set: ByteSet) -> WhitespaceRuns {
        let trie = vocabulary.trie();
        let mut tokens = Vec::new();
        let mut after = vec![Vec::new(); 256];
        let mut node = 0;
        while node < trie.len() {
            let (byte, run) = (trie.byte(node), trie.depth(node) as u32 - 1);
            if set.contains(byte) {
                tokens.extend(trie.entry_at(node).map(|token| (run + 1, token)));
                node += 1;
            } else {
                after[usize::from(byte)].push((run, node as u32));
                node += trie.size(node);
            }
        }
        tokens.sort_unstable();
        after.iter_mut().for_each(|nodes| nodes.sort_unstable());
        let longest = tokens.iter().chain(after.iter().flatten()).map(|&(run, _)| run).max().unwrap_or(0);
        WhitespaceRuns { tokens, after, longest, masks: FxHashMap::default() }
    }

    /// A number of whitespace bytes, clamped to the longest run.
    pub fn clamped(&self, most: Option<u32>) -> u32 {
        most.unwrap_or(self.longest).min(self.longest)
    }

    /// The mask of tokens that are at most `most` whitespace bytes.
    pub fn mask(&mut self, vocabulary: &Tokens, most: Option<u32>) -> Arc<LexemeMask> {
        let most = self.clamped(most);
        let tokens = &self.tokens;
        let mask = self.masks.entry(most).or_insert_with(|| {
            let count = tokens.partition_point(|&(run, _)| run <= most);
            let tokens = tokens[..count].iter().map(|&(_, token)| token).collect();
            Arc::new(LexemeMask::without_crossings(vocabulary.vocab_size(), tokens))
        });
        mask.clone()
    }

    /// The tokens that are at most `most` whitespace bytes.
    pub fn tokens(&self, most: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        let most = self.clamped(most);
        self.tokens.iter().take_while(move |&&(run, _)| run <= most).map(|&(_, token)| token)
    }

    /// The nodes that a byte leads to after at most `most` whitespace bytes.
    pub fn after(&self, byte: u8, most: Option<u32>) -> &[(u32, u32)] {
        let nodes = &self.after[usize::from(byte)];
        match most {
            None => nodes,
            Some(most) => &nodes[..nodes.partition_point(|&(run, _)| run <= most)],
        }
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let nodes: usize = self.after.iter().map(|nodes| nodes.len() * 8 + 24).sum();
        self.tokens.len() * 8 + nodes + self.masks.values().map(|mask| mask.memory_bytes()).sum::<usize>()
    }
}
