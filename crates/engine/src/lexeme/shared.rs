//! The lifetime of a vocabulary's lexemes: all grammars with equal limits share them, within a budget of bytes.
//!
//! Lexemes come in *generations*. Grammars build theirs in the latest one. When that is full, a new one begins, and the
//! oldest ones are dropped as soon as all together exceed the budget. Only a running call keeps a generation alive: a
//! compiled grammar rebuilds its parts when it is used again, and a matcher reads its accepted text once more. So a
//! grammar in a cache, or a matcher that waits for its next token, holds no memory that the budget does not count, and
//! an operation can finish with the generation that it began with.
//!
//! An operation has exclusive access to the lexemes of its generation, so threads that work with different grammars
//! would wait for each other. If they do, the lexemes get *lanes*, each with its own latest generation: see [`Lane`].

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use stencilm_support::{Guard, Mutex, RECENT, available_cpus, being_dropped, let_go, lock, try_lock};

use crate::lexeme::cache::LexemeCache;
use crate::limits::LexiconLimits;

/// The greatest number of lanes. More would cost too much, since what several grammars need is computed once in each.
pub(crate) const MAX_LANES: usize = 4;

/// The lexemes of one generation.
pub(crate) struct Lexemes {
    lexeme_cache: Mutex<LexemeCache>,
    /// The bytes that they held at the end of the last operation.
    held: AtomicUsize,
    /// The bytes that they must hold: what they began with, and what matchers from an earlier generation have read
    /// again.
    floor: AtomicUsize,
}

impl Lexemes {
    fn new(mut lexeme_cache: LexemeCache) -> Arc<Lexemes> {
        let held = lexeme_cache.memory_bytes();
        Arc::new(Lexemes {
            lexeme_cache: Mutex::new(lexeme_cache),
            held: AtomicUsize::new(held),
            floor: AtomicUsize::new(held),
        })
    }

    /// Locks the lexemes for one operation.
    #[inline]
    pub fn lock(&self) -> Guard<'_, LexemeCache> {
        lock(&self.lexeme_cache)
    }

    /// Whether a thread waits for them.
    pub fn is_waited_for(&self) -> bool {
        self.lexeme_cache.is_waited_for()
    }

    /// Hands the lock to the thread that waits for it, if there is one.
    pub fn give_way(&self) {
        self.lexeme_cache.give_way();
    }

    /// Whether no thread works with them.
    pub fn are_free(&self) -> bool {
        try_lock(&self.lexeme_cache).is_some()
    }

    /// Records how much they hold at the end of an operation; returns whether that may be more than before.
    #[inline]
    pub fn note(&self, lexeme_cache: &mut LexemeCache) -> bool {
        if let Some(aside) = lexeme_cache.deriver.end() {
            let bytes = aside.memory_bytes();
            let_go(aside, bytes);
        }
        let grown = lexeme_cache.memory_bytes_if_grown();
        if let Some(held) = grown {
            self.held.store(held, Ordering::Relaxed);
        }
        grown.is_some()
    }

    /// The bytes that they held at the end of the last operation.
    #[inline]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Adds the bytes that a matcher from an earlier generation needs in this one.
    pub fn raise_floor(&self, bytes: usize) {
        self.floor.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The bytes beyond those that they must hold. The latter are not counted, because a new generation would not save
    /// them: otherwise matchers with long texts would keep moving from one generation to the next.
    #[inline]
    fn excess(&self) -> usize {
        self.held().saturating_sub(self.floor.load(Ordering::Relaxed))
    }

    /// Whether they have grown by half of the budget, or by an eighth of what they must hold, if that is more.
    #[inline]
    fn is_full(&self, budget: usize) -> bool {
        self.excess() > (budget / 2).max(self.floor.load(Ordering::Relaxed) / 8)
    }
}

/// Grammars in different lanes have no lexemes in common. There is one lane until a thread had to wait for long or a
/// batch has several threads; then there are at most as many as processors. What several grammars need is computed once
/// in each lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lane(pub usize);

thread_local! {
    /// The lane for the grammars that this thread builds.
    static LANE: Cell<Lane> = const { Cell::new(Lane(0)) };
}

/// Something built with lexemes, such as the layout of a grammar.
pub(crate) trait User: Send + Sync {
    /// Gives up everything built with these lexemes that no call is using, so that the caller can drop it.
    fn take(&self, lexemes: &Arc<Lexemes>) -> Box<dyn Send>;
}

struct Generation {
    lane: Lane,
    lexemes: Arc<Lexemes>,
    /// What was built in this generation.
    users: Vec<Weak<dyn User>>,
    /// The list of users is searched for dropped ones when it has grown to this length.
    look_at: usize,
}

impl Generation {
    fn of(lane: Lane, lexeme_cache: LexemeCache) -> Generation {
        Generation { lane, lexemes: Lexemes::new(lexeme_cache), users: Vec::new(), look_at: 0 }
    }
}

/// The lexemes that all grammars of one vocabulary with equal limits share.
pub(crate) struct SharedLexemes {
    limits: LexiconLimits,
    /// The length of the longest token.
    horizon: usize,
    /// The latest one first.
    generations: Mutex<Vec<Generation>>,
    /// The number of lanes.
    lanes: AtomicUsize,
    /// How many of them batches have asked for.
    spread: AtomicUsize,
    /// How many grammars were assigned to lanes in turn.
    given: AtomicUsize,
}

impl SharedLexemes {
    /// An empty cache for a vocabulary whose longest token has `horizon` bytes.
    pub fn new(limits: LexiconLimits, horizon: usize) -> SharedLexemes {
        let first = Generation::of(Lane(0), LexemeCache::new(horizon, limits.work));
        SharedLexemes {
            limits,
            horizon,
            generations: Mutex::new(vec![first]),
            lanes: AtomicUsize::new(1),
            spread: AtomicUsize::new(0),
            given: AtomicUsize::new(0),
        }
    }

    /// The limits of these lexemes.
    pub fn limits(&self) -> LexiconLimits {
        self.limits
    }

    /// The lexemes in which grammars of a lane are currently built.
    pub fn current(&self, lane: Lane) -> Arc<Lexemes> {
        let mut generations = lock(&self.generations);
        if let Some(latest) = generations.iter().find(|known| known.lane == lane) {
            return latest.lexemes.clone();
        }
        let first = self.generation_after(&generations[0].lexemes, lane);
        let lexemes = first.lexemes.clone();
        generations.insert(0, first);
        lexemes
    }

    /// The lane for a grammar that this thread builds.
    pub fn lane_of_thread(&self) -> Lane {
        Lane(LANE.get().0 % self.lanes.load(Ordering::Relaxed))
    }

    /// Another lane for a grammar for which this thread had to wait, and for further ones that the thread builds;
    /// `None` where there is none.
    pub fn lane_beside(&self, crowded: Lane) -> Option<Lane> {
        let lanes = self.open_lanes(self.lanes.load(Ordering::Relaxed).max(2));
        let lane = Lane((crowded.0 + 1) % lanes);
        LANE.set(lane);
        (lane != crowded).then_some(lane)
    }

    /// From now on assigns lanes to grammars in turn, because a batch has this many threads.
    pub fn spread(&self, threads: usize) {
        let lanes = self.open_lanes(threads);
        self.spread.fetch_max(lanes, Ordering::Relaxed);
    }

    /// The lane whose turn it is; `None` where grammars are not assigned in turn.
    pub fn next_lane(&self) -> Option<Lane> {
        match self.spread.load(Ordering::Relaxed) {
            0 | 1 => None,
            lanes => Some(Lane(self.given.fetch_add(1, Ordering::Relaxed) % lanes)),
        }
    }

    #[cfg(test)]
    pub fn lanes(&self) -> usize {
        self.lanes.load(Ordering::Relaxed)
    }

    /// Makes sure that there are `count` lanes, or as many as allowed; returns the number of lanes.
    fn open_lanes(&self, count: usize) -> usize {
        static MOST: LazyLock<usize> = LazyLock::new(|| available_cpus().min(MAX_LANES));
        let count = count.min(*MOST);
        self.lanes.fetch_max(count, Ordering::Relaxed).max(count)
    }

    /// Bytes of memory held by all generations that may still be used.
    pub fn memory_bytes(&self) -> usize {
        lock(&self.generations).iter().map(|generation| generation.lexemes.held()).sum()
    }

    /// Registers a user of some lexemes, so that it is notified when they are dropped; `false` where they were dropped
    /// already.
    pub fn enter(&self, lexemes: &Arc<Lexemes>, user: Weak<dyn User>) -> bool {
        let mut generations = lock(&self.generations);
        let Some(generation) = generations.iter_mut().find(|known| Arc::ptr_eq(&known.lexemes, lexemes)) else {
            return false;
        };
        if generation.users.len() >= generation.look_at {
            generation.users.retain(|user| user.strong_count() > 0);
            generation.look_at = 2 * generation.users.len();
        }
        generation.users.push(user);
        true
    }

    /// Called at the end of an operation in which lexemes grew. If they are full, begins new ones for future grammars;
    /// if all together hold too much, drops the oldest. Waits for no running operation.
    pub fn make_room(&self, grown: &Arc<Lexemes>) {
        let budget = self.limits.bytes / self.lanes.load(Ordering::Relaxed);
        self.begin_anew(grown, |lexemes| lexemes.is_full(budget));
    }

    /// Begins new lexemes for future grammars if these are the latest, because they have reached a limit: a text that
    /// needs too much must not affect the next one.
    pub fn retire(&self, full: &Arc<Lexemes>) {
        self.begin_anew(full, |_| true);
    }

    /// A new generation of a lane. What the first grammars would spend most time on is taken over from others, if no
    /// thread is working with them at the moment.
    fn generation_after(&self, others: &Lexemes, lane: Lane) -> Generation {
        let renewed = try_lock(&others.lexeme_cache).map(|others| others.renewed());
        Generation::of(lane, renewed.unwrap_or_else(|| LexemeCache::new(self.horizon, self.limits.work)))
    }

    /// Begins new lexemes if these are the latest of their lane and `is_over` holds, and drops generations that are too
    /// much.
    fn begin_anew(&self, lexemes: &Arc<Lexemes>, is_over: impl Fn(&Lexemes) -> bool) {
        let mut gone = Vec::new();
        {
            let mut generations = lock(&self.generations);
            let known = generations.iter().position(|known| Arc::ptr_eq(&known.lexemes, lexemes));
            if let Some(known) = known
                && is_over(lexemes)
            {
                let lane = generations[known].lane;
                if generations[..known].iter().all(|later| later.lane != lane) {
                    generations.insert(0, self.generation_after(lexemes, lane));
                }
            }
            while generations.len() > 1 && self.is_too_much(&generations) {
                gone.extend(generations.pop());
            }
        }
        // The lock is released first, since a user that is being built asks for the latest lexemes.
        let held = gone.iter().map(|generation| generation.lexemes.held()).sum();
        let taken = gone.into_iter().map(|Generation { lexemes, users, .. }| {
            // A layout in use lives until its call ends. From here on nobody else can get it, even though it is not
            // dropped yet: otherwise a matcher would go on in it, and its uncounted memory would grow.
            let layouts: Vec<_> = users.iter().filter_map(Weak::upgrade).map(|user| user.take(&lexemes)).collect();
            (lexemes, layouts, users)
        });
        let_go(taken.collect::<Vec<_>>(), held);
    }

    /// Whether all generations together hold too much: more than the budget, not counting what matchers from earlier
    /// generations need, or, with that, more than the budget and the limit of one operation.
    fn is_too_much(&self, generations: &[Generation]) -> bool {
        let lexemes = || generations.iter().map(|generation| &generation.lexemes);
        let (excess, held): (usize, usize) =
            (lexemes().map(|each| each.excess()).sum(), lexemes().map(|each| each.held()).sum());
        excess + being_dropped() > self.limits.bytes
            || held > self.limits.bytes.saturating_add(self.limits.work.max_bytes)
            || generations.len() > RECENT.max(2 * self.lanes.load(Ordering::Relaxed))
    }
}
