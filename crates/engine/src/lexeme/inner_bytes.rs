//! Where single bytes occur within tokens, after at least one other byte.
//!
//! One idea: a lexeme such as a text up to a quote may end after each of its characters, so there are too many tokens
//! that go on after it to store them. But what follows such a lexeme begins with few bytes, and few tokens have one of
//! these inside. So the tokens that cross the end are found from the places of these bytes.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;
use stencilm_support::{SEARCHED, memory};

use crate::lexeme::crossing::Suffixes;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::Trie;

/// The places of one byte within the tokens of a vocabulary, not at their beginning.
pub(crate) struct InnerByte {
    /// The nodes that the byte leads to, in the order of their paths.
    nodes: Vec<u32>,
    /// The strings before the byte. An entry is an index into the nodes.
    paths: Trie,
    /// The suffixes that begin with the byte.
    suffixes: Arc<Suffixes>,
}

impl InnerByte {
    fn new(vocabulary: &Tokens, byte: u8) -> InnerByte {
        let trie = vocabulary.trie();
        let nodes = (0..trie.len()).filter(|&node| trie.byte(node) == byte && trie.depth(node) > 1);
        let nodes: Vec<u32> = nodes.map(|node| node as u32).collect();
        let suffixes = Arc::new(Suffixes::from(vocabulary, nodes.iter().copied()));
        let path = |node: u32| {
            let token = trie.entries_below(node as usize).next().expect("every node leads to a token");
            let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
            &bytes[..trie.depth(node as usize) - 1]
        };
        let mut by_path: Vec<(&[u8], u32)> = nodes.iter().map(|&node| (path(node), node)).collect();
        by_path.sort_unstable();
        let paths = Trie::from_sorted(by_path.iter().zip(0..).map(|(&(path, _), entry)| (path, entry)));
        InnerByte { nodes: by_path.into_iter().map(|(_, node)| node).collect(), paths, suffixes }
    }

    /// The strings before the byte. An entry is the number of a [node](InnerByte::node).
    pub fn paths(&self) -> &Trie {
        &self.paths
    }

    /// A node of the vocabulary's trie that the byte leads to.
    pub fn node(&self, number: u32) -> u32 {
        self.nodes[number as usize]
    }

    /// The suffixes of tokens that begin with the byte, at these nodes.
    pub fn suffixes(&self) -> &Arc<Suffixes> {
        &self.suffixes
    }

    fn memory_bytes(&self) -> usize {
        memory::of_list(&self.nodes) + self.paths.memory_bytes() + self.suffixes.memory_bytes()
    }
}

/// The places of bytes within the tokens of one vocabulary, each found when it is first needed.
#[derive(Clone, Default)]
pub(crate) struct InnerBytes {
    /// For each byte, the number of tokens through its places; a token counts once for each place.
    through: Option<Arc<[usize; 256]>>,
    known: FxHashMap<u8, Arc<InnerByte>>,
    bytes: usize,
}

impl InnerBytes {
    /// Whether these bytes are in few enough places to examine them.
    pub fn are_few(&mut self, vocabulary: &Tokens, bytes: &ByteSet) -> bool {
        let through = self.through.get_or_insert_with(|| Arc::new(tokens_through(vocabulary.trie())));
        let counts = bytes.iter().map(|byte| through[byte as usize]);
        counts.clone().all(|count| count <= SEARCHED) && counts.sum::<usize>() <= 3 * SEARCHED
    }

    /// The places of a byte.
    pub fn of(&mut self, vocabulary: &Tokens, byte: u8) -> Arc<InnerByte> {
        let known = self.known.entry(byte).or_insert_with(|| {
            let places = InnerByte::new(vocabulary, byte);
            self.bytes += places.memory_bytes();
            Arc::new(places)
        });
        known.clone()
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

/// For each byte, the number of tokens through its places within tokens.
fn tokens_through(trie: &Trie) -> [usize; 256] {
    // For each node, and for the end, how many tokens end at earlier nodes.
    let mut before = Vec::with_capacity(trie.len() + 1);
    let mut count = 0;
    for node in 0..trie.len() {
        before.push(count);
        count += usize::from(trie.entry_at(node).is_some());
    }
    before.push(count);
    let mut through = [0; 256];
    for node in (0..trie.len()).filter(|&node| trie.depth(node) > 1) {
        through[trie.byte(node) as usize] += before[node + trie.size(node)] - before[node];
    }
    through
}
