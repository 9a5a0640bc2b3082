//! Expressions in which the first byte alone decides which alternatives can match, as for one of many names.

use rustc_hash::FxHashSet;

use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

/// A first alternative: one byte of `first`, then `tail` and `after`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub first: ByteSet,
    pub tail: ExprId,
    pub after: ExprId,
}

impl ExprSet {
    /// The first alternatives, if they are easy to find and the first bytes of any two are equal or disjoint. The empty
    /// match is not among them.
    pub(crate) fn heads(&self, id: ExprId) -> Option<Vec<Head>> {
        let (mut heads, mut seen) = (Vec::new(), ByteSet::EMPTY);
        let mut add = |part: ExprId, after: ExprId| {
            let (first, tail) = match *self.get(part) {
                Expr::Bytes(first) => (first, ExprId::EMPTY),
                Expr::Concat { head, tail } => match self.get(head) {
                    Expr::Bytes(first) => (*first, tail),
                    _ => return false,
                },
                Expr::Empty => return after == ExprId::EMPTY,
                _ => return false,
            };
            let is_disjoint = seen.intersect(&first).is_empty() || heads.iter().any(|head: &Head| head.first == first);
            seen = seen.union(&first);
            heads.push(Head { first, tail, after });
            is_disjoint
        };
        let are_plain = self.alternatives(&id).iter().all(|&part| match *self.get(part) {
            // A choice with something after it.
            Expr::Concat { head, tail } if matches!(self.get(head), Expr::Or(_)) => {
                self.alternatives(&head).iter().all(|&part| add(part, tail))
            }
            _ => add(part, ExprId::EMPTY),
        });
        are_plain.then_some(heads)
    }

    /// Whether each alternative begins with a single byte, as for one of many names; this is not so for a word of any
    /// letters.
    pub fn is_decided_by_first_byte(&self, id: ExprId) -> bool {
        let mut seen = FxHashSet::default();
        let mut work = vec![id];
        while let Some(id) = work.pop() {
            match self.get(id) {
                _ if !seen.insert(id) => {}
                Expr::Bytes(set) if set.single().is_none() => return false,
                Expr::Nothing | Expr::Empty | Expr::Bytes(_) | Expr::Text(_) => {}
                &Expr::Concat { head, tail } => {
                    work.push(head);
                    if self.is_nullable(head) {
                        work.push(tail);
                    }
                }
                Expr::Or(parts) => work.extend_from_slice(parts),
                Expr::Repeat { body, .. } => work.push(*body),
                Expr::And(_) | Expr::Not(_) | Expr::Number(_) | Expr::Language(_) => return false,
            }
        }
        true
    }

    /// The alternatives of a choice, or the expression itself.
    fn alternatives<'a>(&'a self, id: &'a ExprId) -> &'a [ExprId] {
        match self.get(*id) {
            Expr::Or(parts) => parts,
            _ => std::slice::from_ref(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PatternOptions, Utf8, parse_pattern};

    #[test]
    fn names_begin_with_a_byte_each() {
        let mut exprs = ExprSet::new();
        for (pattern, heads, is_decided) in [
            ("abc", Some(1), true),
            ("abc|def|ghi", Some(3), true),
            ("abc|abd|x", Some(3), true),
            ("(abc|def)x|z", Some(3), true),
            ("[a-c]x|d", Some(2), false),
            ("a?", None, true),
            ("a?b", None, true),
            ("ab|[a]c|d", Some(3), true),
            ("[a-c]x|b", None, false),
            ("a*|b", None, true),
        ] {
            let id = parse_pattern(&mut exprs, pattern, &PatternOptions::default(), &mut Utf8).unwrap();
            assert_eq!(exprs.heads(id).map(|heads| heads.len()), heads, "{pattern}");
            assert_eq!(exprs.is_decided_by_first_byte(id), is_decided, "{pattern}");
        }
    }
}
