//! The arguments of a call between markers that nest: the members of objects and the elements of arrays are written like
//! the arguments themselves, and only numbers, booleans and strings as text.
//!
//! One idea: a schema is a rule, and the rules are laid out from a list of those still to do. So a schema that refers to
//! itself is a rule that does, and nothing here recurses.
//!
//! A marker that closes repeats the name of the one that opened, which no grammar can do for names that it does not know:
//! there are only the arguments that a schema declares.

use rustc_hash::FxHashMap;

use super::arguments::{ANNOTATIONS, SILENT, Value};
use super::fields::error;
use super::lower::Lowering;
use super::markers::{self, NAMESPACE};
use crate::error::{ErrorKind, GrammarError};
use crate::free_text::FreeText;
use crate::grammar::{Node, NodeId, RuleId};
use crate::json_schema::JsonSchemaOptions;
use crate::json_schema::document::{Entries, Json, JsonId};

/// Around each element of an array.
const ITEM: &str = "item";
/// Types whose values are written as text.
const SCALARS: [&str; 3] = ["number", "integer", "boolean"];

/// The rules of the schemas that were met.
struct Nested<'o> {
    /// The schema that `#` means.
    root: JsonId,
    options: &'o JsonSchemaOptions,
    rules: FxHashMap<JsonId, RuleId>,
    work: Vec<(JsonId, RuleId)>,
}

impl<'a> Lowering<'a> {
    /// Every argument that a schema declares, in its order.
    pub(super) fn nested_arguments(
        &mut self,
        root: JsonId,
        options: &JsonSchemaOptions,
    ) -> Result<NodeId, GrammarError> {
        if options.any_order {
            return Err(self.not_in_any_order(root));
        }
        let mut nested = Nested { root, options, rules: FxHashMap::default(), work: Vec::new() };
        let at = self.behind_references(root, root)?;
        let node = match self.document.get(at) {
            Json::Object(entries) => self.members(&mut nested, at, entries)?,
            Json::Bool(true) => self.builder.sequence(&[]),
            other => {
                let message = format!("the arguments of a call are an object, not what {} describes", other.kind());
                return Err(error(self.document, at, message));
            }
        };
        while let Some((at, rule)) = nested.work.pop() {
            let body = self.nested_value(&mut nested, at)?;
            self.builder.define_rule(rule, body);
        }
        Ok(node)
    }

    /// The rule of a schema.
    fn nested_rule(&mut self, nested: &mut Nested<'_>, at: JsonId) -> Result<NodeId, GrammarError> {
        let at = self.behind_references(at, nested.root)?;
        let rule = match nested.rules.get(&at) {
            Some(&rule) => rule,
            None => {
                let rule = self.declare("argument");
                nested.rules.insert(at, rule);
                nested.work.push((at, rule));
                rule
            }
        };
        Ok(self.builder.node(Node::Rule(rule)))
    }

    /// A value between the markers of a name.
    fn between(&mut self, name: &str, value: NodeId) -> NodeId {
        let open = markers::literal(&mut self.builder, &format!("{NAMESPACE}<{name}>"));
        let close = markers::literal(&mut self.builder, &format!("{NAMESPACE}</{name}>"));
        self.builder.sequence(&[open, value, close])
    }

    /// The members of an object, in the order of the schema.
    fn members(
        &mut self,
        nested: &mut Nested<'_>,
        at: JsonId,
        entries: &'a Entries<'a>,
    ) -> Result<NodeId, GrammarError> {
        self.only(entries, &["type", "properties", "required", "additionalProperties"], "members between markers")?;
        if let Some(&others) = entries.get("additionalProperties")
            && !matches!(self.document.get(others), Json::Bool(false))
        {
            let message = "names that a schema does not declare cannot be written between markers that nest, because \
                           the closing one repeats the name; declare them, or leave additionalProperties out, which \
                           means none here";
            return Err(GrammarError::new(ErrorKind::Unsupported, self.document.pointer(others), message));
        }
        let required = self.required(entries)?;
        let properties = match entries.get("properties") {
            None => None,
            Some(&value) => match self.document.entries(value) {
                Some(properties) => Some(properties),
                None => return Err(error(self.document, value, "properties must be an object")),
            },
        };
        if let Some(missing) = required.iter().find(|name| properties.is_none_or(|known| known.get(name).is_none())) {
            let message = format!("{missing:?} is required, but not among the properties; declare it");
            return Err(GrammarError::new(ErrorKind::Unsatisfiable, self.document.pointer(at), message));
        }
        let blanks = self.blanks(nested.options);
        let blanks = self.builder.lexeme(blanks);
        let mut parts = vec![blanks];
        for (name, &schema) in properties.into_iter().flat_map(|properties| properties.iter()) {
            self.check_name(name, schema)?;
            let value = self.nested_rule(nested, schema)?;
            let argument = self.between(name, value);
            let argument = self.builder.sequence(&[argument, blanks]);
            parts.push(if required.contains(&name) { argument } else { self.builder.repeat(argument, 0, Some(1)) });
        }
        Ok(self.builder.sequence(&parts))
    }

    /// The elements of an array.
    fn elements(
        &mut self,
        nested: &mut Nested<'_>,
        at: JsonId,
        entries: &'a Entries<'a>,
    ) -> Result<NodeId, GrammarError> {
        self.only(entries, &["type", "items", "minItems", "maxItems"], "elements between markers")?;
        let Some(&items) = entries.get("items") else {
            let message = "elements between markers need a schema; say what `items` are";
            return Err(GrammarError::new(ErrorKind::Unsupported, self.document.pointer(at), message));
        };
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
        let value = self.nested_rule(nested, items)?;
        let blanks = self.blanks(nested.options);
        let blanks = self.builder.lexeme(blanks);
        let element = self.between(ITEM, value);
        let element = self.builder.sequence(&[element, blanks]);
        let elements = self.builder.repeat(element, min, max);
        Ok(self.builder.sequence(&[blanks, elements]))
    }

    /// What a schema allows, up to the marker behind it.
    fn nested_value(&mut self, nested: &mut Nested<'_>, at: JsonId) -> Result<NodeId, GrammarError> {
        let entries = match self.document.get(at) {
            Json::Bool(true) => return Ok(self.nested_text(None)),
            Json::Bool(false) => return Ok(self.builder.choice(&[])),
            Json::Object(entries) => entries,
            other => {
                let message = format!("a schema is an object or a boolean, not {}", other.kind());
                return Err(error(self.document, at, message));
            }
        };
        for keyword in ["anyOf", "oneOf"] {
            if let Some(&any) = entries.get(keyword) {
                self.only(entries, &[keyword], "values between markers")?;
                let Json::Array(schemas) = self.document.get(any) else {
                    return Err(error(self.document, any, format!("{keyword} must be an array of schemas")));
                };
                let mut ways = Vec::with_capacity(schemas.len());
                for &schema in schemas {
                    ways.push(self.nested_rule(nested, schema)?);
                }
                return Ok(self.builder.choice(&ways));
            }
        }
        let declared = entries.get("type").map(|&value| self.types(value));
        let has = |name: &str| declared.as_ref().is_none_or(|types| types.contains(&name));
        let says = |keyword: &str| declared.is_some() || entries.get(keyword).is_some();
        let mut ways = Vec::new();
        if has("object") && says("properties") {
            ways.push(self.members(nested, at, entries)?);
        }
        if has("array") && says("items") {
            ways.push(self.elements(nested, at, entries)?);
        }
        let text = self.document.spelled(self.text, at);
        let refers = text.contains("\"$ref\"") || text.contains("\"$dynamicRef\"");
        let value = Value { schema: Some(at), text, refers, root: nested.root };
        let is_plain = entries.keys().all(|keyword| ANNOTATIONS.contains(&keyword));
        if has("string") {
            let strings = if is_plain { Some(None) } else { self.bare(&value, false, nested.options)?.map(Some) };
            ways.extend(strings.map(|strings| self.nested_text(strings)));
        }
        let scalars: Vec<&str> = SCALARS.into_iter().filter(|name| has(name)).collect();
        // Any text at all is among the strings already.
        let is_said = scalars.is_empty() || (is_plain && has("string"));
        if !is_said && let Some(grammar) = self.part(&value, Some(&scalars), nested.options)? {
            ways.push(self.add(&grammar));
        }
        Ok(self.builder.choice(&ways))
    }

    /// A string as it is, any where it is `None`, which the next marker ends.
    fn nested_text(&mut self, text: Option<stencilm_regex::ExprId>) -> NodeId {
        let exprs = &mut self.builder.exprs;
        let free = match text {
            None => FreeText::new(exprs, &[NAMESPACE], &[], None),
            Some(text) => FreeText::of(exprs, text, &[NAMESPACE], &[]),
        };
        let text = free.unended(exprs);
        self.builder.lexeme(text)
    }

    /// Refuses keywords other than these and those that say nothing about what is valid.
    fn only(&self, entries: &Entries<'_>, read: &[&str], over: &str) -> Result<(), GrammarError> {
        for (keyword, &value) in entries.iter() {
            if !read.contains(&keyword) && !SILENT.contains(&keyword) && !keyword.starts_with("x-") {
                let message =
                    format!("{keyword} cannot be enforced over {over}; leave it out, or use the style \"json\"");
                return Err(GrammarError::new(ErrorKind::Unsupported, self.document.pointer(value), message));
            }
        }
        Ok(())
    }
}
