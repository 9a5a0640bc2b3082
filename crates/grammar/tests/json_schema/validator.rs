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
    let valid = keywords.iter().all(|(name, limit)| Keyword { root, all: keywords, name, limit }.holds(value));
    DEPTH.set(DEPTH.get() - 1);
    valid
}

/// A keyword of a schema, beside all others of it.
#[derive(Clone, Copy)]
struct Keyword<'s> {
    root: &'s Value,
    all: &'s Map<String, Value>,
    name: &'s str,
    limit: &'s Value,
}

impl Keyword<'_> {
    fn holds(self, value: &Value) -> bool {
        let of_its_type = match value {
            Value::Number(number) => self.holds_of_number(number.as_f64().expect("numbers are small")),
            Value::String(text) => self.holds_of_string(text),
            Value::Array(items) => self.holds_of_array(items),
            Value::Object(members) => self.holds_of_counts_and_names(members) && self.holds_of_members(members, value),
            Value::Null | Value::Bool(_) => true,
        };
        of_its_type && self.holds_of_any(value)
    }

    /// The keywords that speak of values of all types.
    fn holds_of_any(self, value: &Value) -> bool {
        let Keyword { root, all, limit, .. } = self;
        match self.name {
            "type" => match limit {
                Value::Array(names) => names.iter().any(|name| is_type(name, value)),
                name => is_type(name, value),
            },
            "enum" => list(limit).iter().any(|known| equal(known, value)),
            "const" => equal(limit, value),
            "anyOf" => list(limit).iter().any(|schema| self.valid(schema, value)),
            "allOf" => list(limit).iter().all(|schema| self.valid(schema, value)),
            "oneOf" => list(limit).iter().filter(|schema| self.valid(schema, value)).count() == 1,
            "not" => !self.valid(limit, value),
            "if" => {
                let branch = all.get(if self.valid(limit, value) { "then" } else { "else" });
                branch.is_none_or(|branch| self.valid(branch, value))
            }
            "$ref" => {
                let pointer =
                    limit.as_str().and_then(|reference| reference.strip_prefix('#')).expect("a local reference");
                self.valid(root.pointer(pointer).expect("it leads somewhere"), value)
            }
            _ => true,
        }
    }

    fn holds_of_number(self, value: f64) -> bool {
        match self.name {
            "minimum" => value >= number(self.limit),
            "maximum" => value <= number(self.limit),
            "exclusiveMinimum" => value > number(self.limit),
            "exclusiveMaximum" => value < number(self.limit),
            _ => true,
        }
    }

    fn holds_of_string(self, text: &str) -> bool {
        match self.name {
            "minLength" => text.chars().count() as f64 >= number(self.limit),
            "maxLength" => text.chars().count() as f64 <= number(self.limit),
            "pattern" => matches(self.limit.as_str().expect("a pattern is a text"), text),
            _ => true,
        }
    }

    fn holds_of_array(self, items: &[Value]) -> bool {
        let Keyword { all, limit, .. } = self;
        match self.name {
            "minItems" => items.len() as f64 >= number(limit),
            "maxItems" => items.len() as f64 <= number(limit),
            "prefixItems" => list(limit).iter().zip(items).all(|(schema, item)| self.valid(schema, item)),
            "items" => {
                let prefix = all.get("prefixItems").map_or(0, |prefix| list(prefix).len());
                items.iter().skip(prefix).all(|item| self.valid(limit, item))
            }
            "contains" => {
                let count = items.iter().filter(|item| self.valid(limit, item)).count() as f64;
                count >= all.get("minContains").map_or(1.0, number)
                    && all.get("maxContains").is_none_or(|max| count <= number(max))
            }
            "uniqueItems" => {
                let is_new = |(place, item)| !items[..place].iter().any(|other| equal(item, other));
                *limit == Value::Bool(false) || items.iter().enumerate().all(is_new)
            }
            _ => true,
        }
    }

    /// The keywords that ask how many members an object has, and of which names.
    fn holds_of_counts_and_names(self, members: &Map<String, Value>) -> bool {
        let is_member = |name: &Value| name.as_str().is_some_and(|name| members.contains_key(name));
        match self.name {
            "minProperties" => members.len() as f64 >= number(self.limit),
            "maxProperties" => members.len() as f64 <= number(self.limit),
            "required" => list(self.limit).iter().all(is_member),
            "dependentRequired" => {
                let present = entries(self.limit).filter(|(key, _)| members.contains_key(*key));
                present.flat_map(|(_, names)| list(names)).all(is_member)
            }
            "propertyNames" => members.keys().all(|key| self.valid(self.limit, &Value::String(key.clone()))),
            _ => true,
        }
    }

    /// The keywords that ask something of the members of an object, or of all of it where it has some member.
    fn holds_of_members(self, members: &Map<String, Value>, object: &Value) -> bool {
        let Keyword { root, all, limit, .. } = self;
        match self.name {
            "properties" => {
                members.iter().all(|(key, value)| limit.get(key).is_none_or(|schema| self.valid(schema, value)))
            }
            "patternProperties" => entries(limit).all(|(pattern, schema)| {
                members.iter().filter(|(key, _)| matches(pattern, key)).all(|(_, value)| self.valid(schema, value))
            }),
            "additionalProperties" => {
                let declared = |key: &str| {
                    all.get("properties").is_some_and(|map| map.get(key).is_some())
                        || all
                            .get("patternProperties")
                            .into_iter()
                            .flat_map(entries)
                            .any(|(known, _)| matches(known, key))
                };
                members.iter().filter(|(key, _)| !declared(key)).all(|(_, value)| self.valid(limit, value))
            }
            "unevaluatedProperties" => {
                let mut seen = BTreeSet::new();
                evaluated(root, &without(all, self.name), object, &mut seen);
                members.iter().filter(|(key, _)| !seen.contains(*key)).all(|(_, value)| self.valid(limit, value))
            }
            "dependentSchemas" => {
                let mut present = entries(limit).filter(|(key, _)| members.contains_key(*key));
                present.all(|(_, schema)| self.valid(schema, object))
            }
            _ => true,
        }
    }

    fn valid(self, schema: &Value, value: &Value) -> bool {
        is_valid(self.root, schema, value)
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("numbers are small")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
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
        match &**keyword {
            "properties" => seen.extend(members.keys().filter(|key| limit.get(key).is_some()).cloned()),
            "patternProperties" => {
                for (pattern, _) in entries(limit) {
                    seen.extend(members.keys().filter(|key| matches(pattern, key)).cloned());
                }
            }
            "additionalProperties" | "unevaluatedProperties" => seen.extend(members.keys().cloned()),
            "allOf" | "anyOf" | "oneOf" => list(limit).iter().for_each(|part| evaluated(root, part, value, seen)),
            "if" => {
                let branch = all.get(if is_valid(root, limit, value) { "then" } else { "else" });
                evaluated(root, limit, value, seen);
                branch.into_iter().for_each(|branch| evaluated(root, branch, value, seen));
            }
            "dependentSchemas" => {
                let present = entries(limit).filter(|(key, _)| members.contains_key(*key));
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
