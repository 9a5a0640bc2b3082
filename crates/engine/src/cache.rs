//! Masks seen before, keyed by exactly what their computation read.
//!
//! A mask depends on the configuration and on those frames below it that some token reaches, no others. While a mask is
//! computed, every stack set whose content is looked at is noted; the cache is a tree of such looks. A lookup replays
//! them: describe the configuration, then open the sets that the tree asks for one by one, until a mask is reached. Sets
//! not opened are mere names, numbered by first occurrence, so that equal surroundings at another depth, in another
//! sequence or after a rollback are hits. Nothing is guessed, so nothing can be stale.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::machine::{ForkId, FrameId, Machine};
use crate::mask::{Doubtful, Finished};
use crate::patch::NamedRows;
use crate::row::{MAX_LISTED, Row};
use crate::stacks::{Entry, SetId, Stacks};
use crate::tokenset;

/// A mask as it is kept, without stop tokens and as if every free key of an object were new.
pub(crate) struct KeptMask {
    tokens: KeptTokens,
    allowed: usize,
    doubtful: Box<[Doubtful]>,
    /// See [`NamedRows`].
    pub number: OnceLock<u32>,
}

enum KeptTokens {
    Listed(Box<[u32]>),
    Patched { row: Arc<Row>, flipped: Box<[u32]> },
    Words(Box<[u32]>),
}

impl KeptMask {
    pub fn new(words: &[u32], draft: &Finished) -> KeptMask {
        let kept: Vec<u32> = if draft.cleared {
            // A token that was turned over twice is as it was.
            let mut flipped = draft.flipped.clone();
            flipped.sort_unstable();
            flipped.chunk_by(|a, b| a == b).filter(|same| same.len() % 2 == 1).map(|same| same[0]).collect()
        } else {
            draft.flipped.clone()
        };
        let allowed = match &draft.row {
            _ if draft.joined => words.iter().map(|word| word.count_ones() as usize).sum(),
            None => kept.len(),
            Some(row) => {
                let added = kept.iter().filter(|&&token| tokenset::get(words, token)).count();
                row.count + added - (kept.len() - added)
            }
        };
        let tokens = match &draft.row {
            _ if draft.joined || kept.len() > MAX_LISTED => KeptTokens::Words(words.into()),
            Some(row) => KeptTokens::Patched { row: row.clone(), flipped: kept.into() },
            None => KeptTokens::Listed(kept.into()),
        };
        KeptMask { tokens, allowed, doubtful: draft.doubtful[..].into(), number: OnceLock::new() }
    }

    /// How many tokens it allows.
    pub fn allowed(&self) -> usize {
        self.allowed
    }

    /// The tokens that must be decided anew for every sequence, because they may end a key seen before.
    pub fn doubtful(&self) -> &[Doubtful] {
        &self.doubtful
    }

    /// The number of a row that differs from the mask in few tokens.
    pub fn row(self: &Arc<Self>, named: &NamedRows) -> u32 {
        match &self.tokens {
            KeptTokens::Listed(_) => 0,
            KeptTokens::Patched { row, .. } => named.number_of_row(row),
            KeptTokens::Words(_) => named.number_of_mask(self),
        }
    }

    /// Writes the mask and says how many tokens it allows.
    pub fn write(&self, mask: &mut [u32]) -> usize {
        match &self.tokens {
            KeptTokens::Words(words) => mask.copy_from_slice(words),
            KeptTokens::Patched { row, flipped } => {
                row.write(mask);
                flipped.iter().for_each(|&token| tokenset::flip(mask, token));
            }
            KeptTokens::Listed(tokens) => {
                mask.fill(0);
                tokens.iter().for_each(|&token| tokenset::set(mask, token));
            }
        }
        self.allowed
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        let (KeptTokens::Words(numbers) | KeptTokens::Listed(numbers) | KeptTokens::Patched { flipped: numbers, .. }) =
            &self.tokens;
        numbers.len() * 4 + self.doubtful.len() * size_of::<Doubtful>()
    }
}

/// A node of the tree of looks.
enum Look<T> {
    /// Open the set with this number; the content found says where to go on.
    Open {
        set: u32,
        branches: FxHashMap<Box<[u64]>, u32>,
    },
    Found(Arc<T>),
}

/// The masks of one grammar, within a budget of bytes.
pub(crate) type MaskCache = LookCache<KeptMask>;

/// What was computed for the configurations of one grammar, within a budget of bytes.
pub(crate) struct LookCache<T> {
    roots: FxHashMap<Box<[u64]>, u32>,
    looks: Vec<Look<T>>,
    bytes: usize,
    budget: usize,
    /// The length of the longest token: counts further than this from their bounds make no difference.
    horizon: u32,
}

/// The names of sets, by first occurrence, and the description last written.
struct Names {
    sets: Vec<SetId>,
    description: Vec<u64>,
    horizon: u32,
}

impl Names {
    fn new(horizon: u32) -> Names {
        Names { sets: Vec::new(), description: Vec::new(), horizon }
    }

    fn number(&mut self, set: SetId) -> u64 {
        let found = self.sets.iter().position(|&known| known == set);
        found.unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        }) as u64
    }

    /// Describes a set without saying what lies below its entries.
    fn describe(&mut self, machine: &Machine, stacks: &Stacks, set: SetId, is_configuration: bool) {
        self.description.clear();
        for &entry in stacks.entries(set) {
            if entry == Entry::BOTTOM {
                self.description.push(u64::MAX);
                continue;
            }
            let frame = if is_configuration { machine.fork(ForkId(entry.head)).frame } else { FrameId(entry.head) };
            self.description.push(u64::from(entry.head) << 32 | u64::from(entry.state));
            machine.describe_register(stacks, frame, entry.register, self.horizon, &mut self.description);
            let below = self.number(entry.below);
            self.description.push(below);
        }
    }
}

impl<T> LookCache<T> {
    pub fn new(budget: usize, horizon: usize) -> LookCache<T> {
        let horizon = horizon as u32;
        LookCache { roots: FxHashMap::default(), looks: Vec::new(), bytes: 0, budget, horizon }
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// What was kept for a configuration, if it was for all that it depends on.
    pub fn find(&self, machine: &Machine, stacks: &Stacks, configuration: SetId) -> Option<&Arc<T>> {
        self.replay(machine, stacks, configuration, |_| {})
    }

    /// The sets that what was kept for a configuration depends on.
    pub fn looks(&self, machine: &Machine, stacks: &Stacks, configuration: SetId) -> Option<Vec<SetId>> {
        let mut reads = Vec::new();
        self.replay(machine, stacks, configuration, |set| reads.push(set)).map(|_| reads)
    }

    fn replay(
        &self,
        machine: &Machine,
        stacks: &Stacks,
        configuration: SetId,
        mut opened: impl FnMut(SetId),
    ) -> Option<&Arc<T>> {
        let mut names = Names::new(self.horizon);
        names.describe(machine, stacks, configuration, true);
        let mut look = self.roots.get(&names.description[..])?;
        loop {
            match &self.looks[*look as usize] {
                Look::Found(kept) => return Some(kept),
                Look::Open { set, branches } => {
                    let set = names.sets[*set as usize];
                    opened(set);
                    names.describe(machine, stacks, set, false);
                    look = branches.get(&names.description[..])?;
                }
            }
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
        if self.bytes > self.budget {
            // Simplest fair eviction: the masks in use come back at once, the others are gone.
            *self = LookCache::new(self.budget, self.horizon as usize);
        }
        let mut names = Names::new(self.horizon);
        names.describe(machine, stacks, configuration, true);
        let mut key: Box<[u64]> = names.description[..].into();
        let mut parent: Option<u32> = None;
        let mut opened: Vec<bool> = Vec::new();
        loop {
            // The first set read that has a name by now and was not opened yet. All reads are looked through each time: a
            // set may be read early, where the computation happens to make the same one, and get its name only later.
            opened.resize(names.sets.len(), false);
            let next = reads.iter().find_map(|read| {
                let set = names.sets.iter().position(|known| known == read)?;
                (!opened[set]).then_some(set as u32)
            });
            if let Some(set) = next {
                opened[set as usize] = true;
            }
            let fresh = match next {
                Some(set) => Look::Open { set, branches: FxHashMap::default() },
                None => Look::Found(kept.clone()),
            };
            let child = self.child(parent, key, fresh, size);
            match (&self.looks[child as usize], next) {
                (Look::Open { set, .. }, Some(next)) if *set == next => {
                    let set = names.sets[next as usize];
                    names.describe(machine, stacks, set, false);
                    key = names.description[..].into();
                    parent = Some(child);
                }
                _ => return,
            }
        }
    }

    /// The look behind `key`, which is `fresh` if there was none.
    fn child(&mut self, parent: Option<u32>, key: Box<[u64]>, fresh: Look<T>, found_bytes: usize) -> u32 {
        let next = self.looks.len() as u32;
        let branches = match parent {
            None => &mut self.roots,
            Some(parent) => match &mut self.looks[parent as usize] {
                Look::Open { branches, .. } => branches,
                Look::Found(_) => unreachable!("what was found is never a parent"),
            },
        };
        let size = key.len() * 8 + 64;
        let child = *branches.entry(key).or_insert(next);
        if child == next {
            self.bytes += size
                + match &fresh {
                    Look::Found(_) => found_bytes + 32,
                    Look::Open { .. } => 64,
                };
            self.looks.push(fresh);
        }
        child
    }
}
