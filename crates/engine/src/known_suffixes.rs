//! What goes on behind a lexeme: of the suffixes with which tokens leave it, those that the grammar reads where it stands then.
//!
//! A mask is kept for one place of a text. But wherever in a free key it is, the quote leads to the same: only the names that
//! the key must not have differ. So what goes on behind the quote is kept with what it depends on, as masks are.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::cache::LookCache;
use crate::error::EngineError;
use crate::exits::{Exits, Suffixes};
use crate::run::{Doubt, Run};
use crate::stacks::{Entry, SetId};
use crate::walk::Walk;

/// So many lists of suffixes are told apart.
const MAX_LISTS: usize = 64;

/// Bytes that may be kept by one list of suffixes.
const BUDGET: usize = 1 << 18;

/// The suffixes that are read.
struct Found {
    /// Kept, so that no other suffixes get their place in memory.
    _all: Arc<Suffixes>,
    /// Each with whether it may have been wrong to take the keys on the way for new ones.
    suffixes: Box<[(u32, Doubt)]>,
}

/// The suffixes that are read behind lexemes. The slow twin is the walk of all of them.
pub(crate) struct KnownSuffixes {
    /// By the place of the suffixes in memory, and whether an element of an array was in doubt before.
    known: FxHashMap<(usize, bool), LookCache<Found>>,
    horizon: usize,
}

impl KnownSuffixes {
    /// Nothing yet. No token has more bytes than `horizon`.
    pub fn new(horizon: usize) -> KnownSuffixes {
        KnownSuffixes { known: FxHashMap::default(), horizon }
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        self.known.values().map(LookCache::memory_bytes).sum()
    }

    /// Calls `reached` for every suffix of some exits that is read by some threads, once or more, with what is in doubt then.
    /// `element` says that the lexeme may be an element of an array which is there already.
    pub fn read(
        &mut self,
        run: &mut Run<'_>,
        exits: &Exits,
        threads: &mut Vec<Entry>,
        element: bool,
        mut reached: impl FnMut(u32, Doubt),
    ) -> Result<(), EngineError> {
        let start = run.stacks.configuration(threads)?;
        // What one mask has found out of a very ambiguous grammar it does not look at again.
        if run.known.is_some() {
            return walk(run, exits, start, element, reached);
        }
        let name = (Arc::as_ptr(exits.shared_suffixes()).addr(), element);
        if self.known.len() >= MAX_LISTS && !self.known.contains_key(&name) {
            self.known.clear();
        }
        let known = self.known.entry(name).or_insert_with(|| LookCache::new(BUDGET, self.horizon));
        if let Some(found) = known.find_and_look(run.machine, run.stacks, start) {
            debug_assert!(found.suffixes == read(run, exits, start, element)?, "they were read alike before");
            found.suffixes.iter().for_each(|&(suffix, doubt)| reached(suffix, doubt));
            return Ok(());
        }
        let whole = run.stacks.watch_part();
        let suffixes = read(run, exits, start, element);
        let reads = run.stacks.unwatch_part(whole);
        let suffixes = suffixes?;
        suffixes.iter().for_each(|&(suffix, doubt)| reached(suffix, doubt));
        if let Some(reads) = reads {
            let size = size_of_val(&*suffixes);
            let found = Arc::new(Found { _all: exits.shared_suffixes().clone(), suffixes });
            known.keep(run.machine, run.stacks, start, &reads, &found, size);
        }
        Ok(())
    }
}

/// The suffixes that are read from a configuration, each once or more.
fn read(run: &mut Run<'_>, exits: &Exits, start: SetId, element: bool) -> Result<Box<[(u32, Doubt)]>, EngineError> {
    let mut suffixes = Vec::new();
    walk(run, exits, start, element, |suffix, doubt| suffixes.push((suffix, doubt)))?;
    Ok(suffixes.into())
}

fn walk(
    run: &mut Run<'_>,
    exits: &Exits,
    start: SetId,
    element: bool,
    reached: impl FnMut(u32, Doubt),
) -> Result<(), EngineError> {
    // Of the key that ends here more is known elsewhere.
    let doubt = Doubt { later: true, element, ..Doubt::default() };
    let threads = run.stacks.entries(start).to_vec();
    Walk::new(run).over(exits.suffixes(), &threads, doubt, reached)
}
