//! The locks of the engine.
//!
//! Whoever waits for one lets the program that called know before (`before_waiting`), which gives up what locks of its own the
//! thread holds. So nobody holds one of the host's while he waits for one of ours; the other way round, a host takes none
//! of its own while a thread holds one of these, which debug builds check by counting them ([`Held`]).

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use stencilm_regex::{Held, before_waiting};

/// A lock that is held.
pub(crate) struct Guard<'a, T> {
    guard: MutexGuard<'a, T>,
    _held: Held,
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
    try_lock(mutex).unwrap_or_else(|| wait(mutex))
}

#[cold]
fn wait<T>(mutex: &Mutex<T>) -> Guard<'_, T> {
    before_waiting();
    Guard { guard: mutex.lock().unwrap_or_else(PoisonError::into_inner), _held: Held::new() }
}

/// The same, where nobody else holds it.
#[inline]
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<Guard<'_, T>> {
    let guard = match mutex.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    Some(Guard { guard, _held: Held::new() })
}
