//! Lexeme masks from those of larger languages that differ in few tokens.
//!
//! Three kinds of languages are near a larger one. `text & ~words` is nearly `text`, and a repetition with a maximum
//! count is nearly the same as without one, also in an intersection, if what the larger one begins can be completed within
//! the count: both are walked together, and no further than they may differ
//! ([`LexemeCache::mask_near`]). A text in which something must not occur returns to the same state after nearly every
//! character: only the other characters are looked up in the vocabulary ([`by_difference`](super::by_difference)). And
//! in the middle of what must not occur, nearly every character leads back to that state, so such a state is near it,
//! too.

use std::sync::Arc;

use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet, Relaxed, StateId};
use stencilm_support::{LimitExceeded, SEARCHED};

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::find::bounded_patterns::MIN_AGREEMENT;
use crate::lexeme::find::finder::{Finder, Found, Larger, Next, Start, Unfinished};
use crate::lexeme::mask::LexemeMask;
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

/// The greatest depth to which the parts of an expression are searched for complements.
const MAX_DEPTH: usize = 8;

/// Finds the mask of a language from that of a larger one without counts and complements, unless a short walk finds it.
pub(crate) struct ByLarger;

impl Finder for ByLarger {
    fn find(&self, lexemes: &mut LexemeCache, vocabulary: &Tokens, this: Unfinished) -> Found {
        let Unfinished { residual, from, .. } = this;
        if let Some(Relaxed { expr, agreement }) = lexemes.without_a_limit(residual)? {
            if agreement as usize >= vocabulary.trie().max_depth() {
                return Ok(Some(same(expr)));
            }
            if agreement >= MIN_AGREEMENT && lexemes.is_dense_enough(vocabulary, from)? {
                return Ok(Some(near(expr)));
            }
        }
        let Some(base) = lexemes.base_of(residual) else { return Ok(None) };
        let dfa = lexemes.dfa(&[base])?;
        if lexemes.dfas[dfa.0 as usize].is_dead_at_start() {
            return Ok(None);
        }
        let exprs = &lexemes.deriver.exprs;
        if exprs.complexity(base).0 == exprs.complexity(residual).0 {
            // A residual to which some byte returns does not come closer to a language without counts by reading.
            if lexemes.returns(residual)? {
                return Ok(None);
            }
        } else {
            match lexemes.usual_of(residual)? {
                Some(usual) if usual == residual => {
                    return Ok(Some(different(base)));
                }
                // `usual` returns to itself, so no simpler language follows from it in this way.
                Some(usual) if !lexemes.is_simpler(residual, usual) => {
                    return Ok(Some(near(usual)));
                }
                _ => {}
            }
        }
        Ok(Some(match lexemes.mask_by_walk(vocabulary, from, SEARCHED)? {
            Some(mask) => Next::found(mask),
            None => near(base),
        }))
    }
}

/// A larger language that no token distinguishes.
fn same(base: ExprId) -> Next {
    Next::After(Larger::new(base, move |_, _, _, larger| Ok(Some(larger.clone()))))
}

/// A larger language that differs in few tokens.
fn near(base: ExprId) -> Next {
    Next::After(Larger::new(base, move |lexemes, vocabulary, this, larger| {
        Ok(lexemes.mask_near(vocabulary, this.from, base, larger)?.map(Arc::new))
    }))
}

/// A larger language that differs only after a few characters, whatever came before.
fn different(base: ExprId) -> Next {
    Next::After(Larger::new(base, move |lexemes, vocabulary, this, larger| {
        Ok(lexemes.mask_by_difference(vocabulary, this.from, base, larger)?.map(Arc::new))
    }))
}

impl LexemeCache {
    /// A simpler, larger language from which a residual differs in few tokens: `text & ~words` is nearly `text`, and a
    /// repetition with a maximum count is nearly the same as without one.
    pub(crate) fn base_of(&mut self, residual: ExprId) -> Option<ExprId> {
        let base = if (MIN_AGREEMENT..u32::MAX).contains(&self.deriver.exprs.agreement(residual)) {
            let relaxed = self.deriver.relaxed(residual);
            (relaxed.agreement >= MIN_AGREEMENT).then_some(relaxed.expr)
        } else {
            Some(without_complements(&mut self.deriver.exprs, residual, 0)).filter(|&base| base != ExprId::NOTHING)
        };
        base.filter(|&base| self.is_simpler(base, residual))
    }

    /// An intersection without the maximum counts of one of its parts: the part that agrees longest with itself without them.
    /// With it, for how many bytes both intersections read the same; `None` if no part has a maximum count, or if nothing is
    /// known.
    ///
    /// # Errors
    /// Where it takes too long.
    pub(crate) fn without_a_limit(&mut self, residual: ExprId) -> Result<Option<Relaxed>, LimitExceeded> {
        let exprs = &self.deriver.exprs;
        let (first, tail) = match *exprs.get(residual) {
            Expr::Concat { head, tail } => (head, Some(tail)),
            _ => (residual, None),
        };
        let Expr::And(parts) = exprs.get(first) else { return Ok(None) };
        let limited = parts.iter().enumerate().map(|(at, &part)| (exprs.agreement(part), at));
        let Some((_, at)) = limited.filter(|&(agreement, _)| agreement != u32::MAX).max() else { return Ok(None) };
        let mut parts = parts.to_vec();
        let relaxed = self.deriver.relaxed(parts[at]);
        parts[at] = relaxed.expr;
        let exprs = &mut self.deriver.exprs;
        let whole = exprs.and(&parts);
        let expr = tail.map_or(whole, |tail| exprs.concat(whole, tail));
        if !self.is_simpler(expr, residual) {
            return Ok(None);
        }
        // Both match the same texts up to a length. So a prefix that can be completed within that length in one can be in
        // the other.
        let most = self.completions.most_by_search(&mut self.deriver, expr)?;
        let agreement = relaxed.agreement.saturating_sub(most);
        Ok((most != u32::MAX).then_some(Relaxed { expr, agreement }))
    }

    /// Whether some byte leads from a residual back to it.
    fn returns(&mut self, residual: ExprId) -> Result<bool, LimitExceeded> {
        Ok(self.deriver.derivatives(residual)?.iter().any(|&(_, rest)| rest == residual))
    }

    /// The residual after most bytes, if most of its own bytes lead back to it.
    pub(crate) fn usual_of(&mut self, residual: ExprId) -> Result<Option<ExprId>, LimitExceeded> {
        let Some(usual) = self.after_most(residual)? else { return Ok(None) };
        Ok((self.after_most(usual)? == Some(usual) && self.deriver.is_live(usual)?).then_some(usual))
    }

    fn after_most(&mut self, residual: ExprId) -> Result<Option<ExprId>, LimitExceeded> {
        // The other bytes begin longer characters and lead to different residuals in any case.
        let derivatives = self.deriver.derivatives(residual)?;
        let living = derivatives.iter().filter(|&&(_, rest)| rest != ExprId::NOTHING);
        let living = living.map(|&(bytes, rest)| (bytes.intersect(&ByteSet::ASCII).len(), rest));
        let all: usize = living.clone().map(|(count, _)| count).sum();
        let most = living.max_by_key(|&(count, _)| count);
        Ok(most.filter(|&(count, _)| count > 0 && 2 * count >= all).map(|(_, rest)| rest))
    }

    /// The mask of a residual from that of a larger language: both are walked together, and no further than they may
    /// differ. `None` where the other language turns out not to be larger.
    pub(crate) fn mask_near(
        &mut self,
        vocabulary: &Tokens,
        from: Start,
        base: ExprId,
        larger: &LexemeMask,
    ) -> Result<Option<LexemeMask>, LimitExceeded> {
        let (own, whole) = (from.dfa, self.dfa(&[base])?);
        let trie = vocabulary.trie();
        let mut inside = larger.to_set(vocabulary.vocab_size());
        // By state: the state of the larger language that it was last paired with, and for how many bytes they agree.
        let mut agreements: Vec<(StateId, u32)> = Vec::new();
        // Nodes at which only the larger language ends.
        let mut not_here: Vec<u32> = Vec::new();
        let mut dead: Vec<u32> = Vec::new();
        let mut is_larger = true;
        trie.walk(
            (from.state, StateId::START),
            |(state, other), byte, node| {
                let (other, other_ends) = self.step(whole, other, byte)?;
                let (state, ends) =
                    if state == StateId::DEAD { (StateId::DEAD, false) } else { self.step(own, state, byte)? };
                is_larger &= (other != StateId::DEAD || state == StateId::DEAD) && (other_ends || !ends);
                if other == StateId::DEAD {
                    return Ok(None);
                }
                if other_ends && !ends {
                    not_here.push(node as u32);
                }
                if state != StateId::DEAD {
                    let known = state.0 as usize;
                    if known >= agreements.len() {
                        agreements.resize(known + 1, (StateId::DEAD, 0));
                    }
                    if agreements[known].0 != other {
                        agreements[known] = (other, self.agreement(own, state, whole, other)?);
                    }
                    let height = trie.height(node);
                    let agreement = agreements[known].1;
                    if agreement == u32::MAX || (height < u8::MAX && agreement >= u32::from(height)) {
                        return Ok(None);
                    }
                }
                Ok::<_, LimitExceeded>(Some((state, other)))
            },
            |token, (state, _)| {
                if state == StateId::DEAD {
                    dead.push(token);
                }
            },
        )?;
        for token in dead {
            token_set::clear(inside.words_mut(), token);
        }
        Ok(is_larger.then(|| larger.with_fewer(vocabulary, inside, &not_here)))
    }

    /// For how many bytes a state and a state of a larger language read the same; 0 where this is not known.
    ///
    /// # Errors
    /// Where it takes too long.
    pub(crate) fn agreement(
        &mut self,
        own: DfaId,
        state: StateId,
        whole: DfaId,
        other: StateId,
    ) -> Result<u32, LimitExceeded> {
        let (&[(_, residual)], &[(_, larger)]) = (self.residuals(own, state), self.residuals(whole, other)) else {
            return Ok(0);
        };
        if residual == larger {
            return Ok(u32::MAX);
        }
        let relaxed = self.deriver.relaxed(residual);
        if relaxed.expr == larger {
            return Ok(relaxed.agreement);
        }
        let relaxed = self.without_a_limit(residual)?;
        Ok(relaxed.filter(|relaxed| relaxed.expr == larger).map_or(0, |relaxed| relaxed.agreement))
    }
}

/// A larger language: the expression, or an alternative in it, without the complements that restrict its first part.
fn without_complements(exprs: &mut ExprSet, expr: ExprId, depth: usize) -> ExprId {
    if depth > MAX_DEPTH || exprs.complexity(expr).0 == 0 {
        return expr;
    }
    match exprs.get(expr).clone() {
        Expr::And(parts) => {
            let kept: Vec<ExprId> =
                parts.iter().copied().filter(|&part| !matches!(exprs.get(part), Expr::Not(_))).collect();
            if kept.is_empty() { expr } else { exprs.and(&kept) }
        }
        Expr::Concat { head, tail } => {
            let head = without_complements(exprs, head, depth + 1);
            exprs.concat(head, tail)
        }
        Expr::Or(parts) => {
            let parts: Vec<ExprId> = parts.iter().map(|&part| without_complements(exprs, part, depth + 1)).collect();
            exprs.or(&parts)
        }
        _ => expr,
    }
}
