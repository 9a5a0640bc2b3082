//! `_core.CompiledGrammar`: a grammar times a vocabulary.

use std::sync::Arc;

use pyo3::prelude::*;
use stencilm_engine as engine;

use crate::errors;
use crate::grammar::Grammar;
use crate::vocabulary::Vocabulary;
use crate::watch;

/// The attributes of `stencilm.limits.Limits`.
#[derive(FromPyObject)]
struct Bounds {
    schema_bytes: usize,
    grammar_expressions: usize,
    derived_expressions: usize,
    search_steps: usize,
    automaton_states: usize,
    stack_bytes: usize,
    lexicon_bytes: usize,
    mask_cache_bytes: usize,
    milliseconds: u64,
}

/// How much work and memory a grammar may cost: read once, and used for many grammars.
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
            stack_bytes: limits.stack_bytes,
            lexicon_bytes: limits.lexicon_bytes,
            mask_cache_bytes: limits.mask_cache_bytes,
            milliseconds: limits.milliseconds,
        };
        Limits { schema_bytes: limits.schema_bytes, compiling }
    }
}

/// A grammar compiled for a vocabulary; immutable and usable from many threads at once.
#[pyclass(frozen, module = "stencilm._core")]
pub struct CompiledGrammar {
    pub inner: Arc<engine::CompiledGrammar>,
}

#[pymethods]
impl CompiledGrammar {
    #[new]
    fn new(py: Python<'_>, grammar: &Grammar, vocabulary: &Vocabulary, limits: &Limits) -> PyResult<CompiledGrammar> {
        let (grammar, vocabulary, limits) = (grammar.inner.clone(), vocabulary.inner.clone(), limits.compiling);
        let compile = || engine::CompiledGrammar::with_limits(grammar, vocabulary, limits);
        let inner = watch::over(py, limits.milliseconds, compile)?;
        Ok(CompiledGrammar { inner: Arc::new(inner.map_err(|error| errors::compiling(py, error))?) })
    }

    /// Also the grammar, which was in the text.
    #[staticmethod]
    fn deserialize_json(
        py: Python<'_>,
        text: &str,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> PyResult<(Grammar, CompiledGrammar)> {
        let vocabulary = vocabulary.inner.clone();
        match py.detach(|| engine::CompiledGrammar::deserialize_json(text, vocabulary, limits.compiling)) {
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
