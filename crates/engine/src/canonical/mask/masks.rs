//! Canonical masks of one grammar, kept under what their computation read.
//!
//! A mask of few tokens is kept as a list, by cursor and last token. One of many is the plain mask and a row of the
//! vocabulary, less the dead ends, which do not depend on the last token and are kept by cursor.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::canonical::cursor::state::CursorKey;
use crate::canonical::encoding::Encoding;
use crate::canonical::encoding::Known;
use crate::canonical::viability::crossing::SuffixesBehind;
use crate::canonical::viability::dead_ends::DeadEnds;
use crate::canonical::viability::search::Search;
use crate::canonical::whitespace::runs::BlanksInLexemes;
use crate::error::EngineError;
use crate::mask::cache::DependencyCache;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;

/// Masks of more tokens are not listed.
pub(crate) const FEW_TOKENS: usize = 600;
/// For so many cursors something is kept, and so many bytes for each.
const MAX_CURSORS: usize = 4_000;
const CURSOR_BYTES: usize = 1 << 18;

/// A cursor and the token before it.
pub(crate) type Before = (CursorKey, Option<u32>);

/// What is known of the canonical masks of a grammar.
#[derive(Default)]
pub(crate) struct CanonicalMasks {
    pub few: FxHashMap<Before, DependencyCache<Box<[u32]>>>,
    pub dead_ends: FxHashMap<CursorKey, DependencyCache<DeadEnds>>,
    /// Where others must be asked for than those that were.
    pub dead_ends_behind: FxHashMap<Before, DependencyCache<DeadEnds>>,
    pub in_lexemes: BlanksInLexemes,
    pub behind: SuffixesBehind,
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
    pub fn looks_for(
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
pub(crate) fn cache_of<K: std::hash::Hash + Eq, T>(
    caches: &mut FxHashMap<K, DependencyCache<T>>,
    key: K,
    horizon: usize,
) -> &mut DependencyCache<T> {
    if caches.len() >= MAX_CURSORS && !caches.contains_key(&key) {
        caches.clear();
    }
    caches.entry(key).or_insert_with(|| DependencyCache::new(CURSOR_BYTES, horizon))
}

impl Run<'_> {
    /// Whether something leads on behind a token, from the configuration and the cursor behind it.
    pub fn goes_on_behind(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        token: u32,
        cursor: &CursorKey,
    ) -> Result<bool, EngineError> {
        let mut known = encoding.known();
        let Known { places, rows, search, .. } = &mut *known;
        let place = places.of(cursor);
        let mut search = Search::new(self, encoding, places, rows, search);
        Ok(search.leads_on(self, configuration, token, place)? != Some(false))
    }
}
