//! Which bytes some expressions never distinguish.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_support::memory;

use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};
use crate::numbers::Number;

/// The classes of so large an expression are kept: it takes long to look through, and formats come again and again.
const MANY_NODES: usize = 100;

/// So are those of what is repeated, where it is as large as this: a character of a string, say, of which every string
/// has its body.
const MANY_IN_A_BODY: usize = 24;

/// So many bodies of one expression are looked through on their own.
const FEW_BODIES: usize = 4;

/// So many roots are looked through one by one.
const FEW_ROOTS: usize = 8;

/// The classes of bytes of the larger expressions, as far as automata asked.
#[derive(Clone, Default)]
pub(crate) struct ByteClasses {
    known: FxHashMap<ExprId, Classes>,
    /// Bytes that these own.
    in_known: usize,
    /// By expression the round in which it was seen last. A lexicon that many grammars have used has hundreds of
    /// thousands, most automata are of a dozen: to clear a bit for each took longer than to look at these.
    seen_in: Vec<u32>,
    round: u32,
    /// Expressions that are still to be looked at: handed on from one look to the next.
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

    /// Bytes of memory held, about.
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
            // What is in these bodies has been split already.
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

    /// What lies below some expressions, as far as its classes are not known.
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
                    // Most sets are a letter of some text.
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

    /// A round in which no expression was seen yet.
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

/// What lies below some expressions and splits the bytes.
#[derive(Default)]
struct Parts {
    /// Bytes that stand alone.
    letters: ByteSet,
    sets: Vec<ByteSet>,
    /// Expressions whose classes are known.
    known: Vec<ExprId>,
    /// What is repeated, and may be large enough for its classes to be kept.
    bodies: Vec<ExprId>,
    /// How many expressions were looked at.
    nodes: usize,
}

/// Disjoint sets of bytes, together all of them.
#[derive(Clone)]
struct Classes {
    sets: Vec<ByteSet>,
    /// In which set each byte is.
    class_of: [u8; 256],
    /// Bytes that are a class of their own.
    alone: ByteSet,
    /// By which sets of several bytes they have been split.
    seen: FxHashSet<ByteSet>,
}

impl Default for Classes {
    fn default() -> Classes {
        Classes { sets: vec![ByteSet::ALL], class_of: [0; 256], alone: ByteSet::EMPTY, seen: FxHashSet::default() }
    }
}

impl Classes {
    /// Splits every class into its part inside and its part outside of a set.
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
        // Bytes that stand alone cannot be distinguished any more: soon most bytes of a large class of characters do.
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

    /// Makes a class of its own of a part of one.
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

    /// The slow twin: bytes are together that are in the same sets.
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
        /// Small sets and large ones, many that overlap, so that most bytes stand alone in the end.
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
