//! Objects whose members are written one by one, each between markers, as models write the arguments of a call.
//!
//! One idea: what a schema asks of an object is what it asks of one in JSON, so the same plan of its members is laid out, with
//! other text around them. Strings stand as they are, up to the marker behind them, and so do all values in a style whose
//! markers nest; what such markers cannot hold is JSON, within the value that needs it.
//!
//! Members in a fixed order are a sequence. Where they mix, or are counted, they are the elements of a bare array, whose
//! counters know which of them have come.

use std::rc::Rc;

use stencilm_regex::{ByteSet, ExprId};

use super::explain::{Branch, Need, What};
use super::lowering::{Container, Lowering, Task};
use super::marking::{Argument, End, Marking, Nested, Others, Way};
use super::objects::{Class, Member};
use crate::error::GrammarError;
use crate::ir::free_text::FreeText;
use crate::ir::grammar::{ArraySurface, Element, Items, Node, NodeId, Repeats};
use crate::ir::markers;
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::merge::merge;
use crate::json_schema::normal_form::merged::{Clash, Merged};
use crate::json_schema::options::JsonSchemaOptions;
use crate::json_schema::read::document::{Json, JsonId};
use crate::json_schema::read::schema::{SchemaId, Types, type_of};

/// Most members that come in any order beside others: one counter each.
const MAX_MIXED: usize = 32;
/// Most states of members that are in order and counted.
const MAX_COUNTED: usize = 20_000;

impl<'a> Lowering<'a> {
    /// Makes ready what values between markers are made of.
    pub(crate) fn prepare_marking(&mut self) {
        let Some(marking) = &mut self.marking else { return };
        let exprs = &mut self.builder.exprs;
        marking.blanks = blanks(exprs, self.options);
        let stop = marking.marked.stop();
        let excludes: Vec<&str> = self.options.excludes.iter().map(|exclude| &**exclude).collect();
        let unended = without(exprs, &[stop]);
        let clean = without(exprs, &excludes);
        marking.clean = exprs.and(&[unended, clean]);
        // Quotes are no part of what is excluded.
        let quote = exprs.literal(b"\"");
        let clean = exprs.concat_all(&[quote, clean, quote]);
        let strings = if excludes.is_empty() { unended } else { exprs.and(&[unended, clean]) };
        let never = std::iter::once(stop).chain(excludes).map(Box::from).collect();
        self.strings.never(never, strings);
    }

    fn marking(&mut self) -> &mut Marking<'a> {
        self.marking.as_mut().expect("only a lowering with markers asks for them")
    }

    /// Exchanges the strings of JSON with those as they are, or back.
    pub(super) fn exchange_strings(&mut self) {
        let (strings, patterns) = match (&mut self.marking, &mut self.notated) {
            (Some(marking), _) => (&mut marking.strings, &mut marking.patterns),
            (None, Some(notated)) => (&mut notated.strings, &mut notated.patterns),
            (None, None) => unreachable!("only a lowering of arguments has strings as they are"),
        };
        std::mem::swap(&mut self.strings, strings);
        std::mem::swap(&mut self.patterns, patterns);
    }

    /// Does something with strings as they are.
    pub(super) fn with_bare<T>(
        &mut self,
        then: impl FnOnce(&mut Self) -> Result<T, GrammarError>,
    ) -> Result<T, GrammarError> {
        self.exchange_strings();
        let made = then(self);
        self.exchange_strings();
        made
    }

    /// The members of the objects that a schema allows.
    pub(crate) fn arguments(&mut self, root: SchemaId) -> Result<NodeId, GrammarError> {
        let all = [Term::Holds(root)];
        let alternatives = self.alternatives_or_more(&all)?;
        self.admit()?;
        let (mut ways, mut branches) = (Vec::new(), Vec::new());
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
                let (way, branch) = self.with_bare(|this| this.marked_object(&merged, root))?;
                ways.push(way);
                branches.push(branch);
                continue;
            };
            for &value in &values.value {
                if let Json::Object(_) = self.schemas.document.get(value)
                    && self.misfit(value, &merged, 0)?.is_none()
                {
                    ways.push(self.given_arguments(value, values.at)?);
                    branches.push(Branch::Possible);
                }
            }
        }
        self.define_all()?;
        while let Some(Nested { rule, at, merged, is_object }) = self.marking().work.pop() {
            let (body, branch) = if is_object {
                self.with_bare(|this| this.marked_object(&merged, at))?
            } else {
                self.marked_elements(&merged, at)?
            };
            self.builder.define_rule(rule, body);
            let node = self.builder.node(Node::Rule(rule));
            self.reasons.add(node, at, &mut vec![branch]);
            self.define_all()?;
        }
        if branches.is_empty() {
            let message = "no arguments are valid under this schema, which allows no object; loosen it".to_string();
            branches.push(Branch::Impossible(vec![Clash { place: self.schemas.place(root), message }]));
        }
        let node = self.builder.choice(&ways);
        self.reasons.add(node, root, &mut branches);
        Ok(node)
    }

    /// An object, with strings as they are.
    fn marked_object(&mut self, merged: &Merged<'a>, at: SchemaId) -> Result<(NodeId, Branch), GrammarError> {
        self.object(merged, at, 0)
    }

    /// The members of an object that is given, in their order.
    fn given_arguments(&mut self, value: JsonId, at: SchemaId) -> Result<NodeId, GrammarError> {
        let document = &self.schemas.document;
        let Json::Object(entries) = document.get(value) else {
            unreachable!("only objects are given as arguments");
        };
        let mut arguments = Vec::with_capacity(entries.len());
        for (name, &inner) in entries.iter() {
            let ways = match document.get(inner) {
                Json::String(text) => {
                    let text = self.with_bare(|this| Ok(this.strings.literals(&mut this.builder.exprs, &[text])))?;
                    vec![self.text_way(Some(text))]
                }
                other => {
                    let types = type_of(other);
                    let words = self.marking().marked.other_words();
                    let word = words.iter().find(|(_, own)| own.meets(types)).map_or("", |(word, _)| *word);
                    vec![Way { word, value: self.literal(inner, 0)?, end: End::Spaced }]
                }
            };
            let node = self.argument(name, &ways, at)?;
            arguments.extend(node.map(|node| Argument { node, required: true }));
        }
        let mixed = if self.options.any_order { std::mem::take(&mut arguments) } else { Vec::new() };
        self.laid_out(arguments, mixed, Vec::new(), (0, None), at)
    }

    /// The members of an object as they are written; the rest of [`Lowering::object`] where these are between markers.
    pub(crate) fn marked_members(
        &mut self,
        merged: &Merged,
        least: u32,
        known: &[Member],
        classes: &[Class],
        at: SchemaId,
    ) -> Result<(NodeId, Branch), GrammarError> {
        let marked = self.marking().marked;
        let mut needs = Vec::new();
        let (mut ordered, mut mixed) = (Vec::new(), Vec::new());
        for member in known.iter().filter(|member| !member.is_forbidden) {
            let ways = self.ways(member.value)?;
            let value_at = member.value.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(at);
            let Some(node) = self.argument(member.name, &ways, value_at)? else { continue };
            if let Some(at) = member.required {
                needs.push(Need::new(node, at, What::Required(member.name.into())));
            }
            let argument = Argument { node, required: member.required.is_some() };
            if member.is_declared && !self.options.any_order { &mut ordered } else { &mut mixed }.push(argument);
        }
        let mut others = Vec::new();
        for class in classes {
            if marked.close.contains("{}") {
                // No grammar repeats a name that it does not know. What the schema says nothing of is left out.
                let asks = |&term: &Term| !matches!(term, Term::Holds(id) if self.normal.always_holds(id));
                if class.some.is_some() || class.value.iter().any(asks) {
                    let reason = "names that a schema does not declare cannot be written between markers that nest, \
                                  because the closing one repeats the name; declare them, or leave additionalProperties \
                                  out, which means none here";
                    self.relax(at, "additionalProperties", reason)?;
                }
                continue;
            }
            let Some(name) = self.other_name(class.key, known) else { continue };
            let ways = self.ways(class.value)?;
            let node = self.unnamed_argument(name, &ways);
            let some = match class.some {
                Some(some) => {
                    let ways = self.ways(some)?;
                    Some(self.unnamed_argument(name, &ways))
                }
                None => None,
            };
            others.push(Others { node, some });
        }
        let named = others.is_empty().then_some(ordered.len() + mixed.len());
        if let Some(clash) = self.forbidden_clash(known).or_else(|| self.count_clash(merged, least, named, at)) {
            return Ok((self.builder.choice(&[]), Branch::Impossible(vec![clash])));
        }
        let all = ordered.iter().chain(&mixed);
        let required = all.clone().filter(|argument| argument.required).count() as u32;
        let count = all.count();
        let min = if least > required { least } else { 0 };
        let max = merged.max_members.filter(|&max| !others.is_empty() || (max as usize) < count);
        let node = self.laid_out(ordered, mixed, others, (min, max), at)?;
        Ok((node, if needs.is_empty() { Branch::Possible } else { Branch::Needs(needs) }))
    }

    /// Members in order, then those that mix with others, in all `min` to `max` of them.
    fn laid_out(
        &mut self,
        mut ordered: Vec<Argument>,
        mut mixed: Vec<Argument>,
        others: Vec<Others>,
        (min, max): (u32, Option<u32>),
        at: SchemaId,
    ) -> Result<NodeId, GrammarError> {
        let counters = mixed.len() + others.iter().filter(|others| others.some.is_some()).count();
        if counters > MAX_MIXED {
            let reason = format!(
                "{counters} members may come in any order, and between markers at most {MAX_MIXED} may; declare them in \
                 order"
            );
            self.relax(at, "properties", &reason)?;
            ordered.extend(mixed.drain(MAX_MIXED.saturating_sub(counters - mixed.len()).min(mixed.len())..));
        }
        let blanks = self.marking().blanks;
        let blanks = self.lexeme(blanks);
        let rest = self.mixed(mixed, others);
        let mut parts = vec![blanks];
        if min == 0 && max.is_none() {
            for Argument { node, required } in ordered {
                parts.push(if required { node } else { self.optional(node) });
            }
            if !rest.rest.is_empty() {
                parts.push(self.bare_array(rest));
            }
            return Ok(self.builder.sequence(&parts));
        }
        if ordered.is_empty() {
            parts.push(self.bare_array(Items { min, max, ..rest }));
            return Ok(self.builder.sequence(&parts));
        }
        // Behind every member in order, by how many have come: a count makes no difference from the least number on where
        // there is no greatest.
        let most = max.unwrap_or(min) as usize;
        if (ordered.len() + 1).saturating_mul(most.min(ordered.len()) + 1) > MAX_COUNTED {
            let reason = "too many members are in order and counted at once; leave one of the two out";
            self.relax(at, "minProperties, maxProperties", reason)?;
            return self.laid_out(ordered, Vec::new(), Vec::new(), (0, None), at);
        }
        let counts = most.min(ordered.len());
        let mut behind: Vec<NodeId> = (0..=counts as u32)
            .map(|count| {
                let left = max.map(|max| max.saturating_sub(count));
                self.bare_array(Items { min: min.saturating_sub(count), max: left, ..rest.clone() })
            })
            .collect();
        for Argument { node, required } in ordered.into_iter().rev() {
            let mut before = Vec::with_capacity(behind.len());
            for count in 0..=counts {
                let mut ways = Vec::with_capacity(2);
                let next = if count < counts { Some(count + 1) } else { max.is_none().then_some(counts) };
                if let Some(next) = next {
                    ways.push(self.builder.sequence(&[node, behind[next]]));
                }
                if !required {
                    ways.push(behind[count]);
                }
                let rule = self.builder.declare_rule("members");
                let body = self.builder.choice(&ways);
                self.builder.define_rule(rule, body);
                before.push(self.builder.node(Node::Rule(rule)));
            }
            behind = before;
        }
        parts.push(behind[0]);
        Ok(self.builder.sequence(&parts))
    }

    /// Members in any order: a bare array of them.
    fn mixed(&mut self, mixed: Vec<Argument>, others: Vec<Others>) -> Items {
        let mut contains = Vec::new();
        let mut rest = Vec::new();
        for Argument { node, required } in mixed {
            rest.push(Element { value: node, counts: 1 << contains.len() });
            contains.push((u32::from(required), Some(1)));
        }
        for Others { node, some } in others {
            if let Some(some) = some {
                rest.push(Element { value: some, counts: 1 << contains.len() });
                contains.push((1, None));
            }
            rest.push(Element { value: node, counts: 0 });
        }
        let nothing = ExprId::EMPTY;
        let surface = ArraySurface { empty: nothing, open: nothing, item: nothing, close: nothing };
        Items { prefix: Vec::new(), rest: rest.into(), min: 0, max: None, contains, repeats: Repeats::Any, surface }
    }

    /// A bare array; a plain repetition where nothing in it is told apart.
    fn bare_array(&mut self, items: Items) -> NodeId {
        if !items.contains.is_empty() {
            return self.builder.array(items);
        }
        let values: Vec<NodeId> = items.rest.iter().map(|element| element.value).collect();
        let value = if let [only] = values[..] { only } else { self.builder.choice(&values) };
        let max = if values.is_empty() { Some(0) } else { items.max };
        self.builder.repeat(value, items.min, max)
    }

    /// A name that no schema names, of a class of them; `None` where there is none.
    fn other_name(&mut self, key: ExprId, known: &[Member]) -> Option<NodeId> {
        let written = self.marked_names(key);
        let exprs = &mut self.builder.exprs;
        let known: Vec<&str> = known.iter().map(|member| member.name).collect();
        let known = exprs.literals(&known);
        let others = exprs.not(known);
        let name = exprs.and(&[written, others]);
        // Of all names there are more than are known and excluded.
        let every = self.with_bare(|this| Ok(this.strings.any_string(&mut this.builder.exprs, 0, None))).ok();
        if every == Some(key) && self.options.excludes.is_empty() {
            return Some(self.builder.live_lexeme(name));
        }
        let (checker, copy) = self.checker(name);
        match checker.is_live(copy) {
            Ok(true) => Some(self.builder.live_lexeme(name)),
            Ok(false) => None,
            // Where that takes too long to tell, the grammar as a whole is told of it.
            Err(_) => Some(self.builder.lexeme(name)),
        }
    }

    /// The names of a class that can be written.
    fn marked_names(&mut self, key: ExprId) -> ExprId {
        if let Some(&known) = self.marking().names.get(&key) {
            return known;
        }
        let marked = self.marking().marked;
        let exprs = &mut self.builder.exprs;
        let end = marked.name_end.as_bytes();
        let is_escaped = |byte: u8| marked.name_escapes.iter().any(|(plain, _)| *plain == char::from(byte));
        let letters: ByteSet =
            (b'!'..=u8::MAX).filter(|&byte| byte != 0x7f && *end != [byte] && !is_escaped(byte)).collect();
        let letter = exprs.bytes(letters);
        let blanks = exprs.literal(b" ");
        let blanks = exprs.repeat(blanks, 0, None);
        let more = exprs.concat(blanks, letter);
        let more = exprs.repeat(more, 0, None);
        let mut all = vec![key, exprs.concat(letter, more)];
        if end.len() > 1 {
            let any = exprs.bytes(ByteSet::ALL);
            let any = exprs.repeat(any, 0, None);
            let end = exprs.literal(end);
            let ended = exprs.concat_all(&[any, end, any]);
            all.push(exprs.not(ended));
        }
        if !self.options.excludes.is_empty() {
            let excludes: Vec<&str> = self.options.excludes.iter().map(|exclude| &**exclude).collect();
            all.push(without(exprs, &excludes));
        }
        let written = exprs.and(&all);
        self.marking().names.insert(key, written);
        written
    }

    /// A fixed text, whose markers may each be the special token of that name.
    fn fixed(&mut self, text: &str) -> NodeId {
        if let Some(&known) = self.marking().texts.get(&(false, Box::from(text))) {
            return known;
        }
        let node = markers::literal(&mut self.builder, text);
        self.marking().texts.insert((false, text.into()), node);
        node
    }

    /// The same with blanks before it.
    fn spaced(&mut self, text: &str) -> NodeId {
        if let Some(&known) = self.marking().texts.get(&(true, Box::from(text))) {
            return known;
        }
        let blanks = self.marking().blanks;
        let node = markers::spaced(&mut self.builder, blanks, text);
        self.marking().texts.insert((true, text.into()), node);
        node
    }

    /// What may be left out.
    fn optional(&mut self, node: NodeId) -> NodeId {
        if let Some(&known) = self.marking().optional.get(&node) {
            return known;
        }
        let optional = self.builder.repeat(node, 0, Some(1));
        self.marking().optional.insert(node, optional);
        optional
    }

    /// A member of a known name, with the reasons of its value; `None` where the name cannot be written and is left out.
    fn argument(&mut self, name: &str, ways: &[Way], at: SchemaId) -> Result<Option<NodeId>, GrammarError> {
        let marked = self.marking().marked;
        let Some(written) = marked.written(name) else {
            let reason = format!(
                "the name {name:?} cannot be written between markers; rename it, or write the arguments as JSON"
            );
            self.relax(at, "properties", &reason)?;
            return Ok(None);
        };
        if self.options.excludes.iter().any(|exclude| written.contains(&**exclude)) {
            let message = format!("the name {name:?} holds what is excluded");
            let node = self.builder.choice(&[]);
            let clash = Clash { place: self.schemas.place(at), message };
            self.reasons.add(node, at, &mut vec![Branch::Impossible(vec![clash])]);
            return Ok(Some(node));
        }
        let known = (Box::from(name), Box::from(ways));
        if let Some(&node) = self.marking().arguments.get(&known) {
            return Ok(Some(node));
        }
        let open = markers::literal(&mut self.builder, &format!("{}{written}", marked.open));
        let close = marked.close.replace("{}", &written);
        let node = self.between(open, marked.middle, ways, &close);
        let need = |way: &Way| Need::new(way.value, at, What::Required(name.into()));
        let mut branches = ways.iter().map(|way| Branch::Needs(vec![need(way)])).collect();
        self.reasons.add(node, at, &mut branches);
        self.marking().arguments.insert(known, node);
        Ok(Some(node))
    }

    /// A member of a name that is not known.
    fn unnamed_argument(&mut self, name: NodeId, ways: &[Way]) -> NodeId {
        let marked = self.marking().marked;
        let open = self.fixed(marked.open);
        let open = self.builder.sequence(&[open, name]);
        self.between(open, marked.middle, ways, marked.close)
    }

    /// A value in one of these ways, from behind the name to the blanks before the next one.
    fn between(&mut self, open: NodeId, middle: &str, ways: &[Way], close: &str) -> NodeId {
        let blanks = self.marking().blanks;
        let blanks = self.lexeme(blanks);
        let mut words: Vec<&'static str> = Vec::new();
        ways.iter().for_each(|way| {
            if !words.contains(&way.word) {
                words.push(way.word);
            }
        });
        let mut written = Vec::with_capacity(words.len());
        for word in words {
            let mut parts = vec![open];
            for (index, line) in middle.replace("{}", word).split('\n').enumerate() {
                if index > 0 {
                    parts.push(blanks);
                }
                parts.push(self.fixed(line));
            }
            let mut values = Vec::new();
            for way in ways.iter().filter(|way| way.word == word) {
                values.push(match way.end {
                    End::Read => way.value,
                    End::AtOnce => {
                        let close = self.fixed(close);
                        self.builder.sequence(&[way.value, close])
                    }
                    End::Spaced => {
                        let close = self.spaced(close);
                        self.builder.sequence(&[blanks, way.value, close])
                    }
                });
            }
            parts.push(if let [only] = values[..] { only } else { self.builder.choice(&values) });
            parts.push(blanks);
            written.push(self.builder.sequence(&parts));
        }
        if let [only] = written[..] { only } else { self.builder.choice(&written) }
    }

    /// The ways to write a value for which all these terms hold.
    fn ways(&mut self, all: &[Term]) -> Result<Rc<[Way]>, GrammarError> {
        if let Some(known) = self.marking().values.get(all) {
            return Ok(known.clone());
        }
        let mut key = crate::json_schema::normal_form::structural_key::Key::default();
        let has_key = matches!(*all, [Term::Holds(id)] if self.schemas.write_key(id, &mut key));
        if has_key && let Some(known) = self.marking().alike.get(&*key.said) {
            let known = known.clone();
            self.normal.note_used(&key.schemas);
            self.marking().values.insert(all.into(), known.clone());
            return Ok(known);
        }
        let ways = self.new_ways(all)?;
        let ways: Rc<[Way]> = ways.into();
        self.marking().values.insert(all.into(), ways.clone());
        if has_key && !ways.is_empty() {
            self.marking().alike.insert(key.said.into(), ways.clone());
        }
        Ok(ways)
    }

    /// Adds the way to write a string as it is, or what is in its way; answers whether it may be any string at all.
    fn string_way(
        &mut self,
        all: &[Term],
        at: SchemaId,
        ways: &mut Vec<Way>,
        missed: &mut Vec<Branch>,
    ) -> Result<bool, GrammarError> {
        let marked = self.marking().marked;
        let (text, names, mut branches) = self.with_bare(|this| this.parts_of_types(all, Types::STRING, at))?;
        let any = self.with_bare(|this| Ok(this.strings.any_string(&mut this.builder.exprs, 0, None)))?;
        for name in names {
            let Container::Name(mut value) = name else { continue };
            if marked.own_lines {
                let line = self.builder.exprs.literal(b"\n");
                let line = self.builder.exprs.optional(line);
                let line = self.lexeme(line);
                value = self.builder.sequence(&[line, value, line]);
            }
            ways.push(Way { word: marked.string, value, end: End::AtOnce });
        }
        if text == ExprId::NOTHING {
            missed.append(&mut branches);
        } else if text != any && !self.leaves_marker_out(text) {
            let message = if self.has_clean_text(text, &[marked.stop()]) {
                "every string that is valid holds what is excluded".to_string()
            } else {
                format!("every string that is valid holds {:?}, which ends the value", marked.stop())
            };
            missed.push(Branch::Impossible(vec![Clash { place: self.schemas.place(at), message }]));
        } else {
            let way = self.text_way((text != any).then_some(text));
            self.reasons.add(way.value, at, &mut branches);
            ways.push(way);
        }
        Ok(text == any)
    }

    fn new_ways(&mut self, all: &[Term]) -> Result<Vec<Way>, GrammarError> {
        let at = all.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(self.schemas.root);
        let marked = self.marking().marked;
        let mut ways = Vec::new();
        // What may stand in the way of types that no value has.
        let mut missed = Vec::new();
        let is_any = self.string_way(all, at, &mut ways, &mut missed)?;
        let mut words = marked.other_words();
        if marked.item.is_some() {
            // Null is left out with its name, and stands only where it is all that there may be.
            words = words.into_iter().map(|(word, types)| (word, types.without(Types::NULL))).collect();
            words.push((marked.string, Types::NULL));
        }
        for (word, types) in words {
            if types == Types::NULL && marked.item.is_some() && !ways.is_empty() {
                continue;
            }
            // Any text at all is among the strings already.
            let is_said = is_any && word == marked.string;
            if is_said && marked.item.is_none() {
                continue;
            }
            let (scalars, containers, branches) = self.parts_of_types(all, types, at)?;
            let (nested, json) = match (marked.item, &marked.parts) {
                (None, None) => (Vec::new(), containers),
                (Some(_), _) => self.nested_values(containers, at),
                // These may be JSON as well.
                (None, Some(_)) => (self.nested_values(containers.clone(), at).0, containers),
            };
            let scalars = if is_said { ExprId::NOTHING } else { scalars };
            if marked.python_words {
                for (plain, printed) in [("true", "True"), ("false", "False"), ("null", "None")] {
                    if self.has_text(scalars, plain) {
                        let printed = self.builder.exprs.literal(printed.as_bytes());
                        let value = self.builder.lexeme(printed);
                        ways.push(Way { word, value, end: End::Spaced });
                    }
                }
            }
            let json = if is_said { Vec::new() } else { json };
            ways.extend(nested.into_iter().map(|(value, is_object)| {
                let word = match &marked.parts {
                    Some(parts) => {
                        if is_object {
                            parts.object
                        } else {
                            parts.array
                        }
                    }
                    None => word,
                };
                Way { word, value, end: End::AtOnce }
            }));
            if !json.is_empty() {
                let rule = self.builder.declare_rule(self.schemas.place(at));
                let node = self.builder.node(Node::Rule(rule));
                self.work.push(Task { rule, node, at, depth: 0, scalars, containers: json, branches });
                ways.push(Way { word, value: node, end: End::Spaced });
            } else if scalars != ExprId::NOTHING {
                let node = self.builder.lexeme(scalars);
                self.reasons.add(node, at, &mut { branches });
                ways.push(Way { word, value: node, end: End::Spaced });
            } else {
                missed.extend(branches);
            }
        }
        if ways.is_empty() {
            // A reason is looked for at a node.
            let value = self.builder.choice(&[]);
            self.reasons.add(value, at, &mut missed);
            ways.push(Way { word: marked.string, value, end: End::Read });
        }
        Ok(ways)
    }

    /// Whether a text is among some.
    pub(super) fn has_text(&mut self, texts: ExprId, text: &str) -> bool {
        let exprs = &mut self.builder.exprs;
        let text = exprs.literal(text.as_bytes());
        let both = exprs.and(&[texts, text]);
        if both == ExprId::NOTHING {
            return false;
        }
        let (checker, copy) = self.checker(both);
        checker.is_live(copy).unwrap_or(false)
    }

    /// Whether some text does not hold what ends it or is excluded.
    fn leaves_marker_out(&mut self, text: ExprId) -> bool {
        let clean = self.marking().clean;
        let left = self.builder.exprs.and(&[text, clean]);
        let (checker, copy) = self.checker(left);
        // Where that takes too long to tell, the grammar as a whole is told of it.
        checker.is_live(copy).unwrap_or(true)
    }

    /// Whether some text holds none of these.
    fn has_clean_text(&mut self, text: ExprId, never: &[&str]) -> bool {
        let exprs = &mut self.builder.exprs;
        let clean = without(exprs, never);
        let left = exprs.and(&[text, clean]);
        let (checker, copy) = self.checker(left);
        checker.is_live(copy).unwrap_or(true)
    }

    /// Whether an object has no members but those of its plain properties, by a schema that nothing fits.
    fn forbids_others(&self, merged: &Merged<'a>) -> bool {
        let never = |term: &Term| matches!(*term, Term::Holds(id) if self.schemas.get(id).never);
        merged.some.is_empty() && merged.names.is_empty() && merged.rules.is_empty() && merged.free.iter().any(never)
    }

    /// Those of some arrays and objects that markers hold, as rules to be laid out, and those that they do not.
    fn nested_values(
        &mut self,
        containers: Vec<Container<'a>>,
        at: SchemaId,
    ) -> (Vec<(NodeId, bool)>, Vec<Container<'a>>) {
        let (mut nested, mut json) = (Vec::new(), Vec::new());
        for container in containers {
            let (merged, is_object) = match &container {
                Container::Array(merged) if can_nest_elements(merged) => (merged.clone(), false),
                Container::Object(merged) if can_nest_members(merged) || self.forbids_others(merged) => {
                    (merged.clone(), true)
                }
                _ => {
                    json.push(container);
                    continue;
                }
            };
            let rule = self.builder.declare_rule(self.schemas.place(at));
            nested.push((self.builder.node(Node::Rule(rule)), is_object));
            self.marking().work.push(Nested { rule, at, merged, is_object });
        }
        (nested, json)
    }

    /// The elements of an array, each between markers.
    fn marked_elements(&mut self, merged: &Merged<'a>, at: SchemaId) -> Result<(NodeId, Branch), GrammarError> {
        let marked = self.marking().marked;
        let item = marked.item.unwrap_or("item");
        let mut prefix = Vec::with_capacity(merged.prefix.len());
        for place in 0..merged.prefix.len() {
            let ways = self.ways(merged.element(place))?;
            let node = self.element(item, &ways, at)?;
            prefix.push(node.map(|value| Element { value, counts: 0 }).into_iter().collect());
        }
        let mut max = merged.max_items;
        let mut rest: Box<[Element]> = Box::default();
        if merged.closed_items {
            max = Some(max.unwrap_or(u32::MAX).min(prefix.len() as u32));
        } else {
            let ways = self.ways(&merged.rest)?;
            rest = self.element(item, &ways, at)?.map(|value| Element { value, counts: 0 }).into_iter().collect();
        }
        let blanks = self.marking().blanks;
        let blanks = self.lexeme(blanks);
        let nothing = ExprId::EMPTY;
        let surface = ArraySurface { empty: nothing, open: nothing, item: nothing, close: nothing };
        let items =
            Items { prefix, rest, min: merged.min_items, max, contains: Vec::new(), repeats: Repeats::Any, surface };
        let items = self.builder.array(items);
        Ok((self.builder.sequence(&[blanks, items]), Branch::Possible))
    }

    /// One element, between markers of the name of elements, or without a name.
    fn element(&mut self, item: &str, ways: &[Way], at: SchemaId) -> Result<Option<NodeId>, GrammarError> {
        let marked = self.marking().marked;
        let Some(parts) = &marked.parts else { return self.argument(item, ways, at) };
        let open = self.fixed(parts.open);
        Ok(Some(self.between(open, parts.middle, ways, marked.close)))
    }

    /// A string, any where it is `None`, up to and with the marker that ends it; where that repeats the name, up to it.
    fn text_way(&mut self, text: Option<ExprId>) -> Way {
        let marked = self.marking().marked;
        let stop = marked.stop();
        let excludes: Vec<&str> =
            marked.control.iter().copied().chain(self.options.excludes.iter().map(|text| &**text)).collect();
        let exprs = &mut self.builder.exprs;
        let free = match text {
            None => FreeText::new(exprs, &[stop], &excludes, None),
            Some(text) if marked.own_lines => {
                let text = on_own_lines(exprs, text);
                FreeText::of(exprs, text, &[stop], &excludes)
            }
            Some(text) => FreeText::of(exprs, text, &[stop], &excludes),
        };
        if marked.close.contains("{}") {
            let text = free.unended(exprs);
            return Way { word: marked.string, value: self.builder.lexeme(text), end: End::AtOnce };
        }
        let whole = free.until(exprs, stop);
        let before = free.before(exprs, stop);
        let before = self.builder.lexeme(before);
        let ways = markers::until(&mut self.builder, whole, before, stop);
        let text = self.builder.choice(&ways);
        let rest = &marked.close[stop.len()..];
        let value = if rest.is_empty() {
            text
        } else {
            let rest = markers::literal(&mut self.builder, rest);
            self.builder.sequence(&[text, rest])
        };
        Way { word: marked.string, value, end: End::Read }
    }
}

/// Texts that hold none of these.
fn without(exprs: &mut stencilm_regex::ExprSet, texts: &[&str]) -> ExprId {
    let any = exprs.bytes(ByteSet::ALL);
    let any = exprs.repeat(any, 0, None);
    let texts = exprs.literals(texts);
    let holding = exprs.concat_all(&[any, texts, any]);
    exprs.not(holding)
}

/// Whether markers that nest can hold the members that an object may have: those of names that are known.
fn can_nest_members(merged: &Merged) -> bool {
    let has_known = merged.known.iter().any(|(_, known)| known.forbidden.is_none());
    let has_none = merged.closed || merged.max_members == Some(0);
    (has_known
        && merged.some.is_empty()
        && merged.names.is_empty()
        && merged.rules.is_empty()
        && merged.free.is_empty())
        || has_none
}

/// Whether markers that nest can hold the elements that an array may have.
fn can_nest_elements(merged: &Merged) -> bool {
    merged.unique.is_none()
        && merged.repeated.is_none()
        && merged.contains.is_empty()
        && (merged.closed_items || !merged.rest.is_empty() || !merged.prefix.is_empty())
}

/// A run of blanks between members and around JSON.
fn blanks(exprs: &mut stencilm_regex::ExprSet, options: &JsonSchemaOptions) -> ExprId {
    if !options.any_whitespace {
        let line = exprs.literal(b"\n");
        return exprs.optional(line);
    }
    let blank = exprs.bytes([b' ', b'\t', b'\n', b'\r'].into_iter().collect());
    exprs.repeat(blank, 0, options.max_whitespace)
}

/// The ways to write a text whose reader takes one line break away before it and one behind it. A text that begins or ends
/// with a line break is written with one more there.
fn on_own_lines(exprs: &mut stencilm_regex::ExprSet, text: ExprId) -> ExprId {
    let line = exprs.literal(b"\n");
    let any = exprs.bytes(ByteSet::ALL);
    let any = exprs.repeat(any, 0, None);
    let (begins, ends) = (exprs.concat(line, any), exprs.concat(any, line));
    let (no_line_before, no_line_after) = (exprs.not(begins), exprs.not(ends));
    let after = exprs.and(&[text, no_line_before]);
    let before = exprs.and(&[text, no_line_after]);
    let alone = exprs.and(&[text, no_line_before, no_line_after]);
    let ways = [exprs.concat_all(&[line, text, line]), exprs.concat(line, before), exprs.concat(after, line), alone];
    exprs.or(&ways)
}
