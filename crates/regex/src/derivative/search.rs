//! Whether an expression matches anything: a search over its derivatives, nearest first.
//!
//! One idea: what a long search visits is of little use elsewhere, so such a search has a set of expressions of its
//! own, and only its answer, alive or dead, is kept.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
use stencilm_support::{LimitExceeded, Map};

use crate::derivative::deriver::{Aside, Deriver};
use crate::expr::clamp::Relaxed;
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
        if let Some(known) = self.known_at_a_glance(id)? {
            return Ok(known);
        }
        if let Some(known) = self.known_without_limits(id)? {
            self.live.insert(id, known);
            return Ok(known.is_some());
        }
        self.is_found_live(id)
    }

    /// Whether an expression with an intersection or a complement is known to be live or dead without a search.
    fn known_at_a_glance(&mut self, id: ExprId) -> Result<Option<bool>, LimitExceeded> {
        if let Some(known) = self.live.get(&id) {
            return Ok(Some(known.is_some()));
        }
        // A language decides by what it has read, while trying a text would make an expression for each of its bytes.
        let known = match self.decided_by_language(id)? {
            Some(live) => Some(live.then_some(u32::MAX)),
            None => self.witness_length(id)?.map(Some),
        };
        self.live.extend(known.map(|known| (id, known)));
        Ok(known.map(|known| known.is_some()))
    }

    /// The answer of a search.
    fn is_found_live(&mut self, id: ExprId) -> Result<bool, LimitExceeded> {
        if let Some(found) = self.search(id, LONG_SEARCH)? {
            return Ok(matches!(found, Found::Live(_)));
        }
        if self.is_loosely_dead(id)? {
            self.live.insert(id, None);
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
            Some(known) => Ok(known.is_none()),
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
            if let Some(length) = self.obvious_length(next) {
                found = Some((next, length));
                break;
            }
            if seen.len() > most {
                return Ok(None);
            }
            self.limits.check_search(seen.len())?;
            for &(set, rest) in self.derivatives(next)?.iter() {
                let known = self.live.get(&rest);
                if let Some(Some(length)) = known {
                    found = Some((next, length.saturating_add(1)));
                    break;
                }
                if rest == ExprId::NOTHING || known == Some(&None) || seen.contains_key(&rest) {
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
        let Some((mut live, mut length)) = found else {
            // There is no match, so every visited expression is dead.
            self.live.extend(seen.into_keys().map(|dead| (dead, None)));
            return Ok(Some(Found::Dead));
        };
        // All expressions on the path to a match are live, and likely to be asked about next.
        let mut text = Vec::new();
        while live != id {
            self.live.insert(live, Some(length));
            let (from, byte) = seen[&live];
            text.push(byte);
            (live, length) = (from, length.saturating_add(1));
        }
        self.live.insert(id, Some(length));
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
        let is_known_dead = copy == ExprId::NOTHING || deriver.live.get(&copy) == Some(&None);
        let found = if is_known_dead { Some(Found::Dead) } else { deriver.search(copy, most)? };
        let text = match found {
            None => return Ok(None),
            Some(Found::Dead) => {
                self.live.insert(id, None);
                return Ok(Some(false));
            }
            Some(Found::Live(text)) => text,
        };
        let length = deriver.live.get(&copy).copied().flatten().unwrap_or(u32::MAX);
        // All expressions on the path are live in this set, too; so a text along the path need not ask for each of
        // them.
        let mut live = id;
        self.live.insert(live, Some(length));
        for (read, byte) in (1..).zip(text) {
            live = self.after(live, byte)?;
            self.live.insert(live, Some(if length == u32::MAX { length } else { length - read }));
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
            Some(known) => Some(known.is_some()),
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

    /// A number of bytes within which an expression has a match, where that needs no search; `u32::MAX` where only its
    /// existence is known.
    fn obvious_length(&self, id: ExprId) -> Option<u32> {
        if self.exprs.is_nullable(id) {
            return Some(0);
        }
        if !self.exprs.has_boolean(id) {
            return Some(self.known_length(id).unwrap_or(u32::MAX));
        }
        self.live.get(&id).copied().flatten()
    }

    /// What the same intersection without maximum counts tells: if nothing matches it, nothing matches with them, and a
    /// match too short for them to matter is a match with them. So there is one search for all counts. `None` where it
    /// does not tell.
    fn known_without_limits(&mut self, id: ExprId) -> Result<Option<Option<u32>>, LimitExceeded> {
        let (first, tail) = match *self.exprs.get(id) {
            Expr::Concat { head, tail } => (head, Some(tail)),
            _ => (id, None),
        };
        let Expr::And(parts) = self.exprs.get(first) else { return Ok(None) };
        let parts = parts.clone();
        let relaxed: Vec<Relaxed> = parts.iter().map(|&part| self.relaxed(part)).collect();
        let agreement = relaxed.iter().map(|part| part.agreement).min().unwrap_or(u32::MAX);
        let parts: Vec<ExprId> = relaxed.into_iter().map(|part| part.expr).collect();
        let larger = self.exprs.and(&parts);
        let larger = tail.map_or(larger, |tail| self.exprs.concat(larger, tail));
        if agreement == u32::MAX || self.exprs.shortest_at_least(larger) > agreement {
            return Ok(None);
        }
        let live = match self.exprs.has_boolean(larger) {
            false => larger != ExprId::NOTHING,
            true => match self.known_at_a_glance(larger)? {
                Some(known) => known,
                // With the counts there may be far less to search, so this must not be long.
                None => match self.search(larger, LONG_SEARCH)? {
                    Some(found) => matches!(found, Found::Live(_)),
                    None => return Ok(None),
                },
            },
        };
        if !live {
            return Ok(Some(None));
        }
        let length = self.obvious_length(larger).filter(|&length| length <= agreement);
        Ok(length.map(Some))
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
            assert!(deriver.live[&left].is_some());
            left = deriver.after(left, byte).expect("small");
        }
        assert!(deriver.is_live(left).expect("small"));
    }

    proptest::proptest! {
        /// What is said without maximum counts, or by a text that is at hand, is what a search says; and there is a match
        /// as short as is remembered.
        #[test]
        fn counts_do_not_change_the_answer(
            patterns in proptest::collection::vec(proptest::sample::select(vec![
                "[ab]*a[ab]{3}", "(ab|c)*", ".{0,3}", ".{2,5}", "(a{2,4}b){0,3}", "[^a]{3,}", ".*c.*", "(?:..){1,4}", "a*",
                "(?:(?!ab).)*", "(?:a|bc){4,9}", "b.{0,2}b",
            ]), 2..4),
            text in "[abc]{0,4}",
        ) {
            let mut deriver = Deriver::new(Limits::default());
            let options = PatternOptions { anchoring: crate::Anchoring::Whole, ..PatternOptions::default() };
            let parts: Vec<ExprId> = patterns
                .iter()
                .map(|pattern| parse_pattern(&mut deriver.exprs, pattern, &options, &mut Utf8).unwrap())
                .collect();
            let mut left = deriver.exprs.and(&parts);
            for byte in text.bytes() {
                left = deriver.after(left, byte).unwrap();
                let live = deriver.is_live(left).unwrap();
                let mut other = Deriver::over(deriver.exprs.clone(), Limits::default());
                if other.exprs.has_boolean(left) {
                    proptest::prop_assert_eq!(live, other.is_found_live(left).unwrap());
                }
                if let Some(&Some(length)) = deriver.live.get(&left) {
                    let shortest = crate::Shortest::new(&other, left, 1, 10_000).next(&mut other).unwrap();
                    let shortest = shortest.filter(|_| !other.exprs.is_nullable(left));
                    proptest::prop_assert!(shortest.map_or(0, |text| text.len()) <= length as usize);
                }
            }
        }
    }
}
