//! The bytes that a match may begin and end with, without derivatives.

use rustc_hash::FxHashSet;

use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};
use crate::numbers::Number;

impl ExprSet {
    /// The bytes that a match of an expression may begin with; the set may be too large. `None` where more than `most`
    /// parts would have to be visited.
    pub fn may_begin_with(&self, id: ExprId, most: usize) -> Option<ByteSet> {
        self.outermost(id, most, Side::First)
    }

    /// The bytes that a match of an expression may end with; the set may be too large. `None` as in
    /// [`ExprSet::may_begin_with`].
    pub fn may_end_with(&self, id: ExprId, most: usize) -> Option<ByteSet> {
        self.outermost(id, most, Side::Last)
    }

    fn outermost(&self, id: ExprId, most: usize, side: Side) -> Option<ByteSet> {
        let mut found = ByteSet::EMPTY;
        let (mut work, mut seen) = (vec![id], FxHashSet::default());
        while let Some(id) = work.pop() {
            if !seen.insert(id) {
                continue;
            }
            if seen.len() > most {
                return None;
            }
            match self.get(id) {
                Expr::Nothing | Expr::Empty => {}
                Expr::Bytes(set) => found = found.union(set),
                &Expr::Concat { head, tail } => {
                    let (outer, inner) = if side == Side::First { (head, tail) } else { (tail, head) };
                    work.push(outer);
                    if self.is_nullable(outer) {
                        work.push(inner);
                    }
                }
                Expr::Or(parts) => work.extend_from_slice(parts),
                // A match of an intersection is a match of every part, so one part is enough.
                Expr::And(parts) => work.extend(parts.first()),
                Expr::Not(_) => return Some(ByteSet::ALL),
                Expr::Repeat { body, .. } => work.push(*body),
                Expr::Number(_) => {
                    let sets = Number::BYTES.iter().map(|bytes| bytes.iter().copied().collect());
                    found = sets.fold(found, |all, set: ByteSet| all.union(&set));
                }
                Expr::Language(rest) => found = found.union(&rest.bytes()),
                Expr::Text(text) => {
                    let byte = if side == Side::First { text.bytes().next() } else { text.bytes().last() };
                    found = found.union(&byte.into_iter().collect());
                }
            }
        }
        Some(found)
    }
}

/// A side of a match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    First,
    Last,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Deriver, Limits, PatternOptions, Reversal, Utf8, parse_pattern};

    #[test]
    fn every_byte_that_may_be_outermost_is_found() {
        let mut deriver = Deriver::new(Limits::default());
        for (pattern, are_exact) in [
            ("(foo|bar|b[ax]z)?[0-9]", true),
            ("a*b*(c|d)e", true),
            ("(x{2,3}|é)y", true),
            ("(?!ab)[a-c]{2}", false),
            ("(?=b)[a-c]|", false),
        ] {
            let id = parse_pattern(&mut deriver.exprs, pattern, &PatternOptions::default(), &mut Utf8).unwrap();
            let found = deriver.exprs.may_begin_with(id, 100).unwrap();
            let ends = deriver.exprs.may_end_with(id, 100).unwrap();
            let reversed = Reversal::default().of(&mut deriver.exprs, id).unwrap();
            for byte in 0..=u8::MAX {
                let rest = deriver.after(id, byte).unwrap();
                let is_live = deriver.is_live(rest).unwrap();
                assert!(found.contains(byte) || !is_live, "{byte} in {pattern}");
                assert!(!are_exact || found.contains(byte) == is_live, "{byte} in {pattern}");
                let rest = deriver.after(reversed.expr, byte).unwrap();
                let leads_back = deriver.is_live(rest).unwrap();
                assert!(ends.contains(byte) || !leads_back, "{byte} at the end of {pattern}");
                assert!(!are_exact || ends.contains(byte) == leads_back, "{byte} at the end of {pattern}");
            }
        }
    }

    #[test]
    fn a_look_at_too_much_is_none() {
        let mut exprs = ExprSet::default();
        let words: Vec<String> = (b'a'..=b'z').map(|byte| format!("{}x", byte as char)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let words = exprs.literals(&words);
        assert_eq!(exprs.may_begin_with(words, 10), None);
        assert_eq!(exprs.may_begin_with(words, 100), Some(ByteSet::range(b'a', b'z')));
        let number = exprs.literal(&b"1".repeat(3_000));
        assert_eq!(exprs.may_begin_with(number, 10), Some(ByteSet::of(b'1')));
    }
}
