//! Long texts cut into pieces, so that no automaton is ever made for the whole of one.
//!
//! A lexeme that begins with a long run of single bytes becomes a sequence: pieces of the run, and what follows it.
//! Where a piece ends is always clear, for it has one length, so no text is read in more ways than before. A matcher
//! then takes up the piece at which it is, and a mask costs what a piece costs. A choice of texts, some of them long,
//! becomes a choice of such sequences where the first byte distinguishes them.

use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet, LONG_TEXT, PIECE, pieces};
use stencilm_support::{LimitExceeded, check_time, check_time_after};

use crate::ir::exprs::{self, expressions};
use crate::ir::grammar::{Grammar, Items, ItemsId, MembersId, Node, NodeId};
use crate::json::values::common_exprs;

/// What a lexeme becomes: the pieces of a run, and what follows them.
#[derive(Default)]
struct Plan {
    run: Run,
    then: Then,
}

/// What follows a run.
enum Then {
    /// A lexeme, which may be the empty text.
    Lexeme(ExprId),
    /// A choice of these plans.
    Choice(Vec<usize>),
}

impl Default for Then {
    fn default() -> Then {
        Then::Lexeme(ExprId::EMPTY)
    }
}

/// The greatest number of parts of an alternative that are examined for its first bytes.
const MAX_LOOKED_AT: usize = 10_000;

/// A sequence of byte sets.
#[derive(Default)]
struct Run {
    /// The least byte of each set; mostly it is the only one.
    bytes: Vec<u8>,
    /// The sets with more than one byte, with their indexes.
    sets: Vec<(usize, ByteSet)>,
}

impl Run {
    fn push(&mut self, set: ByteSet) {
        if set.len() > 1 {
            self.sets.push((self.bytes.len(), set));
        }
        self.bytes.extend(set.first());
    }

    /// The run in pieces.
    fn pieces(&self, exprs: &mut ExprSet) -> Vec<ExprId> {
        if let (true, Ok(text)) = (self.sets.is_empty(), str::from_utf8(&self.bytes)) {
            return pieces(text).map(|piece| exprs.text(piece)).collect();
        }
        let (mut made, mut from) = (Vec::new(), 0);
        for piece in self.bytes.chunks(PIECE) {
            let mut sets: Vec<ByteSet> = piece.iter().copied().map(ByteSet::of).collect();
            let here = self.sets.iter().filter(|(at, _)| (from..from + piece.len()).contains(at));
            here.for_each(|&(at, set)| sets[at - from] = set);
            made.push(sets.iter().rev().fold(ExprId::EMPTY, |tail, &set| {
                let byte = exprs.bytes(set);
                exprs.byte_then(byte, tail)
            }));
            from += piece.len();
        }
        made
    }
}

/// The same texts, with the long runs of bytes at the beginnings of lexemes split into pieces. All nodes keep their
/// numbers.
///
/// Elements of an array that are compared are compared as whole lexemes, so a grammar with such arrays isn't changed.
///
/// # Errors
/// As [`check_time`].
pub(crate) fn split_literals(mut grammar: Grammar) -> Result<Grammar, LimitExceeded> {
    if grammar.items.iter().any(Items::compares) {
        return Ok(grammar);
    }
    let mut plans = Vec::new();
    // The plan for each node that is split.
    let mut split: Vec<Option<usize>> = vec![None; grammar.nodes.len()];
    for (node, plan) in grammar.nodes.iter().zip(&mut split) {
        check_time()?;
        if let &Node::Lexeme(expr) = node {
            *plan = planned(&mut grammar.exprs, expr, &mut plans);
        }
    }
    if plans.is_empty() {
        return Ok(grammar);
    }
    let lexemes = plans.iter().filter_map(|plan| if let Then::Lexeme(rest) = plan.then { Some(rest) } else { None });
    let mut roots: Vec<ExprId> = lexemes.collect();
    // The expressions of all objects and arrays, even of those that no node refers to any more.
    let members = (0..grammar.members.len() as u32).map(|id| Node::Members(MembersId(id)));
    let items = (0..grammar.items.len() as u32).map(|id| Node::Items(ItemsId(id)));
    members.chain(items).for_each(|node| expressions(&grammar, &node, |expr| roots.push(expr)));
    for (node, _) in grammar.nodes.iter().zip(&split).filter(|(_, plan)| plan.is_none()) {
        expressions(&grammar, node, |expr| roots.push(expr));
    }
    // The unsplit runs are dropped with the old set.
    let mut new = common_exprs();
    let copies = exprs::copy_while(&grammar.exprs, roots, &mut new, check_time)?;
    grammar.exprs = ExprSet::new();
    for members in &mut grammar.members {
        *members = members.mapped(|&node| node, |expr| copies.of(expr));
    }
    for items in &mut grammar.items {
        *items = items.mapped(|&node| node, |expr| copies.of(expr));
    }
    for (node, _) in grammar.nodes.iter_mut().zip(&split).filter(|(_, plan)| plan.is_none()) {
        if let Node::Lexeme(expr) = node {
            *expr = copies.of(*expr);
        }
    }
    // In reverse order, because a plan comes before those that it chooses from.
    let mut made: Vec<Node> = Vec::with_capacity(plans.len());
    for Plan { run, then } in plans.iter().rev() {
        check_time_after(run.bytes.len() as u32)?;
        let mut add = |node| {
            grammar.nodes.push(node);
            NodeId(grammar.nodes.len() as u32 - 1)
        };
        let mut parts: Vec<NodeId> = run.pieces(&mut new).into_iter().map(|expr| add(Node::Lexeme(expr))).collect();
        match then {
            Then::Lexeme(ExprId::EMPTY) => {}
            Then::Lexeme(rest) => parts.push(add(Node::Lexeme(copies.of(*rest)))),
            Then::Choice(plans_of) => {
                let chosen = plans_of.iter().map(|&plan| add(made[plans.len() - 1 - plan].clone())).collect();
                parts.push(add(Node::Choice(chosen)));
            }
        }
        made.push(match parts[..] {
            [only] => grammar.nodes[only.0 as usize].clone(),
            _ => Node::Sequence(parts.into()),
        });
    }
    for (node, plan) in split.iter().enumerate().filter_map(|(node, plan)| Some((node, (*plan)?))) {
        grammar.nodes[node] = made[plans.len() - 1 - plan].clone();
    }
    grammar.exprs = new;
    grammar.exprs.shrink_to_fit();
    Ok(grammar)
}

/// The plan for a lexeme that begins with a long run of bytes, or with a choice of which some alternatives do, added to
/// `plans`; `None` for other lexemes.
fn planned(exprs: &mut ExprSet, expr: ExprId, plans: &mut Vec<Plan>) -> Option<usize> {
    if !may_be_long(exprs, expr) {
        return None;
    }
    let first = plans.len();
    plans.push(Plan::default());
    let mut work = vec![(first, expr)];
    while let Some((at, expr)) = work.pop() {
        let (run, rest) = run_of(exprs, expr);
        plans[at] = match alternatives(exprs, rest) {
            Some(parts) => {
                let choice = parts.into_iter().map(|part| {
                    work.push((plans.len(), part));
                    plans.push(Plan::default());
                    plans.len() - 1
                });
                let then = Then::Choice(choice.collect());
                Plan { run, then }
            }
            None if run.bytes.len() > LONG_TEXT => Plan { run, then: Then::Lexeme(rest) },
            None => Plan { run: Run::default(), then: Then::Lexeme(expr) },
        };
    }
    let is_whole = matches!(plans[first], Plan { then: Then::Lexeme(whole), .. } if whole == expr);
    if is_whole {
        plans.truncate(first);
    }
    (!is_whole).then_some(first)
}

/// Whether an expression may have a long run of bytes.
fn may_be_long(exprs: &ExprSet, expr: ExprId) -> bool {
    exprs.has_text(expr) || exprs.shortest_at_least(expr) as usize > LONG_TEXT
}

/// The run of bytes at the beginning of an expression, and what follows it.
fn run_of(exprs: &ExprSet, expr: ExprId) -> (Run, ExprId) {
    let (mut run, mut rest) = (Run::default(), expr);
    while rest != ExprId::EMPTY {
        let (head, tail) = match *exprs.get(rest) {
            Expr::Concat { head, tail } => (head, tail),
            _ => (rest, ExprId::EMPTY),
        };
        match exprs.get(head) {
            Expr::Bytes(set) => run.push(*set),
            Expr::Text(text) => run.bytes.extend_from_slice(text.as_bytes()),
            _ => break,
        }
        rest = tail;
    }
    (run, rest)
}

/// The alternatives of a choice some of which may be long, if the first byte distinguishes these from each other and
/// from all other alternatives, which form one part.
fn alternatives(exprs: &mut ExprSet, expr: ExprId) -> Option<Vec<ExprId>> {
    let (choice, tail) = match *exprs.get(expr) {
        Expr::Concat { head, tail } => (head, tail),
        _ => (expr, ExprId::EMPTY),
    };
    let Expr::Or(parts) = exprs.get(choice) else { return None };
    let (long, short): (Vec<ExprId>, Vec<ExprId>) = parts.iter().partition(|&&part| may_be_long(exprs, part));
    if long.is_empty() {
        return None;
    }
    let short = exprs.or(&short);
    let mut seen = exprs.may_begin_with(short, MAX_LOOKED_AT)?;
    for &part in &long {
        let first = exprs.may_begin_with(part, MAX_LOOKED_AT)?;
        if exprs.is_nullable(part) || !first.intersect(&seen).is_empty() {
            return None;
        }
        seen = seen.union(&first);
    }
    let parts = long.into_iter().chain((short != ExprId::NOTHING).then_some(short));
    Some(parts.map(|part| exprs.concat(part, tail)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_regex;

    fn count(grammar: &Grammar) -> usize {
        grammar.nodes.iter().filter(|node| matches!(node, Node::Lexeme(_))).count()
    }

    #[test]
    fn long_texts_are_cut_and_short_ones_are_not() {
        let text = |len: usize| (0..len).map(|at| (b'a' + (at * at / 7 % 26) as u8) as char).collect::<String>();
        assert_eq!(count(&from_regex(&text(LONG_TEXT)).unwrap()), 1);
        let cut = from_regex(&text(5 * PIECE)).unwrap();
        assert_eq!((count(&cut), cut.exprs.own_len() < 100), (5, true));
        // What follows stays whole.
        assert_eq!(count(&from_regex(&(text(5 * PIECE) + "[0-9]{2,9}")).unwrap()), 6);
        assert_eq!(count(&from_regex(&("[0-9]{2,9}".to_owned() + &text(5 * PIECE))).unwrap()), 1);
        // A choice becomes a choice of sequences where the first byte decides, and the short texts become one lexeme.
        let chosen = |of: &str| count(&from_regex(&of.replace('#', &text(5 * PIECE))).unwrap());
        assert_eq!((chosen("x(0#|1#|2|3)y"), chosen("b#|[a-c]x")), (15, 1));
    }
}
