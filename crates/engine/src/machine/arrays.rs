//! What an array decides before an element and behind one: which alternatives may come, and whether it may close.
//!
//! Nothing is begun after which the places left cannot bring every counter within its bounds.

use stencilm_grammar::{Items, ItemsId};
use stencilm_regex::memory;

use crate::machine::frame::Phase;
use crate::machine::layout::Machine;
use crate::state::stacks::{ItemsState, NIL, Stacks};

impl Machine {
    /// What an array's register says before an element.
    pub(crate) fn item_phase(&mut self, id: ItemsId, state: ItemsState, stacks: &Stacks) -> Phase {
        let grammar = self.grammar.clone();
        let items = grammar.items(id);
        let counts = counts_of(items, state, stacks);
        let allowed = self.allowed(id, items, state.place, &counts);
        let may_end = items.is_bare() && state.place >= items.min && items.is_satisfied(&counts);
        Phase::Item { place: state.place.min(items.prefix.len() as u32), allowed, may_end }
    }

    /// What an array's register says behind an element.
    pub(crate) fn after_item_phase(&mut self, id: ItemsId, state: ItemsState, stacks: &Stacks) -> Phase {
        let grammar = self.grammar.clone();
        let items = grammar.items(id);
        let counts = counts_of(items, state, stacks);
        let may_close = may_close(items, state, &counts);
        let more = !state.takes_for_repeat() && self.allowed(id, items, state.place, &counts) != 0;
        Phase::AfterValue { more, may_close }
    }

    /// The alternatives that may come at a place, as bits.
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

    /// The number of elements after one more: where nothing but the least number counts, not above it.
    pub(crate) fn next_place(items: &Items, place: u32) -> u32 {
        let next = place.saturating_add(1);
        if items.max.is_none() { next.min(items.min.max(items.prefix.len() as u32)) } else { next }
    }

    /// Writes what of a state can make a difference to tokens of at most `horizon` bytes. Each element reads at least one.
    pub(crate) fn describe_items(
        &self,
        id: ItemsId,
        state: ItemsState,
        stacks: &Stacks,
        horizon: u32,
        description: &mut Vec<u64>,
    ) {
        let items = self.grammar.items(id);
        let counts = counts_of(items, state, stacks);
        let far = u64::from(horizon) + 1;
        let needs =
            || counts.iter().zip(&items.contains).map(|(&count, &(min, _))| u64::from(min.saturating_sub(count)));
        let room = items.max.map(|max| u64::from(max - state.place));
        let roomy = room.is_none_or(|room| room > far + needs().sum::<u64>());
        // With elements that count for nothing and places enough, every bound is on its own.
        let apart = roomy && items.rest.iter().any(|element| element.counts == 0);
        let begun = u64::from(state.has_repeat) << 1 | u64::from(state.seen != NIL);
        if !apart || (state.place as usize) < items.prefix.len() {
            description.extend([begun << 32 | u64::from(state.place), room.unwrap_or(u64::MAX)]);
            description.extend(counts.iter().map(|&count| u64::from(count)));
            return;
        }
        let missing = u64::from(items.min.saturating_sub(state.place)).min(far);
        description.extend([begun << 32 | 1 << 34 | missing, far]);
        for ((&count, &(_, max)), need) in counts.iter().zip(&items.contains).zip(needs()) {
            let room = max.map_or(far, |max| u64::from(max - count).min(far));
            description.push(need.min(far) << 32 | room);
        }
    }
}

/// Whether an array may end behind an element.
pub(crate) fn may_close(items: &Items, state: ItemsState, counts: &[u32]) -> bool {
    let is_compared = items.must_repeat() && !state.has_repeat;
    state.place >= items.min && items.is_satisfied(counts) && !is_compared
}

/// The counters of a state.
pub(crate) fn counts_of(items: &Items, state: ItemsState, stacks: &Stacks) -> Vec<u32> {
    if state.counts == NIL {
        return vec![0; items.contains.len()];
    }
    let mut counts: Vec<u32> = stacks.list(state.counts).collect();
    counts.reverse();
    counts
}
