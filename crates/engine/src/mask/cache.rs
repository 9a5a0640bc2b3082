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

/// A mask as it is kept, without stop tokens and as if every additional key of an object were new.
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
    /// The mask of these words. It may share those of another one.
    pub fn new(words: &[u32], draft: &OptimisticMask, bases: &mut Bases) -> KeptMask {
        let mut kept = draft.flipped.clone();
        let mut cleared = draft.cleared.clone();
        if !cleared.is_empty() {
            // A token that was turned over twice is as it was. Only those that were cleared once can be.
            cleared.sort_unstable();
            cleared.dedup();
            let turned = |token: u32| draft.flipped.iter().filter(|&&flipped| flipped == token).count();
            kept.retain(|token| cleared.binary_search(token).is_err());
            kept.extend(cleared.into_iter().filter(|&token| turned(token) % 2 == 1));
        }
        let allowed = match &draft.lexeme_mask {
            // To count all bits takes as long as to write a mask, and hardly anybody asks.
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
            // Who has it first holds the words.
            KeptTokens::Near { base, flipped } if flipped.is_empty() => base.bytes(),
            KeptTokens::Near { flipped, .. } => flipped.len() * 4,
        };
        let bytes = listed + draft.unverified.len() * size_of::<Unverified>();
        KeptMask { tokens, allowed, unverified: draft.unverified[..].into(), bytes }
    }

    /// How many tokens it allows; `None` for more than [`MANY`] that were not counted.
    pub fn allowed(&self) -> Option<usize> {
        self.allowed
    }

    /// The tokens that must be decided anew for every sequence, because they may end a key seen before.
    pub fn unverified(&self) -> &[Unverified] {
        &self.unverified
    }

    /// The number of a row that differs from the mask in few tokens.
    pub fn row(&self, named: &NamedRows) -> u32 {
        match &self.tokens {
            KeptTokens::Listed(_) => 0,
            KeptTokens::Patched { lexeme_mask, .. } => named.number_of_lexeme_mask(lexeme_mask),
            KeptTokens::Near { base, .. } => named.number_of_base(base),
        }
    }

    /// The tokens in which it differs from its row, in any order.
    pub fn flipped(&self) -> &[u32] {
        match &self.tokens {
            KeptTokens::Listed(tokens) => tokens,
            KeptTokens::Patched { flipped, .. } | KeptTokens::Near { flipped, .. } => flipped,
        }
    }

    /// Whether its row has a token.
    pub fn row_has(&self, token: u32) -> bool {
        match &self.tokens {
            KeptTokens::Listed(_) => false,
            KeptTokens::Patched { lexeme_mask, .. } => lexeme_mask.has(token),
            KeptTokens::Near { base, .. } => base.has(token),
        }
    }

    /// The tokens of the mask, and perhaps some that it lacks, where they are no more than so many.
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

    /// The lexeme mask that it began with, if there is one, and the tokens that it allows beside those, with those of
    /// the lexeme mask that it does not; `None` where that is not known.
    pub fn beside_lexeme_mask(&self) -> Option<(Option<&Arc<LexemeMask>>, &[u32])> {
        match &self.tokens {
            KeptTokens::Near { .. } => None,
            KeptTokens::Patched { lexeme_mask, flipped } => Some((Some(lexeme_mask), flipped)),
            KeptTokens::Listed(tokens) => Some((None, tokens)),
        }
    }

    /// The same, if it began with this lexeme mask.
    pub fn beside(&self, lexeme_mask: &Arc<LexemeMask>) -> Option<&[u32]> {
        let (own, beside) = self.beside_lexeme_mask()?;
        own.is_some_and(|own| Arc::ptr_eq(own, lexeme_mask)).then_some(beside)
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A node of the tree of looks.
struct Node<T> {
    /// The node above; [`ROOT`] and the number of the key for a first one.
    parent: u32,
    /// What was described there, as a part of the descriptions.
    described: (u32, u32),
    look: Look<T>,
}

enum Look<T> {
    /// Open the set with this name; the content found says where to go on.
    Open(u32),
    Found(Arc<T>),
}

/// In place of the node above a first one, with the number of a key.
const ROOT: u32 = 1 << 31;

/// The masks of one grammar, within a budget of bytes.
pub(crate) type MaskCache = DependencyCache<KeptMask>;

/// What was computed for the configurations of one grammar, within a budget of bytes.
pub(crate) struct DependencyCache<T> {
    nodes: Vec<Node<T>>,
    /// The nodes by parent and description.
    index: Table,
    descriptions: Vec<u64>,
    names: Names,
    /// Bytes that are held by what was found.
    in_found: usize,
    budget: usize,
    /// Where first nodes are now.
    root: u32,
}

/// The names of sets, by first occurrence, and the description last written.
#[derive(Default)]
struct Names {
    sets: Vec<SetId>,
    /// By name whether the set was opened.
    opened: Vec<bool>,
    description: Vec<u64>,
    /// The length of the longest token: counts further than this from their bounds make no difference.
    horizon: u32,
}

impl Names {
    /// Describes the threads of a configuration, from which naming begins.
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

    /// Describes the entries of a set without saying what lies below them.
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

    /// What was kept for a configuration, if it was for all that it depends on.
    pub fn find(&mut self, machine: &Machine, stacks: &Stacks, configuration: SetId) -> Option<&Arc<T>> {
        self.find_of(machine, stacks, stacks.entries(configuration))
    }

    /// The same for the threads of a configuration, as [`Stacks::join`] leaves them.
    pub fn find_of(&mut self, machine: &Machine, stacks: &Stacks, threads: &[Entry]) -> Option<&Arc<T>> {
        self.replay(machine, stacks, threads, |_| {})
    }

    /// What was kept for a configuration, or what is computed now, which is kept with its size under what was read for it. Both
    /// read it for what is tracked around them. Says whether it was kept before.
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

    /// What was kept for a configuration. What it depends on is read for what is tracked around it.
    pub fn get(&mut self, run: &mut Run<'_>, configuration: SetId) -> Option<Arc<T>> {
        let mut reads = Vec::new();
        let threads = run.stacks.entries(configuration);
        let known = self.replay(run.machine, run.stacks, threads, |set| reads.push(set))?.clone();
        reads.into_iter().for_each(|set| run.stacks.look_at(set));
        Some(known)
    }

    /// The sets that what was kept for a configuration depends on.
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

    /// Keeps what a computation has found that has read these sets, in the order of the first look, and its size. Where the
    /// order contradicts an earlier one it is not kept, which costs a hit and no correctness.
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
            // Simplest fair eviction: the masks in use come back at once, the others are gone.
            let root = self.root;
            *self = DependencyCache { root, ..DependencyCache::new(self.budget, self.names.horizon as usize) };
        }
        self.names.begin(machine, stacks, stacks.entries(configuration));
        let mut parent = self.root;
        loop {
            // The first set read that has a name by now and was not opened yet. All reads are looked through each time: a
            // set may be read early, where the computation happens to make the same one, and get its name only later.
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

    /// The node below another one with the description last written.
    fn child_of(&self, parent: u32) -> Option<u32> {
        let described = &self.names.description[..];
        let is_it = |node: u32| {
            let Node { parent: above, described: (start, len), .. } = self.nodes[node as usize];
            above == parent && self.descriptions[start as usize..][..len as usize] == *described
        };
        self.index.find(hash_of(&(parent, described)), is_it)
    }

    /// A node below another one with the description last written.
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

/// A [`DependencyCache`] with a key beside the configuration, as the suffixes of the tokens that leave a lexeme.
pub(crate) struct DependencyCaches<K, T> {
    /// The number of each key, under which its first nodes are.
    numbers: FxHashMap<K, u32>,
    cache: DependencyCache<T>,
}

impl<K: Hash + Eq, T> DependencyCaches<K, T> {
    /// Nothing yet, and so many bytes at most. No token has more bytes than `horizon`.
    pub fn new(budget: usize, horizon: usize) -> DependencyCaches<K, T> {
        DependencyCaches { numbers: FxHashMap::default(), cache: DependencyCache::new(budget, horizon) }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_table::<(K, u32)>(self.numbers.capacity()) + self.cache.memory_bytes()
    }

    /// What is kept under a key, if anything may be.
    pub fn get(&mut self, key: &K) -> Option<&mut DependencyCache<T>> {
        self.cache.root = ROOT | *self.numbers.get(key)?;
        Some(&mut self.cache)
    }

    /// What is kept under a key, and where to keep more.
    pub fn of(&mut self, key: K) -> &mut DependencyCache<T> {
        if self.memory_bytes() > self.cache.budget {
            *self = DependencyCaches::new(self.cache.budget, self.cache.names.horizon as usize);
        }
        let next = self.numbers.len() as u32;
        self.cache.root = ROOT | *self.numbers.entry(key).or_insert(next);
        &mut self.cache
    }
}
