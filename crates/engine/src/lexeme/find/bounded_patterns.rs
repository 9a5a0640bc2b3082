//! Texts of a maximum length that also match something else: the mask of that, without the tokens that are too long.
//!
//! A pattern with a `maxLength` is an intersection, and every character leaves another one, with a new count. A walk of
//! the vocabulary from one of them meets a new one at each of its places, and has to find out whether it matches
//! anything. But the pattern can often end within a few bytes of wherever it is. Then only tokens that come near the
//! bound are examined. For several limits of length, see [`limits`](super::limits).
//!
//! What else must match is taken without the run, if it reads the same characters; else together with the run without its
//! greatest length, as for a pattern that only says what must not occur.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::{Expr, ExprId, ExprSet, StateId};
use stencilm_support::{FEW, LOOKED_AT, LimitExceeded};

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::find::char_runs::{ClassRuns, Run};
use crate::lexeme::find::finder::{Finder, Found, Larger, Next, Unfinished};
use crate::lexeme::find::unbounded_runs::RunsOf;
use crate::lexeme::mask::{CHARACTERS_AFTER, LexemeMask};
use crate::vocabulary::token_set;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;

/// A run of characters with a greatest length that also matches something else.
pub(crate) struct Bounded {
    /// The run.
    run: Run,
    /// The greatest length.
    max: u32,
    /// A larger language, with that byte: what else must match, or also the run without its greatest length.
    pub(crate) other: ExprId,
    /// With so many characters, or fewer, it can always still be completed.
    certain: u32,
    /// The most characters that a token begins.
    longest: u32,
}

/// Finds the mask of a pattern with a greatest length from that of the pattern.
pub(crate) struct BoundedPatterns;

impl Finder for BoundedPatterns {
    fn find(&self, lexemes: &mut LexemeCache, vocabulary: &Tokens, this: Unfinished) -> Found {
        let bounded = lexemes.mask_of_bounded(vocabulary, this.residual)?;
        let bounded = bounded.filter(|bounded| lexemes.is_simpler(bounded.other, this.residual));
        Ok(bounded.map(|bounded| {
            Next::After(Larger::new(bounded.other, move |lexemes, vocabulary, _, larger| {
                lexemes.finish_bounded(vocabulary, &bounded, larger)
            }))
        }))
    }
}

impl LexemeCache {
    /// The larger language from whose mask that of at most so many characters that also match something else is made;
    /// `None` where it is nothing of the kind, or where many tokens come near the bound.
    pub(crate) fn mask_of_bounded(
        &mut self,
        vocabulary: &Tokens,
        residual: ExprId,
    ) -> Result<Option<Bounded>, LimitExceeded> {
        let Some(Parts { run, other, unlimited }) = self.parts_of(residual) else { return Ok(None) };
        let (Some(max), &Expr::Bytes(end)) = (run.max, self.deriver.exprs.get(run.tail)) else { return Ok(None) };
        let characters = self.dfa(&[run.character])?;
        let exprs = &self.deriver.exprs;
        // With a byte that ends it, what is not empty has a character.
        let is_long_enough = run.min == 0 || (run.min == 1 && exprs.shortest_at_least(other) > 1);
        let most = self.completions.most(exprs, other)?;
        let is_of_characters = |this: &mut LexemeCache, expr| -> Result<bool, LimitExceeded> {
            Ok(RunsOf::new(this, characters, run.character).then_a_byte(expr)? == Some(end))
        };
        let (other, certain) = if is_long_enough && most != u32::MAX && is_of_characters(self, other)? {
            // No more characters come than bytes, and the last of these is none: tokens that begin no more can be completed.
            (other, max.saturating_add(1).saturating_sub(most))
        } else {
            if !self.is_simpler(unlimited, residual) || !is_of_characters(self, unlimited)? {
                return Ok(None);
            }
            let Some(most) = self.most_characters(unlimited, characters)? else { return Ok(None) };
            (unlimited, max.saturating_sub(most))
        };
        let Some(runs) = self.runs(vocabulary, run.character, end, true)? else { return Ok(None) };
        let Some(longest) = runs.longest() else { return Ok(None) };
        let few = runs.beginning(certain, max).len() <= LOOKED_AT;
        Ok(few.then_some(Bounded { run, max, other, certain, longest }))
    }

    /// So many more characters, or fewer, complete whatever can become a match of an expression, which reads whole characters
    /// and a byte after them; `None` where it takes too long to find out.
    fn most_characters(&mut self, expr: ExprId, characters: DfaId) -> Result<Option<u32>, LimitExceeded> {
        if let Some(&known) = self.most_characters.get(&(expr, characters)) {
            return Ok(known);
        }
        // What is left of the expression, and of the character that was begun.
        let start = (expr, StateId::START);
        let mut numbers = FxHashMap::from_iter([(start, 0)]);
        let mut places = vec![start];
        // By place those that lead to it, and how many characters that begins.
        let mut before: Vec<Vec<(usize, u32)>> = vec![Vec::new()];
        let mut at = 0;
        while at < places.len() && places.len() <= 2 * FEW {
            let (expr, character) = places[at];
            for &(bytes, rest) in self.deriver.derivatives(expr)?.iter() {
                let mut seen = Vec::new();
                for byte in bytes.iter().filter(|_| rest != ExprId::NOTHING) {
                    let (next, is_whole) = self.step(characters, character, byte)?;
                    let next = if is_whole { StateId::START } else { next };
                    if seen.contains(&next) {
                        continue;
                    }
                    seen.push(next);
                    let begun = u32::from(character == StateId::START && next != StateId::DEAD);
                    let to = *numbers.entry((rest, next)).or_insert(places.len());
                    if to == places.len() {
                        places.push((rest, next));
                        before.push(Vec::new());
                    }
                    before[to].push((at, begun));
                }
            }
            at += 1;
        }
        let is_end = |&at: &usize| self.deriver.exprs.is_nullable(places[at].0);
        let most = match at == places.len() {
            true => farthest(&before, (0..places.len()).filter(is_end)),
            false => vec![None; places.len()],
        };
        for ((expr, character), most) in places.into_iter().zip(&most) {
            if character == StateId::START {
                self.most_characters.insert((expr, characters), *most);
            }
        }
        Ok(most[0])
    }

    /// The mask of at most so many characters that also match something else, from the mask of that; `None` where that does
    /// not say enough.
    pub(crate) fn finish_bounded(
        &mut self,
        vocabulary: &Tokens,
        bounded: &Bounded,
        larger: &Arc<LexemeMask>,
    ) -> Result<Option<Arc<LexemeMask>>, LimitExceeded> {
        let &Bounded { ref run, max, other, certain, longest } = bounded;
        if certain >= longest + CHARACTERS_AFTER {
            return Ok(Some(larger.clone()));
        }
        let Some(crossings) = larger.crossings.as_ref().filter(|_| larger.unkept.is_empty()) else { return Ok(None) };
        let (characters, whole) = (self.dfa(&[run.character])?, self.dfa(&[other])?);
        let trie = vocabulary.trie();
        let runs = self.known_runs(run.character);
        let (ends, not_here): (Vec<u32>, Vec<u32>) = larger
            .ends
            .iter()
            .partition(|&&node| runs.stop_at(trie.byte(node as usize), node).is_some_and(|count| count <= max));
        let mut allowed = runs.within(Some(max));
        for token in ends.iter().filter_map(|&node| trie.entry_at(node as usize)) {
            token_set::set(allowed.words_mut(), token);
        }
        let mut inside = larger.to_set(vocabulary.vocab_size());
        inside.words_mut().iter_mut().zip(allowed.words()).for_each(|(word, allowed)| *word &= allowed);
        self.drop_dead_ends(vocabulary, run, certain, (characters, whole), &mut inside)?;
        let crossings = match not_here.is_empty() {
            true => crossings.clone(),
            false => Arc::new(crossings.iter().map(|crossings| crossings.without(vocabulary, &not_here)).collect()),
        };
        Ok(Some(Arc::new(LexemeMask::of_set(inside, Some(crossings), Box::default()).with_ends(ends))))
    }

    /// Takes out the tokens that begin more than `certain` characters and leave too little room for what must follow.
    fn drop_dead_ends(
        &mut self,
        vocabulary: &Tokens,
        run: &Run,
        certain: u32,
        (characters, whole): (DfaId, DfaId),
        inside: &mut TokenSet,
    ) -> Result<(), LimitExceeded> {
        let max = run.max.expect("a run has a greatest length");
        let near: Vec<u32> = self.known_runs(run.character).beginning(certain, max).to_vec();
        let mut known: FxHashMap<(u32, StateId, StateId), bool> = FxHashMap::default();
        for token in near {
            if !inside.contains(token) {
                continue;
            }
            let bytes = vocabulary.token_bytes(token).expect("a run of characters spells bytes");
            let (mut character, mut state, mut begun) = (StateId::START, StateId::START, 0);
            for &byte in bytes {
                begun += u32::from(character == StateId::START);
                let (next, complete) = self.step(characters, character, byte)?;
                character = if complete { StateId::START } else { next };
                state = self.step(whole, state, byte)?.0;
            }
            let live = match known.get(&(begun, character, state)) {
                Some(&live) => live,
                None => {
                    let begun_character = match character {
                        StateId::START => ExprId::EMPTY,
                        _ => self.only_residual(characters, character),
                    };
                    let rest = self.only_residual(whole, state);
                    let exprs = &mut self.deriver.exprs;
                    let left = exprs.repeat(run.character, 0, Some(max - begun));
                    let room = exprs.concat_all(&[begun_character, left, run.tail]);
                    let both = exprs.and(&[room, rest]);
                    let live = self.deriver.is_live(both)?;
                    known.insert((begun, character, state), live);
                    live
                }
            };
            if !live {
                token_set::clear(inside.words_mut(), token);
            }
        }
        Ok(())
    }

    /// What an automaton of one expression has left in a state.
    fn only_residual(&self, dfa: DfaId, state: StateId) -> ExprId {
        self.residuals(dfa, state).first().map_or(ExprId::NOTHING, |&(_, residual)| residual)
    }

    /// Runs that were found before.
    fn known_runs(&mut self, character: ExprId) -> &mut ClassRuns {
        self.classes.get_mut(&character).and_then(Option::as_mut).expect("the runs were just found")
    }

    /// The parts of `A & B`, each with a byte after, or of `(A & B)"`, where one is a run of characters with a greatest length.
    fn parts_of(&mut self, residual: ExprId) -> Option<Parts> {
        let exprs = &mut self.deriver.exprs;
        let (parts, tail) = match *exprs.get(residual) {
            Expr::And(ref parts) => (parts.to_vec(), None),
            Expr::Concat { head, tail } => match exprs.get(head) {
                Expr::And(parts) => (parts.to_vec(), Some(tail)),
                _ => return None,
            },
            _ => return None,
        };
        let run_of = |part: ExprId| {
            let run = match tail {
                None => Run::of(exprs, part),
                Some(tail) => match *exprs.get(part) {
                    Expr::Repeat { body: character, min, max } => Some(Run { character, min, max, tail }),
                    _ => None,
                },
            };
            let is_plain = |character| !exprs.is_nullable(character) && !exprs.has_boolean(character);
            // What else must match may begin with such a run, too.
            let is_ended = |tail| matches!(exprs.get(tail), Expr::Bytes(_));
            run.filter(|run| run.max.is_some() && is_plain(run.character) && is_ended(run.tail))
        };
        let (at, run) = parts.iter().enumerate().find_map(|(at, &part)| Some((at, run_of(part)?)))?;
        let mut parts = parts;
        parts.remove(at);
        let ended = |exprs: &mut ExprSet, expr| tail.map_or(expr, |tail| exprs.concat(expr, tail));
        let other = exprs.and(&parts);
        let other = ended(exprs, other);
        let mut any_length = exprs.repeat(run.character, run.min, None);
        if tail.is_none() {
            any_length = exprs.concat(any_length, run.tail);
        }
        parts.push(any_length);
        let unlimited = exprs.and(&parts);
        Some(Parts { run, other, unlimited: ended(exprs, unlimited) })
    }
}

/// By place how far the places that it leads to are from an end at most, itself among them; `None` for those that lead to no
/// end. The edges lead backwards, and each is 0 or 1 long.
fn farthest(before: &[Vec<(usize, u32)>], ends: impl Iterator<Item = usize>) -> Vec<Option<u32>> {
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
    // The places are found from the nearest to the farthest one.
    let mut farthest = vec![None; before.len()];
    while let Some((place, distance)) = found.pop() {
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

/// A run of characters with a greatest length, and what else must match.
struct Parts {
    run: Run,
    /// What else must match, with the byte after it.
    other: ExprId,
    /// The same, and the run without its greatest length.
    unlimited: ExprId,
}

/// What agrees with a text without limits for fewer bytes than this is walked on its own: it differs from that nearly everywhere.
pub(crate) const MIN_AGREEMENT: u32 = 4;
