//! Interned values: two values are equal exactly if their ids are. Undone by truncation.

use std::hash::Hash;

use crate::bounded::LOOKED_AT;
use crate::hash::hash_of;
use crate::hash_table::Table;
use crate::memory;

/// Interned values: two values are equal exactly if their ids are. Id 0 is the default value given to `new`.
#[derive(Clone)]
pub struct Interner<T> {
    /// The values, by id.
    pub values: Vec<T>,
    /// All values but the first, by hash.
    index: Table,
}

impl<T: Copy + Eq + Hash> Interner<T> {
    /// An interner with only the default value.
    pub fn new(zero: T) -> Interner<T> {
        Interner { values: vec![zero], index: Table::default() }
    }

    /// The id of a value.
    pub fn intern(&mut self, value: T) -> u32 {
        if value == self.values[0] {
            return 0;
        }
        let hash = hash_of(&value);
        if let Some(known) = self.index.find(hash, |id| self.values[id as usize] == value) {
            return known;
        }
        let id = self.values.len() as u32;
        self.values.push(value);
        self.index.insert(hash, id);
        id
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_list(&self.values) + self.index.memory_bytes()
    }

    /// The id of a value, if it has one.
    pub fn find(&self, value: T) -> Option<u32> {
        if value == self.values[0] {
            return Some(0);
        }
        self.index.find(hash_of(&value), |id| self.values[id as usize] == value)
    }

    /// Forgets all but the first `len` values; `len` is at least 1.
    pub fn truncate(&mut self, len: usize) {
        if self.values.len() > 2 * len + LOOKED_AT {
            self.values.truncate(len);
            self.index.begin_anew(self.values[1..].iter().zip(1..).map(|(value, id)| (hash_of(value), id)));
        }
        while self.values.len() > len {
            let id = self.values.len() as u32 - 1;
            let value = self.values.pop().expect("the loop runs only while there are values");
            self.index.remove(hash_of(&value), id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forgotten_gets_its_ids_again() {
        let mut interner = Interner::new(0u32);
        for kept in [0, 1, 7, LOOKED_AT as u32] {
            for few in [1, LOOKED_AT as u32, 4 * LOOKED_AT as u32] {
                for value in 0..=kept + few {
                    assert_eq!(interner.intern(value), value);
                }
                interner.truncate(kept as usize + 1);
                assert_eq!(interner.values.len(), kept as usize + 1);
                assert_eq!(
                    [interner.find(kept), interner.find(kept + 1), interner.find(kept + few)],
                    [Some(kept), None, None]
                );
            }
        }
        assert!(interner.memory_bytes() < 1 << 20);
    }
}
