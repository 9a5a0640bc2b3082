//! JSON values to typed schemas: checks the value of every keyword and sorts keywords into enforced, annotation,
//! refused.
//!
//! There is one table of keywords for all drafts (JSON Schema Core and Validation 2020-12; older drafts where they
//! differ and `$schema` names them); those that hold other schemas are read in [`super::applicators`]. Schemas are read
//! from a work list, outermost first, never by recursion.

use rustc_hash::FxHashMap;
use stencilm_regex::Decimal;
use stencilm_support::check_time;

use super::applicators::Applied;
use super::document::{Document, Json, JsonId, quoted};
use super::reader::Reader;
use super::refs::Refs;
use super::schema::{Fate, Keyword, NameUse, Schema, SchemaId, Schemas, Types};
use super::scopes::Scopes;
use super::vocabulary::{ANNOTATIONS, Draft, draft_of};
use crate::error::{ErrorKind, GrammarError};
use crate::json::format::Format;
use crate::json_schema::options::{DECLARES, JsonSchemaOptions, REFERS, SYMBOLS, symbols_uri};

/// The greatest number of schemas, each counted once for every dynamic scope.
const MAX_SCHEMAS: usize = 1_000_000;

/// Reads every schema that is reachable from the root.
///
/// # Errors
/// [`ErrorKind::Syntax`] for a value that its keyword doesn't allow, [`ErrorKind::Limit`] for an absurdly large number.
pub(crate) fn read<'t>(document: &'t Document<'t>, options: &JsonSchemaOptions) -> Result<Schemas<'t>, GrammarError> {
    Ok(read_values(document, &[document.root()], options)?.0)
}

/// Reads the schemas of these values of a document and all that are reachable from them; also returns the ids of the
/// former.
pub(crate) fn read_values<'t>(
    document: &'t Document<'t>,
    values: &[JsonId],
    options: &JsonSchemaOptions,
) -> Result<(Schemas<'t>, Vec<SchemaId>), GrammarError> {
    let main = draft_of(document, document.root()).unwrap_or(Draft::Unnamed);
    let drafts = document.roots.iter().map(|&(root, _)| draft_of(document, root).unwrap_or(main)).collect();
    let refs = Refs::new(document, drafts);
    let &JsonSchemaOptions { enforce_formats, nullable, integers_as_digits, .. } = options;
    let mut reading = Reading { enforce_formats, nullable, ..Reading::default() };
    reading.read(document, &refs, values)?;
    if reading.is_dynamic {
        let scopes = Scopes::new(refs.resources());
        if scopes.outermost() > 0 {
            reading = Reading { scopes, enforce_formats, nullable, ..Reading::default() };
            reading.read(document, &refs, values)?;
        }
    }
    let Reading { scopes, by_value, by_scope, list, fates, roots, .. } = reading;
    let root = roots.first().copied().unwrap_or(SchemaId { value: document.root(), scope: 0 });
    let schemas = Schemas { document, refs, scopes, root, integers_as_digits, by_value, by_scope, list, fates };
    Ok((schemas, roots))
}

/// What was read so far.
#[derive(Default)]
struct Reading<'t> {
    scopes: Scopes<'t>,
    roots: Vec<SchemaId>,
    by_value: Vec<u32>,
    by_scope: FxHashMap<SchemaId, u32>,
    list: Vec<Schema<'t>>,
    fates: Vec<Fate<'t>>,
    /// Whether a reference may mean different schemas in different scopes.
    is_dynamic: bool,
    enforce_formats: bool,
    nullable: bool,
}

impl<'t> Reading<'t> {
    fn read(&mut self, document: &'t Document<'t>, refs: &Refs<'t>, values: &[JsonId]) -> Result<(), GrammarError> {
        self.by_value = vec![Schemas::NONE; document.len()];
        self.list.reserve(document.len() / 4);
        self.fates.reserve(document.len() / 4);
        for &value in values {
            let scope = self.scopes.outermost();
            let scope = self.scopes.enter(scope, value);
            self.roots.push(SchemaId { value, scope });
        }
        let mut work = self.roots.clone();
        while let Some(id) = work.pop() {
            let position = self.list.len() as u32;
            let is_new = match id.scope {
                0 => {
                    let slot = &mut self.by_value[id.value.0 as usize];
                    let is_new = *slot == Schemas::NONE;
                    if is_new {
                        *slot = position;
                    }
                    is_new
                }
                _ => *self.by_scope.entry(id).or_insert(position) == position,
            };
            if !is_new {
                continue;
            }
            if self.list.len() == MAX_SCHEMAS {
                let message =
                    format!("dynamic references make more than {MAX_SCHEMAS} schemas of this one; use $ref instead");
                return Err(GrammarError::new(ErrorKind::Limit, document.pointer(id.value), message));
            }
            check_time().map_err(|limit| GrammarError::limit(document.pointer(id.value), limit))?;
            let before = self.fates.len() as u32;
            let mut reader = Reader {
                document,
                refs,
                scopes: &mut self.scopes,
                draft: refs.draft(id.value),
                id,
                at: id.value,
                schema: Schema::default(),
                fates: &mut self.fates,
                inner: &mut work,
                is_dynamic: false,
                enforce_formats: self.enforce_formats,
                nullable: self.nullable,
            };
            reader.schema()?;
            let Reader { mut schema, is_dynamic, .. } = reader;
            schema.fates = before..self.fates.len() as u32;
            self.is_dynamic |= is_dynamic;
            self.list.push(schema);
        }
        Ok(())
    }
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
            "type" => {
                let types = self.types(value)?;
                Keyword::Type(if self.nullable && self.is_nullable()? { types.or(Types::NULL) } else { types })
            }
            "nullable" if self.nullable => {
                if self.has_sibling("type") {
                    self.is_nullable()?;
                    self.enforce(name);
                } else {
                    self.annotate(name, "has no force without type");
                }
                return Ok(());
            }
            "const" if !self.draft.has(name) => {
                self.annotate(name, "not a keyword of this draft; it has enum");
                return Ok(());
            }
            "const" => Keyword::Values([value].into()),
            "enum" => Keyword::Values(self.values(value)?.into()),
            "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum" => {
                let Some(bound) = self.bound(name, value)? else {
                    self.enforce(name);
                    return Ok(());
                };
                bound
            }
            SYMBOLS => Keyword::Values(self.symbols(value)?),
            DECLARES | REFERS => self.name_use(name, value)?,
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
            "required" => match self.document.get(value) {
                // In draft 3 this was a boolean with another meaning.
                Json::Array(names) => {
                    self.check_names(name, names)?;
                    Keyword::Required(value)
                }
                _ => return Err(self.wrong(name, value, "a list of keys")),
            },
            "minProperties" => Keyword::MinProperties(self.least(name, value)?),
            "maxProperties" => Keyword::MaxProperties(self.greatest(name, value)?),
            "uniqueItems" => match self.document.get(value) {
                Json::Bool(true) => Keyword::UniqueItems,
                Json::Bool(false) => {
                    self.enforce(name);
                    return Ok(());
                }
                _ => return Err(self.wrong(name, value, "a boolean")),
            },
            // These are as frequent as all others together, so they are handled before the keywords that contain
            // schemas.
            "title" | "description" | "default" => {
                self.annotate(name, "");
                return Ok(());
            }
            _ => match self.applicator(name, value)? {
                Applied::Keyword(keyword) => keyword,
                Applied::Done => return Ok(()),
                Applied::Other => {
                    self.other(name);
                    return Ok(());
                }
            },
        };
        self.enforce(name);
        self.schema.keywords.push(keyword);
        Ok(())
    }

    /// The values of `enum`.
    fn values(&self, value: JsonId) -> Result<Vec<JsonId>, GrammarError> {
        match self.document.get(value) {
            Json::Array(values) => Ok(values.to_vec()),
            _ => Err(self.wrong("enum", value, "a list of values")),
        }
    }

    /// The use of a name: a string that declares one or refers to one.
    fn name_use(&self, name: &'t str, value: JsonId) -> Result<Keyword, GrammarError> {
        match self.document.get(value) {
            Json::String(set) if !set.is_empty() => {
                Ok(Keyword::Name(NameUse { declares: name == DECLARES, set: value }))
            }
            _ => Err(self.wrong(name, value, "the name of a set of names")),
        }
    }

    /// Keywords without an effect, and unknown ones.
    fn other(&mut self, name: &'t str) {
        let is_known = ANNOTATIONS.contains(&name) || (name == "id" && self.draft == Draft::D4);
        self.annotate(name, if is_known { "" } else { "unknown keyword" });
    }

    /// The names of a table, which is an array among the documents beside the schema.
    fn symbols(&self, value: JsonId) -> Result<Box<[JsonId]>, GrammarError> {
        let Json::String(table) = self.document.get(value) else {
            return Err(self.wrong(SYMBOLS, value, "the name of a table of symbols"));
        };
        let uri = symbols_uri(table);
        let named = self.document.roots.iter().find(|(_, known)| *known == uri);
        match named.map(|&(root, _)| self.document.get(root)) {
            Some(Json::Array(names)) => Ok(names.clone()),
            _ => Err(self.invalid(format!(
                "{SYMBOLS} names {}, and no table of symbols has this name; give it in `symbols`",
                quoted(table)
            ))),
        }
    }

    /// Whether null is one more type besides those named here, as in OpenAPI 3.0.
    fn is_nullable(&self) -> Result<bool, GrammarError> {
        let nullable = self.document.entries(self.at).and_then(|entries| entries.get("nullable"));
        match nullable.map(|&nullable| (nullable, self.document.get(nullable))) {
            None => Ok(false),
            Some((_, Json::Bool(nullable))) => Ok(*nullable),
            Some((nullable, _)) => Err(self.wrong("nullable", nullable, "a boolean")),
        }
    }

    fn has_sibling(&self, name: &str) -> bool {
        self.document.entries(self.at).is_some_and(|entries| entries.contains_key(name))
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

    /// A positive number for `multipleOf` or `divisibleBy`.
    fn step(&self, name: &str, value: JsonId) -> Result<Decimal, GrammarError> {
        let step = self.number(name, value)?;
        if step.negative || step.is_zero() {
            return Err(self.wrong(name, value, "a number above 0"));
        }
        Ok(step)
    }

    /// A bound on numbers; `None` for a flag of draft 4, which is read together with its bound.
    fn bound(&self, name: &str, value: JsonId) -> Result<Option<Keyword>, GrammarError> {
        let has_flags = matches!(self.draft, Draft::D4 | Draft::Unnamed);
        if has_flags && matches!(self.document.get(value), Json::Bool(_)) && name.starts_with("exclusive") {
            return Ok(None);
        }
        let bound = self.number(name, value)?;
        let flag = |flag: &str| {
            let flag = self.document.entries(self.at).and_then(|entries| entries.get(flag));
            has_flags && flag.is_some_and(|&flag| matches!(self.document.get(flag), Json::Bool(true)))
        };
        Ok(Some(match name {
            "minimum" => Keyword::Minimum { bound, exclusive: flag("exclusiveMinimum") },
            "maximum" => Keyword::Maximum { bound, exclusive: flag("exclusiveMaximum") },
            "exclusiveMinimum" => Keyword::Minimum { bound, exclusive: true },
            _ => Keyword::Maximum { bound, exclusive: true },
        }))
    }

    fn format(&mut self, value: JsonId) -> Result<Option<Format>, GrammarError> {
        let Json::String(name) = self.document.get(value) else {
            return Err(self.wrong("format", value, "a string"));
        };
        if !self.enforce_formats {
            self.annotate("format", "formats are annotations, as the caller asked");
            return Ok(None);
        }
        if let Some(format) = Format::ALL.into_iter().find(|format| format.name() == &**name) {
            return Ok(Some(format));
        }
        self.annotate("format", format!("{} is not a standard format", quoted(name)));
        Ok(None)
    }
}
