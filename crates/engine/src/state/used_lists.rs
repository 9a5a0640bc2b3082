//! Lists of used values, such as keys of an object or elements of an array. Each list has the set of its entries, so a
//! membership test takes about as long for a thousand entries as for ten.
//!
//! The sets are persistent (Okasaki & Gill 1998): binary tries over the bits of the entries, in which a new set shares
//! everything but one path with the previous one. Nodes and lists are interned, so equal ones have one id, and
//! forgetting is truncation.

use stencilm_support::Interner;

use crate::state::ids::{NIL, UNKNOWN_TEXT};

/// A list: its last entry, the list before it, and the set of its entries without unknown ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct List {
    before: u32,
    last: u32,
    set: u32,
}

/// A node of a set. The entries below it agree with `prefix` in the bits above `bit`, and `bit` decides the side. A
/// leaf has no bit, and its prefix is the entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Node {
    prefix: u32,
    bit: u32,
    children: [u32; 2],
}

/// The empty set.
const EMPTY: u32 = 0;

/// The lists and sets of one matcher. A list is represented by its id; [`NIL`] is the empty list.
#[derive(Clone)]
pub(crate) struct SeenLists {
    lists: Interner<List>,
    nodes: Interner<Node>,
}

/// The numbers of lists and nodes at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SeenMark {
    lists: usize,
    nodes: usize,
}

impl SeenLists {
    pub fn new() -> SeenLists {
        SeenLists {
            lists: Interner::new(List { before: NIL, last: UNKNOWN_TEXT, set: u32::MAX }),
            nodes: Interner::new(Node { prefix: u32::MAX, bit: u32::MAX, children: [EMPTY; 2] }),
        }
    }

    /// The list with one more entry, which may be [`UNKNOWN_TEXT`].
    pub fn append(&mut self, before: u32, last: u32) -> u32 {
        let mut set = self.set(before);
        if last != UNKNOWN_TEXT {
            set = self.insert(set, last);
        }
        self.lists.intern(List { before, last, set })
    }

    /// The list before the last entry, and that entry.
    pub fn last(&self, list: u32) -> Option<(u32, u32)> {
        let List { before, last, .. } = self.lists.values[list as usize];
        (list != NIL).then_some((before, last))
    }

    /// The entries of a list, the last one first.
    pub fn entries(&self, mut list: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::from_fn(move || {
            let (before, last) = self.last(list)?;
            list = before;
            Some(last)
        })
    }

    /// Whether an entry is in a list.
    pub fn has(&self, list: u32, entry: u32) -> bool {
        let mut at = self.set(list);
        while at != EMPTY {
            let node = self.nodes.values[at as usize];
            if node.bit == 0 {
                return node.prefix == entry;
            }
            at = node.children[usize::from(entry & node.bit != 0)];
        }
        false
    }

    fn set(&self, list: u32) -> u32 {
        if list == NIL { EMPTY } else { self.lists.values[list as usize].set }
    }

    fn insert(&mut self, set: u32, entry: u32) -> u32 {
        let leaf = Node { prefix: entry, bit: 0, children: [EMPTY; 2] };
        // The nodes on the way down, each with the side that the path takes.
        let mut path = Vec::new();
        let mut at = set;
        let mut new = loop {
            if at == EMPTY {
                break self.nodes.intern(leaf);
            }
            let node = self.nodes.values[at as usize];
            if node.bit != 0 && entry & above(node.bit) == node.prefix {
                let side = usize::from(entry & node.bit != 0);
                path.push((node, side));
                at = node.children[side];
                continue;
            }
            if node.bit == 0 && node.prefix == entry {
                return set;
            }
            let leaf = self.nodes.intern(leaf);
            let bit = 1 << (entry ^ node.prefix).ilog2();
            let children = if entry & bit == 0 { [leaf, at] } else { [at, leaf] };
            break self.nodes.intern(Node { prefix: entry & above(bit), bit, children });
        };
        while let Some((mut node, side)) = path.pop() {
            node.children[side] = new;
            new = self.nodes.intern(node);
        }
        new
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        (self.lists.values.len() + self.nodes.values.len()) * 24
    }

    pub fn mark(&self) -> SeenMark {
        SeenMark { lists: self.lists.values.len(), nodes: self.nodes.values.len() }
    }

    pub fn rewind(&mut self, mark: SeenMark) {
        self.lists.truncate(mark.lists);
        self.nodes.truncate(mark.nodes);
    }
}

impl SeenMark {
    /// Whether a list existed at that time.
    pub fn had(self, list: u32) -> bool {
        (list as usize) < self.lists
    }
}

/// The mask of the bits above one bit.
fn above(bit: u32) -> u32 {
    !(bit | (bit - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_are_found_that_were_appended(entries in proptest::collection::vec(0u32..60, 0..40), far in any::<u32>()) {
            let mut seen = SeenLists::new();
            let entries: Vec<u32> = entries.into_iter().map(|entry| if entry % 7 == 0 { entry ^ (far & !1) } else { entry }).collect();
            let (mut list, mut marks) = (NIL, Vec::new());
            for (count, &entry) in entries.iter().enumerate() {
                marks.push((seen.mark(), list));
                for other in (0..60).chain([far, far ^ 7]) {
                    prop_assert_eq!(seen.has(list, other), entries[..count].contains(&other));
                }
                list = seen.append(list, entry);
                let known: Vec<u32> = seen.entries(list).collect();
                prop_assert_eq!(known, entries[..=count].iter().rev().copied().collect::<Vec<_>>());
            }
            // What was forgotten is made again under the same ids.
            let middle = marks.len() / 2;
            if let Some(&(mark, before)) = marks.get(middle) {
                seen.rewind(mark);
                let again = entries[middle..].iter().fold(before, |list, &entry| seen.append(list, entry));
                prop_assert_eq!(again, list);
            }
        }
    }

    #[test]
    fn what_is_unknown_is_in_no_set() {
        let mut seen = SeenLists::new();
        let list = seen.append(NIL, UNKNOWN_TEXT);
        assert!(list != NIL && !seen.has(list, UNKNOWN_TEXT) && !seen.has(list, 0));
        let list = seen.append(list, 0);
        assert!(seen.has(list, 0) && !seen.has(NIL, 0));
    }
}
