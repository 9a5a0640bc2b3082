//! Lists of children for nodes with many of them, so that a walk touches few nodes where few bytes are live.
//!
//! The more nodes lie below the children of a node, the further apart the children are. Where the vocabulary is not in
//! the processor's cache, skipping over the hundred children after a quote or a comma took longer than the rest of a
//! mask.

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;
use stencilm_support::{Extension, FEW};

use super::nodes::Nodes;

/// The least number of children of a node with a list. It must also have enough nodes below it.
const MANY_CHILDREN: usize = 12;
/// The lists of children.
#[derive(Clone, Default)]
pub(super) struct Lists {
    pub parts: FxHashMap<u32, Children>,
    pub nodes: Vec<u32>,
}

/// The children of a node: the bytes that lead to them, and where their nodes, in the same order, begin in the common
/// list.
#[derive(Clone, Copy)]
pub(super) struct Children {
    pub bytes: ByteSet,
    pub start: u32,
}

/// A sparse automaton, in which most strings die early, for [`Trie::walk_few`](super::Trie::walk_few).
pub trait Reader {
    type Error;

    /// The live bytes of a state; the set may be too large.
    fn live_bytes(&mut self, state: u32) -> Result<ByteSet, Self::Error>;

    /// The state after a byte, if that byte is live; `node` is the node that it leads to, and `has_children` says
    /// whether anything is below.
    fn step(&mut self, state: u32, byte: u8, node: u32, has_children: bool) -> Result<Option<u32>, Self::Error>;
}

/// Scratch space of a walk, empty between walks: the states on the path by depth, and the nodes that are still to be
/// walked.
#[derive(Default)]
pub struct Path {
    pub(super) states: Vec<u32>,
    pub(super) ranges: Vec<(usize, usize)>,
}

impl Extension for Path {}

impl Lists {
    /// Builds the lists of a trie.
    pub(super) fn of(trie: &Nodes) -> Lists {
        let mut lists = Lists::default();
        for node in (0..trie.len()).filter(|&node| trie.size(node) >= FEW) {
            if trie.child_nodes(node).nth(MANY_CHILDREN - 1).is_some() {
                let bytes = trie.child_nodes(node).map(|child| trie.byte(child)).collect();
                lists.parts.insert(node as u32, Children { bytes, start: lists.nodes.len() as u32 });
                lists.nodes.extend(trie.child_nodes(node).map(|child| child as u32));
            }
        }
        lists
    }

    /// The child by byte; there must be one.
    pub(super) fn node(&self, children: &Children, byte: u8) -> usize {
        self.nodes[children.start as usize + children.bytes.rank(byte)] as usize
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.len() * 4 + self.parts.len() * (size_of::<Children>() + 8)
    }
}
