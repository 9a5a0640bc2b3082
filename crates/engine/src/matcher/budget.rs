//! A token budget for the whole text: masks keep the tokens after which the text can still be completed within it.
//!
//! At least one path to the end that fits is always known, so a mask is never empty. Far from the end, a bound shows
//! that no token can break the budget (`completion/bounds.rs`). The bound need not be checked at every step: each token
//! increases it by a limited amount, and reduces the budget by one.

use std::sync::Arc;

use stencilm_support::{CancelToken, FEW, LOOKED_AT, MANY};

use super::{Budget, GrammarMatcher, NO_TOKEN, NarrowedMask, retire_if_full};
use crate::completion::narrowing::{Endings, PathsLeft};
use crate::completion::search::Piece;
use crate::completion::token_counts::count_in_time;
use crate::error::{EngineError, MatcherError};
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;
use crate::switches::Switch;
use crate::vocabulary::token_set;

/// The path with fewer tokens, if there is any; the first one if both are equally long.
fn shorter(one: Option<Vec<u32>>, other: Option<Vec<u32>>) -> Option<Vec<u32>> {
    [one, other].into_iter().flatten().min_by_key(Vec::len)
}

impl GrammarMatcher {
    /// The number of tokens on a short path to the end, without the stop token; 0 where the text is complete. It spells
    /// a shortest text of the grammar with as few tokens as can spell it; a longer text may take fewer tokens. A budget
    /// of this number can be kept. Nothing is changed.
    ///
    /// # Errors
    /// [`MatcherError::NoTokensComplete`] where no path is found, and limits.
    pub fn tokens_to_end(&mut self) -> Result<usize, MatcherError> {
        if self.is_terminated() || self.may_stop() {
            return Ok(0);
        }
        Ok(self.in_time(GrammarMatcher::path_to_end)?.len())
    }

    /// The tokens left of the budget; negative where more were accepted, `None` without a budget. A text accepted
    /// without tokens counts as the fewest tokens that spell it.
    pub fn token_budget_left(&self) -> Option<i64> {
        let budget = self.budget.as_ref()?;
        Some(budget.tokens as i64 - self.now().spent as i64)
    }

    /// The number of tokens that the whole text may have, if there is a budget.
    pub fn token_budget(&self) -> Option<usize> {
        self.budget.as_ref().map(|budget| budget.tokens)
    }

    /// Whether the budget removed tokens from the mask of the current step that was filled last.
    pub fn is_narrowed(&self) -> bool {
        self.withheld().is_some()
    }

    /// The tokens that the budget removed from the last filled mask of the current step, one bit each; `None` where it
    /// removed none.
    pub fn withheld(&self) -> Option<&[u32]> {
        let (step, withheld) = self.budget.as_ref()?.narrowed.as_ref()?;
        (*step == self.num_accepted_tokens()).then_some(&withheld[..])
    }

    /// A matcher in the same state and with the same history, whose text must be complete within `tokens` more tokens.
    ///
    /// # Errors
    /// [`MatcherError::BudgetTooSmall`] where no path to the end takes so few, and limits.
    pub fn fork_within(&self, tokens: usize) -> Result<GrammarMatcher, MatcherError> {
        let mut fork = self.fork();
        fork.set_token_budget(tokens)?;
        Ok(fork)
    }

    pub(super) fn set_token_budget(&mut self, tokens: usize) -> Result<(), MatcherError> {
        if self.compiled.has_budgets() {
            return Err(EngineError::NotRun("a token_budget with a grammar that has parts with max_tokens").into());
        }
        let tokens_in_all = self.now().spent.saturating_add(tokens);
        // A known path may be shorter than one that would be found now.
        let accepted = self.num_accepted_tokens();
        let fits = |(at, path): &(usize, Arc<[u32]>)| path.len() <= (accepted - at).saturating_add(tokens);
        let (path, left) = self.budget.take().map_or((None, None), |budget| (budget.path.filter(fits), budget.left));
        let (free, narrowed, last_mask) = (None, None, None);
        self.budget = Some(Budget { tokens: tokens_in_all, path, free, narrowed, left, last_mask });
        let needed = self.tokens_to_end()?;
        match needed > tokens {
            true => Err(MatcherError::BudgetTooSmall { budget: tokens, needed }),
            false => Ok(()),
        }
    }

    /// The number of tokens that a text takes from the budget.
    pub(super) fn tokens_of_text(&self, bytes: &[u8]) -> Result<usize, MatcherError> {
        if self.budget.is_none() {
            return Ok(0);
        }
        let count = count_in_time(self.compiled.vocabulary(), bytes).map_err(EngineError::from)?;
        Ok(count.min(bytes.len() as u64) as usize)
    }

    /// Takes `tokens` from the budget for a text that was accepted in the last step.
    pub(super) fn spend_text(&mut self, tokens: usize) {
        let Some(budget) = &mut self.budget else { return };
        budget.free = None;
        let step = self.history.last_mut().expect("history always holds the start");
        step.spent += tokens;
    }

    /// Forgets results about steps that were taken back.
    pub(super) fn roll_budget_back(&mut self) {
        let accepted = self.num_accepted_tokens();
        let Some(budget) = &mut self.budget else { return };
        budget.free = budget.free.filter(|&(at, _)| at <= accepted);
        budget.path = budget.path.take().filter(|&(at, _)| at <= accepted);
        budget.left = budget.left.take().filter(|&(at, _)| at <= accepted);
        budget.last_mask = budget.last_mask.take().filter(|last| last.step <= accepted);
        budget.narrowed = None;
    }

    fn may_stop(&self) -> bool {
        self.is_completed() && self.may_end_canonically()
    }

    /// Whether masks must be narrowed at this step.
    pub(super) fn is_near_the_end(&mut self) -> Result<bool, MatcherError> {
        let accepted = self.num_accepted_tokens();
        let Some(budget) = &self.budget else { return Ok(false) };
        if budget.free.is_some_and(|(_, until)| accepted <= until) {
            return Ok(false);
        }
        let left = u64::try_from(self.token_budget_left().unwrap_or(0)).unwrap_or(0);
        if left == 0 {
            return Ok(true);
        }
        let is_canonical = self.cursors.is_some();
        let (worst, step) =
            self.with_endings(|run, endings, here| run.most_after_a_token(endings, here, is_canonical))?;
        let Some(spare) = (left - 1).checked_sub(worst) else { return Ok(true) };
        // A name that is being declared makes all references to it longer, so the bound may grow without limit.
        let steps = if self.compiled.declares_names() || !Switch::CompletionSteps.is_on() {
            0
        } else {
            spare / step.saturating_add(1)
        };
        let free = accepted.saturating_add(steps as usize);
        self.budget.as_mut().expect("there is a budget").free = Some((accepted, free));
        Ok(false)
    }

    /// Writes the mask of this step if it was narrowed before; returns whether it was.
    pub(super) fn write_narrowed_mask(&mut self, mask: &mut [u32]) -> Result<bool, MatcherError> {
        let step = self.num_accepted_tokens();
        let last = self.budget.as_ref().and_then(|budget| budget.last_mask.as_ref());
        let Some(last) = last.filter(|last| last.step == step).cloned() else { return Ok(false) };
        CancelToken::check(self.compiled.limits().cancel.as_ref()).map_err(EngineError::from)?;
        mask.copy_from_slice(&last.mask);
        let is_known = self.known_path().is_some();
        let budget = self.budget.as_mut().expect("it has the mask");
        budget.narrowed = last.withheld.map(|withheld| (step, withheld));
        // After a rollback, the known path may be one that leads elsewhere.
        if let Some(path) = last.path.filter(|_| !is_known) {
            budget.path = Some((step, path));
        }
        Ok(true)
    }

    /// Removes the tokens that would break the budget from a mask; returns whether it removed any.
    pub(super) fn narrow(&mut self, mask: &mut [u32]) -> Result<bool, MatcherError> {
        if !self.is_near_the_end()? {
            return Ok(false);
        }
        let before = mask.to_vec();
        let left = self.token_budget_left().unwrap_or(0);
        let may_stop = self.may_stop();
        let path = if may_stop { Arc::default() } else { self.path_to_end()? };
        let mut paths = PathsLeft::default();
        if left > 0 && path.len() as i64 <= left {
            let most = left as u64 - 1;
            match self.cursors.is_some() {
                true => self.narrow_canonical(most, mask)?,
                false => {
                    paths = self.with_endings(|run, endings, here| run.narrow(endings, here, most, &path, mask))?
                }
            }
        } else {
            // The budget is exhausted or was broken by an accepted text: only the shortest path to the end is left.
            mask.fill(0);
        }
        if let Some(&next) = path.first() {
            token_set::set(mask, next);
        }
        let stop_token_ids = self.stop_token_ids.clone();
        for &id in stop_token_ids.iter() {
            // A stop token that the grammar names at this point does not end the text.
            if may_stop && !self.has_token_edge(id)? {
                token_set::set(mask, id);
            }
        }
        let withheld: Arc<[u32]> = before.iter().zip(&*mask).map(|(before, after)| before & !after).collect();
        let withheld = withheld.iter().any(|&word| word != 0).then_some(withheld);
        let is_narrowed = withheld.is_some();
        let step = self.num_accepted_tokens();
        let budget = self.budget.as_mut().expect("there is a budget");
        budget.narrowed = withheld.clone().map(|withheld| (step, withheld));
        budget.left = Some((step, Arc::new(paths)));
        // An empty mask is reported as an error and must not be repeated.
        let is_kept = mask.iter().any(|&word| word != 0);
        let path = (!may_stop).then_some(path);
        budget.last_mask = is_kept.then(|| NarrowedMask { step, mask: (&*mask).into(), withheld, path });
        Ok(is_narrowed)
    }

    /// The rest of the known path, if the text has followed it so far.
    fn known_path(&self) -> Option<Arc<[u32]>> {
        let (at, path) = self.budget.as_ref()?.path.as_ref()?;
        let mut taken = self.history[at + 1..].iter().map(|step| step.token);
        let gone = self.num_accepted_tokens() - at;
        let is_along = path.len() >= gone && path[..gone].iter().all(|&token| taken.next() == Some(token));
        is_along.then(|| path[gone..].into())
    }

    /// Tokens that complete the text from here: the rest of the known path, or else a new one.
    fn path_to_end(&mut self) -> Result<Arc<[u32]>, MatcherError> {
        let accepted = self.num_accepted_tokens();
        if let Some(path) = self.known_path() {
            return Ok(path);
        }
        // Without a budget, the search should find as few tokens as it would with any budget.
        let left = self.token_budget_left().map_or(0, |left| left.max(0) as u64);
        let path = match self.cursors.is_some() {
            true => self.canonical_path(left)?,
            false => {
                if let Some(path) =
                    self.with_endings(|run, endings, here| run.path_to_end_by_counting(endings, here, left))?
                {
                    return Ok(self.keep_path(path));
                }
                let mut path = self.with_endings(|run, endings, here| run.path_to_end(endings, here))?;
                let is_long = |path: &Option<Vec<u32>>| path.as_ref().is_none_or(|path| path.len() as u64 > left);
                if is_long(&path) {
                    path =
                        shorter(path, self.with_endings(|run, endings, here| run.path_to_end_in_bytes(endings, here))?);
                }
                if let [.., before, now] = self.history[..]
                    && now.token != NO_TOKEN
                    && is_long(&path)
                {
                    let before = (before.configuration, now.token);
                    let paths = self.budget.as_ref().and_then(|budget| budget.left.clone());
                    let paths = paths.filter(|&(at, _)| at + 1 == accepted).map(|(_, paths)| paths);
                    let behind = |run: &mut Run<'_>, endings: &mut Endings, here| {
                        run.path_to_end_after(endings, paths.as_deref(), before, here, left)
                    };
                    path = shorter(path, self.with_endings(behind)?);
                }
                path
            }
        };
        Ok(self.keep_path(path.ok_or(MatcherError::NoTokensComplete)?))
    }

    /// Stores a path from here with the budget, if there is one.
    fn keep_path(&mut self, path: Vec<u32>) -> Arc<[u32]> {
        let accepted = self.num_accepted_tokens();
        let path: Arc<[u32]> = path.into();
        if let Some(budget) = &mut self.budget {
            budget.path = Some((accepted, path.clone()));
        }
        path
    }

    /// A short canonical path to the end; `None` where none is found.
    fn canonical_path(&self, left: u64) -> Result<Option<Vec<u32>>, MatcherError> {
        let mut copy = self.clone();
        copy.budget = None;
        let mut best: Option<Vec<u32>> = None;
        for pieces in copy.with_endings(|run, endings, here| run.texts_out(endings, here))? {
            best = shorter(best, copy.canonical_tokens(&pieces)?);
        }
        if best.as_ref().is_none_or(|best| best.len() as u64 > left) {
            best = shorter(best, copy.greedy_path()?);
        }
        Ok(best)
    }

    /// The canonical tokens for a text after the accepted ones. They are accepted one by one and taken back.
    fn canonical_tokens(&mut self, pieces: &[Piece]) -> Result<Option<Vec<u32>>, MatcherError> {
        let compiled = self.compiled.clone();
        let vocabulary = compiled.vocabulary();
        let mut text: Vec<u8> = Vec::new();
        // The single tokens that the grammar names, each with its position in the text.
        let mut edges: Vec<(usize, u32)> = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(more) => text.extend_from_slice(more),
                Piece::Token(token) => edges.push((text.len(), *token)),
            }
        }
        // The choices so far: the positions in the text and in the edges before each, and the tokens that may be chosen
        // instead.
        let mut steps: Vec<(usize, usize, Vec<u32>)> = Vec::new();
        let mut chosen: Vec<u32> = Vec::new();
        let (mut at, mut edge, mut tried) = (0, 0, 0);
        let found = loop {
            if at == text.len() && edge == edges.len() && self.may_stop() {
                break true;
            }
            let others = match edges.get(edge) {
                Some(&(place, token)) if place == at => vec![token],
                next => {
                    let end = next.map_or(text.len(), |&(place, _)| place);
                    let mut tokens = Vec::new();
                    let trie = vocabulary.trie();
                    let mut node = text.get(at).filter(|_| at < end).and_then(|&byte| trie.root(byte));
                    let mut depth = 1;
                    while let Some(here) = node {
                        if let Some(token) = trie.entry_at(here) {
                            tokens.push(token);
                            tokens.extend(vocabulary.same_bytes(token));
                        }
                        node =
                            text.get(at + depth).filter(|_| at + depth < end).and_then(|&byte| trie.child(here, byte));
                        depth += 1;
                    }
                    tokens
                }
            };
            steps.push((at, edge, others));
            let moved = loop {
                let Some((place, edges_before, others)) = steps.last_mut() else { break false };
                let Some(token) = others.pop().filter(|_| tried < LOOKED_AT) else {
                    steps.pop();
                    if chosen.pop().is_some() {
                        self.rollback(1)?;
                    }
                    continue;
                };
                tried += 1;
                let is_edge = edges.get(*edges_before).is_some_and(|&(edge, _)| edge == *place);
                (at, edge) = match is_edge {
                    true => (*place, *edges_before + 1),
                    false => (*place + vocabulary.token_bytes(token).map_or(0, <[u8]>::len), *edges_before),
                };
                if self.accept_token(token)? {
                    chosen.push(token);
                    break true;
                }
            };
            if !moved {
                break false;
            }
        };
        self.rollback(chosen.len())?;
        Ok(found.then_some(chosen))
    }

    /// A path to the end that at each step takes the token of the mask that seems closest to the end.
    fn greedy_path(&mut self) -> Result<Option<Vec<u32>>, MatcherError> {
        let mut chosen: Vec<u32> = Vec::new();
        let mut mask = vec![0; self.compiled.vocabulary().mask_words()];
        let found = loop {
            if self.may_stop() {
                break true;
            }
            if chosen.len() >= MANY {
                break false;
            }
            match self.fill_mask(&mut mask) {
                Err(MatcherError::NoTokenFits | MatcherError::NoCanonicalToken) => break false,
                filled => filled?,
            };
            let likely = self.with_endings(|run, endings, here| run.likely_tokens(endings, here, &mask))?;
            let Some(&next) = likely.first() else { break false };
            if !self.accept_token(next)? {
                break false;
            }
            chosen.push(next);
        };
        self.rollback(chosen.len())?;
        Ok(found.then_some(chosen))
    }

    /// Keeps the tokens of a canonical mask after which a canonical path to the end fits the budget. Only a limited
    /// number is tried.
    fn narrow_canonical(&mut self, most: u64, mask: &mut [u32]) -> Result<(), MatcherError> {
        let likely = self.with_endings(|run, endings, here| run.likely_tokens(endings, here, mask))?;
        mask.fill(0);
        let mut copy = self.clone();
        copy.budget = None;
        for token in likely.into_iter().take(FEW) {
            if !copy.accept_token(token)? {
                continue;
            }
            let closes = copy.may_stop() || copy.canonical_path(most)?.is_some_and(|path| path.len() as u64 <= most);
            copy.rollback(1)?;
            if closes {
                token_set::set(mask, token);
            }
        }
        Ok(())
    }

    fn with_endings<T>(
        &mut self,
        operation: impl FnOnce(&mut Run<'_>, &mut Endings, SetId) -> Result<T, EngineError>,
    ) -> Result<T, MatcherError> {
        let layout = self.layout()?;
        let now = self.now();
        let stacks = Arc::make_mut(&mut self.stacks);
        let result =
            layout.with_endings(stacks, now.configuration, |run, endings| operation(run, endings, now.configuration));
        stacks.rewind(now.mark);
        Ok(result.inspect_err(|error| retire_if_full(&self.compiled, &layout, error))?)
    }
}
