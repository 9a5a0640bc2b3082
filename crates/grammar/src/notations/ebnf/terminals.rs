//! Parts that must be regular as expressions.

use stencilm_regex::syntax::{Alphabet, Utf8};
use stencilm_regex::{Expr, ExprId, ExprSet};

use super::tree::{Part, PartId, Text};
use crate::error::ErrorKind;
use crate::ir::builder::{GrammarBuilder, MAX_EXPRS};
use crate::ir::grammar::Mark;
use crate::ir::syntax_error::SyntaxError;

/// What is known about the expression of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    /// It's on the stack: some part inside it is being computed.
    Open,
    Expr(ExprId),
}

/// Converts parts into expressions, if they are regular.
pub(crate) struct Terminals<'a> {
    text: &'a Text,
    known: Vec<Known>,
}

/// Every text of whole characters.
pub(crate) fn any_text(exprs: &mut ExprSet) -> ExprId {
    let any = Utf8.class(exprs, &[('\0', char::MAX)]);
    exprs.repeat(any, 0, None)
}

impl<'a> Terminals<'a> {
    pub(super) fn new(text: &'a Text) -> Terminals<'a> {
        Terminals { text, known: vec![Known::Nothing; text.parts.len()] }
    }

    fn children(&self, id: PartId) -> Result<Vec<PartId>, SyntaxError> {
        Ok(match self.text.part(id) {
            Part::Terminal(_) => Vec::new(),
            Part::Call(rule) => {
                let (body, _) = self.text.names[*rule as usize];
                vec![body.expect("the parser refuses rules without a body")]
            }
            Part::Sequence(parts) | Part::Choice(parts) | Part::And(parts) => parts.clone(),
            &Part::Repeat { body, .. } => vec![body],
            &(Part::Complement(body) | Part::Not(body) | Part::Lexeme(body) | Part::Lazy(body)) => vec![body],
            Part::Token(_)
            | Part::Marked { .. }
            | Part::Divided(_)
            | Part::Object(_)
            | Part::Array(_)
            | Part::Node(_)
            | Part::Lookahead(_)
            | Part::Ahead(_) => {
                let what = match self.text.part(id) {
                    Part::Token(_) => "a token of the model",
                    Part::Marked { mark: Mark::Capture(_), .. } => "a capture",
                    Part::Marked { mark: Mark::MaxTokens(_), .. } => "a part with max_tokens",
                    Part::Marked { mark: Mark::Temperature(_), .. } => "a part with a temperature",
                    Part::Marked { mark: Mark::Declares(_), .. } => "a declaration of names",
                    Part::Marked { mark: Mark::Refers(_), .. } => "a reference to names",
                    Part::Divided(_) => "a rule with a suffix that is told apart",
                    Part::Array(_) => "an array",
                    Part::Node(_) => "another grammar",
                    Part::Lookahead(_) | Part::Ahead(_) => "a condition on what follows",
                    _ => "an object",
                };
                let message = format!(
                    "{what} stands within a terminal, which is made of text only: %lexeme, %lazy, %not, `&`, `~` and \
                     keys of objects take literals, classes, patterns and rules made of these; move it out"
                );
                return Err(SyntaxError::at(self.text.places[id.index()], message));
            }
        })
    }

    /// The expression of a part that must be regular.
    pub(crate) fn expr(&mut self, builder: &mut GrammarBuilder, root: PartId) -> Result<ExprId, SyntaxError> {
        let mut work = vec![root];
        while let Some(&id) = work.last() {
            SyntaxError::check_time(self.text.places[id.index()])?;
            if matches!(self.known[id.index()], Known::Expr(_)) {
                work.pop();
                continue;
            }
            let children = self.children(id)?;
            if self.known[id.index()] == Known::Nothing {
                self.known[id.index()] = Known::Open;
                for &child in &children {
                    match self.known[child.index()] {
                        Known::Expr(_) => {}
                        Known::Nothing => work.push(child),
                        Known::Open => return Err(self.recursion(child, id)),
                    }
                }
                if work.last() != Some(&id) {
                    continue;
                }
            }
            // A child may have been visited from elsewhere since it was put on the stack; then it is either done, or it
            // contains this part.
            let mut parts = Vec::with_capacity(children.len());
            for &child in &children {
                let Known::Expr(expr) = self.known[child.index()] else { return Err(self.recursion(child, id)) };
                parts.push(expr);
            }
            work.pop();
            let expr = self.made(builder, id, &parts);
            if builder.exprs.own_len() > MAX_EXPRS {
                let message = format!("this terminal has more than {MAX_EXPRS} parts; shorten or split it");
                let place = self.text.places[id.index()];
                return Err(SyntaxError { kind: ErrorKind::Limit, ..SyntaxError::at(place, message) });
            }
            SyntaxError::check_growth(&mut builder.exprs, self.text.places[id.index()])?;
            self.known[id.index()] = Known::Expr(expr);
        }
        match self.known[root.index()] {
            Known::Expr(expr) => Ok(expr),
            _ => unreachable!("the loop ends when the root is known"),
        }
    }

    fn recursion(&self, child: PartId, user: PartId) -> SyntaxError {
        let name = match (self.text.part(user), self.text.part(child)) {
            (Part::Call(rule), _) | (_, Part::Call(rule)) => {
                self.text.names.get_index(*rule as usize).map(|(name, _)| format!("the rule `{name}`"))
            }
            _ => None,
        };
        let name = name.unwrap_or_else(|| "a rule".into());
        let message = format!(
            "{name} refers to itself within a terminal, which must be regular; use repetition there, or move the \
             recursion out of what makes it a terminal"
        );
        SyntaxError::at(self.text.places[user.index()], message)
    }

    fn made(&self, builder: &mut GrammarBuilder, id: PartId, parts: &[ExprId]) -> ExprId {
        let exprs = &mut builder.exprs;
        match self.text.part(id) {
            Part::Terminal(expr) => *expr,
            Part::Call(_) | Part::Lexeme(_) => parts[0],
            Part::Sequence(_) => exprs.concat_all(parts),
            Part::Choice(_) => exprs.or(parts),
            &Part::Repeat { min, max, .. } => exprs.repeat(parts[0], min, max),
            Part::And(_) => exprs.and(parts),
            Part::Not(_) => exprs.not(parts[0]),
            Part::Complement(_) => {
                // If the operand is a complement, or an intersection with text, only the other operand is complemented,
                // so that nested complements don't grow.
                let text = any_text(exprs);
                let inner = match exprs.get(parts[0]) {
                    Expr::And(all) if all.contains(&text) => {
                        let rest: Vec<ExprId> = all.iter().copied().filter(|&part| part != text).collect();
                        exprs.and(&rest)
                    }
                    _ => parts[0],
                };
                let not = exprs.not(inner);
                exprs.and(&[text, not])
            }
            Part::Lazy(_) => {
                // The shortest matches: those of which no shorter prefix is a match.
                let more = exprs.repeat(ExprId::ANY_BYTE, 1, None);
                if is_lazy(exprs, parts[0], more) {
                    return parts[0];
                }
                let longer = exprs.concat(parts[0], more);
                let not_longer = exprs.not(longer);
                exprs.and(&[parts[0], not_longer])
            }
            Part::Token(_)
            | Part::Marked { .. }
            | Part::Divided(_)
            | Part::Object(_)
            | Part::Array(_)
            | Part::Node(_)
            | Part::Lookahead(_)
            | Part::Ahead(_) => {
                unreachable!("parts that are not regular are refused with their children")
            }
        }
    }
}

/// Whether an expression already consists of the shortest matches of another one: then it equals its own shortest
/// matches.
fn is_lazy(exprs: &mut ExprSet, expr: ExprId, more: ExprId) -> bool {
    let Expr::And(parts) = exprs.get(expr).clone() else { return false };
    parts.iter().any(|&part| {
        let Expr::Not(longer) = *exprs.get(part) else { return false };
        let rest: Vec<ExprId> = parts.iter().copied().filter(|&other| other != part).collect();
        let rest = exprs.and(&rest);
        exprs.concat(rest, more) == longer
    })
}
