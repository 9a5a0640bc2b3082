//! Nodes with many children have a list of them, so that few are looked at where few bytes lead on.
//!
//! The children of a node lie as far apart as there is much below them. Where the vocabulary is not in the cache, to pass
//! over the hundred that follow a quote or a comma took longer than everything else in a mask.

use rustc_hash::FxHashMap;

use super::{ENDS, Trie};

/// A node with at least so many children, and so many nodes below it, has a list of them.
const MANY_CHILDREN: usize = 12;
const MANY_NODES: usize = 64;

/// Lists of children, of the nodes that have many.
#[derive(Clone, Default)]
pub(super) struct Lists {
    /// By node its part of the two lists.
    parts: FxHashMap<u32, (u32, u32)>,
    bytes: Vec<u8>,
    nodes: Vec<u32>,
}

/// The states on a way through a trie, by depth, and the nodes that are still to be walked: a walk needs it, and leaves
/// nothing in it.
#[derive(Default)]
pub struct Way {
    states: Vec<u32>,
    ranges: Vec<(usize, usize)>,
}

impl Lists {
    /// The lists of a trie that has none yet.
    pub(super) fn of(trie: &Trie) -> Lists {
        let mut lists = Lists::default();
        for node in (0..trie.len()).filter(|&node| trie.size(node) >= MANY_NODES) {
            if trie.child_nodes(node).nth(MANY_CHILDREN - 1).is_some() {
                let start = lists.nodes.len() as u32;
                lists.bytes.extend(trie.child_nodes(node).map(|child| trie.byte(child)));
                lists.nodes.extend(trie.child_nodes(node).map(|child| child as u32));
                lists.parts.insert(node as u32, (start, lists.nodes.len() as u32));
            }
        }
        lists
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.len() * 5 + self.parts.len() * 16
    }
}

impl Trie {
    /// The child of a node that a byte leads to.
    pub fn child(&self, node: usize, byte: u8) -> Option<usize> {
        let (mut child, end) = self.children(node);
        if end - node >= MANY_NODES
            && let Some(&(start, end)) = self.lists.parts.get(&(node as u32))
        {
            let (start, end) = (start as usize, end as usize);
            let at = self.lists.bytes[start..end].iter().position(|&known| known == byte)?;
            return Some(self.lists.nodes[start + at] as usize);
        }
        while child < end {
            if self.byte(child) == byte {
                return Some(child);
            }
            child += self.size(child);
        }
        None
    }

    /// The root that a byte leads to.
    pub fn root(&self, byte: u8) -> Option<usize> {
        self.roots.get(usize::from(byte)).copied().flatten().map(|root| root as usize)
    }

    /// As [`Trie::walk_part`], for automata that few strings lead on: the children of a node lie far apart where there is much
    /// below them, and to see that a byte leads nowhere costs no look at its node. `step` is told the node and whether
    /// it has children; `None` where it is only asked whether the byte leads on.
    #[inline(always)]
    pub fn walk_few<E>(
        &self,
        nodes: (usize, usize),
        depth: usize,
        start: u32,
        way: &mut Way,
        mut step: impl FnMut(u32, u8, Option<(usize, bool)>) -> Result<Option<u32>, E>,
        mut entry: impl FnMut(u32),
    ) -> Result<(), E> {
        let Way { states, ranges } = way;
        if states.len() <= self.max_depth {
            states.resize(self.max_depth + 1, 0);
        }
        states[depth] = start;
        ranges.clear();
        let (mut index, mut end) = nodes;
        if depth > 0 && self.has_children(index.wrapping_sub(1), end) {
            self.lead_on(index - 1, start, ranges, &mut step)?;
            index = end;
        }
        loop {
            while index < end {
                let node = self.nodes[index];
                let (depth, size) = ((node.byte_and_depth >> 8) as usize, node.size as usize);
                let Some(state) = step(states[depth - 1], node.byte_and_depth as u8, Some((index, node.size > 1)))?
                else {
                    index += size;
                    continue;
                };
                states[depth] = state;
                if node.entry & ENDS != 0 {
                    entry(node.entry ^ ENDS);
                }
                if size < MANY_NODES || !self.lists.parts.contains_key(&(index as u32)) {
                    index += 1;
                    continue;
                }
                // What lies below comes before what lies behind: the states on the way are those of the node.
                ranges.push((index + size, end));
                self.lead_on(index, state, ranges, &mut step)?;
                index = end;
            }
            match ranges.pop() {
                Some(range) => (index, end) = range,
                None => return Ok(()),
            }
        }
    }

    /// Whether all that lies between a node and `end` is what lies below the node, and it has a list of its children.
    fn has_children(&self, node: usize, end: usize) -> bool {
        self.nodes.get(node).is_some_and(|here| here.size as usize >= MANY_NODES && node + here.size as usize == end)
            && self.lists.parts.contains_key(&(node as u32))
    }

    /// Adds the children of a node with a list of them to which an automaton can go on, the first one last.
    #[inline(always)]
    fn lead_on<E>(
        &self,
        node: usize,
        state: u32,
        ranges: &mut Vec<(usize, usize)>,
        step: &mut impl FnMut(u32, u8, Option<(usize, bool)>) -> Result<Option<u32>, E>,
    ) -> Result<(), E> {
        let (start, end) = self.lists.parts[&(node as u32)];
        for child in (start as usize..end as usize).rev() {
            if step(state, self.lists.bytes[child], None)?.is_some() {
                let child = self.lists.nodes[child] as usize;
                ranges.push((child, child + self.size(child)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    proptest::proptest! {
        /// From the top, from a node, and from its children, whether it has a list of them or not.
        #[test]
        fn a_walk_by_lists_of_children_takes_the_ways_of_any_walk(
            table in proptest::collection::vec(proptest::collection::vec(proptest::option::weighted(0.4, 0u32..4), 16), 4),
            seed in 0usize..10_000,
        ) {
            let mut strings: Vec<Vec<u8>> = vec![Vec::new()];
            for length in 0..4 {
                let (few, many) = strings.iter().filter(|string| string.len() == length).partition::<Vec<_>, _>(|string| {
                    length > 1 && string.first() != Some(&b'c')
                });
                let longer = many.iter().flat_map(|string| (b'a'..b'a' + 16).map(|byte| [string, &[byte][..]].concat()));
                let other = few.iter().map(|string| [string, &b"g"[..]].concat());
                strings = longer.chain(other).chain(strings.clone()).collect();
                strings.sort_unstable();
            }
            strings.retain(|string| !string.is_empty());
            let trie = Trie::from_sorted(strings.iter().enumerate().map(|(i, s)| (s.as_slice(), i as u32)));
            proptest::prop_assert!(trie.lists.parts.len() > 10, "{}", trie.lists.parts.len());
            let next = |state: u32, byte: u8| table[state as usize][usize::from(byte - b'a')];
            let node = seed % trie.len();
            let here = (node, node + trie.size(node));
            for (nodes, depth) in
                [((0, trie.len()), 0), (here, trie.depth(node) - 1), (trie.children(node), trie.depth(node))]
            {
                let (mut plain, mut by_lists) = (Vec::new(), Vec::new());
                let (mut ends, mut ends_by_lists) = (Vec::new(), Vec::new());
                let mut states = vec![0; trie.max_depth() + 1];
                let Ok(()) = trie.walk_part::<Infallible>(
                    nodes,
                    depth,
                    1,
                    &mut states,
                    |state, byte, node, has_children| {
                        let next = next(state, byte);
                        plain.extend(next.map(|next| (node, has_children, next)));
                        Ok(next)
                    },
                    |entry| ends.push(entry),
                );
                let Ok(()) = trie.walk_few::<Infallible>(
                    nodes,
                    depth,
                    1,
                    &mut Way::default(),
                    |state, byte, at| {
                        let next = next(state, byte);
                        by_lists.extend(at.zip(next).map(|((node, has_children), next)| (node, has_children, next)));
                        Ok(next)
                    },
                    |entry| ends_by_lists.push(entry),
                );
                proptest::prop_assert_eq!(plain, by_lists);
                proptest::prop_assert_eq!(ends, ends_by_lists);
            }
        }
    }
}
