//! Long texts cut into pieces, so that no automaton is ever made for the whole of one.
//!
//! A lexeme that begins with a long run of single bytes becomes a sequence: pieces of the run, and what follows it. Where a
//! piece ends is never in doubt, for it has one length, so no text is read in more ways than before. A matcher then takes up
//! the piece at which it is, and a mask costs what a piece costs.

use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet, LONG_TEXT, PIECE, pieces};

use crate::ir::exprs::{self, expressions};
use crate::ir::grammar::{Grammar, ItemsId, MembersId, Node, NodeId};
use crate::json::values::common_exprs;

/// A lexeme that begins with a long run of bytes.
struct Long {
    node: usize,
    run: Run,
    /// What follows it.
    rest: ExprId,
}

/// Sets of bytes, one after the other.
#[derive(Default)]
struct Run {
    /// The least byte of each, which mostly is the only one.
    bytes: Vec<u8>,
    /// Those with more bytes, by their places.
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

/// The same texts, with the long runs of bytes with which lexemes begin in pieces. All nodes keep their numbers.
///
/// Elements of an array that must differ are compared as the lexemes that they are, so a grammar with such arrays stays as
/// it is.
pub(crate) fn split_literals(mut grammar: Grammar) -> Grammar {
    if grammar.items.iter().any(|items| items.unique) {
        return grammar;
    }
    let long: Vec<Long> = grammar.nodes.iter().enumerate().filter_map(|(at, node)| long(&grammar, at, node)).collect();
    if long.is_empty() {
        return grammar;
    }
    let mut is_long = vec![false; grammar.nodes.len()];
    long.iter().for_each(|long| is_long[long.node] = true);
    let mut roots: Vec<ExprId> = long.iter().map(|long| long.rest).collect();
    // Of objects and arrays all, also those that no node has any more.
    let members = (0..grammar.members.len() as u32).map(|id| Node::Members(MembersId(id)));
    let items = (0..grammar.items.len() as u32).map(|id| Node::Items(ItemsId(id)));
    members.chain(items).for_each(|node| expressions(&grammar, &node, |expr| roots.push(expr)));
    let short = |(_, is_long): &(&Node, &bool)| !**is_long;
    for (node, _) in grammar.nodes.iter().zip(&is_long).filter(short) {
        expressions(&grammar, node, |expr| roots.push(expr));
    }
    // The runs as they were are left behind with the set.
    let mut new = common_exprs();
    let copies = exprs::copy(&grammar.exprs, roots, &mut new);
    grammar.exprs = ExprSet::new();
    for members in &mut grammar.members {
        *members = members.mapped(|&node| node, |expr| copies.of(expr));
    }
    for items in &mut grammar.items {
        *items = items.mapped(|&node| node, |expr| copies.of(expr));
    }
    for (node, _) in grammar.nodes.iter_mut().zip(&is_long).filter(|(_, is_long)| !**is_long) {
        if let Node::Lexeme(expr) = node {
            *expr = copies.of(*expr);
        }
    }
    for Long { node, run, rest } in long {
        let mut exprs = run.pieces(&mut new);
        exprs.extend(Some(rest).filter(|&rest| rest != ExprId::EMPTY).map(|rest| copies.of(rest)));
        let mut parts = Vec::with_capacity(exprs.len());
        for expr in exprs {
            parts.push(NodeId(grammar.nodes.len() as u32));
            grammar.nodes.push(Node::Lexeme(expr));
        }
        grammar.nodes[node] = Node::Sequence(parts.into());
    }
    grammar.exprs = new;
    grammar.exprs.shrink_to_fit();
    grammar
}

/// A node that is a lexeme and begins with a long run of bytes.
fn long(grammar: &Grammar, node: usize, of: &Node) -> Option<Long> {
    let &Node::Lexeme(expr) = of else { return None };
    // What takes fewer bytes has no long run.
    if (grammar.exprs.shortest_at_least(expr) as usize) <= LONG_TEXT {
        return None;
    }
    let (mut run, mut rest) = (Run::default(), expr);
    while rest != ExprId::EMPTY {
        let (head, tail) = match *grammar.exprs.get(rest) {
            Expr::Concat { head, tail } => (head, tail),
            _ => (rest, ExprId::EMPTY),
        };
        match grammar.exprs.get(head) {
            Expr::Bytes(set) => run.push(*set),
            Expr::Text(text) => run.bytes.extend_from_slice(text.as_bytes()),
            _ => break,
        }
        rest = tail;
    }
    (run.bytes.len() > LONG_TEXT).then_some(Long { node, run, rest })
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
    }
}
