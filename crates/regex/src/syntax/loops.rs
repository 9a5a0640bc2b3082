//! Look-ahead next to a character that is repeated up to the end of the text: `((?!foo).)*`.
//!
//! A look-ahead in every round applies to every suffix of the text, which is a single condition: no suffix may be one
//! that the look-ahead forbids. If something follows the repetition, the rounds end somewhere within the text, and
//! [`rounds`](super::rounds) reads it instead.

use super::around::Around;
use super::kinds::ranges_of_any;
use super::tree::{Node, NodeId, Tree};
use crate::expr::node::ExprId;

/// A repetition of one character with look-aheads next to it, as in `((?!foo).)*`.
#[derive(Clone)]
pub(super) struct Loop {
    /// The character.
    body: ExprId,
    /// How often it is repeated.
    count: (u32, Option<u32>),
    /// The look-aheads before it, and those after it.
    before: Vec<usize>,
    after: Vec<usize>,
}

impl Loop {
    /// The loop of a repetition whose body is one character with look-aheads that do not depend on the text before
    /// them.
    pub fn of(tree: &Tree<'_>, repeat: NodeId, arounds: &[Around]) -> Option<Loop> {
        let &Node::Repeat { body, min, max } = tree.node(repeat) else { return None };
        let (mut before, mut after, mut character) = (Vec::new(), Vec::new(), None);
        let mut rest = vec![body];
        while let Some(part) = rest.pop() {
            match *tree.node(part) {
                Node::Concat { head, tail } => rest.extend([tail, head]),
                Node::Around(number) if arounds[number].ahead && !arounds[number].asks() && !arounds[number].beyond => {
                    if character.is_none() { &mut before } else { &mut after }.push(number);
                }
                Node::Class { expr, .. } if character.is_none() => character = Some(expr),
                _ => return None,
            }
        }
        Some(Loop { body: character?, count: (min, max), before, after })
    }

    /// Its texts, if the text ends with it: no suffix that begins at a look-ahead may be one that this forbids.
    pub fn texts(&self, tree: &mut Tree<'_>, arounds: &[Around]) -> ExprId {
        let any = tree.class(ranges_of_any());
        let exprs = &mut *tree.exprs;
        let mut all = vec![exprs.repeat(self.body, self.count.0, self.count.1)];
        let (anywhere, further) = (exprs.repeat(any, 0, None), exprs.repeat(any, 1, None));
        let places = self
            .before
            .iter()
            .map(|&number| (number, anywhere))
            .chain(self.after.iter().map(|&number| (number, further)));
        for (number, skipped) in places {
            let Around { negative, by_edge: [expr, ..], .. } = arounds[number];
            let mut forbidden = if negative { expr } else { exprs.not(expr) };
            if skipped == anywhere {
                // A round begins before a character, not at the end of the text.
                forbidden = exprs.and(&[forbidden, further]);
            }
            let forbidden = exprs.concat(skipped, forbidden);
            all.push(exprs.not(forbidden));
        }
        exprs.and(&all)
    }
}
