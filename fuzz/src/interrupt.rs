//! Ends an operation in its midst, at some look at the clock.

use std::cell::Cell;
use std::time::{Duration, Instant};

use stencilm_support::{Host, set_host};

thread_local! {
    static END: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs an operation that is interrupted when so much time has gone by.
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

/// Lets everything through again, also where the operation panics.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        END.set(None);
    }
}
