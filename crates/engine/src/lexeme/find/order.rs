//! How lexeme masks are found: by counting characters, from a similar mask, or by a walk through the vocabulary.
//!
//! Lexeme masks pay for dense states (a string body reads nearly every token) and for lexemes after whitespace. Other
//! states are walked directly, see `mask/optimistic.rs`.

use std::sync::Arc;

use stencilm_regex::{ByteSet, ExprId, StateId, Tag};
use stencilm_support::{LimitExceeded, memory};

use crate::lexeme::cache::{DfaId, LexemeCache, LexemeMaskKey};
use crate::lexeme::find::alternatives::{ByAlternative, WithoutRedundant};
use crate::lexeme::find::bounded_patterns::BoundedPatterns;
use crate::lexeme::find::by_larger::ByLarger;
use crate::lexeme::find::by_runs::{CharRuns, UnboundedRuns};
use crate::lexeme::find::finder::{Finder, Larger, Next, Start, Unfinished};
use crate::lexeme::find::language_runs::LanguageRuns;
use crate::lexeme::find::limits::LengthLimits;
use crate::lexeme::mask::{LexemeMask, LexemeMaskAt};
use crate::switches::Switch;
use crate::vocabulary::tokens::Tokens;

/// The finders with their switches, in the order in which they are tried, the cheapest first. To decide whether they
/// apply, all except the last two examine only the expression. Then they work on the tokens that stop a run of
/// characters or come near a bound. The last but one takes the alternatives one by one, and the last one walks a part
/// of the vocabulary before it gives up. A residual that no finder handles is walked.
const FINDERS: [(Switch, &dyn Finder); 8] = [
    (Switch::LexemeBounded, &BoundedPatterns),
    (Switch::LexemeLimits, &LengthLimits),
    (Switch::LexemeLanguages, &LanguageRuns),
    (Switch::LexemeRuns, &CharRuns),
    (Switch::LexemeUnbounded, &UnboundedRuns),
    (Switch::LexemeRedundant, &WithoutRedundant),
    (Switch::LexemeAlternatives, &ByAlternative),
    (Switch::LexemeNear, &ByLarger),
];

impl LexemeCache {
    /// The lexeme mask of a state.
    ///
    /// A mask may be made from the mask of a larger language, and that one from a still larger one. Each language is
    /// simpler than the one before by [`ExprSet::complexity`](stencilm_regex::ExprSet::complexity), which is checked,
    /// or at least as simple and leads to itself, after which the next one is simpler. So this ends. The chain is kept
    /// in a list here, so that no input causes recursion.
    pub fn mask(&mut self, vocabulary: &Tokens, dfa: DfaId, state: StateId) -> Result<LexemeMaskAt, LimitExceeded> {
        let (distinct, tags) = self.distinct(dfa, state);
        let key = (distinct, None);
        if let Some(mask) = self.masks.get(&key) {
            return Ok(LexemeMaskAt { mask: mask.clone(), tags });
        }
        let from = self.start_of(&key.0, dfa, state)?;
        let [residual] = *key.0 else {
            let mask = self.mask_by_walk(vocabulary, from, usize::MAX)?.expect("a walk without a limit ends");
            return Ok(LexemeMaskAt { mask: self.keep(key, mask), tags });
        };
        let mut waiting: Vec<(Unfinished, Larger)> = Vec::new();
        let mut current = Unfinished { residual, from, is_pruned: false };
        let mut next = self.find(vocabulary, current, 0)?;
        loop {
            let mask = match next {
                Next::Found(mask) => {
                    if Arc::strong_count(&mask) == 1 {
                        self.masks_bytes += mask.memory_bytes();
                    }
                    self.in_keys += memory::of_slice::<ExprId>(1);
                    self.masks.insert((Box::new([current.residual]), None), mask.clone());
                    mask
                }
                Next::After(larger) => {
                    let expr = larger.expr;
                    let (is_limited, is_same) = (larger.is_limited, larger.is_same);
                    waiting.push((current, larger));
                    match self.masks.get(&(Box::from([expr]), None)) {
                        Some(known) => known.clone(),
                        None => {
                            let (dfa, state) = match is_limited {
                                true => self.start_unlimited(expr)?,
                                false => (self.dfa(&[expr])?, StateId::START),
                            };
                            current = Unfinished {
                                residual: expr,
                                from: Start { dfa, state, one: true },
                                is_pruned: current.is_pruned || is_same,
                            };
                            next = self.find(vocabulary, current, 0)?;
                            continue;
                        }
                    }
                }
            };
            let Some((unfinished, larger)) = waiting.pop() else { return Ok(LexemeMaskAt { mask, tags }) };
            current = unfinished;
            let Larger { finish, next: rest, .. } = larger;
            next = match finish(self, vocabulary, current, &mask)? {
                Some(mask) => Next::Found(mask),
                None => self.find(vocabulary, current, rest)?,
            };
        }
    }

    /// The mask of a single residual, or a larger language from whose mask it is made: the result of the first finder
    /// from `first` on that applies.
    fn find(&mut self, vocabulary: &Tokens, this: Unfinished, first: usize) -> Result<Next, LimitExceeded> {
        for (number, (switch, finder)) in FINDERS.iter().enumerate().skip(first) {
            if !switch.is_on() {
                continue;
            }
            match finder.find(self, vocabulary, this)? {
                Some(Next::After(larger)) => return Ok(Next::After(Larger { next: number + 1, ..larger })),
                Some(found) => return Ok(found),
                None => {}
            }
        }
        let mask = self.mask_by_walk(vocabulary, this.from, usize::MAX)?.expect("a walk without a limit ends");
        Ok(Next::Found(Arc::new(mask)))
    }

    /// Whether the mask of one expression may be made from that of another.
    pub(crate) fn is_simpler(&self, larger: ExprId, residual: ExprId) -> bool {
        let exprs = &self.deriver.exprs;
        exprs.complexity(larger) < exprs.complexity(residual)
    }

    /// The state from which to read these residuals. It is `state` itself where the tags of the automaton do not
    /// matter.
    fn start_of(&mut self, exprs: &[ExprId], dfa: DfaId, state: StateId) -> Result<Start, LimitExceeded> {
        match (exprs, self.residuals(dfa, state)) {
            ([_], [_]) => Ok(Start { dfa, state, one: true }),
            _ => Ok(Start { dfa: self.dfa(exprs)?, state: StateId::START, one: false }),
        }
    }

    /// The mask of the start of an automaton after optional whitespace of at most `max` bytes.
    pub fn mask_after_whitespace(
        &mut self,
        vocabulary: &Tokens,
        dfa: DfaId,
        whitespace: ByteSet,
        most: Option<u32>,
    ) -> Result<LexemeMaskAt, LimitExceeded> {
        let most = self.whitespace_runs(vocabulary, whitespace).clamped(most);
        // Clamped counts do not change the mask.
        let start = self.saturated(dfa, StateId::START)?;
        let (distinct, tags) = self.distinct(dfa, start);
        let key = (distinct, Some((whitespace, most)));
        if let Some(mask) = self.masks.get(&key) {
            return Ok(LexemeMaskAt { mask: mask.clone(), tags });
        }
        let mut parts = Vec::new();
        for byte in self.live_bytes(dfa, start)?.intersect(&whitespace.complement()).iter() {
            let runs = self.whitespace_runs(vocabulary, whitespace);
            let after = runs.after(byte, Some(most)).iter();
            parts.extend(after.map(|&(run, node)| {
                let node = node as usize;
                ((node, node + vocabulary.trie().size(node)), run as usize)
            }));
        }
        let runs = self.whitespace_runs(vocabulary, whitespace).tokens(Some(most)).collect();
        let from = self.start_of(&key.0, dfa, start)?;
        let mask = self.mask_of_parts(vocabulary, from, parts, runs)?;
        Ok(LexemeMaskAt { mask: self.keep(key, mask), tags })
    }

    /// The distinct residuals of a state, ascending, and the tags of each, by its position among them.
    fn distinct(&self, dfa: DfaId, state: StateId) -> (Box<[ExprId]>, Vec<(u32, Tag)>) {
        let residuals = self.residuals(dfa, state);
        if let &[(tag, expr)] = residuals {
            return (Box::new([expr]), vec![(0, tag)]);
        }
        let mut distinct: Vec<ExprId> = residuals.iter().map(|&(_, expr)| expr).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let position = |expr| distinct.binary_search(&expr).expect("distinct holds every residual") as u32;
        let mut tags: Vec<(u32, Tag)> = residuals.iter().map(|&(tag, expr)| (position(expr), tag)).collect();
        tags.sort_unstable();
        (distinct.into(), tags)
    }

    pub(crate) fn keep(&mut self, key: LexemeMaskKey, mask: LexemeMask) -> Arc<LexemeMask> {
        let mask = Arc::new(mask);
        self.masks_bytes += mask.memory_bytes();
        self.in_keys += memory::of_slice::<ExprId>(key.0.len());
        self.masks.insert(key, mask.clone());
        mask
    }
}

#[cfg(test)]
mod tests;
