//! Constraints of one conjunction that exclude each other: bounds that cross, values of the wrong type.

use rustc_hash::FxHashSet;

use super::atoms::Atom;
use super::merge::Merger;
use super::merged::{Clash, From};
use crate::json_schema::read::document::JsonId;
use crate::json_schema::read::document::ValueId;
use crate::json_schema::read::schema::type_of;
use crate::json_schema::read::schema::{SchemaId, Types};

impl Merger<'_, '_> {
    /// Finds requirements that certainly exclude each other, in the order in which they are reported.
    pub(crate) fn find_clashes(&mut self, all: &[Atom]) {
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
        let holder = |found: Option<SchemaId>| found.or(all.iter().find_map(|atom| atom.at()));
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
        if self.merged.types.meets(Types::ARRAY) {
            self.find_element_clashes();
        }
        if self.merged.types.meets(Types::OBJECT) {
            self.find_member_clashes();
        }
        self.drop_values();
    }

    /// Removes values that violate a bound on their own type; constraints on their parts are checked when they are
    /// lowered.
    fn drop_values(&mut self) {
        let Some(values) = &self.merged.values else { return };
        let (at, before) = (values.at, values.value.len());
        let document = &self.schemas.document;
        let types = self.merged.types;
        let excluded: FxHashSet<ValueId> =
            self.merged.excluded.iter().map(|excluded| document.value_id(excluded.value)).collect();
        let is_excluded = |value| !excluded.is_empty() && excluded.contains(&document.value_id(value));
        let kept: Vec<JsonId> = (values.value.iter().copied())
            .filter(|&value| types.meets(type_of(document.get(value))) && !is_excluded(value))
            .collect();
        if kept.is_empty() && before > 0 && !types.is_empty() {
            let shown = document.show(values.value[0]);
            let more = if before > 1 { format!(" and {} others", before - 1) } else { String::new() };
            let asked =
                self.types_at.map_or(String::new(), |other| format!(" that {} asks for", self.schemas.place(other)));
            let is_typed = types.meets(type_of(document.get(values.value[0])));
            let message = match self.merged.excluded.first().filter(|_| is_typed) {
                Some(excluded) => {
                    let place = self.schemas.place(excluded.at);
                    format!("the value {shown}{more} is among those that are excluded at {place}")
                }
                None => format!("the value {shown}{more} is not of the type {types}{asked}"),
            };
            self.rule_out(Types::NONE, at, message);
        }
        if kept.len() < before {
            self.merged.values = Some(From { value: kept, at });
        }
    }

    /// The place of a constraint, unless the message names it anyway.
    pub(crate) fn elsewhere(&self, at: SchemaId, here: SchemaId) -> String {
        if at == here { String::new() } else { format!(" (in {})", self.schemas.place(at)) }
    }

    pub(crate) fn rule_out(&mut self, types: Types, at: SchemaId, message: String) {
        self.merged.types = self.merged.types.without(types);
        self.merged.clashes.push(Clash { place: self.schemas.place(at), message });
    }
}
