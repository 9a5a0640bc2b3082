//! Classes of bytes that some expressions never distinguish.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_support::memory;

use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};
use crate::numbers::Number;

/// The classes of expressions with at least this many nodes are cached: visiting these takes long, and formats recur.
const MANY_NODES: usize = 100;

/// So are those of repeated bodies with at least this many nodes, such as the character of a string, which every string
/// contains.
const MANY_IN_A_BODY: usize = 24;

/// The greatest number of bodies of one expression that are visited separately.
const FEW_BODIES: usize = 4;

/// The greatest number of roots that are visited one by one.
const FEW_ROOTS: usize = 8;

/// The classes of bytes of the larger expressions, where automata needed them.
#[derive(Clone, Default)]
pub(crate) struct ByteClasses {
    known: FxHashMap<ExprId, Classes>,
    /// Bytes of memory of the cached classes.
    in_known: usize,
    /// For each expression, the round in which it was visited last. A lexeme cache that many grammars have used has
    /// hundreds of thousands of expressions, while most automata need a dozen: clearing a bit for each would take
    /// longer than visiting these.
    seen_in: Vec<u32>,
    round: u32,
    /// Scratch space: expressions still to be visited.
    work: Vec<ExprId>,
}

impl ByteClasses {
    /// The coarsest partition of the bytes that every byte set below the roots respects, ordered by smallest byte.
    pub fn of(&mut self, exprs: &ExprSet, roots: &[ExprId]) -> Vec<ByteSet> {
        let together = if roots.len() > FEW_ROOTS { roots.len() } else { 1 };
        let mut all: Option<Classes> = None;
        for roots in roots.chunks(together) {
            let classes = self.classes(exprs, roots);
            match &mut all {
                None => all = Some(classes),
                Some(all) => classes.sets.iter().for_each(|set| all.split(set)),
            }
        }
        let mut sets = all.unwrap_or_default().sets;
        sets.sort_unstable_by_key(|set| set.first());
        sets
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(ExprId, Classes)>(self.known.capacity()) + self.in_known + memory::of_list(&self.seen_in)
    }

    fn classes(&mut self, exprs: &ExprSet, roots: &[ExprId]) -> Classes {
        if let [root] = roots
            && let Some(known) = self.known.get(root)
        {
            return known.clone();
        }
        let mut parts = self.parts(exprs, roots);
        let nodes = parts.nodes;
        let known = self.known.len();
        for body in std::mem::take(&mut parts.bodies) {
            let own = self.parts(exprs, &[body]);
            if own.nodes >= MANY_IN_A_BODY {
                self.keep(body, self.joined(&own));
            }
        }
        if self.known.len() > known {
            // The bodies now have cached classes, which replaces what is below them.
            parts = self.parts(exprs, roots);
        }
        let classes = self.joined(&parts);
        if let &[root] = roots
            && nodes > MANY_NODES
        {
            self.keep(root, classes.clone());
        }
        classes
    }

    fn keep(&mut self, id: ExprId, classes: Classes) {
        self.in_known += memory::of_list(&classes.sets) + memory::of_table::<ByteSet>(classes.seen.capacity());
        self.known.insert(id, classes);
    }

    /// Collects what is below some expressions, down to those with cached classes.
    fn parts(&mut self, exprs: &ExprSet, roots: &[ExprId]) -> Parts {
        let (mut parts, mut work) = (Parts::default(), std::mem::take(&mut self.work));
        work.extend_from_slice(roots);
        self.begin_round(exprs.len());
        while let Some(id) = work.pop() {
            if std::mem::replace(&mut self.seen_in[id.index()], self.round) == self.round {
                continue;
            }
            parts.nodes += 1;
            match exprs.get(id) {
                Expr::Bytes(set) => match set.single() {
                    // Most sets are a single letter of some text.
                    Some(byte) => parts.letters.insert(byte),
                    None => parts.sets.push(*set),
                },
                Expr::Text(text) => parts.letters = parts.letters.union(&text.bytes().collect()),
                Expr::Language(rest) => parts.sets.extend(rest.classes()),
                Expr::Number(_) => {
                    let sets = Number::BYTES.iter().map(|bytes| bytes.iter().copied().collect::<ByteSet>());
                    parts.sets.extend(sets);
                }
                Expr::Repeat { body, .. } if self.known.contains_key(body) => {
                    parts.known.push(*body);
                    continue;
                }
                Expr::Repeat { body, .. } if parts.bodies.len() < FEW_BODIES => parts.bodies.push(*body),
                _ => {}
            }
            exprs.for_each_child(id, |child| work.push(child));
        }
        self.work = work;
        parts
    }

    /// Starts a round in which no expression was visited yet.
    fn begin_round(&mut self, exprs: usize) {
        if self.round == u32::MAX {
            self.seen_in.fill(0);
            self.round = 0;
        }
        self.round += 1;
        if self.seen_in.len() < exprs {
            self.seen_in.resize(exprs, 0);
        }
    }

    fn joined(&self, parts: &Parts) -> Classes {
        let mut known = parts.known.iter().map(|id| &self.known[id]);
        let mut classes = known.next().cloned().unwrap_or_default();
        known.for_each(|other| other.sets.iter().for_each(|set| classes.split(set)));
        parts.sets.iter().for_each(|set| classes.split(set));
        parts.letters.iter().for_each(|byte| classes.split(&ByteSet::of(byte)));
        classes
    }
}

/// What is below some expressions and distinguishes bytes.
#[derive(Default)]
struct Parts {
    /// Bytes that are classes of their own.
    letters: ByteSet,
    sets: Vec<ByteSet>,
    /// Expressions with cached classes.
    known: Vec<ExprId>,
    /// Repeated bodies that may be large enough to be cached.
    bodies: Vec<ExprId>,
    /// The number of expressions visited.
    nodes: usize,
}

/// Disjoint sets that together contain all bytes.
#[derive(Clone)]
struct Classes {
    sets: Vec<ByteSet>,
    /// The set of each byte.
    class_of: [u8; 256],
    /// Bytes that are classes of their own.
    alone: ByteSet,
    /// The sets of several bytes by which the classes have been split.
    seen: FxHashSet<ByteSet>,
}

impl Default for Classes {
    fn default() -> Classes {
        Classes { sets: vec![ByteSet::ALL], class_of: [0; 256], alone: ByteSet::EMPTY, seen: FxHashSet::default() }
    }
}

impl Classes {
    /// Splits every class into its part inside a set and its part outside.
    fn split(&mut self, set: &ByteSet) {
        if let Some(byte) = set.single() {
            let class = usize::from(self.class_of[usize::from(byte)]);
            if self.sets[class] != *set {
                self.part(class, *set);
            }
            return;
        }
        if self.sets.len() == 256 || !self.seen.insert(*set) {
            return;
        }
        // Single bytes cannot be split further, and soon most bytes of a large character class are single.
        let left = set.intersect(&self.alone.complement());
        let classes = if left.len() < self.sets.len() {
            left.iter().map(|byte| self.class_of[usize::from(byte)]).collect()
        } else {
            ByteSet::range(0, (self.sets.len() - 1) as u8)
        };
        for class in classes.iter().map(usize::from) {
            let inside = self.sets[class].intersect(set);
            if !inside.is_empty() && inside != self.sets[class] {
                self.part(class, inside);
            }
        }
    }

    /// Makes a part of a class a class of its own.
    fn part(&mut self, class: usize, part: ByteSet) {
        let number = self.sets.len() as u8;
        part.iter().for_each(|byte| self.class_of[usize::from(byte)] = number);
        self.sets[class] = self.sets[class].intersect(&part.complement());
        self.sets.push(part);
        let alone = [self.sets[class].single(), part.single()];
        alone.into_iter().flatten().for_each(|byte| self.alone.insert(byte));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slow reference: two bytes are in one class if they are in the same sets.
    fn slowly(exprs: &ExprSet, roots: &[ExprId]) -> Vec<ByteSet> {
        let (mut work, mut sets) = (roots.to_vec(), Vec::new());
        while let Some(id) = work.pop() {
            if let Expr::Bytes(set) = exprs.get(id) {
                sets.push(*set);
            }
            exprs.for_each_child(id, |child| work.push(child));
        }
        let mut classes: Vec<(Vec<bool>, ByteSet)> = Vec::new();
        for byte in 0..=u8::MAX {
            let within: Vec<bool> = sets.iter().map(|set| set.contains(byte)).collect();
            match classes.iter_mut().find(|(known, _)| *known == within) {
                Some((_, class)) => class.insert(byte),
                None => classes.push((within, ByteSet::of(byte))),
            }
        }
        classes.into_iter().map(|(_, class)| class).collect()
    }

    #[test]
    fn classes_are_the_same_whatever_is_known() {
        let mut exprs = ExprSet::default();
        let words: Vec<String> = (0..30).map(|word| format!("{word}x{}", word * 7)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let words = exprs.literals(&words);
        let letter = exprs.bytes(ByteSet::range(b'a', b'm'));
        let letters = exprs.repeat(letter, 0, Some(3));
        let body = exprs.concat(words, letters);
        let many = exprs.repeat(body, 1, None);
        let end = exprs.bytes(ByteSet::range(b'k', b'z'));
        let roots = [many, exprs.concat(many, end), letters, exprs.concat(letters, many)];
        let mut classes = ByteClasses::default();
        for roots in [&roots[..1], &roots[1..2], &roots[..3], &roots[3..], &roots.repeat(3)] {
            assert_eq!(classes.of(&exprs, roots), slowly(&exprs, roots));
            assert_eq!(ByteClasses::default().of(&exprs, roots), slowly(&exprs, roots));
        }
        assert!(!classes.known.is_empty(), "what is repeated is large");
    }

    proptest::proptest! {
        /// Small and large sets, many of which overlap, so that most bytes are single in the end.
        #[test]
        fn classes_are_those_of_any_sets(
            ranges in proptest::collection::vec((0u8..=255, 0u8..=255, proptest::bool::ANY), 1..120),
        ) {
            let mut exprs = ExprSet::default();
            let sets: Vec<ExprId> = ranges
                .iter()
                .map(|&(one, other, is_apart)| {
                    let range = ByteSet::range(one.min(other), one.max(other));
                    let step = |byte: &u8| !is_apart || byte % 3 == one % 3;
                    exprs.bytes(range.iter().filter(step).collect())
                })
                .collect();
            let body = exprs.concat_all(&sets);
            let roots = [exprs.repeat(body, 0, None), body];
            let mut classes = ByteClasses::default();
            for roots in [&roots[..1], &roots[1..], &roots[..], &sets[..1]] {
                proptest::prop_assert_eq!(classes.of(&exprs, roots), slowly(&exprs, roots));
            }
        }
    }
}
