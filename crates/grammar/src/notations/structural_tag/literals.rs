//! The arguments of a call as literals of a notation of its own: keywords of a call in Python, or names and values as the
//! Gemma models write them.
//!
//! One idea: such a notation is JSON with other words and marks. Objects and arrays are spelled here by their members;
//! scalars are what JSON Schema makes of them, with the words of the notation in place of `true`, `false` and `null`.

use rustc_hash::FxHashMap;
use stencilm_regex::syntax::{Alphabet, Utf8};
use stencilm_regex::{ByteSet, ExprId};

use super::embedded::placed;
use super::fields::error;
use super::lower::Lowering;
use super::notation::Notation;
use crate::error::{ErrorKind, GrammarError};
use crate::ir::free_text::FreeText;
use crate::ir::grammar::{Node, NodeId, RuleId};
use crate::ir::markers;
use crate::ir::report::Fate;
use crate::json::spelling::Spelling;
use crate::json_schema::options::JsonSchemaOptions;
use crate::json_schema::read::document::{Entries, Json, JsonId};
use crate::json_schema::reported;

/// Keywords that say nothing about what is valid.
const SILENT: [&str; 15] = [
    "$schema",
    "$id",
    "$defs",
    "definitions",
    "$comment",
    "$anchor",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "strict",
];
const OF_OBJECTS: [&str; 3] = ["properties", "required", "additionalProperties"];
const OF_ARRAYS: [&str; 3] = ["items", "minItems", "maxItems"];
/// Keywords that say nothing of an object, or of an array, but of values of other types.
const OF_OTHERS: [&str; 12] = [
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "contentEncoding",
    "contentMediaType",
    "nullable",
];
const OF_ARRAYS_ALONE: [&str; 8] =
    ["items", "minItems", "maxItems", "prefixItems", "uniqueItems", "contains", "minContains", "maxContains"];
const OF_OBJECTS_ALONE: [&str; 8] = [
    "properties",
    "required",
    "additionalProperties",
    "propertyNames",
    "patternProperties",
    "minProperties",
    "maxProperties",
    "dependentRequired",
];
/// Longest way of `$ref`s.
const MAX_HOPS: usize = 64;
/// Longest name that the schema does not declare.
const LONGEST_NAME: u32 = 64;

/// The schemas of one call that are still to be written.
struct Literals<'o> {
    notation: &'static Notation,
    root: JsonId,
    options: &'o JsonSchemaOptions,
    rules: FxHashMap<JsonId, RuleId>,
    work: Vec<(JsonId, RuleId)>,
    any: Option<NodeId>,
}

/// Where members stand: as the arguments of the call, or within a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Call,
    Value,
}

impl Literals<'_> {
    /// What no string and no name holds.
    fn excludes(&self) -> Vec<&str> {
        self.options.excludes.iter().map(|text| &**text).collect()
    }
}

impl<'a> Lowering<'a> {
    /// The arguments that a schema of an object allows, without what stands around them.
    pub(super) fn literal_arguments(
        &mut self,
        root: JsonId,
        notation: &'static Notation,
        options: &JsonSchemaOptions,
    ) -> Result<NodeId, GrammarError> {
        let mut literals =
            Literals { notation, root, options, rules: FxHashMap::default(), work: Vec::new(), any: None };
        let at = self.literal_target(root, root)?;
        let node = match self.document.get(at) {
            Json::Object(entries) => {
                let read = [&["type"][..], &OF_OBJECTS, &OF_ARRAYS_ALONE, &OF_OTHERS];
                self.only_keywords(literals.options, at, &read, "the arguments of a call")?;
                if let Some(&kind) = entries.get("type")
                    && !self.type_names(kind).contains(&"object")
                {
                    let message = "no arguments are valid under this schema; loosen it";
                    return Err(GrammarError::new(ErrorKind::Unsatisfiable, self.document.pointer(kind), message));
                }
                self.literal_members(&mut literals, at, entries, Place::Call)?
            }
            Json::Bool(true) => self.literal_others(&mut literals, None, &[], Place::Call)?,
            other => {
                let message = format!("the arguments of a call are an object, not what {} describes", other.kind());
                return Err(error(self.document, at, message));
            }
        };
        while let Some((at, rule)) = literals.work.pop() {
            let body = self.literal_value(&mut literals, at)?;
            self.builder.define_rule(rule, body);
        }
        Ok(node)
    }

    /// The rule of a schema.
    fn literal_rule(&mut self, literals: &mut Literals<'_>, at: JsonId) -> Result<NodeId, GrammarError> {
        let at = self.literal_target(at, literals.root)?;
        let rule = match literals.rules.get(&at) {
            Some(&rule) => rule,
            None => {
                let rule = self.declare("argument");
                literals.rules.insert(at, rule);
                literals.work.push((at, rule));
                rule
            }
        };
        Ok(self.builder.node(Node::Rule(rule)))
    }

    /// What a schema allows.
    fn literal_value(&mut self, literals: &mut Literals<'_>, at: JsonId) -> Result<NodeId, GrammarError> {
        let entries = match self.document.get(at) {
            Json::Bool(true) => return self.any_literal(literals),
            Json::Bool(false) => return Ok(self.builder.choice(&[])),
            Json::Object(entries) => entries,
            other => {
                let message = format!("a schema is an object or a boolean, not {}", other.kind());
                return Err(error(self.document, at, message));
            }
        };
        for keyword in ["anyOf", "oneOf"] {
            let Some(&any) = entries.get(keyword) else { continue };
            self.only_keywords(literals.options, at, &[&[keyword]], "a choice between literals")?;
            let Json::Array(schemas) = self.document.get(any) else {
                return Err(error(self.document, any, format!("{keyword} must be an array of schemas")));
            };
            let mut ways = Vec::with_capacity(schemas.len());
            for &schema in schemas {
                ways.push(self.literal_rule(literals, schema)?);
            }
            return Ok(self.builder.choice(&ways));
        }
        let declared = entries.get("type").map(|&value| self.type_names(value));
        let listed = entries.get("enum").or_else(|| entries.get("const")).is_some();
        let says = |keywords: &[&str]| keywords.iter().any(|keyword| entries.contains_key(keyword));
        let plain = !listed && declared.is_none() && entries.keys().all(|keyword| SILENT.contains(&keyword));
        if plain {
            return self.any_literal(literals);
        }
        let has = |name: &str| declared.as_ref().is_none_or(|types| types.contains(&name));
        let mut ways = Vec::new();
        if has("object") && !listed && (declared.is_some() || says(&OF_OBJECTS)) {
            let read = [&["type"][..], &OF_OBJECTS, &OF_ARRAYS_ALONE, &OF_OTHERS];
            self.only_keywords(literals.options, at, &read, "members as literals")?;
            let members = self.literal_members(literals, at, entries, Place::Value)?;
            ways.push(self.bracketed("{", members, "}"));
        }
        if has("array") && !listed && (declared.is_some() || says(&OF_ARRAYS)) {
            let read = [&["type"][..], &OF_ARRAYS, &OF_OBJECTS_ALONE, &OF_OTHERS];
            self.only_keywords(literals.options, at, &read, "elements as literals")?;
            ways.push(self.literal_elements(literals, entries)?);
        }
        if has("string") {
            ways.extend(self.literal_strings(literals, at)?);
        }
        let numbers: Vec<&str> = ["number", "integer"].into_iter().filter(|name| has(name)).collect();
        if !numbers.is_empty()
            && let Some(node) = self.literal_part(literals, at, "type", &format!("[\"{}\"]", numbers.join("\", \"")))?
        {
            ways.push(node);
        }
        for (word, (json, kind)) in
            literals.notation.words.iter().zip([("true", "boolean"), ("false", "boolean"), ("null", "null")])
        {
            if has(kind) && self.literal_part(literals, at, "const", json)?.is_some() {
                ways.push(self.text(word));
            }
        }
        ways.extend(self.given_containers(literals, at, entries)?);
        if ways.is_empty() {
            let message = "no value of this schema can be written as a literal; loosen it, or use the style \"json\"";
            return Err(GrammarError::new(ErrorKind::Unsatisfiable, self.document.pointer(at), message));
        }
        Ok(self.builder.choice(&ways))
    }

    /// Those objects and arrays of `enum` or `const` that are valid.
    fn given_containers(
        &mut self,
        literals: &Literals<'_>,
        at: JsonId,
        entries: &'a Entries<'a>,
    ) -> Result<Vec<NodeId>, GrammarError> {
        let mut given: Vec<JsonId> = Vec::new();
        if let Some(&value) = entries.get("const") {
            given.push(value);
        } else if let Some(&values) = entries.get("enum")
            && let Json::Array(values) = self.document.get(values)
        {
            given.extend(values.iter().copied());
        }
        let mut ways = Vec::new();
        for value in given {
            if matches!(self.document.get(value), Json::Object(_) | Json::Array(_)) {
                let text = self.document.spelled(self.text, value);
                if self.literal_part(literals, at, "const", text)?.is_some() {
                    ways.push(self.given_literal(literals, value, 0)?);
                }
            }
        }
        Ok(ways)
    }

    /// A value that is given, in its order.
    fn given_literal(&mut self, literals: &Literals<'_>, value: JsonId, depth: usize) -> Result<NodeId, GrammarError> {
        if depth > MAX_HOPS {
            let message = format!("a value is nested more than {MAX_HOPS} deep; use the style \"json\"");
            return Err(GrammarError::new(ErrorKind::Limit, self.document.pointer(value), message));
        }
        let comma = self.text(literals.notation.comma);
        let (mut parts, (open, close)) = match self.document.get(value) {
            Json::Array(values) => {
                let mut parts = Vec::with_capacity(values.len());
                for &value in values {
                    parts.push(self.given_literal(literals, value, depth + 1)?);
                }
                (parts, ("[", "]"))
            }
            Json::Object(entries) => {
                let mut parts = Vec::with_capacity(entries.len());
                for (name, &value) in entries.iter() {
                    let Some(key) = self.literal_key(literals, name, Place::Value, value)? else {
                        return Ok(self.builder.choice(&[]));
                    };
                    let value = self.given_literal(literals, value, depth + 1)?;
                    parts.push(self.builder.sequence(&[key, value]));
                }
                (parts, ("{", "}"))
            }
            Json::Bool(value) => return Ok(self.text(literals.notation.words[usize::from(!value)])),
            Json::Null => return Ok(self.text(literals.notation.words[2])),
            Json::String(text) => {
                let bare = self.builder.exprs.literal(text.as_bytes());
                let Some(quote) = literals.notation.quote else {
                    let schema = format!("{{\"const\": {}}}", self.document.spelled(self.text, value));
                    let double = self.scalar(&schema, literals.options, &self.document.pointer(value))?;
                    let single = self.single_quoted(literals, Some(bare));
                    return Ok(self.builder.choice(&[double, single]));
                };
                return Ok(self.quoted_text(literals, Some(bare), quote));
            }
            Json::Number(_) => {
                let schema = format!("{{\"const\": {}}}", self.document.spelled(self.text, value));
                return self.scalar(&schema, literals.options, &self.document.pointer(value));
            }
        };
        let mut with_commas = Vec::with_capacity(2 * parts.len());
        for (index, part) in parts.drain(..).enumerate() {
            if index > 0 {
                with_commas.push(comma);
            }
            with_commas.push(part);
        }
        let inside = self.builder.sequence(&with_commas);
        Ok(self.bracketed(open, inside, close))
    }

    /// Any value at all.
    fn any_literal(&mut self, literals: &mut Literals<'_>) -> Result<NodeId, GrammarError> {
        if let Some(any) = literals.any {
            return Ok(any);
        }
        let rule = self.declare("literal");
        let value = self.builder.node(Node::Rule(rule));
        literals.any = Some(value);
        let options = JsonSchemaOptions { spelling: Spelling::Natural, ..literals.options.clone() };
        let number = self.scalar("{\"type\": \"number\"}", &options, "")?;
        let string = match literals.notation.quote {
            None => {
                let double = self.scalar("{\"type\": \"string\"}", &options, "")?;
                let single = self.single_quoted(literals, None);
                self.builder.choice(&[double, single])
            }
            Some(quote) => self.quoted_text(literals, None, quote),
        };
        let words: Vec<NodeId> = literals.notation.words.iter().map(|word| self.text(word)).collect();
        let comma = self.text(literals.notation.comma);
        let elements = self.listed(value, comma, 0, None);
        let elements = self.bracketed("[", elements, "]");
        let members = self.literal_others(literals, None, &[], Place::Value)?;
        let members = self.bracketed("{", members, "}");
        let mut ways = vec![number, string, elements, members];
        ways.extend(words);
        let body = self.builder.choice(&ways);
        self.builder.define_rule(rule, body);
        Ok(value)
    }

    /// The members of an object in the order of its schema, or of their names where the notation sorts them; then others.
    fn literal_members(
        &mut self,
        literals: &mut Literals<'_>,
        at: JsonId,
        entries: &'a Entries<'a>,
        place: Place,
    ) -> Result<NodeId, GrammarError> {
        let mut required = Vec::new();
        if let Some(&value) = entries.get("required") {
            required.extend(self.document.strings(value));
        }
        let properties = match entries.get("properties") {
            None => None,
            Some(&value) => match self.document.entries(value) {
                Some(properties) => Some(properties),
                None => return Err(error(self.document, value, "properties must be an object")),
            },
        };
        let others = match entries.get("additionalProperties") {
            None if literals.options.strict_mode => None,
            None => Some(None),
            Some(&value) => match self.document.get(value) {
                Json::Bool(false) => None,
                Json::Bool(true) => Some(None),
                _ => Some(Some(value)),
            },
        };
        let mut names: Vec<&str> = Vec::new();
        let mut members = Vec::new();
        for (name, &schema) in properties.into_iter().flat_map(|properties| properties.iter()) {
            names.push(name);
            let Some(key) = self.literal_key(literals, name, place, schema)? else { continue };
            let value = self.literal_rule(literals, schema)?;
            members.push((name, self.builder.sequence(&[key, value]), required.contains(&name)));
        }
        for &name in &required {
            if names.contains(&name) {
                continue;
            }
            let Some(schema) = others else {
                let message = format!("{name:?} is required, but additionalProperties forbids it; declare it");
                return Err(GrammarError::new(ErrorKind::Unsatisfiable, self.document.pointer(at), message));
            };
            names.push(name);
            let Some(key) = self.literal_key(literals, name, place, at)? else { continue };
            let value = match schema {
                None => self.any_literal(literals)?,
                Some(schema) => self.literal_rule(literals, schema)?,
            };
            members.push((name, self.builder.sequence(&[key, value]), true));
        }
        let other = match others {
            None => None,
            Some(schema) => Some(self.literal_other(literals, schema, &names, place)?),
        };
        let comma = self.text(literals.notation.comma);
        let declared = self.in_order(&members, other, comma);
        let mut sorted = members.clone();
        sorted.sort_by_key(|(name, ..)| *name);
        if !literals.notation.sorted || sorted == members {
            return Ok(declared);
        }
        let sorted = self.in_order(&sorted, other, comma);
        Ok(self.builder.choice(&[declared, sorted]))
    }

    /// Members one after the other, those that may be left out or not, with commas between those that are there.
    fn in_order(&mut self, members: &[(&str, NodeId, bool)], other: Option<NodeId>, comma: NodeId) -> NodeId {
        let nothing = self.builder.sequence(&[]);
        // From the last to the first: what may follow where nothing stands before it, and where something does.
        let (mut first, mut more) = match other {
            None => (nothing, nothing),
            Some(other) => {
                let next = self.builder.sequence(&[comma, other]);
                (self.listed(other, comma, 0, None), self.builder.repeat(next, 0, None))
            }
        };
        for &(_, member, is_required) in members.iter().rev() {
            let rule = self.declare("arguments");
            self.builder.define_rule(rule, more);
            let rest = self.builder.node(Node::Rule(rule));
            let begun = self.builder.sequence(&[member, rest]);
            let next = self.builder.sequence(&[comma, member, rest]);
            (first, more) = if is_required {
                (begun, next)
            } else {
                (self.builder.choice(&[begun, first]), self.builder.choice(&[next, rest]))
            };
        }
        first
    }

    /// Any members but the declared ones.
    fn literal_others(
        &mut self,
        literals: &mut Literals<'_>,
        schema: Option<JsonId>,
        taken: &[&str],
        place: Place,
    ) -> Result<NodeId, GrammarError> {
        let other = self.literal_other(literals, schema, taken, place)?;
        let comma = self.text(literals.notation.comma);
        Ok(self.listed(other, comma, 0, None))
    }

    /// One member that the schema does not declare.
    fn literal_other(
        &mut self,
        literals: &mut Literals<'_>,
        schema: Option<JsonId>,
        taken: &[&str],
        place: Place,
    ) -> Result<NodeId, GrammarError> {
        let value = match schema {
            None => self.any_literal(literals)?,
            Some(schema) => self.literal_rule(literals, schema)?,
        };
        let exprs = &mut self.builder.exprs;
        let (mut begin, mut letters) = (ByteSet::EMPTY, ByteSet::EMPTY);
        for byte in (b'a'..=b'z').chain(b'A'..=b'Z').chain([b'_']) {
            begin.insert(byte);
            letters.insert(byte);
        }
        (b'0'..=b'9').for_each(|byte| letters.insert(byte));
        let (begin, letter) = (exprs.bytes(begin), exprs.bytes(letters));
        let rest = exprs.repeat(letter, 0, Some(LONGEST_NAME - 1));
        let name = exprs.concat(begin, rest);
        // Words of Python are no names of arguments.
        let mut forbidden: Vec<&str> = taken.to_vec();
        forbidden.extend(KEYWORDS);
        let forbidden = exprs.literals(&forbidden);
        let unknown = exprs.not(forbidden);
        let mut name = exprs.and(&[name, unknown]);
        let excludes = literals.excludes();
        if !excludes.is_empty() {
            name = FreeText::of(exprs, name, &[], &excludes).unended(exprs);
        }
        let assign = if place == Place::Call { literals.notation.assign } else { literals.notation.colon };
        if place == Place::Value && literals.notation.quote.is_none() {
            let (double, single) = (exprs.literal(b"\""), exprs.literal(b"'"));
            let double = exprs.concat_all(&[double, name, double]);
            let single = exprs.concat_all(&[single, name, single]);
            name = exprs.or(&[double, single]);
        }
        let assign = exprs.literal(assign.as_bytes());
        let key = exprs.concat(name, assign);
        let key = self.builder.lexeme(key);
        Ok(self.builder.sequence(&[key, value]))
    }

    /// The name of a member with what stands between it and its value; `None` where the notation has no such name, and it is
    /// left out.
    fn literal_key(
        &mut self,
        literals: &Literals<'_>,
        name: &str,
        place: Place,
        at: JsonId,
    ) -> Result<Option<NodeId>, GrammarError> {
        let notation = literals.notation;
        if literals.excludes().iter().any(|exclude| name.contains(exclude)) {
            return Ok(Some(self.builder.choice(&[])));
        }
        let is_name = !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        let plain = is_name && (notation.quote.is_some() || !KEYWORDS.contains(&name));
        if place == Place::Value && notation.quote.is_none() {
            let double = format!("{}{}", json_string(name), notation.colon);
            let double = self.text(&double);
            if name.contains(['\'', '\\', '\n', '\r']) {
                return Ok(Some(double));
            }
            let single = self.text(&format!("'{name}'{}", notation.colon));
            return Ok(Some(self.builder.choice(&[double, single])));
        }
        let assign = if place == Place::Call { notation.assign } else { notation.colon };
        if plain || notation.quote.is_some() && !name.contains(['{', '}', '[', ']', ':', ',', '<', '\n', ' ']) {
            return Ok(Some(self.text(&format!("{name}{assign}"))));
        }
        let reason = format!("{name:?} is no name of an argument in the style {:?}", notation.name);
        self.unheld_literal(literals.options, "properties", at, at, &reason)?;
        Ok(None)
    }

    fn literal_elements(
        &mut self,
        literals: &mut Literals<'_>,
        entries: &'a Entries<'a>,
    ) -> Result<NodeId, GrammarError> {
        let count = |keyword: &str| match entries.get(keyword) {
            None => Ok(None),
            Some(&value) => match self.document.get(value) {
                Json::Number(number) => match number.parse::<u32>() {
                    Ok(count) => Ok(Some(count)),
                    Err(_) => Err(error(self.document, value, format!("{keyword} must be a whole number below 2^32"))),
                },
                _ => Err(error(self.document, value, format!("{keyword} must be a whole number below 2^32"))),
            },
        };
        let (min, max) = (count("minItems")?.unwrap_or(0), count("maxItems")?);
        let value = match entries.get("items") {
            None => self.any_literal(literals)?,
            Some(&items) => self.literal_rule(literals, items)?,
        };
        let comma = self.text(literals.notation.comma);
        let elements = self.listed(value, comma, min, max);
        Ok(self.bracketed("[", elements, "]"))
    }

    /// So many of a part, with a comma between each two.
    fn listed(&mut self, part: NodeId, comma: NodeId, min: u32, max: Option<u32>) -> NodeId {
        if max == Some(0) {
            return self.builder.sequence(&[]);
        }
        let next = self.builder.sequence(&[comma, part]);
        let more = self.builder.repeat(next, min.saturating_sub(1), max.map(|max| max - 1));
        let all = self.builder.sequence(&[part, more]);
        if min > 0 { all } else { self.builder.repeat(all, 0, Some(1)) }
    }

    fn bracketed(&mut self, open: &str, inside: NodeId, close: &str) -> NodeId {
        let (open, close) = (self.text(open), self.text(close));
        self.builder.sequence(&[open, inside, close])
    }

    fn text(&mut self, text: &str) -> NodeId {
        let expr = self.builder.exprs.literal(text.as_bytes());
        self.builder.lexeme(expr)
    }

    /// The strings that a schema allows; `None` where it allows none.
    fn literal_strings(&mut self, literals: &Literals<'_>, at: JsonId) -> Result<Option<NodeId>, GrammarError> {
        let bare = JsonSchemaOptions { spelling: Spelling::Bare, ..literals.options.clone() };
        let schema = self.restricted(literals, at, "type", "\"string\"");
        match reported(&schema, &bare) {
            Ok(grammar) => {
                let Node::Lexeme(expr) = grammar.node(grammar.root()) else {
                    unreachable!("strings alone are one lexeme");
                };
                let expr = self.builder.exprs.import(grammar.exprs(), *expr);
                let Some(quote) = literals.notation.quote else {
                    let double = self.literal_part(literals, at, "type", "\"string\"")?;
                    let is_plain = self.document.entries(at).is_some_and(|entries| {
                        entries.keys().all(|keyword| keyword == "type" || SILENT.contains(&keyword))
                    });
                    let single = self.single_quoted(literals, if is_plain { None } else { Some(expr) });
                    return Ok(double.map(|double| self.builder.choice(&[double, single])));
                };
                Ok(Some(self.quoted_text(literals, Some(expr), quote)))
            }
            Err(inner) if inner.kind == ErrorKind::Unsatisfiable => Ok(None),
            Err(inner) => Err(placed(inner, &self.document.pointer(at), "#/allOf/0")),
        }
    }

    /// A string in single quotes, as Python writes most; any where it is `None`. One that needs escapes is left to double
    /// quotes where a schema bounds it.
    fn single_quoted(&mut self, literals: &Literals<'_>, text: Option<ExprId>) -> NodeId {
        let exprs = &mut self.builder.exprs;
        let mark = exprs.literal(b"'");
        let signs: ByteSet = [b'\'', b'\\', b'\n', b'\r'].into_iter().collect();
        let body = match text {
            Some(text) => {
                let (sign, any) = (exprs.bytes(signs), exprs.bytes(ByteSet::ALL));
                let any = exprs.repeat(any, 0, None);
                let signed = exprs.concat_all(&[any, sign, any]);
                let plain = exprs.not(signed);
                exprs.and(&[text, plain])
            }
            None => {
                let ranges = [(0x20, 0x26), (0x28, 0x5b), (0x5d, 0xd7ff), (0xe000, 0x10_ffff)];
                let ranges = ranges.map(|(first, last)| {
                    let char = |code| char::from_u32(code).expect("the ranges leave surrogates out");
                    (char(first), char(last))
                });
                let plain = Utf8.class(exprs, &ranges);
                let escape = exprs.literal(b"\\");
                let escaped: ByteSet = b"\\'\"nrt".iter().copied().collect();
                let escaped = exprs.bytes(escaped);
                let escape = exprs.concat(escape, escaped);
                let character = exprs.or(&[plain, escape]);
                exprs.repeat(character, 0, None)
            }
        };
        let excludes = literals.excludes();
        let body = if excludes.is_empty() { body } else { FreeText::of(exprs, body, &[], &excludes).unended(exprs) };
        let whole = exprs.concat_all(&[mark, body, mark]);
        self.builder.lexeme(whole)
    }

    /// A string between the marks of the notation, any where it is `None`; it never holds the mark.
    fn quoted_text(&mut self, literals: &Literals<'_>, text: Option<ExprId>, quote: &'static str) -> NodeId {
        let exprs = &mut self.builder.exprs;
        let excludes = literals.excludes();
        let free = match text {
            None => FreeText::new(exprs, &[quote], &excludes, None),
            Some(text) => FreeText::of(exprs, text, &[quote], &excludes),
        };
        let whole = free.until(exprs, quote);
        let before = free.before(exprs, quote);
        let before = self.builder.lexeme(before);
        let ways = markers::until(&mut self.builder, whole, before, quote);
        let text = self.builder.choice(&ways);
        let open = markers::literal(&mut self.builder, quote);
        self.builder.sequence(&[open, text])
    }

    /// The values of a schema under one more keyword, as JSON; `None` where there are none.
    fn literal_part(
        &mut self,
        literals: &Literals<'_>,
        at: JsonId,
        keyword: &str,
        value: &str,
    ) -> Result<Option<NodeId>, GrammarError> {
        let schema = self.restricted(literals, at, keyword, value);
        let place = self.document.pointer(at);
        match reported(&schema, literals.options) {
            Ok(grammar) => {
                self.report.absorb(&grammar.report, &place, "#/allOf/0");
                Ok(Some(self.add(&grammar)))
            }
            Err(inner) if inner.kind == ErrorKind::Unsatisfiable => Ok(None),
            Err(inner) => Err(placed(inner, &place, "#/allOf/0")),
        }
    }

    fn restricted(&self, literals: &Literals<'_>, at: JsonId, keyword: &str, value: &str) -> String {
        let text = self.document.spelled(self.text, at);
        let mut schema = format!("{{\"allOf\": [{text}], \"{keyword}\": {value}");
        let root: Option<&Entries<'_>> = self.document.entries(literals.root);
        for keyword in ["$schema", "$defs", "definitions"] {
            if let Some(&at) = root.and_then(|root| root.get(keyword)) {
                schema += &format!(", \"{keyword}\": {}", self.document.spelled(self.text, at));
            }
        }
        schema + "}"
    }

    fn scalar(&mut self, schema: &str, options: &JsonSchemaOptions, place: &str) -> Result<NodeId, GrammarError> {
        let grammar = reported(schema, options).map_err(|inner| placed(inner, place, "#"))?;
        Ok(self.add(&grammar))
    }

    /// The names of types that a value of `type` has.
    fn type_names(&self, value: JsonId) -> Vec<&'a str> {
        match self.document.get(value) {
            Json::String(name) => vec![name],
            _ => self.document.strings(value).collect(),
        }
    }

    /// The schema at the end of the `$ref`s of this one, where `#` means the root.
    fn literal_target(&self, from: JsonId, root: JsonId) -> Result<JsonId, GrammarError> {
        let mut at = from;
        for _ in 0..MAX_HOPS {
            let Some(&reference) = self.document.entries(at).and_then(|entries| entries.get("$ref")) else {
                return Ok(at);
            };
            let Json::String(pointer) = self.document.get(reference) else {
                return Err(error(self.document, reference, "$ref must be a string"));
            };
            let target = match pointer.strip_prefix('#') {
                Some("") => Some(root),
                Some(path) => path.strip_prefix('/').and_then(|path| {
                    path.split('/').try_fold(root, |at, step| {
                        let step = step.replace("~1", "/").replace("~0", "~");
                        self.document.entries(at)?.get(&step).copied()
                    })
                }),
                None => None,
            };
            at = target.ok_or_else(|| {
                let message =
                    format!("$ref {pointer:?} leads to no schema of this document; copy what it means into $defs");
                error(self.document, reference, message)
            })?;
        }
        Err(error(self.document, from, "its $refs lead to each other and to no schema; let one of them say something"))
    }

    /// Refuses, or leaves out and reports, keywords other than these and those that say nothing about what is valid.
    fn only_keywords(
        &mut self,
        options: &JsonSchemaOptions,
        at: JsonId,
        read: &[&[&str]],
        over: &str,
    ) -> Result<(), GrammarError> {
        let Some(entries) = self.document.entries(at) else { return Ok(()) };
        for (keyword, &value) in entries.iter() {
            let is_read = read.iter().any(|some| some.contains(&keyword));
            if !is_read && !SILENT.contains(&keyword) && !keyword.starts_with("x-") {
                let reason = format!("{keyword} cannot be enforced over {over}");
                self.unheld_literal(options, keyword, at, value, &reason)?;
            }
        }
        Ok(())
    }

    /// An error for what literals cannot hold; where it may be left out, a finding of the report.
    fn unheld_literal(
        &mut self,
        options: &JsonSchemaOptions,
        keyword: &str,
        at: JsonId,
        place: JsonId,
        reason: &str,
    ) -> Result<(), GrammarError> {
        if !options.relax {
            let message = format!("{reason}; leave it out, relax the format, or use the style \"json\"");
            return Err(GrammarError::new(ErrorKind::Unsupported, self.document.pointer(place), message));
        }
        let place = self.document.pointer(at);
        let place = self.report.text(|texts| texts.push_str(&place));
        self.report.add(Fate::Relaxed, keyword, &place, reason);
        Ok(())
    }
}

/// Words that cannot name an argument in Python.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// A text as a string of JSON.
fn json_string(text: &str) -> String {
    let mut written = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            '\n' => written += "\\n",
            '\r' => written += "\\r",
            '\t' => written += "\\t",
            c if (c as u32) < 0x20 => written += &format!("\\u{:04x}", c as u32),
            c => written.push(c),
        }
    }
    written + "\""
}
