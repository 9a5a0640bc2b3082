//! Byte strings as one flat trie in depth-first order: a rejected byte skips its whole subtree by one addition.
//!
//! A walk keeps the automaton's state for every depth, so that stepping to a sibling or an uncle pops by itself. A node
//! is 12 bytes and the walk reads them in order, which suits the memory prefetcher.

use std::convert::Infallible;
use std::ops::Deref;
use std::sync::OnceLock;

use stencilm_regex::ByteSet;
use stencilm_support::{LimitExceeded, check_time_after};

use crate::error::EngineError;
use crate::switches::Switch;

mod few;
mod lists;
mod nodes;

use lists::Lists;
pub use lists::{Path, Reader};
use nodes::ENDS;
pub use nodes::Nodes;

/// A walk checks the deadline after this many nodes, and counts the check as this many steps.
pub(crate) const BETWEEN_CHECKS: usize = 1024;
const STEPS_BETWEEN_CHECKS: u32 = 8;

/// The error type of a walk through all strings.
pub trait WalkError: Sized {
    /// Returns an error if the walk has to end now; called from time to time.
    fn check() -> Result<(), Self>;
}

impl WalkError for LimitExceeded {
    #[inline]
    fn check() -> Result<(), LimitExceeded> {
        check_time_after(STEPS_BETWEEN_CHECKS)
    }
}

impl WalkError for EngineError {
    #[inline]
    fn check() -> Result<(), EngineError> {
        Ok(LimitExceeded::check()?)
    }
}

/// For walks that cannot fail.
impl WalkError for Infallible {
    #[inline]
    fn check() -> Result<(), Infallible> {
        Ok(())
    }
}

/// [`Nodes`], with the indices that walks through a vocabulary use.
#[derive(Clone, Default)]
pub struct Trie {
    nodes: Nodes,
    lists: Lists,
    /// For each node, the number of bytes by which the longest string below is longer; 255 stands for more.
    heights: Vec<u8>,
    /// The node of each first byte.
    roots: Vec<Option<u32>>,
    by_byte: OnceLock<ByByte>,
    max_depth: usize,
}

/// A part of a trie, as a range of nodes, and the depth of the node above it.
pub type Part = ((usize, usize), usize);

/// The nodes by the byte that leads to them.
#[derive(Clone)]
struct ByByte {
    /// For each byte, where its nodes begin in the list; with one more entry for the end.
    starts: Box<[u32; 257]>,
    nodes: Box<[u32]>,
}

impl ByByte {
    fn of(trie: &Nodes) -> ByByte {
        let mut starts = Box::new([0; 257]);
        (0..trie.len()).for_each(|node| starts[usize::from(trie.byte(node)) + 1] += 1);
        (0..256).for_each(|byte| starts[byte + 1] += starts[byte]);
        let mut next = starts.clone();
        let mut nodes = vec![0; trie.len()].into_boxed_slice();
        for node in 0..trie.len() {
            let place = &mut next[usize::from(trie.byte(node))];
            nodes[*place as usize] = node as u32;
            *place += 1;
        }
        ByByte { starts, nodes }
    }

    fn nodes(&self, byte: u8) -> &[u32] {
        let byte = usize::from(byte);
        &self.nodes[self.starts[byte] as usize..self.starts[byte + 1] as usize]
    }
}

impl Deref for Trie {
    type Target = Nodes;

    fn deref(&self) -> &Nodes {
        &self.nodes
    }
}

impl Trie {
    /// A trie of the strings, which must be sorted, distinct and not empty.
    ///
    /// # Panics
    /// When a string is longer than 16 MiB.
    pub fn from_sorted<'a>(strings: impl Iterator<Item = (&'a [u8], u32)>) -> Trie {
        let nodes = Nodes::from_sorted(strings);
        let mut heights = vec![0u8; nodes.len()];
        let mut path: Vec<usize> = Vec::new();
        for index in 0..nodes.len() {
            path.truncate(nodes.depth(index) - 1);
            for (above, &ancestor) in path.iter().rev().enumerate() {
                let height = u8::try_from(above + 1).unwrap_or(u8::MAX);
                if heights[ancestor] >= height {
                    break;
                }
                heights[ancestor] = height;
            }
            path.push(index);
        }
        let max_depth = (0..nodes.len()).map(|node| nodes.depth(node)).max().unwrap_or(0);
        let mut roots = if nodes.is_empty() { Vec::new() } else { vec![None; 256] };
        let mut node = 0;
        while node < nodes.len() {
            roots[usize::from(nodes.byte(node))] = Some(node as u32);
            node += nodes.size(node);
        }
        let mut trie = Trie { nodes, lists: Lists::default(), heights, roots, by_byte: OnceLock::new(), max_depth };
        if Switch::TrieLists.is_on() {
            trie.lists = Lists::of(&trie.nodes);
        }
        trie
    }

    /// The nodes of some first bytes, each with the end of its subtree. First nodes lie far apart in memory, so a walk
    /// that starts with few bytes should not touch the others.
    pub fn roots(&self, bytes: ByteSet) -> impl Iterator<Item = (usize, usize)> + '_ {
        let roots = bytes.iter().filter_map(|byte| self.roots.get(usize::from(byte)).copied().flatten());
        roots.map(|node| (node as usize, node as usize + self.size(node as usize)))
    }

    /// All of it.
    pub fn whole(&self) -> Part {
        ((0, self.len()), 0)
    }

    /// A node and what is below.
    pub fn part(&self, node: usize) -> Part {
        ((node, node + self.size(node)), self.depth(node) - 1)
    }

    /// The nodes that a byte leads to, ascending.
    pub fn nodes_of(&self, byte: u8) -> &[u32] {
        self.by_byte().nodes(byte)
    }

    /// Builds the indices that are built lazily.
    pub fn lay_out(&self) {
        self.by_byte();
    }

    fn by_byte(&self) -> &ByByte {
        self.by_byte.get_or_init(|| ByByte::of(&self.nodes))
    }

    /// Whether some string begins with a byte.
    pub fn begins_with(&self, byte: u8) -> bool {
        self.roots.get(usize::from(byte)).is_some_and(Option::is_some)
    }

    /// The length of the longest string, in bytes.
    pub fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let by_byte = self.by_byte.get().map_or(0, |by_byte| (by_byte.nodes.len() + by_byte.starts.len()) * 4);
        self.nodes.memory_bytes() + self.nodes.len() + self.lists.memory_bytes() + by_byte
    }

    /// The number of bytes by which the longest string below a node is longer; 255 stands for more.
    #[inline]
    pub fn height(&self, node: usize) -> u8 {
        self.heights[node]
    }

    /// Walks all strings that an automaton can read from the state `start`.
    ///
    /// `step(state, byte, node)` returns the next state, or `None` where the automaton is dead. `entry(number, state)`
    /// is called for every string that is read to its end. An error of `step` ends the walk.
    #[inline(always)]
    pub fn walk<S: Copy, E: WalkError>(
        &self,
        start: S,
        mut step: impl FnMut(S, u8, usize) -> Result<Option<S>, E>,
        mut entry: impl FnMut(u32, S),
    ) -> Result<(), E> {
        let nodes = &self.nodes.0[..];
        let mut states = vec![start; self.max_depth + 1];
        let mut index = 0;
        while index < nodes.len() {
            let pause = nodes.len().min(index + BETWEEN_CHECKS);
            while index < pause {
                let node = nodes[index];
                let depth = node.depth();
                let Some(state) = step(states[depth - 1], node.byte_and_depth as u8, index)? else {
                    index += node.size as usize;
                    continue;
                };
                states[depth] = state;
                if node.entry & ENDS != 0 {
                    entry(node.entry ^ ENDS, state);
                }
                index += 1;
            }
            if index < nodes.len() {
                E::check()?;
            }
        }
        Ok(())
    }

    /// As [`Trie::walk`], over a range of nodes below the node at `depth`, whose state is in `states`. `step` is also
    /// told whether the node has children. `states` must be long enough for every depth.
    #[inline(always)]
    pub fn walk_part<S: Copy, E: WalkError>(
        &self,
        (first, end): (usize, usize),
        depth: usize,
        start: S,
        states: &mut [S],
        mut step: impl FnMut(S, u8, usize, bool) -> Result<Option<S>, E>,
        mut entry: impl FnMut(u32, S),
    ) -> Result<(), E> {
        states[depth] = start;
        let mut index = first;
        while index < end {
            let pause = end.min(index + BETWEEN_CHECKS);
            while index < pause {
                let node = self.nodes.0[index];
                let depth = node.depth();
                let Some(state) = step(states[depth - 1], node.byte_and_depth as u8, index, node.size > 1)? else {
                    index += node.size as usize;
                    continue;
                };
                states[depth] = state;
                if node.entry & ENDS != 0 {
                    entry(node.entry ^ ENDS, state);
                }
                index += 1;
            }
            if index < end {
                E::check()?;
            }
        }
        Ok(())
    }

    /// As [`Trie::walk`], but sets the bit of every entry that is reached. Nearly half of the nodes of a vocabulary end
    /// a token, in an order that no branch predictor learns, so this loop has no branch there.
    ///
    /// `dense` is for automata that read nearly everything: first all bits of the trie's entries are set in `mask`, and
    /// then those that are not reached are cleared.
    ///
    /// # Panics
    /// When `mask` has too few words for the entries.
    #[inline(always)]
    pub fn walk_mask<S: Copy, E: WalkError>(
        &self,
        start: S,
        dense: bool,
        mut step: impl FnMut(S, u8, usize) -> Result<Option<S>, E>,
        mask: &mut [u32],
    ) -> Result<(), E> {
        let mut states = vec![start; self.max_depth + 1];
        self.walk_mask_part((0, self.nodes.len()), 0, start, &mut states, dense, &mut step, mask)
    }

    /// As [`Trie::walk_mask`], over a range of nodes below the node at `depth`, whose state is in `states`. `states`
    /// must be long enough for every depth.
    ///
    /// # Panics
    /// As [`Trie::walk_mask`].
    #[inline(always)]
    #[expect(clippy::too_many_arguments)]
    pub fn walk_mask_part<S: Copy, E: WalkError>(
        &self,
        (first, end): (usize, usize),
        depth: usize,
        start: S,
        states: &mut [S],
        dense: bool,
        step: &mut impl FnMut(S, u8, usize) -> Result<Option<S>, E>,
        mask: &mut [u32],
    ) -> Result<(), E> {
        let nodes = &self.nodes.0[..end];
        states[depth] = start;
        let mut index = first;
        while index < nodes.len() {
            let pause = nodes.len().min(index + BETWEEN_CHECKS);
            while index < pause {
                let node = nodes[index];
                let depth = node.depth();
                let Some(state) = step(states[depth - 1], node.byte_and_depth as u8, index)? else {
                    let end = index + node.size as usize;
                    if dense {
                        for node in &nodes[index..end] {
                            mask[(node.entry & !ENDS) as usize / 32] &= !((node.entry >> 31) << (node.entry % 32));
                        }
                    }
                    index = end;
                    continue;
                };
                if !dense {
                    mask[(node.entry & !ENDS) as usize / 32] |= (node.entry >> 31) << (node.entry % 32);
                }
                states[depth] = state;
                index += 1;
            }
            if index < nodes.len() {
                E::check()?;
            }
        }
        Ok(())
    }

    /// The number of nodes below some first bytes.
    pub fn nodes_after(&self, bytes: ByteSet) -> usize {
        self.roots(bytes).map(|(first, end)| end - first).sum()
    }

    /// The node that a string leads to.
    pub fn find(&self, string: &[u8]) -> Option<usize> {
        self.find_bytes(string.iter().copied())
    }

    /// The node that these bytes lead to.
    pub fn find_bytes(&self, mut bytes: impl Iterator<Item = u8>) -> Option<usize> {
        let root = self.roots.get(usize::from(bytes.next()?)).copied().flatten()? as usize;
        let mut found = root;
        for byte in bytes {
            found = self.child(found, byte)?;
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn trie(strings: &[&str]) -> Trie {
        Trie::from_sorted(strings.iter().enumerate().map(|(i, s)| (s.as_bytes(), i as u32)))
    }

    #[test]
    fn walks_what_the_automaton_reads_and_skips_the_rest() {
        let trie = trie(&["a", "ab", "abc", "b", "ba", "bb", "cab"]);
        assert_eq!(trie.len(), 9);
        let mut found = Vec::new();
        let mut steps = 0;
        let Ok(()) = trie.walk::<u32, Infallible>(
            0,
            |state, byte, _| {
                steps += 1;
                Ok((byte != b'c' && !(state == 1 && byte == b'b')).then_some(state + 1))
            },
            |entry, state| found.push((entry, state)),
        );
        assert_eq!(found, [(0, 1), (3, 1), (4, 2)]);
        assert_eq!(steps, 6, "a skipped subtree costs no step");
    }

    proptest::proptest! {
        /// For any behaviour of an automaton on the bytes of characters, complete or not.
        #[test]
        fn a_walk_that_sets_bits_reaches_what_any_walk_reaches(
            table in proptest::collection::vec(proptest::collection::vec(proptest::option::weighted(0.85, 0u32..4), 9), 4),
            loops_of_first in proptest::collection::vec(proptest::bool::weighted(0.7), 9),
            middle in proptest::bool::weighted(0.7),
        ) {
            let pieces: [&[u8]; 10] =
                [b"a", b" ", b"\"", "é".as_bytes(), "\u{a0}".as_bytes(), "日".as_bytes(), b"\xE4\xB8", b"\xA5", b"\xFF", b"\xF0\x90"];
            let mut strings: Vec<Vec<u8>> = vec![Vec::new()];
            for _ in 0..3 {
                let longer = strings.iter().flat_map(|string| pieces.map(|piece| [string, piece].concat()));
                strings = longer.chain(strings.clone()).collect();
                strings.sort_unstable();
                strings.dedup();
            }
            strings.retain(|string| !string.is_empty());
            let trie = Trie::from_sorted(strings.iter().enumerate().map(|(i, s)| (s.as_slice(), i as u32)));
            let class = |byte: u8| match byte {
                b'a'..=b'z' => 0,
                b' ' => 1,
                0..0x80 => 2,
                0x80..=0xBF => 3,
                0xC2 => 4,
                0xC0..=0xDF => 5,
                0xE0..=0xEF => 6,
                0xF0..=0xF4 => 7,
                0xF5.. => 8,
            };
            let next = |state: u32, byte: u8| -> Result<Option<u32>, Infallible> {
                let class = class(byte);
                Ok(match state {
                    0 if loops_of_first[class] && !(middle && class > 3) => Some(0),
                    // As if reading characters of two and three bytes.
                    0 if middle && (class == 4 || class == 5) => Some(1),
                    0 if middle && class == 6 => Some(2),
                    1 if middle => (class == 3).then_some(0),
                    2 if middle => (class == 3).then_some(1),
                    _ => table[state as usize][class],
                })
            };
            let mut reached = vec![0u32; strings.len().div_ceil(32)];
            let set = |entry: u32, _| reached[entry as usize / 32] |= 1 << (entry % 32);
            let Ok(()) = trie.walk(0, |state, byte, _| next(state, byte), set);
            for dense in [false, true] {
                let mut mask = vec![0u32; reached.len()];
                if dense {
                    (0..strings.len()).for_each(|entry| mask[entry / 32] |= 1 << (entry % 32));
                }
                let Ok(()) = trie.walk_mask(0, dense, |state, byte, _| next(state, byte), &mut mask);
                proptest::prop_assert_eq!(&mask, &reached);
            }
        }
    }

    #[test]
    fn an_empty_trie_has_nothing_to_walk() {
        let trie = trie(&[]);
        let Ok(()) = trie.walk::<(), Infallible>((), |(), _, _| Ok(Some(())), |_, ()| panic!("no entry"));
        assert_eq!((trie.len(), trie.max_depth()), (0, 0));
    }

    #[test]
    fn knows_what_lies_below_a_node() {
        let trie = trie(&["a", "ab", "abc", "b"]);
        assert_eq!(trie.entries_below(1).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((trie.byte(1), trie.depth(1), trie.entry_at(1)), (b'b', 2, Some(1)));
        let found = ["a", "abc", "b", "ac", "abcd", "c"].map(|string| trie.find(string.as_bytes()));
        assert_eq!(found, [Some(0), Some(2), Some(3), None, None, None]);
    }
}
