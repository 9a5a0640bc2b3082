//! What is ignored stands after every terminal, and so at the end of a rule. Where something is said of the rule that
//! ends with its last terminal, that end is left out and stands after the rule.

use super::expansion::{Expansion, Scope};
use super::spread::spread;
use super::tree::{Part, PartId, Unit};
use crate::ir::grammar::Mark;
use crate::ir::syntax_error::SyntaxError;
use crate::notations::ebnf::tree::{Part as Made, PartId as MadeId};

/// At a greater nesting depth nothing is left out.
const MAX_DEPTH: usize = 200;

impl Expansion<'_, '_> {
    /// A part of a rule without what is ignored after its last terminal.
    pub(super) fn trimmed(&mut self, scope: &mut Scope<'_>, part: MadeId, depth: usize) -> Result<MadeId, SyntaxError> {
        let Some(ignored) = scope.ignored.filter(|_| depth < MAX_DEPTH) else { return Ok(part) };
        let place = self.tree.places[part.index()];
        let trimmed = match self.tree.parts[part.index()].clone() {
            Made::Call(rule) => Made::Call(self.trimmed_rule(scope, rule, place)?),
            Made::Choice(parts) => {
                let mut alternatives = Vec::with_capacity(parts.len());
                for part in parts {
                    alternatives.push(self.trimmed(scope, part, depth + 1)?);
                }
                Made::Choice(alternatives)
            }
            Made::Marked { mark, body } if !matches!(mark, Mark::Capture(_)) => {
                Made::Marked { mark, body: self.trimmed(scope, body, depth + 1)? }
            }
            Made::Repeat { body, min, max } if max != Some(0) => {
                let last = self.trimmed(scope, body, depth + 1)?;
                let before = Made::Repeat { body, min: min.saturating_sub(1), max: max.map(|max| max - 1) };
                let before = self.tree.add(place, before);
                let some = self.tree.add(place, Made::Sequence(vec![before, last]));
                let mut alternatives = vec![some];
                if min == 0 {
                    alternatives.push(self.tree.add(place, Made::Sequence(Vec::new())));
                }
                Made::Choice(alternatives)
            }
            Made::Sequence(mut parts) => {
                let Some(last) = parts.pop() else { return Ok(part) };
                match self.tree.parts[last.index()] {
                    Made::Call(rule) if rule == ignored => Made::Sequence(parts),
                    Made::Repeat { min: 0, .. } => {
                        // Without a round, the part before it is the last one.
                        let rounds = self.at_least_once(last);
                        let rounds = self.trimmed(scope, rounds, depth + 1)?;
                        let some = parts.iter().copied().chain([rounds]).collect();
                        let some = self.tree.add(place, Made::Sequence(some));
                        let none = self.tree.add(place, Made::Sequence(parts));
                        let none = self.trimmed(scope, none, depth + 1)?;
                        Made::Choice(vec![some, none])
                    }
                    _ => {
                        parts.push(self.trimmed(scope, last, depth + 1)?);
                        Made::Sequence(parts)
                    }
                }
            }
            _ => return Ok(part),
        };
        Ok(self.tree.add(place, trimmed))
    }

    /// A repetition with at least one round.
    fn at_least_once(&mut self, repeat: MadeId) -> MadeId {
        let place = self.tree.places[repeat.index()];
        match self.tree.parts[repeat.index()] {
            Made::Repeat { body, max, .. } => self.tree.add(place, Made::Repeat { body, min: 1, max }),
            _ => repeat,
        }
    }
}

/// For every definition, whether it may be empty, without even anything ignored in it: a terminal is always followed by
/// what is ignored, even if it matches the empty text.
pub(super) fn nullable(unit: &Unit) -> Result<Vec<bool>, SyntaxError> {
    spread(unit, |definition, found| {
        let first = definition.first.index();
        let mut parts: Vec<bool> = Vec::new();
        for id in unit.parts_of(definition) {
            let of = |child: &PartId| parts[child.index() - first];
            parts.push(match unit.part(id) {
                Part::Sequence(parts) | Part::And(parts) => parts.iter().all(of),
                Part::Choice(parts) => parts.iter().any(of),
                Part::Repeat { body, min, .. } => *min == 0 || of(body),
                Part::When(body, _) => of(body),
                Part::Name { name, .. } if definition.parameters.contains(name) => true,
                Part::Name { name, .. } => match unit.definitions.get_full(name) {
                    Some((index, _, used)) => !used.is_terminal && found[index],
                    None => true,
                },
                Part::Text(text, _) => text.is_empty(),
                Part::Not(_) | Part::Pattern(..) | Part::Regex(_) => false,
                // What these match isn't known here.
                Part::Grammar(_) | Part::Nested(_) => true,
                _ => false,
            });
        }
        parts.last() == Some(&true)
    })
}
