//! Free text behind calls that free text leads to: `start: call* tail`, where a call begins with a `lazy` head.
//!
//! A lexer that stops at the first match of a lazy terminal never lets the tail run past the beginning of a call. Here no
//! terminal is preferred to another, so the tail is told what it must not begin with.

use super::attributes;
use super::expand::{Expansion, Scope, Within};
use super::terminals;
use super::tree::{Definition, Part, PartId, Unit};
use crate::ebnf::tree::{Part as Made, PartId as MadeId};
use crate::syntax_error::SyntaxError;
use stencilm_regex::syntax::{Alphabet, Utf8};

/// So many names that stand for another one are followed.
const MAX_NAMES: usize = 16;

impl Expansion<'_, '_> {
    /// In a sequence, makes every terminal behind repeated rules one that has no beginning which is the head of such a rule.
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
                // It depends on what stands around it, and so cannot be a part of another terminal.
                continue;
            }
            let place = unit.place(pair[1]);
            let any = Utf8.class(&mut self.builder.exprs, &[('\0', char::MAX)]);
            let any = self.tree.add(place, Made::Terminal(any));
            let anything = self.tree.add(place, Made::Repeat { body: any, min: 0, max: None });
            let mut begun = Vec::with_capacity(heads.len());
            for (name, definition) in heads {
                let wrapping = attributes::read(unit, name, definition)?;
                if !wrapping.needs_terminal() {
                    // It ends with a token, which no text holds.
                    continue;
                }
                let body = self.parts(scope, definition, None, &[], Within::Terminal)?;
                let ending = self.ending(scope, &wrapping)?;
                let parts = [Some(body), ending, Some(anything)].into_iter().flatten().collect();
                begun.push(self.tree.add(place, Made::Sequence(parts)));
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
}

fn alternatives(unit: &Unit, part: PartId) -> Vec<PartId> {
    match unit.part(part) {
        Part::Choice(parts) => parts.clone(),
        _ => vec![part],
    }
}

/// The rule that a part is, without arguments.
fn rule(unit: &Unit, part: PartId) -> Option<(&str, &Definition)> {
    let Part::Name { name, arguments, parameter: None } = unit.part(part) else { return None };
    let definition = unit.definitions.get(name).filter(|_| arguments.is_empty())?;
    (!definition.is_parametric && definition.parameters.is_empty()).then_some((name, definition))
}

/// The lazy rule that a call begins with.
fn head(unit: &Unit, call: PartId) -> Option<(&str, &Definition)> {
    let (_, definition) = rule(unit, call).filter(|(_, definition)| !definition.is_terminal)?;
    let first = match unit.part(definition.body) {
        Part::Sequence(parts) => *parts.first()?,
        _ => definition.body,
    };
    let ends_first = |definition: &Definition| {
        definition.attributes.iter().any(|attribute| matches!(&*attribute.name, "lazy" | "suffix"))
    };
    rule(unit, first).filter(|(_, definition)| !definition.is_terminal && ends_first(definition))
}

/// The terminal that a part stands for: one by name or a pattern.
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
