//! Objects whose members are written one by one, each between markers, as models write the arguments of a call.
//!
//! One idea: what a schema asks of an object is what it asks of one in JSON, so the same plan of its members is laid
//! out, with other text around them. Strings stand as they are, up to the marker after them, and so do all values in a
//! style whose markers nest; what such markers cannot hold is JSON, within the value that needs it.
//!
//! Members in a fixed order are a sequence. Where they mix, or are counted, they are the elements of a bare array,
//! whose counters know which of them have come.

use stencilm_regex::{ByteSet, ExprId};

use super::explain::{Branch, Need, What};
use super::lowering::Lowering;
use super::marking::{Argument, End, Marking, Nested, Others, Rendering};
use super::objects::{Class, MAX_MIXED, MAX_STATES, Member};
use crate::error::GrammarError;
use crate::ir::grammar::{ArraySurface, Element, Items, Node, NodeId, Repeats};
use crate::ir::markers;
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::merge::merge;
use crate::json_schema::normal_form::merged::{Clash, Merged};
use crate::json_schema::options::JsonSchemaOptions;
use crate::json_schema::read::document::{Json, JsonId};
use crate::json_schema::read::schema::{SchemaId, Types, type_of};

impl<'a> Lowering<'a> {
    /// Prepares the expressions that values between markers consist of.
    pub(crate) fn prepare_marking(&mut self) {
        let Some(marking) = &mut self.marking else { return };
        let exprs = &mut self.builder.exprs;
        marking.whitespace = whitespace(exprs, self.options);
        let stop = marking.marked.stop();
        let excludes: Vec<&str> = self.options.excludes.iter().map(|exclude| &**exclude).collect();
        let unended = without(exprs, &[stop]);
        let clean = without(exprs, &excludes);
        marking.clean = exprs.and(&[unended, clean]);
        // The quotes are not part of the excluded text.
        let quote = exprs.literal(b"\"");
        let clean = exprs.concat_all(&[quote, clean, quote]);
        let strings = if excludes.is_empty() { unended } else { exprs.and(&[unended, clean]) };
        let never = std::iter::once(stop).chain(excludes).map(Box::from).collect();
        self.strings.never(never, strings);
    }

    pub(super) fn marking(&mut self) -> &mut Marking<'a> {
        self.marking.as_mut().expect("only a lowering with markers asks for them")
    }

    /// Swaps the JSON strings with the bare ones, or back.
    pub(super) fn exchange_strings(&mut self) {
        let (strings, patterns) = match (&mut self.marking, &mut self.notated) {
            (Some(marking), _) => (&mut marking.strings, &mut marking.patterns),
            (None, Some(notated)) => (&mut notated.strings, &mut notated.patterns),
            (None, None) => unreachable!("only a lowering of arguments has strings as they are"),
        };
        std::mem::swap(&mut self.strings, strings);
        std::mem::swap(&mut self.patterns, patterns);
    }

    /// Calls a function while strings are bare.
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
        let (mut renderings, mut branches) = (Vec::new(), Vec::new());
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
                let (rendering, branch) = self.with_bare(|this| this.marked_object(&merged, root))?;
                renderings.push(rendering);
                branches.push(branch);
                continue;
            };
            for &value in &values.value {
                if let Json::Object(_) = self.schemas.document.get(value)
                    && self.misfit(value, &merged, 0)?.is_none()
                {
                    renderings.push(self.given_arguments(value, values.at)?);
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
        let node = self.builder.choice(&renderings);
        self.reasons.add(node, root, &mut branches);
        Ok(node)
    }

    /// An object with bare strings.
    fn marked_object(&mut self, merged: &Merged<'a>, at: SchemaId) -> Result<(NodeId, Branch), GrammarError> {
        self.object(merged, at, 0)
    }

    /// The members of a given object, in their order.
    fn given_arguments(&mut self, value: JsonId, at: SchemaId) -> Result<NodeId, GrammarError> {
        let document = &self.schemas.document;
        let Json::Object(entries) = document.get(value) else {
            unreachable!("only objects are given as arguments");
        };
        let mut arguments = Vec::with_capacity(entries.len());
        for (name, &inner) in entries.iter() {
            let renderings = match document.get(inner) {
                Json::String(text) => {
                    let text = self.with_bare(|this| Ok(this.strings.literals(&mut this.builder.exprs, &[text])))?;
                    vec![self.text_rendering(Some(text))]
                }
                other => {
                    let types = type_of(other);
                    let words = self.marking().marked.other_words();
                    let word = words.iter().find(|(_, own)| own.meets(types)).map_or("", |(word, _)| *word);
                    vec![Rendering { word, value: self.literal(inner, 0)?, end: End::AfterWhitespace }]
                }
            };
            let node = self.argument(name, &renderings, at)?;
            arguments.extend(node.map(|node| Argument { node, required: true }));
        }
        let mixed = if self.options.any_order { std::mem::take(&mut arguments) } else { Vec::new() };
        self.laid_out(arguments, mixed, Vec::new(), (0, None), at)
    }

    /// The members of an object between markers; the last step of [`Lowering::object`] in this case.
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
            let renderings = self.renderings(member.value)?;
            let value_at = member.value.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(at);
            let Some(node) = self.argument(member.name, &renderings, value_at)? else { continue };
            if let Some(at) = member.required {
                needs.push(Need::new(node, at, What::Required(member.name.into())));
            }
            let argument = Argument { node, required: member.required.is_some() };
            if member.is_declared && !self.options.any_order { &mut ordered } else { &mut mixed }.push(argument);
        }
        let mut others = Vec::new();
        for class in classes {
            if marked.close.contains("{}") {
                // A grammar cannot prevent the repetition of an unknown name. Unknown members without requirements are
                // simply left out.
                let asks = |&term: &Term| !matches!(term, Term::Holds(id) if self.normal.always_holds(id));
                if class.some.is_some() || class.value.iter().any(asks) {
                    let reason = "names that a schema does not declare cannot be written between markers that nest, \
                                  because the closing one repeats the name; declare them, or leave additionalProperties \
                                  out, which means none here";
                    self.relax(at, "additionalProperties", reason)?;
                }
                continue;
            }
            let Some(name) = self.other_name(class.key, known)? else { continue };
            let renderings = self.renderings(class.value)?;
            let node = self.unnamed_argument(name, &renderings);
            let some = match class.some {
                Some(some) => {
                    let renderings = self.renderings(some)?;
                    Some(self.unnamed_argument(name, &renderings))
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

    /// The ordered members, then the others, `min` to `max` members in all.
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
        let whitespace = self.marking().whitespace;
        let whitespace = self.lexeme(whitespace);
        let rest = self.mixed(mixed, others);
        let mut parts = vec![whitespace];
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
        // What follows each ordered member, by how many members have come. Without a greatest number, counts from the
        // least number on are equivalent.
        let most = max.unwrap_or(min) as usize;
        if (ordered.len() + 1).saturating_mul(most.min(ordered.len()) + 1) > MAX_STATES {
            let reason = "too many members are in order and counted at once; leave one of the two out";
            self.relax(at, "minProperties, maxProperties", reason)?;
            return self.laid_out(ordered, Vec::new(), Vec::new(), (0, None), at);
        }
        let counts = most.min(ordered.len());
        let mut after: Vec<NodeId> = (0..=counts as u32)
            .map(|count| {
                let left = max.map(|max| max.saturating_sub(count));
                self.bare_array(Items { min: min.saturating_sub(count), max: left, ..rest.clone() })
            })
            .collect();
        for Argument { node, required } in ordered.into_iter().rev() {
            let mut before = Vec::with_capacity(after.len());
            for count in 0..=counts {
                let mut renderings = Vec::with_capacity(2);
                let next = if count < counts { Some(count + 1) } else { max.is_none().then_some(counts) };
                if let Some(next) = next {
                    renderings.push(self.builder.sequence(&[node, after[next]]));
                }
                if !required {
                    renderings.push(after[count]);
                }
                let rule = self.builder.declare_rule("members");
                let body = self.builder.choice(&renderings);
                self.builder.define_rule(rule, body);
                before.push(self.builder.node(Node::Rule(rule)));
            }
            after = before;
        }
        parts.push(after[0]);
        Ok(self.builder.sequence(&parts))
    }

    /// Members in any order, as a bare array.
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

    /// A bare array; a plain repetition if it needs no counters.
    pub(super) fn bare_array(&mut self, items: Items) -> NodeId {
        if !items.contains.is_empty() {
            return self.builder.array(items);
        }
        let values: Vec<NodeId> = items.rest.iter().map(|element| element.value).collect();
        let value = if let [only] = values[..] { only } else { self.builder.choice(&values) };
        let max = if values.is_empty() { Some(0) } else { items.max };
        self.builder.repeat(value, items.min, max)
    }

    /// A name of a class that no schema names; `None` if there is none.
    fn other_name(&mut self, key: ExprId, known: &[Member]) -> Result<Option<NodeId>, GrammarError> {
        let written = self.marked_names(key);
        let exprs = &mut self.builder.exprs;
        let known: Vec<&str> = known.iter().map(|member| member.name).collect();
        let known = exprs.literals(&known);
        let others = exprs.not(known);
        let name = exprs.and(&[written, others]);
        self.name_unless_dead(name, key)
    }

    /// A lexeme of unknown names of a class; `None` if there is none.
    pub(super) fn name_unless_dead(&mut self, name: ExprId, of_class: ExprId) -> Result<Option<NodeId>, GrammarError> {
        // There are more names than the known and excluded ones.
        let every = self.with_bare(|this| Ok(this.strings.any_string(&mut this.builder.exprs, 0, None)))?;
        if every == of_class && self.options.excludes.is_empty() {
            return Ok(Some(self.builder.live_lexeme(name)));
        }
        Ok(match self.matches_some(name)? {
            Some(true) => Some(self.builder.live_lexeme(name)),
            Some(false) => None,
            // If that is too hard to decide, compiling the whole grammar reports it.
            None => Some(self.builder.lexeme(name)),
        })
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
        let whitespace = exprs.literal(b" ");
        let whitespace = exprs.repeat(whitespace, 0, None);
        let more = exprs.concat(whitespace, letter);
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

    /// A fixed text; each of its markers may be the special token of that name.
    pub(super) fn fixed(&mut self, text: &str) -> NodeId {
        if let Some(&known) = self.marking().texts.get(&(false, Box::from(text))) {
            return known;
        }
        let node = markers::literal(&mut self.builder, text);
        self.marking().texts.insert((false, text.into()), node);
        node
    }

    /// As [`Lowering::fixed`], with whitespace before the text.
    fn with_whitespace(&mut self, text: &str) -> NodeId {
        if let Some(&known) = self.marking().texts.get(&(true, Box::from(text))) {
            return known;
        }
        let whitespace = self.marking().whitespace;
        let node = markers::with_whitespace(&mut self.builder, whitespace, text);
        self.marking().texts.insert((true, text.into()), node);
        node
    }

    /// A node that may be left out.
    fn optional(&mut self, node: NodeId) -> NodeId {
        if let Some(&known) = self.marking().optional.get(&node) {
            return known;
        }
        let optional = self.builder.repeat(node, 0, Some(1));
        self.marking().optional.insert(node, optional);
        optional
    }

    /// A member with a declared name, with the reasons of its value; `None` if the name cannot be written and the
    /// member is left out.
    pub(super) fn argument(
        &mut self,
        name: &str,
        renderings: &[Rendering],
        at: SchemaId,
    ) -> Result<Option<NodeId>, GrammarError> {
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
        let known = (Box::from(name), Box::from(renderings));
        if let Some(&node) = self.marking().arguments.get(&known) {
            return Ok(Some(node));
        }
        let open = markers::literal(&mut self.builder, &format!("{}{written}", marked.open));
        let close = marked.close.replace("{}", &written);
        let node = self.between(open, marked.middle, renderings, &close);
        let need = |rendering: &Rendering| Need::new(rendering.value, at, What::Required(name.into()));
        let mut branches = renderings.iter().map(|rendering| Branch::Needs(vec![need(rendering)])).collect();
        self.reasons.add(node, at, &mut branches);
        self.marking().arguments.insert(known, node);
        Ok(Some(node))
    }

    /// A member with an unknown name.
    fn unnamed_argument(&mut self, name: NodeId, renderings: &[Rendering]) -> NodeId {
        let marked = self.marking().marked;
        let open = self.fixed(marked.open);
        let open = self.builder.sequence(&[open, name]);
        self.between(open, marked.middle, renderings, marked.close)
    }

    /// A value in one of these renderings, from after the name up to the whitespace before the next member.
    pub(super) fn between(&mut self, open: NodeId, middle: &str, renderings: &[Rendering], close: &str) -> NodeId {
        let whitespace = self.marking().whitespace;
        let whitespace = self.lexeme(whitespace);
        let mut words: Vec<&'static str> = Vec::new();
        renderings.iter().for_each(|rendering| {
            if !words.contains(&rendering.word) {
                words.push(rendering.word);
            }
        });
        let mut written = Vec::with_capacity(words.len());
        for word in words {
            let mut parts = vec![open];
            for (index, line) in middle.replace("{}", word).split('\n').enumerate() {
                if index > 0 {
                    parts.push(whitespace);
                }
                parts.push(self.fixed(line));
            }
            let mut values = Vec::new();
            for rendering in renderings.iter().filter(|rendering| rendering.word == word) {
                values.push(match rendering.end {
                    End::Read => rendering.value,
                    End::AtOnce => {
                        let close = self.fixed(close);
                        self.builder.sequence(&[rendering.value, close])
                    }
                    End::AfterWhitespace => {
                        let close = self.with_whitespace(close);
                        self.builder.sequence(&[whitespace, rendering.value, close])
                    }
                });
            }
            parts.push(if let [only] = values[..] { only } else { self.builder.choice(&values) });
            parts.push(whitespace);
            written.push(self.builder.sequence(&parts));
        }
        if let [only] = written[..] { only } else { self.builder.choice(&written) }
    }
}

/// Texts that contain none of these.
pub(super) fn without(exprs: &mut stencilm_regex::ExprSet, texts: &[&str]) -> ExprId {
    let any = exprs.bytes(ByteSet::ALL);
    let any = exprs.repeat(any, 0, None);
    let texts = exprs.literals(texts);
    let holding = exprs.concat_all(&[any, texts, any]);
    exprs.not(holding)
}

/// The whitespace between members and around JSON.
fn whitespace(exprs: &mut stencilm_regex::ExprSet, options: &JsonSchemaOptions) -> ExprId {
    if !options.any_whitespace {
        let line = exprs.literal(b"\n");
        return exprs.optional(line);
    }
    let whitespace = exprs.bytes([b' ', b'\t', b'\n', b'\r'].into_iter().collect());
    exprs.repeat(whitespace, 0, options.max_whitespace)
}
