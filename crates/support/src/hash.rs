//! The hash of every table: fast for numbers, keyed for text.
//!
//! Keys of a schema, names of rules and classes of characters come from whoever sends a grammar. With a hash that is
//! the same in every process, an attacker can choose thousands of them that collide, and each look-up would compare
//! them all (Crosby & Wallach 2003). So bytes are hashed with a key that is drawn once for the process. Numbers such as
//! ids are our own and are hashed as fast as possible. Nothing may depend on the order of a table, which differs from
//! one process to the next.

use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::LazyLock;

use rustc_hash::FxHasher;

/// The key of this process.
static KEY: LazyLock<foldhash::quality::RandomState> = LazyLock::new(foldhash::quality::RandomState::default);

/// A hasher whose hashes of text cannot be predicted.
#[derive(Clone, Default)]
pub struct KeyedHasher(FxHasher);

/// Makes hashers under the key of this process.
pub type KeyedState = BuildHasherDefault<KeyedHasher>;

/// A map keyed by text that a user may choose.
pub type HashMap<K, V> = std::collections::HashMap<K, V, KeyedState>;

/// A set of texts that a user may choose.
pub type HashSet<K> = std::collections::HashSet<K, KeyedState>;

/// The hash of a value: the same throughout a process.
#[inline]
pub fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    KeyedState::default().hash_one(value)
}

/// One function for all types of keys, so that its code is loaded only once.
#[inline(never)]
fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hasher = KEY.build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

impl Hasher for KeyedHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write_u64(hash_bytes(bytes));
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.0.write_u8(number);
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.0.write_u16(number);
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.0.write_u32(number);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0.write_u64(number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.0.write_usize(number);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of equal length whose fixed hashes agree in the twelve bits that choose a slot.
    fn colliding(hash: impl Fn(&str) -> u64) -> Vec<String> {
        let slot = |text: &str| hash(text) >> 52;
        (0u32..).map(|number| format!("{number:020}")).filter(|text| slot(text) == 7).take(500).collect()
    }

    #[test]
    fn texts_that_collide_elsewhere_do_not_collide_here() {
        let fixed = |text: &str| BuildHasherDefault::<FxHasher>::default().hash_one(text);
        let texts = colliding(fixed);
        let slots = |hash: &dyn Fn(&str) -> u64| {
            texts.iter().map(|text| hash(text) >> 52).collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!(slots(&fixed), 1);
        // 500 texts in 4,096 slots take 470 of them on average.
        assert!(slots(&|text| hash_of(text)) > 300, "{}", slots(&|text| hash_of(text)));
    }

    #[test]
    fn equal_texts_have_equal_hashes_however_they_are_held() {
        assert_eq!(hash_of("key"), hash_of(&String::from("key")));
        assert_eq!(hash_of("key"), hash_of::<Box<str>>(&"key".into()));
        assert_ne!(hash_of("key"), hash_of("kex"));
        assert_eq!(hash_of(&[1u32, 2][..]), hash_of(&vec![1u32, 2]));
    }
}
