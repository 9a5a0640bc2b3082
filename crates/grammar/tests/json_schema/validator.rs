//! Whether a value is an instance of a schema, straight from the specification: one match arm for each keyword.
//!
//! For the keywords that the random schemas use. Numbers there are small multiples of a half, so floating point is exact.

use std::cell::Cell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What a pattern means, said without patterns.
type Meaning = fn(&str) -> bool;

/// Patterns that random schemas use, each with what it means.
pub const PATTERNS: [(&str, Meaning); 4] = [
    ("^a", |text| text.starts_with('a')),
    ("b$", |text| text.ends_with('b')),
    ("^[ab]*$", |text| text.chars().all(|c| c == 'a' || c == 'b')),
    ("é.", |text| {
        text.char_indices().any(|(at, c)| c == 'é' && text[at + 2..].chars().next().is_some_and(|c| c != '\n'))
    }),
];

thread_local! {
    /// How many schemas are being looked at.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Whether the value is an instance. None is one of a schema that asks for itself before anything else.
pub fn is_valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let Value::Object(keywords) = schema else { return *schema == Value::Bool(true) };
    if DEPTH.get() > 200 {
        return false;
    }
    DEPTH.set(DEPTH.get() + 1);
    let valid = keywords.iter().all(|(keyword, limit)| holds(root, keywords, keyword, limit, value));
    DEPTH.set(DEPTH.get() - 1);
    valid
}

fn holds(root: &Value, all: &Map<String, Value>, keyword: &str, limit: &Value, value: &Value) -> bool {
    let valid = |schema: &Value, value: &Value| is_valid(root, schema, value);
    let list = |limit: &Value| limit.as_array().cloned().unwrap_or_default();
    let number = |value: &Value| value.as_f64().expect("numbers are small");
    match (keyword, value) {
        ("type", _) => match limit {
            Value::Array(names) => names.iter().any(|name| is_type(name, value)),
            name => is_type(name, value),
        },
        ("enum", _) => list(limit).iter().any(|known| equal(known, value)),
        ("const", _) => equal(limit, value),
        ("minimum", Value::Number(_)) => number(value) >= number(limit),
        ("maximum", Value::Number(_)) => number(value) <= number(limit),
        ("exclusiveMinimum", Value::Number(_)) => number(value) > number(limit),
        ("exclusiveMaximum", Value::Number(_)) => number(value) < number(limit),
        ("minLength", Value::String(text)) => text.chars().count() as f64 >= number(limit),
        ("maxLength", Value::String(text)) => text.chars().count() as f64 <= number(limit),
        ("pattern", Value::String(text)) => {
            PATTERNS.iter().find(|(pattern, _)| limit == pattern).expect("a pattern of the table").1(text)
        }
        ("minItems", Value::Array(items)) => items.len() as f64 >= number(limit),
        ("maxItems", Value::Array(items)) => items.len() as f64 <= number(limit),
        ("prefixItems", Value::Array(items)) => list(limit).iter().zip(items).all(|(schema, item)| valid(schema, item)),
        ("items", Value::Array(items)) => {
            let prefix = all.get("prefixItems").map_or(0, |prefix| list(prefix).len());
            items.iter().skip(prefix).all(|item| valid(limit, item))
        }
        ("properties", Value::Object(members)) => {
            members.iter().all(|(key, value)| limit.get(key).is_none_or(|schema| valid(schema, value)))
        }
        ("required", Value::Object(members)) => {
            list(limit).iter().all(|key| key.as_str().is_some_and(|key| members.contains_key(key)))
        }
        ("additionalProperties", Value::Object(members)) => {
            let patterns = || all.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
            let declared = |key: &str| {
                all.get("properties").is_some_and(|map| map.get(key).is_some())
                    || patterns().any(|(pattern, _)| matches(pattern, key))
            };
            members.iter().filter(|(key, _)| !declared(key)).all(|(_, value)| valid(limit, value))
        }
        ("anyOf", _) => list(limit).iter().any(|schema| valid(schema, value)),
        ("allOf", _) => list(limit).iter().all(|schema| valid(schema, value)),
        ("oneOf", _) => list(limit).iter().filter(|schema| valid(schema, value)).count() == 1,
        ("not", _) => !valid(limit, value),
        ("if", _) => {
            let branch = all.get(if valid(limit, value) { "then" } else { "else" });
            branch.is_none_or(|branch| valid(branch, value))
        }
        ("dependentRequired", Value::Object(members)) => {
            let present = limit.as_object().into_iter().flatten().filter(|(key, _)| members.contains_key(*key));
            present
                .flat_map(|(_, names)| list(names))
                .all(|name| name.as_str().is_some_and(|name| members.contains_key(name)))
        }
        ("dependentSchemas", Value::Object(members)) => {
            let mut present = limit.as_object().into_iter().flatten().filter(|(key, _)| members.contains_key(*key));
            present.all(|(_, schema)| valid(schema, value))
        }
        ("patternProperties", Value::Object(members)) => {
            let rules = limit.as_object().into_iter().flatten();
            rules.into_iter().all(|(pattern, schema)| {
                members.iter().filter(|(key, _)| matches(pattern, key)).all(|(_, value)| valid(schema, value))
            })
        }
        ("propertyNames", Value::Object(members)) => {
            members.keys().all(|key| valid(limit, &Value::String(key.clone())))
        }
        ("minProperties", Value::Object(members)) => members.len() as f64 >= number(limit),
        ("maxProperties", Value::Object(members)) => members.len() as f64 <= number(limit),
        ("contains", Value::Array(items)) => {
            let count = items.iter().filter(|item| valid(limit, item)).count() as f64;
            count >= all.get("minContains").map_or(1.0, number)
                && all.get("maxContains").is_none_or(|max| count <= number(max))
        }
        ("uniqueItems", Value::Array(items)) => {
            *limit == Value::Bool(false)
                || items.iter().enumerate().all(|(place, item)| !items[..place].iter().any(|other| equal(item, other)))
        }
        ("unevaluatedProperties", Value::Object(members)) => {
            let mut seen = BTreeSet::new();
            evaluated(root, &without(all, keyword), value, &mut seen);
            members.iter().filter(|(key, _)| !seen.contains(*key)).all(|(_, value)| valid(limit, value))
        }
        ("$ref", _) => {
            let pointer = limit.as_str().and_then(|reference| reference.strip_prefix('#')).expect("a local reference");
            valid(root.pointer(pointer).expect("it leads somewhere"), value)
        }
        _ => true,
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    PATTERNS.iter().find(|(known, _)| *known == pattern).expect("a pattern of the table").1(text)
}

fn without(all: &Map<String, Value>, keyword: &str) -> Value {
    all.iter().filter(|(known, _)| *known != keyword).map(|(keyword, limit)| (keyword.clone(), limit.clone())).collect()
}

/// The keys of an object that a schema speaks of, itself or in what it applies to the same value.
fn evaluated(root: &Value, schema: &Value, value: &Value, seen: &mut BTreeSet<String>) {
    let (Value::Object(all), Value::Object(members)) = (schema, value) else { return };
    if !is_valid(root, schema, value) {
        return;
    }
    for (keyword, limit) in all {
        let parts = || limit.as_array().into_iter().flatten();
        match &**keyword {
            "properties" => seen.extend(members.keys().filter(|key| limit.get(key).is_some()).cloned()),
            "patternProperties" => {
                let patterns = limit.as_object().into_iter().flatten();
                for (pattern, _) in patterns {
                    seen.extend(members.keys().filter(|key| matches(pattern, key)).cloned());
                }
            }
            "additionalProperties" | "unevaluatedProperties" => seen.extend(members.keys().cloned()),
            "allOf" | "anyOf" | "oneOf" => parts().for_each(|part| evaluated(root, part, value, seen)),
            "if" => {
                let branch = all.get(if is_valid(root, limit, value) { "then" } else { "else" });
                evaluated(root, limit, value, seen);
                branch.into_iter().for_each(|branch| evaluated(root, branch, value, seen));
            }
            "dependentSchemas" => {
                let present = limit.as_object().into_iter().flatten().filter(|(key, _)| members.contains_key(*key));
                present.for_each(|(_, part)| evaluated(root, part, value, seen));
            }
            "$ref" => {
                let pointer =
                    limit.as_str().and_then(|reference| reference.strip_prefix('#')).expect("a local reference");
                evaluated(root, root.pointer(pointer).expect("it leads somewhere"), value, seen);
            }
            _ => {}
        }
    }
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("a type is a name") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}

/// Whether two values are equal, numbers by value.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}
