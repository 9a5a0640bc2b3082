//! `_core.TokenIndex` and its builder.

use std::sync::Mutex;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stencilm_engine::{self as engine, IndexError, IndexLimits, MatcherError};

use crate::arguments::{self, Given};
use crate::bitmask::Rows;
use crate::compiled::CompiledGrammar;
use crate::errors;
use crate::matcher::Spans;
use crate::vocabulary::Vocabulary;
use crate::watch;

/// The longest that one call works before it returns to the caller, in seconds.
const MAX_SECONDS: f64 = 1.0;

/// A token index under construction.
#[pyclass(frozen, module = "stencilm._core")]
pub struct IndexBuilder {
    inner: Mutex<engine::IndexBuilder>,
}

/// The explicit automaton over tokens of a regular grammar; immutable.
#[pyclass(frozen, module = "stencilm._core")]
pub struct TokenIndex {
    inner: engine::TokenIndex,
}

fn refused(py: Python<'_>, error: IndexError) -> PyErr {
    match error {
        IndexError::TooManyStates(_)
        | IndexError::TooLarge(_)
        | IndexError::WouldBeTooLarge { .. }
        | IndexError::TooMuchForced { .. } => errors::raise(py, "LimitExceeded", &error.to_string(), None),
        IndexError::SingleTokens | IndexError::TokenBudgets | IndexError::DeclaredNames => {
            errors::raise(py, "UnsupportedFeature", &error.to_string(), None)
        }
        IndexError::Unspelled(_) => errors::raise(py, "TokenizerError", &error.to_string(), None),
        IndexError::Engine(error) => errors::matcher(py, &MatcherError::Engine(error)),
    }
}

#[pymethods]
impl IndexBuilder {
    #[new]
    #[pyo3(signature = (compiled, *, max_states, max_bytes))]
    fn new(py: Python<'_>, compiled: &CompiledGrammar, max_states: usize, max_bytes: usize) -> PyResult<IndexBuilder> {
        let compiled = compiled.inner.clone();
        let limits = IndexLimits { max_states, max_bytes };
        match watch::long(py, || engine::IndexBuilder::new(&compiled, limits))? {
            Ok(inner) => Ok(IndexBuilder { inner: Mutex::new(inner) }),
            Err(error) => Err(refused(py, error)),
        }
    }

    /// Work for about this many seconds; returns whether it is done.
    fn advance(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        // NaN is not a duration.
        let time = Duration::try_from_secs_f64(seconds.clamp(0.0, MAX_SECONDS)).unwrap_or_default();
        watch::unstoppable(py, || self.lock().advance(time))?.map_err(|error| refused(py, error))
    }

    /// The finished states and the known states of the current stage.
    fn progress(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        watch::unstoppable(py, || self.lock().progress())
    }

    /// The index, once `advance` has returned True; None before that, and after it was taken.
    fn finish(&self, py: Python<'_>) -> PyResult<Option<TokenIndex>> {
        watch::unstoppable(py, || self.lock().finish().map(|inner| TokenIndex { inner }))
    }
}

impl IndexBuilder {
    fn lock(&self) -> std::sync::MutexGuard<'_, engine::IndexBuilder> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl TokenIndex {
    /// A state that exists.
    fn state(&self, value: &Bound<'_, PyAny>) -> PyResult<u32> {
        let count = self.inner.num_states();
        match arguments::token_id(value) {
            Ok(Some(state)) if (state as usize) < count => Ok(state),
            _ => {
                let message =
                    format!("{} is no state of this index; its states are 0 to {}", arguments::short(value), count - 1);
                Err(errors::raise(value.py(), "MatcherError", &message, None))
            }
        }
    }
}

#[pymethods]
impl TokenIndex {
    /// The index that `to_bytes` wrote.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8], vocabulary: &Vocabulary) -> PyResult<TokenIndex> {
        match watch::unstoppable(py, || engine::TokenIndex::from_bytes(data, vocabulary.inner.clone()))? {
            Ok(inner) => Ok(TokenIndex { inner }),
            Err(error) => Err(errors::raise(py, "MatcherError", &error.to_string(), None)),
        }
    }

    /// The index as bytes, for `from_bytes` with the same vocabulary.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &watch::unstoppable(py, || self.inner.to_bytes())?))
    }

    /// The number of states; they are numbered from 0, which is the initial state.
    #[getter]
    fn num_states(&self) -> usize {
        self.inner.num_states()
    }

    /// The number of transitions of all states.
    #[getter]
    fn num_transitions(&self) -> usize {
        self.inner.num_transitions()
    }

    /// The memory that it uses, in bytes.
    #[getter]
    fn memory_size_bytes(&self) -> usize {
        self.inner.memory_bytes()
    }

    /// Whether a text may end at a state.
    fn is_final(&self, state: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.inner.is_final(self.state(state)?))
    }

    /// The state after a token; None if the token is not allowed.
    fn next_state(&self, state: &Bound<'_, PyAny>, token_id: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let state = self.state(state)?;
        Ok(arguments::token_id(token_id)?.and_then(|token| self.inner.next(state, token)))
    }

    /// The allowed tokens of a state and the states after them, in ascending order of token id.
    fn transitions(&self, state: &Bound<'_, PyAny>) -> PyResult<Vec<(u32, u32)>> {
        Ok(self.inner.transitions(self.state(state)?).collect())
    }

    /// Write the mask of a state into a row of a bitmask.
    #[pyo3(signature = (state, bitmask, index))]
    fn fill_bitmask(&self, state: &Bound<'_, PyAny>, bitmask: &Bound<'_, PyAny>, index: Given<'_>) -> PyResult<()> {
        let number = self.state(state)?;
        let mut rows = Rows::of(bitmask, self.inner.vocabulary().mask_words())?;
        self.inner.fill_mask(number, rows.row(&index)?).map_err(|error| errors::matcher(state.py(), &error))
    }

    /// The states at which the next byte is forced.
    fn forced_states(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        watch::unstoppable(py, || self.inner.forced_states())?.map_err(|error| refused(py, error))
    }

    /// The forced bytes at a state, and the tokens that span their end, grouped by where they begin.
    fn forced_spans<'py>(&self, state: &Bound<'py, PyAny>, limit: usize) -> PyResult<(Bound<'py, PyBytes>, Spans)> {
        let number = self.state(state)?;
        let (forced, spans) = watch::unstoppable(state.py(), || self.inner.forced_spans(number, limit))?;
        let spans = spans.into_iter().map(|span| (span.start, span.tokens)).collect();
        Ok((PyBytes::new(state.py(), &forced), spans))
    }
}
