//! Normal forms of repetitions and intersections: what is joined, absorbed or intersected at once, so that equal
//! languages are more often one expression and an automaton has fewer states.

use rustc_hash::FxHashMap;

use crate::expr::arena::Arena;
use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

/// The least and the greatest count of a repetition.
type Interval = (u32, Option<u32>);

/// A repetition and what follows it.
struct Counted {
    body: ExprId,
    interval: Interval,
    tail: ExprId,
}

impl ExprSet {
    /// Joins `x{2,5} | x{4,9}` to `x{2,9}`, alone and before equal tails. Without this, a repetition that can be read
    /// in several ways would have one alternative for every count.
    pub(crate) fn merge_counters(&mut self, parts: &mut Vec<ExprId>) {
        let key = |set: &ExprSet, part: ExprId| {
            let (head, tail) = match *set.get(part) {
                Expr::Concat { head, tail } => (head, tail),
                _ => (part, ExprId::EMPTY),
            };
            match *set.get(head) {
                Expr::Repeat { body, min, max } => Some(((body, tail), (min, max))),
                _ => None,
            }
        };
        let counted = parts.iter().filter(|&&part| key(self, part).is_some()).count();
        if counted < 2 {
            return;
        }
        let mut groups: FxHashMap<(ExprId, ExprId), Vec<Interval>> = FxHashMap::default();
        for &part in parts.iter() {
            if let Some((group, interval)) = key(self, part) {
                groups.entry(group).or_default().push(interval);
            }
        }
        if groups.len() == counted {
            return;
        }
        parts.retain(|&part| key(self, part).is_none());
        for ((body, tail), mut intervals) in groups {
            intervals.sort_unstable();
            let mut merged: Vec<Interval> = Vec::new();
            for (min, max) in intervals {
                match merged.last_mut() {
                    Some(last) if last.1.is_none_or(|end| min <= end.saturating_add(1)) => {
                        last.1 = match (last.1, max) {
                            (Some(a), Some(b)) => Some(a.max(b)),
                            _ => None,
                        };
                    }
                    _ => merged.push((min, max)),
                }
            }
            for (min, max) in merged {
                let repeat = self.repeat(body, min, max);
                parts.push(self.concat(repeat, tail));
            }
        }
        parts.sort_unstable();
        parts.dedup();
    }

    /// Drops the empty string from alternatives of which another is nullable, or becomes nullable as `x{0,9}` instead
    /// of `x{1,9}`.
    pub(crate) fn make_nullable(&mut self, parts: &mut Vec<ExprId>) {
        if !parts.iter().any(|&part| part != ExprId::EMPTY && self.is_nullable(part)) {
            let repeated = parts.iter_mut().find_map(|part| match *self.get(*part) {
                Expr::Repeat { body, min: 1, max } => Some((part, body, max)),
                _ => None,
            });
            let Some((part, body, max)) = repeated else { return };
            *part = self.repeat(body, 0, max);
        }
        parts.retain(|&part| part != ExprId::EMPTY);
        parts.sort_unstable();
        parts.dedup();
    }

    /// Joins `x{2,3} x{1,4} y` to `x{3,7}` and `y`, where at least one of the two is a repetition. So `x x*` and `x+`
    /// are one expression, however they were built.
    pub(crate) fn join_repeated(&mut self, head: ExprId, tail: ExprId) -> Option<(ExprId, ExprId)> {
        let (body, (min, max), rest) = self.counts_together(head, tail)?;
        Some((self.repeat(body, min, max), rest))
    }

    /// If a head and the part after it repeat the same: the body, the counts of both together, and the rest of the
    /// tail. `None` where they have nothing in common, or where the counts are too large to be added.
    pub(crate) fn counts_together(&self, head: ExprId, tail: ExprId) -> Option<(ExprId, Interval, ExprId)> {
        let (next, rest) = match *self.get(tail) {
            Expr::Concat { head, tail } => (head, tail),
            _ => (tail, ExprId::EMPTY),
        };
        // Each part is a number of repetitions of one body. A repetition of a repetition counts as a single one.
        let counts = |part| match *self.get(part) {
            Expr::Repeat { body, min, max } => (body, (min, max)),
            _ => (part, (1, Some(1))),
        };
        let ((body, one), (also, other)) = (counts(head), counts(next));
        let once = (1, Some(1));
        if body != also || (one, other) == (once, once) {
            return None;
        }
        let max = match (one.1, other.1) {
            (Some(one), Some(other)) => Some(one.checked_add(other)?),
            _ => None,
        };
        Some((body, (one.0.checked_add(other.0)?, max), rest))
    }

    /// The head of a concatenation without what its tail reads as well: `C{2,9} D*` becomes `CC D*` if every `C` is a
    /// `D`. So what comes after two digits of `[0-9]+.*` is a single state, and not one for each reading.
    pub(crate) fn without_swallowed(&mut self, head: ExprId, tail: ExprId) -> ExprId {
        let &Expr::Repeat { body, min, max } = self.get(head) else { return head };
        if max == Some(min) || !self.arena.swallows(head, tail) {
            return head;
        }
        self.repeat(body, min, Some(min))
    }

    /// `[ab] X & [bc] Y` is `b (X & Y)`: returns the bytes with which all parts begin, in sequence, and leaves the
    /// rests in `parts`. A string with a pattern and a length is a quote and the two rests, which are often one
    /// repetition.
    pub(crate) fn common_heads(&self, parts: &mut [ExprId]) -> Vec<ByteSet> {
        let mut heads = Vec::new();
        loop {
            let mut common = ByteSet::ALL;
            for &part in parts.iter() {
                let &Expr::Concat { head, .. } = self.get(part) else { return heads };
                let Expr::Bytes(set) = self.get(head) else { return heads };
                common = common.intersect(set);
            }
            heads.push(common);
            for part in parts.iter_mut() {
                let &Expr::Concat { tail, .. } = self.get(*part) else { unreachable!("each was found to be one") };
                *part = tail;
            }
        }
    }

    /// Joins `C{2,9} X & D{4,} X` to `C{4,9} X`, if every `C` is one byte that is one `D` and begins no other `D`;
    /// returns whether any parts were joined. A pattern beside a maximum length is the usual case.
    pub(crate) fn intersect_counters(&mut self, parts: &mut Vec<ExprId>) -> bool {
        for narrow in 0..parts.len() {
            let Some(few) = self.counted(parts[narrow]) else { continue };
            let Expr::Bytes(set) = *self.get(few.body) else { continue };
            if self.gives_up(parts.len()) {
                return false;
            }
            for wide in 0..parts.len() {
                if wide == narrow {
                    continue;
                }
                let Some(many) = self.counted(parts[wide]) else { continue };
                if few.tail != many.tail || !self.counts_bytes(many.body, &set, many.tail) {
                    continue;
                }
                let min = few.interval.0.max(many.interval.0);
                let max = match (few.interval.1, many.interval.1) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                };
                let repeat = self.repeat(few.body, min, max);
                parts[narrow] = self.concat(repeat, few.tail);
                parts.swap_remove(wide);
                return true;
            }
        }
        false
    }

    fn counted(&self, part: ExprId) -> Option<Counted> {
        let (head, tail) = match *self.get(part) {
            Expr::Concat { head, tail } => (head, tail),
            _ => (part, ExprId::EMPTY),
        };
        match *self.get(head) {
            Expr::Repeat { body, min, max } => Some(Counted { body, interval: (min, max), tail }),
            _ => None,
        }
    }

    /// Whether each of these bytes is a match of an expression, and neither another match nor what follows begins with
    /// one of them.
    fn counts_bytes(&self, expr: ExprId, set: &ByteSet, tail: ExprId) -> bool {
        let apart = |set: &ByteSet, other| self.first_bytes(other).is_some_and(|first| first.intersect(set).is_empty());
        let all_of_set = self.arena.single_bytes(expr).is_some_and(|all| set.intersect(&all.complement()).is_empty());
        let parts = match self.get(expr) {
            Expr::Or(parts) => parts,
            _ => std::slice::from_ref(&expr),
        };
        let mut others = parts.iter().filter(|&&part| !matches!(self.get(part), Expr::Bytes(_)));
        let ended = tail == ExprId::EMPTY || self.first_bytes(expr).is_some_and(|first| apart(&first, tail));
        all_of_set && ended && others.all(|&other| apart(set, other))
    }

    /// The bytes with which the matches of an expression begin, if they are easy to find and no match is empty.
    fn first_bytes(&self, expr: ExprId) -> Option<ByteSet> {
        let first = |expr: ExprId| match *self.get(expr) {
            Expr::Concat { head, .. } => head,
            _ => expr,
        };
        let bytes = |expr: ExprId| match self.get(first(expr)) {
            Expr::Bytes(set) => Some(*set),
            _ => None,
        };
        match self.get(first(expr)) {
            Expr::Or(parts) => parts.iter().try_fold(ByteSet::EMPTY, |all, &part| Some(all.union(&bytes(part)?))),
            _ => bytes(expr),
        }
    }
}

impl Arena {
    /// Whether a tail begins with an unbounded repetition that includes every round of the head: then more rounds of
    /// the head give no more matches. The rounds of the head must be single bytes. A part whose own maximum count makes
    /// no difference for this reason counts as unbounded: `[ab] [a-c]*` is `[ab]+ [a-c]*`.
    pub(crate) fn swallows(&self, head: ExprId, tail: ExprId) -> bool {
        let &Expr::Repeat { mut body, .. } = self.get(head) else { return false };
        let mut rest = tail;
        loop {
            let Expr::Bytes(set) = self.get(body) else { return false };
            let (next, after) = match *self.get(rest) {
                Expr::Concat { head, tail } => (head, tail),
                _ => (rest, ExprId::EMPTY),
            };
            let (other, max) = match *self.get(next) {
                Expr::Repeat { body, max, .. } => (body, max),
                _ => (next, Some(1)),
            };
            let holds = |all: ByteSet| set.intersect(&all.complement()).is_empty();
            if !self.single_bytes(other).is_some_and(holds) {
                return false;
            }
            if max.is_none() {
                return true;
            }
            (body, rest) = (other, after);
        }
    }

    /// The bytes that an expression with alternatives matches as single bytes.
    pub(crate) fn single_bytes(&self, expr: ExprId) -> Option<ByteSet> {
        match self.get(expr) {
            Expr::Bytes(set) => Some(*set),
            Expr::Or(parts) => parts.iter().find_map(|&part| match self.get(part) {
                Expr::Bytes(set) => Some(*set),
                _ => None,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn class(set: &mut ExprSet, low: u8, high: u8) -> ExprId {
        set.bytes(ByteSet::range(low, high))
    }

    /// A simplified character of a JSON string: `[ -!#-~]`, `\.` or two bytes.
    fn character(set: &mut ExprSet) -> ExprId {
        let plain =
            set.bytes(ByteSet::range(b' ', b'~').intersect(&ByteSet::of(b'"').union(&ByteSet::of(b'\\')).complement()));
        let (backslash, any) = (set.literal(b"\\"), class(set, b' ', b'~'));
        let escaped = set.concat(backslash, any);
        let (lead, follow) = (class(set, 0xC2, 0xDF), class(set, 0x80, 0xBF));
        let two = set.concat(lead, follow);
        set.or(&[plain, escaped, two])
    }

    #[test]
    fn what_the_tail_reads_as_well_is_swallowed() {
        let mut set = ExprSet::new();
        let (digit, any, quote) = (class(&mut set, b'0', b'9'), character(&mut set), set.literal(b"\""));
        let (digits, rest) = (set.repeat(digit, 1, None), set.repeat(any, 0, None));
        let found = set.concat_all(&[digits, rest, quote]);
        assert_eq!(found, set.concat_all(&[digit, rest, quote]));
        let some = set.repeat(digit, 0, Some(7));
        assert_eq!(set.concat_all(&[some, rest]), rest);
        let backslash = set.literal(b"\\");
        let other = set.repeat(backslash, 0, None);
        assert_ne!(set.concat(other, rest), rest, "a backslash alone is no character");
        let [one, two, three] = [b'a', b'b', b'c'].map(|last| class(&mut set, b'a', last));
        let (ones, threes) = (set.repeat(one, 0, Some(5)), set.repeat(three, 0, None));
        let tail = set.concat(two, threes);
        assert_eq!(set.concat(ones, tail), tail, "with what follows, one of the second is as good as many");
        let few = set.repeat(any, 0, Some(9));
        assert_ne!(set.concat(some, few), few, "nine more characters are not sixteen");
    }

    #[test]
    fn repetitions_side_by_side_are_one() {
        let mut set = ExprSet::new();
        let (x, y, word) = (class(&mut set, b'a', b'b'), class(&mut set, b'a', b'c'), set.literal(b"ab"));
        for body in [x, word] {
            let (star, plus) = (set.repeat(body, 0, None), set.repeat(body, 1, None));
            let (two, some) = (set.repeat(body, 2, Some(2)), set.repeat(body, 1, Some(3)));
            assert_eq!(set.concat(star, star), star);
            assert_eq!(set.concat(plus, plus), set.repeat(body, 2, None));
            assert_eq!(set.concat(two, star), set.repeat(body, 2, None));
            assert_eq!(set.concat_all(&[some, two, some]), set.repeat(body, 4, Some(8)));
            let rest = set.literal(b"-");
            let (joined, tail) = (set.repeat(body, 3, Some(5)), set.concat(two, rest));
            assert_eq!(set.concat(some, tail), set.concat(joined, rest));
        }
        let (star, plus, all) = (set.repeat(x, 0, None), set.repeat(x, 1, None), set.repeat(y, 0, None));
        assert_eq!(set.concat(x, star), plus);
        assert_eq!(set.concat(plus, x), set.repeat(x, 2, None));
        let twice = set.concat(x, x);
        assert_eq!(set.concat(star, twice), set.repeat(x, 2, None));
        let three = set.repeat(x, 3, Some(3));
        assert_eq!(set.concat_all(&[star, twice, x, all]), set.concat(three, all));
        let most = set.repeat(x, u32::MAX, Some(u32::MAX));
        let more = set.concat(most, three);
        assert!(matches!(set.get(more), Expr::Concat { .. }), "counts are not added past what they can say");
    }

    proptest! {
        /// However a concatenation is built, the result is the same, unless a part is swallowed: after `[ab]`,
        /// `[ab]{1,2} [a-c]*` may become both `[ab] [ab] [a-c]*` and `[ab]{2} [a-c]*`.
        #[test]
        fn concatenations_are_associative(
            parts in prop::collection::vec((0usize..5, 0u32..4, 0u32..4), 1..8),
            at: prop::sample::Index,
        ) {
            let mut set = ExprSet::new();
            let (a, other) = (class(&mut set, b'a', b'a'), class(&mut set, b'b', b'c'));
            let (word, reverse) = (set.literal(b"ab"), set.literal(b"ba"));
            let (words, maybe) = (set.or(&[word, reverse]), set.repeat(a, 0, Some(3)));
            let bodies = [a, other, word, words, maybe];
            let parts: Vec<ExprId> = parts
                .iter()
                .map(|&(body, min, more)| match more {
                    3 => set.repeat(bodies[body], min, None),
                    more => set.repeat(bodies[body], min, Some(min + more)),
                })
                .collect();
            let whole = set.concat_all(&parts);
            let from_left = parts.iter().fold(ExprId::EMPTY, |before, &part| set.concat(before, part));
            prop_assert_eq!(from_left, whole);
            let (one, other) = parts.split_at(at.index(parts.len()));
            let (one, other) = (set.concat_all(one), set.concat_all(other));
            prop_assert_eq!(set.concat(one, other), whole);
            let copy = ExprSet::new().import(&set, whole);
            let mut again = ExprSet::new();
            prop_assert_eq!(copy, again.import(&set, whole));
            prop_assert_eq!(set.clone().import(&again, copy), whole);
        }
    }

    #[test]
    fn bytes_that_all_parts_begin_with_come_first() {
        let mut set = ExprSet::new();
        let (one, other) = (set.literal(b"abcd"), class(&mut set, b'a', b'c'));
        let tail = set.literal(b"b");
        let more = set.repeat(ExprId::ANY_BYTE, 3, Some(9));
        let other = set.concat_all(&[other, tail, more]);
        let (before, rest) = (set.literal(b"ab"), set.literal(b"cd"));
        let left = set.and(&[rest, more]);
        assert_eq!(set.and(&[one, other]), set.concat(before, left));
        let (one, apart) = (set.literal(b"abcde"), set.literal(b"xbcde"));
        let rest = set.literal(b"cde");
        let left = set.and(&[rest, more]);
        assert_eq!(set.and(&[one, other]), set.concat(before, left));
        assert_eq!(set.and(&[apart, other]), ExprId::NOTHING);
    }

    #[test]
    fn a_pattern_and_a_length_are_one_repetition() {
        let mut set = ExprSet::new();
        let (digit, any, quote) = (class(&mut set, b'0', b'9'), character(&mut set), set.literal(b"\""));
        let pattern = set.repeat(digit, 1, None);
        let pattern = set.concat(pattern, quote);
        let length = set.repeat(any, 0, Some(7));
        let length = set.concat(length, quote);
        let both = set.repeat(digit, 1, Some(7));
        assert_eq!(set.and(&[pattern, length]), set.concat(both, quote));
        // A digit may also be the beginning of what follows, so the length cannot be moved to the digits.
        let tail = set.concat(digit, quote);
        let (digits, length) = (set.repeat(digit, 1, None), set.repeat(any, 0, Some(7)));
        let (pattern, length) = (set.concat(digits, tail), set.concat(length, tail));
        let both = set.and(&[pattern, length]);
        assert!(matches!(set.get(both), Expr::And(_)));
    }
}
