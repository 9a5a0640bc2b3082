//! Expressions whose texts are read backwards: what ends a text is found from its end.
//!
//! A set of numbers is arithmetic on the digits from the left and has no reversed form; nor has a language decided by a
//! program. These are reversed to a larger set of texts, which the caller narrows down by reading forwards.

use rustc_hash::FxHashMap;
use stencilm_support::{LimitExceeded, check_time};

use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

/// A memo of reversed expressions of one set.
#[derive(Clone, Default)]
pub struct Reversal {
    known: FxHashMap<ExprId, Reversed>,
}

/// A reversed expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reversed {
    /// It matches every text of the original, reversed.
    pub expr: ExprId,
    /// Whether it matches nothing else. This is so except for sets of numbers and languages decided by a program.
    pub is_exact: bool,
}

impl Reversal {
    /// Reverses an expression of the set.
    ///
    /// # Errors
    /// As [`stencilm_support::check_time`].
    pub fn of(&mut self, exprs: &mut ExprSet, id: ExprId) -> Result<Reversed, LimitExceeded> {
        if let Some(&known) = self.known.get(&id) {
            return Ok(known);
        }
        let mut work = vec![id];
        while let Some(&id) = work.last() {
            check_time()?;
            if self.known.contains_key(&id) {
                work.pop();
                continue;
            }
            let before = work.len();
            exprs.for_each_child(id, |child| {
                if !self.known.contains_key(&child) {
                    work.push(child);
                }
            });
            if work.len() == before {
                work.pop();
                let reversed = self.of_children(exprs, id);
                self.known.insert(id, reversed);
            }
        }
        Ok(self.known[&id])
    }

    /// The approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        stencilm_support::memory::of_table::<(ExprId, Reversed)>(self.known.capacity())
    }

    fn of_children(&self, exprs: &mut ExprSet, id: ExprId) -> Reversed {
        let all = |parts: &[ExprId]| {
            let parts: Vec<Reversed> = parts.iter().map(|part| self.known[part]).collect();
            let is_exact = parts.iter().all(|part| part.is_exact);
            (parts.into_iter().map(|part| part.expr).collect::<Vec<_>>(), is_exact)
        };
        match exprs.get(id).clone() {
            Expr::Nothing | Expr::Empty | Expr::Bytes(_) => Reversed { expr: id, is_exact: true },
            Expr::Concat { head, tail } => {
                let [head, tail] = [head, tail].map(|part| self.known[&part]);
                Reversed { expr: exprs.concat(tail.expr, head.expr), is_exact: head.is_exact && tail.is_exact }
            }
            Expr::Or(parts) => {
                let (parts, is_exact) = all(&parts);
                Reversed { expr: exprs.or(&parts), is_exact }
            }
            Expr::And(parts) => {
                let (parts, is_exact) = all(&parts);
                Reversed { expr: exprs.and(&parts), is_exact }
            }
            // The complement of a larger set would be too small.
            Expr::Not(inner) => match self.known[&inner] {
                Reversed { expr, is_exact: true } => Reversed { expr: exprs.not(expr), is_exact: true },
                _ => Reversed { expr: ExprId::ANYTHING, is_exact: false },
            },
            Expr::Repeat { body, min, max } => {
                let body = self.known[&body];
                Reversed { expr: exprs.repeat(body.expr, min, max), ..body }
            }
            Expr::Number(_) => {
                let bytes: ByteSet = b"0123456789.eE+-".iter().copied().collect();
                let byte = exprs.bytes(bytes);
                Reversed { expr: exprs.repeat(byte, 0, None), is_exact: false }
            }
            Expr::Language(rest) => {
                let byte = exprs.bytes(rest.bytes());
                Reversed { expr: exprs.repeat(byte, 0, None), is_exact: false }
            }
            Expr::Text(text) => {
                let backwards: Vec<u8> = text.bytes().rev().collect();
                Reversed { expr: exprs.literal(&backwards), is_exact: true }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Deriver, Limits, PatternOptions, Utf8, parse_pattern};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_are_matched_backwards(
            pattern in "([abé]|[ab]\\*|(a|bc)\\{1,3\\}|\\[\\^a\\]\\?){1,5}",
            text in "[abcé]{0,6}",
        ) {
            let mut deriver = Deriver::new(Limits::default());
            let options = PatternOptions::default();
            let expr = parse_pattern(&mut deriver.exprs, &pattern, &options, &mut Utf8).expect("plain");
            let not = deriver.exprs.not(expr);
            let mut reversal = Reversal::default();
            for expr in [expr, not] {
                let reversed = reversal.of(&mut deriver.exprs, expr).unwrap();
                let twice = reversal.of(&mut deriver.exprs, reversed.expr).unwrap();
                let backwards: Vec<u8> = text.bytes().rev().collect();
                let matches = deriver.matches(expr, text.as_bytes()).unwrap();
                prop_assert!(reversed.is_exact);
                prop_assert_eq!(deriver.matches(reversed.expr, &backwards).unwrap(), matches);
                prop_assert_eq!(deriver.matches(twice.expr, text.as_bytes()).unwrap(), matches);
            }
        }
    }
}
