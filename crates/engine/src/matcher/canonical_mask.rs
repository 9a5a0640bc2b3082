//! The canonical mask of a step: the plain mask without the tokens that the tokenizer would not write.

use std::sync::Arc;

use stencilm_support::{BUDGET, Guard, MANY, lock};

use crate::canonical::encoding::Encoding;
use crate::canonical::masks::{Before, CanonicalMasks, CanonicalVerdict};
use crate::canonical::viability::crossing::SuffixesAfter;
use crate::canonical::viability::dead_ends::DeadEnds;
use crate::canonical::viability::question::AskedMask;
use crate::canonical::viability::sparse::listed_tokens;
use crate::compiled::Layout;
use crate::error::EngineError;
use crate::mask::pipeline::PlainMask;
use crate::parse::stepper::{Mode, Run};
use crate::state::stacks::{SetId, Stacks};
use crate::switches::Switch;
use crate::vocabulary::token_set;

impl Layout {
    /// Writes the canonical mask of a configuration after a token and its cursor, without stop tokens. The result tells
    /// which tokens have a canonical continuation; `None` where the grammar alone allows no token.
    pub(crate) fn fill_canonical_mask(
        &self,
        stacks: &mut Stacks,
        configuration: SetId,
        encoding: &Encoding,
        before: &Before,
        mask: &mut [u32],
    ) -> Result<Option<CanonicalVerdict>, EngineError> {
        if let Some(known) = self.known_few(stacks, configuration, before)? {
            mask.fill(0);
            known.iter().for_each(|&token| token_set::set(mask, token));
            return Ok(Some(CanonicalVerdict::Few(known)));
        }
        let plain = self.plain_mask(stacks, configuration, mask, true)?;
        match plain.allowed {
            Some(0) => Ok(None),
            Some(1..=MANY) if Switch::CanonicalSparse.is_on() => {
                let listed = plain.kept.clone();
                let kept = self.few(stacks, configuration, encoding, before, plain, mask)?;
                match listed.as_deref().and_then(listed_tokens) {
                    // Clearing a few bits is faster than clearing a mask.
                    Some(tokens) => tokens.for_each(|token| token_set::clear(mask, token)),
                    None => mask.fill(0),
                }
                debug_assert!(mask.iter().all(|&word| word == 0), "all of the mask is listed");
                kept.iter().for_each(|&token| token_set::set(mask, token));
                Ok(Some(CanonicalVerdict::Few(kept)))
            }
            _ => {
                let fitting = encoding.fitting(&before.0, before.1);
                let kept = plain.kept.as_deref();
                // The result is cached for other sequences too, where these tokens may be allowed.
                plain.refused.iter().for_each(|&token| token_set::set(mask, token));
                let asked = AskedMask { fitting: &fitting, mask, kept };
                let dead_ends = self.dead_ends(stacks, configuration, encoding, before, asked)?;
                token_set::keep(mask, &fitting);
                dead_ends.clear(encoding, before.1, mask);
                plain.refused.iter().for_each(|&token| token_set::clear(mask, token));
                Ok(Some(CanonicalVerdict::Many(dead_ends)))
            }
        }
    }

    fn known_few(
        &self,
        stacks: &mut Stacks,
        configuration: SetId,
        before: &Before,
    ) -> Result<Option<Arc<Box<[u32]>>>, EngineError> {
        let mut cache = self.canonical();
        let kept = cache.few.get(before).filter(|_| Switch::CanonicalSparseCache.is_on());
        let Some(kept) = kept else { return Ok(None) };
        self.with(stacks, |run| {
            let Some(here) = run.without_text(configuration)? else { return Ok(None) };
            let saturated = run.saturated(here)?;
            let Some(known) = kept.find(run.machine, run.stacks, saturated) else { return Ok(None) };
            // Which keys an object has used is no part of the cache key.
            let mut unverified = Vec::new();
            run.tokens_of_seen_keys(&self.vocabulary, configuration, &mut unverified)?;
            Ok(unverified.is_empty().then(|| known.clone()))
        })
    }

    fn few(
        &self,
        stacks: &mut Stacks,
        configuration: SetId,
        encoding: &Encoding,
        (cursor, before): &Before,
        plain: PlainMask,
        mask: &[u32],
    ) -> Result<Arc<Box<[u32]>>, EngineError> {
        let mut cache = self.canonical();
        let CanonicalMasks { few, in_lexemes, .. } = &mut *cache;
        self.with(stacks, |run| {
            let here = if plain.reads.is_some() { run.without_text(configuration)? } else { None };
            let saturated = here.map_or(Ok(configuration), |here| run.saturated(here))?;
            let mode = Mode::exact_if(here.is_none() && run.machine.keeps_text());
            let shown = (mask, plain.kept.as_deref());
            let (found, reads) = run.tracked(|run| {
                // The result depends on everything that the plain mask depends on.
                plain.reads.iter().flatten().for_each(|&read| run.stacks.look_at(read));
                run.in_mode(mode, |run| run.canonical_of_few(encoding, saturated, (cursor, *before), in_lexemes, shown))
            });
            let found = Arc::new(found?.into_boxed_slice());
            if let Some(reads) = reads.filter(|_| plain.reads.is_some()) {
                let few = few.of((cursor.clone(), *before));
                few.keep(run.machine, run.stacks, saturated, &reads, &found, found.len() * 4 + 16);
            }
            Ok(found)
        })
    }

    fn dead_ends(
        &self,
        stacks: &mut Stacks,
        configuration: SetId,
        encoding: &Encoding,
        before: &Before,
        asked: AskedMask<'_>,
    ) -> Result<Arc<DeadEnds>, EngineError> {
        let mut cache = self.canonical();
        self.with(stacks, |run| {
            // Which elements an array has is no part of the cache key.
            let here = run.without_text(configuration)?;
            let saturated = here.map_or(Ok(configuration), |here| run.saturated(here))?;
            let mode = Mode::exact_if(here.is_none());
            run.in_mode(mode, |run| {
                self.dead_ends_before(run, &mut cache, (saturated, here.is_some()), encoding, before, asked)
            })
        })
    }

    fn dead_ends_before(
        &self,
        run: &mut Run<'_>,
        cache: &mut CanonicalMasks,
        (saturated, keeps): (SetId, bool),
        encoding: &Encoding,
        before: &Before,
        asked: AskedMask<'_>,
    ) -> Result<Arc<DeadEnds>, EngineError> {
        let (cursor, token) = (&before.0, before.1);
        let mut is_open = false;
        let known = cache.dead_ends.get(cursor).filter(|_| keeps && Switch::CanonicalDeadEndCache.is_on());
        if let Some(known) = known.and_then(|kept| kept.get(run, saturated)) {
            if !known.is_open(encoding, token, asked.fitting) {
                return Ok(known);
            }
            is_open = true;
            if let Some(known) = cache.dead_ends_after.get(before).and_then(|kept| kept.get(run, saturated)) {
                return Ok(known);
            }
        }
        let mut is_taken_over = false;
        let (found, reads) = run.tracked(|run| {
            // Nearly all of the result is the same as if the piece were not a whole token.
            if let Some(without) = encoding.without_whole(cursor).filter(|_| keeps) {
                is_taken_over = true;
                let there = (without, token);
                let known = self.dead_ends_before(run, cache, (saturated, keeps), encoding, &there, asked)?;
                return run.dead_ends_in_whole(encoding, saturated, (cursor, token), (&there.0, &known), asked.fitting);
            }
            let lexemes = (&mut cache.in_lexemes, &mut cache.after);
            run.dead_ends(encoding, saturated, (cursor, token), lexemes, asked)
        });
        let found = Arc::new(found?);
        // The slow reference of a reused result is to compute it anew.
        debug_assert!(
            !is_taken_over || {
                let lexemes =
                    (&mut cache.in_lexemes, &mut SuffixesAfter::new(BUDGET, self.vocabulary.trie().max_depth()));
                let twin = run.untracked(|run| run.dead_ends(encoding, saturated, (cursor, token), lexemes, asked))?;
                found.answers_the_same(&twin, encoding, token, asked.fitting, asked.mask)
            }
        );
        if let Some(reads) = reads.filter(|_| keeps) {
            let cache = match is_open {
                false => cache.dead_ends.of(cursor.clone()),
                true => cache.dead_ends_after.of(before.clone()),
            };
            cache.keep(run.machine, run.stacks, saturated, &reads, &found, found.memory_bytes());
        }
        Ok(found)
    }

    fn canonical(&self) -> Guard<'_, CanonicalMasks> {
        lock(&self.canonical)
    }
}
