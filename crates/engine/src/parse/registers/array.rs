//! What an array has: how many elements, what they count for, and which they are, where they must differ.

use stencilm_grammar::{Items, ItemsId, canonical_json};

use crate::machine::expansion::Expansion;
use crate::machine::frame::{ElementChange, Frame, Phase};
use crate::machine::layout::Machine;
use crate::parse::registers::meaning::Meaning;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, ItemsState, NIL, Stacks, UNKNOWN_TEXT};

/// An array.
#[derive(Clone, Copy)]
pub(super) struct ArrayRegister {
    pub items: ItemsId,
    /// Before an element; of a bare array, also behind one.
    pub before_element: bool,
}

impl Meaning for ArrayRegister {
    type Change = ElementChange;

    fn phase(self, machine: &mut Machine, stacks: &Stacks, register: u32) -> Phase {
        let state = stacks.items(register);
        let grammar = machine.grammar().clone();
        let items = grammar.items(self.items);
        let counts = counts_of(items, state, stacks);
        let allowed = machine.allowed(self.items, items, state.place, &counts);
        let is_enough = state.place >= items.min && items.is_satisfied(&counts);
        if self.before_element {
            let place = state.place.min(items.prefix.len() as u32);
            Phase::Item { place, allowed, may_end: items.is_bare() && is_enough }
        } else {
            Phase::AfterValue { more: allowed != 0, may_close: is_enough }
        }
    }

    fn changed(run: &mut Run<'_>, change: ElementChange, expansion: &Expansion, thread: Entry) -> Option<u32> {
        let old = |run: &Run<'_>| run.stacks.items(thread.register);
        Some(match change {
            ElementChange::First => run.begin_element(ItemsState::default()),
            ElementChange::Next => run.begin_element(old(run)),
            ElementChange::Only { items, counts } => run.one_more_element(items, ItemsState::default(), counts),
            ElementChange::Counted { counts } => match run.machine.frame(expansion.frame) {
                Frame::Item(id) => run.one_more_element(id, old(run), counts),
                _ => thread.register,
            },
        })
    }

    /// With the element among those seen, or `None` where it was seen before.
    fn ended(self, run: &mut Run<'_>, register: u32) -> Option<u32> {
        if self.before_element || !run.machine.grammar().items(self.items).unique {
            return Some(register);
        }
        let state = run.stacks.items(register);
        let value = match run.text.filter(|_| run.is_exact() && state.start != UNKNOWN_TEXT) {
            Some(text) => {
                let written = run.stacks.since(text, state.start);
                let value = run.stacks.intern_text(&canonical_json(&written));
                if run.stacks.seen.has(state.seen, value) {
                    return None;
                }
                value
            }
            None => {
                // A first element is new, but the next one, which may begin within the same token, could be a repeat of it.
                run.doubt.element = true;
                UNKNOWN_TEXT
            }
        };
        let seen = run.stacks.seen.append(state.seen, value);
        Some(run.stacks.intern_items(ItemsState { seen, start: NIL, ..state }))
    }

    /// Each element reads at least one byte.
    fn describe(self, machine: &Machine, stacks: &Stacks, register: u32, horizon: u32, description: &mut Vec<u64>) {
        let state = stacks.items(register);
        let items = machine.grammar().items(self.items);
        let counts = counts_of(items, state, stacks);
        let far = u64::from(horizon) + 1;
        let needs =
            || counts.iter().zip(&items.contains).map(|(&count, &(min, _))| u64::from(min.saturating_sub(count)));
        let room = items.max.map(|max| u64::from(max - state.place));
        let roomy = room.is_none_or(|room| room > far + needs().sum::<u64>());
        // With elements that count for nothing and places enough, every bound is on its own.
        let apart = roomy && items.rest.iter().any(|element| element.counts == 0);
        let begun = u64::from(state.seen != NIL);
        if !apart || (state.place as usize) < items.prefix.len() {
            description.extend([begun << 32 | u64::from(state.place), room.unwrap_or(u64::MAX)]);
            description.extend(counts.iter().map(|&count| u64::from(count)));
            return;
        }
        let missing = u64::from(items.min.saturating_sub(state.place)).min(far);
        description.extend([begun << 32 | 1 << 33 | missing, far]);
        for ((&count, &(_, max)), need) in counts.iter().zip(&items.contains).zip(needs()) {
            let room = max.map_or(far, |max| u64::from(max - count).min(far));
            description.push(need.min(far) << 32 | room);
        }
    }
}

impl Run<'_> {
    /// The register of an array before the element that begins here.
    fn begin_element(&mut self, state: ItemsState) -> u32 {
        let start = self.text_here();
        self.stacks.intern_items(ItemsState { start, ..state })
    }

    /// The register of an array after one more element, from the state before it.
    fn one_more_element(&mut self, id: ItemsId, old: ItemsState, mask: u32) -> u32 {
        let grammar = self.machine.grammar().clone();
        let items = grammar.items(id);
        let mut counts = old.counts;
        if mask != 0 {
            let before = counts_of(items, old, self.stacks);
            let after = items.counted(&before, mask).unwrap_or(before);
            counts = after.iter().fold(NIL, |list, &count| self.stacks.append(list, count));
        }
        // Where nothing but the least number of elements counts, not above it.
        let next = old.place.saturating_add(1);
        let place = if items.max.is_none() { next.min(items.min.max(items.prefix.len() as u32)) } else { next };
        self.stacks.intern_items(ItemsState { place, counts, ..old })
    }
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
