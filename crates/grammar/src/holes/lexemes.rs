//! Regular parts against a text with holes: where a lexeme that ends at a place may begin, and what is left of one that the text
//! begins in the middle of.
//!
//! A lexeme is read from its end on, by the derivatives of its reversal; at a hole it takes any bytes. What is left where
//! the text begins, read forwards again, is the right quotient: the texts that the bytes behind them complete.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{ByteSet, Deriver, ExprId, ExprSet, LimitExceeded, Limits, Reversal, check_time, split};

use super::place::Place;
use super::template::Template;

/// Most pairs of a place and a residual that one lexeme is followed through forwards.
const MAX_FORWARD: usize = 10_000;
/// The same from its end on.
const MAX_PAIRS: usize = 2_000_000;

/// The expressions of one grammar and what was derived of them.
pub(super) struct Lexemes {
    pub deriver: Deriver,
    reversal: Reversal,
    last: FxHashMap<ExprId, ByteSet>,
    /// Those that could not be cut: whatever has a hole in one of them is in doubt.
    pub undecided: FxHashSet<ExprId>,
}

impl Lexemes {
    pub fn new(exprs: &ExprSet) -> Lexemes {
        let deriver = Deriver::over(exprs.clone(), Limits::default());
        let (reversal, last, undecided) = Default::default();
        Lexemes { deriver, reversal, last, undecided }
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        self.deriver.memory_bytes() + self.reversal.memory_bytes()
    }

    /// The bytes with which a match may end.
    pub fn last(&mut self, expr: ExprId) -> Result<ByteSet, LimitExceeded> {
        if let Some(&known) = self.last.get(&expr) {
            return Ok(known);
        }
        let reversed = self.reversal.of(&mut self.deriver.exprs, expr)?.expr;
        let derivatives = self.deriver.derivatives(reversed)?;
        let last = derivatives.iter().fold(ByteSet::EMPTY, |all, (set, _)| all.union(set));
        self.last.insert(expr, last);
        Ok(last)
    }

    /// Where a match that ends at a place may begin.
    pub fn starts(&mut self, expr: ExprId, template: &Template, end: u32) -> Result<Vec<Place>, LimitExceeded> {
        if expr == ExprId::EMPTY {
            return Ok(vec![Place::new(end)]);
        }
        if !template.is_hole(end) {
            let goes_on = match template.before(end) {
                Some(byte) => self.last(expr)?.contains(byte),
                None => false,
            };
            if !goes_on {
                return Ok(Vec::from_iter(self.deriver.exprs.is_nullable(expr).then(|| Place::new(end))));
            }
        }
        let reversed = self.reversal.of(&mut self.deriver.exprs, expr)?;
        let walked = self.walk(reversed.expr, template, end)?;
        let mut starts: Vec<u32> = Vec::new();
        for &(place, rest) in &walked {
            if self.deriver.exprs.is_nullable(rest) {
                starts.push(place);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        if reversed.is_exact {
            return Ok(starts.into_iter().map(Place::new).collect());
        }
        let is_undecided = self.undecided.contains(&expr);
        let mut found = Vec::new();
        for start in starts {
            match self.reads(expr, template, start, end)? {
                Some(true) if !(is_undecided && template.has_hole(start, end)) => found.push(Place::new(start)),
                Some(false) => {}
                _ => found.push(Place::new(start).doubted()),
            }
        }
        Ok(found)
    }

    /// As [`Lexemes::starts`] for the keys of an object that are not named: each start with whether there are holes on the way,
    /// and if so whether these give infinitely many texts for certain.
    pub fn key_starts(
        &mut self,
        expr: ExprId,
        template: &Template,
        end: u32,
    ) -> Result<Vec<(Place, bool)>, LimitExceeded> {
        let mut found = Vec::new();
        for start in self.starts(expr, template, end)? {
            let is_endless = template.has_hole(start.position(), end)
                && self.is_endless(expr, template, start.position(), end)?;
            found.push((start, is_endless));
        }
        Ok(found)
    }

    /// Whether infinitely many texts of an expression fit between two places, for certain: some residual at a hole leads to itself.
    fn is_endless(
        &mut self,
        expr: ExprId,
        template: &Template,
        start: u32,
        end: u32,
    ) -> Result<bool, LimitExceeded> {
        let reversed = self.reversal.of(&mut self.deriver.exprs, expr)?;
        if !reversed.is_exact {
            return Ok(false);
        }
        let first = (end, reversed.expr, false);
        let mut seen = FxHashSet::from_iter([first]);
        let mut work = vec![first];
        while let Some((place, rest, mut pumped)) = work.pop() {
            check_time()?;
            let derivatives = self.deriver.derivatives(rest)?;
            let mut next = Vec::new();
            if template.is_hole(place) {
                for &(_, after) in derivatives.iter() {
                    pumped |= after == rest;
                    next.push((place, after));
                }
            }
            if pumped && place == start && self.deriver.exprs.is_nullable(rest) {
                return Ok(true);
            }
            if let Some(byte) = template.before(place).filter(|_| place > start) {
                next.push((place - 1, self.deriver.after(rest, byte)?));
            }
            for (place, rest) in next {
                if rest != ExprId::NOTHING && seen.insert((place, rest, pumped)) {
                    work.push((place, rest, pumped));
                }
            }
        }
        Ok(false)
    }

    /// The texts, none of them empty, that the bytes up to a place behind the first complete to a match: an expression of
    /// [`Lexemes::deriver`]. `None` where that cannot be said.
    pub fn cut(&mut self, expr: ExprId, template: &Template, end: u32) -> Result<Option<ExprId>, LimitExceeded> {
        if !template.is_hole(end)
            && !template.before(end).is_some_and(|byte| self.last(expr).is_ok_and(|last| last.contains(byte)))
        {
            return Ok(Some(ExprId::NOTHING));
        }
        let reversed = self.reversal.of(&mut self.deriver.exprs, expr)?;
        let mut rests = Vec::new();
        for (place, rest) in self.walk(reversed.expr, template, end)? {
            if place == 0 && self.deriver.is_live(rest)? {
                rests.push(self.reversal.of(&mut self.deriver.exprs, rest)?.expr);
            }
        }
        let heads = self.deriver.exprs.or(&rests);
        let heads = self.without_empty(heads)?;
        if reversed.is_exact || heads == ExprId::NOTHING {
            return Ok(Some(heads));
        }
        let groups = match split(&mut self.deriver, heads, &[expr]) {
            Ok(groups) => groups,
            Err(limit @ (LimitExceeded::Time(_) | LimitExceeded::Cancelled | LimitExceeded::Interrupted)) => {
                return Err(limit);
            }
            Err(_) => return Ok(None),
        };
        let mut parts = Vec::new();
        for (group, left) in groups {
            match self.reads(left[0], template, 0, end)? {
                Some(true) => parts.push(group),
                Some(false) => {}
                None => return Ok(None),
            }
        }
        Ok(Some(self.deriver.exprs.or(&parts)))
    }

    /// Whether infinitely many texts of an expression go on behind each beginning of one: no residual is without another.
    pub fn never_ends(&mut self, expr: ExprId) -> Result<bool, LimitExceeded> {
        let mut seen = FxHashSet::from_iter([expr]);
        let mut work = vec![expr];
        while let Some(rest) = work.pop() {
            check_time()?;
            let mut goes_on = false;
            for &(_, after) in self.deriver.derivatives(rest)?.iter() {
                if self.deriver.is_live(after)? {
                    goes_on = true;
                    if seen.insert(after) {
                        work.push(after);
                    }
                }
            }
            if !goes_on || seen.len() > MAX_FORWARD {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same texts but for the empty one.
    fn without_empty(&mut self, expr: ExprId) -> Result<ExprId, LimitExceeded> {
        if !self.deriver.exprs.is_nullable(expr) {
            return Ok(expr);
        }
        let mut parts = Vec::new();
        for &(set, rest) in self.deriver.derivatives(expr)?.iter() {
            let byte = self.deriver.exprs.bytes(set);
            parts.push(self.deriver.exprs.concat(byte, rest));
        }
        Ok(self.deriver.exprs.or(&parts))
    }

    /// Every place that a reversed expression is followed to from its end, and what is left of it there.
    fn walk(&mut self, reversed: ExprId, template: &Template, end: u32) -> Result<Vec<(u32, ExprId)>, LimitExceeded> {
        let mut pairs = vec![(end, reversed)];
        // Without holes each place is met once.
        let mut seen: Option<FxHashSet<(u32, ExprId)>> = None;
        let mut next = 0;
        while let Some(&(place, rest)) = pairs.get(next) {
            next += 1;
            check_time()?;
            if pairs.len() > MAX_PAIRS {
                return Err(LimitExceeded::States(MAX_PAIRS));
            }
            if template.is_hole(place) {
                let seen = seen.get_or_insert_with(|| pairs.iter().copied().collect());
                for &(_, after) in self.deriver.derivatives(rest)?.iter() {
                    if self.deriver.is_live(after)? && seen.insert((place, after)) {
                        pairs.push((place, after));
                    }
                }
            }
            let Some(byte) = template.before(place) else { continue };
            let after = self.deriver.after(rest, byte)?;
            let pair = (place - 1, after);
            if after != ExprId::NOTHING && seen.as_mut().is_none_or(|seen| seen.insert(pair)) {
                pairs.push(pair);
            }
        }
        Ok(pairs)
    }

    /// Whether an expression matches what stands between two places; `None` where that takes too long to tell.
    fn reads(
        &mut self,
        expr: ExprId,
        template: &Template,
        start: u32,
        end: u32,
    ) -> Result<Option<bool>, LimitExceeded> {
        let mut seen = FxHashSet::from_iter([(start, expr)]);
        let mut work = vec![(start, expr)];
        while let Some((place, rest)) = work.pop() {
            check_time()?;
            if place == end && self.deriver.exprs.is_nullable(rest) {
                return Ok(Some(true));
            }
            if seen.len() > MAX_FORWARD {
                return Ok(None);
            }
            if template.is_hole(place) {
                for &(_, after) in self.deriver.derivatives(rest)?.iter() {
                    if after != ExprId::NOTHING && seen.insert((place, after)) {
                        work.push((place, after));
                    }
                }
            }
            if let Some(byte) = template.after(place).filter(|_| place < end) {
                let after = self.deriver.after(rest, byte)?;
                if after != ExprId::NOTHING && seen.insert((place + 1, after)) {
                    work.push((place + 1, after));
                }
            }
        }
        Ok(Some(false))
    }
}
