//! Caches of what can be recomputed, each within a budget of bytes: a full one starts again empty.
//!
//! Starting again is the simplest fair eviction. What is in use comes back at once and the rest is gone; a hit costs
//! only the look-up, because no order of use is kept. The few lists that a look-up scans from end to end are bounded by
//! their number of entries instead, and lose the least recently used.

use std::hash::Hash;

use crate::memory;
use rustc_hash::FxHashMap;

/// The budget of one cache, in bytes.
pub const BUDGET: usize = 4 << 20;

/// The budget of a cache that serves all grammars of a vocabulary and whose entries may have a bit for each token.
pub const LARGE_BUDGET: usize = 48 << 20;

/// The greatest number of entries in a list that a look-up scans from end to end.
pub const RECENT: usize = 8;

// The following constants bound the work on one question before it is answered in another way: by treating everything
// together, by an answer that is not the best, or by an error. They are far apart, because closer values make no
// measurable difference.

/// Things that are tried one by one with work for each; also the depth to which things are searched.
pub const FEW: usize = 64;

/// Things that are listed, stored or distinguished for one purpose.
pub const MANY: usize = 500;

/// Positions that are visited where there is a cheap alternative. Larger scratch space is allocated anew for the next
/// operation, since emptying it takes longer than most operations.
pub const LOOKED_AT: usize = 4_000;

/// Positions that are visited where the alternative takes longer.
pub const SEARCHED: usize = 20_000;

/// Steps that are taken where there is no alternative.
pub const STEPS: usize = 200_000;

/// The same where steps are short and large inputs need them.
pub const WORK: usize = 5_000_000;

/// A map that starts again empty when it holds more than `BYTES` bytes.
#[derive(Clone)]
pub struct Bounded<K, V, const BYTES: usize = BUDGET> {
    entries: FxHashMap<K, V>,
    /// The bytes that entries own on the heap.
    owned: usize,
}

impl<K, V, const BYTES: usize> Default for Bounded<K, V, BYTES> {
    fn default() -> Self {
        Bounded { entries: FxHashMap::default(), owned: 0 }
    }
}

impl<K: Eq + Hash, V, const BYTES: usize> Bounded<K, V, BYTES> {
    /// Approximate bytes of memory held.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(K, V)>(self.entries.capacity()) + self.owned
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    /// Stores a value that owns `owned` bytes on the heap.
    pub fn insert(&mut self, key: K, value: V, owned: usize) {
        if self.memory_bytes() > BYTES {
            *self = Bounded::default();
        }
        self.owned += owned;
        self.entries.insert(key, value);
    }

    /// The value of a key. If there is none, `make` makes it, together with the bytes that it owns on the heap. The
    /// second result is the count that must grow with the value.
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

/// The few values that were used last, the latest one at the end.
#[derive(Clone)]
pub struct Recent<T>(Vec<T>);

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent(Vec::new())
    }
}

impl<T> Recent<T> {
    /// All of them, the latest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().rev()
    }

    /// The first one that fits, which becomes the latest.
    pub fn find(&mut self, is_it: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let place = self.0.iter().rposition(is_it)?;
        self.0[place..].rotate_left(1);
        self.0.last_mut()
    }

    /// Adds one; if there are too many, the least recently used one is dropped.
    pub fn push(&mut self, one: T) -> &mut T {
        if self.0.len() == RECENT {
            self.0.remove(0);
        }
        self.0.push(one);
        self.0.last_mut().expect("one was just added")
    }

    /// Drops those that do not fit.
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
        // An existing entry never causes a restart.
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
