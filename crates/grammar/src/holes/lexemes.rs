//! Regular parts against a text with holes: where a lexeme that ends at a place may begin, and what is left of one that
//! the text begins in the middle of.
//!
//! A lexeme is read from its end on, by the derivatives of its reversal; at a hole it takes any bytes. What is left
//! where the text begins, read forwards again, is the right quotient: the texts that the bytes after them complete.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{ByteSet, Deriver, ExprId, ExprSet, Limits, Reversal, Suffixes, split};
use stencilm_support::{LimitExceeded, check_time};

use super::place::Place;
use super::template::Template;

/// The greatest number of pairs of a place and a residual through which one lexeme is followed forwards.
const MAX_FORWARD: usize = 10_000;
/// The greatest number of residuals of one lexeme in a hole.
const MAX_REACHED: usize = 500_000;
/// A lexeme with more parts than this at its end is taken to end with any byte.
const MAX_LOOKED_AT: usize = 100_000;

/// A place that was reached from the end of a lexeme.
#[derive(Clone, Copy)]
struct Reached {
    place: u32,
    /// The residual there.
    rest: ExprId,
    /// The fewest bytes in holes on the path.
    filled: u32,
}

/// The residuals of an expression, each with the fewest bytes in a hole that lead to it.
type Rests = Arc<[(ExprId, u32)]>;

/// The residuals of an expression after any bytes, each with the fewest bytes that lead to it.
struct Filling {
    rests: Rests,
    /// The fewest bytes after which a match may end.
    shortest_end: Option<u32>,
}

/// What the holes in a key allow the key to be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum KeyHoles {
    /// No part of it is in a hole.
    None,
    /// A part is, and there may be only a few keys.
    Some,
    /// A part is, and there are infinitely many keys: some residual leads back to itself.
    Infinite,
}

/// The expressions of one grammar and their derivatives.
pub(super) struct Lexemes {
    pub deriver: Deriver,
    reversal: Reversal,
    fillings: FxHashMap<ExprId, Arc<Filling>>,
    before_fillings: FxHashMap<(ExprId, u8), Rests>,
    filling_bytes: usize,
    suffixes: Suffixes,
    last: FxHashMap<ExprId, ByteSet>,
    /// Expressions that could not be cut. Everything with a hole in one of them is undecided.
    pub undecided: FxHashSet<ExprId>,
}

impl Lexemes {
    pub fn new(exprs: &ExprSet) -> Lexemes {
        let deriver = Deriver::over(exprs.clone(), Limits::default());
        Lexemes {
            deriver,
            reversal: Reversal::default(),
            fillings: FxHashMap::default(),
            before_fillings: FxHashMap::default(),
            filling_bytes: 0,
            suffixes: Suffixes::default(),
            last: FxHashMap::default(),
            undecided: FxHashSet::default(),
        }
    }

    /// The approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let derived = self.deriver.memory_bytes() + self.reversal.memory_bytes();
        derived + self.suffixes.memory_bytes() + self.filling_bytes
    }

    /// The bytes that a match may end with; the set may be too large.
    pub fn last(&mut self, expr: ExprId) -> ByteSet {
        let exprs = &self.deriver.exprs;
        *self.last.entry(expr).or_insert_with(|| exprs.may_end_with(expr, MAX_LOOKED_AT).unwrap_or(ByteSet::ALL))
    }

    /// Where a match that ends at a place may begin.
    pub fn starts(&mut self, expr: ExprId, template: &Template, end: u32) -> Result<Vec<Place>, LimitExceeded> {
        if expr == ExprId::EMPTY {
            return Ok(vec![Place::new(end)]);
        }
        if !template.is_hole(end) {
            let goes_on = match template.before(end) {
                Some(byte) => self.last(expr).contains(byte),
                None => false,
            };
            if !goes_on {
                return Ok(Vec::from_iter(self.deriver.exprs.is_nullable(expr).then(|| Place::new(end))));
            }
        }
        let reversed = self.reversal.of(&mut self.deriver.exprs, expr)?;
        let starts = self.places(reversed.expr, template, end)?;
        if reversed.is_exact {
            return Ok(starts.into_iter().map(Place::new).collect());
        }
        let is_undecided = self.undecided.contains(&expr);
        let mut found = Vec::new();
        for start in starts {
            match self.reads(expr, template, start, end)? {
                Some(true) if !(is_undecided && template.has_hole(start, end)) => found.push(Place::new(start)),
                Some(false) => {}
                _ => found.push(Place::new(start).undecided()),
            }
        }
        Ok(found)
    }

    /// Where matches of a reversed expression, which is read backwards, may begin.
    fn places(&mut self, reversed: ExprId, template: &Template, end: u32) -> Result<Vec<u32>, LimitExceeded> {
        if let Some(places) = self.places_without_counts(reversed, template, end)? {
            return Ok(places);
        }
        let walked = self.walk(reversed, template, end)?;
        let starts = walked.into_iter().filter(|(_, rest)| self.deriver.exprs.is_nullable(*rest));
        let mut places: Vec<u32> = starts.map(|(place, _)| place).collect();
        places.reverse();
        Ok(places)
    }

    /// As [`Lexemes::places`], but reads the expression without its upper counts: with them, each count that remains in
    /// a hole would be a residual of its own, and without them there are few. `None` if the expression has none, or if
    /// they may make a difference: if some match is longer than the length up to which both expressions agree.
    fn places_without_counts(
        &mut self,
        reversed: ExprId,
        template: &Template,
        end: u32,
    ) -> Result<Option<Vec<u32>>, LimitExceeded> {
        if !template.has_hole(0, end) || !self.deriver.exprs.has_boolean(reversed) {
            return Ok(None);
        }
        let relaxed = self.deriver.relaxed(reversed);
        if relaxed.expr == reversed {
            return Ok(None);
        }
        let mut starts: FxHashMap<u32, u32> = FxHashMap::default();
        for Reached { place, rest, filled } in self.reached(relaxed.expr, template, end)? {
            if self.deriver.exprs.is_nullable(rest) {
                let shortest = starts.entry(place).or_insert(filled);
                *shortest = filled.min(*shortest);
            }
        }
        if starts.iter().any(|(place, filled)| (end - place).saturating_add(*filled) > relaxed.agreement) {
            return Ok(None);
        }
        let mut places: Vec<u32> = starts.into_keys().collect();
        places.sort_unstable();
        Ok(Some(places))
    }

    /// As [`Lexemes::starts`], for the keys of additional members: each start with what the holes allow the key to be.
    pub fn key_starts(
        &mut self,
        expr: ExprId,
        template: &Template,
        end: u32,
    ) -> Result<Vec<(Place, KeyHoles)>, LimitExceeded> {
        let mut found = Vec::new();
        for start in self.starts(expr, template, end)? {
            if !template.has_hole(start.position(), end) {
                found.push((start, KeyHoles::None));
                continue;
            }
            let kinds = self.key_holes(expr, template, start.position(), end)?;
            found.extend(kinds.into_iter().map(|kind| (start, kind)));
        }
        Ok(found)
    }

    /// What the holes between two places allow a key to be.
    fn key_holes(
        &mut self,
        expr: ExprId,
        template: &Template,
        start: u32,
        end: u32,
    ) -> Result<Vec<KeyHoles>, LimitExceeded> {
        let Some(rests) = self.key_rests(expr, template, start, end)? else { return Ok(vec![KeyHoles::Some]) };
        let exprs = &self.deriver.exprs;
        let mut kinds: Vec<KeyHoles> =
            rests.into_iter().filter(|&(rest, _)| exprs.is_nullable(rest)).map(|(_, kind)| kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        // Among keys with a part in a hole, infinitely many are as good as any.
        if kinds.contains(&KeyHoles::Infinite) {
            kinds.retain(|kind| *kind != KeyHoles::Some);
        }
        Ok(kinds)
    }

    /// What later holes allow a key to be that ends at a place and was begun before the first byte, however it was
    /// begun.
    pub fn cut_key_holes(&mut self, expr: ExprId, template: &Template, end: u32) -> Result<KeyHoles, LimitExceeded> {
        let rests = self.key_rests(expr, template, 0, end)?.unwrap_or_default();
        if !rests.is_empty() && rests.iter().all(|&(_, kind)| kind == KeyHoles::None) {
            return Ok(KeyHoles::None);
        }
        let infinite: FxHashSet<ExprId> =
            rests.iter().filter(|&&(_, kind)| kind == KeyHoles::Infinite).map(|&(rest, _)| rest).collect();
        let are_infinite = !rests.is_empty() && rests.iter().all(|(rest, _)| infinite.contains(rest));
        Ok(if are_infinite { KeyHoles::Infinite } else { KeyHoles::Some })
    }

    /// The residuals, read backwards, of a key that ends at one place before its part from another place on. Each comes
    /// with what the holes between the two allow the key to be. `None` if they cannot be found.
    fn key_rests(
        &mut self,
        expr: ExprId,
        template: &Template,
        start: u32,
        end: u32,
    ) -> Result<Option<Vec<(ExprId, KeyHoles)>>, LimitExceeded> {
        let reversed = self.reversal.of(&mut self.deriver.exprs, expr)?;
        let first = (end, reversed.expr, KeyHoles::None);
        let mut seen = FxHashSet::from_iter([first]);
        let mut work = vec![first];
        let mut rests: Vec<(ExprId, KeyHoles)> = Vec::new();
        while let Some((place, rest, mut kind)) = work.pop() {
            check_time()?;
            if seen.len() > MAX_FORWARD || !reversed.is_exact {
                return Ok(None);
            }
            let derivatives = self.deriver.derivatives(rest)?;
            let mut next = Vec::new();
            if template.is_hole(place) {
                if derivatives.iter().any(|&(_, after)| after == rest) {
                    // Also without what is read repeatedly in the hole: then the key is as before.
                    if kind == KeyHoles::None && place == start {
                        rests.push((rest, KeyHoles::None));
                    }
                    if let Some(byte) = template.before(place).filter(|_| place > start && kind != KeyHoles::Infinite) {
                        next.push((place - 1, self.deriver.after(rest, byte)?, kind));
                    }
                    kind = KeyHoles::Infinite;
                }
                next.extend(derivatives.iter().map(|&(_, after)| (place, after, kind.max(KeyHoles::Some))));
            }
            if place == start {
                rests.push((rest, kind));
            }
            if let Some(byte) = template.before(place).filter(|_| place > start) {
                next.push((place - 1, self.deriver.after(rest, byte)?, kind));
            }
            for state in next {
                if state.1 != ExprId::NOTHING && seen.insert(state) {
                    work.push(state);
                }
            }
        }
        Ok(Some(rests))
    }

    /// The texts, none of them empty, that the bytes up to a place after the first complete to a match, as an
    /// expression of [`Lexemes::deriver`]. `None` if they cannot be found.
    pub fn cut(&mut self, expr: ExprId, template: &Template, end: u32) -> Result<Option<ExprId>, LimitExceeded> {
        if !template.is_hole(end) && !template.before(end).is_some_and(|byte| self.last(expr).contains(byte)) {
            return Ok(Some(ExprId::NOTHING));
        }
        let reversed = self.reversal.of(&mut self.deriver.exprs, expr)?;
        if template.has_hole(0, end) && self.deriver.exprs.has_boolean(reversed.expr) {
            let relaxed = self.deriver.relaxed(reversed.expr).expr;
            if relaxed != reversed.expr
                && !self.reached(relaxed, template, end)?.iter().any(|reached| reached.place == 0)
            {
                return Ok(Some(ExprId::NOTHING));
            }
        }
        let rest = match self.walk(reversed.expr, template, end)?.last() {
            Some(&(0, rest)) if self.deriver.is_live(rest)? => rest,
            _ => return Ok(Some(ExprId::NOTHING)),
        };
        let heads = self.reversal.of(&mut self.deriver.exprs, rest)?.expr;
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

    /// Whether infinitely many texts of an expression continue each of its prefixes: every residual leads to another.
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

    /// The same texts without the empty one.
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

    /// Every place that is reached from the end of a reversed expression, with the residual there. In a hole that is
    /// the union of the residuals after any bytes, as one expression: there, different counts form an interval instead
    /// of one alternative each.
    fn walk(&mut self, reversed: ExprId, template: &Template, end: u32) -> Result<Vec<(u32, ExprId)>, LimitExceeded> {
        let (mut place, mut rest) = (end, reversed);
        let mut found = Vec::new();
        loop {
            check_time()?;
            if template.is_hole(place) {
                rest = self.suffixes.of(&mut self.deriver, rest)?;
            }
            found.push((place, rest));
            let Some(byte) = template.before(place) else { return Ok(found) };
            rest = self.suffixes.after(&mut self.deriver, rest, byte)?;
            if rest == ExprId::NOTHING {
                return Ok(found);
            }
            place -= 1;
        }
    }

    /// Every place that is reached from the end of a reversed expression, with each residual there, the shortest path
    /// first.
    fn reached(&mut self, reversed: ExprId, template: &Template, end: u32) -> Result<Vec<Reached>, LimitExceeded> {
        let mut found: Vec<Reached> = Vec::new();
        let mut seen: FxHashSet<(u32, ExprId)> = FxHashSet::default();
        let mut work = VecDeque::from([Reached { place: end, rest: reversed, filled: 0 }]);
        while let Some(reached @ Reached { place, rest, filled }) = work.pop_front() {
            check_time()?;
            if !seen.insert((place, rest)) {
                continue;
            }
            if found.len() > MAX_REACHED {
                return Err(LimitExceeded::States(MAX_REACHED));
            }
            if template.is_hole(place) {
                let filling = self.filling(rest)?;
                let end =
                    filling.shortest_end.map(|more| Reached { place, rest: ExprId::EMPTY, filled: filled + more });
                found.extend(end);
                if let Some(byte) = template.before(place) {
                    for &(after, more) in self.filled_before(rest, &filling, byte)?.iter() {
                        work.push_back(Reached { place: place - 1, rest: after, filled: filled + more });
                    }
                }
                continue;
            }
            found.push(reached);
            if let Some(byte) = template.before(place) {
                let after = self.deriver.after(rest, byte)?;
                if after != ExprId::NOTHING {
                    work.push_front(Reached { place: place - 1, rest: after, filled });
                }
            }
        }
        Ok(found)
    }

    /// The residuals of an expression after any bytes.
    fn filling(&mut self, rest: ExprId) -> Result<Arc<Filling>, LimitExceeded> {
        if let Some(known) = self.fillings.get(&rest) {
            return Ok(known.clone());
        }
        let mut seen = FxHashSet::from_iter([rest]);
        let mut rests = vec![(rest, 0)];
        let mut shortest_end = None;
        let mut next = 0;
        while let Some(&(rest, filled)) = rests.get(next) {
            next += 1;
            check_time()?;
            if rests.len() > MAX_REACHED {
                return Err(LimitExceeded::States(MAX_REACHED));
            }
            if self.deriver.exprs.is_nullable(rest) && shortest_end.is_none() {
                shortest_end = Some(filled);
            }
            for &(_, after) in self.deriver.derivatives(rest)?.iter() {
                if seen.insert(after) && self.deriver.is_live(after)? {
                    rests.push((after, filled + 1));
                }
            }
        }
        self.filling_bytes += rests.len() * size_of::<(ExprId, u32)>();
        let filling = Arc::new(Filling { rests: rests.into(), shortest_end });
        self.fillings.insert(rest, filling.clone());
        Ok(filling)
    }

    /// The residuals of an expression after any bytes with one byte before them.
    fn filled_before(&mut self, rest: ExprId, filling: &Filling, byte: u8) -> Result<Rests, LimitExceeded> {
        if let Some(known) = self.before_fillings.get(&(rest, byte)) {
            return Ok(known.clone());
        }
        let mut seen = FxHashSet::default();
        let mut found = Vec::new();
        for &(rest, filled) in filling.rests.iter() {
            check_time()?;
            let after = self.deriver.after(rest, byte)?;
            if after != ExprId::NOTHING && seen.insert(after) {
                found.push((after, filled));
            }
        }
        self.filling_bytes += found.len() * size_of::<(ExprId, u32)>();
        let found: Rests = found.into();
        self.before_fillings.insert((rest, byte), found.clone());
        Ok(found)
    }

    /// Whether an expression matches the text between two places; `None` if that takes too long to decide.
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
