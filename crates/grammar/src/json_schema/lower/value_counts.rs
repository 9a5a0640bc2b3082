//! How many values meet some terms, where that can be counted exactly: whether elements that must differ can run out.
//!
//! Scalars are counted as texts that spell each value in one way, whatever alternatives they come from; listed values
//! one by one; objects and arrays by what their parts have, where one alternative alone speaks of them.

use rustc_hash::FxHashSet;
use stencilm_regex::Cardinality;
use stencilm_support::Map;

use super::keys::{KeyClass, KeyPlan, KnownKey};
use super::lowering::Lowering;
use super::validate::MAX_LEVEL;
use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::KeySpace;
use crate::ir::key_space::scalar_values;
use crate::json::kind::Kind;
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::goals::Alternatives;
use crate::json_schema::normal_form::merge::merge;
use crate::json_schema::normal_form::merged::{Merged, with};
use crate::json_schema::read::schema::{SchemaId, Types};

/// The known counts; [`Cardinality::Unknown`] also marks those that are being computed.
#[derive(Default)]
pub(super) struct ValueCounts(Map<Box<[Term]>, Cardinality>);

fn sum(one: Cardinality, other: Cardinality) -> Cardinality {
    match (one, other) {
        (Cardinality::Infinite, _) | (_, Cardinality::Infinite) => Cardinality::Infinite,
        (Cardinality::Finite(one), Cardinality::Finite(other)) => Cardinality::Finite(one.saturating_add(other)),
        _ => Cardinality::Unknown,
    }
}

fn product(one: Cardinality, other: Cardinality) -> Cardinality {
    match (one, other) {
        (Cardinality::Finite(0), _) | (_, Cardinality::Finite(0)) => Cardinality::Finite(0),
        (Cardinality::Unknown, _) | (_, Cardinality::Unknown) => Cardinality::Unknown,
        (Cardinality::Finite(one), Cardinality::Finite(other)) => Cardinality::Finite(one.saturating_mul(other)),
        _ => Cardinality::Infinite,
    }
}

const NONE: Cardinality = Cardinality::Finite(0);

/// The number of lists of `least` to `most` elements, given the number of values of an element.
fn number_of_lists(of_element: Cardinality, least: u32, most: Option<u32>) -> Cardinality {
    if most.is_some_and(|most| most < least) {
        return NONE;
    }
    match of_element {
        NONE => Cardinality::Finite(u64::from(least == 0)),
        Cardinality::Unknown => Cardinality::Unknown,
        Cardinality::Infinite if most == Some(0) => Cardinality::Finite(1),
        Cardinality::Infinite => Cardinality::Infinite,
        Cardinality::Finite(count) => match most {
            None => Cardinality::Infinite,
            Some(most) if count == 1 => Cardinality::Finite(u64::from(most - least) + 1),
            // From here on the sum exceeds what can be counted.
            Some(most) => (least..=most.min(least.saturating_add(u64::BITS)))
                .fold(NONE, |all, length| sum(all, Cardinality::Finite(count.saturating_pow(length)))),
        },
    }
}

impl<'a> Lowering<'a> {
    /// The alternatives of some terms; `None` if there are too many, or if something would have to be relaxed.
    pub(super) fn alternatives_if_few(&mut self, all: &[Term]) -> Result<Option<Alternatives>, GrammarError> {
        match GrammarError::unless_ended("", || self.normal.alternatives(all))? {
            Ok(alternatives) => Ok(Some(alternatives)),
            Err(error) if error.kind == ErrorKind::Limit => Ok(None),
            Err(error) if error.kind == ErrorKind::Unsupported && self.options.relax => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The number of values that meet these terms.
    pub(super) fn number_of_values(
        &mut self,
        all: &[Term],
        counts: &mut ValueCounts,
        level: usize,
    ) -> Result<Cardinality, GrammarError> {
        if let Some(&known) = counts.0.get(all) {
            return Ok(known);
        }
        if level > MAX_LEVEL {
            return Ok(Cardinality::Unknown);
        }
        // A recursive value is reached again while it is being counted.
        counts.0.insert(all.into(), Cardinality::Unknown);
        let at = all.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(self.schemas.root);
        self.normal.check_time(at)?;
        let count = self.count_alternatives(all, at, counts, level)?;
        counts.0.insert(all.into(), count);
        Ok(count)
    }

    fn count_alternatives(
        &mut self,
        all: &[Term],
        at: SchemaId,
        counts: &mut ValueCounts,
        level: usize,
    ) -> Result<Cardinality, GrammarError> {
        let (mut listing, mut others): (Vec<Merged<'a>>, Vec<Merged<'a>>) = (Vec::new(), Vec::new());
        let Some(alternatives) = self.alternatives_if_few(all)? else { return Ok(Cardinality::Unknown) };
        for alternative in alternatives.iter() {
            let merged = merge(&self.normal, alternative);
            let is_listing = merged.values.is_some();
            if !merged.name_uses.is_empty() || (!is_listing && self.is_given_by_its_point(&merged)) {
                return Ok(Cardinality::Unknown);
            }
            if !merged.is_impossible() {
                if is_listing { &mut listing } else { &mut others }.push(merged);
            }
        }
        let listed = self.count_listed(&listing, &others)?;
        let (mut scalars, mut branches) = (Vec::new(), Vec::new());
        for merged in &others {
            self.scalars(merged, at, &mut scalars, &mut branches)?;
        }
        let scalars = self.builder.exprs.or(&scalars);
        let (checker, scalars) = self.checker(scalars);
        let scalars = GrammarError::decided("", || scalar_values(checker, scalars))?.unwrap_or(Cardinality::Unknown);
        let mut count = sum(Cardinality::Finite(listed), scalars);
        for of_type in [Types::ARRAY, Types::OBJECT] {
            let of_these: Vec<&Merged<'a>> = others.iter().filter(|merged| merged.types.meets(of_type)).collect();
            let mut most = NONE;
            for merged in &of_these {
                let found = match of_type {
                    Types::ARRAY => self.count_arrays(merged, counts, level + 1)?,
                    _ => self.count_objects(merged, at, counts, level + 1)?,
                };
                most = match (most, found) {
                    // Different alternatives may have values in common.
                    (Cardinality::Finite(1..) | Cardinality::Unknown, Cardinality::Finite(1..)) => Cardinality::Unknown,
                    (known, found) => sum(known, found),
                };
            }
            count = sum(count, most);
        }
        Ok(count)
    }

    /// Whether numbers are distinguished by their spelling: then two of different kinds may be equal.
    fn is_given_by_its_point(&self, merged: &Merged) -> bool {
        merged.types.meets(Types::NUMBER) && self.number_kind(merged) == Kind::Pointed
    }

    /// The number of listed values that no other alternative contains.
    fn count_listed(&mut self, listing: &[Merged<'a>], others: &[Merged<'a>]) -> Result<u64, GrammarError> {
        let document = self.schemas.document;
        let mut found = FxHashSet::default();
        for merged in listing {
            for &value in merged.values.iter().flat_map(|values| &values.value) {
                if self.misfit(value, merged, 0)?.is_some() {
                    continue;
                }
                let mut is_new = true;
                for other in others {
                    is_new = is_new && self.misfit(value, other, 0)?.is_some();
                }
                if is_new {
                    found.insert(document.value_id(value));
                }
            }
        }
        Ok(found.len() as u64)
    }

    fn count_arrays(
        &mut self,
        merged: &Merged<'a>,
        counts: &mut ValueCounts,
        level: usize,
    ) -> Result<Cardinality, GrammarError> {
        let closed = merged.closed_items.then_some(merged.prefix.len() as u32);
        let max = merged.max_items.into_iter().chain(closed).min();
        let leading = max.map_or(merged.prefix.len(), |max| merged.prefix.len().min(max as usize));
        let (mut all, mut of_length) = (NONE, Cardinality::Finite(1));
        for (length, terms) in merged.prefix[..leading].iter().enumerate() {
            if length >= merged.min_items as usize {
                all = sum(all, of_length);
            }
            of_length = product(of_length, self.number_of_values(terms, counts, level)?);
        }
        let more = max.map(|max| max - leading as u32);
        let least = merged.min_items.saturating_sub(leading as u32);
        let of_rest = match more {
            Some(0) => NONE,
            _ => self.number_of_values(&merged.rest, counts, level)?,
        };
        if merged.contains.is_empty() && merged.unique.is_none() && merged.repeated.is_none() {
            return Ok(sum(all, product(of_length, number_of_lists(of_rest, least, more))));
        }
        // There can be arbitrarily many elements, also of those that must match.
        let mut is_infinite = more.is_none();
        is_infinite &= match merged.unique {
            Some(_) => merged.prefix.is_empty() && of_rest == Cardinality::Infinite,
            None => {
                !matches!(of_length, NONE | Cardinality::Unknown) && !matches!(of_rest, NONE | Cardinality::Unknown)
            }
        };
        for rule in &merged.contains {
            let of_rule = match rule.max {
                None => {
                    self.number_of_values(&rule.terms.iter().copied().fold(merged.rest.clone(), with), counts, level)?
                }
                Some(_) => Cardinality::Unknown,
            };
            is_infinite &= match merged.unique {
                Some(_) => of_rule == Cardinality::Infinite,
                None => !matches!(of_rule, NONE | Cardinality::Unknown),
            };
        }
        Ok(if is_infinite { Cardinality::Infinite } else { Cardinality::Unknown })
    }

    fn count_objects(
        &mut self,
        merged: &Merged<'a>,
        at: SchemaId,
        counts: &mut ValueCounts,
        level: usize,
    ) -> Result<Cardinality, GrammarError> {
        let plan = match GrammarError::unless_ended("", || self.key_plan(merged, at))? {
            Ok(plan) => plan,
            Err(error) if error.kind == ErrorKind::Limit => return Ok(Cardinality::Unknown),
            Err(error) => return Err(error),
        };
        // The number of objects by their number of members.
        let mut of_size = vec![Cardinality::Finite(1)];
        let mut required = 0;
        for KnownKey { known, .. } in &plan.known {
            let values = match known.forbidden {
                Some(_) => NONE,
                None => self.number_of_values(&known.value, counts, level)?,
            };
            let mut next = vec![NONE; of_size.len() + 1];
            for (size, &count) in of_size.iter().enumerate() {
                next[size + 1] = product(count, values);
            }
            match known.required {
                Some(_) => required += 1,
                None => next.iter_mut().zip(&of_size).for_each(|(all, &without)| *all = sum(*all, without)),
            }
            of_size = next;
        }
        let least = merged.min_members.max(plan.least) as usize;
        let within = |size: usize| size >= least && merged.max_members.is_none_or(|max| size <= max as usize);
        let named = (0..of_size.len()).filter(|&size| within(size)).fold(NONE, |all, size| sum(all, of_size[size]));
        let room = merged.max_members.map(|max| (max as usize).saturating_sub(required));
        self.with_other_members(&plan, (named, of_size[required]), room, counts, level)
    }

    /// The number of objects, given how many have only named members, and how many have only required ones.
    fn with_other_members(
        &mut self,
        plan: &KeyPlan,
        (named, required): (Cardinality, Cardinality),
        room: Option<usize>,
        counts: &mut ValueCounts,
        level: usize,
    ) -> Result<Cardinality, GrammarError> {
        // For each existential requirement: whether infinitely many keys can satisfy it, if there is room for such a
        // member.
        let mut are_met = room.is_none_or(|room| room > 0);
        are_met &= plan.some.is_empty() || room.is_none();
        for (place, rule) in plan.some.iter().enumerate() {
            let is_known = plan.known.iter().any(|key| key.some[place] && key.known.forbidden.is_none());
            if !is_known && !plan.classes.iter().any(|class| class.some[place]) {
                return Ok(NONE);
            }
            let mut is_met = false;
            for class in plan.classes.iter().filter(|class| class.some[place] && has_many_keys(class)) {
                let terms = rule.value.into_iter().fold(class.value.clone(), with);
                is_met |= !matches!(self.number_of_values(&terms, counts, level)?, NONE | Cardinality::Unknown);
            }
            are_met &= is_met;
        }
        let (mut can_come, mut is_infinite) = (false, false);
        for class in &plan.classes {
            let values = self.number_of_values(&class.value, counts, level)?;
            can_come |= values != NONE;
            is_infinite |= has_many_keys(class) && !matches!(values, NONE | Cardinality::Unknown);
        }
        let is_there = matches!(required, Cardinality::Finite(1..) | Cardinality::Infinite);
        Ok(match () {
            () if required == NONE => NONE,
            () if is_infinite && are_met && is_there => Cardinality::Infinite,
            () if plan.some.is_empty() && (!can_come || room == Some(0)) => named,
            () if plan.some.is_empty() && named == Cardinality::Infinite => Cardinality::Infinite,
            () => Cardinality::Unknown,
        })
    }
}

fn has_many_keys(class: &KeyClass) -> bool {
    matches!(class.space, KeySpace::Infinite | KeySpace::LocallyFinite)
}
