//! The keys of an object by the patterns they match: disjoint classes, each with all that is asked of its values.
//!
//! Patterns may overlap, and what `additionalProperties` asks depends on which of them a key does not match. So the set
//! of all keys is split by one pattern after the other; parts without keys go at once, and in the end those with the
//! same values are joined. A class of finitely many keys becomes declared members.

use indexmap::IndexSet;
use stencilm_regex::ExprId;
use stencilm_support::{HashMap, KeyedState};

use super::lowering::Lowering;
use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::KeySpace;
use crate::ir::key_space::{canonical_keys, is_key, key_space};
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::merge::merge;
use crate::json_schema::normal_form::merged::{KeyRule, Keys, Known, Merged, Terms, with};
use crate::json_schema::options::{DECLARES, REFERS};
use crate::json_schema::read::document::{Json, JsonId};
use crate::json_schema::read::parse::parse;
use crate::json_schema::read::schema::{Keyword, SchemaId, Types};

/// The greatest number of key classes of one object.
const MAX_CLASSES: usize = 64;
/// The greatest number of keys of a class that become declared members.
const MAX_NAMED: u32 = 2_000;
/// The greatest number of keys that become declared members where they are listed one by one.
const MAX_LISTED: usize = 20_000;

/// A class of keys that no `properties` name.
pub(crate) struct KeyClass {
    /// The spellings of the keys.
    pub(crate) key: ExprId,
    /// How many keys there are; declared keys among them are counted too.
    pub(crate) space: KeySpace,
    /// All requirements on the value.
    pub(crate) value: Vec<Term>,
    /// For each existential requirement, whether a member of this class may satisfy it.
    pub(crate) some: Vec<bool>,
}

/// A member that may come, by its key.
pub(crate) struct KnownKey {
    pub(crate) name: Box<str>,
    pub(crate) known: Known,
    /// As in [`KeyClass::some`].
    pub(crate) some: Vec<bool>,
}

/// All keys of an object.
pub(crate) struct KeyPlan {
    /// Declared keys, forbidden ones included.
    pub(crate) known: Vec<KnownKey>,
    pub(crate) classes: Vec<KeyClass>,
    /// The existential requirements: what at least one member must be, without relaxed ones.
    pub(crate) some: Vec<KeyRule>,
    /// The least number of members that follows from them.
    pub(crate) least: u32,
}

/// Patterns and other conditions on keys.
#[derive(Default)]
struct Tests<'a> {
    /// The spellings of the keys that pass each test, with quotes; `None` if the test is relaxed.
    list: Vec<Option<ExprId>>,
    patterns: HashMap<&'a str, usize>,
}

/// Spellings of keys, and which tests these keys pass; `None` for relaxed tests.
type Part = (ExprId, Vec<Option<bool>>);

/// The requirements on members by their keys.
pub(crate) struct KeyRules<'a, 'm> {
    tests: Tests<'a>,
    all: Vec<(Applies, &'m KeyRule)>,
    /// The existential requirements: what at least one member must be.
    pub(crate) some: Vec<(Applies, &'m KeyRule)>,
    /// All keys that may occur, if keys themselves are constrained.
    names: Option<Names>,
}

impl KeyRules<'_, '_> {
    /// Whether a key alone satisfies all of the existential requirements that it may satisfy, at least one, whatever
    /// its value is.
    fn is_met_by_keys(&self, some: &[bool]) -> bool {
        let mut met = self.some.iter().zip(some).filter(|(_, is_met)| **is_met).peekable();
        met.peek().is_some() && met.all(|((_, rule), _)| rule.value.is_none())
    }
}

/// The strings that may be keys.
struct Names {
    /// Their spellings.
    written: ExprId,
    /// Their values, if they are listed one by one.
    listed: Option<IndexSet<Box<str>, KeyedState>>,
}

/// When a rule applies.
pub(crate) enum Applies {
    /// If the test holds.
    Where(usize),
    /// Unless the key is a property of one of these schemas, or one of the tests holds.
    Unless(Vec<SchemaId>, Vec<usize>),
}

impl<'a> Lowering<'a> {
    /// All keys of an object, with the requirements on their values.
    pub(crate) fn key_plan(&mut self, merged: &Merged, at: SchemaId) -> Result<KeyPlan, GrammarError> {
        let rules = self.key_rules(merged)?;
        let mut known = Vec::with_capacity(merged.known.len());
        for (&name, member) in merged.known.iter() {
            known.push(self.known_key(&rules, merged, name, Some(member), at)?);
        }
        let some = || rules.some.iter().map(|(_, rule)| (*rule).clone()).collect();
        if let Some(listed) = rules.names.as_ref().and_then(|names| names.listed.as_ref()) {
            // These are all keys, so no others need be distinguished.
            for name in listed.iter().filter(|name| !merged.known.contains_key(&***name)) {
                let member = self.known_key(&rules, merged, name, None, at)?;
                if !(merged.closed && member.known.value.is_empty()) {
                    known.push(member);
                }
            }
            let classes = self.class_few_keys(&mut known, &rules);
            let mut plan = KeyPlan { known, classes, some: some(), least: 0 };
            self.drop_what_all_meet(&mut plan);
            return Ok(plan);
        }
        let mut classes: Vec<KeyClass> = Vec::new();
        for (key, matched) in self.split(rules.names.as_ref().map(|names| names.written), &rules.tests, at)? {
            let mut value = merged.additional.clone();
            let mut is_spoken_of = !value.is_empty();
            for (applies, rule) in &rules.all {
                if let (Some(true), Some(term)) = (self.holds(applies, &matched, None), rule.value) {
                    value = with(value, term);
                    is_spoken_of = true;
                }
            }
            let forbidden = value.iter().any(|term| matches!(*term, Term::Holds(id) if self.schemas.get(id).never));
            if forbidden || (merged.closed && !is_spoken_of) {
                continue;
            }
            let some: Vec<bool> =
                rules.some.iter().map(|(applies, _)| self.holds(applies, &matched, None) == Some(true)).collect();
            match classes.iter_mut().find(|class| class.value == value && class.some == some) {
                Some(class) => class.key = self.builder.exprs.or(&[class.key, key]),
                None => classes.push(KeyClass { key, space: KeySpace::Infinite, value, some }),
            }
        }
        if rules.names.is_some() || !rules.tests.list.is_empty() {
            self.name_few_keys(&mut classes, &mut known, &rules, at)?;
        }
        let mut plan = KeyPlan { known, classes, some: some(), least: 0 };
        self.drop_what_all_meet(&mut plan);
        Ok(plan)
    }

    /// Drops existential requirements that every possible member satisfies: then only the least number of members
    /// becomes 1.
    fn drop_what_all_meet(&self, plan: &mut KeyPlan) {
        for place in (0..plan.some.len()).rev() {
            let can_be = |key: &&KnownKey| {
                key.known.forbidden.is_none() && !key.known.value.iter().any(|&term| self.normal.never_holds(term))
            };
            let all_meet = plan.some[place].value.is_none()
                && plan.classes.iter().all(|class| class.some[place])
                && plan.known.iter().filter(can_be).all(|key| key.some[place]);
            if all_meet {
                plan.some.remove(place);
                for some in plan.classes.iter_mut().map(|class| &mut class.some) {
                    some.remove(place);
                }
                for some in plan.known.iter_mut().map(|key| &mut key.some) {
                    some.remove(place);
                }
                plan.least = 1;
            }
        }
    }

    /// Turns keys that are listed one by one into classes, if one of many must be present whatever its value is: as
    /// declared members, each would be a separate choice to satisfy the requirement.
    fn class_few_keys(&mut self, known: &mut Vec<KnownKey>, rules: &KeyRules) -> Vec<KeyClass> {
        if rules.some.is_empty() {
            return Vec::new();
        }
        let mut groups: Vec<(Vec<usize>, &KnownKey)> = Vec::new();
        for (place, key) in known.iter().enumerate() {
            let Known { required, forbidden, is_declared, .. } = key.known;
            if is_declared || required.is_some() || forbidden.is_some() || !rules.is_met_by_keys(&key.some) {
                continue;
            }
            let is_same = |other: &KnownKey| other.some == key.some && *other.known.value == *key.known.value;
            match groups.iter_mut().find(|(_, first)| is_same(first)) {
                Some((places, _)) => places.push(place),
                None => groups.push((vec![place], key)),
            }
        }
        groups.retain(|(places, _)| places.len() > 1);
        let mut classes = Vec::with_capacity(groups.len());
        let mut taken = vec![false; known.len()];
        for (places, first) in groups {
            places.iter().for_each(|&place| taken[place] = true);
            let names: Vec<&str> = places.iter().map(|&place| &*known[place].name).collect();
            let key = self.strings.literals(&mut self.builder.exprs, &names);
            let (value, some) = (first.known.value.to_vec(), first.some.clone());
            classes.push(KeyClass { key, space: KeySpace::Finite(names.len() as u32), value, some });
        }
        let mut taken = taken.into_iter();
        known.retain(|_| !taken.next().unwrap_or(false));
        classes
    }

    /// The requirements on members by their keys, with their tests.
    pub(crate) fn key_rules<'m>(&mut self, merged: &'m Merged) -> Result<KeyRules<'a, 'm>, GrammarError> {
        let mut tests = Tests::default();
        let mut all = Vec::with_capacity(merged.rules.len());
        for rule in &merged.rules {
            all.push((self.applies(&rule.keys, &mut tests, rule.at)?, rule));
        }
        let mut some = Vec::with_capacity(merged.some.len());
        for rule in &merged.some {
            let applies = self.applies(&rule.keys, &mut tests, rule.at)?;
            let is_relaxed = match &applies {
                Applies::Where(test) => tests.list[*test].is_none(),
                Applies::Unless(_, list) => list.iter().any(|&test| tests.list[test].is_none()),
            };
            if !is_relaxed {
                some.push((applies, rule));
            }
        }
        let names = match merged.names.is_empty() {
            true => None,
            false => Some(self.names(&merged.names)?),
        };
        Ok(KeyRules { tests, all, some, names })
    }

    /// A key with all requirements on its value; `known` are those of its name.
    pub(crate) fn known_key(
        &mut self,
        rules: &KeyRules,
        merged: &Merged,
        name: &str,
        known: Option<&Known>,
        at: SchemaId,
    ) -> Result<KnownKey, GrammarError> {
        let unnamed = || Known { value: Terms::Several(merged.additional.clone()), ..Known::default() };
        let mut known = known.cloned().unwrap_or_else(unnamed);
        if let Some(names) = &rules.names {
            let is_allowed = match &names.listed {
                Some(listed) => listed.contains(name),
                None => self.is_spelled(names.written, name)?,
            };
            if !is_allowed {
                known.forbidden.get_or_insert(at);
            }
        }
        let mut matched = Vec::with_capacity(rules.tests.list.len());
        for &test in &rules.tests.list {
            matched.push(match test {
                Some(test) => Some(self.is_spelled(test, name)?),
                None => None,
            });
        }
        for (applies, rule) in &rules.all {
            if let (Some(true), Some(term)) = (self.holds(applies, &matched, Some(name)), rule.value) {
                known.value.add(term);
            }
        }
        let meets = |(applies, _): &(Applies, &KeyRule)| self.holds(applies, &matched, Some(name)) == Some(true);
        Ok(KnownKey { name: name.into(), some: rules.some.iter().map(meets).collect(), known })
    }

    /// Adds the tests that decide whether a rule applies.
    fn applies(&mut self, keys: &Keys, tests: &mut Tests<'a>, at: SchemaId) -> Result<Applies, GrammarError> {
        Ok(match keys {
            Keys::Match(value) => Applies::Where(self.pattern_test(*value, tests, at)?),
            Keys::Outside(schemas) => {
                let mut list = Vec::new();
                for &schema in schemas.iter() {
                    for keyword in &self.schemas.get(schema).keywords {
                        let Keyword::PatternProperties(map) = keyword else { continue };
                        let document = self.schemas.document;
                        for &value in document.entries(*map).into_iter().flat_map(|entries| entries.values()) {
                            list.push(self.pattern_test(value, tests, schema)?);
                        }
                    }
                }
                Applies::Unless(schemas.to_vec(), list)
            }
            Keys::Fail(schema) => {
                let failing = self.key_strings(&[Term::Fails(*schema)])?;
                tests.list.push(Some(failing));
                Applies::Where(tests.list.len() - 1)
            }
        })
    }

    fn pattern_test(&mut self, value: JsonId, tests: &mut Tests<'a>, at: SchemaId) -> Result<usize, GrammarError> {
        let pattern = self.schemas.document.key(value);
        if let Some(&known) = tests.patterns.get(pattern) {
            return Ok(known);
        }
        let body = self.pattern(pattern, "patternProperties", at)?;
        tests.list.push(body.map(|body| self.strings.quoted(&mut self.builder.exprs, body)));
        tests.patterns.insert(pattern, tests.list.len() - 1);
        Ok(tests.list.len() - 1)
    }

    /// Whether a rule applies, given which tests hold; `None` if that depends on a relaxed test.
    fn holds(&self, applies: &Applies, matched: &[Option<bool>], name: Option<&str>) -> Option<bool> {
        match applies {
            Applies::Where(test) => matched[*test],
            Applies::Unless(schemas, tests) => {
                let names = |keyword: &Keyword| match (keyword, name) {
                    (Keyword::Properties(map), Some(name)) => {
                        self.schemas.document.entries(*map).is_some_and(|entries| entries.contains_key(name))
                    }
                    _ => false,
                };
                if schemas.iter().any(|&schema| self.schemas.get(schema).keywords.iter().any(names)) {
                    return Some(false);
                }
                if tests.iter().any(|&test| matched[test] == Some(true)) {
                    return Some(false);
                }
                tests.iter().all(|&test| matched[test].is_some()).then_some(true)
            }
        }
    }

    /// The spellings of the strings for which all these terms hold.
    fn key_strings(&mut self, all: &[Term]) -> Result<ExprId, GrammarError> {
        Ok(self.names(all)?.written)
    }

    fn names(&mut self, all: &[Term]) -> Result<Names, GrammarError> {
        let alternatives = self.alternatives_or_more(all)?;
        self.admit()?;
        let mut choices = Vec::with_capacity(alternatives.len());
        let mut listed = Some(IndexSet::default());
        for alternative in alternatives.iter() {
            let merged = merge(&self.normal, alternative);
            if merged.is_impossible() || !merged.types.meets(Types::STRING) {
                continue;
            }
            match &merged.values {
                Some(values) => {
                    let mut texts = Vec::new();
                    for &value in &values.value {
                        if let Json::String(text) = self.schemas.document.get(value)
                            && self.misfit(value, &merged, 0)?.is_none()
                        {
                            texts.push(&**text);
                        }
                    }
                    if let Some(listed) = &mut listed {
                        listed.extend(texts.iter().map(|&text| Box::from(text)));
                    }
                    let literals = self.strings.literals_in_time(&mut self.builder.exprs, &texts);
                    choices.push(literals.map_err(|limit| GrammarError::limit(self.schemas.place(values.at), limit))?);
                }
                None => {
                    if let Some(name) = merged.name_uses.first() {
                        let keyword = if name.value.declares { DECLARES } else { REFERS };
                        self.relax(name.at, keyword, "a key of an object is no name; put it in the value of a member")?;
                    }
                    listed = None;
                    choices.push(self.string(&merged)?);
                }
            }
        }
        let listed = listed.filter(|listed| listed.len() <= MAX_LISTED);
        Ok(Names { written: self.builder.exprs.or(&choices), listed })
    }

    /// Whether a key is matched by an expression in any of its spellings.
    pub(crate) fn is_spelled(&mut self, key: ExprId, name: &str) -> Result<bool, GrammarError> {
        // A bare name has quotes only if they are part of the name.
        let is_bare = self.strings.are_bare();
        let (checker, key) = self.checker(key);
        let found = if is_bare { checker.matches(key, name.as_bytes()) } else { is_key(checker, key, name) };
        found.map_err(|limit| GrammarError::limit("", limit))
    }

    /// All keys, split by which of the tests they pass.
    fn split(&mut self, names: Option<ExprId>, tests: &Tests, at: SchemaId) -> Result<Vec<Part>, GrammarError> {
        let exprs = &mut self.builder.exprs;
        let has_tests = tests.list.iter().any(Option::is_some);
        // Keys that a pattern may match are spelled as the patterns require, so that every key that doesn't match is a
        // different key.
        let all = if has_tests { self.strings.any_constrained(exprs) } else { self.strings.any_string(exprs, 0, None) };
        let all = names.map_or(all, |names| if has_tests { exprs.and(&[names, all]) } else { names });
        let mut classes = vec![(all, Vec::new())];
        for &test in &tests.list {
            let Some(test) = test else {
                classes.iter_mut().for_each(|(_, matched)| matched.push(None));
                continue;
            };
            let mut next = Vec::with_capacity(2 * classes.len());
            for (key, matched) in &classes {
                let key = *key;
                let failing = self.builder.exprs.not(test);
                for (other, holds) in [(test, true), (failing, false)] {
                    let part = self.builder.exprs.and(&[key, other]);
                    let (checker, copy) = self.checker(part);
                    let live = checker.is_live(copy);
                    if live.map_err(|limit| GrammarError::limit(self.schemas.place(at), limit))? {
                        next.push((part, matched.iter().copied().chain([Some(holds)]).collect()));
                    }
                }
            }
            if next.len() > MAX_CLASSES {
                let message = format!(
                    "patternProperties: the patterns overlap in more than {MAX_CLASSES} ways; use fewer of them, or \
                     patterns that exclude each other"
                );
                self.relax_error(at, GrammarError::new(ErrorKind::Limit, self.schemas.place(at), message))?;
                classes.iter_mut().for_each(|(_, matched)| matched.push(None));
                continue;
            }
            classes = next;
        }
        Ok(classes)
    }

    /// Turns the keys of a class into declared members if there are few, except where one of them must be present
    /// whatever its value is: each would be a separate choice to satisfy that.
    fn name_few_keys(
        &mut self,
        classes: &mut Vec<KeyClass>,
        known: &mut Vec<KnownKey>,
        rules: &KeyRules,
        at: SchemaId,
    ) -> Result<(), GrammarError> {
        let mut kept = Vec::with_capacity(classes.len());
        for class in classes.drain(..) {
            let (checker, copy) = self.checker(class.key);
            let live = checker.is_live(copy);
            if !live.map_err(|limit| GrammarError::limit(self.schemas.place(at), limit))? {
                continue;
            }
            let (checker, copy) = self.checker(class.key);
            let found = key_space(checker, copy).map_err(|limit| GrammarError::limit(self.schemas.place(at), limit))?;
            let Some(space) = found else {
                let message = format!(
                    "{}: telling how many keys fit all patterns took too long; use simpler ones, or name the keys in \
                     properties",
                    self.speaks_of(at)
                );
                return Err(GrammarError::new(ErrorKind::Limit, self.schemas.place(at), message));
            };
            if let KeySpace::Finite(count) = space
                && rules.is_met_by_keys(&class.some)
            {
                let mut taken = 0;
                for key in known.iter() {
                    taken += u32::from(self.is_spelled(class.key, &key.name)?);
                }
                if taken < count {
                    kept.push(KeyClass { space, ..class });
                }
                continue;
            }
            if !matches!(space, KeySpace::Finite(..=MAX_NAMED)) {
                kept.push(KeyClass { space, ..class });
                continue;
            }
            let (checker, copy) = self.checker(class.key);
            let texts =
                canonical_keys(checker, copy).map_err(|limit| GrammarError::limit(self.schemas.place(at), limit))?;
            let are_bare = self.strings.are_bare();
            for name in texts.iter().filter_map(|text| read_key(text, are_bare)) {
                if known.iter().all(|other| other.name != name) {
                    let member = Known { value: Terms::Several(class.value.clone()), ..Known::default() };
                    known.push(KnownKey { name, known: member, some: class.some.clone() });
                }
            }
        }
        *classes = kept;
        Ok(())
    }

    /// The keyword that messages about keys should name.
    fn speaks_of(&self, at: SchemaId) -> &'static str {
        let patterns = |keyword: &Keyword| matches!(keyword, Keyword::PatternProperties(_));
        if self.schemas.get(at).keywords.iter().any(patterns) { "patternProperties" } else { "propertyNames" }
    }
}

/// The string value of a key, given its spelling.
fn read_key(text: &[u8], is_bare: bool) -> Option<Box<str>> {
    let text = std::str::from_utf8(text).ok()?;
    if is_bare {
        return Some(text.into());
    }
    let document = parse(text, &[], usize::MAX).ok()?;
    if let Json::String(name) = document.get(document.root()) { Some((&**name).into()) } else { None }
}
