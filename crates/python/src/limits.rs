//! `_core.Limits`: how much a grammar may cost; reading and compiling within these limits, until cancelled.

use pyo3::prelude::*;
use stencilm_engine as engine;
use stencilm_support as support;

use crate::cancel::CancelToken;
use crate::errors;
use crate::watch;

/// The attributes of `stencilm.limits.Limits`.
#[derive(FromPyObject)]
struct Bounds {
    schema_bytes: usize,
    grammar_expressions: usize,
    derived_expressions: usize,
    search_steps: usize,
    automaton_states: usize,
    working_bytes: usize,
    stack_bytes: usize,
    lexicon_bytes: usize,
    mask_cache_bytes: usize,
    milliseconds: u64,
    cancel: Option<Py<CancelToken>>,
}

/// How much work and memory a grammar may cost. Read once, used for many grammars.
#[pyclass(frozen, module = "stencilm._core")]
pub struct Limits {
    pub schema_bytes: usize,
    pub compiling: engine::Limits,
}

#[pymethods]
impl Limits {
    #[new]
    fn new(limits: Bounds) -> Limits {
        let compiling = engine::Limits {
            grammar_expressions: limits.grammar_expressions,
            derived_expressions: limits.derived_expressions,
            search_steps: limits.search_steps,
            automaton_states: limits.automaton_states,
            working_bytes: limits.working_bytes,
            stack_bytes: limits.stack_bytes,
            lexicon_bytes: limits.lexicon_bytes,
            mask_cache_bytes: limits.mask_cache_bytes,
            milliseconds: limits.milliseconds,
            cancel: limits.cancel.map(|token| token.get().inner.clone()),
        };
        Limits { schema_bytes: limits.schema_bytes, compiling }
    }
}

impl Limits {
    /// Reads a notation within these limits.
    ///
    /// # Errors
    /// `OperationCancelled`, and what a signal handler raises.
    pub fn read<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        read: impl Fn() -> Result<T, E> + Send + Sync,
    ) -> PyResult<Result<T, E>> {
        self.unless_cancelled(py, || watch::reading(&self.compiling, &read))
    }

    /// Runs an operation. If it fails after it was cancelled, the error is the cancellation.
    pub fn unless_cancelled<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnMut() -> Result<T, E> + Send,
    ) -> PyResult<Result<T, E>> {
        let is_cancelled = || self.compiling.cancel.as_ref().is_some_and(support::CancelToken::is_cancelled);
        if is_cancelled() {
            return Err(errors::cancelled(py));
        }
        let result = watch::long(py, operation)?;
        if result.is_err() && is_cancelled() { Err(errors::cancelled(py)) } else { Ok(result) }
    }
}
