//! `_core.CancelToken`: ends operations from any thread.

use pyo3::prelude::*;
use stencilm_support as support;

/// Ends the operations that it was passed to.
#[pyclass(subclass, frozen, weakref, module = "stencilm._core")]
pub struct CancelToken {
    pub inner: support::CancelToken,
}

#[pymethods]
impl CancelToken {
    #[new]
    fn new() -> CancelToken {
        CancelToken { inner: support::CancelToken::default() }
    }

    /// End these operations.
    fn cancel(&self) {
        self.inner.cancel();
    }

    /// Whether `cancel` was called.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }
}
