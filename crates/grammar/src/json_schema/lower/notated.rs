//! Arguments and values as literals of a notation of its own: keywords of a call in Python, or names and values as the
//! Gemma models write them.
//!
//! One idea: such a notation is JSON with other words and marks. What a schema asks is merged and planned as for JSON;
//! here the members of objects, strings and the words for true, false and null are spelled, and arrays are those of
//! JSON. As members of other names cannot be distinguished from declared ones by an object of JSON, members are a
//! sequence, or where they mix a bare array whose counters know which of them have come.

use rustc_hash::FxHashMap;
use stencilm_regex::syntax::{Alphabet, Utf8};
use stencilm_regex::{ByteSet, ExprId};
use stencilm_support::check_time;

use super::explain::Branch;
use super::lowering::{Container, Lowering};
use super::notation::{Notated, Notation, Place, Value};
use crate::error::GrammarError;
use crate::ir::free_text::FreeText;
use crate::ir::grammar::{Node, NodeId};
use crate::ir::markers;
use crate::json::kind::Kind;
use crate::json::layout::{LayoutOptions, Surfaces};
use crate::json::strings::Strings;
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::merge::merge;
use crate::json_schema::normal_form::merged::{Clash, Merged};
use crate::json_schema::normal_form::structural_key::Key;
use crate::json_schema::read::document::{Json, JsonId};
use crate::json_schema::read::schema::{SchemaId, Types};

impl<'a> Lowering<'a> {
    /// Configures a lowering for roots whose members are the arguments of a call in this notation.
    pub(crate) fn with_notation(mut self, notation: &'static Notation) -> Result<Lowering<'a>, GrammarError> {
        let separators = (notation.comma.to_string(), notation.colon.to_string());
        let layout = LayoutOptions {
            any_whitespace: false,
            indent: None,
            separators: Some(&separators),
            gaps: None,
            max_whitespace: None,
        };
        self.surfaces = Surfaces::new(&layout)?;
        // Python reads the escapes of JSON, except for the escaped slash and for surrogate pairs.
        self.strings = Strings::minimal(self.options.spelling);
        if !self.options.excludes.is_empty() {
            let excludes: Vec<&str> = self.options.excludes.iter().map(|exclude| &**exclude).collect();
            let exprs = &mut self.builder.exprs;
            let any = exprs.bytes(ByteSet::ALL);
            let any = exprs.repeat(any, 0, None);
            let clean = FreeText::of(exprs, any, &[], &excludes).unended(exprs);
            let quote = exprs.literal(b"\"");
            let clean = exprs.concat_all(&[quote, clean, quote]);
            self.strings.never(excludes.into_iter().map(Box::from).collect(), clean);
        }
        self.notated = Some(Box::new(Notated::new(notation)));
        Ok(self)
    }

    pub(super) fn notated(&mut self) -> &mut Notated<'a> {
        self.notated.as_mut().expect("only a lowering in a notation asks for it")
    }

    pub(super) fn notation(&mut self) -> &'static Notation {
        self.notated().notation
    }

    /// The arguments that a schema allows, without their brackets.
    pub(crate) fn notated_arguments(&mut self, root: SchemaId) -> Result<NodeId, GrammarError> {
        let all = [Term::Holds(root)];
        let alternatives = self.alternatives_or_more(&all)?;
        self.admit()?;
        let (mut renderings, mut branches) = (Vec::new(), Vec::new());
        self.notated().place = Place::Call;
        for alternative in alternatives.iter() {
            let mut merged = merge(&self.normal, alternative);
            if !merged.clashes.is_empty() {
                branches.push(Branch::Impossible(std::mem::take(&mut merged.clashes)));
            }
            if merged.is_impossible() || !merged.types.meets(Types::OBJECT) {
                continue;
            }
            merged.types = Types::OBJECT;
            let Some(values) = &merged.values else {
                let (rendering, branch) = self.with_bare(|this| this.object(&merged, root, 0))?;
                renderings.push(rendering);
                branches.push(branch);
                continue;
            };
            for &value in &values.value {
                if let Json::Object(_) = self.schemas.document.get(value)
                    && self.misfit(value, &merged, 0)?.is_none()
                {
                    renderings.push(self.given(value, values.at, Place::Call)?);
                    branches.push(Branch::Possible);
                }
            }
        }
        self.notated().place = Place::Value;
        while let Some(value) = self.notated().work.pop() {
            self.normal.check_time(root)?;
            self.define_notated(&value)?;
        }
        if branches.is_empty() {
            let message = "no arguments are valid under this schema, which allows no object; loosen it".to_string();
            branches.push(Branch::Impossible(vec![Clash { place: self.schemas.place(root), message }]));
        }
        let node = self.builder.choice(&renderings);
        self.reasons.add(node, root, &mut branches);
        Ok(node)
    }

    /// The rule of a value for which all these terms hold.
    pub(crate) fn notated_value(&mut self, all: &[Term]) -> Result<NodeId, GrammarError> {
        let notated = self.notated.as_mut().expect("only a lowering in a notation asks for it");
        let in_one_way = notated.in_one_way;
        let which = usize::from(in_one_way);
        if let Some(&known) = notated.values[which].get(all) {
            return Ok(known);
        }
        let mut key = Key::default();
        let has_key = matches!(*all, [Term::Holds(id)] if self.schemas.write_key(id, &mut key));
        if has_key && let Some(&known) = notated.by_key[which].get(&*key.said) {
            self.normal.note_used(&key.schemas);
            notated.values[which].insert(all.into(), known);
            return Ok(known);
        }
        let at = all.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(self.schemas.root);
        let rule = self.builder.declare_rule(self.schemas.place(at));
        let node = self.builder.node(Node::Rule(rule));
        let notated = self.notated();
        notated.values[which].insert(all.into(), node);
        if has_key {
            notated.by_key[which].insert(key.said.into(), node);
        }
        notated.work.push(Value { rule, node, all: all.into(), in_one_way });
        Ok(node)
    }

    /// Defines the rule of a value.
    fn define_notated(&mut self, value: &Value) -> Result<(), GrammarError> {
        let all = &*value.all;
        let at = all.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(self.schemas.root);
        self.notated().in_one_way = value.in_one_way;
        let mut branches = Vec::new();
        let mut renderings = self.notated_strings(all, at, &mut branches)?;
        let (numbers, _, mut found) = self.parts_of_types(all, Types::NUMBER, at)?;
        branches.append(&mut found);
        if numbers != ExprId::NOTHING {
            renderings.push(self.lexeme(numbers));
        }
        let words = self.notation().words;
        for (types, plain) in [(Types::BOOLEAN, &["true", "false"][..]), (Types::NULL, &["null"])] {
            let (scalars, _, mut found) = self.parts_of_types(all, types, at)?;
            branches.append(&mut found);
            let all_words = ["true", "false", "null"];
            for (name, word) in all_words.iter().zip(words).filter(|(name, _)| plain.contains(name)) {
                if self.has_text(scalars, name)? {
                    renderings.push(self.spelled(word));
                }
            }
        }
        let (_, containers, mut found) = self.parts_of_types(all, Types::ARRAY.or(Types::OBJECT), at)?;
        branches.append(&mut found);
        for container in containers {
            let (rendering, branch) = match container {
                Container::Value(value) => (self.given(value, at, Place::Value)?, Branch::Possible),
                Container::Name(node) => (node, Branch::Possible),
                Container::Array(merged) => self.notated_array(&merged, at)?,
                Container::Object(merged) => {
                    let (members, branch) = self.with_bare(|this| this.object(&merged, at, 0))?;
                    (self.bracketed("{", members, "}"), branch)
                }
            };
            renderings.push(rendering);
            branches.push(branch);
        }
        let body = if let [only] = *renderings { only } else { self.builder.choice(&renderings) };
        self.builder.define_rule(value.rule, body);
        self.reasons.add(value.node, at, &mut branches);
        Ok(())
    }

    /// An array: as in JSON, except for its elements.
    fn notated_array(&mut self, merged: &Merged<'a>, at: SchemaId) -> Result<(NodeId, Branch), GrammarError> {
        let Some(unique) = merged.unique else { return self.array(merged, at, 0) };
        let notation = self.notation();
        if notation.quote.is_some() {
            let reason = format!("elements are not told apart in the style {:?}; leave it out", notation.name);
            self.relax(unique, "uniqueItems", &reason)?;
            return self.array(&Merged { unique: None, ..merged.clone() }, at, 0);
        }
        let before = std::mem::replace(&mut self.notated().in_one_way, true);
        let array = self.array(merged, at, 0);
        self.notated().in_one_way = before;
        array
    }

    /// The renderings of a string.
    fn notated_strings(
        &mut self,
        all: &[Term],
        at: SchemaId,
        branches: &mut Vec<Branch>,
    ) -> Result<Vec<NodeId>, GrammarError> {
        let Some(quote) = self.notation().quote else {
            let (double, names, mut found) = self.parts_of_types(all, Types::STRING, at)?;
            branches.append(&mut found);
            let mut renderings: Vec<NodeId> = names
                .into_iter()
                .filter_map(|name| if let Container::Name(node) = name { Some(node) } else { None })
                .collect();
            if double != ExprId::NOTHING {
                renderings.push(self.lexeme(double));
                if !self.notated().in_one_way {
                    let (text, is_any) = self.bare_text(all, at, &mut Vec::new())?;
                    renderings.push(self.single_quoted(if is_any { None } else { Some(text) }));
                }
            }
            return Ok(renderings);
        };
        let (text, is_any) = self.bare_text(all, at, branches)?;
        let names = self.with_bare(|this| this.parts_of_types(all, Types::STRING, at))?.1;
        let mut renderings = Vec::with_capacity(1);
        for name in names {
            let Container::Name(name) = name else { continue };
            let (open, close) =
                (markers::literal(&mut self.builder, quote), markers::literal(&mut self.builder, quote));
            renderings.push(self.builder.sequence(&[open, name, close]));
        }
        if text != ExprId::NOTHING {
            renderings.push(self.quoted_text(if is_any { None } else { Some(text) }, quote));
        }
        Ok(renderings)
    }

    /// The bare strings for which all these terms hold, and whether these are all strings.
    fn bare_text(
        &mut self,
        all: &[Term],
        at: SchemaId,
        branches: &mut Vec<Branch>,
    ) -> Result<(ExprId, bool), GrammarError> {
        let (text, _, mut found) = self.with_bare(|this| this.parts_of_types(all, Types::STRING, at))?;
        branches.append(&mut found);
        let any = self.with_bare(|this| Ok(this.strings.any_string(&mut this.builder.exprs, 0, None)))?;
        Ok((text, text == any))
    }

    /// A string in single quotes, as Python usually writes it; any string if `None`. If a schema constrains the string
    /// and it needs escapes, it's written in double quotes only.
    fn single_quoted(&mut self, text: Option<ExprId>) -> NodeId {
        let excludes: Vec<&str> = self.options.excludes.iter().map(|text| &**text).collect();
        let exprs = &mut self.builder.exprs;
        let mark = exprs.literal(b"'");
        let body = match text {
            Some(text) => {
                let signs: ByteSet = [b'\'', b'\\', b'\n', b'\r'].into_iter().collect();
                let plain = exprs.bytes((0..=u8::MAX).filter(|&byte| !signs.contains(byte)).collect());
                let plain = exprs.repeat(plain, 0, None);
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
        let body = if excludes.is_empty() { body } else { FreeText::of(exprs, body, &[], &excludes).unended(exprs) };
        let whole = exprs.concat_all(&[mark, body, mark]);
        self.builder.lexeme(whole)
    }

    /// A string between the quotation marks of the notation, any if `None`; it never contains the mark.
    fn quoted_text(&mut self, text: Option<ExprId>, quote: &'static str) -> NodeId {
        let excludes: Vec<&str> = self.options.excludes.iter().map(|text| &**text).collect();
        let exprs = &mut self.builder.exprs;
        let free = match text {
            None => FreeText::new(exprs, &[quote], &excludes, None),
            Some(text) => FreeText::of(exprs, text, &[quote], &excludes),
        };
        let whole = free.until(exprs, quote);
        let before = free.before(exprs, quote);
        let before = self.builder.lexeme(before);
        let renderings = markers::until(&mut self.builder, whole, before, quote);
        let text = self.builder.choice(&renderings);
        let open = markers::literal(&mut self.builder, quote);
        self.builder.sequence(&[open, text])
    }

    /// A given value, with its members in their order. Parts come before what contains them.
    pub(super) fn given(&mut self, value: JsonId, at: SchemaId, place: Place) -> Result<NodeId, GrammarError> {
        let schemas = self.schemas;
        let document = &schemas.document;
        let words = self.notation().words;
        let mut nodes: FxHashMap<JsonId, NodeId> = FxHashMap::default();
        for id in document.inside(value) {
            check_time().map_err(|limit| GrammarError::limit(document.pointer(value), limit))?;
            let is_root = id == value;
            let body = match document.get(id) {
                Json::Array(items) => {
                    let parts: Vec<NodeId> = items.iter().map(|item| nodes[item]).collect();
                    let inside = self.with_commas(&parts);
                    self.bracketed("[", inside, "]")
                }
                Json::Object(entries) => {
                    let place = if is_root { place } else { Place::Value };
                    self.notated().place = place;
                    let mut parts = Vec::with_capacity(entries.len());
                    for (name, inner) in entries.iter() {
                        let key = self.notated_key(name, at)?;
                        parts.extend(key.map(|key| self.builder.sequence(&[key, nodes[inner]])));
                    }
                    let inside = self.with_commas(&parts);
                    if place == Place::Call { inside } else { self.bracketed("{", inside, "}") }
                }
                Json::Null => self.spelled(words[2]),
                Json::Bool(value) => self.spelled(words[usize::from(!value)]),
                Json::Number(_) => {
                    let number = self.literal_scalar(id, Kind::Number)?;
                    self.lexeme(number)
                }
                Json::String(text) => self.given_string(text),
            };
            // Nested containers are separate rules, which keeps the nodes shallow however deep the value is.
            let node = if matches!(document.get(id), Json::Array(_) | Json::Object(_)) && !is_root {
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

    pub(super) fn given_string(&mut self, text: &str) -> NodeId {
        let bare = self.builder.exprs.literal(text.as_bytes());
        if let Some(quote) = self.notation().quote {
            return self.quoted_text(Some(bare), quote);
        }
        let double = self.strings.literals(&mut self.builder.exprs, &[text]);
        let double = self.lexeme(double);
        if self.notated().in_one_way {
            return double;
        }
        let single = self.single_quoted(Some(bare));
        self.builder.choice(&[double, single])
    }

    /// The parts, separated by commas.
    pub(super) fn with_commas(&mut self, parts: &[NodeId]) -> NodeId {
        let comma = self.notation().comma;
        let comma = self.spelled(comma);
        let mut all = Vec::with_capacity(2 * parts.len());
        for &part in parts {
            if !all.is_empty() {
                all.push(comma);
            }
            all.push(part);
        }
        self.builder.sequence(&all)
    }

    pub(super) fn bracketed(&mut self, open: &str, inside: NodeId, close: &str) -> NodeId {
        let (open, close) = (self.spelled(open), self.spelled(close));
        self.builder.sequence(&[open, inside, close])
    }

    pub(super) fn spelled(&mut self, text: &str) -> NodeId {
        let expr = self.builder.exprs.literal(text.as_bytes());
        self.lexeme(expr)
    }
}
