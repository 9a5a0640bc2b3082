//! Errors of the engine as the exception classes of `stencilm.errors`, each with its location.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyType};
use stencilm_engine::{EngineError, MatcherError, SavedError, VocabularyError};
use stencilm_grammar::{ErrorKind, GrammarError};
use stencilm_regex::syntax::{PatternError, PatternErrorKind};
use stencilm_support::LimitExceeded;

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// An exception of the class `stencilm.errors.{class}`.
pub fn raise(py: Python<'_>, class: &str, message: &str, place: Option<&str>) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let module = MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("stencilm.errors")?.unbind()))?;
        let class = module.bind(py).getattr(class)?;
        let class = class.cast::<PyType>()?;
        let keywords = [("place", place)].into_py_dict(py)?;
        Ok(PyErr::from_value(class.call((message,), Some(&keywords))?))
    };
    build().unwrap_or_else(|error| error)
}

/// An error of a grammar.
pub fn grammar(py: Python<'_>, error: &GrammarError) -> PyErr {
    let class = match error.kind {
        ErrorKind::Syntax => "GrammarSyntaxError",
        ErrorKind::Unsupported => "UnsupportedFeature",
        ErrorKind::Unsatisfiable => "Unsatisfiable",
        ErrorKind::Limit => "LimitExceeded",
    };
    let place = Some(error.place.as_str()).filter(|place| !place.is_empty());
    raise(py, class, &error.message, place)
}

/// An error of a pattern.
pub fn pattern(py: Python<'_>, error: &PatternError) -> PyErr {
    let class = match error.kind {
        PatternErrorKind::Syntax => "GrammarSyntaxError",
        PatternErrorKind::Unsupported => "UnsupportedFeature",
        PatternErrorKind::Limit => "LimitExceeded",
    };
    raise(py, class, &error.message, Some(&format!("offset {}", error.offset)))
}

/// The token of an operation was cancelled.
pub fn cancelled(py: Python<'_>) -> PyErr {
    raise(py, "OperationCancelled", &LimitExceeded::Cancelled.to_string(), None)
}

/// An error of a matcher.
pub fn matcher(py: Python<'_>, error: &MatcherError) -> PyErr {
    let class = match error {
        MatcherError::Engine(EngineError::Limit(LimitExceeded::Cancelled)) => "OperationCancelled",
        MatcherError::Engine(
            EngineError::Limit(_)
            | EngineError::GrammarTooLarge { .. }
            | EngineError::StacksFull(_)
            | EngineError::StacksTooCostly(_)
            | EngineError::CapturesTooCostly(_)
            | EngineError::CompletionTooCostly(_)
            | EngineError::UniqueTooCostly(_)
            | EngineError::KeysTooCostly(_)
            | EngineError::TooManyWays(_),
        ) => "LimitExceeded",
        _ => "MatcherError",
    };
    raise(py, class, &error.to_string(), None)
}

/// An error of joining a grammar and a vocabulary.
pub fn compiling(py: Python<'_>, error: EngineError) -> PyErr {
    match error {
        EngineError::UnknownToken { .. }
        | EngineError::TokenOutOfRange { .. }
        | EngineError::NoTokenLeft
        | EngineError::TooFewValues(_) => raise(py, "Unsatisfiable", &error.to_string(), None),
        EngineError::NotRun(_) => raise(py, "UnsupportedFeature", &error.to_string(), None),
        _ => matcher(py, &MatcherError::Engine(error)),
    }
}

/// An error of reading a compiled grammar.
pub fn saved(py: Python<'_>, error: SavedError) -> PyErr {
    match error {
        SavedError::Grammar(error) => grammar(py, &error),
        SavedError::Engine(error) => compiling(py, error),
        SavedError::OtherTokenizer { .. } => raise(py, "TokenizerError", &error.to_string(), Some("#/tokenizer")),
    }
}

/// The error of a batch in which some sequences failed: all results, `None` for those, and their errors by index.
pub fn batch<R: for<'py> IntoPyObject<'py>>(
    py: Python<'_>,
    results: Vec<Option<R>>,
    failed: Vec<(usize, PyErr)>,
) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let module = MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("stencilm.errors")?.unbind()))?;
        let errors = failed.into_iter().map(|(index, error)| (index, error.into_value(py))).into_py_dict(py)?;
        let error = module.bind(py).getattr("BatchError")?.call_method1("of", (results, errors))?;
        Ok(PyErr::from_value(error))
    };
    build().unwrap_or_else(|error| error)
}

/// An error of a vocabulary.
pub fn vocabulary(py: Python<'_>, error: &VocabularyError) -> PyErr {
    raise(py, "TokenizerError", &error.to_string(), None)
}
