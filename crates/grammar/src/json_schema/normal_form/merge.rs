//! One conjunction to one set of constraints for each JSON type: types and bounds by intersection, patterns together,
//! properties by key, elements by position.
//!
//! What no value can satisfy at once is a clash: it removes a type and keeps the sentence that says why. A conjunction
//! without any type left matches nothing.

use rustc_hash::FxHashSet;
use stencilm_regex::End;

use super::atoms::Atom;
use super::merged::{From, Merged, Signed};
use super::normal::Normal;
use crate::json_schema::read::document::ValueId;
use crate::json_schema::read::document::{Json, JsonId};
use crate::json_schema::read::schema::{Keyword, SchemaId, Schemas, Types};

/// Merges the constraints of a conjunction.
pub(crate) fn merge<'a>(normal: &Normal<'a>, all: &[Atom]) -> Merged<'a> {
    let mut merger = Merger {
        schemas: normal.schemas,
        normal,
        merged: Merged::unconstrained(),
        types_at: None,
        min_length_at: None,
        min_items_at: None,
        min_members_at: None,
    };
    for &atom in all {
        merger.add_atom(atom);
    }
    if merger.merged.types.meets(Types::ARRAY) {
        merger.add_elements(all);
    }
    if merger.merged.types.meets(Types::OBJECT) {
        merger.add_members(all);
    }
    if normal.strict {
        merger.close(all);
    }
    merger.find_clashes(all);
    merger.merged
}

pub(crate) struct Merger<'a, 'n> {
    pub(crate) schemas: &'a Schemas<'a>,
    pub(crate) normal: &'n Normal<'a>,
    pub(crate) merged: Merged<'a>,
    /// The schemas that the bounds come from, for messages.
    pub(crate) types_at: Option<SchemaId>,
    pub(crate) min_length_at: Option<SchemaId>,
    pub(crate) min_items_at: Option<SchemaId>,
    pub(crate) min_members_at: Option<SchemaId>,
}

impl<'a> Merger<'a, '_> {
    /// Adds what an atom requires by itself, independent of the others.
    fn add_atom(&mut self, atom: Atom) {
        match atom {
            Atom::Own(id) => self.add_own(id),
            Atom::Never(id) => {
                self.rule_out(Types::ALL, id, "this schema allows every value, so none fails it".into());
            }
            Atom::Broken { schema, keyword, part } => {
                let schemas = self.schemas;
                let keyword = &schemas.get(schema).keywords[keyword as usize];
                self.exclude_types(self.normal.types_of(atom), schema);
                self.add_broken(schema, keyword, part);
            }
            Atom::MemberFails { schema, .. } | Atom::Has { at: schema, .. } => {
                self.exclude_types(Types::OBJECT, schema);
            }
            Atom::Unevaluated { schema, broken: true, .. } => self.exclude_types(self.normal.types_of(atom), schema),
            Atom::Differs { value, .. } => {
                let types = self.normal.types_of(atom);
                self.merged.types = self.merged.types.and(types);
                if !matches!(self.schemas.document.get(value), Json::Array(_) | Json::Object(_)) {
                    let at = self.normal.schemas.root;
                    self.merged.excluded.push(From { value, at });
                }
            }
            Atom::Among(list) => {
                let values = self.normal.lists[list as usize].clone();
                self.add_values(self.normal.schemas.root, &values);
            }
            Atom::Outside(list) => {
                let at = self.normal.schemas.root;
                let values = self.normal.lists[list as usize].iter();
                self.merged.excluded.extend(values.map(|&value| From { value, at }));
            }
            Atom::Circular(cycle) => {
                self.merged.types = Types::NONE;
                self.merged.clashes.push(self.normal.cycles[cycle as usize].clone());
            }
            Atom::Case(_) => self.merged.types = self.merged.types.and(self.normal.types_of(atom)),
            Atom::Texts(id) => {
                self.exclude_types(self.normal.types_of(atom), self.normal.place_of_texts(id));
                self.merged.texts.push(id);
            }
            Atom::Lacks { .. } | Atom::Seen(_) | Atom::Unevaluated { .. } => {}
        }
    }

    /// Keeps only the types for which a keyword can fail.
    fn exclude_types(&mut self, types: Types, at: SchemaId) {
        let before = self.merged.types;
        if before.and(types).is_empty() && !before.is_empty() {
            let message = format!("only values of the type {types} fail what is negated here, and no others are left");
            self.rule_out(Types::ALL, at, message);
        }
        self.merged.types = before.and(types);
    }

    /// Adds what a schema requires by itself, independent of the others.
    fn add_own(&mut self, id: SchemaId) {
        let schema = self.schemas.get(id);
        if schema.never {
            self.rule_out(Types::ALL, id, "the schema false allows no value".into());
        }
        for keyword in &schema.keywords {
            match keyword {
                Keyword::Type(types) => self.add_types(id, *types),
                Keyword::Values(values) => self.add_values(id, values),
                Keyword::Minimum { bound, exclusive } => {
                    self.add_lower(id, End { value: bound.clone(), exclusive: *exclusive });
                }
                Keyword::Maximum { bound, exclusive } => {
                    self.add_upper(id, End { value: bound.clone(), exclusive: *exclusive });
                }
                Keyword::MultipleOf(step) => {
                    self.merged.multiple_of.push(Signed { value: step.clone(), fails: false, at: id });
                }
                Keyword::MinLength(min) => self.add_min_length(id, *min),
                Keyword::MaxLength(max) => self.merged.max_length = tighter_max(self.merged.max_length, *max),
                Keyword::Pattern(pattern) => {
                    self.merged.patterns.push(Signed { value: *pattern, fails: false, at: id });
                }
                Keyword::Format(format) => self.merged.formats.push(Signed { value: *format, fails: false, at: id }),
                Keyword::Name(name) => self.merged.name_uses.push(Signed { value: *name, fails: false, at: id }),
                Keyword::MinItems(min) => self.add_min_items(id, *min),
                Keyword::MaxItems(max) => self.merged.max_items = tighter_max(self.merged.max_items, *max),
                Keyword::UniqueItems => self.merged.unique = Some(id),
                Keyword::MinProperties(min) => self.add_min_members(id, *min),
                Keyword::MaxProperties(max) => self.merged.max_members = tighter_max(self.merged.max_members, *max),
                _ => {}
            }
        }
    }

    /// Adds what follows if a keyword of a schema doesn't hold; for keywords with parts, except those about members and
    /// elements.
    fn add_broken(&mut self, id: SchemaId, keyword: &'a Keyword, part: u32) {
        let merged = &mut self.merged;
        match keyword {
            Keyword::Values(values) => {
                let document = self.schemas.document;
                let scalars =
                    values.iter().filter(|&&value| !matches!(document.get(value), Json::Array(_) | Json::Object(_)));
                merged.excluded.extend(scalars.map(|&value| From { value, at: id }));
            }
            Keyword::Minimum { bound, exclusive } => {
                self.add_upper(id, End { value: bound.clone(), exclusive: !exclusive });
            }
            Keyword::Maximum { bound, exclusive } => {
                self.add_lower(id, End { value: bound.clone(), exclusive: !exclusive });
            }
            Keyword::MultipleOf(step) => merged.multiple_of.push(Signed { value: step.clone(), fails: true, at: id }),
            Keyword::MinLength(min) => merged.max_length = tighter_max(merged.max_length, min.saturating_sub(1)),
            Keyword::MaxLength(u32::MAX) => self.no_longer(Types::STRING, id, "maxLength"),
            Keyword::MaxLength(max) => self.add_min_length(id, max + 1),
            Keyword::Pattern(pattern) => merged.patterns.push(Signed { value: *pattern, fails: true, at: id }),
            Keyword::Format(format) => merged.formats.push(Signed { value: *format, fails: true, at: id }),
            Keyword::Name(name) => merged.name_uses.push(Signed { value: *name, fails: true, at: id }),
            Keyword::MinItems(min) => merged.max_items = tighter_max(merged.max_items, min.saturating_sub(1)),
            Keyword::MaxItems(u32::MAX) => self.no_longer(Types::ARRAY, id, "maxItems"),
            Keyword::MaxItems(max) => self.add_min_items(id, max + 1),
            Keyword::PrefixItems(_) => self.add_min_items(id, part + 1),
            Keyword::UniqueItems => {
                merged.repeated = Some(id);
                self.add_min_items(id, 2);
            }
            Keyword::MinProperties(min) => merged.max_members = tighter_max(merged.max_members, min.saturating_sub(1)),
            Keyword::MaxProperties(u32::MAX) => self.no_longer(Types::OBJECT, id, "maxProperties"),
            Keyword::MaxProperties(max) => self.add_min_members(id, max + 1),
            _ => {}
        }
    }

    /// Handles the negation of a limit that is too large to be exceeded.
    fn no_longer(&mut self, types: Types, at: SchemaId, keyword: &str) {
        self.rule_out(types, at, format!("no value is above a {keyword} of 2^32 or more"));
    }

    fn add_lower(&mut self, at: SchemaId, end: End) {
        let tighter = |old: &End| (&end.value, end.exclusive) > (&old.value, old.exclusive);
        if self.merged.lower.as_ref().is_none_or(|old| tighter(&old.value)) {
            self.merged.lower = Some(From { value: end, at });
        }
    }

    fn add_upper(&mut self, at: SchemaId, end: End) {
        let tighter = |old: &End| (&end.value, !end.exclusive) < (&old.value, !old.exclusive);
        if self.merged.upper.as_ref().is_none_or(|old| tighter(&old.value)) {
            self.merged.upper = Some(From { value: end, at });
        }
    }

    fn add_min_length(&mut self, at: SchemaId, min: u32) {
        if min > self.merged.min_length {
            self.merged.min_length = min;
            self.min_length_at = Some(at);
        }
    }

    pub(crate) fn add_min_items(&mut self, at: SchemaId, min: u32) {
        if min > self.merged.min_items {
            self.merged.min_items = min;
            self.min_items_at = Some(at);
        }
    }

    pub(crate) fn add_min_members(&mut self, at: SchemaId, min: u32) {
        if min > self.merged.min_members {
            self.merged.min_members = min;
            self.min_members_at = Some(at);
        }
    }

    fn add_types(&mut self, id: SchemaId, types: Types) {
        let before = self.merged.types;
        if before.and(types).is_empty() && !before.is_empty() {
            let message = match self.types_at {
                Some(other) if other != id => {
                    format!("type {types} excludes the type {before} that {} asks for", self.schemas.place(other))
                }
                _ => format!("type {types} leaves no value"),
            };
            self.rule_out(Types::ALL, id, message);
        }
        self.merged.types = before.and(types);
        self.types_at = self.types_at.or(Some(id));
    }

    fn add_values(&mut self, id: SchemaId, values: &[JsonId]) {
        let document = &self.schemas.document;
        let kept = match &self.merged.values {
            None => values.to_vec(),
            Some(old) => {
                let new: FxHashSet<ValueId> = values.iter().map(|&value| document.value_id(value)).collect();
                old.value.iter().copied().filter(|&value| new.contains(&document.value_id(value))).collect()
            }
        };
        if kept.is_empty() {
            let message = match &self.merged.values {
                None => "enum is an empty list, so no value fits; name at least one".to_string(),
                Some(old) => {
                    format!("no value is both here and in the enum or const of {}", self.schemas.place(old.at))
                }
            };
            self.rule_out(Types::NONE, id, message);
        }
        self.merged.values = Some(From { value: kept, at: id });
    }
}

fn tighter_max(old: Option<u32>, new: u32) -> Option<u32> {
    // `u32::MAX` means no limit, because no text is that long.
    Some(old.map_or(new, |old| old.min(new))).filter(|max| *max < u32::MAX)
}
