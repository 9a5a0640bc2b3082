//! Walks by sparse automata, in which most strings of the trie die early.

use stencilm_regex::ByteSet;
use stencilm_support::FEW;

use super::Trie;
use super::lists::{Path, Reader};
use super::nodes::ENDS;

impl Trie {
    /// The child of a node by byte.
    pub fn child(&self, node: usize, byte: u8) -> Option<usize> {
        let (child, end) = self.children(node);
        if end - node >= FEW
            && let Some(children) = self.lists.parts.get(&(node as u32))
        {
            return children.bytes.contains(byte).then(|| self.lists.node(children, byte));
        }
        self.sibling((child, end), byte)
    }

    /// Whether some string goes on after a node with one of these bytes.
    pub fn goes_on_with(&self, node: usize, bytes: &ByteSet) -> bool {
        if self.size(node) >= FEW
            && let Some(children) = self.lists.parts.get(&(node as u32))
        {
            return !children.bytes.intersect(bytes).is_empty();
        }
        self.child_nodes(node).any(|child| bytes.contains(self.byte(child)))
    }

    /// The root by byte.
    pub fn root(&self, byte: u8) -> Option<usize> {
        self.roots.get(usize::from(byte)).copied().flatten().map(|root| root as usize)
    }

    /// As [`Trie::walk_part`], for sparse automata. The children of a node lie far apart where much is below them; this
    /// walk does not touch the nodes of dead bytes.
    #[inline(always)]
    pub fn walk_few<R: Reader>(
        &self,
        nodes: (usize, usize),
        depth: usize,
        start: u32,
        path: &mut Path,
        reader: &mut R,
        mut entry: impl FnMut(u32),
    ) -> Result<(), R::Error> {
        let Path { states, ranges } = path;
        if states.len() <= self.max_depth {
            states.resize(self.max_depth + 1, 0);
        }
        states[depth] = start;
        ranges.clear();
        let (mut index, mut end) = nodes;
        if depth > 0 && self.has_children(index.wrapping_sub(1), end) {
            self.add_children(index - 1, &reader.live_bytes(start)?, ranges);
            index = end;
        }
        loop {
            while index < end {
                let node = self.nodes.0[index];
                let (depth, size) = ((node.byte_and_depth >> 8) as usize, node.size as usize);
                let (from, byte) = (states[depth - 1], node.byte_and_depth as u8);
                let Some(state) = reader.step(from, byte, index as u32, node.size > 1)? else {
                    index += size;
                    continue;
                };
                states[depth] = state;
                if node.entry & ENDS != 0 {
                    entry(node.entry ^ ENDS);
                }
                if size < FEW || !self.lists.parts.contains_key(&(index as u32)) {
                    index += 1;
                    continue;
                }
                // What lies below is walked before what comes after, because the states on the path are still those of
                // this node.
                ranges.push((index + size, end));
                self.add_children(index, &reader.live_bytes(state)?, ranges);
                index = end;
            }
            match ranges.pop() {
                Some(range) => (index, end) = range,
                None => return Ok(()),
            }
        }
    }

    /// Whether the nodes up to `end` are exactly those below a node, and the node has a list of its children.
    fn has_children(&self, node: usize, end: usize) -> bool {
        self.nodes.0.get(node).is_some_and(|here| here.size as usize >= FEW && node + here.size as usize == end)
            && self.lists.parts.contains_key(&(node as u32))
    }

    /// Adds the children by these bytes of a node with a list of children, the first one last.
    fn add_children(&self, node: usize, live_bytes: &ByteSet, ranges: &mut Vec<(usize, usize)>) {
        let children = &self.lists.parts[&(node as u32)];
        let known = ranges.len();
        for byte in children.bytes.intersect(live_bytes).iter() {
            let child = self.lists.node(children, byte);
            ranges.push((child, child + self.size(child)));
        }
        ranges[known..].reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// A table of steps that reports some dead bytes as live.
    struct Table<F> {
        next: F,
        spare: u8,
        steps: Vec<(usize, bool, u32)>,
    }

    impl<F: Fn(u32, u8) -> Option<u32>> Reader for Table<F> {
        type Error = Infallible;

        fn live_bytes(&mut self, state: u32) -> Result<ByteSet, Infallible> {
            let leads = |&byte: &u8| byte % self.spare == 0 || (self.next)(state, byte).is_some();
            Ok((b'a'..b'a' + 16).filter(leads).collect())
        }

        fn step(&mut self, state: u32, byte: u8, node: u32, has_children: bool) -> Result<Option<u32>, Infallible> {
            let next = (self.next)(state, byte);
            self.steps.extend(next.map(|next| (node as usize, has_children, next)));
            Ok(next)
        }
    }

    proptest::proptest! {
        /// From the root, from a node, and from its children, with and without a list of them.
        #[test]
        fn a_walk_by_lists_of_children_takes_the_paths_of_any_walk(
            table in proptest::collection::vec(proptest::collection::vec(proptest::option::weighted(0.4, 0u32..4), 16), 4),
            seed in 0usize..10_000,
            spare in 2u8..20,
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
                let mut plain = Vec::new();
                let (mut ends, mut ends_by_lists) = (Vec::new(), Vec::new());
                let mut states = vec![0; trie.max_depth() + 1];
                let Ok(()) = trie.walk_part::<u32, Infallible>(
                    nodes,
                    depth,
                    1,
                    &mut states,
                    |state, byte, node, has_children| {
                        let next = next(state, byte);
                        plain.extend(next.map(|next| (node, has_children, next)));
                        Ok(next)
                    },
                    |entry, _| ends.push(entry),
                );
                let mut reader = Table { next: &next, spare, steps: Vec::new() };
                let Ok(()) = trie.walk_few(
                    nodes,
                    depth,
                    1,
                    &mut Path::default(),
                    &mut reader,
                    |entry| ends_by_lists.push(entry),
                );
                proptest::prop_assert_eq!(plain, reader.steps);
                proptest::prop_assert_eq!(ends, ends_by_lists);
            }
        }
    }
}
