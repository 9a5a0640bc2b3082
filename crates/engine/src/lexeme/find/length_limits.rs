//! Texts within limits of length, of which there may be several: the row of the texts without the limits, but for tokens that are long.
//!
//! A host name has at most 253 characters, and each of its labels at most 63. That is an intersection in which every character
//! leaves another residual. But a beginning of a name is completed by a few bytes, so as long as no limit is as near as a
//! token is long, the limits do not matter: only longer tokens are read.

use std::sync::Arc;

use stencilm_regex::{Expr, ExprId, LimitExceeded, StateId};

use crate::lexeme::cache::LexemeCache;
use crate::lexeme::find::order::Start;
use crate::lexeme::find::unbounded_runs::RunsOf;
use crate::lexeme::mask::{CHARACTERS_BEHIND, Row};
use crate::vocabulary::tokens::Tokens;

/// Where more tokens and ends are longer, a walk is no dearer.
const MAX_LONGER: usize = 2_000;

/// Within so few bytes nearly every token comes near a limit.
const MIN_SURE: u32 = 8;

/// So many bytes may come behind the longest token, for those who look on behind tokens.
const BYTES_BEHIND: u32 = 4 * CHARACTERS_BEHIND;

/// So many automata of texts without limits are looked through for a state that is known.
const MAX_UNLIMITED: usize = 8;

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
        let most = self.completions.most(&self.deriver.exprs, without);
        // The last byte is no part of what the limits are of.
        let sure = agreement.saturating_add(1).saturating_sub(most);
        if most == u32::MAX || sure < MIN_SURE {
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
    pub(crate) fn start_unlimited(&mut self, expr: ExprId) -> Result<Start, LimitExceeded> {
        let known = self.unlimited.iter().rev().find_map(|&dfa| {
            let state = self.dfas[dfa.0 as usize].known_state(&[(0, expr)])?;
            Some(Start { dfa, state, one: true })
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let dfa = self.dfa(&[expr])?;
        if self.unlimited.len() == MAX_UNLIMITED {
            self.unlimited.remove(0);
        }
        self.unlimited.push(dfa);
        Ok(Start { dfa, state: StateId::START, one: true })
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
        let longer: Vec<u32> = longer.filter(|&token| larger.has(token)).take(MAX_LONGER + 1).collect();
        let sure = limited.sure as usize;
        let far: Vec<u32> = larger.ends.iter().copied().filter(|&node| trie.depth(node as usize) > sure).collect();
        if longer.len() + far.len() > MAX_LONGER {
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
    fn goes_on_within(&mut self, limited: &Limited, from: Start, bytes: &[u8]) -> Result<bool, LimitExceeded> {
        let mut state = from.state;
        for &byte in bytes {
            state = self.step(from.dfa, state, byte)?.0;
        }
        let Some(&(_, rest)) = self.residuals(from.dfa, state).first() else { return Ok(false) };
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
