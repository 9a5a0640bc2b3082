//! Texts of at most so many characters that match something else, too: the row of that, without the tokens that are too long.
//!
//! A pattern beside a `maxLength` is an intersection, and every character leaves another one, with a new count. A walk of the
//! vocabulary from one of them meets a new one at each of its places, and has to find out whether it matches anything. But
//! what the pattern begins it can often end within a few bytes. Then only tokens that come near the bound are looked at.
//!
//! There may be several limits of length: a host name has at most 253 characters, and each of its labels at most 63. As long as no
//! limit is as near as a token is long, the limits do not matter: only longer tokens are read.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::{Expr, ExprId, LimitExceeded, StateId};

use crate::bounded::LOOKED_AT;
use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::find::char_runs::{ClassRuns, Run};
use crate::lexeme::find::unbounded_runs::RunsOf;
use crate::lexeme::mask::{BYTES_BEHIND, CHARACTERS_BEHIND, Row};
use crate::vocabulary::token_set;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;

/// A run of characters with a greatest length that also matches something else.
pub(crate) struct Bounded {
    /// The run.
    run: Run,
    /// The greatest length.
    max: u32,
    /// What else must match, with that byte: a larger language.
    pub(crate) other: ExprId,
    /// With so many characters it can always still be completed.
    sure: u32,
    /// The most characters that a token begins.
    longest: u32,
}

impl LexemeCache {
    /// The larger language from whose row that of at most so many characters that also match something else is made;
    /// `None` where it is nothing of the kind, or where many tokens come near the bound.
    pub(crate) fn row_of_bounded(
        &mut self,
        vocabulary: &Tokens,
        residual: ExprId,
    ) -> Result<Option<Bounded>, LimitExceeded> {
        let Some((run, other)) = self.run_and_other(residual) else { return Ok(None) };
        let exprs = &self.deriver.exprs;
        let (Some(max), &Expr::Bytes(end)) = (run.max, exprs.get(run.tail)) else { return Ok(None) };
        // With a byte that ends it, what is not empty has a character.
        let is_long_enough = run.min == 0 || (run.min == 1 && exprs.shortest_at_least(other) > 1);
        let most = self.completions.most(exprs, other);
        if !is_long_enough || most == u32::MAX {
            return Ok(None);
        }
        let characters = self.dfa(&[run.character])?;
        if RunsOf::new(self, characters, run.character).then_a_byte(other)? != Some(end) {
            return Ok(None);
        }
        // No more characters come than bytes, and the last of these is none: tokens that begin no more can be completed.
        let sure = max.saturating_add(1).saturating_sub(most);
        let Some(runs) = self.runs(vocabulary, run.character, end, true)? else { return Ok(None) };
        let Some(longest) = runs.longest() else { return Ok(None) };
        let few = runs.beginning(sure, max).len() <= LOOKED_AT;
        Ok(few.then_some(Bounded { run, max, other, sure, longest }))
    }

    /// The row of at most so many characters that also match something else, from the row of that; `None` where that does
    /// not say enough.
    pub(crate) fn finish_bounded(
        &mut self,
        vocabulary: &Tokens,
        bounded: &Bounded,
        larger: &Arc<Row>,
    ) -> Result<Option<Arc<Row>>, LimitExceeded> {
        let &Bounded { ref run, max, other, sure, longest } = bounded;
        if sure >= longest + CHARACTERS_BEHIND {
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
        self.drop_dead_ends(vocabulary, run, sure, (characters, whole), &mut inside)?;
        let crossings = match not_here.is_empty() {
            true => crossings.clone(),
            false => Arc::new(crossings.iter().map(|crossings| crossings.without(vocabulary, &not_here)).collect()),
        };
        Ok(Some(Arc::new(Row::of_set(inside, Some(crossings), Box::default()).with_ends(ends))))
    }

    /// Takes out the tokens that begin more than `sure` characters and leave too little room for what must follow.
    fn drop_dead_ends(
        &mut self,
        vocabulary: &Tokens,
        run: &Run,
        sure: u32,
        (characters, whole): (DfaId, DfaId),
        inside: &mut TokenSet,
    ) -> Result<(), LimitExceeded> {
        let max = run.max.expect("a run has a greatest length");
        let near: Vec<u32> = self.known_runs(run.character).beginning(sure, max).to_vec();
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

    /// A run of characters with a greatest length, and what else must match: the parts of `A & B`, each with a byte behind,
    /// or of `(A & B)"`.
    fn run_and_other(&mut self, residual: ExprId) -> Option<(Run, ExprId)> {
        let exprs = &mut self.deriver.exprs;
        let (parts, tail) = match *exprs.get(residual) {
            Expr::And(ref parts) => (parts, None),
            Expr::Concat { head, tail } => match exprs.get(head) {
                Expr::And(parts) => (parts, Some(tail)),
                _ => return None,
            },
            _ => return None,
        };
        let &[one, another] = &**parts else { return None };
        let run_of = |part: ExprId| {
            let run = match tail {
                None => Run::of(exprs, part),
                Some(tail) => match *exprs.get(part) {
                    Expr::Repeat { body: character, min, max } => Some(Run { character, min, max, tail }),
                    _ => None,
                },
            };
            let is_plain = |character| !exprs.is_nullable(character) && !exprs.has_boolean(character);
            run.filter(|run| run.max.is_some() && is_plain(run.character))
        };
        let (run, other) = match run_of(one) {
            Some(run) => (run, another),
            None => (run_of(another)?, one),
        };
        let other = tail.map_or(other, |tail| exprs.concat(other, tail));
        Some((run, other))
    }
}

/// What agrees with a text without limits for fewer bytes than this is walked on its own: it differs from that nearly everywhere.
pub(crate) const MIN_AGREEMENT: u32 = 4;

/// An expression without its limits of length.
pub(crate) struct Limited {
    /// A larger language.
    pub(crate) without: ExprId,
    /// For so many bytes both read alike.
    sure: u32,
    limits: Vec<ExprId>,
    character: ExprId,
    /// The byte that ends all texts.
    end: ExprId,
}

impl LexemeCache {
    /// The larger language without limits of length; `None` where there are none, or where they are near.
    pub(crate) fn without_limits(&mut self, residual: ExprId) -> Result<Option<Limited>, LimitExceeded> {
        let exprs = &self.deriver.exprs;
        let Expr::Concat { head, tail } = *exprs.get(residual) else { return Ok(None) };
        let (Expr::And(parts), &Expr::Bytes(end)) = (exprs.get(head), exprs.get(tail)) else { return Ok(None) };
        let parts = parts.clone();
        let character = parts.iter().find_map(|&part| match *exprs.get(part) {
            Expr::Repeat { body, min: 0, max: Some(_) } => Some(body),
            _ => None,
        });
        let plain = |&character: &ExprId| !exprs.is_nullable(character) && !exprs.has_boolean(character);
        let Some(character) = character.filter(plain) else { return Ok(None) };
        let runs = self.deriver.exprs.repeat(character, 0, None);
        let (mut agreement, mut limits, mut others) = (u32::MAX, Vec::new(), Vec::new());
        for &part in &parts {
            match self.limit(part, runs)? {
                Some(limit) => {
                    agreement = agreement.min(limit);
                    limits.push(part);
                }
                None => others.push(part),
            }
        }
        let &[other] = &*others else { return Ok(None) };
        let without = self.deriver.exprs.concat(other, tail);
        // What completes a language that a program tells hangs on each of its bytes.
        if self.deriver.exprs.language_ways(without).is_some() {
            return Ok(None);
        }
        let most = self.completions.most(&self.deriver.exprs, without);
        // The last byte is no part of what the limits are of.
        let sure = agreement.saturating_add(1).saturating_sub(most);
        if most == u32::MAX || sure < MIN_AGREEMENT {
            return Ok(None);
        }
        // Every text is a run of characters, and every run of them is within the limits, but for its length.
        let characters = self.dfa(&[character])?;
        let ends = RunsOf::new(self, characters, character).then_a_byte(without)?;
        Ok((ends == Some(end)).then_some(Limited { without, sure, limits, character, end: tail }))
    }

    /// How many bytes are within a limit in any case, if an expression is one: without its greatest counts it matches
    /// all of the runs of characters that may come.
    fn limit(&mut self, part: ExprId, runs: ExprId) -> Result<Option<u32>, LimitExceeded> {
        let exprs = &mut self.deriver.exprs;
        if exprs.has_boolean(part) || exprs.agreement(part) == u32::MAX {
            return Ok(None);
        }
        let relaxed = self.relaxation.apply(exprs, part);
        let others = exprs.not(relaxed.expr);
        let others = exprs.and(&[runs, others]);
        Ok((!self.deriver.is_live(others)?).then_some(relaxed.agreement))
    }

    /// Where to start reading a text without limits: most texts have been met within the same ones.
    pub(crate) fn start_unlimited(&mut self, expr: ExprId) -> Result<(DfaId, StateId), LimitExceeded> {
        let known = self.unlimited.iter().find_map(|&dfa| {
            let state = self.dfas[dfa.0 as usize].known_state(&[(0, expr)])?;
            Some((dfa, state))
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let dfa = self.dfa(&[expr])?;
        self.unlimited.push(dfa);
        Ok((dfa, StateId::START))
    }

    /// The row of a residual from that without its limits; `None` where many tokens come near them.
    pub(crate) fn finish_limited(
        &mut self,
        vocabulary: &Tokens,
        limited: &Limited,
        larger: &Arc<Row>,
    ) -> Result<Option<Arc<Row>>, LimitExceeded> {
        let trie = vocabulary.trie();
        let horizon = u32::try_from(trie.max_depth()).unwrap_or(u32::MAX).saturating_add(BYTES_BEHIND);
        if limited.sure >= horizon {
            return Ok(Some(larger.clone()));
        }
        let Some(crossings) = larger.crossings.as_ref().filter(|_| larger.unkept.is_empty()) else { return Ok(None) };
        let longer = vocabulary.lengths().longer(limited.sure);
        let longer: Vec<u32> = longer.filter(|&token| larger.has(token)).take(LOOKED_AT + 1).collect();
        let sure = limited.sure as usize;
        let far: Vec<u32> = larger.ends.iter().copied().filter(|&node| trie.depth(node as usize) > sure).collect();
        // Where more come near the bound, a walk meets few states, because there is little room left.
        if longer.len() + far.len() > LOOKED_AT {
            return Ok(None);
        }
        let mut not_here = Vec::new();
        for node in far {
            if !self.are_within(limited, vocabulary.bytes_before(node))? {
                not_here.push(node);
            }
        }
        let from = self.start_unlimited(limited.without)?;
        let mut dead = Vec::new();
        for token in longer {
            let bytes = vocabulary.token_bytes(token).expect("a token of a row spells bytes");
            if !self.goes_on_within(limited, from, bytes)? {
                dead.push(token);
            }
        }
        let (ends, crossings) = match not_here.is_empty() {
            true => (larger.ends.clone(), crossings.clone()),
            false => (
                larger.ends.iter().copied().filter(|node| not_here.binary_search(node).is_err()).collect(),
                Arc::new(crossings.iter().map(|crossings| crossings.without(vocabulary, &not_here)).collect()),
            ),
        };
        Ok(Some(Arc::new(larger.without(vocabulary.vocab_size(), dead, crossings).with_ends(ends))))
    }

    /// Whether bytes are within all limits.
    fn are_within(&mut self, limited: &Limited, bytes: &[u8]) -> Result<bool, LimitExceeded> {
        for &limit in &limited.limits {
            let rest = self.rest(limit, bytes)?;
            if !self.deriver.exprs.is_nullable(rest) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether bytes that go on without the limits can be completed within them.
    fn goes_on_within(
        &mut self,
        limited: &Limited,
        (dfa, mut state): (DfaId, StateId),
        bytes: &[u8],
    ) -> Result<bool, LimitExceeded> {
        for &byte in bytes {
            state = self.step(dfa, state, byte)?.0;
        }
        let Some(&(_, rest)) = self.residuals(dfa, state).first() else { return Ok(false) };
        if rest == ExprId::EMPTY {
            return self.are_within(limited, &bytes[..bytes.len() - 1]);
        }
        let runs = self.deriver.exprs.repeat(limited.character, 0, None);
        let runs = self.rest(runs, bytes)?;
        let shortest = self.deriver.exprs.shortest_at_least(rest);
        let (mut has_room, mut all) = (true, vec![rest]);
        for &limit in &limited.limits {
            let limit = self.rest(limit, bytes)?;
            // The last byte is no part of what the limits are of.
            has_room &= self.limit(limit, runs)?.is_some_and(|room| room.saturating_add(1) >= shortest);
            all.push(self.deriver.exprs.concat(limit, limited.end));
        }
        if has_room {
            return Ok(true);
        }
        let all = self.deriver.exprs.and(&all);
        self.deriver.is_live(all)
    }

    /// What is left of an expression behind bytes.
    fn rest(&mut self, expr: ExprId, bytes: &[u8]) -> Result<ExprId, LimitExceeded> {
        let mut rest = expr;
        for &byte in bytes {
            rest = self.deriver.after(rest, byte)?;
        }
        Ok(rest)
    }
}
