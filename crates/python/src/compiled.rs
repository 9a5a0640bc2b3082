//! `_core.CompiledGrammar`: a grammar times a vocabulary.

use std::sync::Arc;

use pyo3::prelude::*;
use stencilm_engine as engine;

use crate::errors;
use crate::grammar::Grammar;
use crate::vocabulary::Vocabulary;

/// A grammar compiled for a vocabulary; immutable and usable from many threads at once.
#[pyclass(frozen, module = "stencilm._core")]
pub struct CompiledGrammar {
    pub inner: Arc<engine::CompiledGrammar>,
}

#[pymethods]
impl CompiledGrammar {
    #[new]
    fn new(py: Python<'_>, grammar: &Grammar, vocabulary: &Vocabulary) -> PyResult<CompiledGrammar> {
        let (grammar, vocabulary) = (grammar.inner.clone(), vocabulary.inner.clone());
        let inner = py.detach(|| engine::CompiledGrammar::new(grammar, vocabulary));
        Ok(CompiledGrammar { inner: Arc::new(inner.map_err(|error| errors::compiling(py, error))?) })
    }

    /// Also the grammar, which was in the text.
    #[staticmethod]
    fn deserialize_json(py: Python<'_>, text: &str, vocabulary: &Vocabulary) -> PyResult<(Grammar, CompiledGrammar)> {
        let vocabulary = vocabulary.inner.clone();
        match py.detach(|| engine::CompiledGrammar::deserialize_json(text, vocabulary)) {
            Ok(inner) => Ok((Grammar { inner: inner.grammar().clone() }, CompiledGrammar { inner: Arc::new(inner) })),
            Err(error) => Err(errors::saved(py, error)),
        }
    }

    fn serialize_json(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.serialize_json())
    }

    #[getter]
    fn memory_size_bytes(&self) -> usize {
        self.inner.memory_bytes()
    }
}
