//! The nodes of a trie without further indices: this is what the names of an object need.

use stencilm_support::memory;

/// Set in a node's entry when a string ends there.
pub(super) const ENDS: u32 = 1 << 31;

#[derive(Clone, Copy)]
pub(super) struct Node {
    /// The byte in the low 8 bits, and the depth above them (1 for a first byte).
    pub byte_and_depth: u32,
    /// The number of nodes in the subtree, including this one.
    pub size: u32,
    /// The entry of the first string that ends here or below, with the flag `ENDS` if it ends here.
    pub entry: u32,
}

impl Node {
    #[inline]
    pub fn depth(&self) -> usize {
        (self.byte_and_depth >> 8) as usize
    }
}

/// A set of distinct non-empty byte strings as a flat tree in depth-first order. Each string has a number, its entry.
#[derive(Clone, Default)]
pub struct Nodes(pub(super) Vec<Node>);

impl Nodes {
    /// The nodes of the strings, which must be sorted, distinct and not empty.
    ///
    /// # Panics
    /// When a string is longer than 16 MiB.
    pub fn from_sorted<'a>(strings: impl Iterator<Item = (&'a [u8], u32)>) -> Nodes {
        let mut nodes = Nodes::within(0, strings);
        nodes.0.shrink_to_fit();
        nodes
    }

    /// The same for strings with `bytes` bytes in total, few of which share a beginning.
    ///
    /// # Panics
    /// As [`Nodes::from_sorted`].
    pub fn within<'a>(bytes: usize, strings: impl Iterator<Item = (&'a [u8], u32)>) -> Nodes {
        let mut nodes: Vec<Node> = Vec::with_capacity(bytes);
        let mut path: Vec<usize> = Vec::new();
        let mut previous: &[u8] = &[];
        let close = |nodes: &mut Vec<Node>, path: &mut Vec<usize>, depth: usize| {
            while path.len() > depth {
                let node = path.pop().expect("the loop runs only while the path is longer than depth");
                nodes[node].size = (nodes.len() - node) as u32;
            }
        };
        for (string, entry) in strings {
            debug_assert!(previous < string, "strings come sorted, distinct and not empty");
            assert!(string.len() < 1 << 24 && entry < ENDS, "a depth fits in 24 bits, an entry in 31");
            let common = previous.iter().zip(string).take_while(|(a, b)| a == b).count();
            close(&mut nodes, &mut path, common);
            nodes.reserve(string.len() - common);
            for (depth, &byte) in string.iter().enumerate().skip(common) {
                path.push(nodes.len());
                let byte_and_depth = u32::from(byte) | ((depth as u32 + 1) << 8);
                nodes.push(Node { byte_and_depth, size: 0, entry });
            }
            nodes.last_mut().expect("a string is not empty, so it has a last node").entry |= ENDS;
            previous = string;
        }
        close(&mut nodes, &mut path, 0);
        Nodes(nodes)
    }

    /// The number of nodes, without the root.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_list(&self.0)
    }

    /// The entries of the strings that end at this node or below it.
    pub fn entries_below(&self, node: usize) -> impl Iterator<Item = u32> + Clone + '_ {
        let below = &self.0[node..node + self.size(node)];
        below.iter().filter(|node| node.entry & ENDS != 0).map(|node| node.entry ^ ENDS)
    }

    /// The entry of the string that ends exactly at this node.
    pub fn entry_at(&self, node: usize) -> Option<u32> {
        let entry = self.0[node].entry;
        (entry & ENDS != 0).then_some(entry ^ ENDS)
    }

    /// The first child of a node, and the end of the last one's subtree.
    #[inline]
    pub fn children(&self, node: usize) -> (usize, usize) {
        (node + 1, node + self.0[node].size as usize)
    }

    /// The children of a node, ascending.
    pub fn child_nodes(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let (first, end) = self.children(node);
        let child = move |node: usize| (node < end).then_some(node);
        std::iter::successors(child(first), move |&node| child(node + self.size(node)))
    }

    /// The node by byte among siblings in a range.
    #[inline]
    pub fn sibling(&self, (mut node, end): (usize, usize), byte: u8) -> Option<usize> {
        while node < end {
            if self.byte(node) == byte {
                return Some(node);
            }
            node += self.size(node);
        }
        None
    }

    /// The number of nodes in the subtree, including this one.
    #[inline]
    pub fn size(&self, node: usize) -> usize {
        self.0[node].size as usize
    }

    /// The byte that leads to this node.
    #[inline]
    pub fn byte(&self, node: usize) -> u8 {
        self.0[node].byte_and_depth as u8
    }

    /// The length of the string that leads to this node.
    #[inline]
    pub fn depth(&self, node: usize) -> usize {
        self.0[node].depth()
    }
}
