//! How many bytes it can take to complete a prefix of a match.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use stencilm_support::{LimitExceeded, memory};

use crate::derivative::deriver::Deriver;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

/// For the expressions of one set, the greatest number of bytes that complete a prefix of a match.
#[derive(Clone, Default)]
pub struct Completions {
    known: FxHashMap<ExprId, u32>,
    /// What was found by a search, which looks at more than the parts of an expression.
    searched: FxHashMap<ExprId, u32>,
}

/// Most derivatives of an expression whose completions are searched.
const MAX_SEARCHED: usize = 128;

impl Completions {
    /// A number of bytes within which every prefix of a match, including the empty one, can be completed; `u32::MAX`
    /// where none is known, as for intersections and complements.
    ///
    /// # Errors
    /// As [`stencilm_support::check_time`].
    pub fn most(&mut self, exprs: &ExprSet, id: ExprId) -> Result<u32, LimitExceeded> {
        if exprs.has_boolean(id) {
            return Ok(u32::MAX);
        }
        // Without intersections and complements, the length of the shortest match is exact, and every part has a match.
        exprs.fold(id, &mut self.known, |expr, known| match expr {
            Expr::Nothing | Expr::And(_) | Expr::Not(_) | Expr::Number(_) => u32::MAX,
            Expr::Empty => 0,
            Expr::Bytes(_) => 1,
            Expr::Text(text) => text.len() as u32,
            Expr::Language(rest) => rest.most(),
            Expr::Concat { head, tail } => {
                let within_head = known[head].saturating_add(exprs.shortest_at_least(*tail));
                within_head.max(known[tail])
            }
            Expr::Or(parts) => parts.iter().map(|part| known[part]).max().unwrap_or(0),
            Expr::Repeat { body, min, .. } => {
                let rounds = exprs.shortest_at_least(*body).saturating_mul(min.saturating_sub(1));
                known[body].saturating_add(rounds)
            }
        })
    }

    /// The same for any expression, found by a search through its derivatives; `u32::MAX` if these are many.
    ///
    /// # Errors
    /// As [`Deriver::derivatives`].
    pub fn most_by_search(&mut self, deriver: &mut Deriver, id: ExprId) -> Result<u32, LimitExceeded> {
        if let Some(&known) = self.searched.get(&id) {
            return Ok(known);
        }
        let mut numbers = FxHashMap::from_iter([(id, 0)]);
        let mut states = vec![id];
        // For each state, the states that lead to it, each with one byte.
        let mut before: Vec<Vec<(usize, u32)>> = vec![Vec::new()];
        let mut at = 0;
        while at < states.len() && states.len() <= MAX_SEARCHED {
            for &(_, rest) in deriver.derivatives(states[at])?.iter() {
                let to = *numbers.entry(rest).or_insert(states.len());
                if to == states.len() {
                    states.push(rest);
                    before.push(Vec::new());
                }
                before[to].push((at, 1));
            }
            at += 1;
        }
        if at < states.len() {
            self.searched.insert(id, u32::MAX);
            return Ok(u32::MAX);
        }
        let is_match = |&at: &usize| deriver.exprs.is_nullable(states[at]);
        let most = farthest(&before, &nearest(&before, (0..states.len()).filter(is_match)));
        // What matches nothing has no prefix to be completed.
        self.searched.extend(states.into_iter().zip(most.iter().map(|most| most.unwrap_or(0))));
        Ok(self.searched[&id])
    }

    /// An upper bound on the length of the longest match; `u32::MAX` where none is known. Completing a prefix of a
    /// match takes no more than that, even for intersections. `known` is a memo for any expressions of the set.
    ///
    /// # Errors
    /// As [`stencilm_support::check_time`].
    pub fn longest(exprs: &ExprSet, id: ExprId, known: &mut FxHashMap<ExprId, u32>) -> Result<u32, LimitExceeded> {
        exprs.fold(id, known, |expr, known| match expr {
            Expr::Nothing | Expr::Empty => 0,
            Expr::Bytes(_) => 1,
            Expr::Text(text) => text.len() as u32,
            Expr::Language(rest) => rest.longest(),
            Expr::Number(_) | Expr::Not(_) => u32::MAX,
            Expr::Concat { head, tail } => known[head].saturating_add(known[tail]),
            Expr::Or(parts) => parts.iter().map(|part| known[part]).max().unwrap_or(0),
            Expr::And(parts) => parts.iter().map(|part| known[part]).min().unwrap_or(u32::MAX),
            Expr::Repeat { body, max, .. } => match known[body] {
                0 => 0,
                length => max.map_or(u32::MAX, |max| length.saturating_mul(max)),
            },
        })
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(ExprId, u32)>(self.known.capacity())
            + memory::of_table::<(ExprId, u32)>(self.searched.capacity())
    }
}

/// The places that lead to an end, each with its distance to the nearest one, the nearest place first. The edges are given
/// backwards, and each has length 0 or 1.
pub fn nearest(before: &[Vec<(usize, u32)>], ends: impl Iterator<Item = usize>) -> Vec<(usize, u32)> {
    let mut seen = vec![false; before.len()];
    let mut found: Vec<(usize, u32)> = Vec::new();
    let mut open: VecDeque<(usize, u32)> = ends.map(|end| (end, 0)).collect();
    while let Some((place, distance)) = open.pop_front() {
        if std::mem::replace(&mut seen[place], true) {
            continue;
        }
        found.push((place, distance));
        for &(from, length) in &before[place] {
            match length {
                0 => open.push_front((from, distance)),
                _ => open.push_back((from, distance + length)),
            }
        }
    }
    found
}

/// For each place, the greatest distance to an end of the places that it leads to, itself included; `None` if it leads to
/// no end. `nearest` is the result of [`nearest()`] for the same edges.
pub fn farthest(before: &[Vec<(usize, u32)>], nearest: &[(usize, u32)]) -> Vec<Option<u32>> {
    let mut farthest = vec![None; before.len()];
    for &(place, distance) in nearest.iter().rev() {
        let mut open = vec![place];
        while let Some(place) = open.pop() {
            if farthest[place].is_none() {
                farthest[place] = Some(distance);
                open.extend(before[place].iter().map(|&(from, _)| from));
            }
        }
    }
    farthest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Deriver, Limits, PatternOptions, Shortest, Utf8, parse_pattern};

    fn parsed(deriver: &mut Deriver, pattern: &str) -> ExprId {
        parse_pattern(&mut deriver.exprs, pattern, &PatternOptions::default(), &mut Utf8).unwrap()
    }

    #[test]
    fn what_is_begun_last_counts() {
        let most = |pattern: &str| {
            let mut deriver = Deriver::new(Limits::default());
            let expr = parsed(&mut deriver, pattern);
            Completions::default().most(&deriver.exprs, expr).unwrap()
        };
        assert_eq!([most("a*"), most("abc"), most("(abc)*"), most("(abc)*d")], [1, 3, 3, 4]);
        assert_eq!([most("(ab){3,5}"), most("a|bcd"), most("é{2}"), most("x?y")], [6, 3, 4, 2]);
        assert_eq!([most(""), most("(?!a)[a-b]")], [0, u32::MAX]);
    }

    #[test]
    fn the_longest_match_is_no_longer() {
        let longest = |pattern: &str| {
            let mut deriver = Deriver::new(Limits::default());
            let expr = parsed(&mut deriver, pattern);
            Completions::longest(&deriver.exprs, expr, &mut FxHashMap::default()).unwrap()
        };
        assert_eq!([longest("ab|c"), longest("(ab){2,5}"), longest("é?"), longest("")], [2, 10, 2, 0]);
        assert_eq!([longest("a*"), longest("a{2,}b"), longest("(?!a)[a-z]{1,4}")], [u32::MAX, u32::MAX, 4]);
    }

    proptest::proptest! {
        /// No residual needs more.
        #[test]
        fn every_beginning_is_completed_by_so_many_bytes(
            pattern in proptest::sample::select(vec![
                "(a|b)*abb", "(ab){2,4}c?", r"(\w+ ){0,3}\w+", "a{3}(b|cd){2}", "(a(b(cd)*)?)+", "[^a]{2,}a", "(ab|c)*(d|ee)",
                "(?!.*ab)[a-c]{2,5}", "(?=.*d)(?!.*ee)[a-e]{0,6}", "((?!cd)[a-e])*cde", "(?!a*$)a*b*",
            ]),
            text in "[abcde ]{0,6}",
        ) {
            let mut deriver = Deriver::new(Limits::default());
            let expr = parsed(&mut deriver, pattern);
            let mut completions = Completions::default();
            let most = completions.most(&deriver.exprs, expr).unwrap();
            let searched = completions.most_by_search(&mut deriver, expr).unwrap();
            // Intersections and complements are searched only.
            proptest::prop_assert!(searched <= most, "{}: {} by a search", pattern, searched);
            let mut rest = expr;
            for byte in text.bytes() {
                rest = deriver.after(rest, byte).unwrap();
            }
            if rest != ExprId::NOTHING && !deriver.exprs.is_nullable(rest) {
                let shortest = Shortest::new(&deriver, rest, 1, 10_000).next(&mut deriver).unwrap().unwrap();
                proptest::prop_assert!(shortest.len() as u32 <= searched, "{} behind {}", pattern, text);
                let rest_searched = completions.most_by_search(&mut deriver, rest).unwrap();
                proptest::prop_assert!(shortest.len() as u32 <= rest_searched, "{} behind {}", pattern, text);
            }
        }
    }
}
