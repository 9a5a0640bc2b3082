//! The coarsest partition of the states of a partial deterministic automaton (Valmari & Lehtinen 2008).
//!
//! Blocks of states, and sets of transitions with equal labels into one block, are refined alternately. Each split
//! moves only the smaller part, so the work is m log n for m transitions, and absent transitions cost nothing.

/// One transition: from a state, by a label, to a state.
#[derive(Clone, Copy)]
pub(super) struct Arrow {
    pub tail: u32,
    pub label: u32,
    pub head: u32,
}

/// A partition whose sets are ranges of one vector. The marked elements of a set are at the beginning of its range.
struct Partition {
    elements: Vec<u32>,
    place: Vec<u32>,
    set: Vec<u32>,
    first: Vec<u32>,
    end: Vec<u32>,
    marked: Vec<u32>,
    touched: Vec<u32>,
}

impl Partition {
    /// The partition of 0..keys.len() into sets of equal keys.
    fn by_key(keys: &[u32]) -> Partition {
        let count = keys.len();
        let mut elements: Vec<u32> = (0..count as u32).collect();
        elements.sort_by_key(|&element| keys[element as usize]);
        let mut partition = Partition {
            elements,
            place: vec![0; count],
            set: vec![0; count],
            first: Vec::new(),
            end: Vec::new(),
            marked: Vec::new(),
            touched: Vec::new(),
        };
        for at in 0..count {
            let element = partition.elements[at] as usize;
            let is_new = at == 0 || keys[element] != keys[partition.elements[at - 1] as usize];
            if is_new {
                partition.first.push(at as u32);
                partition.end.push(at as u32);
                partition.marked.push(0);
            }
            let set = partition.first.len() - 1;
            partition.end[set] = at as u32 + 1;
            partition.place[element] = at as u32;
            partition.set[element] = set as u32;
        }
        partition
    }

    fn len(&self) -> usize {
        self.first.len()
    }

    fn mark(&mut self, element: u32) {
        let set = self.set[element as usize] as usize;
        let (from, to) = (self.place[element as usize], self.first[set] + self.marked[set]);
        if from < to {
            return;
        }
        let other = self.elements[to as usize];
        self.elements.swap(from as usize, to as usize);
        self.place[element as usize] = to;
        self.place[other as usize] = from;
        if self.marked[set] == 0 {
            self.touched.push(set as u32);
        }
        self.marked[set] += 1;
    }

    /// Splits every set with marked elements in two. The smaller part becomes a new set.
    fn split(&mut self) {
        while let Some(set) = self.touched.pop() {
            let set = set as usize;
            let (first, end) = (self.first[set], self.end[set]);
            let middle = first + std::mem::take(&mut self.marked[set]);
            if middle == end {
                continue;
            }
            let new = self.first.len() as u32;
            let (from, to) = if middle - first <= end - middle {
                self.first[set] = middle;
                (first, middle)
            } else {
                self.end[set] = middle;
                (middle, end)
            };
            self.first.push(from);
            self.end.push(to);
            self.marked.push(0);
            for at in from..to {
                self.set[self.elements[at as usize] as usize] = new;
            }
        }
    }
}

/// A class for each state. Two states have the same class if they have equal `kinds` and every sequence of labels leads
/// to states of equal kinds.
pub(super) fn classes(kinds: &[u32], arrows: &[Arrow]) -> Vec<u32> {
    let mut blocks = Partition::by_key(kinds);
    let labels: Vec<u32> = arrows.iter().map(|arrow| arrow.label).collect();
    let mut cords = Partition::by_key(&labels);
    // The transitions into each state.
    let mut starts = vec![0u32; kinds.len() + 1];
    for arrow in arrows {
        starts[arrow.head as usize + 1] += 1;
    }
    for state in 0..kinds.len() {
        starts[state + 1] += starts[state];
    }
    let mut next = starts.clone();
    let mut into = vec![0u32; arrows.len()];
    for (index, arrow) in arrows.iter().enumerate() {
        into[next[arrow.head as usize] as usize] = index as u32;
        next[arrow.head as usize] += 1;
    }
    // The first block need not be used as a splitter: a label that leads into no other block leads into this one or
    // nowhere.
    let (mut block, mut cord) = (0, 0);
    while cord < cords.len() {
        for at in cords.first[cord]..cords.end[cord] {
            blocks.mark(arrows[cords.elements[at as usize] as usize].tail);
        }
        blocks.split();
        cord += 1;
        while block < blocks.len() {
            for at in blocks.first[block]..blocks.end[block] {
                let state = blocks.elements[at as usize] as usize;
                for &arrow in &into[starts[state] as usize..starts[state + 1] as usize] {
                    cords.mark(arrow);
                }
            }
            cords.split();
            block += 1;
        }
    }
    blocks.set
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustc_hash::FxHashMap;

    /// The slow reference (Moore): split by kind and by the class that each label leads to, until nothing changes.
    fn slow(kinds: &[u32], arrows: &[Arrow]) -> Vec<u32> {
        let mut classes = kinds.to_vec();
        loop {
            let mut known = FxHashMap::default();
            let mut refined = Vec::new();
            for state in 0..kinds.len() {
                let mut signature: Vec<(u32, u32)> = arrows
                    .iter()
                    .filter(|arrow| arrow.tail as usize == state)
                    .map(|arrow| (arrow.label, classes[arrow.head as usize]))
                    .collect();
                signature.sort_unstable();
                let fresh = known.len() as u32;
                refined.push(*known.entry((classes[state], signature)).or_insert(fresh));
            }
            let before = classes.iter().collect::<std::collections::BTreeSet<_>>().len();
            if known.len() == before {
                return refined;
            }
            classes = refined;
        }
    }

    proptest! {
        #[test]
        fn as_coarse_as_the_slow_twin(
            kinds in prop::collection::vec(0u32..2, 1..12),
            moves in prop::collection::vec((0u32..12, 0u32..4, 0u32..12), 0..40),
        ) {
            let count = kinds.len() as u32;
            let mut arrows: Vec<Arrow> = Vec::new();
            for (tail, label, head) in moves {
                let (tail, head) = (tail % count, head % count);
                if !arrows.iter().any(|arrow| (arrow.tail, arrow.label) == (tail, label)) {
                    arrows.push(Arrow { tail, label, head });
                }
            }
            let (fast, slow) = (classes(&kinds, &arrows), slow(&kinds, &arrows));
            for one in 0..kinds.len() {
                for other in 0..kinds.len() {
                    prop_assert_eq!(fast[one] == fast[other], slow[one] == slow[other], "{} {}", one, other);
                }
            }
        }
    }
}
