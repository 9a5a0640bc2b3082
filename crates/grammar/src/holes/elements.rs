//! Elements of an array that were read, from the last one on.
//!
//! What is remembered is the place of the first of them, how many there are as far as that makes a difference, and the
//! counters.

use rustc_hash::FxHashMap;

use crate::ir::grammar::{Element, Items};
use crate::json_schema::read::canonical::canonical_json;

/// Stands for the value of an element that contains a hole.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// What is known of the elements read so far, as a number of [`ArrayStates`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct ArrayState(u32);

/// The position of an element in its array, as far as the alternatives depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Slot {
    /// A leading position.
    At(u32),
    /// Any later place.
    Rest,
}

/// The elements of an array that were read so far, from its end backwards.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Elements {
    /// The position of the first of them; `None` if there are none.
    pub first: Option<Slot>,
    /// How many there are, clamped to the least number where there is no greatest number.
    pub count: u32,
    /// The counters, clamped in the same way.
    pub counts: Box<[u32]>,
    /// The values of the elements that are compared, as numbers of their texts; empty once two that must be equal were
    /// seen.
    pub values: Box<[u32]>,
    /// Whether two elements were equal, where two must be.
    pub has_repeat: bool,
    /// The place where the element begins whose end has been seen. It's compared with what comes before it only when
    /// its beginning is known.
    pub ends: u32,
}

/// The states of one recogniser; equal states have the same number.
#[derive(Default)]
pub(super) struct ArrayStates {
    states: Vec<Elements>,
    index: FxHashMap<Elements, ArrayState>,
    values: FxHashMap<Vec<u8>, u32>,
}

impl ArrayStates {
    pub fn id(&mut self, elements: Elements) -> ArrayState {
        let ArrayStates { states, index, .. } = self;
        *index.entry(elements).or_insert_with_key(|elements| {
            states.push(elements.clone());
            ArrayState(states.len() as u32 - 1)
        })
    }

    pub fn get(&self, state: ArrayState) -> &Elements {
        &self.states[state.0 as usize]
    }

    /// The number of a JSON text; equal JSON values have the same number.
    pub fn value(&mut self, written: &[u8]) -> u32 {
        let next = self.values.len() as u32;
        *self.values.entry(canonical_json(written)).or_insert(next)
    }
}

impl Elements {
    /// The positions that the element before these may have.
    pub fn slots_before(&self, items: &Items) -> Vec<Slot> {
        let leading = items.prefix.len() as u32;
        let rest = (!items.rest.is_empty()).then_some(Slot::Rest);
        match self.first {
            None => rest.into_iter().chain((0..leading).map(Slot::At)).collect(),
            Some(Slot::Rest) => rest.into_iter().chain(leading.checked_sub(1).map(Slot::At)).collect(),
            Some(Slot::At(at)) => at.checked_sub(1).map(Slot::At).into_iter().collect(),
        }
    }

    /// Whether these may be the first elements of the array, as far as positions go.
    pub fn may_be_first(&self, items: &Items) -> bool {
        match self.first {
            None | Some(Slot::At(0)) => true,
            Some(Slot::Rest) => items.prefix.is_empty(),
            Some(Slot::At(_)) => false,
        }
    }

    /// Whether an array may consist of exactly these elements.
    pub fn is_complete(&self, items: &Items) -> bool {
        let within = |count: u32, min: u32, max: Option<u32>| count >= min && max.is_none_or(|max| count <= max);
        let mut counters = items.contains.iter().enumerate();
        self.may_be_first(items)
            && (self.has_repeat || !items.must_repeat())
            && within(self.count, items.min, items.max)
            && counters.all(|(index, &(min, max))| within(self.counts.get(index).copied().unwrap_or(0), min, max))
    }

    /// These elements with one more before them; `None` if that is one too many.
    pub fn with(&self, items: &Items, slot: Slot, element: &Element) -> Option<Elements> {
        let one_more = |count: u32, min: u32, max: Option<u32>| match max {
            Some(max) => (count < max).then_some(count + 1),
            None => Some((count + 1).min(min)),
        };
        let mut counts = vec![0; items.contains.len()];
        for (index, &(min, max)) in items.contains.iter().enumerate() {
            let count = self.counts.get(index).copied().unwrap_or(0);
            counts[index] = if element.counts >> index & 1 == 1 { one_more(count, min, max)? } else { count };
        }
        let count = one_more(self.count, items.min, items.max)?;
        Some(Elements { first: Some(slot), count, counts: counts.into(), ..self.clone() })
    }

    /// Whether any element was read.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

/// The alternatives at a position.
pub(super) fn alternatives(items: &Items, slot: Slot) -> &[Element] {
    match slot {
        Slot::At(at) => &items.prefix[at as usize],
        Slot::Rest => &items.rest,
    }
}
