//! The register of an array: the number of elements, the counters, and the elements themselves, if they must differ.

use stencilm_grammar::{Items, ItemsId, canonical_json};

use crate::machine::expansion::Expansion;
use crate::machine::frame::{ElementChange, Frame, Phase};
use crate::machine::layout::Machine;
use crate::parse::registers::meaning::Meaning;
use crate::parse::stepper::{Compared, Run};
use crate::state::stacks::{Entry, ItemsState, NIL, Stacks, UNKNOWN_TEXT};

/// The register of an array.
#[derive(Clone, Copy)]
pub(super) struct ArrayRegister {
    pub items: ItemsId,
    /// Before an element; in an array without brackets, also after one.
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
        if self.before_element {
            let place = state.place.min(items.prefix.len() as u32);
            let may_end = items.is_bare() && state.place >= items.min && items.is_satisfied(&counts);
            Phase::Item { place, allowed, may_end }
        } else {
            let more = !state.takes_for_repeat() && allowed != 0;
            Phase::AfterValue { more, may_close: may_close(items, state, &counts) }
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

    /// Adds the element that ends here to the elements so far, or records that two are equal, where some must be. No
    /// register where the element must be new and is not. In an optimistic mask, which takes every element for a new
    /// one, there are two registers where the element may equal an earlier one.
    fn ended(self, run: &mut Run<'_>, register: u32) -> [Option<u32>; 2] {
        let items = run.machine.grammar().items(self.items);
        let must_repeat = items.must_repeat();
        if self.before_element || !items.compares() {
            return [Some(register), None];
        }
        let state = run.stacks.items(register);
        let text = run.text.filter(|_| run.is_exact() && state.start != UNKNOWN_TEXT);
        if let Some(compared) = &mut run.compared {
            compared.push(match text {
                Some(end) if !must_repeat => Compared::Element { start: state.start, end, seen: state.seen },
                _ => Compared::Other,
            });
        }
        let Some(text) = text else {
            return match must_repeat {
                true => run.ended_unknown(self.items, state),
                false => {
                    // The first element is new, but the next one may begin within the same token and repeat it.
                    run.assumed.element = true;
                    let seen = run.stacks.seen.append(state.seen, UNKNOWN_TEXT);
                    [Some(run.stacks.intern_items(ItemsState { seen, start: NIL, ..state })), None]
                }
            };
        };
        let written = run.stacks.since(text, state.start);
        let value = run.stacks.intern_text(&canonical_json(&written));
        let mut ended = ItemsState { start: NIL, ..state };
        match (run.stacks.seen.has(state.seen, value), must_repeat) {
            (true, false) => return [None, None],
            (true, true) => ended = ItemsState { seen: NIL, spelled: NIL, has_repeat: true, ..ended },
            (false, _) => ended.seen = run.stacks.seen.append(state.seen, value),
        }
        if must_repeat && !ended.has_repeat {
            let before = run.stacks.append(state.spelled, state.start);
            ended.spelled = run.stacks.append(before, text);
        }
        [Some(run.stacks.intern_items(ended)), None]
    }

    /// Clamping is possible because each element reads at least one byte.
    fn describe(self, machine: &Machine, stacks: &Stacks, register: u32, horizon: u32, description: &mut Vec<u64>) {
        let state = stacks.items(register);
        let items = machine.grammar().items(self.items);
        let counts = counts_of(items, state, stacks);
        let far = u64::from(horizon) + 1;
        let needs =
            || counts.iter().zip(&items.contains).map(|(&count, &(min, _))| u64::from(min.saturating_sub(count)));
        let room = items.max.map(|max| u64::from(max - state.place));
        let roomy = room.is_none_or(|room| room > far + needs().sum::<u64>());
        // If there is enough room and some element counts towards nothing, the bounds do not affect each other.
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

impl Run<'_> {
    /// The register of an array before an element that begins here.
    fn begin_element(&mut self, state: ItemsState) -> u32 {
        let start = if state.has_repeat { NIL } else { self.text_here() };
        self.stacks.intern_items(ItemsState { start, ..state })
    }

    /// The registers after an element with an unknown value, where two elements must be equal.
    fn ended_unknown(&mut self, id: ItemsId, state: ItemsState) -> [Option<u32>; 2] {
        let is_first = state.seen == NIL;
        let seen = if is_first { self.stacks.seen.append(NIL, UNKNOWN_TEXT) } else { state.seen };
        let new = Some(self.stacks.intern_items(ItemsState { seen, start: NIL, ..state }));
        let repeat = ItemsState { start: NIL, has_repeat: true, ..state };
        let items = self.machine.grammar().items(id);
        if is_first || !may_close(items, repeat, &counts_of(items, repeat, self.stacks)) {
            return [new, None];
        }
        self.assumed.repeat = true;
        [new, Some(self.stacks.intern_items(repeat))]
    }

    /// The register after one more element, from the state before it.
    fn one_more_element(&mut self, id: ItemsId, old: ItemsState, mask: u32) -> u32 {
        let grammar = self.machine.grammar().clone();
        let items = grammar.items(id);
        let mut counts = old.counts;
        if mask != 0 {
            let before = counts_of(items, old, self.stacks);
            let after = items.counted(&before, mask).unwrap_or(before);
            counts = after.iter().fold(NIL, |list, &count| self.stacks.append(list, count));
        }
        // If there is only a minimum, counting stops there.
        let next = old.place.saturating_add(1);
        let place = if items.max.is_none() { next.min(items.min.max(items.prefix.len() as u32)) } else { next };
        self.stacks.intern_items(ItemsState { place, counts, ..old })
    }
}

/// Whether an array may end after an element.
pub(crate) fn may_close(items: &Items, state: ItemsState, counts: &[u32]) -> bool {
    let is_compared = items.must_repeat() && !state.has_repeat;
    state.place >= items.min && items.is_satisfied(counts) && !is_compared
}

/// The counters in a state.
pub(crate) fn counts_of(items: &Items, state: ItemsState, stacks: &Stacks) -> Vec<u32> {
    if state.counts == NIL {
        return vec![0; items.contains.len()];
    }
    let mut counts: Vec<u32> = stacks.list(state.counts).collect();
    counts.reverse();
    counts
}
