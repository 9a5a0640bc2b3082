//! `_core.Vocabulary`: the bytes of every token, stored once for all grammars.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use stencilm_engine::{self as engine, Alphabet, EncodingSource};

use crate::arguments::Given;
use crate::bitmask::Rows;
use crate::errors;
use crate::watch;

/// What each token of a tokenizer spells, which tokens are stop tokens, and the trie of all tokens.
#[pyclass(frozen, module = "stencilm._core")]
pub struct Vocabulary {
    pub inner: Arc<engine::Vocabulary>,
}

#[pymethods]
impl Vocabulary {
    #[new]
    #[pyo3(signature = (tokens, *, vocab_size, stop_token_ids, special_token_ids, special_names))]
    fn new(
        py: Python<'_>,
        tokens: Vec<Option<Bound<'_, PyBytes>>>,
        vocab_size: usize,
        stop_token_ids: Vec<u32>,
        special_token_ids: Vec<u32>,
        special_names: Vec<String>,
    ) -> PyResult<Vocabulary> {
        if special_token_ids.len() != special_names.len() {
            let message = format!(
                "{} special token ids and {} names do not match; give one name for each id",
                special_token_ids.len(),
                special_names.len()
            );
            return Err(errors::raise(py, "TokenizerError", &message, None));
        }
        let tokens: Vec<Option<&[u8]>> =
            tokens.iter().map(|token| token.as_ref().map(|token| token.as_bytes())).collect();
        let special: Vec<(u32, String)> = special_token_ids.into_iter().zip(special_names).collect();
        match watch::unstoppable(py, || engine::Vocabulary::new(&tokens, vocab_size, &stop_token_ids, &special))? {
            Ok(inner) => Ok(Vocabulary { inner: Arc::new(inner) }),
            Err(error) => Err(errors::vocabulary(py, &error)),
        }
    }

    /// Compute, before the first grammar, what grammars have in common: numbers, dates, addresses.
    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        watch::unstoppable(py, || self.inner.prepare())
    }

    /// The number of token ids, including those without a token.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.inner.vocab_size()
    }

    /// The ids of the tokens that end a text.
    #[getter]
    fn stop_token_ids(&self) -> Vec<u32> {
        self.inner.stop_token_ids().to_vec()
    }

    /// The ids of the special tokens, in ascending order.
    #[getter]
    fn special_token_ids(&self) -> Vec<u32> {
        self.inner.special_tokens().iter().map(|(id, _)| *id).collect()
    }

    /// The bytes of a token; None for a special token, a stop token, or an id without a token.
    fn token_bytes<'py>(&self, py: Python<'py>, token_id: u32) -> Option<Bound<'py, PyBytes>> {
        self.inner.token_bytes(token_id).map(|bytes| PyBytes::new(py, bytes))
    }

    /// The bytes of every token, by id; empty if it has no text.
    fn all_token_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = (0..self.inner.vocab_size() as u32).map(|id| self.inner.token_bytes(id).unwrap_or_default());
        PyList::new(py, all.map(|bytes| PyBytes::new(py, bytes)).collect::<Vec<_>>())
    }

    /// Write the row of a mask patch; False if the grammars that had it are gone.
    fn fill_mask_row(&self, row: u32, bitmask: &Bound<'_, PyAny>, index: Given<'_>) -> PyResult<bool> {
        let mut rows = Rows::of(bitmask, self.inner.mask_words())?;
        Ok(self.inner.write_row(row, rows.row(&index)?))
    }

    /// The tokens that span the end of a text, grouped by where they begin, at most `limit` for each position.
    fn spans(&self, py: Python<'_>, text: &[u8], limit: usize) -> PyResult<Vec<(usize, Vec<u32>)>> {
        watch::unstoppable(py, || {
            self.inner.spans(text, limit).into_iter().map(|span| (span.start, span.tokens)).collect()
        })
    }

    /// Learn how the tokenizer encodes, from the model of its tokenizer.json.
    ///
    /// Raises:
    ///     ValueError: The model cannot be learned; the message says why.
    #[pyo3(signature = (model, *, byte_level, space, pattern))]
    fn learn_encoding(
        &self,
        py: Python<'_>,
        model: &[u8],
        byte_level: bool,
        space: char,
        pattern: Option<String>,
    ) -> PyResult<()> {
        let alphabet = if byte_level { Alphabet::ByteLevel } else { Alphabet::Text { space } };
        let learn = || {
            let model = std::str::from_utf8(model).map_err(|_| "its model is not text".to_owned())?;
            self.inner.learn_encoding(&EncodingSource::from_model(model, alphabet, pattern)?)
        };
        watch::unstoppable(py, learn)?.map_err(PyValueError::new_err)
    }

    /// Learn what `saved_encoding` returned.
    ///
    /// Raises:
    ///     ValueError: It cannot be learned; the message says why.
    fn learn_saved_encoding(&self, py: Python<'_>, saved: &[u8]) -> PyResult<()> {
        let learn = || match EncodingSource::from_bytes(saved) {
            Some(source) => self.inner.learn_encoding(&source),
            None => Err("it is not what saved_encoding() gives".to_owned()),
        };
        watch::unstoppable(py, learn)?.map_err(PyValueError::new_err)
    }

    /// What was learned, for `learn_saved_encoding`; None if nothing was.
    fn saved_encoding<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let saved = watch::unstoppable(py, || self.inner.encoding_source().map(|source| source.to_bytes()))?;
        Ok(saved.map(|saved| PyBytes::new(py, &saved)))
    }

    /// The tokens of a text as its tokenizer writes them; None if its encoding was not learned.
    fn encode(&self, py: Python<'_>, text: &str) -> PyResult<Option<Vec<u32>>> {
        watch::unstoppable(py, || self.inner.encode(text))
    }

    /// 32 hexadecimal digits that are the same for equal vocabularies.
    fn fingerprint(&self) -> String {
        format!("{:032x}", self.inner.fingerprint())
    }

    /// The number of nodes in the trie of all tokens.
    fn trie_nodes(&self) -> usize {
        self.inner.trie().len()
    }

    /// The memory that it uses, in bytes, without what its grammars share.
    #[getter]
    fn memory_size_bytes(&self) -> usize {
        self.inner.memory_bytes() + self.inner.encoding_bytes()
    }

    /// The memory of the lexemes that all its grammars share, in bytes; does not wait for threads that use them.
    #[getter]
    fn lexicon_size_bytes(&self) -> usize {
        self.inner.lexicon_bytes()
    }
}
