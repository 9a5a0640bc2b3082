//! Objects: the members that a conjunction leaves, once for each choice of those that meet what at least one must.

use std::sync::Arc;

use super::existential::Witness;
use super::explain::{Branch, Need, What};
use super::keys::{KeyClass, KeyPlan, KnownKey};
use super::lowering::Lowering;
use crate::error::GrammarError;
use crate::ir::grammar::{AdditionalMembers, DeclaredMember, KeySpace, Members, NodeId};
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::merged::{Clash, KeyRule, Merged, with};
use crate::json_schema::read::schema::SchemaId;

/// The greatest number of members in any order if members are not those of JSON: each needs a counter.
pub(super) const MAX_MIXED: usize = 32;
/// The greatest number of states of ordered and counted members in this case.
pub(super) const MAX_STATES: usize = 20_000;

impl<'a> Lowering<'a> {
    /// The node of an object, `depth` containers deep.
    pub(crate) fn object(
        &mut self,
        merged: &Merged<'a>,
        at: SchemaId,
        depth: u32,
    ) -> Result<(NodeId, Branch), GrammarError> {
        if merged.rules.is_empty() && merged.some.is_empty() && merged.names.is_empty() {
            let known: Vec<Member> = merged
                .known
                .iter()
                .map(|(&name, known)| Member {
                    name,
                    value: &known.value,
                    required: known.required,
                    is_forbidden: known.forbidden.is_some(),
                    is_declared: known.is_declared,
                })
                .collect();
            let is_free = !merged.closed
                && !merged.additional.iter().any(|term| matches!(*term, Term::Holds(id) if self.schemas.get(id).never));
            let key = self.strings.any_string(&mut self.builder.exprs, 0, None);
            let class = Class { key, space: KeySpace::Infinite, value: &merged.additional, some: None };
            let classes = if is_free { std::slice::from_ref(&class) } else { &[] };
            return self.members(merged, merged.min_members, &known, classes, at, depth);
        }
        let plan = self.key_plan(merged, at)?;
        let witnesses = match GrammarError::unless_ended("", || self.witnesses(&plan, merged))? {
            Err(error) => {
                self.relax_error(at, error)?;
                vec![Vec::new()]
            }
            Ok(witnesses) => witnesses,
        };
        let mut choices = Vec::with_capacity(witnesses.len());
        let mut branches = Vec::new();
        for chosen in &witnesses {
            let (choice, branch) = self.with_witnesses(merged, &plan, chosen, at, depth)?;
            choices.push(choice);
            branches.push(branch);
        }
        let branch = if let Some(rule) = plan.some.first().filter(|_| choices.is_empty()) {
            let message = "some member must fail what is negated here, and no member can".to_string();
            Branch::Impossible(vec![Clash { place: self.schemas.place(rule.at), message }])
        } else {
            // If one choice is possible, the reasons of the impossible ones don't matter.
            match branches.iter().position(|branch| matches!(branch, Branch::Possible)) {
                Some(possible) => branches.swap_remove(possible),
                None => branches.pop().unwrap_or(Branch::Possible),
            }
        };
        let node = if let [only] = *choices { only } else { self.builder.choice(&choices) };
        Ok((node, branch))
    }

    fn with_witnesses(
        &mut self,
        merged: &Merged<'a>,
        plan: &KeyPlan,
        chosen: &[Witness],
        at: SchemaId,
        depth: u32,
    ) -> Result<(NodeId, Branch), GrammarError> {
        let asked = |witness: Witness| {
            let places = chosen.iter().enumerate().filter(move |(_, chosen)| **chosen == witness);
            places.map(|(place, _)| &plan.some[place]).collect::<Vec<&KeyRule>>()
        };
        let mut values: Vec<(Vec<Term>, Option<SchemaId>)> = Vec::with_capacity(plan.known.len());
        for (index, KnownKey { known, .. }) in plan.known.iter().enumerate() {
            let asked = asked(Witness::Known(index));
            let value = asked.iter().filter_map(|rule| rule.value).fold(known.value.to_vec(), with);
            values.push((value, known.required.or(asked.first().map(|rule| rule.at))));
        }
        let known: Vec<Member> = plan
            .known
            .iter()
            .zip(&values)
            .map(|(key, (value, required))| Member {
                name: &key.name,
                value,
                required: *required,
                is_forbidden: key.known.forbidden.is_some(),
                is_declared: key.known.is_declared,
            })
            .collect();
        // A class is repeated once for each of its members with an existential requirement.
        let mut somes: Vec<(usize, Option<Vec<Term>>)> = Vec::with_capacity(plan.classes.len());
        for (index, KeyClass { value, space, .. }) in plan.classes.iter().enumerate() {
            let mut copy = 0;
            loop {
                let asked = asked(Witness::Class { index, copy });
                let some = asked.iter().filter_map(|rule| rule.value).fold(value.clone(), with);
                // If keys can be exhausted, it isn't known how long a key is left for a member with a different value.
                let is_lost = matches!(space, KeySpace::Finite(_)) && some != *value;
                if let Some(rule) = asked.first().filter(|_| is_lost) {
                    let reason = "one of few keys that no property names must have a value that fails what is negated here, \
                                  which is not supported; name the keys in properties";
                    self.relax(rule.at, "not", reason)?;
                }
                if copy > 0 && (asked.is_empty() || is_lost) {
                    break;
                }
                somes.push((index, (!asked.is_empty() && !is_lost).then_some(some)));
                copy += 1;
            }
        }
        let classes: Vec<Class> = somes
            .iter()
            .map(|(index, some)| {
                let KeyClass { key, space, value, .. } = &plan.classes[*index];
                Class { key: *key, space: *space, value, some: some.as_deref() }
            })
            .collect();
        let least = merged.min_members.max(plan.least);
        self.members(merged, least, &known, &classes, at, depth)
    }

    fn members(
        &mut self,
        merged: &Merged,
        least: u32,
        known: &[Member],
        classes: &[Class],
        at: SchemaId,
        depth: u32,
    ) -> Result<(NodeId, Branch), GrammarError> {
        if self.notated.is_some() || self.strings.are_bare() {
            self.exchange_strings();
            let made = match self.notated {
                Some(_) => self.notated_members(merged, least, known, classes, at),
                None => self.marked_members(merged, least, known, classes, at),
            };
            self.exchange_strings();
            return made;
        }
        let surface = self.surfaces.object(&mut self.builder.exprs, depth);
        let DeclaredMembers { members, ordered, mut needs } = self.declared_members(known, at, depth)?;
        let additional = self.other_members(known, classes, depth)?;
        let named = additional.is_empty().then_some(members.len());
        let required = members.iter().filter(|member| member.required).count() as u32;
        let min = if least > required { least } else { 0 };
        if min > 0 {
            let optional = members.iter().filter(|member| !member.required).map(|member| member.value);
            let additional =
                additional.iter().flat_map(|additional| additional.some.into_iter().chain([additional.value]));
            needs.extend(Need::of_any(optional.chain(additional), at, What::Members(least)));
        }
        let clash = self.forbidden_clash(known).or_else(|| self.count_clash(merged, least, named, at));
        let branch = match clash {
            Some(clash) => Branch::Impossible(vec![clash]),
            None if needs.is_empty() => Branch::Possible,
            None => Branch::Needs(needs),
        };
        if matches!(branch, Branch::Impossible(_)) {
            return Ok((self.builder.choice(&[]), branch));
        }
        let max = merged.max_members.filter(|&max| !additional.is_empty() || (max as usize) < members.len());
        let object = Members { declared: members, ordered, additional, min, max, surface };
        Ok((self.builder.object(object), branch))
    }

    /// The clash of a key that is both required and forbidden.
    pub(crate) fn forbidden_clash(&self, known: &[Member]) -> Option<Clash> {
        let (first, last): (Vec<&Member>, Vec<&Member>) = known.iter().partition(|member| member.is_declared);
        let mut forbidden = first.into_iter().chain(last).filter(|member| member.is_forbidden);
        forbidden.find_map(|member| {
            let message = format!("the key {:?} is asked for, and no key of this name is allowed", member.name);
            Some(Clash { place: self.schemas.place(member.required?), message })
        })
    }

    /// The clash of more required members than allowed; `named` is the number of possible members if all of them are
    /// named.
    pub(crate) fn count_clash(&self, merged: &Merged, least: u32, named: Option<usize>, at: SchemaId) -> Option<Clash> {
        let message = match (named, merged.max_members) {
            (Some(named), _) if named < least as usize => {
                format!("minProperties {least} is above the {named} keys that may be there")
            }
            (_, Some(max)) if max < least => {
                format!("at least {least} members must be there, and maxProperties is {max}")
            }
            _ => return None,
        };
        Some(Clash { place: self.schemas.place(at), message })
    }

    /// The members that some schema names.
    fn declared_members(
        &mut self,
        known: &[Member],
        at: SchemaId,
        depth: u32,
    ) -> Result<DeclaredMembers, GrammarError> {
        let mut needs = Vec::new();
        let mut members = Vec::with_capacity(known.len());
        self.keys.reserve(known.len());
        let mut ordered = 0;
        let allowed = || known.iter().filter(|member| !member.is_forbidden);
        let in_order = allowed().filter(|member| member.is_declared);
        for member in in_order.chain(allowed().filter(|member| !member.is_declared)) {
            let value = self.value(member.value, depth + 1)?;
            let (name, key) = match self.keys.get_key_value(member.name) {
                Some((name, &key)) => (name.clone(), key),
                None => {
                    let key = self.strings.key(&mut self.builder.exprs, member.name);
                    let key = key.map_err(|limit| GrammarError::limit(self.schemas.place(at), limit))?;
                    let name: Arc<str> = member.name.into();
                    self.keys.insert(name.clone(), key);
                    (name, key)
                }
            };
            if let Some(at) = member.required {
                if needs.is_empty() {
                    needs.reserve(known.len());
                }
                needs.push(Need::new(value, at, What::Required(name.clone())));
            }
            members.push(DeclaredMember { name, key, value, required: member.required.is_some() });
            ordered += usize::from(member.is_declared && !self.options.any_order);
        }
        Ok(DeclaredMembers { members, ordered, needs })
    }

    /// The members that no schema names, by classes of their keys.
    fn other_members(
        &mut self,
        known: &[Member],
        classes: &[Class],
        depth: u32,
    ) -> Result<Vec<AdditionalMembers>, GrammarError> {
        let mut additional = Vec::with_capacity(classes.len());
        if !classes.is_empty() {
            let name = |member: &Member| match self.keys.get_key_value(member.name) {
                Some((name, _)) => name.clone(),
                None => member.name.into(),
            };
            let mut reserved: Box<[Arc<str>]> = known.iter().map(name).collect();
            reserved.sort_unstable();
            for (place, class) in classes.iter().enumerate() {
                let mut space = class.space;
                if let KeySpace::Finite(count) = &mut space {
                    for member in known {
                        *count -= u32::from(self.is_spelled(class.key, member.name)?);
                    }
                    if *count == 0 {
                        continue;
                    }
                }
                let some = match class.some {
                    Some(some) => Some(self.value(some, depth + 1)?),
                    None => None,
                };
                let value = self.value(class.value, depth + 1)?;
                let is_last = place + 1 == classes.len();
                let reserved = if is_last { std::mem::take(&mut reserved) } else { reserved.clone() };
                additional.push(AdditionalMembers { key: class.key, space, reserved, value, some, last: None });
            }
        }
        Ok(additional)
    }
}

/// Members that some schema names, as they are written.
struct DeclaredMembers {
    members: Vec<DeclaredMember>,
    /// How many of them come in this order before all others.
    ordered: usize,
    /// The needs of the required members.
    needs: Vec<Need>,
}

/// A possible member, by its key.
pub(crate) struct Member<'k> {
    pub(crate) name: &'k str,
    pub(crate) value: &'k [Term],
    pub(crate) required: Option<SchemaId>,
    pub(crate) is_forbidden: bool,
    pub(crate) is_declared: bool,
}

/// Possible members, by a class of keys.
pub(crate) struct Class<'k> {
    pub(crate) key: stencilm_regex::ExprId,
    pub(crate) space: KeySpace,
    pub(crate) value: &'k [Term],
    pub(crate) some: Option<&'k [Term]>,
}
