//! Drops the parts of a grammar that match no text, so that no matcher can ever walk into a dead end.
//!
//! The productive nodes are the least fixed point of "matches some text".

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use stencilm_regex::{Deriver, Expr, ExprId, ExprSet, Limits};
use stencilm_support::{check_time, unwatched};

use crate::error::{ErrorKind, GrammarError};
use crate::ir::fixpoint::{Clause, least_fixed_point};
use crate::ir::grammar::{DeclaredMember, Element, Grammar, Items, Node, NodeId, TokenPattern};
use crate::json::values::common_exprs;

/// Which expressions match some text: decided by their shape, known in advance, or searched for once each.
#[derive(Clone, Default)]
pub(crate) struct LiveExprs {
    /// What is known of expressions that contain an intersection or a negation.
    known: FxHashMap<ExprId, bool>,
}

impl LiveExprs {
    /// Records that an expression matches some text.
    pub(crate) fn note(&mut self, exprs: &ExprSet, expr: ExprId) {
        if exprs.has_boolean(expr) {
            self.known.insert(expr, true);
        }
    }

    /// Records that all lexemes of a finished grammar match some text, as they must.
    pub(crate) fn note_all(&mut self, exprs: &ExprSet, nodes: &[Node]) {
        for node in nodes {
            if let Node::Lexeme(expr) = node {
                self.note(exprs, *expr);
            }
        }
    }

    /// Whether an expression matches some text, if that needs no search.
    fn decided_by(&self, exprs: &ExprSet, mut expr: ExprId) -> Option<bool> {
        // Mostly, what is known is one part of a sequence of otherwise plain expressions, such as a name between
        // quotes.
        loop {
            if !exprs.has_boolean(expr) {
                return Some(expr != ExprId::NOTHING);
            }
            if let Some(&known) = self.known.get(&expr) {
                return Some(known);
            }
            let Expr::Concat { head, tail } = *exprs.get(expr) else { return None };
            if exprs.has_boolean(head) && self.known.get(&head) != Some(&true) {
                return None;
            }
            expr = tail;
        }
    }

    /// Whether an expression matches some text; `deriver` is created if a search is needed.
    pub(super) fn decide(
        &mut self,
        exprs: &ExprSet,
        expr: ExprId,
        deriver: &mut Option<Deriver>,
    ) -> Result<bool, GrammarError> {
        if let Some(decided_by) = self.decided_by(exprs, expr) {
            return Ok(decided_by);
        }
        let deriver = deriver.get_or_insert_with(|| Deriver::over(common_exprs(), Limits::default()));
        let copy = deriver.exprs.import(exprs, expr);
        let live = deriver.is_live(copy).map_err(|limit| GrammarError::limit("", limit))?;
        self.known.insert(expr, live);
        Ok(live)
    }
}

/// The same language, without dead alternatives, optional members and repetitions. Every remaining lexeme matches some
/// text.
///
/// # Errors
/// [`ErrorKind::Unsatisfiable`] when nothing is left, [`ErrorKind::Limit`] when a lexeme is too hard to decide.
pub(crate) fn without_dead_parts(grammar: Grammar, mut live: LiveExprs) -> Result<Grammar, GrammarError> {
    let grammar = if is_plainly_alive(&grammar, &mut live)? {
        debug_assert!(
            unwatched(|| without_dead_alternatives(grammar.clone(), &mut LiveExprs::default())).is_ok_and(|same| {
                same.nodes == grammar.nodes && same.members == grammar.members && same.items == grammar.items
            }),
            "where every node is alive there is nothing to drop"
        );
        grammar
    } else {
        without_dead_alternatives(grammar, &mut live)?
    };
    refuse_empty_elements(&grammar)?;
    grammar
        .items
        .iter()
        .filter(|items| items.must_repeat() && items.can_complete(0, &vec![0; items.contains.len()], |_| true))
        .try_for_each(Items::check_repeats)?;
    Ok(grammar)
}

impl Grammar {
    /// The grammar for a vocabulary in which the tokens of some patterns are missing: `is_missing` tells which. Their
    /// nodes are removed, with what depends on them. `None` if nothing is removed.
    ///
    /// # Errors
    /// [`ErrorKind::Unsatisfiable`](crate::ErrorKind::Unsatisfiable) when nothing is left.
    pub fn without_tokens(&self, is_missing: impl Fn(&TokenPattern) -> bool) -> Result<Option<Grammar>, GrammarError> {
        let lacks = |node: &Node| matches!(node, Node::Token(pattern) if is_missing(pattern));
        if !self.nodes.iter().any(lacks) {
            return Ok(None);
        }
        let mut grammar = self.clone();
        for node in grammar.nodes.iter_mut().filter(|node| lacks(node)) {
            *node = Node::Choice(Box::default());
        }
        let mut live = LiveExprs::default();
        live.note_all(&grammar.exprs, &grammar.nodes);
        without_dead_parts(grammar, live).map(Some)
    }
}

fn without_dead_alternatives(mut grammar: Grammar, live: &mut LiveExprs) -> Result<Grammar, GrammarError> {
    let productive = productive_nodes(&grammar, live)?;
    let is_productive = |id: NodeId| productive[id.0 as usize];
    if !is_productive(grammar.root) {
        return Err(GrammarError::new(
            ErrorKind::Unsatisfiable,
            "",
            "nothing can match: every way through the grammar ends in a part that matches no text or in a recursion \
             without an end; give it a base case or loosen a constraint",
        ));
    }
    let mut nodes = std::mem::take(&mut grammar.nodes);
    for (index, node) in nodes.iter_mut().enumerate() {
        match node {
            // Nothing refers to it any more; a builder that continues from this grammar need not search it again.
            Node::Lexeme(_) if !productive[index] => *node = Node::Choice(Box::default()),
            Node::Choice(parts) if !parts.iter().all(|&part| is_productive(part)) => {
                *parts = parts.iter().copied().filter(|&part| is_productive(part)).collect();
            }
            Node::Repeat { body, min: 0, .. } if !is_productive(*body) => *node = Node::Sequence(Box::default()),
            _ => {}
        }
    }
    grammar.nodes = nodes;
    for members in &mut grammar.members {
        let keeps = |known: &DeclaredMember| known.required || is_productive(known.value);
        members.ordered = members.declared[..members.ordered].iter().filter(|known| keeps(known)).count();
        members.declared.retain(keeps);
        members.additional.retain(|additional| is_productive(additional.value) || additional.some.is_some());
        for additional in &mut members.additional {
            // If only the required value is possible, every member must have it.
            additional.value = if is_productive(additional.value) {
                additional.value
            } else {
                additional.some.unwrap_or(additional.value)
            };
        }
    }
    for items in &mut grammar.items {
        let alive = |place: &[Element]| place.iter().copied().filter(|element| is_productive(element.value)).collect();
        items.prefix.iter_mut().for_each(|place| *place = alive(place));
        items.rest = alive(&items.rest);
        let dead = items.prefix.iter().position(|place| place.is_empty());
        let end = dead.or(items.rest.is_empty().then_some(items.prefix.len()));
        if let Some(end) = end {
            items.prefix.truncate(end);
            items.rest = Box::default();
            items.max = Some(items.max.map_or(end as u32, |max| max.min(end as u32)));
        }
    }
    Ok(grammar)
}

/// Refuses arrays whose elements may be the empty text: then the position in the array would be ambiguous.
fn refuse_empty_elements(grammar: &Grammar) -> Result<(), GrammarError> {
    if grammar.items.is_empty() {
        return Ok(());
    }
    let nullable = grammar.nullable_nodes();
    let mut elements = grammar.items.iter().flat_map(Items::elements);
    if elements.any(|element| nullable[element.value.0 as usize]) {
        let message = "an element of an array may be empty; give each at least one character";
        return Err(GrammarError::new(ErrorKind::Unsupported, "", message));
    }
    Ok(())
}

/// The number of passes that test whether everything is alive: as deep as required parts nest in most grammars.
const ROUNDS: usize = 8;

/// Whether every node certainly matches some text, found in a few passes over the nodes in order. This holds for most
/// grammars, and then nothing is dead.
fn is_plainly_alive(grammar: &Grammar, live: &mut LiveExprs) -> Result<bool, GrammarError> {
    let mut alive = vec![false; grammar.nodes.len()];
    let mut left = alive.len();
    let mut deriver = None;
    for (alive, node) in alive.iter_mut().zip(&grammar.nodes) {
        in_time()?;
        let Node::Lexeme(expr) = node else { continue };
        if !live.decide(&grammar.exprs, *expr, &mut deriver)? {
            return Ok(false);
        }
        *alive = true;
        left -= 1;
    }
    for _ in 0..ROUNDS {
        let before = left;
        for index in 0..alive.len() {
            in_time()?;
            if !alive[index] && is_alive_from(grammar, &grammar.nodes[index], &alive) {
                alive[index] = true;
                left -= 1;
            }
        }
        if left == 0 || left == before {
            break;
        }
    }
    Ok(left == 0)
}

/// Fails if the operation takes too long.
fn in_time() -> Result<(), GrammarError> {
    check_time().map_err(|limit| GrammarError::limit("", limit))
}

/// Whether a node certainly matches some text if these do.
fn is_alive_from(grammar: &Grammar, node: &Node, alive: &[bool]) -> bool {
    let is_alive = |node: NodeId| alive[node.0 as usize];
    match node {
        // Lexemes were tested before.
        Node::Lexeme(_) => false,
        Node::Token(_) => true,
        Node::Sequence(parts) => parts.iter().all(|&part| is_alive(part)),
        Node::Choice(parts) => parts.iter().any(|&part| is_alive(part)),
        Node::Repeat { body, min, max } => *min == 0 || (max.is_none_or(|max| *min <= max) && is_alive(*body)),
        Node::Marked { body, .. } => is_alive(*body),
        Node::Rule(rule) => is_alive(grammar.rule(*rule).body),
        Node::Members(id) => {
            let members = grammar.members(*id);
            members.min == 0
                && members.max.is_none()
                && members.additional.iter().all(|additional| additional.some.is_none() && additional.last.is_none())
                && members.declared.iter().all(|known| !known.required || is_alive(known.value))
        }
        Node::Items(id) => {
            let items = grammar.items(*id);
            items.contains.is_empty()
                && !items.rest.is_empty()
                && items.prefix.iter().all(|place| !place.is_empty())
                && items.max.is_none_or(|max| items.min <= max)
                && (items.min == 0 || items.elements().all(|element| is_alive(element.value)))
        }
    }
}

/// Which nodes match some text.
pub(crate) fn productive_nodes(grammar: &Grammar, live: &mut LiveExprs) -> Result<Vec<bool>, GrammarError> {
    // Created on demand: most grammars need no search.
    let mut deriver: Option<Deriver> = None;
    least_fixed_point(grammar.nodes.len(), |index| {
        in_time()?;
        Ok(match &grammar.nodes[index] {
            Node::Lexeme(expr) => {
                let live = live.decide(&grammar.exprs, *expr, &mut deriver)?;
                if live { Clause::always() } else { Clause::Never }
            }
            // Whether a vocabulary has such a token isn't known here; the engine removes the missing ones.
            Node::Token(_) | Node::Repeat { min: 0, .. } => Clause::always(),
            Node::Sequence(parts) => Clause::All(Cow::Borrowed(parts)),
            Node::Choice(parts) => Clause::Any(parts),
            Node::Repeat { min, max: Some(max), .. } if max < min => Clause::Never,
            Node::Repeat { body, .. } | Node::Marked { body, .. } => Clause::If(*body),
            Node::Rule(rule) => Clause::If(grammar.rule(*rule).body),
            Node::Members(id) => {
                let members = grammar.members(*id);
                let additional = members
                    .additional
                    .iter()
                    .flat_map(|additional| [Some(additional.value), additional.some])
                    .flatten();
                if members.is_counted() {
                    let values = members.declared.iter().map(|known| known.value).chain(additional).collect();
                    let test = |holds: &[bool]| members.is_possible(|node| holds[node.0 as usize]);
                    return Ok(Clause::Test(values, Box::new(test)));
                }
                Clause::All(members.declared.iter().filter(|known| known.required).map(|known| known.value).collect())
            }
            Node::Items(id) => {
                let items = grammar.items(*id);
                items.check_counters()?;
                let values = items.elements().map(|element| element.value).collect();
                let none = vec![0; items.contains.len()];
                Clause::Test(values, Box::new(move |holds| items.can_complete(0, &none, |node| holds[node.0 as usize])))
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::builder::GrammarBuilder;
    use crate::ir::report::Report;

    #[test]
    fn recursion_without_a_base_case_is_refused() {
        let mut builder = GrammarBuilder::default();
        let rule = builder.declare_rule("root");
        let a = builder.exprs.literal(b"a");
        let a = builder.lexeme(a);
        let call = builder.node(Node::Rule(rule));
        let body = builder.sequence(&[a, call]);
        builder.define_rule(rule, body);
        let error = builder.finish(call, Report::default()).expect_err("nothing matches");
        assert_eq!(error.kind, ErrorKind::Unsatisfiable);
    }

    #[test]
    fn dead_alternatives_go() {
        let mut builder = GrammarBuilder::default();
        let rule = builder.declare_rule("root");
        let a = builder.exprs.literal(b"a");
        let a = builder.lexeme(a);
        let nothing = builder.lexeme(ExprId::NOTHING);
        let call = builder.node(Node::Rule(rule));
        let dead = builder.sequence(&[call, nothing]);
        let body = builder.choice(&[a, dead]);
        builder.define_rule(rule, body);
        let grammar = builder.finish(call, Report::default()).expect("`a` matches");
        assert_eq!(*grammar.node(body), Node::Choice([a].into()));
    }
}
