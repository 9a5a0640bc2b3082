//! Interrupts an operation at some check of the clock.

use std::cell::Cell;
use std::time::{Duration, Instant};

use stencilm_support::{Host, set_host};

thread_local! {
    static END: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs an operation that is interrupted once this much time has passed.
pub fn after<T>(time: Duration, operation: impl FnOnce() -> T) -> T {
    set_host(Host {
        is_stopped: || END.get().is_some_and(|end| Instant::now() >= end),
        before_waiting: || {},
        after_freeing: || {},
    });
    let _restore = Restore;
    END.set(Some(Instant::now() + time));
    operation()
}

/// Stops interrupting, also if the operation panics.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        END.set(None);
    }
}
