//! Look-ahead and look-behind, as conditions on the rest and on the beginning of the text.
//!
//! `regex-syntax` does not read them. So each is cut out of the pattern, read as a pattern of its own, and left behind as a
//! group with a name of ours, which the tree turns into a leaf. The tree is then laid out as sequences of plain parts with
//! conditions between them. A look-ahead intersects what stands behind it; a look-behind is run beside the parts before it,
//! which are split by what they leave of it.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::kinds::{Edge, Kinds, KindsOfPattern, Ranges};
use super::loops::Loop;
use super::rewritten::Rewritten;
use super::rounds::step_of;
use super::steps::{Step, conditions_at_the_end, run, try_out};
use super::tree::{Node, NodeId, Tree};
use super::{PatternError, PatternErrorKind, Place, Reading, edges};
use crate::expr::expr_set::ExprId;
use crate::limits::LimitExceeded;

/// What the names of the groups begin with that stand for look-around.
const NAME: &str = "stencilm_around_";
/// Most sequences that alternatives with look-around inside are laid out as.
const MAX_SEQUENCES: usize = 1_000;
/// Most look-arounds of a pattern, those inside others included.
const MAX_AROUNDS: usize = 200;

/// A look-around that was cut out.
pub(super) struct Cut {
    pub ahead: bool,
    pub negative: bool,
    /// The pattern in it.
    pub body: Rewritten,
    /// Whether a comment could stand at its end.
    pub verbose: bool,
    /// Where it begins in the pattern of the user.
    pub offset: usize,
}

impl Cut {
    /// The pattern in it as one group; for `open`, with the rest of the text that a look-ahead does not ask about, or the
    /// beginning that a look-behind does not.
    pub fn whole(&self, pattern: &str, open: bool) -> Rewritten {
        let any = "(?s:.)*";
        let mut text = Rewritten::empty(pattern);
        if open && !self.ahead {
            text.replace(self.offset, any);
        }
        text.replace(self.offset, "(?:");
        text.append(&self.body, 0, self.body.text.len());
        // A comment would swallow the bracket.
        text.replace(self.offset, if self.verbose { "\n)" } else { ")" });
        if open && self.ahead {
            text.replace(self.offset, any);
        }
        text
    }
}

/// A look-around as a condition.
#[derive(Clone, Copy)]
pub(super) struct Around {
    pub ahead: bool,
    pub negative: bool,
    /// What the rest of the text, or its beginning up to here, must match, or must not: for each kind of what stands on the
    /// other side of this place.
    pub by_edge: [ExprId; 4],
    /// Whether a look-around inside may look to the other side.
    pub beyond: bool,
    pub offset: usize,
}

impl Around {
    /// Whether it depends on what stands on the other side.
    pub fn asks(&self) -> bool {
        self.by_edge.iter().any(|&expr| expr != self.by_edge[0])
    }
}

/// Which look-around a group with this name stands for.
pub(super) fn number(name: &str) -> Option<usize> {
    name.strip_prefix(NAME)?.parse().ok()
}

/// Cuts the outermost look-arounds out of a pattern; the others stay in their bodies.
pub(super) fn cut(rewritten: Rewritten, pattern: &str) -> Result<(Rewritten, Vec<Cut>), PatternError> {
    let text = &rewritten.text;
    let is_one = |at: usize| ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|opening| text[at..].starts_with(opening));
    if !text.match_indices("(?").any(|(at, _)| is_one(at)) {
        return Ok((rewritten, Vec::new()));
    }
    let mut whole = Rewritten::empty(pattern);
    let mut cuts: Vec<Cut> = Vec::new();
    // The flags inside each open group, the outermost first.
    let mut flags: Vec<String> = vec![String::new()];
    // The look-around that is open, and how deep in it this place is.
    let mut open: Option<(usize, usize)> = None;
    let mut copied = 0;
    let mut classes = 0;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '\\' => at += text[at + 1..].chars().next().map_or(0, char::len_utf8),
            '[' => {
                classes += 1;
                // A bracket that comes first is a character.
                let rest = text[at + 1..].strip_prefix('^').unwrap_or(&text[at + 1..]);
                if rest.starts_with(']') {
                    at = text.len() - rest.len();
                }
            }
            ']' if classes > 0 => classes -= 1,
            _ if classes > 0 => {}
            '#' if flags.last().is_some_and(|flags| flags.contains('x')) => {
                at += text[at..].find('\n').unwrap_or(text.len() - at - 1);
            }
            '(' if open.is_none() && is_one(at) => {
                if cuts.len() >= MAX_AROUNDS {
                    let what = "more than 200 look-arounds; use fewer, or several patterns";
                    let offset = rewritten.original(at);
                    return Err(PatternError::about(PatternErrorKind::Limit, pattern, offset, offset + 3, what));
                }
                whole.append(&rewritten, copied, at);
                whole.replace(rewritten.original(at), &format!("(?P<{NAME}{}>)", cuts.len()));
                let behind = text[at..].starts_with("(?<");
                let start = at + if behind { 4 } else { 3 };
                let mut body = Rewritten::empty(pattern);
                let inherited = flags.last().cloned().unwrap_or_default();
                if !inherited.is_empty() {
                    body.replace(rewritten.original(at), &format!("(?{inherited})"));
                }
                let negative = text[..start].ends_with('!');
                cuts.push(Cut { ahead: !behind, negative, body, verbose: false, offset: rewritten.original(at) });
                open = Some((start, flags.len()));
                flags.push(inherited);
                at = start;
                continue;
            }
            '(' => {
                let mut inner = flags.last().cloned().unwrap_or_default();
                if let Some(named) = text[at..].strip_prefix("(?").filter(|_| !is_one(at)) {
                    let end = named.find([':', ')', '<']).unwrap_or(0);
                    let plain = named[..end].split('-').next().unwrap_or_default();
                    if plain.chars().all(|flag| flag.is_ascii_alphabetic()) && !named[..end].starts_with('P') {
                        inner.push_str(plain);
                        let off = named[..end].split('-').nth(1).unwrap_or_default();
                        inner.retain(|flag| !off.contains(flag));
                        if named[end..].starts_with(')') {
                            // To the end of the group around it.
                            *flags.last_mut().expect("the pattern itself is never closed") = inner.clone();
                        }
                    }
                }
                flags.push(inner);
            }
            ')' => {
                let closed = if flags.len() > 1 { flags.pop() } else { None };
                if let Some((start, _)) = open.filter(|&(_, depth)| flags.len() == depth) {
                    let cut = cuts.last_mut().expect("one is open");
                    cut.body.append(&rewritten, start, at);
                    cut.verbose = closed.is_some_and(|flags| flags.contains('x'));
                    copied = at + 1;
                    open = None;
                }
            }
            _ => {}
        }
        at += text[at..].chars().next().map_or(1, char::len_utf8);
    }
    if open.is_some() {
        let offset = cuts.last().map_or(0, |cut| cut.offset);
        let what = "the group is never closed; add ) or escape the parenthesis as \\(";
        return Err(PatternError::about(PatternErrorKind::Syntax, pattern, offset, offset + 3, what));
    }
    whole.append(&rewritten, copied, text.len());
    Ok((whole, cuts))
}

/// A part of a sequence.
#[derive(Clone)]
enum Piece {
    /// Parts without look-around, side by side.
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

/// Whether the text ends before these pieces.
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

/// The texts of a pattern with look-around: for each group of them, what the text behind the pattern must match.
///
/// Where it is open, the pattern is a part of a longer text, and a look-ahead may reach beyond it; else the text ends with it,
/// and there is one group, without a condition.
pub(super) fn resolve(
    tree: &mut Tree<'_>,
    root: NodeId,
    place: &Place<'_>,
) -> Result<Vec<(ExprId, ExprId)>, PatternError> {
    let &Place { pattern, arounds, reading, .. } = place;
    let open = reading.open;
    let refuse = |kind, offset, what: &str| Err(PatternError::about(kind, pattern, offset, offset + 3, what));
    let mut found: FxHashMap<ExprId, Vec<ExprId>> = FxHashMap::default();
    let mut order = Vec::new();
    let mut ways: Vec<Vec<Step>> = Vec::new();
    let mut has_rounds = false;
    for way in sequences(tree, root, pattern, arounds)? {
        // One for each combination of kinds that look-arounds ask for.
        let mut layouts: Vec<Vec<Step>> = vec![Vec::new()];
        let is_last = |at: usize| way[at + 1..].iter().all(|piece| matches!(piece, Piece::Around(_)));
        let mut first = true;
        for (at, piece) in way.iter().enumerate() {
            match piece {
                Piece::Around(number) => {
                    let around = &arounds[*number];
                    let is_outermost = if around.ahead { first } else { !open && is_last(at) };
                    if around.beyond && !is_outermost {
                        let what = "a look-behind in this look-ahead, or the other way round, may look beyond it; move it \
                                    out, or to the edge of the pattern";
                        return refuse(PatternErrorKind::Unsupported, around.offset, what);
                    }
                    let ways = laid_out(tree, around, is_outermost, place);
                    let all = layouts.iter().flat_map(|steps| ways.iter().map(|more| [&steps[..], more].concat()));
                    layouts = all.collect();
                }
                Piece::Plain(parts) => {
                    let part = tree.concat(parts);
                    let facts = tree.facts(part);
                    if facts.before && !first || facts.after && (open || !is_last(at)) {
                        let step = step_of(tree, part, place, 0)?;
                        (first, has_rounds) = (false, true);
                        layouts.iter_mut().for_each(|steps| steps.push(step.clone()));
                        continue;
                    }
                    let texts = edges::resolve(tree, part, place.options.dialect, reading.before, reading.after)?;
                    first &= texts == ExprId::EMPTY;
                    layouts.iter_mut().for_each(|steps| steps.push(Step::Texts(texts)));
                }
                &Piece::Loop(node) => {
                    first = false;
                    let is_last = !open && ends(tree, &way[at + 1..], place)?;
                    let rests = if is_last { Loop::of(tree, node, arounds) } else { None };
                    let step = match rests {
                        Some(rests) => Step::Texts(rests.texts(tree, arounds)),
                        None => {
                            has_rounds = true;
                            step_of(tree, node, place, 0)?
                        }
                    };
                    layouts.iter_mut().for_each(|steps| steps.push(step.clone()));
                }
            }
            if ways.len() + layouts.len() > MAX_SEQUENCES {
                let offset = arounds.first().map_or(0, |around| around.offset);
                let what = "look-around in more than 1000 ways through alternatives; put it in front of them";
                return refuse(PatternErrorKind::Limit, offset, what);
            }
        }
        ways.extend(layouts);
    }
    let any_text = if open {
        // What follows is another part of a grammar, which may read more than texts.
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
    for mut steps in ways {
        let conditions = if open { Vec::new() } else { conditions_at_the_end(&mut steps) };
        let groups = budget.over(tree.exprs, |deriver, most| run(deriver, &steps, open, any_text, most));
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

/// A look-around as steps, in a way for each of the kinds on its other side that it tells apart.
pub(super) fn laid_out(tree: &mut Tree<'_>, around: &Around, is_outermost: bool, place: &Place<'_>) -> Vec<Vec<Step>> {
    let &Around { ahead, negative, by_edge, .. } = around;
    let edge = if ahead { place.reading.before } else { place.reading.after };
    if is_outermost || !around.asks() {
        return vec![vec![Step::Around { ahead, negative, expr: by_edge[edge as usize] }]];
    }
    let kinds = KindsOfPattern::new((true, true), place.options.dialect);
    let any = tree.class(ranges_of_any());
    let any = tree.exprs.repeat(any, 0, None);
    let mut ways: Vec<(ExprId, Kinds)> = Vec::new();
    for edge in Edge::ALL {
        let expr = by_edge[edge as usize];
        match ways.iter_mut().find(|(known, _)| *known == expr) {
            Some((_, of)) => *of = of.or(Kinds::of(edge)),
            None => ways.push((expr, Kinds::of(edge))),
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
    ways.into_iter().map(lay_out).collect()
}

pub(super) fn ranges_of_any() -> Ranges {
    Rc::new([('\0', char::MAX)])
}
