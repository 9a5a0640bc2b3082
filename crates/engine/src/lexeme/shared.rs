//! Who owns the lexemes of a vocabulary, and for how long: all grammars with equal limits share them, within a budget
//! of bytes.
//!
//! Lexemes come in *generations*. Grammars build theirs in the latest one; when that is full, a new one begins, and the
//! older ones are dropped, oldest first, as soon as all together exceed the budget. Only a running call keeps a
//! generation alive: a compiled grammar rebuilds its parts when it is used again, and a matcher reads its accepted text
//! once more. So what is in a cache, or waits for its next token, holds nothing that the budget does not count, and an
//! operation may work with the generation it began with to its end.
//!
//! An operation has the lexemes of its generation for itself, so threads that work with different grammars would wait
//! for each other. If they do, the lexemes get *lanes*, each with its own latest generation: see [`Lane`].

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use stencilm_support::{Guard, Mutex, RECENT, available_cpus, being_dropped, let_go, lock, try_lock};

use crate::lexeme::cache::LexemeCache;
use crate::limits::LexiconLimits;

/// More lanes than these are not had: what several grammars need is found once in each.
pub(crate) const MAX_LANES: usize = 4;

/// The lexemes of one generation.
pub(crate) struct Lexemes {
    lexeme_cache: Mutex<LexemeCache>,
    /// The bytes that they held when the last operation ended.
    held: AtomicUsize,
    /// Those that they cannot do without: what they began with, and what matchers that came from an earlier generation have
    /// read.
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

    /// The lexemes, for one operation.
    #[inline]
    pub fn lock(&self) -> Guard<'_, LexemeCache> {
        lock(&self.lexeme_cache)
    }

    /// Whether somebody waits for them.
    pub fn is_waited_for(&self) -> bool {
        self.lexeme_cache.is_waited_for()
    }

    /// Lets the thread work with them that waits for them, if there is one.
    pub fn give_way(&self) {
        self.lexeme_cache.give_way();
    }

    /// Whether nobody works with them.
    pub fn are_free(&self) -> bool {
        try_lock(&self.lexeme_cache).is_some()
    }

    /// Takes note of what they hold at the end of an operation; says whether that may be more than before.
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

    /// Bytes of memory that they held when the last operation ended.
    #[inline]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes note of bytes that a matcher needs which came from an earlier generation.
    pub fn raise_floor(&self, bytes: usize) {
        self.floor.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What they hold beside what they cannot do without, which no other generation would spare: else matchers with long
    /// texts would do nothing but come from one generation to the next.
    #[inline]
    fn excess(&self) -> usize {
        self.held().saturating_sub(self.floor.load(Ordering::Relaxed))
    }

    /// Whether they have grown by half of the budget, or by an eighth where that is more.
    #[inline]
    fn is_full(&self, budget: usize) -> bool {
        self.excess() > (budget / 2).max(self.floor.load(Ordering::Relaxed) / 8)
    }
}

/// Grammars of different lanes have no lexemes in common. There is one lane, until a thread had to wait for long or a batch has
/// several threads; then there are at most as many as processors, and what several grammars need is found once in each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lane(pub usize);

thread_local! {
    /// In which lane grammars begin that this thread lays out.
    static LANE: Cell<Lane> = const { Cell::new(Lane(0)) };
}

/// Who lays grammars out in lexemes.
pub(crate) trait User: Send + Sync {
    /// Gives up what is laid out in some lexemes, to be dropped: what no call is running in.
    fn take(&self, lexemes: &Arc<Lexemes>) -> Box<dyn Send>;
}

struct Generation {
    lane: Lane,
    lexemes: Arc<Lexemes>,
    /// Who is laid out in it.
    users: Vec<Weak<dyn User>>,
    /// So many users are looked through for those that are gone.
    look_at: usize,
}

impl Generation {
    fn of(lane: Lane, lexeme_cache: LexemeCache) -> Generation {
        Generation { lane, lexemes: Lexemes::new(lexeme_cache), users: Vec::new(), look_at: 0 }
    }
}

/// The lexemes that all grammars of one vocabulary and of equal limits share.
pub(crate) struct SharedLexemes {
    limits: LexiconLimits,
    /// The length of the longest token.
    horizon: usize,
    /// The latest comes first.
    generations: Mutex<Vec<Generation>>,
    /// How many lanes there are.
    lanes: AtomicUsize,
    /// How many of them batches have asked for.
    spread: AtomicUsize,
    /// How many grammars were given one in turn.
    given: AtomicUsize,
}

impl SharedLexemes {
    /// No lexemes yet, of a vocabulary whose longest token has `horizon` bytes.
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

    /// What they are bound by.
    pub fn limits(&self) -> LexiconLimits {
        self.limits
    }

    /// The lexemes in which grammars of a lane are laid out at present.
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

    /// The lane in which a grammar begins that this thread lays out.
    pub fn lane_of_thread(&self) -> Lane {
        Lane(LANE.get().0 % self.lanes.load(Ordering::Relaxed))
    }

    /// The lane for a grammar that this thread had to wait for in another one, and for others that it will lay out; `None`
    /// where there is no other.
    pub fn lane_beside(&self, crowded: Lane) -> Option<Lane> {
        let lanes = self.open_lanes(self.lanes.load(Ordering::Relaxed).max(2));
        let lane = Lane((crowded.0 + 1) % lanes);
        LANE.set(lane);
        (lane != crowded).then_some(lane)
    }

    /// Gives grammars their lanes in turn from now on, because batches have so many threads.
    pub fn spread(&self, threads: usize) {
        let lanes = self.open_lanes(threads);
        self.spread.fetch_max(lanes, Ordering::Relaxed);
    }

    /// The lane whose turn it is; `None` where grammars are not spread.
    pub fn next_lane(&self) -> Option<Lane> {
        match self.spread.load(Ordering::Relaxed) {
            0 | 1 => None,
            lanes => Some(Lane(self.given.fetch_add(1, Ordering::Relaxed) % lanes)),
        }
    }

    /// How many lanes there are.
    #[cfg(test)]
    pub fn lanes(&self) -> usize {
        self.lanes.load(Ordering::Relaxed)
    }

    /// Sees to it that there are so many lanes, or as many as there may be; says how many there are.
    fn open_lanes(&self, count: usize) -> usize {
        static MOST: LazyLock<usize> = LazyLock::new(|| available_cpus().min(MAX_LANES));
        let count = count.min(*MOST);
        self.lanes.fetch_max(count, Ordering::Relaxed).max(count)
    }

    /// Bytes of memory held by all that may still be used.
    pub fn memory_bytes(&self) -> usize {
        lock(&self.generations).iter().map(|generation| generation.lexemes.held()).sum()
    }

    /// Enters who is laid out in some lexemes, to be notified when they go; `false` where they have gone already.
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

    /// To be called when an operation has ended in which lexemes grew: where they are full, others are begun for grammars to
    /// come, and the oldest go where all hold too much. Waits for nobody who works.
    pub fn make_room(&self, grown: &Arc<Lexemes>) {
        let budget = self.limits.bytes / self.lanes.load(Ordering::Relaxed);
        self.begin_anew(grown, |lexemes| lexemes.is_full(budget));
    }

    /// Begins others for grammars to come where these are the latest, because they have reached a limit: one text that asks
    /// for too much must not spoil the next.
    pub fn retire(&self, full: &Arc<Lexemes>) {
        self.begin_anew(full, |_| true);
    }

    /// A generation of a lane. What costs the first grammars most is taken over from others, where nobody is working with them
    /// just now.
    fn generation_after(&self, others: &Lexemes, lane: Lane) -> Generation {
        let renewed = try_lock(&others.lexeme_cache).map(|others| others.renewed());
        Generation::of(lane, renewed.unwrap_or_else(|| LexemeCache::new(self.horizon, self.limits.work)))
    }

    /// Begins new lexemes where these are the latest of their lane and `is_over` says so, and lets go what is too much.
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
        // Without the lock: to lay a grammar out is to ask for the latest lexemes.
        let held = gone.iter().map(|generation| generation.lexemes.held()).sum();
        let taken = gone.into_iter().map(|Generation { lexemes, users, .. }| {
            // Those that a call is running in end with it. The others cannot be had any more from here on, not only once they
            // are dropped: else a matcher would go on in them, and let them grow beside those that are counted.
            let layouts: Vec<_> = users.iter().filter_map(Weak::upgrade).map(|user| user.take(&lexemes)).collect();
            (lexemes, layouts, users)
        });
        let_go(taken.collect::<Vec<_>>(), held);
    }

    /// Whether all generations together hold more than they may: beside what matchers need that have come from earlier ones
    /// the budget, and with it no more than one operation may work with.
    fn is_too_much(&self, generations: &[Generation]) -> bool {
        let lexemes = || generations.iter().map(|generation| &generation.lexemes);
        let (excess, held): (usize, usize) =
            (lexemes().map(|each| each.excess()).sum(), lexemes().map(|each| each.held()).sum());
        excess + being_dropped() > self.limits.bytes
            || held > self.limits.bytes.saturating_add(self.limits.work.max_bytes)
            || generations.len() > RECENT.max(2 * self.lanes.load(Ordering::Relaxed))
    }
}
