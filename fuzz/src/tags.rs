//! Random structural tags: every format, mostly complete, now and then damaged.

use serde_json::{Map, Value, json};
use stencilm_grammar::{Grammar, StructuralTagOptions};

use crate::choices::Choices;
use crate::lark;
use crate::notations::{self, damage};

/// Texts that begin and end tags, some of which may be single tokens of a vocabulary.
const MARKERS: [&str; 9] = ["<a>", "<f=", "<f=x>", "</a>", "<|tool|>", "(", ")", "ab", "\n\n"];

/// Tokens by name and by number.
fn token(choices: &mut Choices<'_>) -> Value {
    match choices.below(3) {
        0 => json!("<|tool|>"),
        1 => json!("a"),
        _ => json!(choices.below(9)),
    }
}

/// A random structural tag, as a grammar if it is valid, and as text.
///
/// # Panics
/// If an error has no message.
pub fn structural_tag(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    let depth = choices.below(4);
    let format = format(choices, depth);
    let tag = match choices.below(8) {
        0 => format,
        1 => older(choices),
        _ => json!({ "type": "structural_tag", "format": format }),
    };
    let mut text = tag.to_string();
    damage(choices, &mut text);
    let grammar = Grammar::from_structural_tag(&text, &StructuralTagOptions::default());
    if let Err(error) = &grammar {
        assert!(!error.message.is_empty(), "an error says something");
    }
    (grammar.ok(), format!("structural tag {text}"))
}

/// The form of `structures` and `triggers`.
fn older(choices: &mut Choices<'_>) -> Value {
    let structures: Vec<Value> = (0..1 + choices.below(3))
        .map(|index| {
            let (begin, end) = (format!("<f={index}>"), *choices.pick(&MARKERS));
            json!({ "begin": begin, "schema": { "enum": [1, "a"] }, "end": end })
        })
        .collect();
    json!({ "type": "structural_tag", "structures": structures, "triggers": ["<f="] })
}

fn texts(choices: &mut Choices<'_>, most: usize) -> Vec<&'static str> {
    (0..choices.below(most + 1)).map(|_| *choices.pick(&MARKERS)).collect()
}

fn tokens(choices: &mut Choices<'_>) -> Vec<Value> {
    (0..choices.below(3)).map(|_| token(choices)).collect()
}

fn formats(choices: &mut Choices<'_>, depth: usize) -> Vec<Value> {
    (0..1 + choices.below(3)).map(|_| format(choices, depth.saturating_sub(1))).collect()
}

fn tag(choices: &mut Choices<'_>, depth: usize, begin: Value) -> Value {
    let end = match choices.below(6) {
        0 => json!({ "type": "token", "token": token(choices) }),
        1 => json!([choices.pick(&MARKERS), choices.pick(&MARKERS)]),
        _ => json!(choices.pick(&MARKERS)),
    };
    json!({ "type": "tag", "begin": begin, "content": format(choices, depth.saturating_sub(1)), "end": end })
}

/// Tags that begin with one of the triggers.
fn tags(choices: &mut Choices<'_>, depth: usize) -> Vec<Value> {
    (0..1 + choices.below(2)).map(|index| tag(choices, depth, json!(format!("<f={index}>")))).collect()
}

fn with_rounds(choices: &mut Choices<'_>, mut format: Value) -> Value {
    for name in ["at_least_one", "stop_after_first"] {
        if choices.chance(3) {
            format[name] = json!(choices.chance(2));
        }
    }
    format
}

fn format(choices: &mut Choices<'_>, depth: usize) -> Value {
    if depth == 0 {
        return leaf(choices);
    }
    match choices.below(14) {
        0 => json!({ "type": "sequence", "elements": formats(choices, depth) }),
        1 => json!({ "type": "or", "elements": formats(choices, depth) }),
        kind @ 2..=4 => {
            let name = ["optional", "star", "plus"][kind - 2];
            json!({ "type": name, "content": format(choices, depth - 1) })
        }
        5 => {
            let (min, more) = (choices.below(4), choices.below(4));
            let max = if choices.chance(3) { -1 } else { (min + more) as i64 };
            json!({ "type": "repeat", "content": format(choices, depth - 1), "min": min, "max": max })
        }
        6 | 7 => {
            let begin = if choices.chance(5) {
                json!({ "type": "token", "token": token(choices) })
            } else {
                json!(choices.pick(&MARKERS))
            };
            tag(choices, depth, begin)
        }
        8 | 9 => {
            let mut format = json!({ "type": "triggered_tags", "triggers": ["<f="], "tags": tags(choices, depth) });
            if choices.chance(4) {
                format["excludes"] = json!(texts(choices, 2));
            }
            with_rounds(choices, format)
        }
        10 => {
            let separator = *choices.pick(&["", ",", "\n", "<f="]);
            let format = json!({ "type": "tags_with_separator", "tags": tags(choices, depth), "separator": separator });
            with_rounds(choices, format)
        }
        11 => {
            let rules: Vec<Value> =
                ["<f=", "(", "ab"].iter().filter(|_| choices.chance(2)).map(|text| json!(text)).collect();
            let rules: Vec<Value> = rules.into_iter().map(|text| json!([text, format(choices, depth - 1)])).collect();
            let mut format = json!({ "type": "dispatch", "rules": rules, "loop": choices.chance(2) });
            if choices.chance(4) {
                format["excludes"] = json!(texts(choices, 2));
            }
            format
        }
        12 => {
            let trigger = token(choices);
            let tag = tag(choices, depth, json!({ "type": "token", "token": trigger }));
            let format = json!({
                "type": "token_triggered_tags",
                "trigger_tokens": [trigger],
                "tags": [tag],
                "exclude_tokens": tokens(choices),
            });
            with_rounds(choices, format)
        }
        _ => {
            let rule = json!([token(choices), format(choices, depth - 1)]);
            let loops = choices.chance(2);
            json!({ "type": "token_dispatch", "rules": [rule], "loop": loops, "exclude_tokens": tokens(choices) })
        }
    }
}

fn leaf(choices: &mut Choices<'_>) -> Value {
    match choices.below(12) {
        0 | 1 => json!({ "type": "const_string", "value": choices.pick(&MARKERS) }),
        2 => json!({ "type": "token", "token": token(choices) }),
        3 => json!({ "type": "exclude_token", "exclude_tokens": tokens(choices) }),
        4 => {
            let mut format = json!({ "type": "any_tokens", "exclude_tokens": tokens(choices) });
            if choices.chance(2) {
                format["max_tokens"] = json!(choices.below(5));
            }
            format
        }
        5 => json!({ "type": "regex", "pattern": notations::regex_text(choices, 1) }),
        6 if choices.chance(2) => json!({ "type": "grammar", "grammar": lark::lark(choices).1, "syntax": "lark" }),
        6 => json!({ "type": "grammar", "grammar": "root ::= \"a\" root | [bc]" }),
        7 | 8 => {
            let styles = ["json", "qwen_xml", "minimax_xml", "minimax_m3_xml", "deepseek_xml", "glm_xml", "cohere_xml"];
            let style = if choices.chance(2) { *choices.pick(&styles) } else { "json" };
            let schema = notations::schema_value(choices, usize::from(style == "json"));
            let schema = if style == "json" { schema } else { arguments(schema, choices) };
            json!({ "type": "json_schema", "json_schema": schema, "style": style })
        }
        _ => {
            let mut format = Map::from_iter([("type".to_owned(), json!("any_text"))]);
            if choices.chance(3) {
                format.insert("excludes".into(), json!(texts(choices, 2)));
            }
            for name in ["max_chars", "max_tokens"] {
                if choices.chance(3) {
                    format.insert(name.into(), json!(choices.below(5)));
                }
            }
            Value::Object(format)
        }
    }
}

/// A schema that the styles of models can write: an object whose properties are plain.
fn arguments(value: Value, choices: &mut Choices<'_>) -> Value {
    let required: Vec<&str> = if choices.chance(2) { vec!["a"] } else { Vec::new() };
    json!({
        "type": "object",
        "properties": { "a": value, "b": { "type": "integer" } },
        "required": required,
        "additionalProperties": false,
    })
}
