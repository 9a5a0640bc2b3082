//! Counts too large to matter: what an expression looks like to strings of at most `horizon` bytes.
//!
//! Within so many bytes no more than `horizon` rounds of a repetition can begin, so a greater maximum is as good as none,
//! and a greater minimum as good as `horizon + 1`. Applied to a state this makes "997 characters left" and "400
//! characters left" the same state, for every question about the next few bytes. Below an intersection or complement
//! nothing is touched: there, whether a prefix can be completed may hang on counts far away.

use rustc_hash::FxHashMap;

use crate::expr::{Expr, ExprId, ExprSet};

/// Memoised saturation of expressions of one set, for one horizon.
#[derive(Clone)]
pub struct Saturation {
    horizon: u32,
    done: FxHashMap<ExprId, ExprId>,
}

impl Saturation {
    /// Saturation for strings of at most `horizon` bytes.
    pub fn new(horizon: u32) -> Saturation {
        Saturation { horizon, done: FxHashMap::default() }
    }

    /// An expression that every string of at most `horizon` bytes, and whether such a string can be completed, cannot
    /// tell from `root`.
    pub fn apply(&mut self, exprs: &mut ExprSet, root: ExprId) -> ExprId {
        let mut work = vec![root];
        while let Some(&id) = work.last() {
            if self.done.contains_key(&id) {
                work.pop();
                continue;
            }
            let before = work.len();
            if !matches!(exprs.get(id), Expr::And(_) | Expr::Not(_)) {
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
            let result = self.rebuild(exprs, id);
            self.done.insert(id, result);
        }
        self.done[&root]
    }

    fn rebuild(&self, exprs: &mut ExprSet, id: ExprId) -> ExprId {
        match exprs.get(id).clone() {
            Expr::Nothing | Expr::Empty | Expr::Bytes(_) | Expr::And(_) | Expr::Not(_) | Expr::Number(_) => id,
            Expr::Concat { head, tail } => exprs.concat(self.done[&head], self.done[&tail]),
            Expr::Or(parts) => {
                let parts: Vec<ExprId> = parts.iter().map(|part| self.done[part]).collect();
                exprs.or(&parts)
            }
            Expr::Repeat { body, min, max } => {
                let min = min.min(self.horizon + 1);
                let max = max.filter(|&max| max <= self.horizon);
                exprs.repeat(self.done[&body], min, max)
            }
        }
    }
}

/// Expressions without their greatest counts, and for how many bytes nobody can tell.
#[derive(Clone, Default)]
pub struct Relaxation {
    done: FxHashMap<ExprId, ExprId>,
    agreement: FxHashMap<ExprId, u32>,
}

impl Relaxation {
    /// The expression in which no repetition has a greatest count, except below an intersection or complement.
    pub fn apply(&mut self, exprs: &mut ExprSet, root: ExprId) -> ExprId {
        if let Some(&known) = self.done.get(&root) {
            return known;
        }
        for id in unknown_parts(exprs, root, &self.done) {
            let relaxed = match exprs.get(id).clone() {
                Expr::Nothing | Expr::Empty | Expr::Bytes(_) | Expr::And(_) | Expr::Not(_) | Expr::Number(_) => id,
                Expr::Concat { head, tail } => exprs.concat(self.done[&head], self.done[&tail]),
                Expr::Or(parts) => {
                    let parts: Vec<ExprId> = parts.iter().map(|part| self.done[part]).collect();
                    exprs.or(&parts)
                }
                Expr::Repeat { body, max: Some(0 | 1), .. } => {
                    let optional = exprs.optional(self.done[&body]);
                    if exprs.is_nullable(id) { optional } else { self.done[&body] }
                }
                Expr::Repeat { body, min, .. } => exprs.repeat(self.done[&body], min, None),
            };
            self.done.insert(id, relaxed);
        }
        self.done[&root]
    }

    /// So many bytes, at least, an expression and its relaxed form read alike: for every string of at most that length,
    /// both can go on or neither, and both match or neither. `u32::MAX` where they are the same.
    pub fn agreement(&mut self, exprs: &ExprSet, root: ExprId) -> u32 {
        if let Some(&known) = self.agreement.get(&root) {
            return known;
        }
        for id in unknown_parts(exprs, root, &self.agreement) {
            let agreement = match exprs.get(id) {
                Expr::Nothing | Expr::Empty | Expr::Bytes(_) | Expr::And(_) | Expr::Not(_) | Expr::Number(_) => {
                    u32::MAX
                }
                Expr::Concat { head, tail } => {
                    let behind = self.agreement[tail].saturating_add(exprs.shortest_at_least(*head));
                    self.agreement[head].min(behind)
                }
                Expr::Or(parts) => parts.iter().map(|part| self.agreement[part]).min().unwrap_or(u32::MAX),
                Expr::Repeat { body, max, .. } => match max {
                    None | Some(0 | 1) => self.agreement[body],
                    Some(max) => self.agreement[body].min(exprs.shortest_at_least(*body).saturating_mul(*max)),
                },
            };
            self.agreement.insert(id, agreement);
        }
        self.agreement[&root]
    }
}

/// The parts of an expression that are not known yet, inner ones first; not those below an intersection or complement.
fn unknown_parts<T>(exprs: &ExprSet, root: ExprId, known: &FxHashMap<ExprId, T>) -> Vec<ExprId> {
    let mut found = Vec::new();
    let mut seen = rustc_hash::FxHashSet::default();
    let mut work = vec![(root, false)];
    while let Some((id, finished)) = work.pop() {
        if finished {
            found.push(id);
            continue;
        }
        if known.contains_key(&id) || !seen.insert(id) {
            continue;
        }
        work.push((id, true));
        if !matches!(exprs.get(id), Expr::And(_) | Expr::Not(_)) {
            exprs.for_each_child(id, |child| work.push((child, false)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byteset::ByteSet;
    use crate::derivative::Deriver;
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

    /// A random expression from a list of numbers read like a program, smallest parts first.
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

    proptest! {
        #[test]
        fn short_strings_cannot_tell(program in prop::collection::vec(any::<(u8, u8, u8)>(), 1..10)) {
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
