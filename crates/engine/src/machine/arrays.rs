//! Which alternatives of an array may come at a position.
//!
//! An element may begin only if the remaining positions can still bring every counter within its bounds.

use stencilm_grammar::{Items, ItemsId};
use stencilm_support::memory;

use crate::machine::layout::Machine;

impl Machine {
    /// The alternatives that may come at a position, as bits.
    pub(crate) fn allowed(&mut self, id: ItemsId, items: &Items, place: u32, counts: &[u32]) -> u64 {
        let alternatives = items.at(place as usize);
        if items.max.is_some_and(|max| place >= max) || alternatives.is_empty() {
            return 0;
        }
        if items.contains.is_empty() {
            return u64::MAX >> (64 - alternatives.len());
        }
        let key = (id, place, counts.into());
        if let Some(&known) = self.allowed_elements.get(&key) {
            return known;
        }
        let mut allowed = 0;
        for (index, element) in alternatives.iter().enumerate() {
            let after = items.counted(counts, element.counts);
            let is_possible = after.is_some_and(|after| items.can_complete(place + 1, &after, |_| true));
            allowed |= u64::from(is_possible) << index;
        }
        let owned = memory::of_slice::<u32>(counts.len());
        self.allowed_elements.insert(key, allowed, owned);
        allowed
    }
}
