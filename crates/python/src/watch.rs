//! Long calls: without Python's lock, with a deadline, and ended by what ends Python code, such as Ctrl-C.

use std::cell::RefCell;

use pyo3::prelude::*;
use stencilm_regex::Watch;

thread_local! {
    /// What a handler of a signal raised during the call.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs a call that may take long.
pub fn over<T: Send>(py: Python<'_>, milliseconds: u64, call: impl FnOnce() -> T + Send) -> PyResult<T> {
    detached(py, || timed(milliseconds, call))
}

/// Runs several calls one after the other, each to be [`timed`].
pub fn detached<T: Send>(py: Python<'_>, calls: impl FnOnce() -> T + Send) -> PyResult<T> {
    let result = py.detach(calls);
    match RAISED.with(RefCell::take) {
        Some(error) => Err(error),
        None => Ok(result),
    }
}

/// One call that may take long, within what is detached.
pub fn timed<T>(milliseconds: u64, call: impl FnOnce() -> T) -> T {
    Watch::new(milliseconds, Some(is_interrupted)).over(call)
}

fn is_interrupted() -> bool {
    let Err(error) = Python::attach(|py| py.check_signals()) else { return false };
    RAISED.with(|raised| raised.replace(Some(error)));
    true
}
