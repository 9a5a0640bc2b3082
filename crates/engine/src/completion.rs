//! A short text that completes the grammar from where a matcher stands.
//!
//! One lexeme after the other, always the one with which the rest takes the fewest bytes (`costs.rs`). What is chosen is
//! then read for real, so that the result is right whatever the estimate.

use std::collections::hash_map::Entry::Vacant;

use rustc_hash::FxHashMap;
use stencilm_regex::{ExprId, LimitExceeded, Shortest};

use crate::costs::{Costs, NEVER};
use crate::error::{EngineError, MatcherError};
use crate::machine::ForkId;
use crate::matcher::GrammarMatcher;
use crate::run::{Run, offers_tokens};
use crate::stacks::{Entry, SetId};

/// The search for one lexeme's text takes at most so many steps.
const MAX_STEPS: usize = 200_000;

/// So often a text for the same lexeme is looked for, where the shortest ones are keys that the object has already.
const MAX_TEXTS: u32 = 1 << 12;

/// What stands in the way of a completion.
enum Completion {
    Text(Vec<u8>),
    TooLong(u64),
    Never,
}

impl GrammarMatcher {
    /// A text that completes the grammar behind what was accepted; empty where it is complete already. It is a shortest
    /// one, except that intersections and complements count with a lower bound of their length where alternatives are
    /// compared, and that a key must be new. The same state gives the same text. Nothing is changed.
    ///
    /// # Errors
    /// [`MatcherError::CompletionTooLong`] when it takes more than `max_bytes`, [`MatcherError::NoTextCompletes`] when only
    /// single tokens that spell no text lead on, and limits.
    pub fn shortest_completion(&mut self, max_bytes: usize) -> Result<Vec<u8>, MatcherError> {
        if self.is_terminated() {
            return Ok(Vec::new());
        }
        let start = self.configuration();
        let compiled = self.compiled().clone();
        let completion = self.probe(|run| run.complete(Costs::new(compiled.grammar()), start, max_bytes as u64))?;
        match completion {
            Completion::Text(text) => Ok(text),
            Completion::TooLong(bytes) => Err(MatcherError::CompletionTooLong { bytes, max_bytes }),
            Completion::Never => Err(MatcherError::NoTextCompletes),
        }
    }
}

impl Run<'_> {
    fn complete(&mut self, mut costs: Costs, start: SetId, max_bytes: u64) -> Result<Completion, EngineError> {
        let mut text = Vec::new();
        let mut lexemes: FxHashMap<ExprId, Option<Vec<u8>>> = FxHashMap::default();
        let mut configuration = start;
        while !self.stacks.has_bottom(configuration) {
            let (least, ways) = self.ways(&mut costs, &mut lexemes, configuration)?;
            if least == NEVER {
                return Ok(Completion::Never);
            }
            let least = least.saturating_add(text.len() as u64);
            if least > max_bytes {
                return Ok(Completion::TooLong(least));
            }
            let Some((lexeme, next)) = self.take(&ways, &lexemes, configuration)? else { return Ok(Completion::Never) };
            text.extend(lexeme);
            configuration = next;
        }
        Ok(Completion::Text(text))
    }

    /// The lexemes with which the text may go on, best first, and the bytes that the rest takes with the best.
    fn ways(
        &mut self,
        costs: &mut Costs,
        lexemes: &mut FxHashMap<ExprId, Option<Vec<u8>>>,
        configuration: SetId,
    ) -> Result<(u64, Vec<ExprId>), EngineError> {
        let mut best: FxHashMap<ExprId, u64> = FxHashMap::default();
        // Only what waits is looked at: which keys an object has shows when the text is read.
        self.recording = false;
        for thread in self.stacks.entries(configuration).to_vec() {
            if thread == Entry::BOTTOM || offers_tokens(thread) {
                continue;
            }
            let fork = self.machine.fork(ForkId(thread.head)).clone();
            for (tag, lexeme) in self.lexemes(thread) {
                if let Vacant(unknown) = lexemes.entry(lexeme) {
                    let deriver = self.lexicon.deriver();
                    // Longer ones than the budget are found to be too long by this bound, without being spelled.
                    let shortest = deriver.exprs.shortest_at_least(lexeme);
                    unknown.insert(match shortest as usize > MAX_STEPS {
                        true => Some(Vec::new()),
                        false => Shortest::new(deriver, lexeme, 1, MAX_STEPS).next(deriver)?,
                    });
                }
                let Some(text) = &lexemes[&lexeme] else { continue };
                let bound = self.lexicon.deriver().exprs.shortest_at_least(lexeme);
                let length = u64::from(bound).max(text.len() as u64);
                for continuation in self.machine.continuations(&fork, tag).iter() {
                    let Some(stack) = self.push(&fork, continuation, thread)? else { continue };
                    let cost = costs.of_stack(self, stack)?.saturating_add(length);
                    let known = best.entry(lexeme).or_insert(NEVER);
                    *known = cost.min(*known);
                }
            }
        }
        self.recording = true;
        let mut ways: Vec<(u64, &[u8], ExprId)> = best
            .iter()
            .map(|(&lexeme, &cost)| (cost, lexemes[&lexeme].as_deref().unwrap_or_default(), lexeme))
            .collect();
        ways.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        ways.retain(|&(cost, ..)| cost != NEVER);
        let least = ways.first().map_or(NEVER, |&(cost, ..)| cost);
        Ok((least, ways.into_iter().map(|(_, _, lexeme)| lexeme).collect()))
    }

    /// The first text of these lexemes that can really be read, and the configuration behind it.
    fn take(
        &mut self,
        ways: &[ExprId],
        lexemes: &FxHashMap<ExprId, Option<Vec<u8>>>,
        configuration: SetId,
    ) -> Result<Option<(Vec<u8>, SetId)>, EngineError> {
        for lexeme in ways {
            if let Some(Some(text)) = lexemes.get(lexeme) {
                let next = self.run(configuration, text)?;
                if next != SetId::EMPTY {
                    return Ok(Some((text.clone(), next)));
                }
            }
        }
        // A key that the object has already: others are found by going through equal places more often.
        let mut visits = 2;
        while visits <= MAX_TEXTS {
            for &lexeme in ways {
                let mut texts = Shortest::new(self.lexicon.deriver(), lexeme, visits, MAX_STEPS);
                for _ in 0..visits {
                    let text = match texts.next(self.lexicon.deriver()) {
                        Err(LimitExceeded::Search(_)) | Ok(None) => break,
                        text => text?.unwrap_or_default(),
                    };
                    let next = self.run(configuration, &text)?;
                    if next != SetId::EMPTY {
                        return Ok(Some((text, next)));
                    }
                }
            }
            visits *= 4;
        }
        Ok(None)
    }
}
