//! The Python module `stencilm._core`: it checks arguments, calls the engine and converts, and nothing else.

mod arguments;
mod batch;
mod bitmask;
mod cancel;
mod compiled;
mod errors;
mod grammar;
mod index;
mod limits;
mod lock;
mod matcher;
mod preparation;
#[cfg(feature = "switches")]
mod switches;
mod vocabulary;
mod watch;

use libmimalloc_sys::{mi_option_set_default, mi_option_t};
use mimalloc::MiMalloc;
use pyo3::prelude::*;

/// Compiling a grammar allocates thousands of small objects that are used together: an allocator that places them side
/// by side costs fewer cache misses.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The number of milliseconds after which the allocator returns unused memory to the system; the environment variable
/// `MIMALLOC_PURGE_DELAY` overrides it.
const PURGE_DELAY: mi_option_t = 15;

/// A minute. Otherwise, where grammars come and go, each would get its memory from the system anew, page by page; these
/// pages were a twentieth of the cost of the expensive masks.
const KEPT_MILLISECONDS: i64 = 60_000;

/// The Rust core of stencilm. Use the classes of the package `stencilm`, which wrap these.
// Every class is frozen or has a lock of its own, so a free-threaded Python need not enable its global lock.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // SAFETY: an option of the allocator may be set at any time; an unknown option is only reported.
    unsafe { mi_option_set_default(PURGE_DELAY, KEPT_MILLISECONDS as _) };
    watch::set_up(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<grammar::Grammar>()?;
    module.add_class::<grammar::JsonSchemaOptions>()?;
    module.add_class::<vocabulary::Vocabulary>()?;
    module.add_class::<limits::Limits>()?;
    module.add_class::<compiled::CompiledGrammar>()?;
    module.add_class::<matcher::Matcher>()?;
    module.add_class::<batch::BatchMatcher>()?;
    module.add_class::<index::IndexBuilder>()?;
    module.add_class::<index::TokenIndex>()?;
    module.add_class::<cancel::CancelToken>()?;
    module.add_class::<preparation::Preparation>()?;
    module.add_class::<lock::LockGuard>()?;
    #[cfg(feature = "switches")]
    module.add_function(wrap_pyfunction!(switches::switch_off, module)?)?;
    Ok(())
}
