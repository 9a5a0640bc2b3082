//! One conjunction to one set of constraints for each JSON type: types and bounds by intersection, patterns together,
//! properties by key, elements by place.
//!
//! What no value can satisfy at once is a clash: it takes a type away and keeps the sentence that says why. A conjunction
//! without types left matches nothing.

use indexmap::IndexMap;
use rustc_hash::FxHashSet;
use stencilm_regex::{Decimal, End};

use super::canonical::canonical;
use super::document::{Json, JsonId};
use super::normal::Conjunction;
use super::schema::{Format, Keyword, SchemaId, Schemas, Types};

/// Two constraints that exclude each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Clash {
    pub(super) place: String,
    pub(super) message: String,
}

/// A constraint value and the schema it comes from.
#[derive(Clone, Debug)]
pub(super) struct From<T> {
    pub(super) value: T,
    pub(super) at: SchemaId,
}

/// A member whose key some schema names.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// All schemas for its value.
    pub(super) value: Vec<SchemaId>,
    /// The schema that requires it.
    pub(super) required: Option<SchemaId>,
}

/// All constraints of one conjunction.
#[derive(Clone, Debug)]
pub(super) struct Merged<'a> {
    pub(super) types: Types,
    /// The only values, when there is an `enum` or `const`.
    pub(super) values: Option<From<Vec<JsonId>>>,
    pub(super) lower: Option<From<End>>,
    pub(super) upper: Option<From<End>>,
    /// The value is a multiple of all of these.
    pub(super) multiple_of: Vec<From<Decimal>>,
    pub(super) min_length: u32,
    pub(super) max_length: Option<u32>,
    pub(super) patterns: Vec<From<JsonId>>,
    pub(super) formats: Vec<From<Format>>,
    pub(super) min_items: u32,
    pub(super) max_items: Option<u32>,
    /// The schemas of the first elements.
    pub(super) prefix: Vec<Vec<SchemaId>>,
    /// The schemas of all further elements.
    pub(super) rest: Vec<SchemaId>,
    /// Whether strict mode forbids further elements.
    pub(super) closed_items: bool,
    pub(super) known: IndexMap<&'a str, Known, rustc_hash::FxBuildHasher>,
    /// The schemas of members that nothing names.
    pub(super) free: Vec<SchemaId>,
    /// Whether strict mode forbids such members.
    pub(super) closed: bool,
    pub(super) clashes: Vec<Clash>,
}

impl Merged<'_> {
    /// Whether it is already certain that nothing matches.
    pub(super) fn is_impossible(&self) -> bool {
        self.types.is_empty() || self.values.as_ref().is_some_and(|values| values.value.is_empty())
    }

    /// Whether a string is constrained beyond its length.
    pub(super) fn has_text_constraints(&self) -> bool {
        !self.patterns.is_empty() || !self.formats.is_empty()
    }

    /// The schemas for the element at a place.
    pub(super) fn element(&self, place: usize) -> &[SchemaId] {
        self.prefix.get(place).unwrap_or(&self.rest)
    }
}

/// The constraints of a conjunction.
pub(super) fn merge<'a>(schemas: &'a Schemas<'a>, all: &Conjunction, strict: bool) -> Merged<'a> {
    let mut merger =
        Merger { schemas, merged: unconstrained(), types_at: None, min_length_at: None, min_items_at: None };
    for &id in all.iter() {
        merger.add_own(id);
    }
    if merger.merged.types.meets(Types::ARRAY) {
        merger.add_elements(all);
    }
    if merger.merged.types.meets(Types::OBJECT) {
        merger.add_members(all);
    }
    if strict {
        merger.close(all);
    }
    merger.find_clashes(all);
    merger.merged
}

fn unconstrained<'a>() -> Merged<'a> {
    Merged {
        types: Types::ALL,
        values: None,
        lower: None,
        upper: None,
        multiple_of: Vec::new(),
        min_length: 0,
        max_length: None,
        patterns: Vec::new(),
        formats: Vec::new(),
        min_items: 0,
        max_items: None,
        prefix: Vec::new(),
        rest: Vec::new(),
        closed_items: false,
        known: IndexMap::default(),
        free: Vec::new(),
        closed: false,
        clashes: Vec::new(),
    }
}

struct Merger<'a> {
    schemas: &'a Schemas<'a>,
    merged: Merged<'a>,
    /// Where the bounds come from, for messages.
    types_at: Option<SchemaId>,
    min_length_at: Option<SchemaId>,
    min_items_at: Option<SchemaId>,
}

impl<'a> Merger<'a> {
    /// What a schema says by itself, without looking at the others.
    fn add_own(&mut self, id: SchemaId) {
        let schema = self.schemas.get(id);
        if schema.never {
            self.rule_out(Types::ALL, id, "the schema false allows no value".into());
        }
        for keyword in &schema.keywords {
            let merged = &mut self.merged;
            match keyword {
                Keyword::Type(types) => self.add_types(id, *types),
                Keyword::Values(values) => self.add_values(id, values),
                Keyword::Minimum { bound, exclusive } => {
                    let end = End { value: bound.clone(), exclusive: *exclusive };
                    let tighter = |old: &End| (&end.value, end.exclusive) > (&old.value, old.exclusive);
                    if merged.lower.as_ref().is_none_or(|old| tighter(&old.value)) {
                        merged.lower = Some(From { value: end, at: id });
                    }
                }
                Keyword::Maximum { bound, exclusive } => {
                    let end = End { value: bound.clone(), exclusive: *exclusive };
                    let tighter = |old: &End| (&end.value, !end.exclusive) < (&old.value, !old.exclusive);
                    if merged.upper.as_ref().is_none_or(|old| tighter(&old.value)) {
                        merged.upper = Some(From { value: end, at: id });
                    }
                }
                Keyword::MultipleOf(step) => merged.multiple_of.push(From { value: step.clone(), at: id }),
                Keyword::MinLength(min) if *min > merged.min_length => {
                    merged.min_length = *min;
                    self.min_length_at = Some(id);
                }
                Keyword::MaxLength(max) => merged.max_length = tighter_max(merged.max_length, *max),
                Keyword::MinItems(min) if *min > merged.min_items => {
                    merged.min_items = *min;
                    self.min_items_at = Some(id);
                }
                Keyword::MaxItems(max) => merged.max_items = tighter_max(merged.max_items, *max),
                Keyword::Pattern(pattern) => merged.patterns.push(From { value: *pattern, at: id }),
                Keyword::Format(format) => merged.formats.push(From { value: *format, at: id }),
                _ => {}
            }
        }
    }

    fn add_types(&mut self, id: SchemaId, types: Types) {
        let before = self.merged.types;
        let message = match self.types_at {
            Some(other) if other != id => {
                format!("type {types} excludes the type {before} that {} asks for", self.schemas.place(other))
            }
            _ => format!("type {types} leaves no value"),
        };
        if before.and(types).is_empty() && !before.is_empty() {
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
                let new: FxHashSet<Vec<u8>> = values.iter().map(|&value| canonical(document, value)).collect();
                old.value.iter().copied().filter(|&value| new.contains(&canonical(document, value))).collect()
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

    fn add_elements(&mut self, all: &Conjunction) {
        let lists: Vec<(&[SchemaId], Option<SchemaId>)> = all
            .iter()
            .map(|&id| {
                let mut list: (&[SchemaId], Option<SchemaId>) = (&[], None);
                for keyword in &self.schemas.get(id).keywords {
                    match keyword {
                        Keyword::PrefixItems(prefix) => list.0 = prefix,
                        Keyword::Items(rest) => list.1 = Some(*rest),
                        _ => {}
                    }
                }
                list
            })
            .collect();
        let longest = lists.iter().map(|(prefix, _)| prefix.len()).max().unwrap_or(0);
        let at = |place: usize| {
            lists.iter().filter_map(|(prefix, rest)| prefix.get(place).copied().or(*rest)).fold(Vec::new(), with)
        };
        self.merged.prefix = (0..longest).map(at).collect();
        self.merged.rest = at(usize::MAX);
    }

    fn add_members(&mut self, all: &Conjunction) {
        let document = &self.schemas.document;
        let mut shapes = Vec::with_capacity(all.len());
        for &id in all.iter() {
            let (mut properties, mut additional) = (None, None);
            for keyword in &self.schemas.get(id).keywords {
                match keyword {
                    Keyword::Properties(map) => properties = document.entries(*map),
                    Keyword::AdditionalProperties(schema) => additional = Some(*schema),
                    _ => {}
                }
            }
            for name in properties.into_iter().flat_map(|entries| entries.keys()) {
                self.merged.known.entry(name).or_default();
            }
            shapes.push((properties, additional));
        }
        for &id in all.iter() {
            for keyword in &self.schemas.get(id).keywords {
                let Keyword::Required(names) = keyword else { continue };
                for name in document.strings(*names) {
                    self.merged.known.entry(name).or_default().required.get_or_insert(id);
                }
            }
        }
        for (name, known) in &mut self.merged.known {
            known.value = shapes
                .iter()
                .filter_map(|(properties, additional)| {
                    properties.and_then(|entries| entries.get(name)).map(|&value| SchemaId(value)).or(*additional)
                })
                .fold(Vec::new(), with);
        }
        self.merged.free = shapes.iter().filter_map(|(_, additional)| *additional).fold(Vec::new(), with);
    }

    /// Strict mode: members and elements that no schema speaks of are forbidden.
    fn close(&mut self, all: &Conjunction) {
        let says =
            |wanted: fn(&Keyword) -> bool| all.iter().any(|&id| self.schemas.get(id).keywords.iter().any(wanted));
        let about_objects = says(|keyword| match keyword {
            Keyword::Properties(_) | Keyword::Required(_) => true,
            Keyword::Type(types) => types.meets(Types::OBJECT),
            _ => false,
        });
        self.merged.closed = about_objects && self.merged.free.is_empty();
        self.merged.closed_items =
            says(|keyword| matches!(keyword, Keyword::PrefixItems(_))) && self.merged.rest.is_empty();
    }

    fn find_clashes(&mut self, all: &Conjunction) {
        let merged = &self.merged;
        if let (Some(low), Some(high)) = (&merged.lower, &merged.upper) {
            let empty = low.value.value > high.value.value
                || (low.value.value == high.value.value && (low.value.exclusive || high.value.exclusive));
            if empty {
                let name = |exclusive: bool, inclusive: &'static str, other: &'static str| {
                    if exclusive { other } else { inclusive }
                };
                let message = format!(
                    "{} {}{} {} {} {}{}, so no {} fits",
                    name(low.value.exclusive, "minimum", "exclusiveMinimum"),
                    low.value.value,
                    self.elsewhere(low.at, high.at),
                    if low.value.value == high.value.value { "leaves nothing up to" } else { "is above" },
                    name(high.value.exclusive, "maximum", "exclusiveMaximum"),
                    high.value.value,
                    self.elsewhere(high.at, low.at),
                    if merged.types.meets(Types::FRACTION) { "number" } else { "integer" },
                );
                let at = low.at;
                self.rule_out(Types::NUMBER, at, message);
            }
        }
        let holder = |found: Option<SchemaId>| found.or(all.first().copied());
        let merged = &self.merged;
        if let Some(max) = merged.max_length.filter(|max| *max < merged.min_length) {
            let message = format!("minLength {} is above maxLength {max}, so no string fits", merged.min_length);
            if let Some(at) = holder(self.min_length_at) {
                self.rule_out(Types::STRING, at, message);
            }
        }
        let merged = &self.merged;
        if let Some(max) = merged.max_items.filter(|max| *max < merged.min_items) {
            let message = format!("minItems {} is above maxItems {max}, so no array fits", merged.min_items);
            if let Some(at) = holder(self.min_items_at) {
                self.rule_out(Types::ARRAY, at, message);
            }
        }
        self.drop_values();
    }

    /// Takes out the values that a bound on their own type excludes; what lies deeper is checked when it is written.
    fn drop_values(&mut self) {
        let Some(values) = &self.merged.values else { return };
        let (at, before) = (values.at, values.value.len());
        let document = &self.schemas.document;
        let types = self.merged.types;
        let kept: Vec<JsonId> =
            values.value.iter().copied().filter(|&value| types.meets(type_of(document.get(value)))).collect();
        if kept.is_empty() && before > 0 && !types.is_empty() {
            let shown = document.show(values.value[0]);
            let more = if before > 1 { format!(" and {} others", before - 1) } else { String::new() };
            let asked =
                self.types_at.map_or(String::new(), |other| format!(" that {} asks for", self.schemas.place(other)));
            let message = format!("the value {shown}{more} is not of the type {types}{asked}");
            self.rule_out(Types::NONE, at, message);
        }
        if kept.len() < before {
            self.merged.values = Some(From { value: kept, at });
        }
    }

    /// Where a constraint stands, unless it is the place the message names anyway.
    fn elsewhere(&self, at: SchemaId, here: SchemaId) -> String {
        if at == here { String::new() } else { format!(" (in {})", self.schemas.place(at)) }
    }

    fn rule_out(&mut self, types: Types, at: SchemaId, message: String) {
        self.merged.types = self.merged.types.without(types);
        self.merged.clashes.push(Clash { place: self.schemas.place(at), message });
    }
}

/// The type of a value.
pub(super) fn type_of(value: &Json) -> Types {
    match value {
        Json::Null => Types::NULL,
        Json::Bool(_) => Types::BOOLEAN,
        Json::Number(text) => match Decimal::parse(text) {
            Some(number) if !number.is_integer() => Types::FRACTION,
            Some(_) => Types::INTEGER,
            // The exponent is beyond counting; its sign decides.
            None if text.contains("e-") || text.contains("E-") => Types::FRACTION,
            None => Types::INTEGER,
        },
        Json::String(_) => Types::STRING,
        Json::Array(_) => Types::ARRAY,
        Json::Object(_) => Types::OBJECT,
    }
}

fn tighter_max(old: Option<u32>, new: u32) -> Option<u32> {
    // The largest number stands for no limit: no text is that long.
    Some(old.map_or(new, |old| old.min(new))).filter(|max| *max < u32::MAX)
}

fn with(mut all: Vec<SchemaId>, one: SchemaId) -> Vec<SchemaId> {
    if !all.contains(&one) {
        all.push(one);
    }
    all
}
