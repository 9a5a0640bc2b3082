//! Nodes with many children have a list of them, so that few are looked at where few bytes are live.
//!
//! The children of a node lie as far apart as there is much below them. Where the vocabulary is not in the cache, to pass
//! over the hundred that follow a quote or a comma took longer than everything else in a mask.

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;
use stencilm_support::{Extension, FEW};

use super::nodes::Nodes;

/// A node with at least so many children, and so many nodes below it, has a list of them.
const MANY_CHILDREN: usize = 12;
/// Lists of children, of the nodes that have many.
#[derive(Clone, Default)]
pub(super) struct Lists {
    pub parts: FxHashMap<u32, Children>,
    pub nodes: Vec<u32>,
}

/// The children of a node: the bytes that lead to them, and where the nodes, in the same order, begin in the list of all.
#[derive(Clone, Copy)]
pub(super) struct Children {
    pub bytes: ByteSet,
    pub start: u32,
}

/// A sparse automaton, in which most strings die early, for [`Trie::walk_few`](super::Trie::walk_few).
pub trait Reader {
    /// What may go wrong.
    type Error;

    /// The live bytes of a state, perhaps some more.
    fn live_bytes(&mut self, state: u32) -> Result<ByteSet, Self::Error>;

    /// The state after a byte, if it is live; `node` is where it leads to in the trie, and `has_children` whether anything
    /// is below.
    fn step(&mut self, state: u32, byte: u8, node: u32, has_children: bool) -> Result<Option<u32>, Self::Error>;
}

/// The states on a path through a trie, by depth, and the nodes that are still to be walked: a walk needs it, and leaves
/// nothing in it.
#[derive(Default)]
pub struct Path {
    pub(super) states: Vec<u32>,
    pub(super) ranges: Vec<(usize, usize)>,
}

impl Extension for Path {}

impl Lists {
    /// The lists of a trie that has none yet.
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

    /// The child that a byte leads to, which has one.
    pub(super) fn node(&self, children: &Children, byte: u8) -> usize {
        self.nodes[children.start as usize + children.bytes.rank(byte)] as usize
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.len() * 4 + self.parts.len() * (size_of::<Children>() + 8)
    }
}
