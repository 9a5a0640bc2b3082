//! Whether an expression matches anything: a search over its derivatives, nearest first.
//!
//! One idea: what a long search visits is of little use elsewhere, so such a search has a set of expressions of its
//! own, and only its answer, alive or dead, is kept.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
use stencilm_support::{LimitExceeded, Map};

use crate::derivative::deriver::{Aside, Deriver};
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

/// A search of at most this many expressions does not use [`Needs`](crate::expr::required_bytes::Needs).
const SHORT_SEARCH: usize = 32;
/// A search of more expressions than this first asks whether anything would match without the large counts, and then
/// continues in a separate set.
const LONG_SEARCH: usize = 256;
/// The greatest number of expressions in the search that answers this question.
const MAX_LOOSE: usize = 10_000;
/// The greatest depth to which [`Deriver::effort`] looks.
const MAX_EFFORT_LEVEL: u32 = 4;

/// The answer of a search.
pub(super) enum Found {
    /// Nothing matches.
    Dead,
    /// These bytes begin a match.
    Live(Vec<u8>),
}

impl Deriver {
    /// Whether the expression matches some string.
    ///
    /// Without intersections and complements the normal form answers. With them, the derivatives are searched for a
    /// matching one, first those with the shortest way to go by a lower bound. A breadth-first search would try all
    /// prefixes of a long string; this one mostly spells a match at once.
    ///
    /// # Errors
    /// [`LimitExceeded`] when the search is too long.
    pub fn is_live(&mut self, id: ExprId) -> Result<bool, LimitExceeded> {
        if !self.exprs.has_boolean(id) {
            return Ok(id != ExprId::NOTHING);
        }
        if let Some(&known) = self.live.get(&id) {
            return Ok(known);
        }
        // A language decides by what it has read, while trying a text would make an expression for each of its bytes.
        let known = match self.decided_by_language(id)? {
            None => self.has_witness(id)?.then_some(true),
            known => known,
        };
        if let Some(known) = known {
            self.live.insert(id, known);
            return Ok(known);
        }
        if let Some(found) = self.search(id, LONG_SEARCH)? {
            return Ok(matches!(found, Found::Live(_)));
        }
        if self.is_loosely_dead(id)? {
            self.live.insert(id, false);
            return Ok(false);
        }
        let found = self.search_aside(id, usize::MAX)?;
        Ok(found.expect("a search without a bound of its own ends with an answer"))
    }

    /// Whether a short search shows that the expression matches nothing.
    ///
    /// # Errors
    /// [`LimitExceeded`] where the thread has to stop, or no more expressions may be made.
    pub(crate) fn is_soon_dead(&mut self, id: ExprId) -> Result<bool, LimitExceeded> {
        if !self.exprs.has_boolean(id) {
            return Ok(id == ExprId::NOTHING);
        }
        match self.live.get(&id) {
            Some(&known) => Ok(!known),
            None => Ok(matches!(self.search(id, LONG_SEARCH)?, Some(Found::Dead))),
        }
    }

    /// Whether an expression with an intersection or a complement matches some string; `None` after `most` expressions.
    pub(super) fn search(&mut self, id: ExprId, most: usize) -> Result<Option<Found>, LimitExceeded> {
        // Each with the expression that it was derived from, and the byte.
        let mut seen: FxHashMap<ExprId, (ExprId, u8)> = FxHashMap::default();
        let mut queue = BinaryHeap::from([Reverse((self.exprs.shortest_at_least(id), 0, id))]);
        seen.insert(id, (id, 0));
        let mut found = None;
        while let Some(Reverse((.., next))) = queue.pop() {
            if self.is_obviously_live(next) {
                found = Some(next);
                break;
            }
            if seen.len() > most {
                return Ok(None);
            }
            self.limits.check_search(seen.len())?;
            for &(set, rest) in self.derivatives(next)?.iter() {
                let known = self.live.get(&rest);
                if known == Some(&true) {
                    found = Some(next);
                    break;
                }
                if rest == ExprId::NOTHING || known == Some(&false) || seen.contains_key(&rest) {
                    continue;
                }
                seen.insert(rest, (next, set.first().expect("a part of a partition is never empty")));
                // Most searches end soon. In a long one it pays to decide what need not be searched, and in which
                // order.
                let shortest = self.exprs.shortest_at_least(rest);
                if seen.len() <= SHORT_SEARCH {
                    queue.push(Reverse((shortest, 0, rest)));
                } else if !self.needs.get_or_insert_default().contradict(&self.exprs, rest) {
                    queue.push(Reverse((shortest, self.effort(rest, 0), rest)));
                }
            }
            if found.is_some() {
                break;
            }
        }
        let Some(mut live) = found else {
            // There is no match, so every visited expression is dead.
            self.live.extend(seen.into_keys().map(|dead| (dead, false)));
            return Ok(Some(Found::Dead));
        };
        // All expressions on the path to a match are live, and likely to be asked about next.
        let mut text = Vec::new();
        while live != id {
            self.live.insert(live, true);
            let (from, byte) = seen[&live];
            text.push(byte);
            live = from;
        }
        self.live.insert(id, true);
        text.reverse();
        Ok(Some(Found::Live(text)))
    }

    /// The same search in a separate set of expressions. Of a dead end that takes long to find, only the answer is
    /// kept.
    fn search_aside(&mut self, id: ExprId, most: usize) -> Result<Option<bool>, LimitExceeded> {
        let limits = self.limits;
        let Aside { deriver, copies } = &mut **self.aside.get_or_insert_with(|| {
            Box::new(Aside { deriver: Deriver::over(ExprSet::new(), limits), copies: Map::default() })
        });
        let copy = deriver.exprs.import_once(&self.exprs, id, copies)?;
        let is_known_dead = copy == ExprId::NOTHING || deriver.live.get(&copy) == Some(&false);
        let found = if is_known_dead { Some(Found::Dead) } else { deriver.search(copy, most)? };
        let text = match found {
            None => return Ok(None),
            Some(Found::Dead) => {
                self.live.insert(id, false);
                return Ok(Some(false));
            }
            Some(Found::Live(text)) => text,
        };
        // All expressions on the path are live in this set, too; so a text along the path need not ask for each of
        // them.
        let mut live = id;
        self.live.insert(live, true);
        for byte in text {
            live = self.after(live, byte)?;
            self.live.insert(live, true);
        }
        Ok(Some(true))
    }

    /// Whether an expression certainly matches nothing, because even without its large counts nothing would match. So a
    /// contradiction that depends on no count is found once, and not once for every count: for example, after a space,
    /// four thousand characters that must not begin with a space.
    fn is_loosely_dead(&mut self, id: ExprId) -> Result<bool, LimitExceeded> {
        let loose = self.loosening.apply(&mut self.exprs, id);
        if loose == id || !self.exprs.has_boolean(loose) {
            return Ok(loose == ExprId::NOTHING);
        }
        let live = match self.live.get(&loose) {
            Some(&known) => Some(known),
            None => self.search_aside(loose, MAX_LOOSE)?,
        };
        Ok(live == Some(false))
    }

    /// How much is left to do in all parts of an intersection together. Of two residuals with equally short matches,
    /// the one in which more conditions are already met is nearer to a match. A text of sixty characters with six words
    /// in it is found in this way; by length alone, every prefix without the words would be tried until no room is
    /// left.
    fn effort(&self, id: ExprId, level: u32) -> u32 {
        match self.exprs.get(id) {
            Expr::And(parts) if level < MAX_EFFORT_LEVEL => {
                parts.iter().fold(0, |sum: u32, &part| sum.saturating_add(self.effort(part, level + 1)))
            }
            Expr::Or(parts) if level < MAX_EFFORT_LEVEL => {
                parts.iter().map(|&part| self.effort(part, level + 1)).min().unwrap_or(0)
            }
            &Expr::Concat { head, tail } if level < MAX_EFFORT_LEVEL => {
                self.effort(head, level + 1).saturating_add(self.exprs.shortest_at_least(tail))
            }
            _ => self.exprs.shortest_at_least(id),
        }
    }

    fn is_obviously_live(&self, id: ExprId) -> bool {
        self.exprs.is_nullable(id) || !self.exprs.has_boolean(id) || self.live.get(&id) == Some(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::{PatternOptions, Utf8, parse_pattern};

    fn both(deriver: &mut Deriver, patterns: [&str; 2]) -> ExprId {
        let parts = patterns.map(|pattern| {
            parse_pattern(&mut deriver.exprs, pattern, &PatternOptions::default(), &mut Utf8).expect(pattern)
        });
        deriver.exprs.and(&parts)
    }

    /// The tenth letter from the end is an `a` in one and a `b` in the other: all texts of ten letters must be
    /// distinguished.
    const CONTRADICTION: [&str; 2] = ["[ab]*a[ab]{9}", "[ab]*b[ab]{9}"];

    #[test]
    fn of_a_long_search_only_its_answer_stays() {
        let mut deriver = Deriver::new(Limits::default());
        let dead = both(&mut deriver, CONTRADICTION);
        deriver.begin();
        let before = deriver.memory_bytes();
        assert_eq!(deriver.is_live(dead), Ok(false));
        assert!(deriver.progress()[0] > 1 << 10, "it looks at every text of ten letters");
        let aside = deriver.end().expect("it is more than all else");
        assert!(aside.memory_bytes() > 4 * deriver.memory_bytes(), "{} bytes", deriver.memory_bytes());
        assert!(deriver.memory_bytes() < before + (1 << 20));
        // The answer is cached now.
        let progress = deriver.progress();
        assert_eq!(deriver.is_live(dead), Ok(false));
        assert_eq!(deriver.progress(), progress);
        assert!(deriver.end().is_none());
    }

    #[test]
    fn what_a_long_search_finds_is_live_step_by_step() {
        let mut deriver = Deriver::new(Limits::default());
        let live = both(&mut deriver, ["[ab]*a[ab]{9}c?", "[ab]*b[ab]{9}|(ab){8}[ab]*a[ab]{9}c"]);
        let Some(Found::Live(text)) = deriver.clone().search(live, usize::MAX).expect("short enough") else {
            panic!("it matches something");
        };
        assert_eq!(deriver.search_aside(live, usize::MAX), Ok(Some(true)));
        let mut left = live;
        for byte in text {
            assert_eq!(deriver.live.get(&left), Some(&true));
            left = deriver.after(left, byte).expect("small");
        }
        assert!(deriver.is_live(left).expect("small"));
    }
}
