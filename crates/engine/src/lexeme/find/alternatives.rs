//! Alternatives: those that are redundant beside a run of characters are removed, and the masks of the others are
//! computed one by one.
//!
//! Any text before a quote includes every text with a pattern in it. So the latter is redundant as another alternative,
//! and the former is redundant in an intersection with it. Each remaining alternative by itself is often a run of
//! characters, or reads few tokens, when all of them together are neither. A token is read by the whole exactly when
//! one alternative reads it.

use std::sync::Arc;

use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet, StateId};
use stencilm_support::{FEW, LOOKED_AT, LimitExceeded};

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::find::char_runs::Run;
use crate::lexeme::find::finder::{Finder, Found, Larger, Next, Start, Unfinished};
use crate::lexeme::find::found::{Ends, Inside};
use crate::lexeme::find::unbounded_runs::{RunsOf, open_run, plain};
use crate::lexeme::mask::{BYTES_AFTER, LexemeMask};
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;

/// The greatest depth to which the parts of an expression are examined.
const MAX_DEPTH: usize = 8;

/// Any number of one character, then one byte of a set; the set is empty where the expression is not the end of a
/// lexeme.
struct AnyRun {
    characters: DfaId,
    character: ExprId,
    end: Option<ByteSet>,
}

/// Finds the mask of a dense state as the mask of the same language without redundant parts.
pub(crate) struct WithoutRedundant;

impl Finder for WithoutRedundant {
    fn find(&self, lexemes: &mut LexemeCache, vocabulary: &Tokens, this: Unfinished) -> Found {
        if this.is_pruned || !lexemes.is_dense_enough(vocabulary, this.from)? {
            return Ok(None);
        }
        let same = lexemes.without_redundant(this.residual)?;
        let is_same = same == this.residual;
        Ok((!is_same).then(|| {
            Next::After(Larger { is_same: true, ..Larger::new(same, |_, _, _, larger| Ok(Some(larger.clone()))) })
        }))
    }
}

/// Finds the mask of a dense state from the masks of its alternatives.
pub(crate) struct ByAlternative;

impl Finder for ByAlternative {
    fn find(&self, lexemes: &mut LexemeCache, vocabulary: &Tokens, this: Unfinished) -> Found {
        if !lexemes.is_dense_enough(vocabulary, this.from)? {
            return Ok(None);
        }
        Ok(lexemes.mask_of_alternatives(vocabulary, this.residual)?.map(Next::found))
    }
}

impl LexemeCache {
    /// The same language without the parts that are redundant beside a run of characters.
    pub(crate) fn without_redundant(&mut self, residual: ExprId) -> Result<ExprId, LimitExceeded> {
        self.without_redundant_parts(residual, true, 0)
    }

    fn without_redundant_parts(&mut self, expr: ExprId, is_ended: bool, depth: usize) -> Result<ExprId, LimitExceeded> {
        let is_end = |exprs: &ExprSet, tail| is_ended && matches!(exprs.get(tail), Expr::Bytes(_));
        let exprs = &self.deriver.exprs;
        let (parts, is_and) = match exprs.get(expr) {
            Expr::Or(parts) => (parts.to_vec(), false),
            Expr::And(parts) => (parts.to_vec(), true),
            &Expr::Concat { head, tail } if is_end(exprs, tail) && depth < MAX_DEPTH => {
                let head = self.without_redundant_parts(head, false, depth + 1)?;
                return Ok(self.deriver.exprs.concat(head, tail));
            }
            _ => return Ok(expr),
        };
        if depth >= MAX_DEPTH || parts.len() > FEW {
            return Ok(expr);
        }
        let mut kept = Vec::with_capacity(parts.len());
        for &part in &parts {
            kept.push(self.without_redundant_parts(part, is_ended, depth + 1)?);
        }
        for part in kept.clone() {
            // A part may already have been removed because another one includes it; then that other one must stay.
            let run = self.any_run(part, is_ended)?.filter(|_| kept.contains(&part));
            let Some(run) = run else { continue };
            let mut runs = Vec::new();
            for &other in &kept {
                if other != part && self.is_run(other, &run)? {
                    runs.push(other);
                }
            }
            match is_and {
                true => kept.retain(|&other| other != part || runs.is_empty()),
                false => kept.retain(|other| !runs.contains(other)),
            }
        }
        if kept == parts {
            return Ok(expr);
        }
        let exprs = &mut self.deriver.exprs;
        Ok(if is_and { exprs.and(&kept) } else { exprs.or(&kept) })
    }

    fn any_run(&mut self, expr: ExprId, is_ended: bool) -> Result<Option<AnyRun>, LimitExceeded> {
        let exprs = &self.deriver.exprs;
        let (head, end) = match *exprs.get(expr) {
            Expr::Concat { head, tail } if is_ended => match *exprs.get(tail) {
                Expr::Bytes(end) => (head, Some(end)),
                _ => return Ok(None),
            },
            _ if is_ended => return Ok(None),
            _ => (expr, None),
        };
        match *exprs.get(head) {
            Expr::Repeat { body: character, min: 0, max: None } if plain(exprs, character) => {
                Ok(Some(AnyRun { characters: self.dfa(&[character])?, character, end }))
            }
            _ => Ok(None),
        }
    }

    /// Whether every match of an expression is such a run.
    fn is_run(&mut self, expr: ExprId, run: &AnyRun) -> Result<bool, LimitExceeded> {
        let runs = RunsOf::new(self, run.characters, run.character);
        match run.end {
            None => runs.hold(expr),
            Some(end) => Ok(runs.then_a_byte(expr)?.is_some_and(|ends| ends.intersect(&end.complement()).is_empty())),
        }
    }

    /// The mask of several alternatives, combined from the mask of each; `None` where one of these is not easy to find.
    pub(crate) fn mask_of_alternatives(
        &mut self,
        vocabulary: &Tokens,
        residual: ExprId,
    ) -> Result<Option<LexemeMask>, LimitExceeded> {
        let exprs = &mut self.deriver.exprs;
        let horizon = vocabulary.trie().max_depth() + BYTES_AFTER as usize;
        // If no alternative is a text, walking all of them together costs less.
        let is_text = |exprs: &ExprSet, alternative| {
            let ends = |run: Run| matches!(exprs.get(run.tail), Expr::Bytes(_));
            Run::of(exprs, alternative).is_some_and(ends) || open_run(exprs, alternative, horizon).is_some()
        };
        let Some(alternatives) = alternatives(exprs, residual)
            .filter(|alternatives| alternatives.iter().any(|&alternative| is_text(exprs, alternative)))
        else {
            return Ok(None);
        };
        let mut inside = TokenSet::empty(vocabulary.vocab_size());
        let mut nodes: Vec<u32> = Vec::new();
        for alternative in alternatives {
            let Some(mask) = self.mask_of_alternative(vocabulary, alternative)? else { return Ok(None) };
            if mask.crossings.is_none() || !mask.unkept.is_empty() {
                return Ok(None);
            }
            mask.add_inside(inside.words_mut());
            nodes.extend_from_slice(&mask.ends);
        }
        nodes.sort_unstable();
        nodes.dedup();
        let from = Start { dfa: self.dfa(&[residual])?, state: StateId::START, one: true };
        let mut ends = Ends::default();
        nodes.into_iter().for_each(|node| ends.push(vocabulary, node as usize, from.state));
        Ok(Some(self.mask_with(vocabulary, from, Inside::Set(inside), ends)))
    }

    /// The mask of an alternative that is a run of characters or reads few tokens; otherwise `None`.
    fn mask_of_alternative(
        &mut self,
        vocabulary: &Tokens,
        residual: ExprId,
    ) -> Result<Option<Arc<LexemeMask>>, LimitExceeded> {
        let key = (Box::from([residual]), None);
        if let Some(known) = self.masks.get(&key) {
            return Ok(Some(known.clone()));
        }
        if let Some(mask) = self.mask_of_run(vocabulary, residual)? {
            return Ok(Some(self.keep(key, mask)));
        }
        let from = Start { dfa: self.dfa(&[residual])?, state: StateId::START, one: true };
        if let Some(mask) = self.mask_of_open_run(vocabulary, residual, from)? {
            return Ok(Some(self.keep(key, mask)));
        }
        let mask = self.mask_by_walk(vocabulary, from, LOOKED_AT)?;
        Ok(mask.map(|mask| self.keep(key, mask)))
    }
}

/// The alternatives of an expression, or of its first part.
fn alternatives(exprs: &mut ExprSet, residual: ExprId) -> Option<Vec<ExprId>> {
    let (parts, tail) = match *exprs.get(residual) {
        Expr::Or(ref parts) => (parts.to_vec(), None),
        Expr::Concat { head, tail } => match exprs.get(head) {
            Expr::Or(parts) => (parts.to_vec(), Some(tail)),
            _ => return None,
        },
        _ => return None,
    };
    if parts.len() > FEW {
        return None;
    }
    let with_tail = |part| tail.map_or(part, |tail| exprs.concat(part, tail));
    Some(parts.into_iter().map(with_tail).collect())
}
