//! `_core.CompiledGrammar`: a grammar times a vocabulary.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use stencilm_engine::{self as engine, EngineError, SavedError};
use stencilm_grammar::{self as grammar, GrammarError};

use crate::errors;
use crate::grammar::{Grammar, JsonSchemaOptions};
use crate::limits::Limits;
use crate::vocabulary::Vocabulary;
use crate::watch;

/// A grammar compiled for a vocabulary; immutable and usable from many threads at once.
#[pyclass(subclass, frozen, weakref, module = "stencilm._core")]
pub struct CompiledGrammar {
    pub inner: Arc<engine::CompiledGrammar>,
    /// What the grammar was made of; None if it was read from the output of `serialize_json`.
    #[pyo3(get, name = "_source")]
    source: Py<PyAny>,
    /// The tokenizer of the vocabulary.
    #[pyo3(get)]
    pub tokenizer_info: Py<PyAny>,
}

/// What the source of a compiled grammar is, or was turned into.
#[derive(FromPyObject)]
enum Made<'py> {
    /// The first item of the source is the text of a JSON Schema, to be read with these options.
    Options(PyRef<'py, JsonSchemaOptions>),
    /// A grammar.
    Grammar(PyRef<'py, Grammar>),
}

/// Why compiling failed.
enum Refused {
    Grammar(GrammarError),
    Compiling(EngineError),
    Saved(SavedError),
}

#[pymethods]
impl CompiledGrammar {
    /// From the output of `serialize_json` if `made` is `None`.
    #[new]
    fn new(
        source: Bound<'_, PyAny>,
        made: Option<Made<'_>>,
        tokenizer_info: Py<PyAny>,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> PyResult<CompiledGrammar> {
        let py = source.py();
        let (vocabulary, compiling) = (vocabulary.inner.clone(), &limits.compiling);
        let compile = |grammar| {
            let compile = || engine::CompiledGrammar::with_limits(grammar, vocabulary.clone(), compiling.clone());
            compiling.watch().from_now().over(compile).map_err(Refused::Compiling)
        };
        let inner = match &made {
            Some(Made::Options(options)) => {
                let (schema, _): (Bound<'_, PyString>, Bound<'_, PyAny>) = source.extract()?;
                let (schema, options) = (schema.to_str()?, options.within(Vec::new(), limits));
                limits.unless_cancelled(py, || {
                    let read = || grammar::from_json_schema(schema, &options);
                    let grammar = watch::reading(compiling, read).map_err(Refused::Grammar)?;
                    compile(Arc::new(grammar))
                })?
            }
            Some(Made::Grammar(grammar)) => {
                let grammar = grammar.inner.clone();
                limits.unless_cancelled(py, || compile(grammar.clone()))?
            }
            None => {
                let text = source.cast::<PyString>()?.to_str()?;
                limits
                    .unless_cancelled(py, || {
                        let limits = compiling.clone();
                        let read = || engine::CompiledGrammar::deserialize_json(text, vocabulary.clone(), limits);
                        compiling.watch().from_now().over(read)
                    })?
                    .map_err(Refused::Saved)
            }
        };
        match inner {
            Ok(inner) => {
                let source = if made.is_some() { source.unbind() } else { py.None() };
                Ok(CompiledGrammar { inner: Arc::new(inner), source, tokenizer_info })
            }
            Err(Refused::Grammar(error)) => Err(errors::grammar(py, &error)),
            Err(Refused::Compiling(error)) => Err(errors::compiling(py, error)),
            Err(Refused::Saved(error)) => Err(errors::saved(py, error)),
        }
    }

    /// The grammar without its source.
    fn _grammar(&self) -> Grammar {
        Grammar::of(self.inner.grammar().clone())
    }

    /// The grammar as JSON text, with the fingerprint of the vocabulary.
    fn serialize_json(&self, py: Python<'_>) -> PyResult<String> {
        watch::writing(py, || self.inner.serialize_json_in_time())
    }

    /// The memory that it uses so far, in bytes.
    #[getter]
    fn memory_size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        watch::unstoppable(py, || self.inner.memory_bytes())
    }
}
