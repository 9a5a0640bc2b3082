//! Values that are equal exactly when their ids are, undone by truncation.

use std::hash::{BuildHasher, BuildHasherDefault, Hash};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// Values that are equal exactly when their ids are. Id 0 is the default value given to `new`.
#[derive(Clone)]
pub(crate) struct Interner<T> {
    /// The values, by id.
    pub values: Vec<T>,
    index: HashTable<u32>,
}

/// The hash of a value, the same in every run.
pub(crate) fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(value)
}

impl<T: Copy + Eq + Hash> Interner<T> {
    pub fn new(zero: T) -> Interner<T> {
        let mut interner = Interner { values: Vec::new(), index: HashTable::new() };
        interner.intern(zero);
        interner
    }

    /// The id of a value.
    pub fn intern(&mut self, value: T) -> u32 {
        let hash = hash_of(&value);
        if let Some(&known) = self.index.find(hash, |&id| self.values[id as usize] == value) {
            return known;
        }
        let id = self.values.len() as u32;
        self.values.push(value);
        let values = &self.values;
        self.index.insert_unique(hash, id, |&id| hash_of(&values[id as usize]));
        id
    }

    /// The id of a value that has one.
    pub fn find(&self, value: T) -> Option<u32> {
        self.index.find(hash_of(&value), |&id| self.values[id as usize] == value).copied()
    }

    /// Forgets all but the first values.
    pub fn truncate(&mut self, len: usize) {
        while self.values.len() > len {
            let id = self.values.len() as u32 - 1;
            let value = self.values.pop().expect("the loop runs only while there are values");
            if let Ok(slot) = self.index.find_entry(hash_of(&value), |&known| known == id) {
                slot.remove();
            }
        }
    }
}
