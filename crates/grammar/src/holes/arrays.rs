//! Arrays whose elements are counted, against a text with holes: their elements from the last one on.
//!
//! What is remembered of the elements that were read is the place of the first of them, how many there are as far as that makes
//! a difference, and the counters. Elements that must differ are compared as JSON values; where a hole is in one, whether
//! it differs is not decided.

use rustc_hash::FxHashMap;
use stencilm_regex::ExprId;

use super::place::Place;
use super::recogniser::{GoalId, Recogniser, Step};
use crate::ir::error::GrammarError;
use crate::ir::grammar::{Element, Items};
use crate::json_schema::canonical_json;

/// The value of an element that has a hole in it.
const UNKNOWN: u32 = u32::MAX;

/// What is known of the elements that were read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct ArrayState(u32);

/// The place of an element among the alternatives of its array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Slot {
    /// A leading place.
    At(u32),
    /// Any later place.
    Rest,
}

/// The elements of an array that were read, from its end on.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Elements {
    /// The place of the first of them; `None` where there is none.
    pub first: Option<Slot>,
    /// How many there are; not above the least number where there is no greatest.
    pub count: u32,
    /// The counters, likewise.
    pub counts: Box<[u32]>,
    /// The values of those that must differ, as numbers of their texts.
    values: Box<[u32]>,
    /// Where an element begins whose end was met: it is told apart from what comes before it when its beginning is.
    ends: u32,
}

/// The states of one recogniser: equal ones are one number.
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

    fn value(&mut self, written: &[u8]) -> u32 {
        let next = self.values.len() as u32;
        *self.values.entry(canonical_json(written)).or_insert(next)
    }
}

impl Elements {
    /// The places that the element before these may have.
    pub fn slots_before(&self, items: &Items) -> Vec<Slot> {
        let leading = items.prefix.len() as u32;
        let rest = (!items.rest.is_empty()).then_some(Slot::Rest);
        match self.first {
            None => rest.into_iter().chain((0..leading).map(Slot::At)).collect(),
            Some(Slot::Rest) => rest.into_iter().chain(leading.checked_sub(1).map(Slot::At)).collect(),
            Some(Slot::At(at)) => at.checked_sub(1).map(Slot::At).into_iter().collect(),
        }
    }

    /// Whether no element need come before these, as far as places go.
    pub fn may_be_first(&self, items: &Items) -> bool {
        match self.first {
            None | Some(Slot::At(0)) => true,
            Some(Slot::Rest) => items.prefix.is_empty(),
            Some(Slot::At(_)) => false,
        }
    }

    /// Whether an array may have these elements and no others.
    pub fn is_complete(&self, items: &Items) -> bool {
        let within = |count: u32, min: u32, max: Option<u32>| count >= min && max.is_none_or(|max| count <= max);
        let mut counters = items.contains.iter().enumerate();
        self.may_be_first(items)
            && within(self.count, items.min, items.max)
            && counters.all(|(index, &(min, max))| within(self.counts.get(index).copied().unwrap_or(0), min, max))
    }

    /// The same with one element more before them; `None` where that is too many.
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

impl Recogniser<'_> {
    pub(super) fn begin_array(&mut self, goal: GoalId, items: &Items, end: Place) -> Result<(), GrammarError> {
        let none = self.arrays.id(Elements::default());
        self.read_lexeme(goal, Step::AfterElement(none), items.surface.close, end)?;
        if items.may_be_empty() {
            self.read_lexeme(goal, Step::Done, items.surface.empty, end)?;
        }
        Ok(())
    }

    pub(super) fn enter_array(
        &mut self,
        goal: GoalId,
        items: &Items,
        step: Step,
        at: Place,
    ) -> Result<(), GrammarError> {
        match step {
            Step::AfterElement(state) => {
                let elements = self.arrays.get(state).clone();
                for slot in elements.slots_before(items) {
                    for element in alternatives(items, slot) {
                        if let Some(mut next) = elements.with(items, slot, element) {
                            next.ends = if items.unique { at.position() } else { 0 };
                            let next = self.arrays.id(next);
                            self.call(goal, Step::Element(next), element.value, at)?;
                        }
                    }
                }
            }
            Step::Element(state) => {
                let (state, at) = match items.unique {
                    true => match self.differing(state, at) {
                        Some(next) => next,
                        None => return Ok(()),
                    },
                    false => (state, at),
                };
                if items.surface.item != ExprId::EMPTY {
                    self.read_lexeme(goal, Step::AfterElement(state), items.surface.item, at)?;
                } else {
                    self.go_on(goal, Step::AfterElement(state), at);
                }
                if self.arrays.get(state).is_complete(items) {
                    self.read_lexeme(goal, Step::Done, items.surface.open, at)?;
                }
            }
            _ => unreachable!("an array has no other steps"),
        }
        Ok(())
    }

    /// The state with the value of the element that begins at a place, which is none of those before; in doubt where it is not
    /// known.
    fn differing(&mut self, state: ArrayState, at: Place) -> Option<(ArrayState, Place)> {
        let mut elements = self.arrays.get(state).clone();
        let end = std::mem::take(&mut elements.ends);
        let is_unknown = self.template.has_hole(at.position(), end);
        let value = if is_unknown { UNKNOWN } else { self.arrays.value(self.template.between(at.position(), end)) };
        let is_first = elements.values.is_empty();
        let in_doubt = elements.values.contains(&UNKNOWN) || (is_unknown && !is_first);
        if !elements.values.contains(&value) {
            elements.values = [&elements.values[..], &[value]].concat().into();
        } else if !is_unknown {
            return None;
        }
        Some((self.arrays.id(elements), if in_doubt { at.doubted() } else { at }))
    }
}

/// The alternatives at a place.
pub(super) fn alternatives(items: &Items, slot: Slot) -> &[Element] {
    match slot {
        Slot::At(at) => &items.prefix[at as usize],
        Slot::Rest => &items.rest,
    }
}
