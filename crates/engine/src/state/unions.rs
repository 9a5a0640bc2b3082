//! Cached unions of two sets, undone by truncation, and whether it pays to compute more of them.

use rustc_hash::FxHashMap;
use stencilm_support::{LOOKED_AT, memory};

/// Two sets by their numbers, the lower one first.
pub(crate) type Pair = (u32, u32);

/// The set without entries.
const EMPTY: u32 = 0;

/// Cached unions of two sets.
#[derive(Clone, Default)]
pub(crate) struct Unions {
    known: FxHashMap<Pair, u32>,
    /// The pairs in the order in which they were added.
    found: Vec<Pair>,
    /// How many joins are skipped after the last one that took too much work, and how many of these are left.
    wait: u32,
    to_skip: u32,
}

impl Unions {
    /// The number of cached unions.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Forgets all but the first `len` unions.
    pub fn truncate(&mut self, len: usize) {
        for pair in self.found.drain(len.min(self.found.len())..) {
            self.known.remove(&pair);
        }
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_list(&self.found) + memory::of_table::<(Pair, u32)>(self.known.capacity())
    }

    /// Caches a union.
    pub fn add(&mut self, pair: Pair, union: u32) {
        self.known.insert(pair, union);
        self.found.push(pair);
    }

    /// The union of two sets, or the pair whose union must be made first.
    pub fn of(&self, a: u32, b: u32) -> Result<u32, Pair> {
        match (a.min(b), a.max(b)) {
            (a, b) if a == b => Ok(a),
            (EMPTY, b) => Ok(b),
            pair => self.known.get(&pair).copied().ok_or(pair),
        }
    }

    /// Whether a join should be tried now.
    pub fn are_worth_it(&mut self) -> bool {
        let skips = self.to_skip > 0;
        self.to_skip = self.to_skip.saturating_sub(1);
        !skips
    }

    /// Records that a join succeeded.
    pub fn succeeded(&mut self) {
        self.wait /= 2;
    }

    /// Records that a join took too much work.
    pub fn failed(&mut self) {
        self.wait = (2 * self.wait.max(1)).min(LOOKED_AT as u32);
        self.to_skip = self.wait;
    }
}
