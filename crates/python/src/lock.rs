//! `_core.LockGuard`: a Python lock that is released whatever a signal handler raises.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Holds a lock for one `with` statement.
// Python 3.14 checks for signals between the return of `__enter__` and the first step that the `with` statement guards.
// If a handler raises there, `__exit__` is not called, and a lock of `threading` stays locked forever. This guard is
// dropped then.
#[pyclass(frozen, module = "stencilm._core")]
pub struct LockGuard {
    lock: Py<PyAny>,
    is_taken: AtomicBool,
}

impl LockGuard {
    /// Releases the lock, once.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_taken.swap(false, Ordering::Relaxed) {
            self.lock.call_method0(py, "release")?;
        }
        Ok(())
    }
}

#[pymethods]
impl LockGuard {
    #[new]
    fn new(lock: Py<PyAny>) -> LockGuard {
        LockGuard { lock, is_taken: AtomicBool::new(false) }
    }

    /// Wait for the lock and acquire it.
    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        // No step of Python comes between the two: a single C call takes the lock.
        self.lock.call_method0(py, "acquire")?;
        self.is_taken.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Release the lock.
    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release(py)
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if *self.is_taken.get_mut() {
            Python::attach(|py| {
                // While a frame unwinds, its exception is set; keep it away from the call below.
                let raised = PyErr::take(py);
                if let Err(error) = self.release(py) {
                    error.write_unraisable(py, None);
                }
                if let Some(raised) = raised {
                    raised.restore(py);
                }
            });
        }
    }
}
