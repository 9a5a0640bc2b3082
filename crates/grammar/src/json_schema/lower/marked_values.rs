//! Values between markers: the renderings of each, as it is, with markers of its own, or as JSON.

use std::rc::Rc;

use stencilm_regex::{ByteSet, ExprId};

use super::explain::Branch;
use super::lowering::{Container, Lowering, Task};
use super::marked::without;
use super::marking::{End, Nested, Rendering};
use crate::error::GrammarError;
use crate::ir::free_text::FreeText;
use crate::ir::grammar::{ArraySurface, Element, Items, Node, NodeId, Repeats};
use crate::ir::markers;
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::merged::{Clash, Merged};
use crate::json_schema::read::schema::{SchemaId, Types};

impl<'a> Lowering<'a> {
    /// The renderings of a value for which all these terms hold.
    pub(super) fn renderings(&mut self, all: &[Term]) -> Result<Rc<[Rendering]>, GrammarError> {
        if let Some(known) = self.marking().values.get(all) {
            return Ok(known.clone());
        }
        let mut key = crate::json_schema::normal_form::structural_key::Key::default();
        let has_key = matches!(*all, [Term::Holds(id)] if self.schemas.write_key(id, &mut key));
        if has_key && let Some(known) = self.marking().by_key.get(&*key.said) {
            let known = known.clone();
            self.normal.note_used(&key.schemas);
            self.marking().values.insert(all.into(), known.clone());
            return Ok(known);
        }
        let renderings = self.new_renderings(all)?;
        let renderings: Rc<[Rendering]> = renderings.into();
        self.marking().values.insert(all.into(), renderings.clone());
        if has_key && !renderings.is_empty() {
            self.marking().by_key.insert(key.said.into(), renderings.clone());
        }
        Ok(renderings)
    }

    /// Adds the bare rendering of a string, or the reasons against it; returns whether the value may be any string.
    fn string_rendering(
        &mut self,
        all: &[Term],
        at: SchemaId,
        renderings: &mut Vec<Rendering>,
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
            renderings.push(Rendering { word: marked.string, value, end: End::AtOnce });
        }
        if text == ExprId::NOTHING {
            missed.append(&mut branches);
        } else if text != any && !self.leaves_marker_out(text)? {
            let message = if self.has_clean_text(text, &[marked.stop()])? {
                "every string that is valid holds what is excluded".to_string()
            } else {
                format!("every string that is valid holds {:?}, which ends the value", marked.stop())
            };
            missed.push(Branch::Impossible(vec![Clash { place: self.schemas.place(at), message }]));
        } else {
            let rendering = self.text_rendering((text != any).then_some(text));
            self.reasons.add(rendering.value, at, &mut branches);
            renderings.push(rendering);
        }
        Ok(text == any)
    }

    fn new_renderings(&mut self, all: &[Term]) -> Result<Vec<Rendering>, GrammarError> {
        let at = all.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(self.schemas.root);
        let marked = self.marking().marked;
        let mut renderings = Vec::new();
        // The reasons against types that no value has.
        let mut missed = Vec::new();
        let is_any = self.string_rendering(all, at, &mut renderings, &mut missed)?;
        let mut words = marked.other_words();
        if marked.item.is_some() {
            // A null is left out together with its name; it's written only if it's the only possible value.
            words = words.into_iter().map(|(word, types)| (word, types.without(Types::NULL))).collect();
            words.push((marked.string, Types::NULL));
        }
        for (word, types) in words {
            if types == Types::NULL && marked.item.is_some() && !renderings.is_empty() {
                continue;
            }
            // The strings already include every text.
            let is_said = is_any && word == marked.string;
            if is_said && marked.item.is_none() {
                continue;
            }
            let (scalars, containers, branches) = self.parts_of_types(all, types, at)?;
            let (nested, json) = match (marked.item, &marked.parts) {
                (None, None) => (Vec::new(), containers),
                (Some(_), _) => self.nested_values(containers, at),
                // These may be written as JSON, too.
                (None, Some(_)) => (self.nested_values(containers.clone(), at).0, containers),
            };
            let scalars = if is_said { ExprId::NOTHING } else { scalars };
            if marked.python_words {
                for (plain, printed) in [("true", "True"), ("false", "False"), ("null", "None")] {
                    if self.has_text(scalars, plain)? {
                        let printed = self.builder.exprs.literal(printed.as_bytes());
                        let value = self.builder.lexeme(printed);
                        renderings.push(Rendering { word, value, end: End::AfterWhitespace });
                    }
                }
            }
            let json = if is_said { Vec::new() } else { json };
            renderings.extend(nested.into_iter().map(|(value, is_object)| {
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
                Rendering { word, value, end: End::AtOnce }
            }));
            if !json.is_empty() {
                let rule = self.builder.declare_rule(self.schemas.place(at));
                let node = self.builder.node(Node::Rule(rule));
                self.work.push(Task { rule, node, at, depth: 0, scalars, containers: json, branches });
                renderings.push(Rendering { word, value: node, end: End::AfterWhitespace });
            } else if scalars != ExprId::NOTHING {
                let node = self.builder.lexeme(scalars);
                self.reasons.add(node, at, &mut { branches });
                renderings.push(Rendering { word, value: node, end: End::AfterWhitespace });
            } else {
                missed.extend(branches);
            }
        }
        if renderings.is_empty() {
            // Reasons are attached to a node.
            let value = self.builder.choice(&[]);
            self.reasons.add(value, at, &mut missed);
            renderings.push(Rendering { word: marked.string, value, end: End::Read });
        }
        Ok(renderings)
    }

    /// Whether a text is one of those of an expression.
    pub(super) fn has_text(&mut self, texts: ExprId, text: &str) -> Result<bool, GrammarError> {
        let exprs = &mut self.builder.exprs;
        let text = exprs.literal(text.as_bytes());
        let both = exprs.and(&[texts, text]);
        if both == ExprId::NOTHING {
            return Ok(false);
        }
        Ok(self.matches_some(both)? == Some(true))
    }

    /// Whether some text contains neither its end marker nor an excluded text.
    fn leaves_marker_out(&mut self, text: ExprId) -> Result<bool, GrammarError> {
        let clean = self.marking().clean;
        let left = self.builder.exprs.and(&[text, clean]);
        // If that is too hard to decide, compiling the whole grammar reports it.
        Ok(self.matches_some(left)? != Some(false))
    }

    /// Whether some text contains none of these.
    fn has_clean_text(&mut self, text: ExprId, never: &[&str]) -> Result<bool, GrammarError> {
        let exprs = &mut self.builder.exprs;
        let clean = without(exprs, never);
        let left = exprs.and(&[text, clean]);
        Ok(self.matches_some(left)? != Some(false))
    }

    /// Whether an expression matches something; `None` if that is too hard to decide.
    pub(super) fn matches_some(&mut self, expr: ExprId) -> Result<Option<bool>, GrammarError> {
        let (checker, copy) = self.checker(expr);
        GrammarError::decided("", || checker.is_live(copy))
    }

    /// Whether a schema that nothing fits forbids all members except the plain properties.
    fn forbids_others(&self, merged: &Merged<'a>) -> bool {
        let never = |term: &Term| matches!(*term, Term::Holds(id) if self.schemas.get(id).never);
        merged.some.is_empty()
            && merged.names.is_empty()
            && merged.rules.is_empty()
            && merged.additional.iter().any(never)
    }

    /// Splits arrays and objects into those that markers can hold, as rules still to be defined, and the others.
    pub(super) fn nested_values(
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
    pub(super) fn marked_elements(
        &mut self,
        merged: &Merged<'a>,
        at: SchemaId,
    ) -> Result<(NodeId, Branch), GrammarError> {
        let marked = self.marking().marked;
        let item = marked.item.unwrap_or("item");
        let mut prefix = Vec::with_capacity(merged.prefix.len());
        for place in 0..merged.prefix.len() {
            let renderings = self.renderings(merged.element(place))?;
            let node = self.element(item, &renderings, at)?;
            prefix.push(node.map(|value| Element { value, counts: 0 }).into_iter().collect());
        }
        let mut max = merged.max_items;
        let mut rest: Box<[Element]> = Box::default();
        if merged.closed_items {
            max = Some(max.unwrap_or(u32::MAX).min(prefix.len() as u32));
        } else {
            let renderings = self.renderings(&merged.rest)?;
            rest = self.element(item, &renderings, at)?.map(|value| Element { value, counts: 0 }).into_iter().collect();
        }
        let whitespace = self.marking().whitespace;
        let whitespace = self.lexeme(whitespace);
        let nothing = ExprId::EMPTY;
        let surface = ArraySurface { empty: nothing, open: nothing, item: nothing, close: nothing };
        let items =
            Items { prefix, rest, min: merged.min_items, max, contains: Vec::new(), repeats: Repeats::Any, surface };
        let items = self.builder.array(items);
        Ok((self.builder.sequence(&[whitespace, items]), Branch::Possible))
    }

    /// One element, between markers with the name for elements, or without a name.
    fn element(&mut self, item: &str, renderings: &[Rendering], at: SchemaId) -> Result<Option<NodeId>, GrammarError> {
        let marked = self.marking().marked;
        let Some(parts) = &marked.parts else { return self.argument(item, renderings, at) };
        let open = self.fixed(parts.open);
        Ok(Some(self.between(open, parts.middle, renderings, marked.close)))
    }

    /// A string (any, if `None`) with its end marker; without the marker if that repeats the name.
    pub(super) fn text_rendering(&mut self, text: Option<ExprId>) -> Rendering {
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
            return Rendering { word: marked.string, value: self.builder.lexeme(text), end: End::AtOnce };
        }
        let whole = free.until(exprs, stop);
        let before = free.before(exprs, stop);
        let before = self.builder.lexeme(before);
        let renderings = markers::until(&mut self.builder, whole, before, stop);
        let text = self.builder.choice(&renderings);
        let rest = &marked.close[stop.len()..];
        let value = if rest.is_empty() {
            text
        } else {
            let rest = markers::literal(&mut self.builder, rest);
            self.builder.sequence(&[text, rest])
        };
        Rendering { word: marked.string, value, end: End::Read }
    }
}

/// Whether nested markers can hold all members of an object, that is, all of its names are known.
fn can_nest_members(merged: &Merged) -> bool {
    let has_known = merged.known.iter().any(|(_, known)| known.forbidden.is_none());
    let has_none = merged.closed || merged.max_members == Some(0);
    (has_known
        && merged.some.is_empty()
        && merged.names.is_empty()
        && merged.rules.is_empty()
        && merged.additional.is_empty())
        || has_none
}

/// Whether nested markers can hold the elements of an array.
fn can_nest_elements(merged: &Merged) -> bool {
    merged.unique.is_none()
        && merged.repeated.is_none()
        && merged.contains.is_empty()
        && (merged.closed_items || !merged.rest.is_empty() || !merged.prefix.is_empty())
}

/// The renderings of a text whose reader removes one line break before it and one after it. If the text itself begins
/// or ends with a line break, another one is written there.
fn on_own_lines(exprs: &mut stencilm_regex::ExprSet, text: ExprId) -> ExprId {
    let line = exprs.literal(b"\n");
    let any = exprs.bytes(ByteSet::ALL);
    let any = exprs.repeat(any, 0, None);
    let (begins, ends) = (exprs.concat(line, any), exprs.concat(any, line));
    let (no_line_before, no_line_after) = (exprs.not(begins), exprs.not(ends));
    let after = exprs.and(&[text, no_line_before]);
    let before = exprs.and(&[text, no_line_after]);
    let alone = exprs.and(&[text, no_line_before, no_line_after]);
    let renderings =
        [exprs.concat_all(&[line, text, line]), exprs.concat(line, before), exprs.concat(after, line), alone];
    exprs.or(&renderings)
}
