//! `_core.CompiledGrammar`: a grammar times a vocabulary.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use stencilm_engine::{self as engine, EngineError, SavedError};
use stencilm_grammar::{self as grammar, GrammarError};
use stencilm_regex as regex;

use crate::cancel::CancelToken;
use crate::errors;
use crate::grammar::{Grammar, JsonSchemaOptions};
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
    working_bytes: usize,
    stack_bytes: usize,
    lexicon_bytes: usize,
    mask_cache_bytes: usize,
    milliseconds: u64,
    cancel: Option<Py<CancelToken>>,
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
            working_bytes: limits.working_bytes,
            stack_bytes: limits.stack_bytes,
            lexicon_bytes: limits.lexicon_bytes,
            mask_cache_bytes: limits.mask_cache_bytes,
            milliseconds: limits.milliseconds,
            cancel: limits.cancel.map(|token| token.get().inner.clone()),
        };
        Limits { schema_bytes: limits.schema_bytes, compiling }
    }
}

impl Limits {
    /// Reads a notation within these limits.
    ///
    /// # Errors
    /// `OperationCancelled`, and what the handler of a signal raises.
    pub fn read<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        read: impl Fn() -> Result<T, E> + Send + Sync,
    ) -> PyResult<Result<T, E>> {
        self.unless_cancelled(py, || watch::reading(&self.compiling, &read))
    }

    /// Runs an operation, which whatever it says has not failed but was cancelled where that is so.
    fn unless_cancelled<T: Send, E: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnMut() -> Result<T, E> + Send,
    ) -> PyResult<Result<T, E>> {
        let is_cancelled = || self.compiling.cancel.as_ref().is_some_and(regex::CancelToken::is_cancelled);
        if is_cancelled() {
            return Err(errors::cancelled(py));
        }
        let result = watch::long(py, operation)?;
        if result.is_err() && is_cancelled() { Err(errors::cancelled(py)) } else { Ok(result) }
    }
}

/// A grammar compiled for a vocabulary; immutable and usable from many threads at once.
#[pyclass(subclass, frozen, weakref, module = "stencilm._core")]
pub struct CompiledGrammar {
    pub inner: Arc<engine::CompiledGrammar>,
    /// What the grammar was made of; none where it comes from a text that `serialize_json` wrote.
    #[pyo3(get, name = "_source")]
    source: Py<PyAny>,
    /// The tokenizer of the vocabulary.
    #[pyo3(get)]
    pub tokenizer_info: Py<PyAny>,
}

/// What the source of a compiled grammar is, or was made into.
#[derive(FromPyObject)]
enum Made<'py> {
    /// The first of the source is the text of a JSON Schema, to be read with these options.
    Options(PyRef<'py, JsonSchemaOptions>),
    /// A grammar.
    Grammar(PyRef<'py, Grammar>),
}

/// What is in the way of compiling.
enum Refused {
    Grammar(GrammarError),
    Compiling(EngineError),
    Saved(SavedError),
}

#[pymethods]
impl CompiledGrammar {
    /// Of a text that `serialize_json` wrote, where nothing is `made` of it.
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
            compiling.watch().over(compile).map_err(Refused::Compiling)
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
                        compiling.watch().over(read)
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
        watch::unstoppable(py, || self.inner.serialize_json())
    }

    /// What it keeps in memory by now, in bytes.
    #[getter]
    fn memory_size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        watch::unstoppable(py, || self.inner.memory_bytes())
    }
}
