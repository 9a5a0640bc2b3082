//! Lists and tables that grow a little at a time.
//!
//! A list that has no more room moves to twice as much, and so does a table. What all grammars of a vocabulary share holds
//! millions of entries, and a mask that happened to be the one at which it moved took 5 to 17 ms. Here what is full stays where
//! it is, and only parts move, none of which has more than some thousand entries.

use std::hash::Hash;
use std::ops::{Index, IndexMut};

use hashbrown::HashTable;
use rustc_hash::FxHashMap;

use crate::memory;

/// A part of a list has so many entries.
const PART: usize = 4_096;

/// A table with more numbers than this is cut into parts.
const LARGE_TABLE: usize = 32_768;

/// Into so many.
const TABLE_PARTS: usize = 64;

/// A list that never moves but for its first few thousand entries.
#[derive(Clone)]
pub(crate) struct List<T> {
    first: Vec<T>,
    /// All of the same length but the last.
    rest: Vec<Vec<T>>,
}

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List { first: Vec::new(), rest: Vec::new() }
    }
}

impl<T> List<T> {
    pub fn len(&self) -> usize {
        match self.rest.split_last() {
            Some((last, full)) => (full.len() + 1) * PART + last.len(),
            None => self.first.len(),
        }
    }

    pub fn push(&mut self, value: T) {
        if self.first.len() < PART {
            self.first.push(value);
            return;
        }
        match self.rest.last_mut().filter(|last| last.len() < PART) {
            Some(last) => last.push(value),
            None => {
                let mut part = Vec::with_capacity(PART);
                part.push(value);
                self.rest.push(part);
            }
        }
    }

    /// Makes room for so many more, as far as entries could move.
    pub fn reserve(&mut self, more: usize) {
        self.first.reserve(more.min(PART - self.first.len()));
    }

    pub fn shrink_to_fit(&mut self) {
        self.rest.last_mut().unwrap_or(&mut self.first).shrink_to_fit();
    }

    /// The entries, in order.
    pub fn into_iter(self) -> impl Iterator<Item = T> {
        self.first.into_iter().chain(self.rest.into_iter().flatten())
    }

    /// Bytes of memory held, but for what the entries own.
    pub fn memory_bytes(&self) -> usize {
        let rest = match self.rest.split_last() {
            Some((last, full)) => memory::of_list(last) + full.len() * memory::of_slice::<T>(PART),
            None => 0,
        };
        memory::of_list(&self.first) + memory::of_list(&self.rest) + rest
    }
}

impl<T> Index<usize> for List<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        if index < PART { &self.first[index] } else { &self.rest[index / PART - 1][index % PART] }
    }
}

impl<T> IndexMut<usize> for List<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        if index < PART { &mut self.first[index] } else { &mut self.rest[index / PART - 1][index % PART] }
    }
}

/// Hashes and numbers: a table that does not look at what the numbers stand for when it grows.
#[derive(Clone, Default)]
pub(crate) struct Numbers {
    whole: HashTable<(u32, u32)>,
    /// What was the whole, by hash, once it is large.
    parts: Vec<HashTable<(u32, u32)>>,
    /// For how many there is room in all tables.
    room: usize,
}

/// The hash that places a number, from the half that is kept (Fibonacci hashing: Knuth 1998, 6.4).
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The part of a table that a hash belongs to. A table places by the lowest and the highest bits.
fn part_of(spread: u64) -> usize {
    (spread >> 40) as usize % TABLE_PARTS
}

impl Numbers {
    #[inline]
    pub fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let spread = spread(hash);
        let table = if self.parts.is_empty() { &self.whole } else { &self.parts[part_of(spread)] };
        table.find(spread, |&(other, number)| other == hash && is_it(number)).map(|&(_, number)| number)
    }

    /// Adds a number that is not in the table yet.
    pub fn insert(&mut self, hash: u32, number: u32) {
        if self.whole.len() == LARGE_TABLE {
            self.cut();
        }
        let place = spread(hash);
        let table = if self.parts.is_empty() { &mut self.whole } else { &mut self.parts[part_of(place)] };
        let before = table.capacity();
        table.insert_unique(place, (hash, number), |&(hash, _)| spread(hash));
        self.room += table.capacity() - before;
    }

    #[cold]
    fn cut(&mut self) {
        self.parts = vec![HashTable::new(); TABLE_PARTS];
        self.room = 0;
        for (hash, number) in std::mem::take(&mut self.whole) {
            self.insert(hash, number);
        }
    }

    /// Makes room for so many more.
    pub fn reserve(&mut self, more: usize) {
        if self.parts.is_empty() {
            let before = self.whole.capacity();
            self.whole.reserve(more.min(LARGE_TABLE.saturating_sub(self.whole.len())), |&(hash, _)| spread(hash));
            self.room += self.whole.capacity() - before;
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(u32, u32)>(self.room) + memory::of_list(&self.parts)
    }
}

/// A key that is a number of a list that grows.
pub(crate) trait Numbered: Copy + Eq + Hash {
    fn number(self) -> usize;
}

/// What is known of some entries of a list, a table for each of its parts.
#[derive(Clone)]
pub(crate) struct Known<K, V> {
    tables: Vec<FxHashMap<K, V>>,
    len: usize,
    bytes: usize,
}

impl<K, V> Default for Known<K, V> {
    fn default() -> Known<K, V> {
        Known { tables: Vec::new(), len: 0, bytes: 0 }
    }
}

impl<K: Numbered, V> Known<K, V> {
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn get(&self, key: K) -> Option<&V> {
        self.tables.get(key.number() / PART)?.get(&key)
    }

    #[inline]
    pub fn contains(&self, key: K) -> bool {
        self.get(key).is_some()
    }

    pub fn insert(&mut self, key: K, value: V) {
        let part = key.number() / PART;
        if part >= self.tables.len() {
            self.tables.resize_with(part + 1, FxHashMap::default);
        }
        let table = &mut self.tables[part];
        let before = memory::of_table::<(K, V)>(table.capacity());
        self.len += usize::from(table.insert(key, value).is_none());
        self.bytes += memory::of_table::<(K, V)>(table.capacity()) - before;
    }

    /// Bytes of memory held, but for what the values own.
    pub fn memory_bytes(&self) -> usize {
        self.bytes + memory::of_list(&self.tables)
    }
}

impl<K: Numbered, V> Index<K> for Known<K, V> {
    type Output = V;

    #[inline]
    fn index(&self, key: K) -> &V {
        &self.tables[key.number() / PART][&key]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Numbered for u32 {
        fn number(self) -> usize {
            self as usize
        }
    }

    #[test]
    fn what_was_added_is_there_however_much_it_is() {
        let count = 3 * LARGE_TABLE as u32 + 5;
        let (mut list, mut numbers, mut known) = (List::default(), Numbers::default(), Known::default());
        let hash = |number: u32| number.wrapping_mul(0x85EB_CA6B) ^ number >> 7;
        for number in 0..count {
            assert_eq!(list.len(), number as usize);
            list.push(number);
            assert_eq!(numbers.find(hash(number), |other| other == number), None);
            numbers.insert(hash(number), number);
            if number % 3 == 0 {
                known.insert(number, !number);
            }
        }
        for number in (0..count).step_by(7) {
            assert_eq!(list[number as usize], number);
            assert_eq!(numbers.find(hash(number), |other| other == number), Some(number));
            assert_eq!(known.get(number).copied(), (number % 3 == 0).then_some(!number));
        }
        assert_eq!(known.len(), count.div_ceil(3) as usize);
        assert!(list.memory_bytes() < count as usize * 4 + 40_000);
        assert!(numbers.memory_bytes() >= count as usize * 9 && numbers.memory_bytes() < count as usize * 40);
        assert!(known.memory_bytes() >= known.len() * 9);
        assert!(list.into_iter().eq(0..count));
    }
}
