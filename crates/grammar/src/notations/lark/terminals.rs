//! Texts, patterns, ranges and `%regex` as expressions.

use serde_json::Value as Json;
use stencilm_regex::ExprId;
use stencilm_regex::syntax::{Alphabet, Utf8};
use stencilm_support::LimitExceeded;

use super::attributes::{Ends, shown};
use super::patterns::{escaped, pattern, with_flags};
use super::tree;
use super::tree::{Part, Unit};
use crate::ir::builder::GrammarBuilder;
use crate::ir::exprs;
use crate::ir::grammar::Node;
use crate::ir::syntax_error::SyntaxError;
use crate::json_schema::from_json_schema;
use crate::json_schema::options::JsonSchemaOptions;
use crate::notations::substring;

/// The value of an attribute.
pub(super) enum Value {
    Expr(ExprId),
    /// A terminal, by the index of its definition.
    Name(usize),
}

/// The end of a rule, as an expression or a terminal.
pub(super) fn of_value(builder: &mut GrammarBuilder, unit: &Unit, ends: &Ends) -> Result<Value, SyntaxError> {
    let part = match &ends.value {
        tree::Value::Text(text, folds) => Part::Text(text.clone(), *folds),
        tree::Value::Pattern(pattern, flags) => Part::Pattern(pattern.clone(), flags.clone()),
        tree::Value::Name(name) => match unit.definitions.get_full(name) {
            Some((index, _, known)) if known.is_terminal && known.parameters.is_empty() => {
                return Ok(Value::Name(index));
            }
            _ => {
                let message = format!("{} is no terminal of this grammar", shown(&ends.value));
                return Err(SyntaxError::at(ends.place, message));
            }
        },
        tree::Value::Number(_) => unreachable!("numbers end nothing; the attributes refuse them"),
    };
    Ok(Value::Expr(expr(builder, ends.place, &part)?))
}

/// The expression of a part that contains no other parts.
pub(super) fn expr(builder: &mut GrammarBuilder, place: usize, part: &Part) -> Result<ExprId, SyntaxError> {
    match part {
        Part::Text(text, false) => Ok(builder.exprs.literal(text.as_bytes())),
        Part::Text(text, true) => {
            let folded = format!("(?i:{})", escaped(text));
            pattern(&mut builder.exprs, place, &folded, 0)
        }
        Part::Pattern(text, flags) => {
            let (flagged, before) = with_flags(place, text, flags)?;
            pattern(&mut builder.exprs, place, &flagged, before).map_err(|error| {
                // Only the pattern alone gives the right position of a missing bracket.
                let alone = if before > 0 { pattern(&mut builder.exprs, place, text, 0).err() } else { None };
                alone.unwrap_or(error)
            })
        }
        Part::Range(first, last) => Ok(Utf8.class(&mut builder.exprs, &[(*first, *last)])),
        Part::Regex(text) => structured(builder, place, text),
        _ => unreachable!("only parts that stand for themselves are asked for"),
    }
}

/// `%regex {...}`: the runs of a list of chunks, or numbers of a JSON Schema.
fn structured(builder: &mut GrammarBuilder, place: usize, text: &str) -> Result<ExprId, SyntaxError> {
    let wrong = |message: String| Err(SyntaxError::at(place, message));
    let read: Json = match serde_json::from_str(text) {
        Ok(read) => read,
        Err(error) => return wrong(format!("what stands behind `%regex` is no JSON: {error}")),
    };
    let Some(entries) = read.as_object() else { return wrong("`%regex` takes a JSON object".into()) };
    let list = |value: &Json| -> Option<Vec<String>> {
        value.as_array()?.iter().map(|chunk| chunk.as_str().map(str::to_string)).collect()
    };
    let one = || entries.iter().next().filter(|_| entries.len() == 1);
    let kind = entries.get("type").and_then(Json::as_str);
    let exprs = &mut builder.exprs;
    let too_long = |limit: LimitExceeded| SyntaxError::growth(place, limit);
    match (one(), kind) {
        (Some((key, value)), None) => match (key.as_str(), value.as_str(), list(value)) {
            ("substring_chunks", _, Some(chunks)) => {
                let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
                return substring::substring(exprs, &chunks).map_err(too_long);
            }
            ("substring_words", Some(text), _) => {
                return substring::substring(exprs, &substring::words(text)).map_err(too_long);
            }
            ("substring_chars", Some(text), _) => {
                return substring::substring(exprs, &substring::characters(text)).map_err(too_long);
            }
            _ => {}
        },
        (_, Some("substring")) if entries.len() == 2 => {
            if let Some(chunks) = entries.get("chunks").and_then(list) {
                let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
                return substring::substring(exprs, &chunks).map_err(too_long);
            }
        }
        (_, Some("number" | "integer")) => return number(builder, place, text),
        _ => {}
    }
    wrong(
        "`%regex` is {\"substring_chunks\": [...]}, {\"substring_words\": \"...\"}, {\"substring_chars\": \"...\"}, \
         {\"type\": \"substring\", \"chunks\": [...]}, or a JSON Schema of a number"
            .into(),
    )
}

/// The numbers of a JSON Schema, as one lexeme.
fn number(builder: &mut GrammarBuilder, place: usize, schema: &str) -> Result<ExprId, SyntaxError> {
    let grammar = from_json_schema(schema, &JsonSchemaOptions::default()).map_err(|error| SyntaxError {
        kind: error.kind,
        offset: place,
        message: error.described(),
    })?;
    let Node::Lexeme(expr) = *grammar.node(grammar.root()) else {
        unreachable!("a number has no parts, so that all alternatives of a schema of numbers are one lexeme")
    };
    Ok(exprs::copy(grammar.exprs(), [expr], &mut builder.exprs).of(expr))
}
