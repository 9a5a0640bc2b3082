//! The keywords that hold other schemas, or belong to one that does: references, conditions, members, elements.

use super::document::{Json, JsonId, quoted};
use super::reader::Reader;
use super::refs::RefProblem;
use super::schema::{Keyword, SchemaId};
use super::vocabulary::Draft;
use crate::error::GrammarError;

/// How a keyword was read.
pub(crate) enum Applied {
    /// A keyword that is enforced.
    Keyword(Keyword),
    /// A keyword whose fate has already been recorded.
    Done,
    /// A keyword that isn't read here.
    Other,
}

impl<'t> Reader<'t, '_> {
    /// Reads a keyword that holds other schemas.
    pub(crate) fn applicator(&mut self, name: &'t str, value: JsonId) -> Result<Applied, GrammarError> {
        if !self.draft.has(name) {
            self.annotate(name, "not a keyword of this draft");
            return Ok(Applied::Done);
        }
        if let Some(needs) = self.missing(name) {
            self.annotate(name, needs);
            return Ok(Applied::Done);
        }
        let json = self.document.get(value);
        Ok(Applied::Keyword(match name {
            "properties" | "patternProperties" => {
                let Json::Object(entries) = json else { return Err(self.wrong(name, value, "an object of schemas")) };
                if entries.is_empty() && name == "patternProperties" {
                    return Ok(self.vacuous(name));
                }
                for &inner in entries.values() {
                    self.inner(inner);
                }
                if name == "properties" { Keyword::Properties(value) } else { Keyword::PatternProperties(value) }
            }
            "additionalProperties" => Keyword::AdditionalProperties(self.inner(value)),
            "unevaluatedProperties" if matches!(json, Json::Bool(true)) && !self.is_asked_about() => {
                return Ok(self.vacuous(name));
            }
            "unevaluatedProperties" => Keyword::UnevaluatedProperties(self.inner(value)),
            "unevaluatedItems" => Keyword::UnevaluatedItems(self.inner(value)),
            "propertyNames" => match json {
                Json::Bool(true) => return Ok(self.vacuous(name)),
                _ => Keyword::PropertyNames(self.inner(value)),
            },
            "items" => match json {
                Json::Array(_) if self.draft != Draft::D2020 => Keyword::PrefixItems(self.schema_list(name, value)?),
                Json::Array(_) => {
                    return Err(self.wrong(name, value, "a schema; in 2020-12 a list goes in prefixItems"));
                }
                _ => Keyword::Items(self.inner(value)),
            },
            "prefixItems" => Keyword::PrefixItems(self.schema_list(name, value)?),
            "additionalItems" => Keyword::Items(self.inner(value)),
            "contains" => self.contains(value)?,
            "minContains" | "maxContains" => return Ok(self.vacuous(name)),
            "allOf" => Keyword::AllOf(self.branches(name, value)?),
            "anyOf" => Keyword::AnyOf(self.branches(name, value)?),
            "oneOf" => Keyword::OneOf(self.branches(name, value)?),
            "not" => match json {
                Json::Bool(false) => return Ok(self.vacuous(name)),
                _ => Keyword::Not(self.inner(value)),
            },
            "if" => Keyword::If {
                condition: self.inner(value),
                then: self.sibling("then").map(|then| self.inner(then)),
                otherwise: self.sibling("else").map(|otherwise| self.inner(otherwise)),
            },
            "then" | "else" => return Ok(self.vacuous(name)),
            "dependentRequired" | "dependentSchemas" | "dependencies" => {
                if !self.dependent(name, value)? {
                    return Ok(self.vacuous(name));
                }
                Keyword::Dependent(value)
            }
            "$ref" | "$dynamicRef" | "$recursiveRef" => match self.reference(name, value)? {
                Some(keyword) => keyword,
                None => return Ok(Applied::Done),
            },
            _ => return Ok(Applied::Other),
        }))
    }

    /// Reads dependencies on keys; returns whether there are any.
    fn dependent(&mut self, name: &str, value: JsonId) -> Result<bool, GrammarError> {
        let Json::Object(entries) = self.document.get(value) else { return Err(self.wrong(name, value, "an object")) };
        for &inner in entries.values() {
            match self.document.get(inner) {
                Json::Array(names) if name != "dependentSchemas" => self.check_names(name, names)?,
                Json::Object(_) | Json::Bool(_) if name != "dependentRequired" => {
                    self.inner(inner);
                }
                // In draft 3, a single key needed no list.
                Json::String(_) if name == "dependencies" => {}
                _ => {
                    let wanted = match name {
                        "dependentRequired" => "a list of keys",
                        "dependentSchemas" => "a schema",
                        _ => "a schema or a list of keys",
                    };
                    return Err(self.wrong(name, inner, wanted));
                }
            }
        }
        Ok(!entries.is_empty())
    }

    /// The keyword without which this one has no effect, if it's missing.
    fn missing(&self, name: &str) -> Option<&'static str> {
        let has = |name: &str| self.sibling(name).is_some();
        match name {
            "then" | "else" if !has("if") => Some("has no force without if"),
            "if" if !has("then") && !has("else") && !self.is_asked_about() => Some("has no force without then or else"),
            "minContains" | "maxContains" if !has("contains") => Some("has no force without contains"),
            "additionalItems"
                if !self.sibling("items").is_some_and(|items| matches!(self.document.get(items), Json::Array(_))) =>
            {
                Some("has no force without a list in items")
            }
            _ => None,
        }
    }

    /// Whether annotations may matter: then keywords without an effect of their own still count.
    fn is_asked_about(&self) -> bool {
        self.draft > Draft::D7
    }

    fn sibling(&self, name: &str) -> Option<JsonId> {
        self.document.entries(self.at).and_then(|entries| entries.get(name)).copied()
    }

    /// A keyword that excludes nothing by itself.
    fn vacuous(&mut self, name: &'t str) -> Applied {
        self.enforce(name);
        Applied::Done
    }

    fn contains(&mut self, value: JsonId) -> Result<Keyword, GrammarError> {
        let counts = self.draft.has("minContains");
        let min = match self.sibling("minContains").filter(|_| counts) {
            Some(min) => self.least("minContains", min)?,
            None => 1,
        };
        let max = match self.sibling("maxContains").filter(|_| counts) {
            Some(max) => Some(self.greatest("maxContains", max)?).filter(|&max| max < u32::MAX),
            None => None,
        };
        Ok(Keyword::Contains { schema: self.inner(value), min, max })
    }

    /// A schema inside this one.
    fn inner(&mut self, value: JsonId) -> SchemaId {
        let scope = match self.id.scope {
            0 => 0,
            scope => self.scopes.enter(scope, self.refs.resource_of(value)),
        };
        let id = SchemaId { value, scope };
        self.inner.push(id);
        id
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

    fn reference(&mut self, name: &'t str, value: JsonId) -> Result<Option<Keyword>, GrammarError> {
        let Json::String(reference) = self.document.get(value) else {
            return Err(self.wrong(name, value, "a string"));
        };
        let mut target = match self.refs.resolve(self.at, reference) {
            Ok(target) => target,
            Err(RefProblem::Unsupported(reason)) => {
                self.refuse(name, format!("{}: {reason}", quoted(reference)));
                return Ok(None);
            }
            Err(RefProblem::Invalid(reason)) => {
                return Err(self.invalid(format!("{name} {}: {reason}", quoted(reference))));
            }
        };
        if let Some(anchor) = self.dynamic_anchor(name, reference, target.schema) {
            self.is_dynamic = true;
            if let Some(outermost) = self.scopes.outermost_with(self.id.scope, anchor) {
                target.schema = outermost;
                target.resource = self.refs.resource_of(outermost);
            }
        }
        let scope = self.scopes.enter(self.id.scope, target.resource);
        let id = SchemaId { value: target.schema, scope };
        self.inner.push(id);
        Ok(Some(Keyword::Ref(id)))
    }

    /// The anchor of a dynamic reference. The reference is dynamic only if the schema that it leads to statically
    /// declares that anchor.
    fn dynamic_anchor(&self, name: &str, reference: &'t str, target: JsonId) -> Option<&'t str> {
        let entries = self.document.entries(target)?;
        let declared = |keyword: &str| entries.get(keyword).map(|&value| self.document.get(value));
        match name {
            "$dynamicRef" => {
                let (_, fragment) = reference.split_once('#')?;
                let is_declared =
                    matches!(declared("$dynamicAnchor"), Some(Json::String(anchor)) if anchor == fragment);
                is_declared.then_some(fragment)
            }
            "$recursiveRef" => matches!(declared("$recursiveAnchor"), Some(Json::Bool(true))).then_some(""),
            _ => None,
        }
    }
}
