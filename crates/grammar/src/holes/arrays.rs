//! Arrays whose elements are counted, against a text with holes: their elements from the last one on.
//!
//! Elements that are compared are so as JSON values; where a hole is in one, whether it differs is not decided.

use stencilm_regex::ExprId;

use super::elements::{ArrayState, Elements, UNKNOWN, alternatives};
use super::goals::{GoalId, Recogniser, Step};
use super::place::Place;
use crate::error::GrammarError;
use crate::ir::grammar::Items;

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
                            next.ends = if items.compares() { at.position() } else { 0 };
                            let next = self.arrays.id(next);
                            self.call(goal, Step::Element(next), element.value, at)?;
                        }
                    }
                }
            }
            Step::Element(state) => {
                for (state, at) in self.compared(items, state, at).into_iter().flatten() {
                    if items.surface.item != ExprId::EMPTY {
                        self.read_lexeme(goal, Step::AfterElement(state), items.surface.item, at)?;
                    } else {
                        self.go_on(goal, Step::AfterElement(state), at);
                    }
                    if self.arrays.get(state).is_complete(items) {
                        self.read_lexeme(goal, Step::Done, items.surface.open, at)?;
                    }
                }
            }
            _ => unreachable!("an array has no other steps"),
        }
        Ok(())
    }

    /// The states with the value of the element that begins at a place: one for the case that it differs from all
    /// elements after it, and one for the case that it equals one of them. Both are undecided where that isn't known.
    fn compared(&mut self, items: &Items, state: ArrayState, at: Place) -> [Option<(ArrayState, Place)>; 2] {
        if !items.compares() {
            return [Some((state, at)), None];
        }
        let mut elements = self.arrays.get(state).clone();
        let end = std::mem::take(&mut elements.ends);
        if elements.has_repeat {
            return [Some((self.arrays.id(elements), at)), None];
        }
        let is_unknown = self.template.has_hole(at.position(), end);
        let value = if is_unknown { UNKNOWN } else { self.arrays.value(self.template.between(at.position(), end)) };
        let is_first = elements.values.is_empty();
        let is_undecided = elements.values.contains(&UNKNOWN) || (is_unknown && !is_first);
        let is_known = elements.values.contains(&value);
        let repeated = (items.must_repeat() && (is_undecided || is_known)).then(|| {
            let repeated = Elements { values: Box::default(), has_repeat: true, ..elements.clone() };
            let is_certain = is_known && !is_unknown;
            (self.arrays.id(repeated), if is_certain { at } else { at.undecided() })
        });
        if !is_known {
            elements.values = [&elements.values[..], &[value]].concat().into();
        } else if !is_unknown {
            return [None, repeated];
        }
        // Where two elements must be equal, one that differs does no harm.
        let at = if is_undecided && items.is_unique() { at.undecided() } else { at };
        [Some((self.arrays.id(elements), at)), repeated]
    }
}
