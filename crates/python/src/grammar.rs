//! `_core.Grammar`: notations in, one immutable grammar out.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use stencilm_grammar::{
    self as grammar, Finding, GrammarError, Holes, LarkOptions, NamedGrammar, Piece, Spelling, StructuralTagOptions,
    SymbolTables,
};

use crate::errors;
use crate::limits::Limits;
use crate::watch;

/// Keyword, location, note.
type Row = (String, String, String);

/// How a schema is read and how its instances are written. Made once, used for many schemas.
#[pyclass(frozen, module = "stencilm._core")]
pub struct JsonSchemaOptions {
    inner: grammar::JsonSchemaOptions,
}

#[pymethods]
impl JsonSchemaOptions {
    #[new]
    #[pyo3(signature = (*, any_whitespace, indent, separators, strict_mode, max_whitespace, property_order, spelling,
                        escapes, formats, nullable, on_unsupported))]
    #[expect(clippy::too_many_arguments, reason = "the options of the public call, one by one")]
    fn new(
        any_whitespace: bool,
        indent: Option<u32>,
        separators: Option<(String, String)>,
        strict_mode: bool,
        max_whitespace: Option<u32>,
        property_order: &str,
        spelling: &str,
        escapes: &str,
        formats: &str,
        nullable: bool,
        on_unsupported: &str,
    ) -> PyResult<JsonSchemaOptions> {
        let spellings = [
            ("natural", (Spelling::Natural, false)),
            ("digits", (Spelling::Natural, true)),
            ("any", (Spelling::Any, false)),
        ];
        let (spelling, integers_as_digits) = one_of("spelling", spelling, spellings)?;
        let inner = grammar::JsonSchemaOptions {
            any_whitespace,
            indent,
            separators,
            strict_mode,
            max_whitespace,
            any_order: one_of("property_order", property_order, [("declared", false), ("any", true)])?,
            spelling,
            minimal_escapes: one_of("escapes", escapes, [("any", false), ("minimal", true)])?,
            integers_as_digits,
            enforce_formats: one_of("formats", formats, [("enforced", true), ("annotation", false)])?,
            nullable,
            relax: one_of("on_unsupported", on_unsupported, [("error", false), ("relax", true)])?,
            ..grammar::JsonSchemaOptions::default()
        };
        Ok(JsonSchemaOptions { inner })
    }
}

impl JsonSchemaOptions {
    /// The options for a schema with these documents.
    pub fn within(&self, documents: Vec<(String, String)>, limits: &Limits) -> grammar::JsonSchemaOptions {
        let (max_bytes, max_exprs) = (limits.schema_bytes, limits.compiling.grammar_expressions);
        grammar::JsonSchemaOptions { documents, max_bytes, max_exprs, ..self.inner.clone() }
    }
}

/// A grammar without a vocabulary.
#[pyclass(frozen, module = "stencilm._core")]
pub struct Grammar {
    pub inner: Arc<grammar::Grammar>,
    /// Answers questions about holes. Taken out while it answers one; a concurrent question makes its own.
    holes: Mutex<Option<Box<Holes>>>,
}

#[pymethods]
impl Grammar {
    /// The instances of a schema; `documents` are the schemas that it may refer to, each with its URI.
    #[staticmethod]
    fn from_json_schema(
        py: Python<'_>,
        schema: &str,
        options: &JsonSchemaOptions,
        documents: Vec<(String, String)>,
        limits: &Limits,
    ) -> PyResult<Grammar> {
        let options = options.within(documents, limits);
        let read = || grammar::from_json_schema(schema, &options);
        let result = limits.read(py, read)?;
        Grammar::wrap(py, result)
    }

    /// Any JSON text.
    #[staticmethod]
    fn any_json(py: Python<'_>) -> PyResult<Grammar> {
        Grammar::wrap(py, watch::long(py, || grammar::any_json(&grammar::JsonSchemaOptions::default()))?)
    }

    /// The texts that a regular expression matches as a whole.
    #[staticmethod]
    fn from_regex(py: Python<'_>, pattern: &str, limits: &Limits) -> PyResult<Grammar> {
        let read = || grammar::from_regex(pattern);
        match limits.read(py, read)? {
            Ok(inner) => Ok(Grammar::of(Arc::new(inner))),
            Err(grammar::RegexError::Pattern(error)) => Err(errors::pattern(py, &error)),
            Err(grammar::RegexError::Grammar(error)) => Err(errors::grammar(py, &error)),
        }
    }

    /// The texts of an EBNF grammar; `symbols` are the tables of names that it may use.
    #[staticmethod]
    fn from_ebnf(
        py: Python<'_>,
        text: &str,
        root_rule_name: &str,
        symbols: Vec<(String, Vec<String>)>,
        limits: &Limits,
    ) -> PyResult<Grammar> {
        let symbols = SymbolTables::new(symbols);
        let read = || grammar::Grammar::from_ebnf_with(text, root_rule_name, &symbols);
        let result = limits.read(py, read)?;
        Grammar::wrap(py, result)
    }

    /// The texts of a Lark grammar; `grammars` are those that it uses by name, `symbols` the tables of names.
    #[staticmethod]
    fn from_lark(
        py: Python<'_>,
        text: &str,
        start: &str,
        grammars: Vec<(String, Named<'_>)>,
        symbols: Vec<(String, Vec<String>)>,
        limits: &Limits,
    ) -> PyResult<Grammar> {
        let grammars: Vec<(String, Result<Arc<grammar::Grammar>, String>)> = grammars
            .into_iter()
            .map(|(name, grammar)| match grammar {
                Named::Grammar(grammar) => (name, Ok(grammar.inner.clone())),
                Named::Lark(text) => (name, Err(text)),
            })
            .collect();
        let symbols = SymbolTables::new(symbols);
        let read = || {
            let named = grammars.iter().map(|(name, grammar)| match grammar {
                Ok(grammar) => (name.as_str(), NamedGrammar::Grammar(grammar)),
                Err(text) => (name.as_str(), NamedGrammar::Lark(text)),
            });
            let named: Vec<(&str, NamedGrammar<'_>)> = named.collect();
            grammar::Grammar::from_lark(text, &LarkOptions { start, grammars: &named, symbols: &symbols })
        };
        let result = limits.read(py, read)?;
        Grammar::wrap(py, result)
    }

    /// The texts of a structural tag, given as JSON.
    #[staticmethod]
    fn from_structural_tag(py: Python<'_>, text: &str, limits: &Limits) -> PyResult<Grammar> {
        let (max_bytes, max_exprs) = (limits.schema_bytes, limits.compiling.grammar_expressions);
        let options = StructuralTagOptions { max_bytes, max_exprs };
        let read = || grammar::Grammar::from_structural_tag(text, &options);
        let result = limits.read(py, read)?;
        Grammar::wrap(py, result)
    }

    /// Those of the given special-token names that the grammar spells only as text.
    fn names_as_text(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Vec<String>> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        watch::unstoppable(py, || self.inner.names_as_text(&names).into_iter().map(str::to_owned).collect())
    }

    /// The grammar as EBNF, which `from_ebnf` reads as the same set of texts.
    fn to_ebnf(&self, py: Python<'_>) -> PyResult<String> {
        watch::writing(py, || self.inner.to_ebnf_in_time())
    }

    /// The grammar and its report as JSON text.
    fn serialize_json(&self, py: Python<'_>) -> PyResult<String> {
        watch::writing(py, || self.inner.serialize_json_in_time())
    }

    /// The grammar that `serialize_json` wrote.
    #[staticmethod]
    fn deserialize_json(py: Python<'_>, text: &str, limits: &Limits) -> PyResult<Grammar> {
        let read = || grammar::Grammar::deserialize_json(text);
        let result = limits.read(py, read)?;
        Grammar::wrap(py, result)
    }

    /// The concatenations of one text of each grammar, in order.
    #[staticmethod]
    fn concat(py: Python<'_>, grammars: Vec<PyRef<'_, Grammar>>, limits: &Limits) -> PyResult<Grammar> {
        Grammar::combine(py, &grammars, limits, grammar::Grammar::concat)
    }

    /// The texts of any of the grammars.
    #[staticmethod]
    fn union(py: Python<'_>, grammars: Vec<PyRef<'_, Grammar>>, limits: &Limits) -> PyResult<Grammar> {
        Grammar::combine(py, &grammars, limits, grammar::Grammar::union)
    }

    /// Whether the holes, each `None`, can be filled so that the result is a text of the grammar.
    fn is_completable(&self, py: Python<'_>, pieces: Vec<Option<PyBackedBytes>>, limits: &Limits) -> PyResult<bool> {
        self.ask(py, &pieces, limits, Holes::is_completable)
    }

    /// The texts that may be put into the first hole.
    fn fill(&self, py: Python<'_>, pieces: Vec<Option<PyBackedBytes>>, limits: &Limits) -> PyResult<Grammar> {
        let filling = self.ask(py, &pieces, limits, Holes::filling)?;
        Ok(Grammar::of(Arc::new(filling)))
    }

    /// How every keyword of a schema was treated: enforced, annotations, relaxed; each as keyword, location and note.
    fn report(&self, py: Python<'_>) -> PyResult<(Vec<Row>, Vec<Row>, Vec<Row>)> {
        let rows = |findings: &[Finding]| {
            findings.iter().map(|f| (f.keyword.clone(), f.place.clone(), f.note.clone())).collect::<Vec<_>>()
        };
        watch::writing(py, || {
            let report = self.inner.report_in_time()?;
            Ok((rows(&report.enforced), rows(&report.annotations), rows(&report.relaxed)))
        })
    }

    /// The memory that it uses, in bytes.
    #[getter]
    fn memory_size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        watch::unstoppable(py, || self.inner.memory_bytes())
    }
}

/// A grammar that a Lark text uses by name.
#[derive(FromPyObject)]
enum Named<'py> {
    Grammar(PyRef<'py, Grammar>),
    Lark(String),
}

/// Combines several grammars into one.
type Combine = fn(&[&grammar::Grammar]) -> Result<grammar::Grammar, grammar::GrammarError>;

impl Grammar {
    fn combine(
        py: Python<'_>,
        grammars: &[PyRef<'_, Grammar>],
        limits: &Limits,
        combine: Combine,
    ) -> PyResult<Grammar> {
        let grammars: Vec<Arc<grammar::Grammar>> = grammars.iter().map(|grammar| grammar.inner.clone()).collect();
        let result = limits.read(py, || {
            let grammars: Vec<&grammar::Grammar> = grammars.iter().map(|grammar| &**grammar).collect();
            combine(&grammars)
        })?;
        Grammar::wrap(py, result)
    }

    fn wrap(py: Python<'_>, result: Result<grammar::Grammar, grammar::GrammarError>) -> PyResult<Grammar> {
        match result {
            Ok(inner) => Ok(Grammar::of(Arc::new(inner))),
            Err(error) => Err(errors::grammar(py, &error)),
        }
    }

    /// Wraps a finished grammar.
    pub fn of(inner: Arc<grammar::Grammar>) -> Grammar {
        Grammar { inner, holes: Mutex::new(None) }
    }

    /// Asks a question about a text with holes, each `None` among its pieces.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        pieces: &[Option<PyBackedBytes>],
        limits: &Limits,
        question: impl Fn(&mut Holes, &[Piece<'_>]) -> Result<T, GrammarError> + Send + Sync,
    ) -> PyResult<T> {
        let pieces: Vec<Piece<'_>> =
            pieces.iter().map(|piece| piece.as_deref().map_or(Piece::Hole, Piece::Text)).collect();
        let slot = || self.holes.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || {
            let kept = slot().take();
            let mut holes = match kept {
                Some(holes) => holes,
                None => Box::new(Holes::new(self.inner.clone())),
            };
            let answer = question(&mut holes, &pieces);
            *slot() = Some(holes);
            answer
        };
        limits.read(py, read)?.map_err(|error| errors::grammar(py, &error))
    }
}

fn one_of<T, const N: usize>(name: &str, value: &str, choices: [(&str, T); N]) -> PyResult<T> {
    let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    choices
        .into_iter()
        .find(|(word, _)| *word == value)
        .map(|(_, choice)| choice)
        .ok_or_else(|| PyValueError::new_err(format!("{name}={value:?} is not known; give {}", words.join(" or "))))
}
