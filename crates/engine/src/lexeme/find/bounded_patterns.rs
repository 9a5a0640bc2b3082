//! Texts of a minimum and maximum length that also match a pattern: the mask is that of the pattern without the tokens
//! that are too long, or that end too early.
//!
//! A pattern with a `maxLength` is an intersection, and every character leads to a new one with a smaller count. A walk
//! through the vocabulary would meet a new intersection at every node and have to decide whether it matches anything.
//! But usually the pattern can be completed within a few bytes from anywhere, so only the tokens that come near the
//! bound need to be examined. For several limits of length, see [`limits`](super::limits).
//!
//! The mask is derived from that of the pattern alone if this reads the same characters. Otherwise it is derived from that
//! of the intersection without the lengths, for instance if the pattern only says what must not occur. A minimum length is
//! left out as well if every completion can be made longer by any number of characters: then it only decides which tokens
//! may end the text.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet, StateId, farthest, nearest};
use stencilm_support::{FEW, LOOKED_AT, LimitExceeded};

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::find::char_runs::{CharactersLeft, ClassRuns, Run};
use crate::lexeme::find::finder::{Finder, Found, Larger, Next, Unfinished};
use crate::lexeme::find::unbounded_runs::RunsOf;
use crate::lexeme::mask::{CHARACTERS_AFTER, LexemeMask};
use crate::vocabulary::token_set;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;

/// A run of characters with a minimum or maximum length that also matches another expression.
pub(crate) struct Bounded {
    run: Run,
    /// The maximum length; `u32::MAX` where there is none.
    max: u32,
    /// A larger language, with the byte that ends the run: the other expression, or the intersection of it with the run
    /// without its maximum length or both lengths.
    pub(crate) other: ExprId,
    /// Up to this number of characters, the text can always be completed.
    certain: u32,
    /// The greatest number of characters that begin in one token.
    longest: u32,
}

/// Finds the mask of a pattern with a minimum or maximum length from the mask of the pattern.
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
    /// The larger language from whose mask that of a bounded pattern is made. `None` where the residual is no bounded
    /// pattern, or where many tokens come near the bound.
    pub(crate) fn mask_of_bounded(
        &mut self,
        vocabulary: &Tokens,
        residual: ExprId,
    ) -> Result<Option<Bounded>, LimitExceeded> {
        let Some(Parts { run, other, without_maximum, of_any_length }) = self.parts_of(residual) else {
            return Ok(None);
        };
        let &Expr::Bytes(end) = self.deriver.exprs.get(run.tail) else { return Ok(None) };
        let max = run.max.unwrap_or(u32::MAX);
        let characters = self.dfa(&[run.character])?;
        let exprs = &self.deriver.exprs;
        // The match ends with a byte after the run, so a match of more than one byte has a character.
        let is_long_enough = run.min == 0 || (run.min == 1 && exprs.shortest_at_least(other) > 1);
        let most = self.completions.most(exprs, other)?;
        let is_of_characters = |this: &mut LexemeCache, expr| -> Result<bool, LimitExceeded> {
            Ok(RunsOf::new(this, characters, run.character).then_a_byte(expr)? == Some(end))
        };
        let reads_characters = is_of_characters(self, other)?;
        let (other, certain) = if is_long_enough && most != u32::MAX && reads_characters {
            // There are at most as many characters as bytes, and the last byte is not a character. So after at most
            // `certain` characters there is room to complete the text.
            (other, max.saturating_add(1).saturating_sub(most))
        } else {
            let mut found = None;
            let of_any_length = if reads_characters { other } else { of_any_length };
            for larger in [of_any_length, without_maximum] {
                if !self.is_simpler(larger, residual) || !is_of_characters(self, larger)? {
                    continue;
                }
                let Some(left) = self.characters_left(larger, characters)? else { continue };
                if larger == without_maximum || left.is_extensible {
                    found = Some((larger, max.saturating_sub(left.most)));
                    break;
                }
            }
            let Some(found) = found else { return Ok(None) };
            found
        };
        let Some(runs) = self.runs(vocabulary, run.character, end, true)? else { return Ok(None) };
        let Some(longest) = runs.longest() else { return Ok(None) };
        let few = runs.beginning(certain, max).len() <= LOOKED_AT;
        Ok(few.then_some(Bounded { run, max, other, certain, longest }))
    }

    /// How the beginnings of a match can be completed, for an expression that reads whole characters and a byte after
    /// them; `None` where it takes too long to find out.
    fn characters_left(&mut self, expr: ExprId, characters: DfaId) -> Result<Option<CharactersLeft>, LimitExceeded> {
        if let Some(&known) = self.characters_left.get(&(expr, characters)) {
            return Ok(known);
        }
        // What is left of a language differs after nearly every text.
        if self.deriver.exprs.has_language(expr) {
            return Ok(None);
        }
        // A place is what is left of the expression, with the state within a character.
        let start = (expr, StateId::START);
        let mut numbers = FxHashMap::from_iter([(start, 0)]);
        let mut places = vec![start];
        // For each place, the places that lead to it, each with the number of characters that this begins.
        let mut before: Vec<Vec<(usize, u32)>> = vec![Vec::new()];
        let mut bytes_within = FxHashMap::default();
        let mut at = 0;
        while at < places.len() && places.len() <= MAX_PLACES {
            let (expr, character) = places[at];
            let within: &Vec<(StateId, ByteSet)> = match bytes_within.entry(character) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.bytes_within(characters, character)?),
            };
            for &(bytes, rest) in self.deriver.derivatives(expr)?.iter().filter(|&&(_, rest)| rest != ExprId::NOTHING) {
                for &(next, _) in within.iter().filter(|(_, set)| !set.intersect(&bytes).is_empty()) {
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
        let left = match at == places.len() {
            true => {
                let nearest = nearest(&before, (0..places.len()).filter(is_end));
                let is_between = |at: usize| places[at].1 == StateId::START;
                let fixed = not_extensible(&before, &nearest, is_between);
                let most = farthest(&before, &nearest).into_iter().zip(fixed);
                most.map(|(most, fixed)| Some(CharactersLeft { most: most?, is_extensible: !fixed })).collect()
            }
            false => vec![None; places.len()],
        };
        for ((expr, character), left) in places.into_iter().zip(&left) {
            if character == StateId::START {
                self.characters_left.insert((expr, characters), *left);
            }
        }
        Ok(left[0])
    }

    /// The bytes that may come at a state within a character, by the state that they lead to.
    fn bytes_within(&mut self, characters: DfaId, at: StateId) -> Result<Vec<(StateId, ByteSet)>, LimitExceeded> {
        let mut states: Vec<(StateId, ByteSet)> = Vec::new();
        for byte in ByteSet::ALL.iter() {
            let (next, is_whole) = self.step(characters, at, byte)?;
            let next = if is_whole { StateId::START } else { next };
            match states.iter_mut().find(|(known, _)| *known == next) {
                Some((_, bytes)) => bytes.insert(byte),
                None => states.push((next, ByteSet::of(byte))),
            }
        }
        Ok(states)
    }

    /// The mask of a bounded pattern from the mask of the pattern; `None` where that is not enough to tell.
    pub(crate) fn finish_bounded(
        &mut self,
        vocabulary: &Tokens,
        bounded: &Bounded,
        larger: &Arc<LexemeMask>,
    ) -> Result<Option<Arc<LexemeMask>>, LimitExceeded> {
        let &Bounded { ref run, max, other, certain, longest } = bounded;
        if run.min == 0 && certain >= longest + CHARACTERS_AFTER {
            return Ok(Some(larger.clone()));
        }
        if larger.crossings.is_none() || !larger.unkept.is_empty() {
            return Ok(None);
        }
        let (characters, whole) = (self.dfa(&[run.character])?, self.dfa(&[other])?);
        let trie = vocabulary.trie();
        let runs = self.known_runs(run.character);
        let is_here = |&node: &u32| {
            let count = runs.stop_at(trie.byte(node as usize), node);
            count.is_some_and(|count| (run.min..=max).contains(&count))
        };
        let not_here: Vec<u32> = larger.ends.iter().copied().filter(|node| !is_here(node)).collect();
        let mut allowed = runs.within(Some(max));
        let (crossings, ends) = larger.ends_but_for(vocabulary, &not_here);
        for token in ends.iter().filter_map(|&node| trie.entry_at(node as usize)) {
            token_set::set(allowed.words_mut(), token);
        }
        let mut inside = larger.to_set(vocabulary.vocab_size());
        inside.words_mut().iter_mut().zip(allowed.words()).for_each(|(word, allowed)| *word &= allowed);
        self.drop_dead_ends(vocabulary, run, certain, (characters, whole), &mut inside)?;
        Ok(Some(Arc::new(LexemeMask::of_set(inside, crossings, Box::default()).with_ends(ends))))
    }

    /// Removes the tokens in which more than `certain` characters begin and after which too little room is left to
    /// complete the text.
    fn drop_dead_ends(
        &mut self,
        vocabulary: &Tokens,
        run: &Run,
        certain: u32,
        (characters, whole): (DfaId, DfaId),
        inside: &mut TokenSet,
    ) -> Result<(), LimitExceeded> {
        let max = run.max.unwrap_or(u32::MAX);
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
                    let left = exprs.repeat(run.character, run.min.saturating_sub(begun), Some(max - begun));
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

    /// The residual in a state of an automaton of a single expression.
    fn only_residual(&self, dfa: DfaId, state: StateId) -> ExprId {
        self.residuals(dfa, state).first().map_or(ExprId::NOTHING, |&(_, residual)| residual)
    }

    /// Runs that were already computed.
    fn known_runs(&mut self, character: ExprId) -> &mut ClassRuns {
        self.classes.get_mut(&character).and_then(Option::as_mut).expect("the runs were just found")
    }

    /// The parts of `A & B`, each with a byte after it, or of `(A & B)"`, where one is a run of characters with a minimum or
    /// maximum length.
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
            // The other expression may begin with such a run as well.
            let is_ended = |tail| matches!(exprs.get(tail), Expr::Bytes(_));
            run.filter(|run| (run.max.is_some() || run.min > 1) && is_plain(run.character) && is_ended(run.tail))
        };
        let (at, run) = parts.iter().enumerate().find_map(|(at, &part)| Some((at, run_of(part)?)))?;
        let mut parts = parts;
        parts.remove(at);
        let ended = |exprs: &mut ExprSet, expr| tail.map_or(expr, |tail| exprs.concat(expr, tail));
        let other_parts = exprs.and(&parts);
        let other = ended(exprs, other_parts);
        let mut at_least = |min| {
            let mut run_of_any_length = exprs.repeat(run.character, min, None);
            if tail.is_none() {
                run_of_any_length = exprs.concat(run_of_any_length, run.tail);
            }
            let both = exprs.and(&[other_parts, run_of_any_length]);
            ended(exprs, both)
        };
        let (of_any_length, without_maximum) = (at_least(0), at_least(run.min));
        Some(Parts { run, other, without_maximum, of_any_length })
    }
}

/// A run of characters with a maximum length, and the other expression that must match.
struct Parts {
    run: Run,
    /// The other expression, with the byte after it.
    other: ExprId,
    /// Its intersection with the run without its maximum length, with the byte after it.
    without_maximum: ExprId,
    /// The same without its minimum length, too.
    of_any_length: ExprId,
}

/// For each place, whether it leads to one between two characters after which a character must lead farther from the end.
/// Otherwise the place can be completed by every number of characters from the least one: first characters that lead no
/// farther from the end, as many as there are too many, and then the fewest possible.
fn not_extensible(
    before: &[Vec<(usize, u32)>],
    nearest: &[(usize, u32)],
    is_between: impl Fn(usize) -> bool,
) -> Vec<bool> {
    let mut distances = vec![None; before.len()];
    nearest.iter().for_each(|&(place, distance)| distances[place] = Some(distance));
    let mut is_extensible = vec![false; before.len()];
    for &(to, distance) in nearest {
        for &(from, _) in before[to].iter().filter(|&&(from, begun)| begun == 1 && distances[from] >= Some(distance)) {
            is_extensible[from] = true;
        }
    }
    let mut open: Vec<usize> = nearest.iter().map(|&(place, _)| place).collect();
    open.retain(|&place| is_between(place) && !is_extensible[place]);
    let mut leads_to_one = vec![false; before.len()];
    while let Some(place) = open.pop() {
        if !std::mem::replace(&mut leads_to_one[place], true) {
            open.extend(before[place].iter().map(|&(from, _)| from));
        }
    }
    leads_to_one
}

/// The greatest number of places that are searched for the number of characters left.
const MAX_PLACES: usize = 16 * FEW;

/// If a bounded text agrees with the unbounded one for fewer bytes than this, it is walked by itself, since the two
/// differ almost everywhere.
pub(crate) const MIN_AGREEMENT: u32 = 4;
