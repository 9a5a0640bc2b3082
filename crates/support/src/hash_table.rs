//! Hash tables that share their code.
//!
//! A generic hash table is compiled once for every type of key and value. Compiling a grammar uses some twenty tables,
//! most of them with a handful of entries, and if a program does that between other work, loading code costs more than
//! running it. Here probing and growing are the same few functions for all tables: a [`Table`] stores hashes and
//! numbers, and its user stores and compares what the numbers stand for.

use std::borrow::Borrow;
use std::hash::Hash;
use std::ops::Index;

use crate::hash::hash_of;
use crate::memory;

/// The number of a slot that is empty.
const NONE: u32 = u32::MAX;

/// The number of slots of the smallest table, which fill a cache line.
const FIRST_SLOTS: usize = 8;

/// Numbers by the hash of what they stand for.
#[derive(Clone, Default, Debug)]
pub struct Table {
    /// Half of a hash and a number, by open addressing with linear probing (Knuth 1998, 6.4, algorithms L and R). The
    /// number of slots is 0 or a power of two; at least a quarter of them is empty.
    slots: Vec<(u32, u32)>,
    len: usize,
}

impl Table {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_list(&self.slots)
    }

    /// The number with this hash for which `is_it` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = usize::MAX;
        loop {
            match self.next(half(hash), &mut at) {
                NONE => return None,
                found if is_it(found) => return Some(found),
                _ => {}
            }
        }
    }

    /// Adds a number that is not in the table yet.
    ///
    /// # Panics
    /// For `u32::MAX`, which marks an empty slot.
    pub fn insert(&mut self, hash: u64, number: u32) {
        assert!(number != NONE, "a table holds less than 2^32 - 1 numbers");
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            self.grow(self.len + 1);
        }
        self.put(half(hash), number);
        self.len += 1;
    }

    /// Reserves room for `more` numbers.
    pub fn reserve(&mut self, more: usize) {
        if (self.len + more) * 4 > self.slots.len() * 3 {
            self.grow(self.len + more);
        }
    }

    /// Removes a number, if it is there.
    pub fn remove(&mut self, hash: u64, number: u32) {
        let hash = half(hash);
        let mut at = usize::MAX;
        loop {
            match self.next(hash, &mut at) {
                NONE => return,
                found if found == number => break,
                _ => {}
            }
        }
        // Entries after the gap that would not be found across it move into it.
        let last = self.slots.len() - 1;
        let mut probed = at;
        loop {
            self.slots[at].1 = NONE;
            let moved = loop {
                probed = (probed + 1) & last;
                let (hash, number) = self.slots[probed];
                if number == NONE {
                    self.len -= 1;
                    return;
                }
                let distance = probed.wrapping_sub(self.home(hash)) & last;
                if distance >= probed.wrapping_sub(at) & last {
                    break (hash, number);
                }
            };
            self.slots[at] = moved;
            at = probed;
        }
    }

    /// Replaces the content by these numbers with their hashes. If nearly all numbers have to go, this is faster than
    /// removing them.
    pub fn begin_anew(&mut self, numbers: impl Iterator<Item = (u64, u32)>) {
        *self = Table::default();
        self.reserve(numbers.size_hint().0);
        numbers.for_each(|(hash, number)| self.insert(hash, number));
    }

    /// Removes everything; the memory stays allocated.
    pub fn clear(&mut self) {
        if self.len > 0 {
            self.slots.fill((0, NONE));
            self.len = 0;
        }
    }

    /// The slot where probing begins.
    fn home(&self, hash: u32) -> usize {
        // Fibonacci hashing (Knuth 1998, 6.4): the upper bits of the product.
        (hash.wrapping_mul(0x9E37_79B9) >> (32 - self.slots.len().trailing_zeros()).min(31)) as usize
    }

    /// The next number with a hash after the slot `at`, and its slot; from the first slot on where `at` is
    /// `usize::MAX`.
    #[inline(never)]
    fn next(&self, hash: u32, at: &mut usize) -> u32 {
        if self.slots.is_empty() {
            return NONE;
        }
        let last = self.slots.len() - 1;
        let mut probed = if *at == usize::MAX { self.home(hash) } else { (*at + 1) & last };
        loop {
            let (other, number) = self.slots[probed];
            if number == NONE || other == hash {
                *at = probed;
                return number;
            }
            probed = (probed + 1) & last;
        }
    }

    fn put(&mut self, hash: u32, number: u32) {
        let last = self.slots.len() - 1;
        let mut at = self.home(hash);
        while self.slots[at].1 != NONE {
            at = (at + 1) & last;
        }
        self.slots[at] = (hash, number);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, len: usize) {
        let slots = (len * 4 / 3 + 1).next_power_of_two().max(FIRST_SLOTS);
        let before = std::mem::replace(&mut self.slots, vec![(0, NONE); slots]);
        for (hash, number) in before {
            if number != NONE {
                self.put(hash, number);
            }
        }
    }
}

/// The half of a hash that is stored.
fn half(hash: u64) -> u32 {
    (hash >> 32) as u32 ^ hash as u32
}

/// Up to this number of keys, a linear search is used instead of a table.
const FEW_KEYS: usize = 8;

/// A map that keeps the order in which keys were added. Entries cannot be removed one by one.
#[derive(Clone, Debug)]
pub struct Map<K, V> {
    entries: Vec<(K, V)>,
    /// The positions of all entries, if there are more than [`FEW_KEYS`].
    table: Table,
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Map<K, V> {
        Map { entries: Vec::new(), table: Table::default() }
    }
}

impl<K, V> Map<K, V> {
    /// Bytes of memory held, without what keys and values own.
    pub fn memory_bytes(&self) -> usize {
        memory::of_list(&self.entries) + self.table.memory_bytes()
    }
}

impl<K: Hash + Eq, V> Map<K, V> {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn place_of<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        if self.entries.len() <= FEW_KEYS {
            return self.entries.iter().position(|(known, _)| known.borrow() == key);
        }
        let found = self.table.find(hash_of(key), |number| self.entries[number as usize].0.borrow() == key)?;
        Some(found as usize)
    }

    /// The value of a key.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.place_of(key).map(|place| &self.entries[place].1)
    }

    /// A key as it is stored, and its value.
    pub fn get_key_value<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let (key, value) = &self.entries[self.place_of(key)?];
        Some((key, value))
    }

    /// Whether the map has a key.
    pub fn contains_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Sets the value of a key, and returns the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(place) = self.place_of(&key) {
            return Some(std::mem::replace(&mut self.entries[place].1, value));
        }
        self.add(key, value);
        None
    }

    /// The value of a key; a new key gets the value that `value` makes.
    pub fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        let place = self.place_or_insert_with(key, value);
        &mut self.entries[place].1
    }

    /// The position of a key in the order of addition. A new key is last, with the value that `value` makes.
    pub fn place_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> usize {
        match self.place_of(&key) {
            Some(place) => place,
            None => self.add(key, value()),
        }
    }

    /// The key and value at a position.
    pub fn at(&self, place: usize) -> Option<(&K, &V)> {
        self.entries.get(place).map(|(key, value)| (key, value))
    }

    /// The key and the mutable value at a position.
    pub fn at_mut(&mut self, place: usize) -> Option<(&K, &mut V)> {
        self.entries.get_mut(place).map(|(key, value)| (&*key, value))
    }

    fn add(&mut self, key: K, value: V) -> usize {
        let place = self.entries.len();
        self.entries.push((key, value));
        if place >= FEW_KEYS {
            self.enter_all();
        }
        place
    }

    /// Adds what is missing in the table: the last key, or all keys when there are no longer few.
    fn enter_all(&mut self) {
        for place in self.table.len()..self.entries.len() {
            let number = u32::try_from(place).unwrap_or(NONE);
            self.table.insert(hash_of(&self.entries[place].0), number);
        }
    }

    /// Reserves room for `more` keys.
    pub fn reserve(&mut self, more: usize) {
        self.entries.reserve(more);
        if self.entries.len() + more > FEW_KEYS {
            self.table.reserve(self.entries.len() - self.table.len() + more);
        }
    }

    /// Removes everything; the memory stays allocated.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.table.clear();
    }

    /// All keys and values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> + DoubleEndedIterator + Clone {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// All keys and mutable values, in order.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&K, &mut V)> {
        self.entries.iter_mut().map(|(key, value)| (&*key, value))
    }

    /// All keys.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// All values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }
}

impl<K: Hash + Eq, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Map<K, V> {
        let mut map = Map::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

impl<K: Hash + Eq + Borrow<Q>, Q: Hash + Eq + ?Sized, V> Index<&Q> for Map<K, V> {
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("only keys that are there are asked for like this")
    }
}

/// A set that keeps the order in which values were added.
#[derive(Clone, Debug)]
pub struct Set<K>(Map<K, ()>);

impl<K> Default for Set<K> {
    fn default() -> Set<K> {
        Set(Map::default())
    }
}

impl<K: Hash + Eq> Set<K> {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a value; returns whether it is new.
    pub fn insert(&mut self, value: K) -> bool {
        self.0.insert(value, ()).is_none()
    }

    /// Whether the set has a value.
    pub fn contains<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(value)
    }

    /// Removes everything; the memory stays allocated.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// All values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &K> {
        self.0.keys()
    }
}

impl<K: Hash + Eq> FromIterator<K> for Set<K> {
    fn from_iter<I: IntoIterator<Item = K>>(values: I) -> Set<K> {
        let mut set = Set::default();
        for value in values {
            set.insert(value);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    /// A hash with which many numbers collide, and many more have the same slot.
    fn crowded(number: u32) -> u64 {
        hash_of(&(number % 7)) << u64::from(number % 3)
    }

    proptest! {
        #[test]
        fn a_table_is_a_set_of_numbers(steps in prop::collection::vec((0..40u32, 0..5u8), 0..200)) {
            let (mut table, mut set) = (Table::default(), HashSet::new());
            for (number, step) in steps {
                match step {
                    0 | 1 if set.insert(number) => table.insert(crowded(number), number),
                    2 => {
                        set.remove(&number);
                        table.remove(crowded(number), number);
                    }
                    3 if number == 0 => {
                        set.clear();
                        table.clear();
                    }
                    4 if number < 10 => {
                        set.retain(|kept| *kept < number);
                        table.begin_anew(set.iter().map(|&kept| (crowded(kept), kept)));
                    }
                    _ => {}
                }
                prop_assert_eq!(table.len(), set.len());
                for number in 0..40 {
                    let found = table.find(crowded(number), |other| other == number);
                    prop_assert_eq!(found.is_some(), set.contains(&number), "{}", number);
                }
            }
        }

        #[test]
        fn a_map_is_a_map_in_the_order_of_its_keys(entries in prop::collection::vec((0..30u8, any::<u16>()), 0..100)) {
            let mut order: Vec<u8> = Vec::new();
            let (mut map, mut twin) = (Map::default(), HashMap::new());
            for (key, value) in entries {
                if !twin.contains_key(&key) {
                    order.push(key);
                }
                if value % 3 == 0 {
                    let kept = *map.get_or_insert_with(key, || value);
                    prop_assert_eq!(kept, *twin.entry(key).or_insert(value));
                } else {
                    prop_assert_eq!(map.insert(key, value), twin.insert(key, value));
                }
            }
            prop_assert_eq!(map.keys().copied().collect::<Vec<_>>(), order);
            for key in 0..30 {
                prop_assert_eq!(map.get(&key), twin.get(&key));
                prop_assert_eq!(map.get_key_value(&key), twin.get_key_value(&key));
            }
        }
    }
}
