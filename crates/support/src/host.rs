//! The program that calls the core, as far as a long operation must know it: it may stop an operation, and it is
//! notified before a thread waits for a lock, and after much memory was freed.
//!
//! The core knows no interpreter and no allocator. Whoever embeds it sets three functions, once; without them nothing
//! is ever stopped. In debug builds every thread counts the core's locks that it holds, so the host can assert that it
//! takes none of its own locks meanwhile.

#[cfg(debug_assertions)]
use std::cell::Cell;
use std::sync::OnceLock;

/// The callbacks of the program that uses the core.
pub struct Host {
    /// Whether the operation of this thread has to end with
    /// [`LimitExceeded::Interrupted`](crate::LimitExceeded::Interrupted). Called at every reading of the clock, which
    /// is often; locks of the core may be held.
    pub is_stopped: fn() -> bool,
    /// Called before this thread waits for a lock of the core that another thread holds.
    pub before_waiting: fn(),
    /// Called after this thread has freed much memory that other threads allocated. No lock of the core is held.
    pub after_freeing: fn(),
}

static HOST: OnceLock<Host> = OnceLock::new();

/// Sets the host of this process; only the first call has an effect.
pub fn set_host(host: Host) {
    let _ = HOST.set(host);
}

pub fn is_stopped() -> bool {
    HOST.get().is_some_and(|host| (host.is_stopped)())
}

/// To be called before this thread waits for a lock of the core that another thread holds.
#[cold]
pub fn before_waiting() {
    if let Some(host) = HOST.get() {
        (host.before_waiting)();
    }
}

/// To be called after much memory of other threads was freed: allocators may keep it for a while.
#[cold]
pub fn after_freeing() {
    if let Some(host) = HOST.get() {
        (host.after_freeing)();
    }
}

#[cfg(debug_assertions)]
thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Counts as a held lock of the core while it exists. Does nothing in release builds.
#[derive(Debug)]
pub struct Held(());

impl Held {
    /// Counts one more held lock of this thread.
    #[expect(clippy::new_without_default, reason = "what it does is count, so nothing makes one by the way")]
    #[inline]
    pub fn new() -> Held {
        #[cfg(debug_assertions)]
        HELD.set(HELD.get() + 1);
        Held(())
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

/// Asserts that this thread holds no lock of the core. Does nothing in release builds.
///
/// # Panics
/// In debug builds, where it holds one.
#[inline]
pub fn assert_none_held() {
    #[cfg(debug_assertions)]
    assert_eq!(HELD.get(), 0, "no lock of the core is held where a lock of the host is taken");
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use crate::*;

    #[test]
    fn a_held_lock_is_counted_until_it_is_dropped() {
        assert_none_held();
        let held = Held::new();
        assert!(std::panic::catch_unwind(assert_none_held).is_err());
        drop(held);
        assert_none_held();
    }
}
