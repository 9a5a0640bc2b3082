//! The locks of the engine.
//!
//! Whoever waits for one lets the program that called know before (`before_waiting`), which gives up what locks of its own the
//! thread holds. So nobody holds one of the host's while he waits for one of ours; the other way round, a host takes none
//! of its own while a thread holds one of these, which debug builds check by counting them ([`Held`]).
//!
//! A thread that lets go of a lock and wants it again at once mostly gets it, since it runs and those that wait do not. That is
//! quick, and a thread with long work can keep all others from theirs for seconds. So it gets in line once another one has
//! waited for [`PATIENCE`].

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{self, LazyLock, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use stencilm_regex::{Held, before_waiting};

/// So long others may get a lock before the thread that waits for it.
const PATIENCE: Duration = Duration::from_micros(500);

/// What times are counted from.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A lock of the engine. Those who wait for it get it in turn.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    inner: sync::Mutex<T>,
    /// Held by the thread that is the next to get `inner`.
    turn: sync::Mutex<()>,
    /// When that thread has waited for long enough, in nanoseconds; 0 where there is none.
    due: AtomicU64,
}

impl<T> Mutex<T> {
    /// A lock that nobody holds.
    pub fn new(value: T) -> Mutex<T> {
        Mutex { inner: sync::Mutex::new(value), turn: sync::Mutex::default(), due: AtomicU64::new(0) }
    }

    /// Whether somebody waits for it.
    #[inline]
    pub fn is_waited_for(&self) -> bool {
        self.due.load(Ordering::Relaxed) != 0
    }

    /// Lets the thread that is next in line have it first, if there is one: who lets go of it and takes it again at once mostly gets
    /// it before. The caller must not hold it.
    pub fn give_way(&self) {
        if self.is_waited_for() {
            before_waiting();
            drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether somebody has waited for so long that everybody else must get in line.
    #[inline]
    fn has_a_line(&self) -> bool {
        let due = self.due.load(Ordering::Relaxed);
        due != 0 && now() >= due
    }
}

#[cold]
fn now() -> u64 {
    BEGUN.elapsed().as_nanos() as u64
}

/// A lock that is held.
pub(crate) struct Guard<'a, T> {
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

/// A lock whose data is consistent at every step: what is in it are caches that only ever gain finished entries.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Guard<'_, T> {
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

/// The same, where nobody else holds it.
#[inline]
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<Guard<'_, T>> {
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
