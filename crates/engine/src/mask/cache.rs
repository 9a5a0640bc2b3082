//! Masks seen before, keyed by exactly what their computation read.
//!
//! A mask depends on the configuration and on those frames below it that some token reaches, and on no others. While a
//! mask is computed, every stack set whose content is read is noted; the cache is a tree of such reads. A lookup
//! replays them: describe the configuration, then open the sets that the tree asks for one by one, until a mask is
//! reached. Unopened sets are mere names, numbered by first occurrence, so that equal surroundings at another depth, in
//! another sequence or after a rollback are hits. Nothing is guessed, so nothing can be stale.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_support::{MANY, Table, hash_of, memory};

use crate::error::EngineError;
use crate::lexeme::mask::LexemeMask;
use crate::machine::layout::{ExpansionId, FrameId, Machine};
use crate::mask::delta::NamedRows;
use crate::mask::draft::OptimisticMask;
use crate::mask::reference::{Base, Bases};
use crate::parse::registers::kinds::describe;
use crate::parse::stepper::Run;
use crate::parse::unverified::Unverified;
use crate::state::stacks::{Entry, SetId, Stacks};
use crate::vocabulary::token_set;

/// A cached mask. It has no stop tokens and is computed as if every additional key of an object were new.
pub(crate) struct KeptMask {
    tokens: KeptTokens,
    allowed: Option<usize>,
    unverified: Box<[Unverified]>,
    /// Bytes of memory held.
    bytes: usize,
}

enum KeptTokens {
    Listed(Box<[u32]>),
    Patched { lexeme_mask: Arc<LexemeMask>, flipped: Box<[u32]> },
    Near { base: Arc<Base>, flipped: Box<[u32]> },
}

impl KeptMask {
    /// Stores the mask in `words` in the smallest form that fits; it may share memory with a recent mask.
    pub fn new(words: &[u32], draft: &OptimisticMask, bases: &mut Bases) -> KeptMask {
        let mut kept = draft.flipped.clone();
        let mut cleared = draft.cleared.clone();
        if !cleared.is_empty() {
            // A token that was flipped twice is unchanged. Only tokens that were cleared once can be flipped twice.
            cleared.sort_unstable();
            cleared.dedup();
            let turned = |token: u32| draft.flipped.iter().filter(|&&flipped| flipped == token).count();
            kept.retain(|token| cleared.binary_search(token).is_err());
            kept.extend(cleared.into_iter().filter(|&token| turned(token) % 2 == 1));
        }
        let allowed = match &draft.lexeme_mask {
            // Counting all bits takes as long as writing a mask, and callers seldom need the number.
            _ if draft.joined => None,
            None => Some(kept.len()),
            Some(lexeme_mask) => {
                let added = kept.iter().filter(|&&token| token_set::get(words, token)).count();
                Some(lexeme_mask.count + added - (kept.len() - added))
            }
        };
        let tokens = match &draft.lexeme_mask {
            _ if draft.joined || kept.len() > MANY => {
                let (base, flipped) = bases.near(words, draft.lexeme_mask.as_ref());
                KeptTokens::Near { base, flipped: flipped.into() }
            }
            Some(lexeme_mask) => KeptTokens::Patched { lexeme_mask: lexeme_mask.clone(), flipped: kept.into() },
            None => KeptTokens::Listed(kept.into()),
        };
        let listed = match &tokens {
            KeptTokens::Listed(tokens) | KeptTokens::Patched { flipped: tokens, .. } => tokens.len() * 4,
            // The first mask that uses a reference mask is charged for its words.
            KeptTokens::Near { base, flipped } if flipped.is_empty() => base.bytes(),
            KeptTokens::Near { flipped, .. } => flipped.len() * 4,
        };
        let bytes = listed + draft.unverified.len() * size_of::<Unverified>();
        KeptMask { tokens, allowed, unverified: draft.unverified[..].into(), bytes }
    }

    /// The number of allowed tokens; `None` where there are more than [`MANY`] and nobody counted them.
    pub fn allowed(&self) -> Option<usize> {
        self.allowed
    }

    /// The tokens that must be decided anew for every sequence, because they may end a key that was used before.
    pub fn unverified(&self) -> &[Unverified] {
        &self.unverified
    }

    /// The number of a row from which the mask differs in few tokens.
    pub fn row(&self, named: &NamedRows) -> u32 {
        match &self.tokens {
            KeptTokens::Listed(_) => 0,
            KeptTokens::Patched { lexeme_mask, .. } => named.number_of_lexeme_mask(lexeme_mask),
            KeptTokens::Near { base, .. } => named.number_of_base(base),
        }
    }

    /// The tokens in which the mask differs from its row, in any order.
    pub fn flipped(&self) -> &[u32] {
        match &self.tokens {
            KeptTokens::Listed(tokens) => tokens,
            KeptTokens::Patched { flipped, .. } | KeptTokens::Near { flipped, .. } => flipped,
        }
    }

    /// Whether the row of the mask has a token.
    pub fn row_has(&self, token: u32) -> bool {
        match &self.tokens {
            KeptTokens::Listed(_) => false,
            KeptTokens::Patched { lexeme_mask, .. } => lexeme_mask.has(token),
            KeptTokens::Near { base, .. } => base.has(token),
        }
    }

    /// A list that holds every token of the mask and perhaps others; `None` where it would be longer than `most`.
    pub fn few_tokens(&self, most: usize) -> Option<Vec<u32>> {
        let (lexeme_mask, flipped) = self.beside_lexeme_mask()?;
        let listed = lexeme_mask.map_or(Some(&[][..]), |lexeme_mask| lexeme_mask.listed.as_deref())?;
        (listed.len() + flipped.len() <= most).then(|| [listed, flipped].concat())
    }

    /// Writes the mask.
    pub fn write(&self, mask: &mut [u32]) {
        match &self.tokens {
            KeptTokens::Near { base, flipped } => {
                base.write(mask);
                flipped.iter().for_each(|&token| token_set::flip(mask, token));
            }
            KeptTokens::Patched { lexeme_mask, flipped } => {
                lexeme_mask.write(mask);
                flipped.iter().for_each(|&token| token_set::flip(mask, token));
            }
            KeptTokens::Listed(tokens) => {
                mask.fill(0);
                tokens.iter().for_each(|&token| token_set::set(mask, token));
            }
        }
    }

    /// The lexeme mask that this mask was built from, if any, and the tokens in which the two differ. `None` where the
    /// difference is not stored.
    pub fn beside_lexeme_mask(&self) -> Option<(Option<&Arc<LexemeMask>>, &[u32])> {
        match &self.tokens {
            KeptTokens::Near { .. } => None,
            KeptTokens::Patched { lexeme_mask, flipped } => Some((Some(lexeme_mask), flipped)),
            KeptTokens::Listed(tokens) => Some((None, tokens)),
        }
    }

    /// The tokens in which the mask differs from `lexeme_mask`; `None` if it was not built from that one.
    pub fn beside(&self, lexeme_mask: &Arc<LexemeMask>) -> Option<&[u32]> {
        let (own, beside) = self.beside_lexeme_mask()?;
        own.is_some_and(|own| Arc::ptr_eq(own, lexeme_mask)).then_some(beside)
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A node of the tree of reads.
struct Node<T> {
    /// The parent node; for the first node of a key, [`ROOT`] with the number of the key.
    parent: u32,
    /// What was described at this node: the range of its words in the list of descriptions.
    described: (u32, u32),
    look: Look<T>,
}

enum Look<T> {
    /// Open the set with this name; its content decides which child comes next.
    Open(u32),
    Found(Arc<T>),
}

/// Set in the parent of first nodes; the other bits are the number of a key.
const ROOT: u32 = 1 << 31;

/// The masks of one grammar, within a budget of bytes.
pub(crate) type MaskCache = DependencyCache<KeptMask>;

/// Results that were computed for the configurations of one grammar, within a budget of bytes.
pub(crate) struct DependencyCache<T> {
    nodes: Vec<Node<T>>,
    /// The nodes by their parent and description.
    index: Table,
    descriptions: Vec<u64>,
    names: Names,
    /// Bytes held by the cached results.
    in_found: usize,
    budget: usize,
    /// The parent of the first nodes of the key in use.
    root: u32,
}

/// Sets numbered by first occurrence, and the description that was written last.
#[derive(Default)]
struct Names {
    sets: Vec<SetId>,
    /// For each name, whether the set was opened.
    opened: Vec<bool>,
    description: Vec<u64>,
    /// The length of the longest token. Counts further than this from their bounds make no difference.
    horizon: u32,
}

impl Names {
    /// Describes the threads of a configuration. The numbering starts anew.
    fn begin(&mut self, machine: &Machine, stacks: &Stacks, threads: &[Entry]) {
        self.sets.clear();
        self.opened.clear();
        self.describe(machine, stacks, threads, true);
    }

    fn number(&mut self, set: SetId) -> u64 {
        let found = self.sets.iter().position(|&known| known == set);
        found.unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        }) as u64
    }

    /// Describes the entries of a set without what lies below them.
    fn describe(&mut self, machine: &Machine, stacks: &Stacks, entries: &[Entry], is_configuration: bool) {
        self.description.clear();
        for &entry in entries {
            if entry == Entry::BOTTOM {
                self.description.push(u64::MAX);
                continue;
            }
            let frame =
                if is_configuration { machine.fork(ExpansionId(entry.head)).frame } else { FrameId(entry.head) };
            self.description.push(u64::from(entry.head) << 32 | u64::from(entry.state));
            describe(machine, stacks, (frame, entry.register), self.horizon, &mut self.description);
            let below = self.number(entry.below);
            self.description.push(below);
        }
    }
}

impl<T> DependencyCache<T> {
    pub fn new(budget: usize, horizon: usize) -> DependencyCache<T> {
        DependencyCache {
            nodes: Vec::new(),
            index: Table::default(),
            descriptions: Vec::new(),
            names: Names { horizon: horizon as u32, ..Names::default() },
            in_found: 0,
            budget,
            root: ROOT,
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_list(&self.nodes) + memory::of_list(&self.descriptions) + self.index.memory_bytes() + self.in_found
    }

    /// The cached result for a configuration, if one exists whose reads all give the same content.
    pub fn find(&mut self, machine: &Machine, stacks: &Stacks, configuration: SetId) -> Option<&Arc<T>> {
        self.find_of(machine, stacks, stacks.entries(configuration))
    }

    /// The same for the threads of a configuration in the form in which [`Stacks::join`] leaves them.
    pub fn find_of(&mut self, machine: &Machine, stacks: &Stacks, threads: &[Entry]) -> Option<&Arc<T>> {
        self.replay(machine, stacks, threads, |_| {})
    }

    /// The cached result for a configuration. If there is none, computes the result and caches it, with its size, under
    /// the sets that the computation read. Either way these reads count for whatever tracks reads around this call. The
    /// flag says whether the result came from the cache.
    pub fn get_or_compute<'a>(
        &mut self,
        run: &mut Run<'a>,
        configuration: SetId,
        compute: impl FnOnce(&mut Run<'a>) -> Result<(T, usize), EngineError>,
    ) -> Result<(Arc<T>, bool), EngineError> {
        if let Some(known) = self.get(run, configuration) {
            return Ok((known, true));
        }
        let (computed, reads) = run.tracked(compute);
        let (computed, size) = computed?;
        let computed = Arc::new(computed);
        if let Some(reads) = reads {
            self.keep(run.machine, run.stacks, configuration, &reads, &computed, size);
        }
        Ok((computed, false))
    }

    /// The cached result for a configuration. The sets that it depends on count as read.
    pub fn get(&mut self, run: &mut Run<'_>, configuration: SetId) -> Option<Arc<T>> {
        let mut reads = Vec::new();
        let threads = run.stacks.entries(configuration);
        let known = self.replay(run.machine, run.stacks, threads, |set| reads.push(set))?.clone();
        reads.into_iter().for_each(|set| run.stacks.look_at(set));
        Some(known)
    }

    /// The sets that the cached result for a configuration depends on.
    pub fn looks(&mut self, machine: &Machine, stacks: &Stacks, configuration: SetId) -> Option<Vec<SetId>> {
        let mut reads = Vec::new();
        self.replay(machine, stacks, stacks.entries(configuration), |set| reads.push(set)).map(|_| reads)
    }

    fn replay(
        &mut self,
        machine: &Machine,
        stacks: &Stacks,
        threads: &[Entry],
        mut opened: impl FnMut(SetId),
    ) -> Option<&Arc<T>> {
        self.names.begin(machine, stacks, threads);
        let mut node = self.child_of(self.root)?;
        while let Look::Open(name) = self.nodes[node as usize].look {
            let set = self.names.sets[name as usize];
            opened(set);
            self.names.describe(machine, stacks, stacks.entries(set), false);
            node = self.child_of(node)?;
        }
        match &self.nodes[node as usize].look {
            Look::Found(kept) => Some(kept),
            Look::Open(_) => unreachable!("the loop ends where nothing is to be opened"),
        }
    }

    /// Caches a result under the sets that its computation read, in the order of the first reads. If this order
    /// contradicts that of an earlier result, the new one is not cached: that costs a later hit but is never wrong.
    pub fn keep(
        &mut self,
        machine: &Machine,
        stacks: &Stacks,
        configuration: SetId,
        reads: &[SetId],
        kept: &Arc<T>,
        size: usize,
    ) {
        if self.memory_bytes() > self.budget {
            // The simplest fair eviction is to drop everything: masks in use are computed again at once, all others are
            // gone.
            let root = self.root;
            *self = DependencyCache { root, ..DependencyCache::new(self.budget, self.names.horizon as usize) };
        }
        self.names.begin(machine, stacks, stacks.entries(configuration));
        let mut parent = self.root;
        loop {
            // The first set read that has a name by now and was not opened yet. Every round searches all reads from the
            // start: a set may be read early, because the computation happens to build the same one, and get its name
            // only later.
            let Names { sets, opened, .. } = &mut self.names;
            opened.resize(sets.len(), false);
            let next = reads.iter().find_map(|read| {
                let name = sets.iter().position(|known| known == read)?;
                (!opened[name]).then_some(name as u32)
            });
            if let Some(name) = next {
                opened[name as usize] = true;
            }
            let child = match self.child_of(parent) {
                Some(child) => child,
                None => self.add(parent, next.map_or_else(|| Look::Found(kept.clone()), Look::Open), size),
            };
            match (&self.nodes[child as usize].look, next) {
                (Look::Open(name), Some(next)) if *name == next => {
                    let set = self.names.sets[next as usize];
                    self.names.describe(machine, stacks, stacks.entries(set), false);
                    parent = child;
                }
                _ => return,
            }
        }
    }

    /// The child of a node whose description is the one written last.
    fn child_of(&self, parent: u32) -> Option<u32> {
        let described = &self.names.description[..];
        let is_it = |node: u32| {
            let Node { parent: above, described: (start, len), .. } = self.nodes[node as usize];
            above == parent && self.descriptions[start as usize..][..len as usize] == *described
        };
        self.index.find(hash_of(&(parent, described)), is_it)
    }

    /// Adds a child with the description written last.
    fn add(&mut self, parent: u32, look: Look<T>, found_bytes: usize) -> u32 {
        let (id, start, len) = (self.nodes.len() as u32, self.descriptions.len(), self.names.description.len());
        if let Look::Found(_) = look {
            self.in_found += found_bytes + memory::of_shared::<T>(1);
        }
        self.descriptions.extend_from_slice(&self.names.description);
        self.nodes.push(Node { parent, described: (start as u32, len as u32), look });
        self.index.insert(hash_of(&(parent, &self.names.description[..])), id);
        id
    }
}

/// A [`DependencyCache`] with a further key beside the configuration, such as the suffixes of crossing tokens.
pub(crate) struct DependencyCaches<K, T> {
    /// The number of each key; its first nodes hang below [`ROOT`] with this number.
    numbers: FxHashMap<K, u32>,
    cache: DependencyCache<T>,
}

impl<K: Hash + Eq, T> DependencyCaches<K, T> {
    /// An empty cache of at most `budget` bytes. No token has more than `horizon` bytes.
    pub fn new(budget: usize, horizon: usize) -> DependencyCaches<K, T> {
        DependencyCaches { numbers: FxHashMap::default(), cache: DependencyCache::new(budget, horizon) }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(K, u32)>(self.numbers.capacity()) + self.cache.memory_bytes()
    }

    /// The results cached under a key, if there can be any.
    pub fn get(&mut self, key: &K) -> Option<&mut DependencyCache<T>> {
        self.cache.root = ROOT | *self.numbers.get(key)?;
        Some(&mut self.cache)
    }

    /// The results cached under a key; the key is added if it is new.
    pub fn of(&mut self, key: K) -> &mut DependencyCache<T> {
        if self.memory_bytes() > self.cache.budget {
            *self = DependencyCaches::new(self.cache.budget, self.cache.names.horizon as usize);
        }
        let next = self.numbers.len() as u32;
        self.cache.root = ROOT | *self.numbers.entry(key).or_insert(next);
        &mut self.cache
    }
}
