//! Regular parts joined to lexemes: `"a" [b-c]* "d"` becomes one.
//!
//! Lexemes match bytes and have no priorities, so joining changes no text. What it must keep is cost:
//!
//! * A joined lexeme is of bounded size, and counters stay counters.
//! * Nothing is joined after a long run of nearly any character, as the body of a quoted text. There a mask is a row
//!   of the vocabulary that all lexemes with the same rest share; with other text after it, each would need its own.
//! * Lexemes with `&` or `~` stay alone: whether anything is left of them is searched for.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{Expr, ExprId, ExprSet};

use super::rebuild::{Draft, rebuild};
use crate::ir::grammar::{Grammar, Node, NodeId};

/// The greatest size of a lexeme that is joined from a sequence, in parts.
const MAX_SEQUENCE: u32 = 256;
/// The greatest size of a lexeme that is joined from alternatives, in parts.
const MAX_CHOICE: u32 = 1 << 14;
/// The longest sequence or choice that is flattened into an enclosing one.
const MAX_FLATTENED: usize = 32;
/// A set of more bytes than this counts as nearly any character.
const WIDE_BYTES: usize = 48;
/// A repetition of more rounds than this counts as a long run.
const LONG_RUN: u32 = 16;

/// What the pass needs to know about an expression.
#[derive(Clone, Copy)]
struct Facts {
    /// The number of its parts when written out, capped above all bounds.
    size: u32,
    /// Whether some part matches nearly any character.
    has_wide_bytes: bool,
    /// Whether some part is a long run of nearly any character.
    has_wide_run: bool,
}

/// The facts of the requested expressions and of all their parts.
#[derive(Default)]
struct AllFacts(FxHashMap<ExprId, Facts>);

impl AllFacts {
    fn of(&mut self, exprs: &ExprSet, id: ExprId) -> Facts {
        let mut work = vec![id];
        while let Some(&id) = work.last() {
            let before = work.len();
            if !self.0.contains_key(&id) {
                exprs.for_each_child(id, |child| {
                    if !self.0.contains_key(&child) {
                        work.push(child);
                    }
                });
            }
            if work.len() == before {
                work.pop();
                let facts = self.compute(exprs, id);
                self.0.insert(id, facts);
            }
        }
        self.0[&id]
    }

    fn compute(&self, exprs: &ExprSet, id: ExprId) -> Facts {
        let mut facts = Facts { size: 1, has_wide_bytes: false, has_wide_run: false };
        exprs.for_each_child(id, |child| {
            let child = self.0[&child];
            facts.size = facts.size.saturating_add(child.size);
            facts.has_wide_bytes |= child.has_wide_bytes;
            facts.has_wide_run |= child.has_wide_run;
        });
        match exprs.get(id) {
            Expr::Bytes(set) => facts.has_wide_bytes = set.len() > WIDE_BYTES,
            Expr::Concat { .. } => facts.size -= 1,
            Expr::Text(text) => facts.size = text.len() as u32,
            Expr::Repeat { max, .. } => {
                facts.has_wide_run |= facts.has_wide_bytes && max.is_none_or(|max| max > LONG_RUN);
            }
            _ => {}
        }
        facts
    }
}

/// Joins lexemes that follow each other, are alternatives, or are repeated; rules that become lexemes are inlined on
/// the way.
pub fn join_lexemes<E>(grammar: &Grammar, may_go_on: impl Fn() -> Result<(), E>) -> Result<Grammar, E> {
    let mut facts = AllFacts::default();
    rebuild(grammar, true, may_go_on, |draft, node| joined(draft, &mut facts, node))
}

fn joined(draft: &mut Draft, facts: &mut AllFacts, node: Node) -> NodeId {
    match node {
        Node::Lexeme(ExprId::EMPTY) => draft.node(Node::Sequence(Box::default())),
        Node::Sequence(parts) => sequence(draft, facts, &parts),
        Node::Choice(parts) => choice(draft, facts, &parts),
        Node::Repeat { body, min, max } => repeat(draft, facts, body, min, max),
        other => super::inline::inlined(draft, other),
    }
}

/// The expression of a node that is a lexeme or empty.
fn lexeme(draft: &Draft, id: NodeId) -> Option<ExprId> {
    match draft.get(id) {
        Node::Lexeme(expr) => Some(*expr),
        Node::Sequence(parts) if parts.is_empty() => Some(ExprId::EMPTY),
        _ => None,
    }
}

fn flattened(draft: &Draft, parts: &[NodeId], of: impl Fn(&Node) -> Option<&[NodeId]>) -> Vec<NodeId> {
    let mut flat = Vec::with_capacity(parts.len());
    for &part in parts {
        match of(draft.get(part)) {
            Some(inner) if inner.len() <= MAX_FLATTENED => flat.extend_from_slice(inner),
            _ => flat.push(part),
        }
    }
    flat
}

fn sequence(draft: &mut Draft, facts: &mut AllFacts, parts: &[NodeId]) -> NodeId {
    let flat = flattened(draft, parts, |node| if let Node::Sequence(parts) = node { Some(parts) } else { None });
    let mut result: Vec<NodeId> = Vec::with_capacity(flat.len());
    // The run of lexemes that becomes the last part of the result, and its size.
    let mut run: Vec<ExprId> = Vec::new();
    let mut size = 0u32;
    let flush = |draft: &mut Draft, run: &mut Vec<ExprId>, result: &mut Vec<NodeId>| {
        if !run.is_empty() {
            let expr = draft.exprs.concat_all(run);
            result.push(draft.node(Node::Lexeme(expr)));
            run.clear();
        }
    };
    for part in flat {
        let Some(expr) = lexeme(draft, part) else {
            flush(draft, &mut run, &mut result);
            result.push(part);
            continue;
        };
        if expr == ExprId::EMPTY {
            continue;
        }
        let own = facts.of(&draft.exprs, expr);
        let fits = run.last().is_some_and(|&last| {
            let before = facts.of(&draft.exprs, last);
            let plain = !draft.exprs.has_boolean(last) && !draft.exprs.has_boolean(expr);
            plain && !before.has_wide_run && size.saturating_add(own.size) <= MAX_SEQUENCE
        });
        if !fits {
            flush(draft, &mut run, &mut result);
            size = 0;
        }
        run.push(expr);
        size = size.saturating_add(own.size);
    }
    flush(draft, &mut run, &mut result);
    if let [only] = *result { only } else { draft.node(Node::Sequence(result.into())) }
}

fn choice(draft: &mut Draft, facts: &mut AllFacts, parts: &[NodeId]) -> NodeId {
    let flat = flattened(draft, parts, |node| if let Node::Choice(parts) = node { Some(parts) } else { None });
    let mut seen = FxHashSet::default();
    let mut result: Vec<NodeId> = Vec::with_capacity(flat.len());
    let mut lexemes: Vec<ExprId> = Vec::new();
    let mut size = 0u32;
    let mut place = None;
    for part in flat {
        if !seen.insert(part) {
            continue;
        }
        if let Some(expr) = lexeme(draft, part) {
            let own = facts.of(&draft.exprs, expr);
            let fits = !draft.exprs.has_boolean(expr) && !own.has_wide_run;
            if fits && size.saturating_add(own.size) <= MAX_CHOICE {
                size = size.saturating_add(own.size);
                lexemes.push(expr);
                if place.is_none() {
                    place = Some(result.len());
                    result.push(part);
                }
                continue;
            }
        }
        result.push(part);
    }
    if let Some(place) = place {
        let expr = draft.exprs.or(&lexemes);
        result[place] = if expr == ExprId::EMPTY {
            draft.node(Node::Sequence(Box::default()))
        } else {
            draft.node(Node::Lexeme(expr))
        };
    }
    if let [only] = *result { only } else { draft.node(Node::Choice(result.into())) }
}

fn repeat(draft: &mut Draft, facts: &mut AllFacts, body: NodeId, min: u32, max: Option<u32>) -> NodeId {
    if (min, max) == (1, Some(1)) {
        return body;
    }
    let expr = lexeme(draft, body);
    if max == Some(0) || expr == Some(ExprId::EMPTY) {
        return draft.node(Node::Sequence(Box::default()));
    }
    if let Some(expr) = expr {
        let own = facts.of(&draft.exprs, expr);
        if !draft.exprs.has_boolean(expr) && !own.has_wide_run && own.size <= MAX_SEQUENCE {
            let expr = draft.exprs.repeat(expr, min, max);
            return draft.node(Node::Lexeme(expr));
        }
    }
    draft.node(Node::Repeat { body, min, max })
}
