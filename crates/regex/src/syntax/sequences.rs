//! A pattern with look-around as sequences of plain parts with conditions between them.
//!
//! A look-ahead intersects what follows it. A look-behind is derived along with the parts before it, whose texts are
//! split by the resulting derivatives.

use rustc_hash::FxHashMap;
use stencilm_support::LimitExceeded;

use super::around::Around;
use super::edges;
use super::error::{PatternError, PatternErrorKind};
use super::kinds::ranges_of_any;
use super::loops::Loop;
use super::paths::run;
use super::place::{Place, Reading};
use super::rounds::{laid_out, step_of};
use super::steps::{Step, conditions_at_the_end, conditions_at_the_start, try_out};
use super::tree::{Node, NodeId, Tree};
use crate::derivative::deriver::Deriver;
use crate::expr::node::ExprId;

/// The most sequences into which alternatives with look-around are expanded.
const MAX_SEQUENCES: usize = 1_000;

/// A part of a sequence.
#[derive(Clone)]
enum Piece {
    /// Consecutive parts without look-around.
    Plain(Vec<NodeId>),
    Around(usize),
    /// A repetition with look-around inside.
    Loop(NodeId),
}

/// The alternatives of a tree as sequences of plain parts and look-arounds.
fn sequences(
    tree: &Tree<'_>,
    root: NodeId,
    pattern: &str,
    arounds: &[Around],
) -> Result<Vec<Vec<Piece>>, PatternError> {
    let refuse = |kind, what: &str| {
        let offset = arounds.first().map_or(0, |around| around.offset);
        PatternError::about(kind, pattern, offset, offset + 3, what)
    };
    let mut done = Vec::new();
    let mut work: Vec<(Vec<Piece>, Vec<NodeId>)> = vec![(Vec::new(), vec![root])];
    while let Some((mut pieces, mut todo)) = work.pop() {
        let Some(node) = todo.pop() else {
            done.push(pieces);
            continue;
        };
        if work.len() + done.len() > MAX_SEQUENCES {
            let what = "look-around in more than 1000 ways through alternatives; put it in front of them";
            return Err(refuse(PatternErrorKind::Limit, what));
        }
        if !tree.facts(node).arounds {
            match pieces.last_mut() {
                Some(Piece::Plain(parts)) => parts.push(node),
                _ => pieces.push(Piece::Plain(vec![node])),
            }
            work.push((pieces, todo));
            continue;
        }
        match tree.node(node) {
            Node::Around(number) => {
                pieces.push(Piece::Around(*number));
                work.push((pieces, todo));
            }
            &Node::Concat { head, tail } => {
                todo.extend([tail, head]);
                work.push((pieces, todo));
            }
            Node::Or(parts) => {
                for &part in parts.iter().rev() {
                    work.push((pieces.clone(), [&todo[..], &[part]].concat()));
                }
            }
            &Node::Repeat { body, min: 0, max: Some(1) } => {
                work.push((pieces.clone(), todo.clone()));
                todo.push(body);
                work.push((pieces, todo));
            }
            Node::Repeat { .. } => {
                pieces.push(Piece::Loop(node));
                work.push((pieces, todo));
            }
            other => unreachable!("{other:?} has no look-around"),
        }
    }
    Ok(done)
}

/// Whether these pieces match only the empty text, so that the text ends before them.
fn ends(tree: &mut Tree<'_>, pieces: &[Piece], place: &Place<'_>) -> Result<bool, PatternError> {
    for piece in pieces {
        let is_empty = match piece {
            Piece::Around(_) => true,
            Piece::Loop(_) => false,
            Piece::Plain(parts) => {
                let part = tree.concat(parts);
                let Reading { before, after, .. } = place.reading;
                !tree.facts(part).before
                    && edges::resolve(tree, part, place.options.dialect, before, after)? == ExprId::EMPTY
            }
        };
        if !is_empty {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The steps of one path through a pattern, at most `most` layouts: one for each combination of kinds that look-arounds
/// ask for. Also whether any layout has rounds.
fn layouts(
    tree: &mut Tree<'_>,
    alternative: &[Piece],
    place: &Place<'_>,
    most: usize,
) -> Result<(Vec<Vec<Step>>, bool), PatternError> {
    let &Place { pattern, arounds, reading, .. } = place;
    let open = reading.open;
    let refuse = |kind, offset, what: &str| Err(PatternError::about(kind, pattern, offset, offset + 3, what));
    let mut layouts: Vec<Vec<Step>> = vec![Vec::new()];
    let mut has_rounds = false;
    let is_last = |at: usize| alternative[at + 1..].iter().all(|piece| matches!(piece, Piece::Around(_)));
    let mut first = true;
    for (at, piece) in alternative.iter().enumerate() {
        let more = match piece {
            Piece::Around(number) => {
                let around = &arounds[*number];
                let is_outermost = if around.ahead { first } else { !open && is_last(at) };
                if around.beyond && !is_outermost {
                    let what = "a look-behind in this look-ahead, or the other way round, may look beyond it; move it \
                                out, or to the edge of the pattern";
                    return refuse(PatternErrorKind::Unsupported, around.offset, what);
                }
                let alternatives = laid_out(tree, around, is_outermost, place);
                let all = layouts.iter().flat_map(|steps| alternatives.iter().map(|more| [&steps[..], more].concat()));
                layouts = all.collect();
                Vec::new()
            }
            Piece::Plain(parts) => {
                let part = tree.concat(parts);
                let facts = tree.facts(part);
                let (before, after) = (facts.before && !first, facts.after && (open || !is_last(at)));
                let [begin, between, end] = tree.cut_at_borders(part, before, after);
                let mut steps = Vec::new();
                for node in begin {
                    steps.push(step_of(tree, node, place, 0)?);
                }
                if !between.is_empty() {
                    let between = tree.concat(&between);
                    let Reading { before, after, .. } = reading;
                    steps.push(Step::Texts(edges::resolve(tree, between, place.options.dialect, before, after)?));
                }
                for node in end {
                    steps.push(step_of(tree, node, place, 0)?);
                }
                has_rounds |= before || after;
                first &= matches!(steps[..], [Step::Texts(ExprId::EMPTY)]);
                steps
            }
            &Piece::Loop(node) => {
                first = false;
                let is_last = !open && ends(tree, &alternative[at + 1..], place)?;
                let rests = if is_last { Loop::of(tree, node, arounds) } else { None };
                vec![match rests {
                    Some(rests) => Step::Texts(rests.texts(tree, arounds)),
                    None => {
                        has_rounds = true;
                        step_of(tree, node, place, 0)?
                    }
                }]
            }
        };
        layouts.iter_mut().for_each(|steps| steps.extend_from_slice(&more));
        if layouts.len() > most {
            let offset = arounds.first().map_or(0, |around| around.offset);
            let what = "look-around in more than 1000 ways through alternatives; put it in front of them";
            return refuse(PatternErrorKind::Limit, offset, what);
        }
    }
    Ok((layouts, has_rounds))
}

/// The groups without those that are found to have no texts. Contradictory conditions leave intersections that match
/// nothing, and these would be derived along with all others for every text.
fn without_dead(deriver: &mut Deriver, groups: Vec<(ExprId, ExprId)>) -> Result<Vec<(ExprId, ExprId)>, LimitExceeded> {
    let mut live = Vec::with_capacity(groups.len());
    for group in groups {
        match deriver.is_soon_dead(group.0) {
            Ok(true) => {}
            // Give up rather than spend the remaining budget on it.
            Ok(false) | Err(LimitExceeded::Expressions(_)) => live.push(group),
            Err(error) => return Err(error),
        }
    }
    Ok(live)
}

/// The texts of a pattern with look-around, in groups by what the text after the pattern must match.
///
/// If it is open, the pattern is a part of a longer text, and a look-ahead may reach beyond it. Otherwise the text ends
/// with it, and there is one group, without a condition.
pub(super) fn resolve(
    tree: &mut Tree<'_>,
    root: NodeId,
    place: &Place<'_>,
) -> Result<Vec<(ExprId, ExprId)>, PatternError> {
    let &Place { pattern, arounds, reading, .. } = place;
    let open = reading.open;
    let mut alternatives: Vec<Vec<Step>> = Vec::new();
    let mut has_rounds = false;
    for alternative in sequences(tree, root, pattern, arounds)? {
        let (layouts, rounds) = layouts(tree, &alternative, place, MAX_SEQUENCES.saturating_sub(alternatives.len()))?;
        has_rounds |= rounds;
        let most = MAX_SEQUENCES / layouts.len().max(1);
        alternatives.extend(layouts.into_iter().flat_map(|steps| conditions_at_the_start(tree.exprs, steps, most)));
    }
    let any_text = if open {
        // Another part of a grammar follows, which may match bytes that are not text.
        ExprId::ANYTHING
    } else {
        let any = tree.class(ranges_of_any());
        tree.exprs.repeat(any, 0, None)
    };
    let too_costly = |limit: LimitExceeded| {
        let offset = arounds.first().map_or(0, |around| around.offset);
        let what = format!("this look-around is too costly: {limit}");
        PatternError::about(PatternErrorKind::Limit, pattern, offset, offset + 3, what)
    };
    let budget = reading.budget;
    let mut found: FxHashMap<ExprId, Vec<ExprId>> = FxHashMap::default();
    let mut order = Vec::new();
    for mut steps in alternatives {
        let conditions = if open { Vec::new() } else { conditions_at_the_end(&mut steps) };
        let groups = budget.over(tree.exprs, |deriver, most| {
            let groups = run(deriver, &steps, open, any_text, most)?;
            without_dead(deriver, groups)
        });
        let groups = groups.map_err(too_costly)?;
        for (texts, behind) in groups {
            let texts = conditions.iter().fold(texts, |texts, &(expr, negative)| {
                let expr = if negative { tree.exprs.not(expr) } else { expr };
                tree.exprs.and(&[texts, expr])
            });
            found.entry(behind).or_insert_with(|| {
                order.push(behind);
                Vec::new()
            });
            found.get_mut(&behind).expect("just put there").push(texts);
        }
    }
    let groups: Vec<(ExprId, ExprId)> =
        order.into_iter().map(|behind| (tree.exprs.or(&found[&behind]), behind)).collect();
    if has_rounds {
        for &(texts, _) in &groups {
            budget.over(tree.exprs, |deriver, most| try_out(deriver, texts, most)).map_err(too_costly)?;
        }
    }
    Ok(groups)
}
