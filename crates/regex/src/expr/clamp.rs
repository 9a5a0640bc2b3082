//! Counts too large to matter: the form of an expression that strings of at most `horizon` bytes cannot distinguish
//! from it.
//!
//! Within so many bytes at most `horizon` rounds of a repetition can begin, so a greater maximum is as good as none,
//! and a greater minimum as good as `horizon + 1`. Applied to a state, this makes "997 characters left" and "400
//! characters left" the same state, for every question about the next few bytes. Below an intersection or complement
//! nothing is changed: there, whether a prefix can be completed may depend on counts far away.

use rustc_hash::FxHashMap;
use stencilm_support::memory;

use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

/// Memoised clamping of expressions of one set, for one horizon.
#[derive(Clone)]
pub struct Saturation {
    horizon: u32,
    done: FxHashMap<ExprId, ExprId>,
}

impl Saturation {
    /// Clamps for strings of at most `horizon` bytes.
    pub fn new(horizon: u32) -> Saturation {
        Saturation { horizon, done: FxHashMap::default() }
    }

    /// The length of the longest of these strings.
    pub fn horizon(&self) -> u32 {
        self.horizon
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(ExprId, ExprId)>(self.done.capacity())
    }

    /// An expression that strings of at most `horizon` bytes cannot distinguish from `root`: neither by whether they
    /// match, nor by whether they can be completed.
    pub fn apply(&mut self, exprs: &mut ExprSet, root: ExprId) -> ExprId {
        let horizon = self.horizon;
        let is_changed = |exprs: &ExprSet, id| exprs.greatest_count(id) > horizon;
        apply(&mut self.done, exprs, root, is_changed, |exprs, body, min, max, _| {
            exprs.repeat(body, min.min(horizon + 1), max.filter(|&max| max <= horizon))
        })
    }
}

/// An expression without maximum counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Relaxed {
    /// The expression, which matches everything that the original does.
    pub expr: ExprId,
    /// The least number of bytes for which both read the same: for every string of at most that length, both can
    /// continue or neither, and both match or neither. `u32::MAX` where they are equal.
    pub agreement: u32,
}

/// Memoised removal of maximum counts.
#[derive(Clone, Default)]
pub(crate) struct Relaxation {
    /// The result of one pass for each expression.
    passed: FxHashMap<ExprId, ExprId>,
    done: FxHashMap<ExprId, Relaxed>,
}

/// An expression that still has maximum counts after this many passes is given up. One pass is enough for nearly all.
const MAX_PASSES: usize = 16;

impl Relaxation {
    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(ExprId, ExprId)>(self.passed.capacity())
            + memory::of_table::<(ExprId, Relaxed)>(self.done.capacity())
    }

    /// The expression in which no repetition has a maximum count, except below an intersection or complement. This is a
    /// fixed point: applied to it again, the result is the same. Where none is found, returns the expression unchanged.
    pub fn apply(&mut self, exprs: &mut ExprSet, root: ExprId) -> Relaxed {
        let unchanged = Relaxed { expr: root, agreement: u32::MAX };
        if exprs.agreement(root) == u32::MAX {
            return unchanged;
        }
        if let Some(&known) = self.done.get(&root) {
            return known;
        }
        // Bodies that differ only in maximum counts are equal after a pass. Adjacent repetitions of them are then
        // joined to one, which may have a maximum count: `(a{2,3})? (a{2,4})?` gives `(a{2,}){0,2}`.
        let mut relaxed = unchanged;
        for _ in 0..MAX_PASSES {
            let agreement = exprs.agreement(relaxed.expr);
            let expr = match agreement {
                u32::MAX => relaxed.expr,
                _ => self.pass(exprs, relaxed.expr),
            };
            if expr == relaxed.expr {
                self.done.insert(root, relaxed);
                return relaxed;
            }
            relaxed = Relaxed { expr, agreement: relaxed.agreement.min(agreement) };
        }
        self.done.insert(root, unchanged);
        unchanged
    }

    fn pass(&mut self, exprs: &mut ExprSet, root: ExprId) -> ExprId {
        let is_changed = |exprs: &ExprSet, id| exprs.agreement(id) != u32::MAX;
        apply(&mut self.passed, exprs, root, is_changed, |exprs, body, min, max, nullable| match max {
            Some(0 | 1) if nullable => exprs.optional(body),
            Some(0 | 1) => body,
            _ => exprs.repeat(body, min, None),
        })
    }
}

/// Repetitions of at most this many rounds are kept when an expression is [loosened](Loosening).
const FEW_ROUNDS: u32 = 4;

/// Memoised removal of large counts: such expressions match more and have far fewer residuals.
#[derive(Clone, Default)]
pub(crate) struct Loosening {
    done: FxHashMap<ExprId, ExprId>,
}

impl Loosening {
    /// An expression that matches everything that `root` does and whose repetitions have no large counts, except below
    /// a complement, where removing them would make it match less.
    pub fn apply(&mut self, exprs: &mut ExprSet, root: ExprId) -> ExprId {
        let mut work = vec![root];
        while let Some(&id) = work.last() {
            if self.done.contains_key(&id) {
                work.pop();
                continue;
            }
            let before = work.len();
            if !matches!(exprs.get(id), Expr::Not(_)) {
                exprs.for_each_child(id, |child| {
                    if !self.done.contains_key(&child) {
                        work.push(child);
                    }
                });
            }
            if work.len() > before {
                continue;
            }
            work.pop();
            let known = |id: &ExprId| self.done[id];
            let result = match exprs.get(id).clone() {
                Expr::Nothing | Expr::Empty | Expr::Bytes(_) | Expr::Not(_) => id,
                Expr::Number(_) | Expr::Text(_) | Expr::Language(_) => id,
                Expr::Concat { head, tail } => exprs.concat(known(&head), known(&tail)),
                Expr::Or(parts) => exprs.or(&parts.iter().map(known).collect::<Vec<_>>()),
                Expr::And(parts) => exprs.and(&parts.iter().map(known).collect::<Vec<_>>()),
                Expr::Repeat { body, min, max } => match max {
                    Some(max) if max <= FEW_ROUNDS => exprs.repeat(known(&body), min, Some(max)),
                    _ => exprs.repeat(known(&body), min.min(1), None),
                },
            };
            self.done.insert(id, result);
        }
        self.done[&root]
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(ExprId, ExprId)>(self.done.capacity())
    }
}

/// Rewrites the repetitions of an expression outside intersections and complements. `is_changed` tells which parts may
/// contain something to rewrite; `repeat` gets the rewritten body, the counts, and whether the repetition may be empty.
/// `done` is a memo.
fn apply(
    done: &mut FxHashMap<ExprId, ExprId>,
    exprs: &mut ExprSet,
    root: ExprId,
    is_changed: impl Fn(&ExprSet, ExprId) -> bool,
    repeat: impl Fn(&mut ExprSet, ExprId, u32, Option<u32>, bool) -> ExprId,
) -> ExprId {
    if !is_changed(exprs, root) {
        return root;
    }
    let mut work = vec![root];
    while let Some(&id) = work.last() {
        if done.contains_key(&id) {
            work.pop();
            continue;
        }
        let before = work.len();
        exprs.for_each_child(id, |child| {
            if is_changed(exprs, child) && !done.contains_key(&child) {
                work.push(child);
            }
        });
        if work.len() > before {
            continue;
        }
        work.pop();
        let known = |id: ExprId| done.get(&id).copied().unwrap_or(id);
        let result = match exprs.get(id).clone() {
            Expr::Nothing | Expr::Empty | Expr::Bytes(_) | Expr::And(_) | Expr::Not(_) => id,
            Expr::Number(_) | Expr::Text(_) | Expr::Language(_) => id,
            Expr::Concat { head, tail } => exprs.concat(known(head), known(tail)),
            Expr::Or(parts) => {
                let parts: Vec<ExprId> = parts.iter().map(|&part| known(part)).collect();
                exprs.or(&parts)
            }
            Expr::Repeat { body, min, max } => {
                let nullable = exprs.is_nullable(id);
                repeat(exprs, known(body), min, max, nullable)
            }
        };
        done.insert(id, result);
    }
    done[&root]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derivative::deriver::Deriver;
    use crate::expr::byte_set::ByteSet;
    use crate::limits::Limits;
    use proptest::prelude::*;

    #[test]
    fn far_counts_are_the_same_state() {
        let mut exprs = ExprSet::new();
        let letter = exprs.bytes(ByteSet::range(b'a', b'z'));
        let quote = exprs.literal(b"\"");
        let mut saturation = Saturation::new(10);
        let mut state = |min, max| {
            let letters = exprs.repeat(letter, min, max);
            let string = exprs.concat(letters, quote);
            saturation.apply(&mut exprs, string)
        };
        assert_eq!(state(0, Some(1000)), state(0, None));
        assert_eq!(state(20, Some(1000)), state(500, None));
        assert_ne!(state(0, Some(9)), state(0, Some(8)));
        assert_ne!(state(3, Some(1000)), state(4, Some(1000)));
    }

    /// A random expression from a list of numbers that is read like a program, smallest parts first.
    fn build(exprs: &mut ExprSet, program: &[(u8, u8, u8)]) -> ExprId {
        let mut stack = vec![exprs.literal(b"a")];
        for &(operation, low, high) in program {
            let top = *stack.last().expect("the stack starts with one and only grows or combines");
            let next = match operation % 6 {
                0 => exprs.literal(b"b"),
                1 => exprs.bytes(ByteSet::range(b'a', b'b')),
                2 => exprs.repeat(top, u32::from(low % 7), Some(u32::from(low % 7) + u32::from(high % 7))),
                3 => exprs.repeat(top, u32::from(low % 7), None),
                4 => {
                    let other = stack[usize::from(low) % stack.len()];
                    exprs.concat(top, other)
                }
                _ => {
                    let other = stack[usize::from(low) % stack.len()];
                    exprs.or(&[top, other])
                }
            };
            stack.push(next);
        }
        *stack.last().expect("the stack starts with one and only grows or combines")
    }

    #[test]
    fn what_no_count_can_mend_is_found_without_counting() {
        let mut deriver = Deriver::new(Limits { max_search: 1_000, ..Limits::default() });
        let exprs = &mut deriver.exprs;
        let (letter, other) = (exprs.bytes(ByteSet::range(b'a', b'z')), exprs.literal(b"-"));
        let character = exprs.or(&[letter, other]);
        let (any, many) = (exprs.repeat(character, 0, None), exprs.repeat(character, 9, Some(4_000)));
        // Some text whose last character is no letter, and none that begins as each of them does.
        let ends = exprs.concat(any, other);
        let some = exprs.and(&[ends, many]);
        let begins = exprs.not(any);
        let none = exprs.and(&[some, begins]);
        assert_eq!(deriver.is_live(none), Ok(false));
        assert_eq!(deriver.is_live(some), Ok(true));
    }

    proptest! {
        #[test]
        fn what_is_loosened_matches_more(program in prop::collection::vec(any::<(u8, u8, u8)>(), 1..10), negated: bool) {
            let mut deriver = Deriver::new(Limits::default());
            let one = build(&mut deriver.exprs, &program[..program.len() / 2]);
            let one = if negated { deriver.exprs.not(one) } else { one };
            let other = build(&mut deriver.exprs, &program[program.len() / 2..]);
            let both = deriver.exprs.and(&[one, other]);
            let loose = Loosening::default().apply(&mut deriver.exprs, both);
            let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
            for _ in 0..9 {
                for text in &texts {
                    prop_assert!(!deriver.matches(both, text).unwrap() || deriver.matches(loose, text).unwrap(), "{text:?}");
                }
                texts = texts.iter().flat_map(|text| b"ab".map(|byte| [&text[..], &[byte]].concat())).collect();
            }
        }

        #[test]
        fn what_is_relaxed_matches_more_and_stays(program in prop::collection::vec(any::<(u8, u8, u8)>(), 1..16)) {
            let mut deriver = Deriver::new(Limits::default());
            let original = build(&mut deriver.exprs, &program);
            let mut relaxation = Relaxation::default();
            let Relaxed { expr, agreement } = relaxation.apply(&mut deriver.exprs, original);
            prop_assert_eq!(deriver.exprs.agreement(expr), u32::MAX, "nothing is left to relax");
            prop_assert_eq!(relaxation.apply(&mut deriver.exprs, expr), Relaxed { expr, agreement: u32::MAX });
            prop_assert!((expr == original) == (agreement == u32::MAX));
            prop_assert!(expr == original || deriver.exprs.complexity(expr) < deriver.exprs.complexity(original));
            let mut level = vec![(original, expr)];
            for length in 0..7 {
                let mut next = Vec::new();
                for (one, other) in level {
                    let (ends, other_ends) = (deriver.exprs.is_nullable(one), deriver.exprs.is_nullable(other));
                    prop_assert!(!ends || other_ends, "more is matched");
                    if length <= agreement {
                        prop_assert_eq!(one == ExprId::NOTHING, other == ExprId::NOTHING);
                        prop_assert_eq!(ends, other_ends);
                    }
                    for byte in *b"ab" {
                        next.push((deriver.after(one, byte).unwrap(), deriver.after(other, byte).unwrap()));
                    }
                }
                next.sort_unstable();
                next.dedup();
                level = next;
            }
        }

        #[test]
        fn short_strings_cannot_distinguish(program in prop::collection::vec(any::<(u8, u8, u8)>(), 1..10)) {
            let mut deriver = Deriver::new(Limits::default());
            let original = build(&mut deriver.exprs, &program);
            let horizon = 3;
            let saturated = Saturation::new(horizon).apply(&mut deriver.exprs, original);
            let mut level = vec![(original, saturated)];
            for _ in 0..=horizon {
                let mut next = Vec::new();
                for (a, b) in level {
                    prop_assert_eq!(a == ExprId::NOTHING, b == ExprId::NOTHING);
                    prop_assert_eq!(deriver.exprs.is_nullable(a), deriver.exprs.is_nullable(b));
                    for byte in *b"ab" {
                        next.push((deriver.after(a, byte).unwrap(), deriver.after(b, byte).unwrap()));
                    }
                }
                level = next;
            }
        }
    }
}
