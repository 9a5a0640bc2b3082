//! Random schemas: every value that fits or nearly fits is decided as an independent validator decides, however it is
//! laid out and escaped.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use stencilm_grammar::{ErrorKind, JsonSchemaOptions, from_json_schema};

use crate::validator::{PATTERNS, is_valid};
use crate::{options, oracle};

/// A small generator of choices (xorshift): schemas and values are drawn from one seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.roll(items.len() as u64) as usize].clone()
    }
}

const KEYS: [&str; 5] = ["a", "b", "ab", "é\n", "c\""];
const TEXTS: [&str; 9] = ["", "a", "b", "ab", "aab", "é", "éb", "x\n\"\\/", "a😀b"];
const NUMBERS: [&str; 12] = ["0", "-0", "1", "2", "3.0", "-1", "0.5", "1.5", "-2.5", "10", "9", "100"];
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

fn number(dice: &mut Dice) -> Value {
    serde_json::from_str(dice.pick(&NUMBERS)).unwrap()
}

fn schema(dice: &mut Dice, depth: u32) -> Value {
    if dice.one_in(12) {
        return json!(!dice.one_in(4));
    }
    let mut schema = Map::new();
    let kind = dice.pick(&TYPES);
    if !dice.one_in(4) {
        schema.insert("type".into(), if dice.one_in(5) { json!([kind, dice.pick(&TYPES)]) } else { json!(kind) });
    }
    match kind {
        "integer" | "number" => ask_of_numbers(dice, &mut schema),
        "string" => ask_of_strings(dice, &mut schema),
        "array" if depth > 0 => ask_of_arrays(dice, depth, &mut schema),
        "object" if depth > 0 => ask_of_objects(dice, depth, &mut schema),
        _ => {}
    }
    if depth > 0 {
        combine(dice, depth, &mut schema);
    }
    if dice.one_in(10) {
        let values: Vec<Value> = (0..=dice.roll(4)).map(|_| value(dice, None, 2)).collect();
        schema.insert("enum".into(), values.into());
    }
    if depth > 0 && depth < 3 && dice.one_in(12) {
        schema.insert("$ref".into(), json!("#"));
    }
    schema.into()
}

fn ask_of_numbers(dice: &mut Dice, schema: &mut Map<String, Value>) {
    for bound in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        if dice.one_in(4) {
            schema.insert(bound.into(), number(dice));
        }
    }
}

fn ask_of_strings(dice: &mut Dice, schema: &mut Map<String, Value>) {
    if dice.one_in(3) {
        schema.insert("minLength".into(), json!(dice.roll(3)));
    }
    if dice.one_in(3) {
        schema.insert("maxLength".into(), json!(dice.roll(4)));
    }
    if dice.one_in(3) {
        schema.insert("pattern".into(), json!(dice.pick(&PATTERNS).0));
    }
}

fn ask_of_arrays(dice: &mut Dice, depth: u32, schema: &mut Map<String, Value>) {
    if dice.one_in(2) {
        schema.insert("items".into(), self::schema(dice, depth - 1));
    }
    if dice.one_in(3) {
        let prefix: Vec<Value> = (0..=dice.roll(2)).map(|_| self::schema(dice, depth - 1)).collect();
        schema.insert("prefixItems".into(), prefix.into());
    }
    if dice.one_in(3) {
        schema.insert("minItems".into(), json!(dice.roll(3)));
    }
    if dice.one_in(3) {
        schema.insert("maxItems".into(), json!(dice.roll(4)));
    }
    if dice.one_in(4) {
        schema.insert("contains".into(), self::schema(dice, depth - 1));
        if dice.one_in(2) {
            schema.insert("minContains".into(), json!(dice.roll(3)));
        }
        if dice.one_in(3) {
            schema.insert("maxContains".into(), json!(dice.roll(3)));
        }
    }
    if dice.one_in(4) {
        schema.insert("uniqueItems".into(), json!(true));
    }
}

fn ask_of_objects(dice: &mut Dice, depth: u32, schema: &mut Map<String, Value>) {
    let properties: Map<String, Value> =
        (0..dice.roll(4)).map(|_| (dice.pick(&KEYS).to_string(), self::schema(dice, depth - 1))).collect();
    if dice.one_in(2) {
        schema.insert("required".into(), json!([dice.pick(&KEYS), dice.pick(&KEYS)]));
    }
    schema.insert("properties".into(), properties.into());
    if dice.one_in(2) {
        schema.insert("additionalProperties".into(), self::schema(dice, depth - 1));
    }
    if dice.one_in(4) {
        let rules: Map<String, Value> =
            (0..=dice.roll(2)).map(|_| (dice.pick(&PATTERNS).0.to_string(), self::schema(dice, depth - 1))).collect();
        schema.insert("patternProperties".into(), rules.into());
    }
    if dice.one_in(6) {
        let names = [json!({"minLength": 2}), json!({"pattern": "^a"}), json!({"enum": ["a", "ab", "z"]})];
        schema.insert("propertyNames".into(), dice.pick(&names));
    }
    if dice.one_in(6) {
        schema.insert("minProperties".into(), json!(dice.roll(4)));
    }
    if dice.one_in(6) {
        schema.insert("maxProperties".into(), json!(dice.roll(4)));
    }
    if dice.one_in(6) {
        schema.insert("dependentRequired".into(), json!({ dice.pick(&KEYS): [dice.pick(&KEYS)] }));
    }
    if dice.one_in(8) {
        schema.insert("dependentSchemas".into(), json!({ dice.pick(&KEYS): self::schema(dice, depth - 1) }));
    }
}

/// What further schemas ask of the same value.
fn combine(dice: &mut Dice, depth: u32, schema: &mut Map<String, Value>) {
    if dice.one_in(5) {
        let keyword = dice.pick(&["anyOf", "allOf", "anyOf", "oneOf"]);
        let branches: Vec<Value> = (0..=dice.roll(3)).map(|_| self::schema(dice, depth - 1)).collect();
        schema.insert(keyword.into(), branches.into());
    }
    if dice.one_in(8) {
        schema.insert("not".into(), self::schema(dice, depth - 1));
    }
    if dice.one_in(10) {
        schema.insert("if".into(), self::schema(dice, depth - 1));
        schema.insert("then".into(), self::schema(dice, depth - 1));
        if dice.one_in(2) {
            schema.insert("else".into(), self::schema(dice, depth - 1));
        }
    }
    if dice.one_in(10) {
        schema.insert("unevaluatedProperties".into(), self::schema(dice, 0));
    }
}

/// Branches distinguished by the value of a member, in one of the ways that schemas have for it.
fn by_cases(dice: &mut Dice) -> Value {
    let mut schema = self::schema(dice, 1).as_object().cloned().unwrap_or_default();
    let listed = |dice: &mut Dice| match dice.roll(6) {
        0 => json!({"const": dice.pick(&TEXTS)}),
        1 => json!({"const": number(dice)}),
        2 => json!({"enum": [dice.pick(&TEXTS), dice.pick(&TEXTS), number(dice), null]}),
        3 => json!({"type": "string", "enum": [dice.pick(&TEXTS), dice.pick(&TEXTS)]}),
        4 => {
            json!({"type": dice.pick(&["string", "integer", "number"]), "not": {"enum": [dice.pick(&TEXTS), number(dice)]}})
        }
        _ => json!({"pattern": dice.pick(&PATTERNS).0, "enum": [dice.pick(&TEXTS), dice.pick(&TEXTS)]}),
    };
    let branch = |dice: &mut Dice| {
        let mut branch = if dice.one_in(2) { self::schema(dice, 1) } else { json!({}) };
        let Value::Object(inner) = &mut branch else { return branch };
        let mut properties = Map::new();
        for _ in 0..=dice.roll(2) {
            properties.insert(
                dice.pick(&KEYS[..3]).to_string(),
                if dice.one_in(4) { self::schema(dice, 0) } else { listed(dice) },
            );
        }
        if dice.one_in(2) {
            inner.insert("required".into(), json!([dice.pick(&KEYS[..3])]));
        }
        if dice.one_in(3) {
            inner.insert("additionalProperties".into(), json!(false));
        }
        if dice.one_in(2) {
            inner.insert("type".into(), json!("object"));
        }
        inner.insert("properties".into(), properties.into());
        branch
    };
    let branches: Vec<Value> = (0..2 + dice.roll(4)).map(|_| branch(dice)).collect();
    match dice.roll(5) {
        0 | 1 => schema.insert("oneOf".into(), branches.into()),
        2 => schema.insert("not".into(), json!({"anyOf": branches})),
        3 => {
            let conditions =
                branches.into_iter().map(|condition| json!({"if": condition, "then": branch(dice), "else": true}));
            schema.insert("allOf".into(), conditions.collect())
        }
        _ => {
            let dependent =
                branches.into_iter().map(|branch| (dice.pick(&KEYS).to_string(), branch)).collect::<Map<_, _>>();
            schema.insert("dependentSchemas".into(), dependent.into())
        }
    };
    schema.into()
}

/// All of some, any of others: strings under patterns and lengths.
fn of_texts(dice: &mut Dice) -> Value {
    let leaf = |dice: &mut Dice| {
        let leaf = match dice.roll(4) {
            0 => json!({"minLength": dice.roll(3)}),
            1 => json!({"maxLength": dice.roll(4)}),
            2 => json!({"type": dice.pick(&["string", "integer", "null"]), "pattern": dice.pick(&PATTERNS).0}),
            _ => json!({"pattern": dice.pick(&PATTERNS).0}),
        };
        if dice.one_in(3) { json!({"not": leaf}) } else { leaf }
    };
    let few = |dice: &mut Dice| {
        let leaves: Vec<Value> = (0..2 + dice.roll(2)).map(|_| leaf(dice)).collect();
        let few = json!({ dice.pick(&["anyOf", "anyOf", "allOf", "oneOf"]): leaves });
        if dice.one_in(4) { json!({"not": few}) } else { few }
    };
    let all: Vec<Value> = (0..2 + dice.roll(3)).map(|_| few(dice)).collect();
    let mut schema = json!({"allOf": all});
    if dice.one_in(2) {
        schema["type"] = json!("string");
    }
    if dice.one_in(4) {
        schema["enum"] = json!(TEXTS);
    }
    schema
}

/// A value, drawn towards a schema where one is given.
fn value(dice: &mut Dice, towards: Option<&Value>, depth: u32) -> Value {
    let towards = towards.filter(|_| !dice.one_in(8));
    if let Some(schema) = towards {
        for keyword in ["anyOf", "oneOf", "allOf"] {
            if let Some(branch) = schema.get(keyword).and_then(Value::as_array).filter(|_| dice.one_in(2)) {
                let branch = dice.pick(branch);
                return value(dice, Some(&branch), depth);
            }
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return dice.pick(values);
        }
    }
    let get = |keyword: &str| towards.and_then(|schema| schema.get(keyword));
    let kind = match get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => dice.pick(kinds).as_str().unwrap().into(),
        _ => dice.pick(&TYPES).to_string(),
    };
    match kind.as_str() {
        "null" => Value::Null,
        "boolean" => dice.one_in(2).into(),
        "integer" | "number" => number(dice),
        "string" => dice.pick(&TEXTS).into(),
        "array" if depth > 0 => (0..dice.roll(4))
            .map(|place| {
                let prefix = get("prefixItems").and_then(|prefix| prefix.get(place as usize));
                value(dice, prefix.or(get("items")), depth - 1)
            })
            .collect(),
        "array" => json!([]),
        _ if depth == 0 => json!({}),
        _ => {
            let mut members = Map::new();
            let required = get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            let mut names: Vec<String> = required.iter().map(|name| name.as_str().unwrap().into()).collect();
            names.extend((0..dice.roll(3)).map(|_| dice.pick(&KEYS).to_string()));
            for name in names {
                let inner = get("properties").and_then(|map| map.get(&name)).or(get("additionalProperties"));
                let inner = value(dice, inner, depth - 1);
                members.insert(name, inner);
            }
            members.into()
        }
    }
}

/// The value as text, with whitespace and escapes where the natural spelling has a choice.
fn write(dice: &mut Dice, value: &Value, text: &mut String) {
    let space = |dice: &mut Dice, text: &mut String| text.push_str(dice.pick(&["", "", " ", "\n\t", "\r "]));
    match value {
        Value::String(string) => write_string(dice, string, text),
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                space(dice, text);
                write(dice, item, text);
                space(dice, text);
            }
            if items.is_empty() {
                space(dice, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (place, (key, inner)) in members.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                space(dice, text);
                write_string(dice, key, text);
                space(dice, text);
                text.push(':');
                space(dice, text);
                write(dice, inner, text);
                space(dice, text);
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

fn write_string(dice: &mut Dice, string: &str, text: &mut String) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '\n' if dice.one_in(2) => text.push_str("\\n"),
            character if character < ' ' || (!character.is_ascii() && dice.one_in(2)) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let upper = dice.one_in(2);
                    text.push_str(&if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") });
                }
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

/// Whether a text may hold the integer `-0`.
fn has_minus_zero(text: &str) -> bool {
    text.match_indices("-0").any(|(at, _)| !text[at + 2..].starts_with(['.', 'e', 'E']))
}

/// Holds the grammar of a schema against the validator, for values near it.
fn decided(dice: &mut Dice, schema: &Value) -> Result<(), TestCaseError> {
    let text = schema.to_string();
    let values: Vec<Value> = (0..12).map(|_| value(dice, Some(schema), 3)).collect();
    // Cycles through $ref alone make the validator itself run for ever; the grammar has no instance there.
    let grammar = match from_json_schema(&text, &options("o")) {
        Ok(grammar) => Some(grammar),
        Err(error) if error.kind == ErrorKind::Unsatisfiable && !error.message.contains("cycle") => None,
        Err(error) => {
            let known = ["cycle", "uniqueItems", "one of few keys", "too many", "contains:", "not:"];
            prop_assert!(known.iter().any(|known| error.message.contains(known)), "{}\n{}", text, error);
            return Ok(());
        }
    };
    let digits = from_json_schema(&text, &JsonSchemaOptions { integers_as_digits: true, ..options("o") }).ok();
    for value in &values {
        let valid = is_valid(schema, schema, value);
        let mut written = String::new();
        write(dice, value, &mut written);
        let accepted = grammar.as_ref().is_some_and(|grammar| oracle::accepts(grammar, &written));
        prop_assert_eq!(accepted, valid, "{}\n{}", text, written);
        // Digits are another way to write integers, and no other verdict.
        let in_digits = digits.as_ref().is_some_and(|grammar| oracle::accepts(grammar, &written));
        let is_spelled_otherwise = written.contains(".0") || has_minus_zero(&written);
        let expected = if is_spelled_otherwise { in_digits && valid } else { valid };
        prop_assert_eq!(in_digits, expected, "{}\n{} in digits", text, written);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decided_as_the_validator_decides(seed in 1u64..) {
        let mut dice = Dice(seed);
        for _ in 0..5 {
            dice.roll(2);
        }
        let schema = schema(&mut dice, 3);
        decided(&mut dice, &schema)?;
    }

    #[test]
    fn branches_by_cases_are_decided_as_the_validator_decides(seed in 1u64..) {
        let mut dice = Dice(seed);
        for _ in 0..5 {
            dice.roll(2);
        }
        let schema = by_cases(&mut dice);
        decided(&mut dice, &schema)?;
    }

    #[test]
    fn texts_are_decided_as_the_validator_decides(seed in 1u64..) {
        let mut dice = Dice(seed);
        for _ in 0..5 {
            dice.roll(2);
        }
        let schema = of_texts(&mut dice);
        decided(&mut dice, &schema)?;
    }

    /// Whatever is broken in a schema, there is a grammar or an error, never a panic.
    #[test]
    fn broken_schemas_end_in_errors(seed in 1u64..) {
        let mut dice = Dice(seed);
        let schema = schema(&mut dice, 3);
        let mut text = schema.to_string();
        for _ in 0..=dice.roll(3) {
            let pieces = [
                "-1", "null", "\"\"", "[]", "{}", "{", "]", "1e9999999999", "\"$ref\":\"#/items\",", "\"not\":{},", "\\u", ":",
                "\"type\":[],", "\"pattern\":\"(?=a)\",", "\"$ref\":\"#\",", "1.5", "\"oneOf\":[{},{}],", "\"enum\":{},",
            ];
            let at = dice.roll(text.len() as u64 + 1) as usize;
            let at = (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            let end = (at + dice.roll(4) as usize).min(text.len());
            let end = (end..=text.len()).find(|&end| text.is_char_boundary(end)).unwrap_or(text.len());
            text.replace_range(at..end, dice.pick(&pieces));
        }
        let letters = dice.pick(&["", "o", "c", "i", "a", "s", "r", "ra", "ri"]);
        if let Err(error) = from_json_schema(&text, &options(letters)) {
            prop_assert!(!error.message.is_empty(), "{}", text);
        }
    }
}
