//! JSON values to typed schemas: checks the value of every keyword and sorts keywords into enforced, annotation, refused.
//!
//! One table of keywords for all drafts (JSON Schema Core and Validation 2020-12; drafts 4 to 7 where they differ and
//! `$schema` names them). Schemas are read from a list of work, outermost first, never by recursion.

use std::borrow::Cow;

use stencilm_regex::Decimal;

use super::document::{Document, Json, JsonId, quoted};
use super::refs::{RefProblem, Refs};
use super::schema::{Fate, Format, Keyword, Refusal, Schema, SchemaId, Schemas, Types};
use super::vocabulary::{ANNOTATIONS, Draft, REFUSED, draft_of};
use crate::error::{ErrorKind, GrammarError};

/// Reads every schema that can be reached from the root.
///
/// # Errors
/// [`ErrorKind::Syntax`] for a value that its keyword does not allow, [`ErrorKind::Limit`] for an absurd number.
pub(super) fn read<'t>(document: &'t Document<'t>) -> Result<Schemas<'t>, GrammarError> {
    let draft = draft_of(document);
    let refs = Refs::new(document, if draft == Draft::D4 { "id" } else { "$id" });
    let mut by_value = vec![Schemas::NONE; document.len()];
    let mut list = Vec::new();
    let mut work = vec![document.root()];
    while let Some(id) = work.pop() {
        let slot = &mut by_value[id.0 as usize];
        if *slot == Schemas::NONE {
            let mut reader =
                Reader { document, refs: &refs, draft, at: id, schema: Schema::default(), inner: &mut work };
            reader.schema()?;
            *slot = list.len() as u32;
            list.push(reader.schema);
        }
    }
    Ok(Schemas { document, draft, by_value, list })
}

struct Reader<'t, 'r> {
    document: &'t Document<'t>,
    refs: &'r Refs,
    draft: Draft,
    at: JsonId,
    schema: Schema<'t>,
    /// Schemas found inside, still to be read.
    inner: &'r mut Vec<JsonId>,
}

impl<'t> Reader<'t, '_> {
    fn schema(&mut self) -> Result<(), GrammarError> {
        match self.document.get(self.at) {
            Json::Bool(allows) => {
                self.schema.never = !allows;
                Ok(())
            }
            Json::Object(entries) => {
                let only_ref = self.draft <= Draft::D7 && entries.contains_key("$ref");
                self.schema.fates.reserve_exact(entries.len());
                for (keyword, &value) in entries.iter() {
                    if only_ref && keyword != "$ref" {
                        self.annotate(keyword, "ignored beside $ref up to draft 7");
                    } else {
                        self.keyword(keyword, value)?;
                    }
                }
                Ok(())
            }
            other => Err(self.invalid(format!("a schema is an object or a boolean, not {}", other.kind()))),
        }
    }

    fn keyword(&mut self, name: &'t str, value: JsonId) -> Result<(), GrammarError> {
        let keyword = match name {
            "type" => Keyword::Type(self.types(value)?),
            "const" => Keyword::Values([value].into()),
            "enum" => match self.document.get(value) {
                Json::Array(values) => Keyword::Values(values.clone()),
                _ => return Err(self.wrong(name, value, "a list of values")),
            },
            "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum" => {
                let Some(bound) = self.bound(name, value)? else {
                    self.enforce(name);
                    return Ok(());
                };
                bound
            }
            "multipleOf" => Keyword::MultipleOf(self.step(name, value)?),
            "minLength" => Keyword::MinLength(self.least(name, value)?),
            "maxLength" => Keyword::MaxLength(self.greatest(name, value)?),
            "minItems" => Keyword::MinItems(self.least(name, value)?),
            "maxItems" => Keyword::MaxItems(self.greatest(name, value)?),
            "pattern" => match self.document.get(value) {
                Json::String(_) => Keyword::Pattern(value),
                _ => return Err(self.wrong(name, value, "a string")),
            },
            "format" => {
                let Some(format) = self.format(value)? else { return Ok(()) };
                Keyword::Format(format)
            }
            "properties" => {
                self.schema_map(name, value)?;
                Keyword::Properties(value)
            }
            "required" => match self.document.get(value) {
                // Draft 3 had a boolean here; the meaning of `true` was another one.
                Json::Array(names) => {
                    self.check_names(name, names)?;
                    Keyword::Required(value)
                }
                _ => return Err(self.wrong(name, value, "a list of keys")),
            },
            "additionalProperties" => match self.additional_properties(value) {
                Some(keyword) => keyword,
                None => return Ok(()),
            },
            "items" => match self.document.get(value) {
                Json::Array(_) if self.draft != Draft::D2020 => Keyword::PrefixItems(self.schema_list(name, value)?),
                Json::Array(_) => {
                    return Err(self.wrong(name, value, "a schema; in 2020-12 a list goes in prefixItems"));
                }
                _ => Keyword::Items(self.inner(value)),
            },
            "prefixItems" => Keyword::PrefixItems(self.schema_list(name, value)?),
            "additionalItems" => {
                let items = self.document.entries(self.at).and_then(|entries| entries.get("items"));
                if !items.is_some_and(|&items| matches!(self.document.get(items), Json::Array(_))) {
                    self.annotate(name, "has no force without a list in items");
                    return Ok(());
                }
                Keyword::Items(self.inner(value))
            }
            "allOf" => Keyword::AllOf(self.branches(name, value)?),
            "anyOf" => Keyword::AnyOf(self.branches(name, value)?),
            "oneOf" => Keyword::OneOf(self.branches(name, value)?),
            "$ref" => match self.reference(value)? {
                Some(keyword) => keyword,
                None => return Ok(()),
            },
            _ => return self.other(name, value),
        };
        self.enforce(name);
        self.schema.keywords.push(keyword);
        Ok(())
    }

    /// Keywords without force, without support, or unknown.
    fn other(&mut self, name: &'t str, value: JsonId) -> Result<(), GrammarError> {
        let has = |name: &str| self.document.entries(self.at).is_some_and(|entries| entries.contains_key(name));
        let json = self.document.get(value);
        let orphan = match name {
            "then" | "else" if !has("if") => Some("has no force without if"),
            "if" if !has("then") && !has("else") => Some("has no force without then or else"),
            "minContains" | "maxContains" if !has("contains") => Some("has no force without contains"),
            _ => None,
        };
        let vacuous = match (name, json) {
            ("uniqueItems", Json::Bool(false)) => true,
            ("unevaluatedProperties" | "unevaluatedItems" | "propertyNames", Json::Bool(true)) => true,
            ("not", Json::Bool(false)) => true,
            ("patternProperties" | "dependentRequired" | "dependentSchemas" | "dependencies", Json::Object(map)) => {
                map.is_empty()
            }
            ("minProperties", Json::Number(text)) => Decimal::parse(text).is_some_and(|least| least.is_zero()),
            _ => false,
        };
        if vacuous {
            self.enforce(name);
        } else if let Some(note) = orphan {
            self.annotate(name, note);
        } else if name == "uniqueItems" {
            if !matches!(json, Json::Bool(_)) {
                return Err(self.wrong(name, value, "a boolean"));
            }
            self.refuse(name, "comparing elements is not supported; leave it out and check afterwards");
        } else if name == "patternProperties" {
            self.refuse(name, "keys by pattern are not supported; name the keys in properties");
        } else if matches!(name, "then" | "else" | "minContains" | "maxContains") {
            // Part of `if` or `contains`, which is refused; not dropped without a word when that is relaxed.
            self.refuse(name, "it belongs to a keyword that is not supported");
        } else if let Some((_, way_out)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            self.refuse(name, *way_out);
        } else if ANNOTATIONS.contains(&name) || (name == "id" && self.draft == Draft::D4) {
            self.annotate(name, "");
        } else {
            self.annotate(name, "unknown keyword");
        }
        Ok(())
    }

    fn types(&self, value: JsonId) -> Result<Types, GrammarError> {
        let named = |id: JsonId| match self.document.get(id) {
            Json::String(name) => match Types::NAMES.iter().find(|(known, _)| *known == &**name) {
                Some((_, types)) => Ok(*types),
                None => {
                    let known = Types::NAMES.map(|(name, _)| name).join(", ");
                    Err(self.invalid(format!("type {} is not known; the types are {known}", quoted(name))))
                }
            },
            _ => Err(self.wrong("type", value, "the name of a type or a list of names")),
        };
        match self.document.get(value) {
            Json::Array(names) if names.is_empty() => {
                Err(self.invalid("type is an empty list; name at least one type"))
            }
            Json::Array(names) => names.iter().try_fold(Types::NONE, |types, &name| Ok(types.or(named(name)?))),
            _ => named(value),
        }
    }

    fn number(&self, name: &str, value: JsonId) -> Result<Decimal, GrammarError> {
        let Json::Number(text) = self.document.get(value) else {
            return Err(self.wrong(name, value, "a number"));
        };
        Decimal::parse(text).filter(|number| number.plain().is_some()).ok_or_else(|| {
            let message = format!("{name} {} needs too many digits; use a smaller number", self.document.show(value));
            GrammarError::new(ErrorKind::Limit, self.place(), message)
        })
    }

    /// A number above 0 that divides.
    fn step(&self, name: &str, value: JsonId) -> Result<Decimal, GrammarError> {
        let step = self.number(name, value)?;
        if step.negative || step.is_zero() {
            return Err(self.wrong(name, value, "a number above 0"));
        }
        Ok(step)
    }

    /// A bound on numbers; `None` for a draft-4 flag, which is read together with the bound it belongs to.
    fn bound(&self, name: &str, value: JsonId) -> Result<Option<Keyword>, GrammarError> {
        if let (Draft::D4, Json::Bool(_), true) = (self.draft, self.document.get(value), name.starts_with("exclusive"))
        {
            return Ok(None);
        }
        let bound = self.number(name, value)?;
        let flag = |flag: &str| {
            let flag = self.document.entries(self.at).and_then(|entries| entries.get(flag));
            self.draft == Draft::D4 && flag.is_some_and(|&flag| matches!(self.document.get(flag), Json::Bool(true)))
        };
        Ok(Some(match name {
            "minimum" => Keyword::Minimum { bound, exclusive: flag("exclusiveMinimum") },
            "maximum" => Keyword::Maximum { bound, exclusive: flag("exclusiveMaximum") },
            "exclusiveMinimum" => Keyword::Minimum { bound, exclusive: true },
            _ => Keyword::Maximum { bound, exclusive: true },
        }))
    }

    fn count(&self, name: &str, value: JsonId) -> Result<Option<u64>, GrammarError> {
        let Json::Number(text) = self.document.get(value) else {
            return Err(self.wrong(name, value, "an integer of 0 or more"));
        };
        match Decimal::parse(text) {
            Some(number) if number.negative || !number.is_integer() => {
                Err(self.wrong(name, value, "an integer of 0 or more"))
            }
            number => Ok(number.and_then(|number| number.to_u64())),
        }
    }

    fn least(&self, name: &str, value: JsonId) -> Result<u32, GrammarError> {
        self.count(name, value)?.and_then(|count| u32::try_from(count).ok()).ok_or_else(|| {
            let message = format!("{name} {} is above {}; use a smaller one", self.document.show(value), u32::MAX);
            GrammarError::new(ErrorKind::Limit, self.place(), message)
        })
    }

    /// An upper count; `u32::MAX` stands for no limit, since no text is that long.
    fn greatest(&self, name: &str, value: JsonId) -> Result<u32, GrammarError> {
        Ok(self.count(name, value)?.map_or(u32::MAX, |count| u32::try_from(count).unwrap_or(u32::MAX)))
    }

    fn format(&mut self, value: JsonId) -> Result<Option<Format>, GrammarError> {
        let Json::String(name) = self.document.get(value) else {
            return Err(self.wrong("format", value, "a string"));
        };
        if let Some(format) = Format::ALL.into_iter().find(|format| format.name() == &**name) {
            return Ok(Some(format));
        }
        self.annotate("format", format!("{} is not a standard format", quoted(name)));
        Ok(None)
    }

    fn check_names(&self, keyword: &str, names: &[JsonId]) -> Result<(), GrammarError> {
        match names.iter().find(|&&id| !matches!(self.document.get(id), Json::String(_))) {
            Some(&id) => Err(self.wrong(keyword, id, "a key")),
            None => Ok(()),
        }
    }

    fn additional_properties(&mut self, value: JsonId) -> Option<Keyword> {
        let patterns = self.document.entries(self.at).and_then(|entries| entries.get("patternProperties"));
        let has_patterns =
            patterns.and_then(|&patterns| self.document.entries(patterns)).is_some_and(|map| !map.is_empty());
        if has_patterns {
            // Kept without the patterns, it would forbid what the schema allows.
            self.refuse("additionalProperties", "its meaning depends on patternProperties, which is not supported");
            return None;
        }
        Some(Keyword::AdditionalProperties(self.inner(value)))
    }

    fn inner(&mut self, value: JsonId) -> SchemaId {
        self.inner.push(value);
        SchemaId(value)
    }

    fn schema_list(&mut self, name: &str, value: JsonId) -> Result<Box<[SchemaId]>, GrammarError> {
        match self.document.get(value) {
            Json::Array(items) => Ok(items.iter().map(|&item| self.inner(item)).collect()),
            _ => Err(self.wrong(name, value, "a list of schemas")),
        }
    }

    fn branches(&mut self, name: &str, value: JsonId) -> Result<Box<[SchemaId]>, GrammarError> {
        let branches = self.schema_list(name, value)?;
        if branches.is_empty() {
            return Err(self.wrong(name, value, "a list of at least one schema"));
        }
        Ok(branches)
    }

    fn schema_map(&mut self, name: &str, value: JsonId) -> Result<(), GrammarError> {
        match self.document.get(value) {
            Json::Object(entries) => {
                self.inner.extend(entries.values());
                Ok(())
            }
            _ => Err(self.wrong(name, value, "an object of schemas")),
        }
    }

    fn reference(&mut self, value: JsonId) -> Result<Option<Keyword>, GrammarError> {
        let Json::String(reference) = self.document.get(value) else {
            return Err(self.wrong("$ref", value, "a string"));
        };
        match self.refs.resolve(self.document, self.at, reference) {
            Ok(target) => Ok(Some(Keyword::Ref(self.inner(target)))),
            Err(RefProblem::Unsupported(reason)) => {
                self.refuse("$ref", format!("{}: {reason}", quoted(reference)));
                Ok(None)
            }
            Err(RefProblem::Invalid(reason)) => Err(self.invalid(format!("$ref {}: {reason}", quoted(reference)))),
        }
    }

    fn enforce(&mut self, keyword: &'t str) {
        self.schema.fates.push(Fate { enforced: true, keyword, note: "".into() });
    }

    fn annotate(&mut self, keyword: &'t str, note: impl Into<Cow<'static, str>>) {
        self.schema.fates.push(Fate { enforced: false, keyword, note: note.into() });
    }

    fn refuse(&mut self, keyword: &'t str, reason: impl Into<Cow<'static, str>>) {
        self.schema.refusals.push(Refusal { keyword, reason: reason.into() });
    }

    fn place(&self) -> String {
        self.document.pointer(self.at)
    }

    fn invalid(&self, message: impl Into<String>) -> GrammarError {
        GrammarError::new(ErrorKind::Syntax, self.place(), message)
    }

    fn wrong(&self, keyword: &str, value: JsonId, wanted: &str) -> GrammarError {
        self.invalid(format!("{keyword} is {}; it must be {wanted}", self.document.show(value)))
    }
}
