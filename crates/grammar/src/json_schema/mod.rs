//! JSON Schema, drafts 4 to 2020-12: a schema in, the grammar of its JSON texts out, and a report of every keyword.
//!
//! One idea: everything that combines schemas becomes alternatives of constraints on one value, and only then is lowered; so a
//! keyword is read, merged and enforced in one place each.
//!
//! Four rooms, one after the other: [`read`] (text to a typed document with places and resolved references), [`normal_form`]
//! (alternatives without `not`, `oneOf` or `if`), [`constraints`] (numbers, lengths, elements and members, merged) and [`lower`]
//! (nodes of the intermediate form, and the reasons where nothing matches).
//!
//! Entry points: [`from_json_schema`], [`JsonSchemaOptions`].
//!
//! # Example
//! `{"properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object"}` becomes one object node with the declared
//! member `"a"`, whose value is the lexeme `-?(0|[1-9][0-9]*)`.

pub(crate) mod constraints;
mod excluding;
pub(crate) mod lower;
pub(crate) mod normal_form;
pub(crate) mod read;

pub use crate::json::values::{common_exprs, common_string};
pub(crate) use lower::marked::{Marked, Parts, Words};
pub(crate) use lower::validate::spelled;
pub use read::canonical::canonical_json;
pub(crate) use read::parse::{MAX_BYTES, parse};

use std::borrow::Cow;

use stencilm_regex::{ExprId, ExprSet, memory};

use crate::ir::builder::MAX_EXPRS;
use crate::ir::error::GrammarError;
use crate::ir::grammar::{Grammar, NodeId};
use crate::ir::report::{KeptReport, Later};

/// The keyword that names a table of symbols: the strings that are valid are its names.
pub(crate) const SYMBOLS: &str = "x-stencilm-symbols";

/// The URI under which a table of symbols stands beside a schema, as a JSON array of strings.
pub fn symbols_uri(table: &str) -> String {
    format!("{SYMBOLS}:{table}")
}

/// Which JSON texts of a valid value belong to the grammar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Spelling {
    /// Every text of what is unconstrained; known keys, `const`, `enum`, `pattern` and `format` strings spell printable
    /// ASCII plainly, and constrained numbers are plain decimals with trailing zeros allowed.
    #[default]
    Natural,
    /// Every text that a JSON reader maps to a valid value.
    Any,
    /// Strings as they are, without quotes and escapes; of use only for schemas that allow nothing but strings.
    Bare,
}

/// What may stand between the tokens of a JSON text, as [regular expressions](crate::Grammar::from_regex).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GapPatterns {
    /// Matched at most once wherever JSON allows whitespace.
    pub blanks: String,
    /// Between two members or elements.
    pub item: String,
    /// Between the name of a member and its value.
    pub colon: String,
}

/// How a schema is read and how its instances are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonSchemaOptions {
    /// Whether blanks may stand between any two tokens; `indent` and `separators` then mean nothing.
    pub any_whitespace: bool,
    /// Blanks for each level of an indented text, one entry per line.
    pub indent: Option<u32>,
    /// What stands between entries and between key and value; by default as Python's `json.dumps` has it.
    pub separators: Option<(String, String)>,
    /// What stands between tokens, in place of what the fields above say.
    pub gaps: Option<GapPatterns>,
    /// Whether members and elements that the schema does not speak of are forbidden.
    pub strict_mode: bool,
    /// Most blanks in a row where `any_whitespace`; `None` without limit.
    pub max_whitespace: Option<u32>,
    /// Whether members may come in any order, instead of known ones in declared order, then the others.
    pub any_order: bool,
    /// Which texts of a valid value belong.
    pub spelling: Spelling,
    /// Whether strings have no escapes but those that JSON needs.
    pub minimal_escapes: bool,
    /// Whether integers are written without a point or exponent, as draft 4 has it.
    pub integers_as_digits: bool,
    /// Whether formats are enforced; where not they are annotations.
    pub enforce_formats: bool,
    /// Whether `nullable` adds null to the types beside it, as in OpenAPI 3.0; where not it is an annotation.
    pub nullable: bool,
    /// Whether what is not supported is left out and reported, where that only allows more.
    pub relax: bool,
    /// Texts that must not come within a string or a name, as they are written between the quotes.
    pub excludes: Vec<Box<str>>,
    /// Schemas that `$ref` may reach, each under its URI. Nothing else is ever looked for.
    pub documents: Vec<(String, String)>,
    /// Longest schema, in bytes.
    pub max_bytes: usize,
    /// Most expressions in the lexemes of its grammar.
    pub max_exprs: usize,
}

impl Default for JsonSchemaOptions {
    fn default() -> JsonSchemaOptions {
        JsonSchemaOptions {
            any_whitespace: true,
            indent: None,
            separators: None,
            gaps: None,
            strict_mode: false,
            max_whitespace: Some(64),
            any_order: false,
            spelling: Spelling::Natural,
            minimal_escapes: false,
            integers_as_digits: false,
            enforce_formats: true,
            nullable: false,
            relax: false,
            excludes: Vec::new(),
            documents: Vec::new(),
            max_bytes: read::parse::MAX_BYTES,
            max_exprs: MAX_EXPRS,
        }
    }
}

/// The grammar of all JSON texts, in the chosen form, of all instances of a schema.
///
/// # Errors
/// [`ErrorKind::Syntax`] when the schema is malformed, [`ErrorKind::Unsupported`] when it cannot be enforced exactly,
/// [`ErrorKind::Unsatisfiable`] when it has no instance, [`ErrorKind::Limit`] when it is too large.
pub fn from_json_schema(schema: &str, options: &JsonSchemaOptions) -> Result<Grammar, GrammarError> {
    // Few ask for the report, and to read the schema once more costs them little. Other documents would be kept for it.
    let later = options.documents.is_empty().then(|| {
        let again = Again { schema: schema.into(), options: options.clone() };
        KeptReport::later(again)
    });
    let grammar = read(schema, options, |schemas, options| lowering(schemas, options)?.grammar(later))?;
    excluding::excluding(grammar, &options.excludes)
}

/// Reads a schema, with the meta-schemas that it refers to, and goes on with it.
fn read<T>(
    schema: &str,
    options: &JsonSchemaOptions,
    then: impl for<'a> FnOnce(&'a read::schema::Schemas<'a>, &'a JsonSchemaOptions) -> Result<T, GrammarError>,
) -> Result<T, GrammarError> {
    let mut documents = Cow::Borrowed(&*options.documents);
    let mut max_bytes = options.max_bytes;
    loop {
        let missing = {
            let document = read::parse::parse(schema, &documents, max_bytes)?;
            let schemas = read::keywords::read(&document, options)?;
            let missing = schemas.refs.missing_metaschemas();
            if missing.is_empty() {
                return then(&schemas, options);
            }
            missing
        };
        // They are not the caller's, and are not counted.
        max_bytes = missing.iter().fold(max_bytes, |bytes, (_, text)| bytes.saturating_add(text.len()));
        documents.to_mut().extend(missing);
    }
}

fn lowering<'a>(
    schemas: &'a read::schema::Schemas<'a>,
    options: &'a JsonSchemaOptions,
) -> Result<lower::schemas::Lowering<'a>, GrammarError> {
    Ok(lower::schemas::Lowering::new(schemas, options, crate::json::layout::Surfaces::new(options)?))
}

/// The same with its report worked out, for grammars that become parts of others.
///
/// # Errors
/// As [`from_json_schema`].
pub(crate) fn reported(schema: &str, options: &JsonSchemaOptions) -> Result<Grammar, GrammarError> {
    let grammar = read(schema, options, |schemas, options| lowering(schemas, options)?.grammar(None))?;
    excluding::excluding(grammar, &options.excludes)
}

/// The grammar of the members of the objects that are valid under a schema, between markers.
///
/// # Errors
/// As [`from_json_schema`], and [`ErrorKind::Unsupported`] where what the schema asks cannot be written so.
pub(crate) fn marked_arguments(
    schema: &str,
    marked: &'static Marked,
    options: &JsonSchemaOptions,
) -> Result<Grammar, GrammarError> {
    read(schema, options, |schemas, options| lowering(schemas, options)?.with_marking(Some(marked)).grammar(None))
}

/// What it takes to read a schema again, for its report.
#[derive(Debug)]
struct Again {
    schema: Box<str>,
    options: JsonSchemaOptions,
}

impl Later for Again {
    fn report(&self) -> KeptReport {
        read(&self.schema, &self.options, |schemas, options| lowering(schemas, options)?.report_alone())
            .expect("what has been read can be read again")
    }

    fn memory_bytes(&self) -> usize {
        memory::of_shared::<Again>(1) + memory::allocated(self.schema.len())
    }
}

/// One grammar of several schemas within one document, one after the other, and the node of each. None of them may refer
/// to anything, for `#` would mean the whole document. With markers, these are around the members of each.
///
/// # Errors
/// As [`from_json_schema`]; where several schemas together reach a limit or one has no instance, the error does not say
/// which.
pub(crate) fn from_values(
    document: &read::document::Document<'_>,
    values: &[read::document::JsonId],
    options: &JsonSchemaOptions,
    marked: Option<&'static Marked>,
) -> Result<(Grammar, Vec<NodeId>), GrammarError> {
    let (schemas, roots) = read::keywords::read_values(document, values, options)?;
    lowering(&schemas, options)?.with_marking(marked).together(&roots)
}

/// The grammar of every JSON value, in the chosen form.
///
/// # Errors
/// [`ErrorKind::Syntax`] when the separators do not make JSON.
pub fn any_json(options: &JsonSchemaOptions) -> Result<Grammar, GrammarError> {
    from_json_schema("true", options)
}

/// Any of these strings as a JSON string, plainly spelled, with its quotes.
pub(crate) fn quoted_literals(exprs: &mut ExprSet, texts: &[&str]) -> ExprId {
    crate::json::strings::Strings::new(Spelling::Natural).literals(exprs, texts)
}

/// Any of these strings as a JSON string with its quotes, in every spelling, for a set of expressions of any grammar.
pub fn json_strings_of(exprs: &mut ExprSet, texts: &[&str]) -> ExprId {
    crate::json::strings::Strings::alone(Spelling::Any).literals(exprs, texts)
}

/// Any JSON string with its quotes.
pub(crate) fn quoted_any(exprs: &mut ExprSet) -> ExprId {
    crate::json::strings::Strings::new(Spelling::Natural).any_string(exprs, 0, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_is_worked_out_later_is_the_same() {
        let relax = JsonSchemaOptions { relax: true, ..JsonSchemaOptions::default() };
        for schema in [
            "true",
            r#"{"title": "t", "type": "object", "properties": {"a": {"type": "string", "maxLength": 3, "x": 1}}}"#,
            r##"{"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [{"type": "null"}, {"items": {"$ref": "#"}}]}}}"##,
            r#"{"type": "array", "uniqueItems": true, "items": {"not": {"uniqueItems": true}}, "contains": {"const": 1}}"#,
            r#"{"properties": {"a": {"$ref": "http://json-schema.org/draft-07/schema#"}}}"#,
            r#"{"properties": {"a": {"$ref": "http://a.example/"}, "b": {"format": "b"}}}"#,
        ] {
            for options in [&JsonSchemaOptions::default(), &relax] {
                let (later, now) = (from_json_schema(schema, options), reported(schema, options));
                let (later, now) = match (later, now) {
                    (Ok(later), Ok(now)) => (later, now),
                    (later, now) => {
                        assert_eq!(later.err(), now.err(), "{schema}");
                        continue;
                    }
                };
                assert_eq!(later.report(), now.report(), "{schema}");
                assert_eq!(later.clone().report(), now.report(), "{schema}");
                assert_eq!(later.serialize_json(), now.serialize_json(), "{schema}");
            }
        }
    }
}
