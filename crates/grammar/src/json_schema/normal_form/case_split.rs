//! Products are split by the value of one member that several factors mention: `type`, `kind`, `protocol`.
//!
//! A `oneOf` whose branches are distinguished by such a member, conditions on it, and keys that depend on it multiply
//! out to alternatives of which nearly all are contradictory. By cases there are only as many as there are values: the
//! values that the schemas name, those that they do not distinguish joined; every other value; no such member; no
//! object. In each case most constraints are settled at once.

use std::rc::Rc;

use indexmap::IndexMap;

use super::atoms::Atom;
use super::cases::{Case, ListId, MemberValues};
use super::normal::Normal;
use crate::json_schema::read::document::ValueId;
use crate::json_schema::read::document::{Json, JsonId};
use crate::json_schema::read::schema::type_of;
use crate::json_schema::read::schema::{Keyword, SchemaId, Types};

/// The greatest number of values that are distinguished for one member.
const MAX_VALUES: usize = 1_000;
/// The greatest depth to which the schema of a member is examined.
const MAX_LEVEL: usize = 6;

impl<'a> Normal<'a> {
    /// The index of a list of values.
    pub(crate) fn list(&mut self, values: &[JsonId]) -> ListId {
        if let Some(&known) = self.list_ids.get(values) {
            return known;
        }
        let id = self.lists.len() as ListId;
        self.lists.push(values.into());
        self.list_ids.insert(values.into(), id);
        id
    }

    /// The atom of a case.
    pub(crate) fn case(&mut self, case: Case<'a>) -> Atom {
        Atom::Case(self.cases.insert_full(case).0 as u32)
    }

    /// The properties for which a schema lists the values, each with its schema.
    pub(crate) fn listed_members(&mut self, id: SchemaId) -> Rc<[(&'a str, SchemaId)]> {
        if let Some(known) = self.listed.get(&id) {
            return known.clone();
        }
        let mut members = Vec::new();
        for keyword in &self.schemas.get(id).keywords {
            let Keyword::Properties(map) = keyword else { continue };
            for (name, &value) in self.schemas.document.entries(*map).into_iter().flat_map(|entries| entries.iter()) {
                let property = self.schemas.inner(id, value);
                if self.mentioned(property, 0).is_some_and(|values| !values.is_empty()) {
                    members.push((name, property));
                }
            }
        }
        let members: Rc<[(&'a str, SchemaId)]> = members.into();
        self.listed.insert(id, members.clone());
        members
    }

    /// The values that a schema lists, to allow or to forbid them; `None` if they are not scalars or too many.
    fn mentioned(&self, id: SchemaId, level: usize) -> Option<Vec<JsonId>> {
        let mut values = Vec::new();
        if level > MAX_LEVEL {
            return Some(values);
        }
        for keyword in &self.schemas.get(id).keywords {
            match keyword {
                Keyword::Values(listed) => values.extend_from_slice(listed),
                Keyword::Ref(inner) | Keyword::Not(inner) => values.extend(self.mentioned(*inner, level + 1)?),
                Keyword::AllOf(parts) | Keyword::AnyOf(parts) => {
                    for &part in parts.iter().take(MAX_VALUES) {
                        values.extend(self.mentioned(part, level + 1)?);
                    }
                }
                _ => {}
            }
        }
        let is_scalar = |&value: &JsonId| !matches!(self.schemas.document.get(value), Json::Array(_) | Json::Object(_));
        (values.len() <= MAX_VALUES && values.iter().all(is_scalar)).then_some(values)
    }

    /// The cases of a member that these schemas mention; `None` if there are too many.
    pub(crate) fn cases_of(
        &mut self,
        name: &'a str,
        properties: &[SchemaId],
        is_object: bool,
    ) -> Option<Vec<Case<'a>>> {
        let document = self.schemas.document;
        // For each listed value, the schemas that list it.
        let mut listed: IndexMap<ValueId, (JsonId, Vec<u32>)> = IndexMap::new();
        for (place, &property) in (0..).zip(properties) {
            for value in self.mentioned(property, 0)? {
                let (_, by) = listed.entry(document.value_id(value)).or_insert_with(|| (value, Vec::new()));
                if by.last() != Some(&place) {
                    by.push(place);
                }
            }
        }
        if listed.len() > MAX_VALUES {
            return None;
        }
        let every: Vec<JsonId> = listed.values().map(|(value, _)| *value).collect();
        let mut classes: IndexMap<(Types, Vec<u32>), Vec<JsonId>> = IndexMap::new();
        for (value, by) in listed.into_values() {
            classes.entry((type_of(document.get(value)), by)).or_default().push(value);
        }
        let case = |lacking: bool, values: MemberValues| Case { name, others: false, lacking, values };
        let mut cases = Vec::with_capacity(classes.len() + 3);
        for values in classes.values() {
            cases.push(case(false, MemberValues::Among(self.list(values))));
        }
        cases.push(case(false, MemberValues::Outside(self.list(&every))));
        cases.push(case(true, MemberValues::None));
        if !is_object {
            cases.push(Case { name, others: true, lacking: false, values: MemberValues::None });
        }
        Some(cases)
    }

    /// The union of two cases of the same member.
    pub(crate) fn either(&mut self, one: &Case<'a>, other: &Case<'a>) -> Case<'a> {
        let values = match (one.values, other.values) {
            (MemberValues::None, values) | (values, MemberValues::None) => values,
            (MemberValues::Any, _) | (_, MemberValues::Any) => MemberValues::Any,
            (MemberValues::Among(one), MemberValues::Among(other)) => {
                let more = self.without(other, one);
                let all: Vec<JsonId> = self.lists[one as usize].iter().copied().chain(more).collect();
                MemberValues::Among(self.list(&all))
            }
            (MemberValues::Outside(outside), MemberValues::Among(among))
            | (MemberValues::Among(among), MemberValues::Outside(outside)) => {
                let left = self.without(outside, among);
                if left.is_empty() { MemberValues::Any } else { MemberValues::Outside(self.list(&left)) }
            }
            (MemberValues::Outside(one), MemberValues::Outside(other)) => {
                let beyond = self.without(one, other);
                let both: Vec<JsonId> =
                    self.lists[one as usize].iter().copied().filter(|value| !beyond.contains(value)).collect();
                if both.is_empty() { MemberValues::Any } else { MemberValues::Outside(self.list(&both)) }
            }
        };
        Case { name: one.name, others: one.others || other.others, lacking: one.lacking || other.lacking, values }
    }

    /// The values of one list that are not in the other.
    fn without(&self, from: ListId, taken: ListId) -> Vec<JsonId> {
        let document = self.schemas.document;
        let taken: Vec<ValueId> = self.lists[taken as usize].iter().map(|&value| document.value_id(value)).collect();
        let from = self.lists[from as usize].iter().copied();
        from.filter(|&value| !taken.contains(&document.value_id(value))).collect()
    }

    /// Whether all values of a member in some case are instances of a schema, or none is; `None` if that isn't clear.
    pub(crate) fn fits(&mut self, id: SchemaId, values: MemberValues) -> Option<bool> {
        if let Some(&known) = self.fitting.get(&(id, values)) {
            return known;
        }
        let found = match values {
            MemberValues::Among(list) => {
                let list = self.lists[list as usize].clone();
                let mut verdicts = list.iter().map(|&value| self.value_fits(id, value, 0));
                let first = verdicts.next().flatten();
                if verdicts.all(|verdict| verdict == first) { first } else { None }
            }
            MemberValues::Outside(list) => self.others_fit(id, list, 0),
            MemberValues::Any | MemberValues::None => None,
        };
        self.fitting.insert((id, values), found);
        found
    }

    /// Whether a scalar is an instance of a schema, if the schema's simple keywords decide that.
    fn value_fits(&self, id: SchemaId, value: JsonId, level: usize) -> Option<bool> {
        let document = self.schemas.document;
        let schema = self.schemas.get(id);
        if schema.never {
            return Some(false);
        }
        if level > MAX_LEVEL || !schema.refusals.is_empty() {
            return None;
        }
        let of_type = type_of(document.get(value));
        let inner = |part: SchemaId| self.value_fits(part, value, level + 1);
        let verdicts = schema.keywords.iter().map(|keyword| match keyword {
            // In this case the text of a number decides whether it is an integer.
            Keyword::Type(types) if of_type.meets(Types::NUMBER) && self.schemas.is_pointless(id) => {
                match types.and(Types::NUMBER) {
                    Types::NUMBER => Some(true),
                    Types::NONE => Some(false),
                    _ => None,
                }
            }
            Keyword::Type(types) => Some(types.meets(of_type)),
            Keyword::Values(values) => {
                let wanted = document.value_id(value);
                Some(values.iter().any(|&listed| document.value_id(listed) == wanted))
            }
            Keyword::Ref(part) => inner(*part),
            Keyword::Not(part) => inner(*part).map(|fits| !fits),
            Keyword::AllOf(parts) => all_of(parts.iter().map(|&part| inner(part))),
            Keyword::AnyOf(parts) => any_of(parts.iter().map(|&part| inner(part))),
            keyword if !keyword.speaks_of(of_type) => Some(true),
            _ => None,
        });
        all_of(verdicts)
    }

    /// Whether all values outside a list are instances of a schema, or none is.
    fn others_fit(&self, id: SchemaId, list: ListId, level: usize) -> Option<bool> {
        let document = self.schemas.document;
        let schema = self.schemas.get(id);
        if schema.never {
            return Some(false);
        }
        if level > MAX_LEVEL || !schema.refusals.is_empty() {
            return None;
        }
        let inner = |part: SchemaId| self.others_fit(part, list, level + 1);
        let verdicts = schema.keywords.iter().map(|keyword| match keyword {
            Keyword::Values(values) => {
                let known: Vec<ValueId> =
                    self.lists[list as usize].iter().map(|&value| document.value_id(value)).collect();
                values.iter().all(|&value| known.contains(&document.value_id(value))).then_some(false)
            }
            Keyword::Ref(part) => inner(*part),
            Keyword::Not(part) => inner(*part).map(|fits| !fits),
            Keyword::AllOf(parts) => all_of(parts.iter().map(|&part| inner(part))),
            Keyword::AnyOf(parts) => any_of(parts.iter().map(|&part| inner(part))),
            _ => None,
        });
        all_of(verdicts)
    }
}

fn all_of(verdicts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut all = Some(true);
    for verdict in verdicts {
        match verdict {
            Some(false) => return Some(false),
            Some(true) => {}
            None => all = None,
        }
    }
    all
}

fn any_of(verdicts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    all_of(verdicts.map(|verdict| verdict.map(|fits| !fits))).map(|none| !none)
}
