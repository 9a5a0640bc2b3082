//! Optional parts of the engine, switched off for `bench/ablation.py`: only in builds with the feature `switches`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use stencilm_engine::Switch;

/// Switch off the parts with these names for the calling thread, and all others on. Returns the names of all.
#[pyfunction]
pub fn switch_off(names: Vec<String>) -> PyResult<Vec<&'static str>> {
    let named = |name: &String| {
        let found = Switch::ALL.iter().copied().find(|switch| switch.name() == name);
        found.ok_or_else(|| PyValueError::new_err(format!("nothing is called {name:?}")))
    };
    Switch::switch_off(names.iter().map(named).collect::<PyResult<Vec<Switch>>>()?);
    Ok(Switch::ALL.iter().map(|switch| switch.name()).collect())
}
