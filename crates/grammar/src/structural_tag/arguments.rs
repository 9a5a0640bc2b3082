//! The arguments of a call, each between markers: what a schema of an object says, written as models write it.
//!
//! Strings stand as they are, so the text of one ends where the marker behind it first comes; other values are JSON. A
//! value that may be either is both, side by side.

use stencilm_regex::{ByteSet, ExprId, ExprSet};

use super::embedded::{flags, placed};
use super::fields::error;
use super::lower::Lowering;
use super::markers;
use super::styles::{Marked, Style, Words};
use crate::error::{ErrorKind, GrammarError};
use crate::free_text::FreeText;
use crate::grammar::{Grammar, Node, NodeId};
use crate::json_schema::document::{Entries, Json, JsonId};
use crate::json_schema::{JsonSchemaOptions, Spelling, reported};

/// Keywords of the schema itself that are read here.
const READ: [&str; 4] = ["type", "properties", "required", "additionalProperties"];
/// Keywords that only say what other keywords mean, or nothing about what is valid.
pub(super) const SILENT: [&str; 15] = [
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
/// Keywords of a value beside which a string is unconstrained.
pub(super) const ANNOTATIONS: [&str; 9] =
    ["type", "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly"];
/// All types but strings, in the order of their words.
const OTHER_TYPES: [&str; 5] = ["number", "boolean", "null", "object", "array"];
/// Longest way of `$ref`s to the schema itself.
const MAX_HOPS: usize = 64;

/// The ways to write a value: the word for its type, and what stands behind the name's marker.
pub(super) type Ways = Vec<(&'static str, NodeId)>;

/// The object that a schema describes.
struct Arguments<'a> {
    known: Vec<(&'a str, Option<JsonId>, bool)>,
    /// The schema of all others; `None` inside where anything goes.
    others: Option<Option<JsonId>>,
    /// The schema that `#` means.
    root: JsonId,
}

impl<'a> Lowering<'a> {
    /// Every argument that a schema asks for or allows, in the order of the schema, then others.
    pub(super) fn marked_arguments(
        &mut self,
        root: JsonId,
        marked: &'static Marked,
        options: &JsonSchemaOptions,
    ) -> Result<NodeId, GrammarError> {
        if options.any_order {
            return Err(self.not_in_any_order(root));
        }
        let arguments = self.read_arguments(root, options)?;
        let blanks = self.blanks(options);
        let mut parts = vec![self.builder.lexeme(blanks)];
        for &(name, schema, required) in &arguments.known {
            let at = schema.unwrap_or(root);
            self.check_name(name, at)?;
            let ways = self.ways(schema, &arguments, marked, options)?;
            if ways.is_empty() {
                if required {
                    let message = format!("no value is valid for {name:?}, which is required; loosen it");
                    return Err(GrammarError::new(ErrorKind::Unsatisfiable, self.document.pointer(at), message));
                }
                continue;
            }
            let open = format!("{}{name}", marked.open);
            let open = markers::literal(&mut self.builder, &open);
            let argument = self.argument(open, &ways, marked, blanks);
            parts.push(if required { argument } else { self.builder.repeat(argument, 0, Some(1)) });
        }
        if let Some(schema) = arguments.others {
            let ways = self.ways(schema, &arguments, marked, options)?;
            if !ways.is_empty() {
                let name = self.other_name(&arguments);
                let open = markers::literal(&mut self.builder, marked.open);
                let open = self.builder.sequence(&[open, name]);
                let argument = self.argument(open, &ways, marked, blanks);
                parts.push(self.builder.repeat(argument, 0, None));
            }
        }
        Ok(self.builder.sequence(&parts))
    }

    /// That arguments come in the order of the schema.
    pub(super) fn not_in_any_order(&self, root: JsonId) -> GrammarError {
        let message = "any_order needs the style \"json\"; leave it out, and list the properties in the order in which \
                       the model writes them";
        GrammarError::new(ErrorKind::Unsupported, self.document.pointer(root), message)
    }

    /// Refuses a name that would break the marker around it.
    pub(super) fn check_name(&self, name: &str, at: JsonId) -> Result<(), GrammarError> {
        if !name.contains(['<', '>', '"', '\n']) {
            return Ok(());
        }
        let message = format!("{name:?} cannot be written between markers; rename it, or use the style \"json\"");
        Err(GrammarError::new(ErrorKind::Unsupported, self.document.pointer(at), message))
    }

    /// The names that a schema of an object requires.
    pub(super) fn required(&self, entries: &Entries<'a>) -> Result<Vec<&'a str>, GrammarError> {
        let Some(&value) = entries.get("required") else { return Ok(Vec::new()) };
        let wrong = |at| Err(error(self.document, at, "required must be an array of strings"));
        let Json::Array(names) = self.document.get(value) else { return wrong(value) };
        let mut required: Vec<&'a str> = Vec::with_capacity(names.len());
        for &name in names {
            let Json::String(text) = self.document.get(name) else { return wrong(name) };
            required.push(text);
        }
        Ok(required)
    }

    fn read_arguments(&self, root: JsonId, options: &JsonSchemaOptions) -> Result<Arguments<'a>, GrammarError> {
        let document = self.document;
        let nothing = |at| {
            let message = "no arguments are valid under this schema; loosen it";
            GrammarError::new(ErrorKind::Unsatisfiable, document.pointer(at), message)
        };
        let at = self.behind_references(root, root)?;
        let entries = match document.get(at) {
            Json::Bool(true) => return Ok(Arguments { known: Vec::new(), others: Some(None), root }),
            Json::Bool(false) => return Err(nothing(at)),
            Json::Object(entries) => entries,
            other => {
                return Err(error(document, at, format!("a schema is an object or a boolean, not {}", other.kind())));
            }
        };
        for (keyword, &value) in entries.iter() {
            if !READ.contains(&keyword) && !SILENT.contains(&keyword) && !keyword.starts_with("x-") {
                let message = format!(
                    "{keyword} cannot be enforced over arguments between markers; move it into a property, or use the \
                     style \"json\""
                );
                return Err(GrammarError::new(ErrorKind::Unsupported, document.pointer(value), message));
            }
        }
        if let Some(&value) = entries.get("type")
            && !self.types(value).contains(&"object")
        {
            return Err(nothing(value));
        }
        let required = self.required(entries)?;
        let others = match entries.get("additionalProperties") {
            None if options.strict_mode => None,
            None => Some(None),
            Some(&value) => match document.get(value) {
                Json::Bool(false) => None,
                Json::Bool(true) => Some(None),
                _ => Some(Some(value)),
            },
        };
        let mut known = Vec::new();
        if let Some(&value) = entries.get("properties") {
            let Some(properties) = document.entries(value) else {
                return Err(error(document, value, "properties must be an object"));
            };
            known.extend(properties.iter().map(|(name, &schema)| (name, Some(schema), required.contains(&name))));
        }
        for name in required {
            if known.iter().any(|(known, ..)| *known == name) {
                continue;
            }
            let Some(schema) = others else {
                let message = format!("{name:?} is required, but additionalProperties forbids it; declare it");
                return Err(GrammarError::new(ErrorKind::Unsatisfiable, document.pointer(at), message));
            };
            known.push((name, schema, true));
        }
        Ok(Arguments { known, others, root })
    }

    /// The schema that stands at the end of the `$ref`s of this one, where `#` means the root.
    pub(super) fn behind_references(&self, from: JsonId, root: JsonId) -> Result<JsonId, GrammarError> {
        let mut at = from;
        for _ in 0..MAX_HOPS {
            let Some(entries) = self.document.entries(at) else { return Ok(at) };
            let Some(&reference) = entries.get("$ref") else { return Ok(at) };
            let Json::String(pointer) = self.document.get(reference) else {
                return Err(error(self.document, reference, "$ref must be a string"));
            };
            at = pointer.strip_prefix("#/").and_then(|path| self.find(root, path)).ok_or_else(|| {
                let message =
                    format!("$ref {pointer:?} leads to no schema of this document; copy what it means into $defs");
                error(self.document, reference, message)
            })?;
        }
        Err(error(self.document, from, "its $refs lead to each other and to no schema; let one of them say something"))
    }

    fn find(&self, root: JsonId, path: &str) -> Option<JsonId> {
        path.split('/').try_fold(root, |at, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            self.document.entries(at)?.get(&step).copied()
        })
    }

    /// The types that the value of `type` names.
    pub(super) fn types(&self, value: JsonId) -> Vec<&'a str> {
        match self.document.get(value) {
            Json::String(name) => vec![name],
            _ => self.document.strings(value).collect(),
        }
    }

    /// A run of blanks between arguments and around JSON.
    pub(super) fn blanks(&mut self, options: &JsonSchemaOptions) -> ExprId {
        let exprs = &mut self.builder.exprs;
        if !options.any_whitespace {
            let line = exprs.literal(b"\n");
            return exprs.optional(line);
        }
        let blank: ByteSet = [b' ', b'\t', b'\n', b'\r'].into_iter().collect();
        let blank = exprs.bytes(blank);
        exprs.repeat(blank, 0, options.max_whitespace)
    }

    /// The name of an argument that the schema does not name.
    fn other_name(&mut self, arguments: &Arguments<'a>) -> NodeId {
        let exprs = &mut self.builder.exprs;
        let mut letters = ByteSet::EMPTY;
        (b'!'..=b'~').filter(|byte| !b"<>\"&='".contains(byte)).for_each(|byte| letters.insert(byte));
        let letter = exprs.bytes(letters);
        let name = exprs.repeat(letter, 1, Some(64));
        let known: Vec<&str> = arguments.known.iter().map(|(name, ..)| *name).collect();
        let name = if known.is_empty() {
            name
        } else {
            let known = exprs.literals(&known);
            let unknown = exprs.not(known);
            exprs.and(&[name, unknown])
        };
        self.builder.lexeme(name)
    }

    fn argument(&mut self, open: NodeId, ways: &Ways, marked: &'static Marked, blanks: ExprId) -> NodeId {
        let mut words: Vec<&'static str> = ways.iter().map(|(word, _)| *word).collect();
        words.dedup();
        let mut written = Vec::new();
        for word in words {
            let mut parts = vec![open];
            for (index, line) in marked.middle.replace("{}", word).split('\n').enumerate() {
                if index > 0 {
                    parts.push(self.builder.lexeme(blanks));
                }
                parts.push(markers::literal(&mut self.builder, line));
            }
            let values: Vec<NodeId> =
                ways.iter().filter(|(other, _)| *other == word).map(|(_, value)| *value).collect();
            parts.push(if let [only] = values[..] { only } else { self.builder.choice(&values) });
            written.push(self.builder.sequence(&parts));
        }
        if let [only] = written[..] { only } else { self.builder.choice(&written) }
    }

    /// The ways to write the value of a schema, `None` for anything, with the marker behind it.
    fn ways(
        &mut self,
        schema: Option<JsonId>,
        arguments: &Arguments<'a>,
        marked: &'static Marked,
        options: &JsonSchemaOptions,
    ) -> Result<Ways, GrammarError> {
        let text = schema.map_or("true", |at| self.document.spelled(self.text, at));
        let refers = text.contains("\"$ref\"") || text.contains("\"$dynamicRef\"");
        let key = (text, Style::Marked(marked), flags(options), options.max_whitespace);
        if !refers && let Some(known) = self.arguments.get(&key) {
            return Ok(known.clone());
        }
        let entries = schema.and_then(|at| self.document.entries(at));
        let declared = entries.and_then(|entries| entries.get("type")).map(|&value| self.types(value));
        let has = |name: &str| declared.as_ref().is_none_or(|types| types.contains(&name));
        let mut ways = Ways::new();
        let is_plain = schema.is_none_or(|at| match self.document.get(at) {
            Json::Object(entries) => entries.keys().all(|keyword| ANNOTATIONS.contains(&keyword)),
            other => matches!(other, Json::Bool(true)),
        });
        let value = Value { schema, text, refers, root: arguments.root };
        if has("string") {
            let only = declared.as_ref().is_some_and(|types| **types == ["string"]);
            let text = if is_plain { Some(None) } else { self.bare(&value, only, options)?.map(Some) };
            if let Some(text) = text {
                ways.push((marked.string, self.text_value(text, marked, options)));
            }
        }
        let others: Vec<&'static str> =
            OTHER_TYPES.into_iter().filter(|name| has(name) || *name == "number" && has("integer")).collect();
        match &marked.other {
            // Any text at all is among the strings already.
            Words::One(word) if *word == marked.string && is_plain && has("string") => {}
            Words::One(word) if !others.is_empty() => {
                let types = if has("string") { Some(&others[..]) } else { None };
                ways.extend(self.json_value(&value, types, marked, options)?.map(|node| (*word, node)));
            }
            Words::One(_) => {}
            Words::Types => {
                for word in &others {
                    let types = if others.len() > 1 || has("string") { Some(std::slice::from_ref(word)) } else { None };
                    ways.extend(self.json_value(&value, types, marked, options)?.map(|node| (*word, node)));
                }
            }
        }
        if !refers {
            self.arguments.insert(key, ways.clone());
        }
        Ok(ways)
    }

    /// The strings that a schema allows, as they are; `None` where it allows none.
    pub(super) fn bare(
        &mut self,
        value: &Value<'a>,
        only: bool,
        options: &JsonSchemaOptions,
    ) -> Result<Option<ExprId>, GrammarError> {
        let options = JsonSchemaOptions { spelling: Spelling::Bare, ..options.clone() };
        let types = if only && !value.refers { None } else { Some(&["string"][..]) };
        let Some(grammar) = self.part(value, types, &options)? else { return Ok(None) };
        let Node::Lexeme(expr) = grammar.node(grammar.root()) else {
            unreachable!("strings alone are one lexeme");
        };
        Ok(Some(self.builder.exprs.import(grammar.exprs(), *expr)))
    }

    /// A string, any where it is `None`, up to and with the marker that ends it.
    fn text_value(&mut self, text: Option<ExprId>, marked: &'static Marked, options: &JsonSchemaOptions) -> NodeId {
        let exprs = &mut self.builder.exprs;
        let free = match text {
            None => FreeText::new(exprs, &[marked.close], &[], None),
            Some(text) if marked.own_lines => {
                let text = on_own_lines(exprs, text);
                FreeText::of(exprs, text, &[marked.close], &[])
            }
            Some(text) => FreeText::of(exprs, text, &[marked.close], &[]),
        };
        let whole = free.until(exprs, marked.close);
        let before = free.before(exprs, marked.close);
        let before = self.builder.lexeme(before);
        let ways = markers::until(&mut self.builder, whole, before, marked.close);
        let text = self.builder.choice(&ways);
        let blanks = self.blanks(options);
        let blanks = self.builder.lexeme(blanks);
        self.builder.sequence(&[text, blanks])
    }

    /// JSON up to and with the marker behind it; `None` where the schema allows none of these types.
    fn json_value(
        &mut self,
        value: &Value<'a>,
        types: Option<&[&str]>,
        marked: &'static Marked,
        options: &JsonSchemaOptions,
    ) -> Result<Option<NodeId>, GrammarError> {
        let Some(grammar) = self.part(value, types, options)? else { return Ok(None) };
        let json = self.add(&grammar);
        let blanks = self.blanks(options);
        let before = self.builder.lexeme(blanks);
        let close = self.builder.exprs.literal(marked.close.as_bytes());
        let close = self.builder.exprs.concat_all(&[blanks, close, blanks]);
        let mut closes = vec![self.builder.lexeme(close)];
        if marked.close.starts_with("<|") || marked.close.starts_with("</") {
            let token = markers::literal(&mut self.builder, marked.close);
            closes.push(self.builder.sequence(&[before, token, before]));
        }
        let close = self.builder.choice(&closes);
        Ok(Some(self.builder.sequence(&[before, json, close])))
    }

    /// The grammar of the values of these types; `None` where there are none.
    pub(super) fn part(
        &mut self,
        value: &Value<'a>,
        types: Option<&[&str]>,
        options: &JsonSchemaOptions,
    ) -> Result<Option<Grammar>, GrammarError> {
        let place = value.schema.map_or_else(String::new, |at| self.document.pointer(at));
        let (schema, from) = match types {
            None if !value.refers => (value.text.to_owned(), "#"),
            _ => (self.wrapped(value, types), "#/allOf/0"),
        };
        match reported(&schema, options) {
            Ok(grammar) => {
                self.report.absorb(&grammar.report, &place, from);
                Ok(Some(grammar))
            }
            Err(inner) if inner.kind == ErrorKind::Unsatisfiable && types.is_some() => Ok(None),
            Err(inner) => Err(placed(inner, &place, from)),
        }
    }

    /// The schema of a value with the definitions that it may refer to, restricted to these types.
    fn wrapped(&self, value: &Value<'a>, types: Option<&[&str]>) -> String {
        let mut schema = format!("{{\"allOf\": [{}]", value.text);
        if let Some(types) = types {
            let types: Vec<String> = types.iter().map(|name| format!("\"{name}\"")).collect();
            schema += &format!(", \"type\": [{}]", types.join(", "));
        }
        let root: Option<&Entries<'_>> = self.document.entries(value.root);
        for keyword in ["$schema", "$defs", "definitions"] {
            if let Some(&at) = root.and_then(|root| root.get(keyword)) {
                let text = self.document.spelled(self.text, at);
                schema += &format!(", \"{keyword}\": {text}");
            }
        }
        schema + "}"
    }
}

/// One value whose schema is being lowered.
pub(super) struct Value<'a> {
    pub schema: Option<JsonId>,
    pub text: &'a str,
    /// Whether it refers to definitions outside of itself.
    pub refers: bool,
    /// The schema that `#` means.
    pub root: JsonId,
}

/// The ways to write a text whose reader takes one line break away before it and one behind it. A text that begins or ends
/// with a line break is written with one more there.
fn on_own_lines(exprs: &mut ExprSet, text: ExprId) -> ExprId {
    let line = exprs.literal(b"\n");
    let any = exprs.bytes(ByteSet::ALL);
    let any = exprs.repeat(any, 0, None);
    let (begins, ends) = (exprs.concat(line, any), exprs.concat(any, line));
    let (no_line_before, no_line_behind) = (exprs.not(begins), exprs.not(ends));
    let behind = exprs.and(&[text, no_line_before]);
    let before = exprs.and(&[text, no_line_behind]);
    let alone = exprs.and(&[text, no_line_before, no_line_behind]);
    let ways = [exprs.concat_all(&[line, text, line]), exprs.concat(line, before), exprs.concat(behind, line), alone];
    exprs.or(&ways)
}
