//! Why an expression matches nothing, without a search: one part of an intersection needs a byte that another lacks.
//!
//! A date with a pattern somewhere in it is a dead end where the pattern still needs a `T` and the rest of the date has
//! none. To find that out by derivatives takes thousands of them. Here two sets are gathered bottom-up: the bytes that can
//! be part of a match, and sets of bytes of which every match has at least one.

use rustc_hash::FxHashMap;
use stencilm_support::memory;

use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

/// No more needs than these are kept of an expression.
const MAX_NEEDS: usize = 12;

/// What is known of the matches of an expression.
#[derive(Clone)]
struct Bytes {
    /// All bytes that can be part of a match, perhaps some more.
    all: ByteSet,
    /// Sets of which every match has at least one byte, those first that say the most.
    needs: Vec<Need>,
    /// Whether there is certainly no match.
    dead: bool,
}

/// A set of bytes of which every match has at least one.
#[derive(Clone, Copy)]
struct Need {
    /// Least for the smallest sets, which say the most.
    rank: u32,
    set: ByteSet,
}

impl Need {
    fn new(set: ByteSet) -> Need {
        Need { rank: (set.len() as u32) << 8 | u32::from(set.first().unwrap_or(0)), set }
    }
}

/// What was gathered of the expressions of one set.
#[derive(Clone, Default)]
pub(crate) struct Needs {
    known: FxHashMap<ExprId, Bytes>,
    /// Bytes that these own.
    in_known: usize,
}

impl Needs {
    /// Whether an expression certainly matches nothing.
    pub fn contradict(&mut self, exprs: &ExprSet, id: ExprId) -> bool {
        let mut work = vec![id];
        while let Some(&id) = work.last() {
            if self.known.contains_key(&id) {
                work.pop();
                continue;
            }
            let before = work.len();
            if !matches!(exprs.get(id), Expr::Not(_)) {
                exprs.for_each_child(id, |child| {
                    if !self.known.contains_key(&child) {
                        work.push(child);
                    }
                });
            }
            if work.len() == before {
                let bytes = self.gather(exprs, id);
                self.in_known += memory::of_list(&bytes.needs);
                self.known.insert(id, bytes);
                work.pop();
            }
        }
        self.known[&id].dead
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(ExprId, Bytes)>(self.known.capacity()) + self.in_known
    }

    /// From what is known of the children.
    fn gather(&self, exprs: &ExprSet, id: ExprId) -> Bytes {
        let known = |id: ExprId| &self.known[&id];
        let anything = Bytes { all: ByteSet::ALL, needs: Vec::new(), dead: false };
        match exprs.get(id) {
            Expr::Nothing => Bytes { all: ByteSet::EMPTY, needs: Vec::new(), dead: true },
            Expr::Empty | Expr::Repeat { max: Some(0), .. } => Bytes { all: ByteSet::EMPTY, ..anything },
            Expr::Bytes(set) => Bytes { all: *set, needs: vec![Need::new(*set)], ..anything },
            Expr::Text(text) => {
                let all: ByteSet = text.bytes().collect();
                let needs = all.iter().take(MAX_NEEDS).map(|byte| Need::new(ByteSet::of(byte))).collect();
                Bytes { all, needs, ..anything }
            }
            Expr::Not(_) | Expr::Number(_) => anything,
            Expr::Language(rest) => Bytes { all: rest.bytes(), ..anything },
            &Expr::Concat { head, tail } => {
                let (head, tail) = (known(head), known(tail));
                let needs = of_both(&head.needs, &tail.needs);
                Bytes { all: head.all.union(&tail.all), needs, dead: head.dead || tail.dead }
            }
            &Expr::Repeat { body, min, .. } => {
                let body = known(body);
                let needs = if min == 0 { Vec::new() } else { body.needs.clone() };
                Bytes { all: body.all, needs, dead: body.dead && min > 0 }
            }
            Expr::Or(parts) => {
                let alive: Vec<&Bytes> = parts.iter().map(|&part| known(part)).filter(|part| !part.dead).collect();
                let all = alive.iter().fold(ByteSet::EMPTY, |all, part| all.union(&part.all));
                Bytes { all, needs: of_any(&alive), dead: alive.is_empty() }
            }
            Expr::And(parts) => {
                let parts = || parts.iter().map(|&part| known(part));
                let all = parts().fold(ByteSet::ALL, |all, part| all.intersect(&part.all));
                let lacks = parts().flat_map(|part| &part.needs).any(|need| need.set.intersect(&all).is_empty());
                let needs = parts().fold(Vec::new(), |needs, part| of_both(&needs, &part.needs));
                Bytes { all, needs, dead: lacks || parts().any(|part| part.dead) }
            }
        }
    }
}

/// The needs of what must match both.
fn of_both(one: &[Need], other: &[Need]) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::with_capacity((one.len() + other.len()).min(MAX_NEEDS));
    let (mut one, mut other) = (one, other);
    while needs.len() < MAX_NEEDS {
        let (need, rest) = match (one, other) {
            ([a, rest @ ..], [b, ..]) if a.rank <= b.rank => (a, (rest, other)),
            (_, [b, rest @ ..]) => (b, (one, rest)),
            ([a, rest @ ..], []) => (a, (rest, other)),
            ([], []) => break,
        };
        if needs.last().is_none_or(|last| last.set != need.set) {
            needs.push(*need);
        }
        (one, other) = rest;
    }
    needs
}

/// The needs of what must match any of some alternatives.
fn of_any(alternatives: &[&Bytes]) -> Vec<Need> {
    let Some((first, others)) = alternatives.split_first() else { return Vec::new() };
    let widened = first.needs.iter().filter_map(|need| {
        let widened = others.iter().try_fold(need.set, |need, other| {
            // What another one needs within the same bytes adds nothing to them.
            let is_within = |own: &&Need| own.set.intersect(&need) == own.set;
            let own = other.needs.iter().find(is_within).or(other.needs.first())?;
            Some(need.union(&own.set))
        });
        widened.map(Need::new)
    });
    let mut needs: Vec<Need> = widened.collect();
    needs.sort_by_key(|need| need.rank);
    needs.dedup_by_key(|need| need.set);
    needs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Deriver, Limits};

    /// What to do with the expressions made last.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Bytes(u8),
        Concat,
        Or,
        And,
        Not,
        Repeat(u32, Option<u32>),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (1..8u8).prop_map(Step::Bytes),
            3 => Just(Step::Concat),
            2 => Just(Step::Or),
            2 => Just(Step::And),
            1 => Just(Step::Not),
            1 => (0..3u32, prop::option::of(0..3u32)).prop_map(|(min, more)| Step::Repeat(min, more.map(|more| min + more))),
        ];
        prop::collection::vec(step, 1..24)
    }

    fn built(exprs: &mut ExprSet, steps: &[Step]) -> ExprId {
        let mut stack: Vec<ExprId> = Vec::new();
        for &step in steps {
            let last = stack.pop().unwrap_or(ExprId::EMPTY);
            let made = match step {
                Step::Bytes(bits) => {
                    stack.push(last);
                    exprs.bytes((0..3).filter(|bit| bits & (1 << bit) != 0).map(|bit| b'a' + bit).collect())
                }
                Step::Not => exprs.not(last),
                Step::Repeat(min, max) => exprs.repeat(last, min, max),
                Step::Concat | Step::Or | Step::And => {
                    let before = stack.pop().unwrap_or(ExprId::EMPTY);
                    match step {
                        Step::Concat => exprs.concat(before, last),
                        Step::Or => exprs.or(&[before, last]),
                        _ => exprs.and(&[before, last]),
                    }
                }
            };
            stack.push(made);
        }
        stack.pop().unwrap_or(ExprId::EMPTY)
    }

    proptest! {
        #[test]
        fn what_contradicts_itself_matches_nothing(steps in steps()) {
            let mut deriver = Deriver::new(Limits::default());
            let expr = built(&mut deriver.exprs, &steps);
            let dead = Needs::default().contradict(&deriver.exprs, expr);
            let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
            for _ in 0..5 {
                for text in &texts {
                    let matches = deriver.matches(expr, text).unwrap();
                    prop_assert!(!(dead && matches), "{text:?}");
                }
                texts = texts.iter().flat_map(|text| b"abc".map(|byte| [&text[..], &[byte]].concat())).collect();
            }
        }
    }

    #[test]
    fn a_byte_that_is_needed_and_lacking_is_found() {
        let mut exprs = ExprSet::new();
        let [a, b, c] = [b'a', b'b', b'c'].map(|byte| exprs.bytes(ByteSet::of(byte)));
        let ab = exprs.or(&[a, b]);
        let without = exprs.repeat(ab, 0, None);
        let (bc, ac) = (exprs.concat(b, c), exprs.concat(a, c));
        let with = exprs.or(&[bc, ac]);
        let any = exprs.repeat(with, 1, None);
        let both = exprs.and(&[without, any]);
        assert!(Needs::default().contradict(&exprs, both));
        let some = exprs.or(&[with, a]);
        let both = exprs.and(&[without, some]);
        assert!(!Needs::default().contradict(&exprs, both));
    }
}
