//! The locks of the crates above.
//!
//! Before waiting for one, a thread notifies the host (`before_waiting`), which releases its own locks that the thread
//! holds. So nobody holds a host lock while waiting for one of these; conversely, a host takes none of its own locks
//! while a thread holds one of these, which debug builds check by counting them ([`Held`]).
//!
//! A thread that releases a lock and wants it again at once mostly gets it, because it is running and the waiting
//! threads are not. That is fast, but a thread with long work can keep all others waiting for seconds. So it queues
//! once another one has waited for [`PATIENCE`].

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{self, LazyLock, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::host::{Held, before_waiting};

/// How long other threads may get a lock before a thread that waits for it.
const PATIENCE: Duration = Duration::from_micros(500);

/// The total time for which a thread may wait within a short period.
const WAITED: Duration = Duration::from_millis(2);

/// Waiting time is forgotten this many times slower than it passes: all of it in 100 ms.
const FORGETS: u64 = 50;

/// The origin of all times.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A lock of the engine. Waiting threads get it in turn.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    inner: sync::Mutex<T>,
    /// Held by the thread that is next to get `inner`.
    turn: sync::Mutex<()>,
    /// The time, in nanoseconds, from which that thread has waited for long enough; 0 where no thread waits.
    due: AtomicU64,
}

impl<T> Mutex<T> {
    /// A lock that nobody holds.
    pub fn new(value: T) -> Mutex<T> {
        Mutex { inner: sync::Mutex::new(value), turn: sync::Mutex::default(), due: AtomicU64::new(0) }
    }

    /// Whether a thread waits for it.
    #[inline]
    pub fn is_waited_for(&self) -> bool {
        self.due.load(Ordering::Relaxed) != 0
    }

    /// Lets the next waiting thread, if there is one, have the lock first. A thread that releases a lock and takes it
    /// again at once would mostly get it before. The caller must not hold the lock.
    pub fn give_way(&self) {
        if self.is_waited_for() {
            before_waiting();
            drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether a thread has waited for so long that all others must queue.
    #[inline]
    fn has_a_line(&self) -> bool {
        let due = self.due.load(Ordering::Relaxed);
        due != 0 && now() >= due
    }
}

/// How long threads have waited for a lock lately. Short waits at every step delay a thread as much as a long one.
#[derive(Debug, Default)]
pub struct Waits {
    /// When all of it will be forgotten, in nanoseconds (as in a generic cell rate algorithm).
    forgotten: AtomicU64,
}

impl Waits {
    /// Adds a wait that has just ended. Returns whether the total is too long, and if so starts again from 0.
    pub fn are_too_long_with(&self, waited: Duration) -> bool {
        !waited.is_zero() && self.are_too_long_at(now(), waited)
    }

    fn are_too_long_at(&self, now: u64, waited: Duration) -> bool {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(FORGETS);
        let with = |before: u64| before.max(now).saturating_add(nanoseconds(waited));
        let is_too_long = |before: u64| with(before) - now > nanoseconds(WAITED);
        let next = |before: u64| Some(if is_too_long(before) { now } else { with(before) });
        let (Ok(before) | Err(before)) = self.forgotten.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        is_too_long(before)
    }
}

#[cold]
fn now() -> u64 {
    BEGUN.elapsed().as_nanos() as u64
}

/// A held lock.
pub struct Guard<'a, T> {
    guard: MutexGuard<'a, T>,
    waited: Duration,
    _held: Held,
}

impl<T> Guard<'_, T> {
    /// How long the thread waited for it.
    #[inline]
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// Locks a mutex. A panic while it was held does no harm, because its data are consistent at every step: caches that
/// only gain finished entries.
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> Guard<'_, T> {
    let free = if mutex.has_a_line() { None } else { try_lock(mutex) };
    free.unwrap_or_else(|| wait(mutex))
}

#[cold]
fn wait<T>(mutex: &Mutex<T>) -> Guard<'_, T> {
    before_waiting();
    let begun = now();
    let turn = mutex.turn.lock().unwrap_or_else(PoisonError::into_inner);
    // Never 0, which means that nobody waits.
    mutex.due.store((now() + PATIENCE.as_nanos() as u64).max(1), Ordering::Relaxed);
    let guard = mutex.inner.lock().unwrap_or_else(PoisonError::into_inner);
    mutex.due.store(0, Ordering::Relaxed);
    drop(turn);
    Guard { guard, waited: Duration::from_nanos(now() - begun), _held: Held::new() }
}

/// The same, but only if nobody holds the lock.
#[inline]
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<Guard<'_, T>> {
    let guard = match mutex.inner.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    Some(Guard { guard, waited: Duration::ZERO, _held: Held::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_add_up_and_are_forgotten() {
        // Each wait with the time at which it ended, in microseconds, and whether the total is then too long.
        let walks: [&[(u64, u64, bool)]; 5] = [
            &[(0, 2_001, true)],
            &[(0, 2_000, false), (100_000, 2_000, false), (199_999, 2_000, true)],
            // At every step of 20 ms.
            &[(0, 900, false), (20_000, 900, false), (40_000, 900, false), (60_000, 900, true), (80_000, 900, false)],
            &[
                (0, 400, false),
                (20_000, 400, false),
                (40_000, 400, false),
                (60_000, 400, false),
                (1_000_000, 400, false),
            ],
            // A wait that ended before others were added belongs to another thread.
            &[(50_000, 1_500, false), (49_000, 600, true)],
        ];
        for walk in walks {
            let waits = Waits::default();
            for &(at, waited, expected) in walk {
                let is_too_long = waits.are_too_long_at(1_000 * at, Duration::from_micros(waited));
                assert_eq!(is_too_long, expected, "{walk:?}, at {at}");
            }
        }
        assert!(!Waits::default().are_too_long_with(Duration::ZERO));
    }

    #[test]
    fn who_gives_way_gets_it_after_who_waits() {
        let mutex = Mutex::new(0);
        std::thread::scope(|scope| {
            for round in 1..=200 {
                let held = lock(&mutex);
                let other = scope.spawn(|| *lock(&mutex) += 1);
                while !mutex.is_waited_for() {
                    std::thread::yield_now();
                }
                drop(held);
                mutex.give_way();
                assert_eq!(*lock(&mutex), round);
                other.join().unwrap();
            }
        });
    }

    #[test]
    fn who_has_waited_gets_it_before_who_has_had_it() {
        let mutex = Mutex::new("nobody");
        std::thread::scope(|scope| {
            let held = lock(&mutex);
            scope.spawn(|| *lock(&mutex) = "the other one");
            while !mutex.has_a_line() {
                std::thread::yield_now();
            }
            drop(held);
            assert_eq!(*lock(&mutex), "the other one");
        });
        assert!(!mutex.has_a_line());
    }
}
