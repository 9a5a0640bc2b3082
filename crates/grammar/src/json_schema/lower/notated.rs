//! Arguments and values as literals of a notation of its own: keywords of a call in Python, or names and values as the Gemma
//! models write them.
//!
//! One idea: such a notation is JSON with other words and marks. What a schema asks is merged and planned as for JSON; here the
//! members of objects, strings and the words for true, false and null are spelled, and arrays are those of JSON. As members of
//! other names cannot be told from known ones by an object of JSON, members are a sequence, or where they mix a bare array whose
//! counters know which of them have come.

use rustc_hash::FxHashMap;
use stencilm_regex::syntax::{Alphabet, Utf8};
use stencilm_regex::{ByteSet, ExprId, check_time};

use super::explain::{Branch, Need, What};
use super::lowering::{Container, Lowering};
use super::notation::{Mixed, Notated, Notation, Place, Value};
use super::objects::{Class, Member};
use crate::error::GrammarError;
use crate::ir::free_text::FreeText;
use crate::ir::grammar::{ArraySurface, Element, Items, Node, NodeId, Repeats};
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

/// Most members that come in any order: one counter each, and one array for each that may be the first.
const MAX_MIXED: usize = 32;
/// Most states of members that are in order and counted.
const MAX_COUNTED: usize = 20_000;

/// Words that cannot name an argument in Python.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];
/// What no name holds that is written without quotes.
const NOT_IN_NAMES: [char; 8] = ['{', '}', '[', ']', ':', ',', '<', ' '];

impl<'a> Lowering<'a> {
    /// The same for roots whose members are the arguments of a call in this notation.
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
        // Python reads the escapes of JSON but for a slash and for pairs of surrogates.
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

    fn notated(&mut self) -> &mut Notated<'a> {
        self.notated.as_mut().expect("only a lowering in a notation asks for it")
    }

    fn notation(&mut self) -> &'static Notation {
        self.notated().notation
    }

    /// The arguments that a schema allows, without what stands around them.
    pub(crate) fn notated_arguments(&mut self, root: SchemaId) -> Result<NodeId, GrammarError> {
        let all = [Term::Holds(root)];
        let alternatives = self.alternatives_or_more(&all)?;
        self.admit()?;
        let (mut ways, mut branches) = (Vec::new(), Vec::new());
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
                let (way, branch) = self.with_bare(|this| this.object(&merged, root, 0))?;
                ways.push(way);
                branches.push(branch);
                continue;
            };
            for &value in &values.value {
                if let Json::Object(_) = self.schemas.document.get(value)
                    && self.misfit(value, &merged, 0)?.is_none()
                {
                    ways.push(self.given(value, values.at, Place::Call)?);
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
        let node = self.builder.choice(&ways);
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
        if has_key && let Some(&known) = notated.alike[which].get(&*key.said) {
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
            notated.alike[which].insert(key.said.into(), node);
        }
        notated.work.push(Value { rule, node, all: all.into(), in_one_way });
        Ok(node)
    }

    /// Lays out the rule of a value.
    fn define_notated(&mut self, value: &Value) -> Result<(), GrammarError> {
        let all = &*value.all;
        let at = all.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(self.schemas.root);
        self.notated().in_one_way = value.in_one_way;
        let mut branches = Vec::new();
        let mut ways = self.notated_strings(all, at, &mut branches)?;
        let (numbers, _, mut found) = self.parts_of_types(all, Types::NUMBER, at)?;
        branches.append(&mut found);
        if numbers != ExprId::NOTHING {
            ways.push(self.lexeme(numbers));
        }
        let words = self.notation().words;
        for (types, plain) in [(Types::BOOLEAN, &["true", "false"][..]), (Types::NULL, &["null"])] {
            let (scalars, _, mut found) = self.parts_of_types(all, types, at)?;
            branches.append(&mut found);
            let all_words = ["true", "false", "null"];
            for (name, word) in all_words.iter().zip(words).filter(|(name, _)| plain.contains(name)) {
                if self.has_text(scalars, name) {
                    ways.push(self.spelled(word));
                }
            }
        }
        let (_, containers, mut found) = self.parts_of_types(all, Types::ARRAY.or(Types::OBJECT), at)?;
        branches.append(&mut found);
        for container in containers {
            let (way, branch) = match container {
                Container::Value(value) => (self.given(value, at, Place::Value)?, Branch::Possible),
                Container::Name(node) => (node, Branch::Possible),
                Container::Array(merged) => self.notated_array(&merged, at)?,
                Container::Object(merged) => {
                    let (members, branch) = self.with_bare(|this| this.object(&merged, at, 0))?;
                    (self.bracketed("{", members, "}"), branch)
                }
            };
            ways.push(way);
            branches.push(branch);
        }
        let body = if let [only] = *ways { only } else { self.builder.choice(&ways) };
        self.builder.define_rule(value.rule, body);
        self.reasons.add(value.node, at, &mut branches);
        Ok(())
    }

    /// An array, which is one of JSON but for what its elements are.
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

    /// The ways to write a string.
    fn notated_strings(
        &mut self,
        all: &[Term],
        at: SchemaId,
        branches: &mut Vec<Branch>,
    ) -> Result<Vec<NodeId>, GrammarError> {
        let Some(quote) = self.notation().quote else {
            let (double, names, mut found) = self.parts_of_types(all, Types::STRING, at)?;
            branches.append(&mut found);
            let mut ways: Vec<NodeId> = names
                .into_iter()
                .filter_map(|name| if let Container::Name(node) = name { Some(node) } else { None })
                .collect();
            if double != ExprId::NOTHING {
                ways.push(self.lexeme(double));
                if !self.notated().in_one_way {
                    let (text, is_any) = self.bare_text(all, at, &mut Vec::new())?;
                    ways.push(self.single_quoted(if is_any { None } else { Some(text) }));
                }
            }
            return Ok(ways);
        };
        let (text, is_any) = self.bare_text(all, at, branches)?;
        let names = self.with_bare(|this| this.parts_of_types(all, Types::STRING, at))?.1;
        let mut ways = Vec::with_capacity(1);
        for name in names {
            let Container::Name(name) = name else { continue };
            let (open, close) =
                (markers::literal(&mut self.builder, quote), markers::literal(&mut self.builder, quote));
            ways.push(self.builder.sequence(&[open, name, close]));
        }
        if text != ExprId::NOTHING {
            ways.push(self.quoted_text(if is_any { None } else { Some(text) }, quote));
        }
        Ok(ways)
    }

    /// The strings for which all these terms hold, as they are, and whether these are all there are.
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

    /// A string in single quotes, as Python writes most; any where it is `None`. One that needs escapes is left to double
    /// quotes where a schema bounds it.
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

    /// A string between the marks of the notation, any where it is `None`; it never holds the mark.
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
        let ways = markers::until(&mut self.builder, whole, before, quote);
        let text = self.builder.choice(&ways);
        let open = markers::literal(&mut self.builder, quote);
        self.builder.sequence(&[open, text])
    }

    /// A value that is given, its members in their order; parts come before what they are parts of.
    fn given(&mut self, value: JsonId, at: SchemaId, place: Place) -> Result<NodeId, GrammarError> {
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
            // Containers inside are rules of their own, which keeps the nodes shallow however deep the value is.
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

    fn given_string(&mut self, text: &str) -> NodeId {
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

    /// Parts with a comma between each two.
    fn with_commas(&mut self, parts: &[NodeId]) -> NodeId {
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

    fn bracketed(&mut self, open: &str, inside: NodeId, close: &str) -> NodeId {
        let (open, close) = (self.spelled(open), self.spelled(close));
        self.builder.sequence(&[open, inside, close])
    }

    fn spelled(&mut self, text: &str) -> NodeId {
        let expr = self.builder.exprs.literal(text.as_bytes());
        self.lexeme(expr)
    }

    /// The members of an object; the rest of [`Lowering::object`] where they are literals.
    pub(crate) fn notated_members(
        &mut self,
        merged: &Merged,
        least: u32,
        known: &[Member],
        classes: &[Class],
        at: SchemaId,
    ) -> Result<(NodeId, Branch), GrammarError> {
        let mut needs = Vec::new();
        let mut clash = self.forbidden_clash(known);
        let (mut ordered, mut mixed) = (Vec::new(), Mixed::default());
        for member in known.iter().filter(|member| !member.is_forbidden) {
            let value = self.notated_value(member.value)?;
            let value_at = member.value.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(at);
            let Some(key) = self.notated_key(member.name, value_at)? else { continue };
            let node = self.builder.sequence(&[key, value]);
            if let Some(at) = member.required {
                needs.push(Need::new(value, at, What::Required(member.name.into())));
                if self.options.excludes.iter().any(|exclude| member.name.contains(&**exclude)) {
                    let message = format!("the key {:?} is asked for, and holds what is excluded", member.name);
                    clash.get_or_insert(Clash { place: self.schemas.place(at), message });
                }
            }
            if member.is_declared && !self.options.any_order {
                ordered.push((member.name, node, member.required.is_some()));
            } else {
                mixed.named.push((node, member.required.is_some()));
            }
        }
        for class in classes {
            let Some(key) = self.other_key(class.key, known) else { continue };
            let value = self.notated_value(class.value)?;
            let node = self.builder.sequence(&[key, value]);
            let some = match class.some {
                Some(some) => {
                    let some = self.notated_value(some)?;
                    Some(self.builder.sequence(&[key, some]))
                }
                None => None,
            };
            mixed.others.push((node, some));
        }
        let count = ordered.len() + mixed.named.len();
        let named = mixed.others.is_empty().then_some(count);
        let clash = clash.or_else(|| self.count_clash(merged, least, named, at));
        if let Some(clash) = clash {
            return Ok((self.builder.choice(&[]), Branch::Impossible(vec![clash])));
        }
        let required = ordered.iter().map(|member| member.2).chain(mixed.named.iter().map(|member| member.1));
        let required = required.filter(|is_required| *is_required).count() as u32;
        let bounds = (
            if least > required { least } else { 0 },
            merged.max_members.filter(|&max| !mixed.others.is_empty() || (max as usize) < count),
        );
        let node = self.in_orders(ordered, mixed, bounds, at)?;
        Ok((node, if needs.is_empty() { Branch::Possible } else { Branch::Needs(needs) }))
    }

    /// Members in the order of the schema, or of their names where the notation sorts them.
    fn in_orders(
        &mut self,
        mut ordered: Vec<(&str, NodeId, bool)>,
        mut mixed: Mixed,
        mut bounds: (u32, Option<u32>),
        at: SchemaId,
    ) -> Result<NodeId, GrammarError> {
        let counters = mixed.named.len() + mixed.others.iter().filter(|(_, some)| some.is_some()).count();
        if counters > MAX_MIXED {
            let reason = format!(
                "{counters} members may come in any order, and in a notation of literals at most {MAX_MIXED} may; declare \
                 them in order"
            );
            self.relax(at, "properties", &reason)?;
            let over = counters - MAX_MIXED;
            let kept = mixed.named.len().saturating_sub(over);
            ordered.extend(mixed.named.drain(kept..).map(|(node, required)| ("", node, required)));
        }
        let counts = bounds.1.unwrap_or(bounds.0).max(1) as usize;
        if (ordered.len() + 1).saturating_mul(counts.min(ordered.len()) + 1) > MAX_COUNTED {
            let reason = "too many members are in order and counted at once; leave one of the two out";
            self.relax(at, "minProperties, maxProperties", reason)?;
            bounds = (0, None);
        }
        let declared: Vec<(NodeId, bool)> = ordered.iter().map(|&(_, node, required)| (node, required)).collect();
        let in_order = self.in_order(&declared, &mixed, bounds);
        ordered.sort_by_key(|&(name, ..)| name);
        let sorted: Vec<(NodeId, bool)> = ordered.iter().map(|&(_, node, required)| (node, required)).collect();
        if !self.notation().sorted || sorted == declared {
            return Ok(in_order);
        }
        let sorted = self.in_order(&sorted, &mixed, bounds);
        Ok(self.builder.choice(&[in_order, sorted]))
    }

    /// Members one after the other, those that may be left out or not, then those that mix, with commas between those that are
    /// there, in all `min` to `max` of them.
    fn in_order(&mut self, ordered: &[(NodeId, bool)], mixed: &Mixed, (min, max): (u32, Option<u32>)) -> NodeId {
        let comma = self.notation().comma;
        let comma = self.spelled(comma);
        // After every member, by how many have come; where that makes no difference any more, the greatest stands for all that
        // are more. One and none always differ, by the comma.
        let most = max.unwrap_or(min).max(1) as usize;
        let counts = if max.is_some() { most.min(ordered.len()) } else { most.min(ordered.len().max(1)) };
        let mut after = Vec::with_capacity(counts + 1);
        for count in 0..=counts as u32 {
            let left = (min.saturating_sub(count), max.map(|max| max.saturating_sub(count)));
            after.push(if count == 0 {
                self.first_mixed(mixed, comma, left)
            } else {
                self.more_mixed(mixed, comma, left)
            });
        }
        let mut required = ordered.iter().filter(|(_, is_required)| *is_required).count();
        for (place, &(member, is_required)) in ordered.iter().enumerate().rev() {
            required -= usize::from(is_required);
            // Only what can have come before it is laid out: those that are required, and of the others any.
            let mut before = vec![after[0]; counts + 1];
            for count in required.min(counts)..=place.min(counts) {
                let mut ways = Vec::with_capacity(2);
                let next = if count < counts { Some(count + 1) } else { max.is_none().then_some(counts) };
                if let Some(next) = next {
                    let parts = [comma, member, after[next]];
                    ways.push(self.builder.sequence(if count == 0 { &parts[1..] } else { &parts }));
                }
                if !is_required {
                    ways.push(after[count]);
                }
                let rule = self.builder.declare_rule("members");
                let body = self.builder.choice(&ways);
                self.builder.define_rule(rule, body);
                before[count] = self.builder.node(Node::Rule(rule));
            }
            after = before;
        }
        after[0]
    }

    /// Members in any order where nothing stands before them.
    fn first_mixed(&mut self, mixed: &Mixed, comma: NodeId, (min, max): (u32, Option<u32>)) -> NodeId {
        let needs_one = min > 0
            || mixed.named.iter().any(|(_, is_required)| *is_required)
            || mixed.others.iter().any(|(_, some)| some.is_some());
        let mut ways = if needs_one { Vec::new() } else { vec![self.builder.sequence(&[])] };
        let left = (min.saturating_sub(1), max.map(|max| max.saturating_sub(1)));
        let may_come = max != Some(0);
        for index in (0..mixed.named.len()).filter(|_| may_come) {
            let mut rest = mixed.clone();
            let (member, _) = rest.named.remove(index);
            let more = self.more_mixed(&rest, comma, left);
            ways.push(self.builder.sequence(&[member, more]));
        }
        for (index, &(other, some)) in mixed.others.iter().enumerate().filter(|_| may_come) {
            let more = self.more_mixed(mixed, comma, left);
            ways.push(self.builder.sequence(&[other, more]));
            if let Some(some) = some {
                let mut rest = mixed.clone();
                rest.others[index].1 = None;
                let more = self.more_mixed(&rest, comma, left);
                ways.push(self.builder.sequence(&[some, more]));
            }
        }
        if let [only] = ways[..] { only } else { self.builder.choice(&ways) }
    }

    /// Members in any order where others stand before them, each after a comma: a bare array, or a plain repetition where nothing
    /// in it is told apart.
    fn more_mixed(&mut self, mixed: &Mixed, comma: NodeId, (min, max): (u32, Option<u32>)) -> NodeId {
        let mut contains = Vec::new();
        let mut rest = Vec::new();
        for &(member, is_required) in &mixed.named {
            let value = self.builder.sequence(&[comma, member]);
            rest.push(Element { value, counts: 1 << contains.len() });
            contains.push((u32::from(is_required), Some(1)));
        }
        for &(other, some) in &mixed.others {
            if let Some(some) = some {
                let value = self.builder.sequence(&[comma, some]);
                rest.push(Element { value, counts: 1 << contains.len() });
                contains.push((1, None));
            }
            let value = self.builder.sequence(&[comma, other]);
            rest.push(Element { value, counts: 0 });
        }
        if contains.is_empty() {
            let values: Vec<NodeId> = rest.iter().map(|element| element.value).collect();
            let value = if let [only] = values[..] { only } else { self.builder.choice(&values) };
            return self.builder.repeat(value, min, if values.is_empty() { Some(0) } else { max });
        }
        let nothing = ExprId::EMPTY;
        let surface = ArraySurface { empty: nothing, open: nothing, item: nothing, close: nothing };
        self.builder.array(Items {
            prefix: Vec::new(),
            rest: rest.into(),
            min,
            max,
            contains,
            repeats: Repeats::Any,
            surface,
        })
    }

    /// The name of a member with what stands between it and its value; `None` where the notation has no such name, and it is
    /// left out.
    fn notated_key(&mut self, name: &str, at: SchemaId) -> Result<Option<NodeId>, GrammarError> {
        let notation = self.notation();
        let place = self.notated().place;
        if self.options.excludes.iter().any(|exclude| name.contains(&**exclude)) {
            return Ok(Some(self.builder.choice(&[])));
        }
        if place == Place::Value && notation.quote.is_none() {
            let key = self.given_string(name);
            let colon = self.spelled(notation.colon);
            return Ok(Some(self.builder.sequence(&[key, colon])));
        }
        let is_name = !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        let is_plain = if notation.quote.is_some() {
            !name.is_empty() && !name.contains(NOT_IN_NAMES) && !name.contains(char::is_control)
        } else {
            is_name && !KEYWORDS.contains(&name)
        };
        if is_plain {
            let sign = if place == Place::Call { notation.assign } else { notation.colon };
            return Ok(Some(self.spelled(&format!("{name}{sign}"))));
        }
        let reason = format!(
            "{name:?} is no name of an argument in the style {:?}; rename it, relax the format, or use the style \"json\"",
            notation.name
        );
        self.relax(at, "properties", &reason)?;
        Ok(None)
    }

    /// The names of a class that can be written at a place.
    fn notated_names(&mut self, of_class: ExprId, place: Place) -> ExprId {
        if let Some(&known) = self.notated().names.get(&(of_class, place)) {
            return known;
        }
        let notation = self.notation();
        let exprs = &mut self.builder.exprs;
        let mut all = vec![of_class];
        if notation.quote.is_some() {
            let letters: ByteSet = (b'!'..=u8::MAX)
                .filter(|&byte| byte != 0x7f && !b"\"'".contains(&byte) && !NOT_IN_NAMES.contains(&char::from(byte)))
                .collect();
            let letter = exprs.bytes(letters);
            all.push(exprs.repeat(letter, 1, None));
        } else if place == Place::Call {
            let letters: ByteSet = (b'a'..=b'z').chain(b'A'..=b'Z').chain([b'_']).collect();
            let first = exprs.bytes(letters);
            let letters: ByteSet = (b'a'..=b'z').chain(b'A'..=b'Z').chain(b'0'..=b'9').chain([b'_']).collect();
            let rest = exprs.bytes(letters);
            let rest = exprs.repeat(rest, 0, None);
            all.push(exprs.concat(first, rest));
            let keywords = exprs.literals(&KEYWORDS);
            all.push(exprs.not(keywords));
        }
        let written = exprs.and(&all);
        self.notated().names.insert((of_class, place), written);
        written
    }

    /// A name of a class of those that no schema names, with what stands before the value; `None` where there is none.
    fn other_key(&mut self, of_class: ExprId, known: &[Member]) -> Option<NodeId> {
        let notation = self.notation();
        let place = self.notated().place;
        let is_quoted = place == Place::Value && notation.quote.is_none();
        let sign = if place == Place::Call { notation.assign } else { notation.colon };
        let excludes: Vec<&str> = self.options.excludes.iter().map(|exclude| &**exclude).collect();
        let written = self.notated_names(of_class, place);
        let exprs = &mut self.builder.exprs;
        let known: Vec<&str> = known.iter().map(|member| member.name).collect();
        let known = exprs.literals(&known);
        let others = exprs.not(known);
        let mut name = exprs.and(&[written, others]);
        if !excludes.is_empty() {
            name = FreeText::of(exprs, name, &[], &excludes).unended(exprs);
        }
        if is_quoted {
            let marks: &[u8] = if self.notated().in_one_way { b"\"" } else { b"\"'" };
            let exprs = &mut self.builder.exprs;
            let mut ways = Vec::with_capacity(marks.len());
            for &mark in marks {
                // Names that need no escapes.
                let letters = (b' '..=u8::MAX).filter(|&byte| byte != mark && byte != b'\\' && byte != 0x7f).collect();
                let letter = exprs.bytes(letters);
                let plain = exprs.repeat(letter, 0, None);
                let (mark, plain) = (exprs.bytes(ByteSet::of(mark)), exprs.and(&[name, plain]));
                ways.push(exprs.concat_all(&[mark, plain, mark]));
            }
            name = exprs.or(&ways);
        }
        let exprs = &mut self.builder.exprs;
        let sign = exprs.literal(sign.as_bytes());
        let key = exprs.concat(name, sign);
        // Of all names there are more than are known and excluded.
        let every = self.with_bare(|this| Ok(this.strings.any_string(&mut this.builder.exprs, 0, None))).ok();
        if every == Some(of_class) && self.options.excludes.is_empty() {
            return Some(self.builder.live_lexeme(key));
        }
        let (checker, copy) = self.checker(key);
        match checker.is_live(copy) {
            Ok(true) => Some(self.builder.live_lexeme(key)),
            Ok(false) => None,
            // Where that takes too long to tell, the grammar as a whole is told of it.
            Err(_) => Some(self.builder.lexeme(key)),
        }
    }
}
