//! The Python module `stencilm._core`: it checks arguments, calls the engine and converts, and nothing else.

mod arguments;
mod batch;
mod bitmask;
mod compiled;
mod errors;
mod grammar;
mod index;
mod matcher;
mod vocabulary;
mod watch;

use mimalloc::MiMalloc;
use pyo3::prelude::*;

/// Compiling a grammar allocates some thousand small things that live together: an allocator that lays them side by side
/// costs fewer cache misses.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The Rust core of stencilm. Use the classes of the package `stencilm`, which wrap these.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<grammar::Grammar>()?;
    module.add_class::<grammar::JsonSchemaOptions>()?;
    module.add_class::<vocabulary::Vocabulary>()?;
    module.add_class::<compiled::Limits>()?;
    module.add_class::<compiled::CompiledGrammar>()?;
    module.add_class::<matcher::Matcher>()?;
    module.add_class::<batch::BatchMatcher>()?;
    module.add_class::<index::IndexBuilder>()?;
    module.add_class::<index::TokenIndex>()?;
    Ok(())
}
