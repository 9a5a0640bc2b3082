//! Showing without a search that an expression matches nothing: one part of an intersection requires a byte that
//! another part cannot contain.
//!
//! A date with a pattern somewhere in it is a dead end where the pattern still requires a `T` and the rest of the date
//! has none. Finding this by derivatives would take thousands of them. Here two kinds of sets are computed bottom-up:
//! the bytes that can be part of a match, and sets of bytes of which every match contains at least one.

use rustc_hash::FxHashMap;
use stencilm_support::{Interner, memory};

use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

/// The greatest number of required sets that are stored for an expression.
const MAX_NEEDS: usize = 12;

/// Properties of the matches of an expression. Thousands of expressions share them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Bytes {
    /// The bytes that can be part of a match; the set may be too large.
    all: u32,
    needs: List,
    /// Whether there is certainly no match.
    dead: bool,
}

/// Sets of bytes of which every match contains at least one, the most restrictive first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct List {
    len: u8,
    sets: [u32; MAX_NEEDS],
}

impl List {
    const EMPTY: List = List { len: 0, sets: [0; MAX_NEEDS] };

    fn of(set: u32) -> List {
        let mut list = List::EMPTY;
        list.push(set);
        list
    }

    fn push(&mut self, set: u32) {
        self.sets[usize::from(self.len)] = set;
        self.len += 1;
    }

    fn is_full(&self) -> bool {
        usize::from(self.len) == MAX_NEEDS
    }
}

impl std::ops::Deref for List {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.sets[..usize::from(self.len)]
    }
}

/// The sets of bytes that occur in lists.
#[derive(Clone)]
struct Sets {
    known: Interner<ByteSet>,
    /// By number; the smallest sets, which restrict most, have the lowest rank.
    ranks: Vec<u32>,
}

impl Sets {
    fn number(&mut self, set: ByteSet) -> u32 {
        let number = self.known.intern(set);
        if self.ranks.len() < self.known.values.len() {
            self.ranks.push(rank(&set));
        }
        number
    }

    fn get(&self, number: u32) -> ByteSet {
        self.known.values[number as usize]
    }

    fn rank(&self, number: u32) -> u32 {
        self.ranks[number as usize]
    }
}

fn rank(set: &ByteSet) -> u32 {
    (set.len() as u32) << 8 | u32::from(set.first().unwrap_or(0))
}

/// A memo of properties for the expressions of one set.
#[derive(Clone)]
pub(crate) struct Needs {
    /// For each expression, the number of its properties.
    known: FxHashMap<ExprId, u32>,
    bytes: Interner<Bytes>,
    sets: Sets,
}

impl Default for Needs {
    fn default() -> Needs {
        // The first set contains all bytes.
        let sets = Sets { known: Interner::new(ByteSet::ALL), ranks: vec![rank(&ByteSet::ALL)] };
        let anything = Bytes { all: 0, needs: List::EMPTY, dead: false };
        Needs { known: FxHashMap::default(), bytes: Interner::new(anything), sets }
    }
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
                self.known.insert(id, self.bytes.intern(bytes));
                work.pop();
            }
        }
        self.known(id).dead
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(ExprId, u32)>(self.known.capacity())
            + self.bytes.memory_bytes()
            + self.sets.known.memory_bytes()
            + memory::of_list(&self.sets.ranks)
    }

    fn known(&self, id: ExprId) -> Bytes {
        self.bytes.values[self.known[&id] as usize]
    }

    /// Computes the properties of an expression from those of its children.
    fn gather(&mut self, exprs: &ExprSet, id: ExprId) -> Bytes {
        let anything = self.bytes.values[0];
        match exprs.get(id) {
            Expr::Nothing => Bytes { all: self.sets.number(ByteSet::EMPTY), dead: true, ..anything },
            Expr::Empty | Expr::Repeat { max: Some(0), .. } => {
                Bytes { all: self.sets.number(ByteSet::EMPTY), ..anything }
            }
            Expr::Bytes(set) => {
                let all = self.sets.number(*set);
                Bytes { all, needs: List::of(all), dead: false }
            }
            Expr::Text(text) => {
                let all: ByteSet = text.bytes().collect();
                let mut needs = List::EMPTY;
                all.iter().take(MAX_NEEDS).for_each(|byte| needs.push(self.sets.number(ByteSet::of(byte))));
                Bytes { all: self.sets.number(all), needs, dead: false }
            }
            Expr::Not(_) | Expr::Number(_) => anything,
            Expr::Language(rest) => Bytes { all: self.sets.number(rest.bytes()), ..anything },
            &Expr::Concat { head, tail } => {
                let (head, tail) = (self.known(head), self.known(tail));
                let needs = self.of_both(&head.needs, &tail.needs);
                Bytes { all: self.all_of([head.all, tail.all]), needs, dead: head.dead || tail.dead }
            }
            &Expr::Repeat { body, min, .. } => {
                let body = self.known(body);
                let needs = if min == 0 { List::EMPTY } else { body.needs };
                Bytes { all: body.all, needs, dead: body.dead && min > 0 }
            }
            Expr::Or(parts) => {
                let alive: Vec<Bytes> = parts.iter().map(|&part| self.known(part)).filter(|part| !part.dead).collect();
                let all = self.all_of(alive.iter().map(|part| part.all));
                Bytes { all, needs: self.of_any(&alive), dead: alive.is_empty() }
            }
            Expr::And(parts) => {
                let parts: Vec<Bytes> = parts.iter().map(|&part| self.known(part)).collect();
                let all = parts.iter().fold(ByteSet::ALL, |all, part| all.intersect(&self.sets.get(part.all)));
                let mut needs = parts.iter().flat_map(|part| part.needs.iter());
                let lacks = needs.any(|&need| self.sets.get(need).intersect(&all).is_empty());
                let needs = parts.iter().fold(List::EMPTY, |needs, part| self.of_both(&needs, &part.needs));
                Bytes { all: self.sets.number(all), needs, dead: lacks || parts.iter().any(|part| part.dead) }
            }
        }
    }

    /// The union of some sets.
    fn all_of(&mut self, sets: impl IntoIterator<Item = u32>) -> u32 {
        let all = sets.into_iter().fold(ByteSet::EMPTY, |all, set| all.union(&self.sets.get(set)));
        self.sets.number(all)
    }

    /// The required sets of a match of both.
    fn of_both(&self, one: &List, other: &List) -> List {
        let mut needs = List::EMPTY;
        let (mut one, mut other): (&[u32], &[u32]) = (one, other);
        while !needs.is_full() {
            let (need, rest) = match (one, other) {
                ([a, rest @ ..], [b, ..]) if self.sets.rank(*a) <= self.sets.rank(*b) => (a, (rest, other)),
                (_, [b, rest @ ..]) => (b, (one, rest)),
                ([a, rest @ ..], []) => (a, (rest, other)),
                ([], []) => break,
            };
            if needs.last() != Some(need) {
                needs.push(*need);
            }
            (one, other) = rest;
        }
        needs
    }

    /// The required sets of a match of one of some alternatives.
    fn of_any(&mut self, alternatives: &[Bytes]) -> List {
        let Some((first, others)) = alternatives.split_first() else { return List::EMPTY };
        let widened = first.needs.iter().filter_map(|&need| {
            others.iter().try_fold(self.sets.get(need), |need, other| {
                // A set required by another alternative that is included in this one adds nothing to it.
                let is_within = |own: &&u32| {
                    let own = self.sets.get(**own);
                    own.intersect(&need) == own
                };
                let own = other.needs.iter().find(is_within).or(other.needs.first())?;
                Some(need.union(&self.sets.get(*own)))
            })
        });
        let mut widened: Vec<ByteSet> = widened.collect();
        widened.sort_by_key(rank);
        widened.dedup();
        let mut needs = List::EMPTY;
        widened.into_iter().for_each(|set| needs.push(self.sets.number(set)));
        needs
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Deriver, Limits};

    /// What to do with the latest expressions.
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
