//! `_core.Matcher`: one sequence's cursor.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use stencilm_engine::{self as engine, MatcherOptions};

use crate::bitmask;
use crate::compiled::CompiledGrammar;
use crate::errors;

/// The state of one sequence. Made from a compiled grammar, or from another matcher as its fork.
#[pyclass(subclass, module = "stencilm._core")]
pub struct Matcher {
    inner: engine::GrammarMatcher,
    #[pyo3(get)]
    max_rollback_tokens: usize,
}

#[pymethods]
impl Matcher {
    #[new]
    #[pyo3(signature = (source, *, override_stop_tokens = None, terminate_without_stop_token = false,
                        max_rollback_tokens = 0))]
    fn new(
        source: &Bound<'_, PyAny>,
        override_stop_tokens: Option<Vec<u32>>,
        terminate_without_stop_token: bool,
        max_rollback_tokens: usize,
    ) -> PyResult<Matcher> {
        if let Ok(other) = source.cast::<Matcher>() {
            let other = other.borrow();
            return Ok(Matcher { inner: other.inner.fork(), max_rollback_tokens: other.max_rollback_tokens });
        }
        let compiled = source.cast::<CompiledGrammar>().map_err(|_| {
            PyTypeError::new_err(format!(
                "a matcher is made from a CompiledGrammar, not from {}; compile the grammar first",
                source.get_type()
            ))
        })?;
        let options = MatcherOptions { override_stop_tokens, terminate_without_stop_token };
        match engine::GrammarMatcher::new(compiled.get().inner.clone(), &options) {
            Ok(inner) => Ok(Matcher { inner, max_rollback_tokens }),
            Err(error) => Err(errors::matcher(source.py(), &error)),
        }
    }

    fn accept_token(&mut self, py: Python<'_>, token_id: i64) -> PyResult<bool> {
        match u32::try_from(token_id) {
            Ok(id) => self.inner.accept_token(id).map_err(|error| errors::matcher(py, &error)),
            Err(_) => Ok(false),
        }
    }

    fn accept_string(&mut self, text: &Bound<'_, PyAny>) -> PyResult<bool> {
        let accepted = if let Ok(text) = text.cast::<PyString>() {
            self.inner.accept_bytes(text.to_cow()?.as_bytes())
        } else if let Ok(bytes) = text.cast::<PyBytes>() {
            self.inner.accept_bytes(bytes.as_bytes())
        } else {
            return Err(PyTypeError::new_err(format!("a text is str or bytes, not {}", text.get_type())));
        };
        accepted.map_err(|error| errors::matcher(text.py(), &error))
    }

    #[pyo3(signature = (bitmask, index = 0))]
    fn fill_next_token_bitmask(&mut self, bitmask: &Bound<'_, PyAny>, index: isize) -> PyResult<bool> {
        let words = self.inner.compiled().vocabulary().mask_words();
        bitmask::with_row(bitmask, index, words, |row| self.inner.fill_mask(row))?
            .map_err(|error| errors::matcher(bitmask.py(), &error))
    }

    fn is_allowed(&mut self, py: Python<'_>, token_id: i64) -> PyResult<bool> {
        match u32::try_from(token_id) {
            Ok(id) => self.inner.is_allowed(id).map_err(|error| errors::matcher(py, &error)),
            Err(_) => Ok(false),
        }
    }

    fn num_allowed_tokens(&mut self, py: Python<'_>) -> PyResult<usize> {
        self.inner.num_allowed_tokens().map_err(|error| errors::matcher(py, &error))
    }

    #[pyo3(signature = (num_tokens = 1))]
    fn rollback(&mut self, py: Python<'_>, num_tokens: isize) -> PyResult<()> {
        let num_tokens = usize::try_from(num_tokens).map_err(|_| {
            let message = format!("cannot roll back {num_tokens} tokens; give a number from 0 up");
            errors::raise(py, "MatcherError", &message, None)
        })?;
        self.inner.rollback(num_tokens).map_err(|error| errors::matcher(py, &error))
    }

    fn reset(&mut self) {
        self.inner.reset();
    }

    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }

    fn is_completed(&self) -> bool {
        self.inner.is_completed()
    }

    #[getter]
    fn stop_token_ids(&self) -> Vec<u32> {
        self.inner.stop_token_ids().to_vec()
    }

    #[getter]
    fn num_accepted_tokens(&self) -> usize {
        self.inner.num_accepted_tokens()
    }

    #[getter]
    fn memory_size_bytes(&self) -> usize {
        self.inner.memory_bytes()
    }

    /// The mask by the slow twin: every token tried on its own. For tests.
    fn _naive_bitmask(&self, py: Python<'_>, bitmask: &Bound<'_, PyAny>, index: isize) -> PyResult<()> {
        let mask = engine::naive::mask(&self.inner).map_err(|error| errors::matcher(py, &error))?;
        bitmask::with_row(bitmask, index, mask.words().len(), |row| row.copy_from_slice(mask.words()))
    }
}
