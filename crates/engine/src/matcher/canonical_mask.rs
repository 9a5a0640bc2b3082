//! The canonical mask of a step: the plain one, less what the tokenizer would not write.

use std::sync::Arc;

use crate::canonical::encoding::Encoding;
use crate::canonical::mask::masks::{Before, CanonicalMasks, CanonicalVerdict, FEW_TOKENS, cache_of};
use crate::canonical::viability::crossing::SuffixesBehind;
use crate::canonical::viability::dead_ends::DeadEnds;
use crate::canonical::viability::sparse::listed_tokens;
use crate::compiled::{Layout, PlainMask};
use crate::error::EngineError;
use crate::locks::{Guard, lock};
use crate::mask::cache::KeptMask;
use crate::parse::stepper::Run;
use crate::state::stacks::{SetId, Stacks};
use crate::switches::Switch;
use crate::vocabulary::token_set;

/// The tokens that fit, the plain mask, and how that is kept.
type Told<'m> = (&'m [u32], &'m [u32], Option<&'m KeptMask>);

impl Layout {
    /// Writes the canonical mask of a configuration behind a token and its cursor, without stop tokens. Says behind
    /// which tokens something leads on; `None` where the grammar alone allows none.
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
        let plain = self.fill_mask(stacks, configuration, mask, true)?;
        match plain.allowed {
            Some(0) => Ok(None),
            Some(1..=FEW_TOKENS) if Switch::CanonicalSparse.is_on() => {
                let listed = plain.kept.clone();
                let kept = self.few(stacks, configuration, encoding, before, plain, mask)?;
                match listed.as_deref().and_then(listed_tokens) {
                    // A few bits are sooner cleared than a mask is.
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
                // What is found is kept for sequences that have read something else, too.
                plain.refused.iter().for_each(|&token| token_set::set(mask, token));
                let dead_ends = self.dead_ends(stacks, configuration, encoding, before, (&fitting, mask, kept))?;
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
        let kept = cache.few.get_mut(before).filter(|_| Switch::CanonicalSparseCache.is_on());
        let Some(kept) = kept else { return Ok(None) };
        self.with(stacks, |run| {
            let Some(here) = run.without_text(configuration)? else { return Ok(None) };
            let saturated = run.saturated(here)?;
            let Some(known) = kept.find(run.machine, run.stacks, saturated) else { return Ok(None) };
            // Which keys an object has seen is not in the description of a configuration.
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
        self.with(stacks, |run| {
            let here = if plain.reads.is_some() { run.without_text(configuration)? } else { None };
            let saturated = here.map_or(Ok(configuration), |here| run.saturated(here))?;
            run.recording = here.is_none() && run.machine.keeps_text();
            run.stacks.watch();
            let in_lexemes = &mut cache.in_lexemes;
            let told = (mask, plain.kept.as_deref());
            let found = run.canonical_of_few(encoding, saturated, (cursor, *before), in_lexemes, told);
            let own_reads = run.stacks.unwatch();
            let found = Arc::new(found?.into_boxed_slice());
            if let (Some(mut reads), Some(own)) = (plain.reads, own_reads) {
                reads.extend(own.into_iter().filter(|read| !reads.contains(read)).collect::<Vec<_>>());
                let cache = cache_of(&mut cache.few, (cursor.clone(), *before), self.horizon());
                cache.keep(run.machine, run.stacks, saturated, &reads, &found, found.len() * 4 + 16);
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
        told: Told<'_>,
    ) -> Result<Arc<DeadEnds>, EngineError> {
        let mut cache = self.canonical();
        self.with(stacks, |run| {
            // What an array has seen is not in the description of a configuration.
            let here = run.without_text(configuration)?;
            let saturated = here.map_or(Ok(configuration), |here| run.saturated(here))?;
            self.dead_ends_before(run, &mut cache, (saturated, here.is_some()), encoding, before, told)
        })
    }

    fn dead_ends_before(
        &self,
        run: &mut Run<'_>,
        cache: &mut CanonicalMasks,
        (saturated, keeps): (SetId, bool),
        encoding: &Encoding,
        before: &Before,
        told: Told<'_>,
    ) -> Result<Arc<DeadEnds>, EngineError> {
        let (cursor, token) = (&before.0, before.1);
        let mut is_open = false;
        let known = cache.dead_ends.get_mut(cursor).filter(|_| keeps && Switch::CanonicalDeadEndCache.is_on());
        if let Some(known) = known.and_then(|kept| kept.find(run.machine, run.stacks, saturated)) {
            if !known.is_open(encoding, token, told.0) {
                return Ok(known.clone());
            }
            is_open = true;
            let known = cache.dead_ends_behind.get_mut(before);
            if let Some(known) = known.and_then(|kept| kept.find(run.machine, run.stacks, saturated)) {
                return Ok(known.clone());
            }
        }
        // Nearly all of it is as where the piece becomes no whole one.
        let mut read_there = Some(Vec::new());
        let mut there = None;
        if let Some(without) = encoding.without_whole(cursor).filter(|_| keeps) {
            let without = (without, token);
            let known = self.dead_ends_before(run, cache, (saturated, keeps), encoding, &without, told)?;
            read_there = cache.looks_for(run, saturated, &without, &known);
            there = Some((without.0, known));
        }
        run.recording = !keeps;
        run.stacks.watch();
        let lexemes = (&mut cache.in_lexemes, &mut cache.behind);
        let found = match &there {
            Some((without, known)) => {
                run.dead_ends_in_whole(encoding, saturated, (cursor, token), (without, known), told.0)
            }
            None => run.dead_ends(encoding, saturated, (cursor, token), lexemes, told),
        };
        let reads = run.stacks.unwatch();
        let found = Arc::new(found?);
        // The slow twin of what is taken over from elsewhere: asked for anew.
        debug_assert!(
            there.is_none() || {
                let lexemes = (&mut cache.in_lexemes, &mut SuffixesBehind::default());
                let twin = run.dead_ends(encoding, saturated, (cursor, token), lexemes, told)?;
                found.tells_the_same(&twin, encoding, token, told.0, told.1)
            }
        );
        if let (Some(own), Some(mut reads)) = (reads.filter(|_| keeps), read_there) {
            reads.extend(own.into_iter().filter(|read| !reads.contains(read)).collect::<Vec<_>>());
            let cache = match is_open {
                false => cache_of(&mut cache.dead_ends, cursor.clone(), self.horizon()),
                true => cache_of(&mut cache.dead_ends_behind, before.clone(), self.horizon()),
            };
            cache.keep(run.machine, run.stacks, saturated, &reads, &found, found.memory_bytes());
        }
        Ok(found)
    }

    fn canonical(&self) -> Guard<'_, CanonicalMasks> {
        lock(&self.canonical)
    }

    fn horizon(&self) -> usize {
        self.vocabulary.trie().max_depth()
    }
}
