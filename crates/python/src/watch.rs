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
    let result = py.detach(|| Watch::new(milliseconds, Some(is_interrupted)).over(call));
    match RAISED.with(RefCell::take) {
        Some(error) => Err(error),
        None => Ok(result),
    }
}

fn is_interrupted() -> bool {
    let Err(error) = Python::attach(|py| py.check_signals()) else { return false };
    RAISED.with(|raised| raised.replace(Some(error)));
    true
}
