//! JSON Schema, drafts 4 to 2020-12: a schema in, the grammar of its JSON texts out, and a report of every keyword.
//!
//! One idea: everything that combines schemas becomes alternatives of constraints on one value, and only then is
//! lowered; so a keyword is read, merged and enforced in one place each.
//!
//! Four rooms, one after the other: [`read`] (text to a typed document with locations and resolved references),
//! [`normal_form`] (alternatives without `not`, `oneOf` or `if`), [`constraints`] (elements and members, merged) and
//! [`lower`] (nodes of the intermediate form, and the reasons if nothing matches).
//!
//! Entry points: [`from_json_schema`], [`options::JsonSchemaOptions`].
//!
//! # Example
//! `{"properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object"}` becomes one object node with the
//! declared member `"a"`, whose value is the lexeme `-?(0|[1-9][0-9]*)`.

pub(crate) mod constraints;
mod excluding;
pub(crate) mod lower;
pub(crate) mod normal_form;
pub(crate) mod options;
pub(crate) mod read;

use std::borrow::Cow;

use stencilm_regex::{ExprId, ExprSet};
use stencilm_support::memory;

use crate::error::GrammarError;
use crate::ir::grammar::{Grammar, NodeId};
use crate::ir::report::{KeptReport, Later};
use crate::json::layout::Surfaces;
use crate::json::spelling::Spelling;
use crate::json::strings::Strings;
use crate::json_schema::lower::lowering::Lowering;
use crate::json_schema::lower::marking::Arguments;
use crate::json_schema::options::JsonSchemaOptions;

/// The grammar of the JSON texts, in the chosen form, of all instances of a schema.
///
/// # Errors
/// [`ErrorKind::Syntax`](crate::ErrorKind::Syntax) when the schema is malformed,
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) when it cannot be enforced exactly,
/// [`ErrorKind::Unsatisfiable`](crate::ErrorKind::Unsatisfiable) when it has no instance,
/// [`ErrorKind::Limit`](crate::ErrorKind::Limit) when it is too large.
pub fn from_json_schema(schema: &str, options: &JsonSchemaOptions) -> Result<Grammar, GrammarError> {
    // Few callers read the report, and parsing the schema again for it costs them little. With other documents they
    // would have to be kept, so then the report is computed now.
    let later = options.documents.is_empty().then(|| {
        let again = Again { schema: schema.into(), options: options.clone() };
        KeptReport::later(again)
    });
    let grammar = read(schema, options, |schemas, options| lowering(schemas, options)?.grammar(later))?;
    excluding::excluding(grammar, &options.excludes)
}

/// Reads a schema together with the meta-schemas that it refers to, and passes it on.
fn read<T>(
    schema: &str,
    options: &JsonSchemaOptions,
    then: impl for<'a> FnOnce(&'a read::schema::Schemas<'a>, &'a JsonSchemaOptions) -> Result<T, GrammarError>,
) -> Result<T, GrammarError> {
    let mut documents = Cow::Borrowed(&*options.documents);
    let mut max_bytes = options.max_bytes;
    loop {
        let missing = {
            let document = read::parse::parse_in_time(schema, &documents, max_bytes)?;
            let schemas = read::keywords::read(&document, options)?;
            let missing = schemas.refs.missing_metaschemas();
            if missing.is_empty() {
                return then(&schemas, options);
            }
            missing
        };
        // They are not part of the caller's input, so they don't count.
        max_bytes = missing.iter().fold(max_bytes, |bytes, (_, text)| bytes.saturating_add(text.len()));
        documents.to_mut().extend(missing);
    }
}

fn lowering<'a>(
    schemas: &'a read::schema::Schemas<'a>,
    options: &'a JsonSchemaOptions,
) -> Result<Lowering<'a>, GrammarError> {
    Ok(Lowering::new(schemas, options, Surfaces::new(&options.layout())?))
}

/// As [`from_json_schema`], for grammars that become parts of others, with this report; if there is none, the grammar
/// has its own, computed now.
///
/// # Errors
/// As [`from_json_schema`].
pub(crate) fn part(
    schema: &str,
    options: &JsonSchemaOptions,
    report: Option<KeptReport>,
) -> Result<Grammar, GrammarError> {
    let grammar = read(schema, options, |schemas, options| lowering(schemas, options)?.grammar(report))?;
    excluding::excluding(grammar, &options.excludes)
}

/// The grammar of the members of the objects that are valid against a schema, as the arguments of a call.
///
/// # Errors
/// As [`from_json_schema`], and [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if what the schema requires
/// cannot be written in this way.
pub(crate) fn arguments(
    schema: &str,
    arguments: Arguments,
    options: &JsonSchemaOptions,
    report: Option<KeptReport>,
) -> Result<Grammar, GrammarError> {
    read(schema, options, |schemas, options| {
        lowering(schemas, options)?.with_arguments(Some(arguments))?.grammar(report)
    })
}

/// The data to read a schema again for its report.
#[derive(Debug)]
struct Again {
    schema: Box<str>,
    options: JsonSchemaOptions,
}

impl Later for Again {
    fn report(&self) -> Result<KeptReport, GrammarError> {
        read(&self.schema, &self.options, |schemas, options| lowering(schemas, options)?.report_alone())
    }

    fn memory_bytes(&self) -> usize {
        memory::of_shared::<Again>(1) + memory::allocated(self.schema.len())
    }
}

/// One grammar for several schemas within one document, and the node of each; they are lowered one after the other.
/// None of them may contain references, because `#` would mean the whole document. If `arguments` are given, each
/// schema is that of the arguments of a call. The grammar has this report, or its own if there is none.
///
/// # Errors
/// As [`from_json_schema`]; if several schemas together reach a limit, or one has no instance, the error doesn't say
/// which.
pub(crate) fn from_values(
    document: &read::document::Document<'_>,
    values: &[read::document::JsonId],
    options: &JsonSchemaOptions,
    arguments: Option<Arguments>,
    report: Option<KeptReport>,
) -> Result<(Grammar, Vec<NodeId>), GrammarError> {
    let (schemas, roots) = read::keywords::read_values(document, values, options)?;
    lowering(&schemas, options)?.with_arguments(arguments)?.together(&roots, report)
}

/// The grammar of every JSON value, in the chosen form.
///
/// # Errors
/// [`ErrorKind::Syntax`](crate::ErrorKind::Syntax) when the separators do not make JSON.
pub fn any_json(options: &JsonSchemaOptions) -> Result<Grammar, GrammarError> {
    from_json_schema("true", options)
}

/// Any of these strings as a JSON string, plainly spelled, with its quotes.
pub(crate) fn quoted_literals(exprs: &mut ExprSet, texts: &[&str]) -> ExprId {
    Strings::new(Spelling::Natural).literals(exprs, texts)
}

/// Any JSON string with its quotes.
pub(crate) fn quoted_any(exprs: &mut ExprSet) -> ExprId {
    Strings::new(Spelling::Natural).any_string(exprs, 0, None)
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
                let (later, now) = (from_json_schema(schema, options), part(schema, options, None));
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
