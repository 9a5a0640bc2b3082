//! Given values (`const`, `enum`) as nodes.
//!
//! A value's parts are numbered before the value itself, so both are one pass over a range of numbers.

use rustc_hash::FxHashMap;
use stencilm_regex::{Decimal, ExprId};
use stencilm_support::check_time;

use super::lowering::Lowering;
use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{DeclaredMember, Members, Node, NodeId};
use crate::json::kind::Kind;
use crate::json::layout::MAX_INDENT_DEPTH;
use crate::json::numbers::{Written, exactly};
use crate::json_schema::read::document::{Json, JsonId};

impl Lowering<'_> {
    /// A null, boolean, number or string.
    pub(crate) fn literal_scalar(&mut self, value: JsonId, kind: Kind) -> Result<ExprId, GrammarError> {
        let schemas = self.schemas;
        let document = &schemas.document;
        let too_long = |limit| GrammarError::limit(document.pointer(value), limit);
        Ok(match document.get(value) {
            Json::Null => self.builder.exprs.literal(b"null"),
            Json::Bool(value) => self.builder.exprs.literal(if *value { b"true" } else { b"false" }),
            Json::String(text) => self.strings.literals_in_time(&mut self.builder.exprs, &[text]).map_err(too_long)?,
            Json::Number(text) => {
                let readable = self.options.integers_as_digits;
                let kind = self.kind_of_value(text, kind);
                let written = Written { kind, spelling: self.options.spelling, readable };
                let number = Decimal::parse(text);
                let number = number.and_then(|number| exactly(&mut self.builder.exprs, &number, written));
                number.ok_or_else(|| {
                    let message = format!("{} needs too many digits; use a smaller number", document.show(value));
                    GrammarError::new(ErrorKind::Limit, document.pointer(value), message)
                })?
            }
            Json::Array(_) | Json::Object(_) => ExprId::NOTHING,
        })
    }

    /// The number form of a given number: digits if it has no point or exponent and integers are written as digits.
    pub(crate) fn kind_of_value(&self, text: &str, kind: Kind) -> Kind {
        let is_integer = self.options.integers_as_digits && !text.contains(['.', 'e', 'E']);
        if kind == Kind::Number && is_integer { Kind::Pointless } else { kind }
    }

    /// Any value, `depth` containers deep.
    pub(crate) fn literal(&mut self, value: JsonId, depth: u32) -> Result<NodeId, GrammarError> {
        let schemas = self.schemas;
        let document = &schemas.document;
        let mut nodes: FxHashMap<JsonId, NodeId> = FxHashMap::default();
        let too_long = |limit| GrammarError::limit(document.pointer(value), limit);
        for id in document.inside(value) {
            check_time().map_err(too_long)?;
            let body = match document.get(id) {
                Json::Array(items) => {
                    let depth = self.depth_inside(value, id, depth)?;
                    let surface = self.surfaces.array(&mut self.builder.exprs, depth);
                    if items.is_empty() {
                        self.lexeme(surface.empty)
                    } else {
                        let separator = self.lexeme(surface.item);
                        let mut parts = vec![self.lexeme(surface.open)];
                        for item in items {
                            if parts.len() > 1 {
                                parts.push(separator);
                            }
                            parts.push(nodes[item]);
                        }
                        parts.push(self.lexeme(surface.close));
                        self.builder.sequence(&parts)
                    }
                }
                Json::Object(entries) => {
                    let depth = self.depth_inside(value, id, depth)?;
                    let surface = self.surfaces.object(&mut self.builder.exprs, depth);
                    let mut known = Vec::with_capacity(entries.len());
                    for (name, inner) in entries.iter() {
                        let key = self.strings.key(&mut self.builder.exprs, name).map_err(too_long)?;
                        known.push(DeclaredMember { name: name.into(), key, value: nodes[inner], required: true });
                    }
                    let ordered = if self.options.any_order { 0 } else { known.len() };
                    let additional = Vec::new();
                    self.builder.object(Members { declared: known, ordered, additional, min: 0, max: None, surface })
                }
                _ => {
                    let scalar = self.literal_scalar(id, Kind::Number)?;
                    self.lexeme(scalar)
                }
            };
            // Nested containers are separate rules, which keeps the nodes shallow however deep the value is.
            let is_container = matches!(document.get(id), Json::Array(_) | Json::Object(_));
            let node = if is_container && id != value {
                let rule = self.builder.declare_rule("value");
                self.builder.define_rule(rule, body);
                self.builder.node(Node::Rule(rule))
            } else {
                body
            };
            nodes.insert(id, node);
        }
        Ok(nodes[&value])
    }

    /// The depth of a part of a given value, if the depth matters.
    fn depth_inside(&self, value: JsonId, part: JsonId, depth: u32) -> Result<u32, GrammarError> {
        if !self.surfaces.depends_on_depth() {
            return Ok(0);
        }
        let document = &self.schemas.document;
        let mut at = part;
        let mut depth = depth;
        while at != value {
            depth += 1;
            match document.parent(at) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        if depth <= MAX_INDENT_DEPTH {
            return Ok(depth);
        }
        let message = format!("indent: the value is nested more than {MAX_INDENT_DEPTH} deep; use any_whitespace");
        Err(GrammarError::new(ErrorKind::Unsupported, document.pointer(value), message))
    }
}
