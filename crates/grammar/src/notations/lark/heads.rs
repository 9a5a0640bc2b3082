//! Free text after calls that free text leads to: `start: call* tail`, where a call begins with a `lazy` head.
//!
//! A lexer that stops at the first match of a lazy terminal never lets the tail run past the beginning of a call, nor
//! the head of one call past that of another. Here no terminal is preferred to another, so the tail, and each of
//! several heads side by side, is given what it must not begin with.

use super::attributes;
use super::expansion::{Expansion, Scope, Variant, Within};
use super::terminals;
use super::tree::{Definition, Part, PartId, Unit};
use crate::ir::syntax_error::SyntaxError;
use crate::notations::ebnf::tree::{Part as Made, PartId as MadeId};
use stencilm_regex::syntax::{Alphabet, Utf8};

/// The longest chain of names that stand for another name.
const MAX_NAMES: usize = 16;

impl Expansion<'_, '_> {
    /// In a sequence, excludes from every terminal after repeated rules the texts that have the head of such a rule as
    /// a prefix.
    pub(super) fn end_texts_before_heads(
        &mut self,
        scope: &mut Scope<'_>,
        parts: &[PartId],
        made: &mut [MadeId],
    ) -> Result<(), SyntaxError> {
        for (position, pair) in parts.windows(2).enumerate() {
            let unit = scope.unit;
            let Part::Repeat { body, max: None, .. } = unit.part(pair[0]) else { continue };
            let heads: Vec<(&str, &Definition)> =
                alternatives(unit, *body).iter().filter_map(|&call| head(unit, call)).collect();
            let Some(tail) = terminal(unit, pair[1]).filter(|_| !heads.is_empty()) else { continue };
            if let Some((name, _)) = rule(unit, tail)
                && scope.context[unit.definitions.get_index_of(name).expect("a terminal is defined")]
            {
                // The terminal depends on its context, so it cannot be a part of another terminal.
                continue;
            }
            let place = unit.place(pair[1]);
            let any = Utf8.class(&mut self.builder.exprs, &[('\0', char::MAX)]);
            let any = self.tree.add(place, Made::Terminal(any));
            let anything = self.tree.add(place, Made::Repeat { body: any, min: 0, max: None });
            let mut begun = Vec::with_capacity(heads.len());
            for (name, definition) in heads {
                let Some(head) = self.head_text(scope, name, definition)? else { continue };
                begun.push(self.tree.add(place, Made::Sequence(vec![head, anything])));
            }
            if begun.is_empty() {
                continue;
            }
            let text = match unit.part(tail) {
                Part::Name { name, .. } => {
                    let index = unit.definitions.get_index_of(name).expect("a terminal is defined");
                    let rule = self.rule(scope, index, None, Vec::new(), place)?;
                    self.tree.add(place, Made::Call(rule))
                }
                part => {
                    let expr = terminals::expr(self.builder, unit.place(tail), part)?;
                    self.tree.add(place, Made::Terminal(expr))
                }
            };
            let begun = self.tree.add(place, Made::Choice(begun));
            let free = self.tree.add(place, Made::Complement(begun));
            let text = self.tree.add(place, Made::And(vec![text, free]));
            made[position + 1] = self.lexeme(scope, text);
        }
        Ok(())
    }

    /// The texts of a head, and the texts that begin with one. `None` for a head that ends with a token, which no text
    /// contains.
    fn head_text(
        &mut self,
        scope: &mut Scope<'_>,
        name: &str,
        definition: &Definition,
    ) -> Result<Option<MadeId>, SyntaxError> {
        let wrapping = attributes::read(scope.unit, name, definition)?;
        if !wrapping.needs_terminal() {
            return Ok(None);
        }
        let body = self.parts(scope, definition, None, &[], Within::Terminal)?;
        let ending = self.ending(scope, &wrapping)?;
        let parts = [Some(body), ending].into_iter().flatten().collect();
        Ok(Some(self.tree.add(definition.place, Made::Sequence(parts))))
    }

    /// In a choice, shortens the head of every alternative that begins with one: it ends where the first head is
    /// complete.
    pub(super) fn end_at_first_heads(
        &mut self,
        scope: &mut Scope<'_>,
        parts: &[PartId],
        made: &mut [MadeId],
    ) -> Result<(), SyntaxError> {
        let unit = scope.unit;
        let leads: Vec<Option<Lead>> = parts.iter().map(|&part| lead(unit, part)).collect();
        let mut heads: Vec<usize> = leads.iter().flatten().map(|lead| lead.head).collect();
        heads.sort_unstable();
        heads.dedup();
        if heads.len() < 2 {
            return Ok(());
        }
        for (position, lead) in leads.iter().enumerate() {
            let Some(Lead { head, call }) = *lead else { continue };
            let place = unit.place(parts[position]);
            let beside: Vec<usize> = heads.iter().copied().filter(|&other| other != head).collect();
            let rule = self.variant(scope, call.unwrap_or(head), Variant { beside, trimmed: false }, place)?;
            let rule = self.tree.add(place, Made::Call(rule));
            made[position] = match call {
                Some(_) => rule,
                None => self.with_first(made[position], rule),
            };
        }
        Ok(())
    }

    /// The body of a rule whose first part is a head, if these other heads are alternatives to it.
    pub(super) fn with_first_head(
        &mut self,
        scope: &mut Scope<'_>,
        definition: &Definition,
        body: MadeId,
        beside: &[usize],
    ) -> Result<MadeId, SyntaxError> {
        let unit = scope.unit;
        let Some(head) = head_of(unit, definition) else { return Ok(body) };
        let variant = Variant { beside: beside.to_vec(), trimmed: false };
        let rule = self.variant(scope, head, variant, definition.place)?;
        let call = self.tree.add(definition.place, Made::Call(rule));
        Ok(match unit.part(definition.body) {
            Part::Sequence(_) => self.with_first(body, call),
            _ => call,
        })
    }

    /// A sequence with its first part replaced.
    fn with_first(&mut self, sequence: MadeId, first: MadeId) -> MadeId {
        let place = self.tree.places[sequence.index()];
        let Made::Sequence(parts) = &self.tree.parts[sequence.index()] else { return first };
        let parts = std::iter::once(first).chain(parts.iter().skip(1).copied()).collect();
        self.tree.add(place, Made::Sequence(parts))
    }

    /// The texts of a head in which none of the other heads is complete before the end.
    pub(super) fn before_heads(
        &mut self,
        scope: &mut Scope<'_>,
        body: MadeId,
        beside: &[usize],
    ) -> Result<MadeId, SyntaxError> {
        let place = self.tree.places[body.index()];
        let first = self.before_heads_alone(scope, place, beside)?;
        Ok(match first {
            Some(first) => self.tree.add(place, Made::And(vec![body, first])),
            None => body,
        })
    }

    /// All texts in which none of these heads is complete before the end; `None` if no text can complete one.
    pub(super) fn before_heads_alone(
        &mut self,
        scope: &mut Scope<'_>,
        place: usize,
        beside: &[usize],
    ) -> Result<Option<MadeId>, SyntaxError> {
        let any = Utf8.class(&mut self.builder.exprs, &[('\0', char::MAX)]);
        let any = self.tree.add(place, Made::Terminal(any));
        let more = self.tree.add(place, Made::Repeat { body: any, min: 1, max: None });
        let mut earlier = Vec::with_capacity(beside.len());
        for &other in beside {
            let (name, definition) = scope.unit.definitions.get_index(other).expect("heads are definitions");
            if let Some(head) = self.head_text(scope, name, definition)? {
                earlier.push(self.tree.add(place, Made::Sequence(vec![head, more])));
            }
        }
        if earlier.is_empty() {
            return Ok(None);
        }
        let earlier = self.tree.add(place, Made::Choice(earlier));
        Ok(Some(self.tree.add(place, Made::Complement(earlier))))
    }
}

/// How an alternative begins with a head.
#[derive(Clone, Copy)]
struct Lead {
    /// The definition of the head.
    head: usize,
    /// The rule that the alternative calls; `None` if it is a sequence that begins with the head.
    call: Option<usize>,
}

fn lead(unit: &Unit, part: PartId) -> Option<Lead> {
    if let Part::Sequence(parts) = unit.part(part) {
        let (name, definition) = rule(unit, *parts.first()?)?;
        let head = unit.definitions.get_index_of(name)?;
        return ends_first(definition).then_some(Lead { head, call: None });
    }
    let (name, definition) = rule(unit, part).filter(|(_, definition)| !definition.is_terminal)?;
    let call = unit.definitions.get_index_of(name)?;
    let head = if ends_first(definition) { call } else { head_of(unit, definition)? };
    Some(Lead { head, call: Some(call) })
}

/// The lazy rule at the beginning of the body of a rule.
fn head_of(unit: &Unit, definition: &Definition) -> Option<usize> {
    let first = match unit.part(definition.body) {
        Part::Sequence(parts) => *parts.first()?,
        _ => definition.body,
    };
    let (name, head) = rule(unit, first)?;
    ends_first(head).then(|| unit.definitions.get_index_of(name)).flatten()
}

/// Whether a rule ends at its first match.
fn ends_first(definition: &Definition) -> bool {
    let ends = |name: &str| matches!(name, "lazy" | "suffix");
    !definition.is_terminal && definition.attributes.iter().any(|attribute| ends(&attribute.name))
}

fn alternatives(unit: &Unit, part: PartId) -> Vec<PartId> {
    match unit.part(part) {
        Part::Choice(parts) => parts.clone(),
        _ => vec![part],
    }
}

/// The rule that a part refers to, without arguments.
fn rule(unit: &Unit, part: PartId) -> Option<(&str, &Definition)> {
    let Part::Name { name, arguments, parameter: None } = unit.part(part) else { return None };
    let definition = unit.definitions.get(name).filter(|_| arguments.is_empty())?;
    (!definition.is_parametric && definition.parameters.is_empty()).then_some((name, definition))
}

/// The lazy rule at the beginning of a call.
fn head(unit: &Unit, call: PartId) -> Option<(&str, &Definition)> {
    let (_, definition) = rule(unit, call).filter(|(_, definition)| !definition.is_terminal)?;
    let (name, head) = unit.definitions.get_index(head_of(unit, definition)?)?;
    Some((name, head))
}

/// The terminal that a part refers to: one with a name, or a pattern.
fn terminal(unit: &Unit, mut part: PartId) -> Option<PartId> {
    for _ in 0..MAX_NAMES {
        match rule(unit, part) {
            Some((_, definition)) if definition.is_terminal => return Some(part),
            Some((_, definition)) if definition.attributes.is_empty() => part = definition.body,
            Some(_) => return None,
            None => return matches!(unit.part(part), Part::Pattern(..)).then_some(part),
        }
    }
    None
}
