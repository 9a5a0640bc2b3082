//! What all crates build on: hash tables, bounds on time and memory, caches within a budget, locks.
//!
//! This crate knows no expressions, grammars or tokens. Whatever may take long here or in a crate above asks
//! [`check_time`] whether to go on, counts bytes with [`memory`], keeps what can be recomputed in a [`Bounded`] map,
//! and tells the host before it waits for a [`Mutex`].

mod bounded;
mod cpus;
mod deadline;
mod error;
mod extensions;
mod hash;
mod hash_table;
mod host;
mod interner;
mod let_go;
mod locks;
pub mod memory;
mod thread_time;

pub use bounded::{BUDGET, Bounded, FEW, LARGE_BUDGET, LOOKED_AT, MANY, RECENT, Recent, SEARCHED, STEPS, WORK};
pub use cpus::available_cpus;
pub use deadline::{
    CancelToken, Parts, Watch, check_time, check_time_after, check_time_now, decided, unless_ended, unwatched,
};
pub use error::LimitExceeded;
pub use extensions::{Extension, Extensions};
pub use hash::{HashMap, HashSet, KeyedState, hash_of};
pub use hash_table::{Map, Set, Table};
pub use host::{Held, Host, after_freeing, assert_none_held, before_waiting, set_host};
pub use interner::Interner;
pub use let_go::{being_dropped, let_go};
pub use locks::{Guard, Mutex, Waits, lock, try_lock};
