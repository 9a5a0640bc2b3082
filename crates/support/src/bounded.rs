//! Caches of what can be recomputed, each within a budget of bytes: a full one starts again empty.
//!
//! Starting again is the simplest fair eviction. What is in use comes back at once and the rest is gone; a hit costs
//! only the look-up, because no order of use is kept. The few lists that a look-up scans from end to end are bounded by
//! their number of entries instead, and lose the least recently used.

use std::hash::Hash;

use crate::memory;
use rustc_hash::FxHashMap;

/// Bytes that one cache may hold.
pub const BUDGET: usize = 4 << 20;

/// Bytes that a cache may hold which is kept for all grammars of a vocabulary, and whose entries may have a bit for
/// each token.
pub const LARGE_BUDGET: usize = 48 << 20;

/// As many as a look-up goes through from end to end.
pub const RECENT: usize = 8;

// What follows bounds the work on one question before it is answered in another way: by looking at all together, by an
// answer that is not the best, or by an error. The numbers are far apart, because none nearer makes a difference that
// can be measured.

/// So many are tried one by one, each with work of its own; so deep below each other things are looked for.
pub const FEW: usize = 64;

/// So many are listed, kept or distinguished for one thing.
pub const MANY: usize = 500;

/// So many places are looked at where there is a cheap way without. Scratch that has more is made anew for the next
/// operation: to empty it takes longer than most operations do.
pub const LOOKED_AT: usize = 4_000;

/// So many where the way without takes longer.
pub const SEARCHED: usize = 20_000;

/// So many steps may be taken where there is no other way.
pub const STEPS: usize = 200_000;

/// So many where each is short, and large inputs need them.
pub const WORK: usize = 5_000_000;

/// A map that begins anew where it holds more than so many bytes.
#[derive(Clone)]
pub struct Bounded<K, V, const BYTES: usize = BUDGET> {
    entries: FxHashMap<K, V>,
    /// Bytes that the entries own beside themselves.
    owned: usize,
}

impl<K, V, const BYTES: usize> Default for Bounded<K, V, BYTES> {
    fn default() -> Self {
        Bounded { entries: FxHashMap::default(), owned: 0 }
    }
}

impl<K: Eq + Hash, V, const BYTES: usize> Bounded<K, V, BYTES> {
    /// Bytes of memory held, about.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(K, V)>(self.entries.capacity()) + self.owned
    }

    /// What is kept under a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    /// Keeps something that owns so many bytes beside itself.
    pub fn insert(&mut self, key: K, value: V, owned: usize) {
        if self.memory_bytes() > BYTES {
            *self = Bounded::default();
        }
        self.owned += owned;
        self.entries.insert(key, value);
    }

    /// What is kept under a key, which is made first where there is nothing, with the bytes that it owns beside itself;
    /// and what is to grow by as many bytes as it does.
    pub fn get_or_make(&mut self, key: K, make: impl FnOnce() -> (V, usize)) -> (&mut V, &mut usize) {
        if self.memory_bytes() > BYTES && !self.entries.contains_key(&key) {
            *self = Bounded::default();
        }
        let value = self.entries.entry(key).or_insert_with(|| {
            let (value, owned) = make();
            self.owned += owned;
            value
        });
        (value, &mut self.owned)
    }
}

/// The few things that were used last, the latest one at the end.
#[derive(Clone)]
pub struct Recent<T>(Vec<T>);

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent(Vec::new())
    }
}

impl<T> Recent<T> {
    /// All of them, the latest one first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().rev()
    }

    /// The first one of which this is so from now on the latest.
    pub fn find(&mut self, is_it: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let place = self.0.iter().rposition(is_it)?;
        self.0[place..].rotate_left(1);
        self.0.last_mut()
    }

    /// Adds one, in the place of the one that was used longest ago where there are many.
    pub fn push(&mut self, one: T) -> &mut T {
        if self.0.len() == RECENT {
            self.0.remove(0);
        }
        self.0.push(one);
        self.0.last_mut().expect("one was just added")
    }

    /// Forgets those of which this is not so.
    pub fn retain(&mut self, is_kept: impl FnMut(&T) -> bool) {
        self.0.retain(is_kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_map_begins_anew() {
        let mut map: Bounded<u32, Box<[u8]>> = Bounded::default();
        let large = BUDGET / 4;
        let keep = |map: &mut Bounded<u32, Box<[u8]>>, key| map.insert(key, Box::default(), large);
        (0..4).for_each(|key| keep(&mut map, key));
        assert!((0..4).all(|key| map.get(&key).is_some()), "it is no larger than the budget before the last one");
        keep(&mut map, 4);
        assert!(map.get(&3).is_none() && map.get(&4).is_some());
        assert!(map.memory_bytes() < BUDGET);
    }

    #[test]
    fn what_grows_counts() {
        let mut map: Bounded<u32, u32> = Bounded::default();
        for key in [1, 1, 2] {
            let (value, owned) = map.get_or_make(key, || (key, 0));
            assert_eq!(*value, key);
            *owned += BUDGET / 3 + 1;
        }
        assert_eq!(map.get(&1), Some(&1));
        // What is there is no reason to forget anything.
        assert_eq!(*map.get_or_make(2, || (0, 0)).0, 2);
        assert_eq!(*map.get_or_make(3, || (3, 0)).0, 3);
        assert_eq!(map.get(&1), None);
    }

    #[test]
    fn what_was_used_last_stays() {
        let mut recent = Recent::default();
        (0..RECENT).for_each(|one| _ = recent.push(one));
        assert_eq!(recent.find(|&one| one == 0), Some(&mut 0));
        recent.push(RECENT);
        assert_eq!(recent.iter().copied().take(3).collect::<Vec<_>>(), [RECENT, 0, RECENT - 1]);
        assert_eq!(recent.find(|&one| one == 1), None);
    }
}
