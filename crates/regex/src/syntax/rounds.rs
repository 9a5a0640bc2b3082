//! Converts parts of a pattern to steps, if look-around is inside a repetition or next to an anchor or a boundary.

use regex_syntax::hir::Look;

use super::around::Around;
use super::edges;
use super::error::{PatternError, PatternErrorKind};
use super::kinds::{Edge, Kinds, KindsOfPattern, ranges_of_any};
use super::place::Place;
use super::steps::Step;
use super::tree::{Node, NodeId, Tree};
use crate::expr::node::ExprId;

/// The deepest nesting of repetitions and alternatives with look-around inside.
const MAX_DEPTH: usize = 100;

/// Converts a part of a pattern to a step.
pub(super) fn step_of(
    tree: &mut Tree<'_>,
    node: NodeId,
    place: &Place<'_>,
    depth: usize,
) -> Result<Step, PatternError> {
    let offset = place.arounds.first().map_or(0, |around| around.offset);
    let refuse = |kind, offset, what: &str| PatternError::about(kind, place.pattern, offset, offset + 3, what);
    if depth > MAX_DEPTH {
        let what = "look-around nested more than 100 deep in repetitions and alternatives; flatten it";
        return Err(refuse(PatternErrorKind::Limit, offset, what));
    }
    let facts = tree.facts(node);
    if !facts.looks {
        return Ok(Step::Texts(tree.plain(node)));
    }
    if !facts.arounds && !facts.before && !facts.after {
        return Ok(Step::Texts(edges::resolve(tree, node, place.options.dialect, Edge::Text, Edge::Text)?));
    }
    match tree.node(node).clone() {
        Node::Around(number) => {
            let around: &Around = &place.arounds[number];
            if around.beyond {
                let what = "a look-behind in this look-ahead, or the other way round, may look beyond it; move it \
                            out, or to the edge of the pattern";
                return Err(refuse(PatternErrorKind::Unsupported, around.offset, what));
            }
            let alternatives = laid_out(tree, around, false, place);
            Ok(any(alternatives.into_iter().map(sequence).collect()))
        }
        Node::Look(look) => {
            if place.reading.open {
                let what = "an anchor or a word boundary beside look-around asks what stands on its other side; put it in \
                            the look-around, or leave one of the two out";
                return Err(refuse(PatternErrorKind::Unsupported, offset, what));
            }
            Ok(between(tree, look, place))
        }
        Node::Concat { .. } => {
            let mut parts = Vec::new();
            let mut todo = vec![node];
            while let Some(part) = todo.pop() {
                match *tree.node(part) {
                    Node::Concat { head, tail } if tree.facts(part).looks => todo.extend([tail, head]),
                    _ => parts.push(step_of(tree, part, place, depth + 1)?),
                }
            }
            Ok(sequence(parts))
        }
        Node::Or(parts) => {
            let mut alternatives = Vec::with_capacity(parts.len());
            for &part in parts.iter() {
                alternatives.push(step_of(tree, part, place, depth + 1)?);
            }
            Ok(any(alternatives))
        }
        Node::Repeat { body, min, max } => {
            let body = step_of(tree, body, place, depth + 1)?.into();
            Ok(Step::Repeat { body, min, max })
        }
        plain @ (Node::Empty | Node::Literal { .. } | Node::Class { .. }) => unreachable!("{plain:?} looks at nothing"),
    }
}

fn sequence(mut parts: Vec<Step>) -> Step {
    if parts.len() == 1 { parts.remove(0) } else { Step::Sequence(parts.into()) }
}

fn any(mut alternatives: Vec<Step>) -> Step {
    if alternatives.len() == 1 { alternatives.remove(0) } else { Step::Any(alternatives.into()) }
}

/// An anchor or a boundary as look-around: for each set of kinds that may precede it, the kinds that may follow it.
fn between(tree: &mut Tree<'_>, look: Look, place: &Place<'_>) -> Step {
    let kinds = KindsOfPattern::new((true, true), place.options.dialect);
    let mut alternatives: Vec<(Kinds, Kinds)> = Vec::new();
    for before in Edge::ALL {
        let fitting = Edge::ALL.into_iter().filter(|&after| Edge::satisfy(look, before, after));
        let after = fitting.map(Kinds::of).fold(Kinds::NONE, Kinds::or);
        match alternatives.iter_mut().find(|(_, known)| *known == after) {
            Some((of, _)) => *of = of.or(Kinds::of(before)),
            None => alternatives.push((Kinds::of(before), after)),
        }
    }
    alternatives.retain(|&(_, after)| after != Kinds::NONE);
    let every = Edge::ALL.into_iter().map(Kinds::of).fold(Kinds::NONE, Kinds::or);
    let any_char = tree.class(ranges_of_any());
    let anything = tree.exprs.repeat(any_char, 0, None);
    let mut side = |ahead: bool, of: Kinds| {
        if of == every {
            return None;
        }
        let neighbour = tree.class(kinds.within(&ranges_of_any(), of));
        let parts = if ahead { [neighbour, anything] } else { [anything, neighbour] };
        let mut there = tree.exprs.concat_all(&parts);
        if of.has(if ahead { place.reading.after } else { place.reading.before }) {
            there = tree.exprs.or(&[ExprId::EMPTY, there]);
        }
        Some(Step::Around { ahead, negative: false, expr: there })
    };
    let alternatives = alternatives
        .into_iter()
        .map(|(before, after)| sequence([side(false, before), side(true, after)].into_iter().flatten().collect()));
    any(alternatives.collect())
}

/// A look-around as steps: one alternative for each set of kinds that it distinguishes on its other side.
pub(super) fn laid_out(tree: &mut Tree<'_>, around: &Around, is_outermost: bool, place: &Place<'_>) -> Vec<Vec<Step>> {
    let &Around { ahead, negative, by_edge, .. } = around;
    let edge = if ahead { place.reading.before } else { place.reading.after };
    if is_outermost || !around.asks() {
        return vec![vec![Step::Around { ahead, negative, expr: by_edge[edge as usize] }]];
    }
    let kinds = KindsOfPattern::new((true, true), place.options.dialect);
    let any = tree.class(ranges_of_any());
    let any = tree.exprs.repeat(any, 0, None);
    let mut alternatives: Vec<(ExprId, Kinds)> = Vec::new();
    for edge in Edge::ALL {
        let expr = by_edge[edge as usize];
        match alternatives.iter_mut().find(|(known, _)| *known == expr) {
            Some((_, of)) => *of = of.or(Kinds::of(edge)),
            None => alternatives.push((expr, Kinds::of(edge))),
        }
    }
    let lay_out = |(expr, of): (ExprId, Kinds)| {
        let neighbour = tree.class(kinds.within(&ranges_of_any(), of));
        let parts = if ahead { [any, neighbour] } else { [neighbour, any] };
        let mut there = tree.exprs.concat_all(&parts);
        if of.has(edge) {
            there = tree.exprs.optional(there);
        }
        let there = Step::Around { ahead: !ahead, negative: false, expr: there };
        vec![there, Step::Around { ahead, negative, expr }]
    };
    alternatives.into_iter().map(lay_out).collect()
}
