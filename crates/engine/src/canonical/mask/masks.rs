//! Canonical masks of one grammar, kept under what their computation read.
//!
//! A mask of few tokens is kept as a list, by cursor and last token. One of many is the plain mask and a row of the
//! vocabulary, less the dead ends, which do not depend on the last token and are kept by cursor.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::canonical::viability::crossing::SuffixesBehind;
use crate::canonical::viability::dead_ends::DeadEnds;
use crate::canonical::viability::sparse::listed_tokens;
use crate::canonical::whitespace::runs::BlanksInLexemes;
use crate::canonical::{CursorKey, Encoding};
use crate::compiled::{Layout, PlainMask};
use crate::error::EngineError;
use crate::locks::{Guard, lock};
use crate::mask::cache::{DependencyCache, KeptMask};
use crate::parse::stepper::Run;
use crate::state::stacks::{SetId, Stacks};
use crate::switches::Switch;
use crate::vocabulary::token_set;

/// Masks of more tokens are not listed.
const FEW_TOKENS: usize = 600;
/// For so many cursors something is kept, and so many bytes for each.
const MAX_CURSORS: usize = 4_000;
const CURSOR_BYTES: usize = 1 << 18;

/// A cursor and the token before it.
type Before = (CursorKey, Option<u32>);

/// What is known of the canonical masks of a grammar.
#[derive(Default)]
pub(crate) struct CanonicalMasks {
    few: FxHashMap<Before, DependencyCache<Box<[u32]>>>,
    dead_ends: FxHashMap<CursorKey, DependencyCache<DeadEnds>>,
    /// Where others must be asked for than those that were.
    dead_ends_behind: FxHashMap<Before, DependencyCache<DeadEnds>>,
    in_lexemes: BlanksInLexemes,
    behind: SuffixesBehind,
}

impl CanonicalMasks {
    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let few = self.few.values().map(DependencyCache::memory_bytes).sum::<usize>();
        let behind = self.dead_ends_behind.values().map(DependencyCache::memory_bytes).sum::<usize>();
        few + behind
            + self.behind.memory_bytes()
            + self.dead_ends.values().map(DependencyCache::memory_bytes).sum::<usize>()
    }

    /// The sets that some dead ends depend on, if they are kept.
    fn looks_for(
        &mut self,
        run: &Run<'_>,
        configuration: SetId,
        before: &Before,
        dead_ends: &Arc<DeadEnds>,
    ) -> Option<Vec<SetId>> {
        let caches = [self.dead_ends_behind.get_mut(before), self.dead_ends.get_mut(&before.0)];
        caches.into_iter().flatten().find_map(|kept| {
            let known = kept.find(run.machine, run.stacks, configuration);
            known
                .is_some_and(|known| Arc::ptr_eq(known, dead_ends))
                .then(|| kept.looks(run.machine, run.stacks, configuration).unwrap_or_default())
        })
    }
}

/// The tokens that fit, the plain mask, and how that is kept.
type Told<'m> = (&'m [u32], &'m [u32], Option<&'m KeptMask>);

/// Behind which tokens of a canonical mask something leads on.
#[derive(Clone)]
pub(crate) enum CanonicalVerdict {
    /// Only behind these, ascending.
    Few(Arc<Box<[u32]>>),
    /// Behind all that the grammar and the tokenizer allow but for these.
    Many(Arc<DeadEnds>),
}

impl CanonicalVerdict {
    /// Whether something leads on behind a token that fits. `apart` says that no merge joins it with the one before.
    pub fn leads_on(&self, token: u32, apart: bool) -> bool {
        match self {
            CanonicalVerdict::Few(tokens) => tokens.binary_search(&token).is_ok(),
            CanonicalVerdict::Many(dead_ends) => !dead_ends.has(token, apart),
        }
    }
}

/// The cache of a key, which is empty if there was none.
fn cache_of<K: std::hash::Hash + Eq, T>(
    caches: &mut FxHashMap<K, DependencyCache<T>>,
    key: K,
    horizon: usize,
) -> &mut DependencyCache<T> {
    if caches.len() >= MAX_CURSORS && !caches.contains_key(&key) {
        caches.clear();
    }
    caches.entry(key).or_insert_with(|| DependencyCache::new(CURSOR_BYTES, horizon))
}

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
