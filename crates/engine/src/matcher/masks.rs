//! The masks of a matcher: written in full, as a patch of a row, or checked for one token.
//!
//! `mask/` decides what the grammar allows, and `canonical/` which of that is canonical. A sequence adds its stop
//! tokens and removes the tokens that exceed its budgets.

use std::cell::RefCell;
use std::sync::Arc;

use stencilm_support::MANY;

use super::{GrammarMatcher, retire_if_full};
use crate::error::MatcherError;
use crate::mask::delta::MaskPatch;
use crate::mask::pipeline::DecidedMask;
use crate::vocabulary::token_set;

thread_local! {
    /// Scratch space for a mask of which only the patch is returned.
    static SCRATCH_MASK: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

impl GrammarMatcher {
    /// The tokens that may come next, as a row and the few tokens in which they differ from it. Rows are shared by all
    /// grammars of a vocabulary and never change, so a caller may copy them to the device that applies the masks.
    ///
    /// # Errors
    /// As [`GrammarMatcher::fill_mask`].
    pub fn mask_patch(&mut self) -> Result<MaskPatch, MatcherError> {
        let mut patch = self.unordered_mask_patch()?;
        patch.flipped.sort_unstable();
        Ok(patch)
    }

    /// The same, with the tokens in no particular order.
    ///
    /// # Errors
    /// As [`GrammarMatcher::fill_mask`].
    pub fn unordered_mask_patch(&mut self) -> Result<MaskPatch, MatcherError> {
        self.in_time(GrammarMatcher::unordered_mask_patch_by_parts)
    }

    fn unordered_mask_patch_by_parts(&mut self) -> Result<MaskPatch, MatcherError> {
        // A mask that is computed in the first round is mostly cached in the second.
        for _ in 0..2 {
            if let Some(patch) = self.known_mask_patch()? {
                return Ok(patch);
            }
        }
        let vocabulary = self.compiled.vocabulary().clone();
        let mut mask = vec![0; vocabulary.mask_words()];
        self.fill_mask(&mut mask)?;
        let known = self.decide_mask()?.known;
        let (mut row, mut words) = (known.map_or(0, |kept| self.compiled.give_row(kept)), vec![0; mask.len()]);
        if !vocabulary.write_row(row, &mut words) {
            row = 0;
        }
        Ok(MaskPatch { row, flipped: token_set::difference(&mask, &words) })
    }

    /// Decides the mask, still without canonical tokens, budgets and stop tokens.
    fn decide_mask(&mut self) -> Result<DecidedMask, MatcherError> {
        let (layout, now) = (self.layout()?, self.now());
        let words = self.compiled.vocabulary().mask_words();
        let stacks = Arc::make_mut(&mut self.stacks);
        let decided = SCRATCH_MASK.with_borrow_mut(|mask| {
            mask.resize(words.max(mask.len()), 0);
            layout.decide_mask(stacks, now.configuration, &mut mask[..words], false)
        });
        stacks.rewind(now.mark);
        Ok(decided.inspect_err(|error| retire_if_full(&self.compiled, &layout, error))?)
    }

    /// The patch of a cached mask, without writing any words; `None` where the mask is not cached or needs more
    /// decisions.
    fn known_mask_patch(&mut self) -> Result<Option<MaskPatch>, MatcherError> {
        if self.now().stopped || self.now().is_spent || self.cursors.is_some() || self.compiled.tokens().any() {
            return Ok(None);
        }
        if self.is_short_of_whitespace() || self.is_near_the_end()? {
            return Ok(None);
        }
        let DecidedMask { known: Some(kept), refused, .. } = self.decide_mask()? else { return Ok(None) };
        let mut flipped = Vec::with_capacity(kept.flipped().len() + self.stop_token_ids.len());
        flipped.extend_from_slice(kept.flipped());
        // Returns whether the bit changed.
        let mut set = |token: u32, is_allowed: bool| {
            let place = flipped.iter().position(|&flipped| flipped == token);
            match (kept.row_has(token) != is_allowed, place) {
                (true, None) => flipped.push(token),
                (false, Some(place)) => _ = flipped.swap_remove(place),
                _ => return false,
            }
            true
        };
        let removed = refused.into_iter().filter(|&token| set(token, false)).count();
        let is_completed = self.is_completed();
        let mut allowed = kept.allowed().unwrap_or(MANY).saturating_sub(removed);
        for &id in self.stop_token_ids.iter() {
            let changed = set(id, is_completed);
            allowed = match is_completed {
                true => allowed + 1,
                false => allowed.saturating_sub(usize::from(changed)),
            };
        }
        // An empty mask is an error, which filling it reports.
        Ok((allowed > 0).then(|| MaskPatch { row: self.compiled.give_row(kept), flipped }))
    }

    /// Writes the tokens that may come next, one bit each. Returns `false` if every token is allowed and the mask need
    /// not be applied.
    ///
    /// # Errors
    /// [`MatcherError::MaskSize`] for a mask of the wrong size, [`MatcherError::Terminated`] after a stop token,
    /// [`MatcherError::NoTokenFits`] when no token of the vocabulary fits the grammar, [`MatcherError::NoStopToken`]
    /// when the text can only end and no stop token is known, and limits.
    pub fn fill_mask(&mut self, mask: &mut [u32]) -> Result<bool, MatcherError> {
        // Without budgets and canonical tokens a mask is a single part, which has its own deadline.
        match self.budget.is_some() || self.cursors.is_some() {
            true => self.in_time(|matcher| matcher.fill_mask_by_parts(mask)),
            false => self.fill_mask_by_parts(mask),
        }
    }

    fn fill_mask_by_parts(&mut self, mask: &mut [u32]) -> Result<bool, MatcherError> {
        // The compiled grammar's reference count is used, since all threads contend for that of the vocabulary.
        let compiled = self.compiled.clone();
        let vocabulary = compiled.vocabulary();
        if mask.len() != vocabulary.mask_words() {
            return Err(MatcherError::MaskSize {
                words: mask.len(),
                expected: vocabulary.mask_words(),
                vocab_size: vocabulary.vocab_size(),
            });
        }
        if self.now().stopped {
            return Err(MatcherError::Terminated);
        }
        if self.write_narrowed_mask(mask)? {
            return Ok(!token_set::has_all(mask, vocabulary.vocab_size()));
        }
        let layout = self.layout()?;
        let now = self.now();
        let stacks = Arc::make_mut(&mut self.stacks);
        let filled = if let Some(cursors) = &self.cursors {
            let filled = layout.fill_canonical_mask(stacks, now.configuration, &cursors.encoding, cursors.now(), mask);
            filled.map(|verdict| {
                self.verdict = verdict;
                (None, self.verdict.is_some())
            })
        } else {
            let mut filled = layout.plain_mask(stacks, now.configuration, mask, false).map(|plain| plain.allowed);
            if now.is_spent && filled.is_ok() {
                filled = layout.with(stacks, |run| {
                    (run.tokens, run.spent_at) = (now.tokens.saturating_add(1), Some(now.tokens));
                    run.leave_spent_parts(vocabulary, now.configuration, now.tokens, mask)?;
                    Ok(None)
                });
            }
            filled.map(|counted| (counted, false))
        };
        stacks.rewind(now.mark);
        let (mut counted, canonical) = filled.inspect_err(|error| retire_if_full(&self.compiled, &layout, error))?;
        if self.cursors.is_some() {
            self.add_token_edges(mask)?;
        }
        let completed = self.is_completed() && self.may_end_canonically();
        let stop_token_ids = self.stop_token_ids.clone();
        for &id in stop_token_ids.iter() {
            let may_end = completed || self.has_token_edge(id)?;
            let before = usize::from(token_set::get(mask, id));
            counted = counted.map(|counted| counted.saturating_sub(before) + usize::from(may_end));
            if may_end {
                token_set::set(mask, id);
            } else {
                token_set::clear(mask, id);
            }
        }
        let size = vocabulary.vocab_size();
        if self.spare_whitespace(mask) {
            counted = None;
        }
        if self.narrow(mask)? {
            counted = None;
        }
        // Where the number was not counted, the first words nearly always answer what is asked about it.
        let allowed = counted.unwrap_or_else(|| match () {
            () if mask.iter().all(|&word| word == 0) => 0,
            () if token_set::has_all(mask, size) => size,
            () => size - 1,
        });
        if allowed == 0 {
            return Err(match completed {
                true => MatcherError::NoStopToken,
                false if canonical => MatcherError::NoCanonicalToken,
                false => MatcherError::NoTokenFits,
            });
        }
        Ok(allowed < size)
    }

    /// Adds to a canonical mask the single tokens that the grammar names, to which the tokenizer's rules do not apply.
    fn add_token_edges(&mut self, mask: &mut [u32]) -> Result<(), MatcherError> {
        if !self.compiled.tokens().any() || !self.may_end_canonically() {
            return Ok(());
        }
        let mut edges = vec![0; mask.len()];
        self.probe(|run, here| {
            run.token_edges(here, &mut edges);
            Ok(())
        })?;
        mask.iter_mut().zip(&edges).for_each(|(word, edges)| *word |= edges);
        Ok(())
    }

    /// Whether a token may come next, decided without a mask.
    ///
    /// # Errors
    /// [`MatcherError::Engine`] when a limit is reached.
    pub fn is_allowed(&mut self, id: u32) -> Result<bool, MatcherError> {
        self.in_time(|matcher| matcher.is_allowed_by_parts(id))
    }

    fn is_allowed_by_parts(&mut self, id: u32) -> Result<bool, MatcherError> {
        if self.is_terminated() {
            return Ok(false);
        }
        if self.is_short_of_whitespace() || self.is_near_the_end()? {
            let mut mask = vec![0; self.compiled.vocabulary().mask_words()];
            self.fill_mask(&mut mask)?;
            return Ok((id as usize) < self.compiled.vocabulary().vocab_size() && token_set::get(&mask, id));
        }
        if self.cursors.is_some() {
            let verdict = self.verdict.clone();
            let accepted = self.accept_token(id)?;
            self.rollback(usize::from(accepted))?;
            self.verdict = verdict;
            return Ok(accepted);
        }
        if self.has_token_edge(id)? {
            return Ok(true);
        }
        if self.stop_token_ids.contains(&id) {
            return Ok(self.is_completed());
        }
        let compiled = self.compiled.clone();
        let Some(bytes) = compiled.vocabulary().token_bytes(id) else { return Ok(false) };
        self.probe(|run, here| run.survives(here, bytes))
    }

    /// The number of tokens that may come next, stop tokens included.
    ///
    /// # Errors
    /// As [`GrammarMatcher::fill_mask`].
    pub fn num_allowed_tokens(&mut self) -> Result<usize, MatcherError> {
        let mut mask = vec![0; self.compiled.vocabulary().mask_words()];
        self.fill_mask(&mut mask)?;
        Ok(mask.iter().map(|word| word.count_ones() as usize).sum())
    }
}
