//! Random texts of the notations: mostly well-formed, now and then damaged, so that both outcomes occur.

use serde_json::{Map, Value, json};
use stencilm_grammar::{ErrorKind, Grammar, JsonSchemaOptions, RegexError, Spelling, from_json_schema, from_regex};

use crate::choices::Choices;

/// A random regular expression, as a grammar if it is valid, and as text.
///
/// # Panics
/// If it is refused as too hard: all are small.
pub fn regex(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    let depth = 1 + choices.below(3);
    let mut pattern = regex_text(choices, depth);
    damage(choices, &mut pattern);
    let grammar = match from_regex(&pattern) {
        Ok(grammar) => Some(grammar),
        Err(RegexError::Pattern(error)) => {
            assert!(!error.to_string().is_empty(), "an error says something");
            None
        }
        Err(RegexError::Grammar(error)) => {
            assert_ne!(error.kind, ErrorKind::Syntax, "the pattern {pattern:?} was parsed");
            None
        }
    };
    (grammar, format!("regex {pattern:?}"))
}

pub(crate) fn regex_text(choices: &mut Choices<'_>, depth: usize) -> String {
    const ATOMS: [&str; 22] = [
        "a",
        "b",
        "ab",
        ".",
        "[a-c]",
        "[^a]",
        r"\d",
        r"\w",
        r"\s",
        "é",
        "[é-ü]",
        r"\S",
        " ",
        "日",
        "[a-z&&[^b]]",
        r"\x41",
        "(?i:k)",
        r"\b",
        "^",
        "$",
        r"\p{Lu}",
        r"[\W_]",
    ];
    const COUNTS: [&str; 12] =
        ["*", "+", "?", "{2}", "{0,3}", "{1,40}", "{2,}", "{0,300}", "*?", "{0}", "{1000}", "{3,5}"];
    if depth == 0 {
        return (*choices.pick(&ATOMS)).to_owned();
    }
    let first = regex_text(choices, depth - 1);
    match choices.below(5) {
        0 => format!("(?:{first}|{})", regex_text(choices, depth - 1)),
        1 => format!("(?:{first}){}", choices.pick(&COUNTS)),
        2 => format!("({first}){}", choices.pick(&COUNTS)),
        _ => first + &regex_text(choices, depth - 1),
    }
}

/// A random JSON Schema with random options, as a grammar if it is valid, and as text.
///
/// # Panics
/// If the error for a well-formed schema is that it is malformed JSON.
pub fn json_schema(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    let options = JsonSchemaOptions {
        any_whitespace: choices.chance(2),
        indent: choices.chance(4).then(|| choices.below(3) as u32),
        strict_mode: choices.chance(4),
        max_whitespace: [Some(2), Some(0), None][choices.below(3)],
        any_order: choices.chance(2),
        spelling: [Spelling::Natural, Spelling::Any][choices.below(2)],
        relax: choices.chance(4),
        ..JsonSchemaOptions::default()
    };
    let depth = 1 + choices.below(3);
    let mut schema = schema_value(choices, depth);
    if let (Value::Object(object), true) = (&mut schema, choices.chance(3)) {
        object.insert("$defs".into(), json!({ "d": schema_value(choices, depth - 1) }));
    }
    let mut text = schema.to_string();
    damage(choices, &mut text);
    let grammar = from_json_schema(&text, &options);
    if let Err(error) = &grammar {
        assert!(!error.message.is_empty(), "an error says something");
    }
    (grammar.ok(), format!("schema {text} with {options:?}"))
}

pub(crate) fn schema_value(choices: &mut Choices<'_>, depth: usize) -> Value {
    let mut schema = Map::new();
    let kind = choices.below(if depth == 0 { 8 } else { 13 });
    match kind {
        0 => return json!(true),
        1 => {
            schema.insert("type".into(), json!("integer"));
            for word in ["minimum", "maximum", "exclusiveMinimum", "multipleOf"] {
                if choices.chance(3) {
                    let value =
                        if choices.chance(2) { json!(-(choices.below(30) as i64)) } else { json!(choices.below(1200)) };
                    schema.insert(word.into(), value);
                }
            }
        }
        2 => {
            schema.insert("type".into(), json!("number"));
            for word in ["minimum", "exclusiveMaximum"] {
                if choices.chance(3) {
                    schema.insert(word.into(), json!(choices.below(100) as f64 / 8.0));
                }
            }
        }
        3 | 4 => {
            schema.insert("type".into(), json!("string"));
            for word in ["minLength", "maxLength"] {
                if choices.chance(3) {
                    schema.insert(word.into(), json!(choices.pick(&[0, 1, 2, 5, 300])));
                }
            }
            if choices.chance(3) {
                let depth = choices.below(3);
                schema.insert("pattern".into(), json!(regex_text(choices, depth)));
            }
            if choices.chance(4) {
                let formats =
                    ["date", "time", "date-time", "ipv4", "uuid", "email", "uri", "hostname", "duration", "odd"];
                schema.insert("format".into(), json!(choices.pick(&formats)));
            }
        }
        5 => {
            let values =
                [json!(null), json!("a"), json!("ab\n"), json!(1), json!([1, "x"]), json!({"a": {"b": 2}}), json!("é")];
            let chosen: Vec<Value> = (0..1 + choices.below(4)).map(|_| choices.pick(&values).clone()).collect();
            schema.insert("enum".into(), Value::Array(chosen));
        }
        6 => {
            schema.insert("type".into(), json!(["null", "boolean"]));
        }
        7 => {
            schema.insert("$ref".into(), json!(choices.pick(&["#", "#/$defs/d", "#/nowhere"])));
        }
        8 => {
            schema.insert("type".into(), json!("array"));
            add_elements(choices, depth, &mut schema);
        }
        9 | 10 => {
            schema.insert("type".into(), json!("object"));
            add_members(choices, depth, &mut schema);
        }
        _ => {
            let word = *choices.pick(&["anyOf", "oneOf", "allOf", "not"]);
            let parts: Vec<Value> = (0..1 + choices.below(3)).map(|_| schema_value(choices, depth - 1)).collect();
            let value = if word == "not" { parts[0].clone() } else { Value::Array(parts) };
            schema.insert(word.into(), value);
        }
    }
    Value::Object(schema)
}

/// Constraints of a schema on members.
fn add_members(choices: &mut Choices<'_>, depth: usize, schema: &mut Map<String, Value>) {
    let mut properties = Map::new();
    for name in ["a", "ab", "b", "é\"", "c d"] {
        if choices.chance(2) {
            properties.insert(name.into(), schema_value(choices, depth - 1));
        }
    }
    let required: Vec<String> = properties.keys().filter(|_| choices.chance(2)).cloned().collect();
    schema.insert("properties".into(), Value::Object(properties));
    schema.insert("required".into(), json!(required));
    if choices.chance(2) {
        let other = if choices.chance(2) { json!(false) } else { schema_value(choices, depth - 1) };
        schema.insert("additionalProperties".into(), other);
    }
    if choices.chance(6) {
        let pattern = *choices.pick(&["^x", "b$", "^[a-c]{2}$", ""]);
        schema.insert("patternProperties".into(), json!({ pattern: schema_value(choices, depth - 1) }));
    }
    for word in ["minProperties", "maxProperties"] {
        if choices.chance(6) {
            let count = small(choices);
            schema.insert(word.into(), count);
        }
    }
}

fn small(choices: &mut Choices<'_>) -> Value {
    json!(choices.below(6))
}

/// Constraints of a schema on the elements of an array.
fn add_elements(choices: &mut Choices<'_>, depth: usize, schema: &mut Map<String, Value>) {
    if choices.chance(2) {
        let items: Vec<Value> = (0..choices.below(3)).map(|_| schema_value(choices, depth - 1)).collect();
        schema.insert("prefixItems".into(), Value::Array(items));
    }
    if choices.chance(2) {
        schema.insert("items".into(), schema_value(choices, depth - 1));
    }
    for word in ["minItems", "maxItems"] {
        if choices.chance(3) {
            let count = small(choices);
            schema.insert(word.into(), count);
        }
    }
    let counted = choices.chance(6);
    if counted {
        schema.insert("contains".into(), schema_value(choices, depth - 1));
        for word in ["minContains", "maxContains"] {
            if choices.chance(2) {
                schema.insert(word.into(), json!(choices.below(4)));
            }
        }
    }
    let comparing = if counted { 3 } else { 8 };
    if choices.chance(comparing) {
        schema.insert("uniqueItems".into(), json!(true));
    } else if choices.chance(comparing) {
        schema.insert("not".into(), json!({ "uniqueItems": true }));
    }
}

/// Now and then deletes, doubles or replaces a few characters.
pub(crate) fn damage(choices: &mut Choices<'_>, text: &mut String) {
    if !choices.chance(10) || text.is_empty() {
        return;
    }
    let mut characters: Vec<char> = text.chars().collect();
    let at = choices.below(characters.len());
    match choices.below(4) {
        0 => characters.truncate(at),
        1 => characters[at] = *choices.pick(&['(', ')', '{', '"', '\\', '[', '*', '\0', 'é', '\u{10FFFF}', ',', '9']),
        2 => characters.insert(at, *choices.pick(&['?', '}', ']', '"', '\\', '-', '+', ':'])),
        _ => drop(characters.remove(at)),
    }
    *text = characters.into_iter().collect();
}
