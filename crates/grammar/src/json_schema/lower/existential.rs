//! In how many ways some members can be what at least one must be: what is negated asks for a member that fails it.
//!
//! Each thing asked is met by a member of its own or by one that meets another. Only the least choices count: a member
//! that is asked for anyway meets what its key alone decides, and a choice that asks for more than another one does not
//! count.

use rustc_hash::FxHashSet;

use super::keys::{KeyPlan, KnownKey};
use super::lowering::Lowering;
use crate::error::{ErrorKind, GrammarError};
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::merged::Merged;

/// The greatest number of choices that satisfy all existential requirements.
const MAX_CHOICES: usize = 256;
/// The greatest number of partial choices.
const MAX_PARTIAL: usize = 2_000;

/// Which member satisfies an existential requirement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Witness {
    Known(usize),
    /// A member of a class; different copies are different members.
    Class {
        index: usize,
        copy: usize,
    },
}

/// For each existential requirement, which member satisfies it.
pub(crate) type Chosen = Vec<Witness>;

/// A partial choice: requirements by index, each with the member that satisfies it.
#[derive(Clone, Default)]
struct Partial {
    chosen: Vec<(usize, Witness)>,
}

impl Lowering<'_> {
    /// All minimal choices of a member for each existential requirement.
    pub(crate) fn witnesses(&mut self, plan: &KeyPlan, merged: &Merged) -> Result<Vec<Chosen>, GrammarError> {
        let can_be = |key: &KnownKey| {
            let is_never = key.known.value.iter().any(|&term| self.normal.never_holds(term));
            key.known.forbidden.is_none() && !is_never
        };
        let fixed = |place: usize| {
            let known = plan.known.iter().enumerate().filter(move |(_, key)| key.some[place] && can_be(key));
            known.map(|(index, _)| index)
        };
        let classes = |place: usize| (0..plan.classes.len()).filter(move |&index| plan.classes[index].some[place]);
        // Requirements with the fewest choices come first.
        let mut order: Vec<usize> = (0..plan.some.len()).collect();
        order.sort_by_key(|&place| fixed(place).count() + classes(place).count());
        let mut choices = vec![Partial::default()];
        for place in order {
            let mut next: Vec<Partial> = Vec::with_capacity(choices.len());
            for choice in &choices {
                if let Some(witness) = choice.met(plan, place) {
                    next.push(choice.and(place, witness));
                    continue;
                }
                next.extend(fixed(place).map(|index| choice.and(place, Witness::Known(index))));
                for index in classes(place) {
                    // One of the members that are already needed, or one more.
                    let copies = choice.chosen.iter().filter_map(|(_, witness)| match witness {
                        Witness::Class { index: known, copy } if *known == index => Some(copy + 1),
                        _ => None,
                    });
                    let copies = copies.max().unwrap_or(0);
                    next.extend((0..=copies).map(|copy| choice.and(place, Witness::Class { index, copy })));
                }
            }
            next.retain(|choice| merged.max_members.is_none_or(|max| choice.members(plan) <= max as usize));
            if next.len() <= MAX_PARTIAL {
                next = least(plan, next);
            }
            if next.len() > MAX_CHOICES {
                let message = format!(
                    "not: there are more than {MAX_CHOICES} ways in which members can fail what is negated here; negate \
                     less, or say what is allowed instead"
                );
                return Err(GrammarError::new(ErrorKind::Limit, self.schemas.place(plan.some[place].at), message));
            }
            choices = next;
        }
        let complete = choices.into_iter().map(|mut choice| {
            choice.chosen.sort_unstable_by_key(|(place, _)| *place);
            choice.chosen.into_iter().map(|(_, witness)| witness).collect()
        });
        Ok(complete.collect())
    }
}

impl Partial {
    fn and(&self, place: usize, witness: Witness) -> Partial {
        let mut choice = self.clone();
        choice.chosen.push((place, witness));
        choice
    }

    /// A member that is needed anyway and also satisfies this requirement.
    fn met(&self, plan: &KeyPlan, place: usize) -> Option<Witness> {
        let wanted = plan.some[place].value;
        let required = plan.known.iter().enumerate().filter(|(_, key)| {
            key.some[place] && key.known.required.is_some() && wanted.is_none_or(|term| key.known.value.contains(&term))
        });
        let mut required = required.map(|(index, _)| Witness::Known(index));
        required.next().or_else(|| {
            let met = self.chosen.iter().filter(|(other, witness)| {
                let matches = match *witness {
                    Witness::Known(index) => plan.known[index].some[place],
                    Witness::Class { index, .. } => plan.classes[index].some[place],
                };
                matches && (wanted.is_none() || plan.some[*other].value == wanted)
            });
            met.map(|(_, witness)| *witness).next()
        })
    }

    /// The least number of members.
    fn members(&self, plan: &KeyPlan) -> usize {
        let required = plan.known.iter().enumerate().filter(|(_, key)| key.known.required.is_some());
        let required = required.map(|(index, _)| Witness::Known(index));
        let all: FxHashSet<Witness> = required.chain(self.chosen.iter().map(|(_, witness)| *witness)).collect();
        all.len()
    }

    /// All that the choice requires: members, each with what its value must be.
    fn asked(&self, plan: &KeyPlan) -> FxHashSet<(Witness, Option<Term>)> {
        let mut asked = FxHashSet::default();
        for &(place, witness) in &self.chosen {
            let is_there = matches!(witness, Witness::Known(index) if plan.known[index].known.required.is_some());
            if !is_there {
                asked.insert((witness, None));
            }
            asked.extend(plan.some[place].value.map(|term| (witness, Some(term))));
        }
        asked
    }
}

/// The minimal choices: those that require no superset of another choice, and the first of several with equal
/// requirements.
fn least(plan: &KeyPlan, choices: Vec<Partial>) -> Vec<Partial> {
    let asked: Vec<FxHashSet<(Witness, Option<Term>)>> = choices.iter().map(|choice| choice.asked(plan)).collect();
    let is_less = |one: usize, other: usize| {
        let (less, more) = (&asked[one], &asked[other]);
        (less.len() < more.len() || (less.len() == more.len() && one < other)) && less.is_subset(more)
    };
    let kept = |place: &usize| (0..asked.len()).all(|other| other == *place || !is_less(other, *place));
    let kept: Vec<usize> = (0..asked.len()).filter(kept).collect();
    kept.into_iter().map(|place| choices[place].clone()).collect()
}
