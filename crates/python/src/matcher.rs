//! `_core.Matcher`: one sequence's cursor.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stencilm_engine::{self as engine, Candidate, DraftTree, Explanation, MatcherError, MatcherOptions, Status};

use crate::arguments::{self, Given};
use crate::bitmask::Rows;
use crate::compiled::CompiledGrammar;
use crate::errors;
use crate::watch;

/// Tokens, grouped by where they begin.
pub type Spans = Vec<(usize, Vec<u32>)>;

/// The state of one sequence. Made from a compiled grammar, or from another matcher as its fork.
#[pyclass(subclass, frozen, weakref, module = "stencilm._core")]
pub struct Matcher {
    inner: Mutex<engine::GrammarMatcher>,
    /// The tokenizer of its grammar.
    #[pyo3(get, name = "_tokenizer_info")]
    tokenizer_info: Py<PyAny>,
    /// The given value. It is accepted for compatibility; rollback has no limit here.
    ///
    /// Examples:
    ///     >>> matcher.max_rollback_tokens
    ///     0
    #[pyo3(get)]
    max_rollback_tokens: usize,
}

impl Matcher {
    /// The matcher, locked for this thread.
    pub fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, engine::GrammarMatcher>> {
        let message = match self.inner.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::WouldBlock) => {
                "another thread is using this matcher; give every thread its own, made with fork()"
            }
            Err(TryLockError::Poisoned(_)) => "an internal error has broken this matcher; make a new one",
        };
        Err(errors::raise(py, "MatcherError", message, None))
    }

    fn fork(&self, py: Python<'_>) -> PyResult<Matcher> {
        let inner = Mutex::new(self.lock(py)?.fork());
        let tokenizer_info = self.tokenizer_info.clone_ref(py);
        Ok(Matcher { inner, tokenizer_info, max_rollback_tokens: self.max_rollback_tokens })
    }

    fn fork_within(&self, py: Python<'_>, tokens: usize) -> PyResult<Matcher> {
        let inner = Mutex::new(self.with(py, |inner| inner.fork_within(tokens))?);
        let tokenizer_info = self.tokenizer_info.clone_ref(py);
        Ok(Matcher { inner, tokenizer_info, max_rollback_tokens: self.max_rollback_tokens })
    }

    /// Runs an operation that changes nothing if it fails: see [`watch::short`].
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        mut operation: impl FnMut(&mut engine::GrammarMatcher) -> Result<T, MatcherError> + Send,
    ) -> PyResult<T> {
        let mut guard = self.lock(py)?;
        let inner = &mut *guard;
        watch::short(py, || operation(inner))?.map_err(|error| errors::matcher(py, &error))
    }
}

#[pymethods]
impl Matcher {
    /// From a compiled grammar; or the fork of the matcher in a tuple.
    #[new]
    #[pyo3(signature = (compiled_grammar, *, override_stop_tokens = None, terminate_without_stop_token = Given::NOTHING,
                        max_rollback_tokens = Given::NOTHING, canonical = Given::NOTHING, token_budget = None,
                        whitespace_budget = None),
           text_signature = "(compiled_grammar, *, override_stop_tokens=None, terminate_without_stop_token=False, \
                             max_rollback_tokens=0, canonical=False, token_budget=None, whitespace_budget=None)")]
    fn new(
        compiled_grammar: &Bound<'_, PyAny>,
        override_stop_tokens: Option<&Bound<'_, PyAny>>,
        terminate_without_stop_token: Given<'_>,
        max_rollback_tokens: Given<'_>,
        canonical: Given<'_>,
        token_budget: Option<&Bound<'_, PyAny>>,
        whitespace_budget: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Matcher> {
        let py = compiled_grammar.py();
        let Ok(compiled) = compiled_grammar.cast::<CompiledGrammar>() else {
            if let Ok((other,)) = compiled_grammar.extract::<(Bound<'_, Matcher>,)>() {
                return match token_budget {
                    Some(tokens) => other.get().fork_within(py, arguments::count("token_budget", tokens)?),
                    None => other.get().fork(py),
                };
            }
            return Err(PyTypeError::new_err(format!(
                "compiled_grammar is a {}, but must be a CompiledGrammar: GrammarCompiler makes one of a grammar",
                arguments::kind(compiled_grammar)
            )));
        };
        let CompiledGrammar { inner: compiled, tokenizer_info, .. } = compiled.get();
        let max_rollback_tokens = match max_rollback_tokens.value() {
            Some(tokens) => arguments::whole("max_rollback_tokens", tokens)?.ok_or_else(|| {
                let shown = arguments::short(tokens);
                PyValueError::new_err(format!(
                    "max_rollback_tokens is {shown}, but must be at least 0, and fit in 64 bits"
                ))
            })?,
            None => 0,
        };
        let switch = |name, given: &Given<'_>| given.value().map_or(Ok(false), |value| arguments::truth(name, value));
        let terminate_without_stop_token = switch("terminate_without_stop_token", &terminate_without_stop_token)?;
        let canonical = switch("canonical", &canonical)?;
        if canonical {
            tokenizer_info.call_method0(py, intern!(py, "learn_encoding"))?;
        }
        let override_stop_tokens = match override_stop_tokens {
            Some(tokens) => Some(arguments::stop_tokens(tokens, compiled.vocabulary().vocab_size())?),
            None => None,
        };
        if override_stop_tokens.as_ref().is_some_and(Vec::is_empty) && !terminate_without_stop_token {
            return Err(PyValueError::new_err(
                "override_stop_tokens is empty, so no text could end: give at least one id, None for those of the \
                 vocabulary, or terminate_without_stop_token=True",
            ));
        }
        let token_budget = token_budget.map(|tokens| arguments::count("token_budget", tokens)).transpose()?;
        let whitespace_budget =
            whitespace_budget.map(|bytes| arguments::count("whitespace_budget", bytes)).transpose()?;
        let options = MatcherOptions {
            override_stop_tokens,
            terminate_without_stop_token,
            canonical,
            token_budget,
            whitespace_budget,
        };
        match watch::short(py, || engine::GrammarMatcher::new(compiled.clone(), &options))? {
            Ok(inner) => {
                let tokenizer_info = tokenizer_info.clone_ref(py);
                Ok(Matcher { inner: Mutex::new(inner), tokenizer_info, max_rollback_tokens })
            }
            Err(error) => Err(errors::matcher(py, &error)),
        }
    }

    /// Accept the next token of the sequence; a refused token changes nothing.
    ///
    /// Args:
    ///     token_id: Its id, from 0 to `vocab_size - 1`.
    ///
    /// Returns:
    ///     True if the grammar allows the token here; False if it does not, if there is no such id, or after the end of
    ///     the text.
    ///
    /// Raises:
    ///     TypeError: `token_id` is not an int.
    ///     LimitExceeded: The step takes more work or memory than the `Limits` of the compiled grammar.
    ///     MatcherError: Another thread is using this matcher.
    ///
    /// Examples:
    ///     >>> matcher.accept_token(2), matcher.accept_token(0)
    ///     (True, False)
    fn accept_token(&self, token_id: &Bound<'_, PyAny>) -> PyResult<bool> {
        match arguments::token_id(token_id)? {
            Some(id) => self.with(token_id.py(), |inner| inner.accept_token(id)),
            None => Ok(false),
        }
    }

    /// Accept a text. If it does not fit as a whole, it is refused and changes nothing.
    ///
    /// The text counts as one token of the history: `rollback(1)` takes all of it back.
    ///
    /// Args:
    ///     text: Text as str, or as bytes, which may end in the middle of a character.
    ///
    /// Returns:
    ///     True if the text fits here, otherwise False.
    ///
    /// Raises:
    ///     TypeError: `text` is neither str nor bytes.
    ///     LimitExceeded: As in `accept_token`.
    ///     MatcherError: As in `accept_token`.
    ///
    /// Examples:
    ///     >>> matcher.accept_string("abb"), matcher.accept_string(b"a")
    ///     (True, False)
    fn accept_string(&self, text: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = &*arguments::text(text)?;
        self.with(text.py(), |inner| inner.accept_bytes(bytes))
    }

    /// Write the mask of the next token into one row of a bitmask.
    ///
    /// Args:
    ///     bitmask: A writable, contiguous int32 array or CPU tensor of shape (batch, ceil(vocab_size / 32)), as from
    ///         `allocate_token_bitmask`, or of one row alone. Bit `i % 32` of word `i // 32` is 1 if token `i` is
    ///         allowed.
    ///     index: The row to write, counted from 0.
    ///
    /// Returns:
    ///     True if the mask must be applied; False if it allows every token.
    ///
    /// Raises:
    ///     TypeError: `bitmask` is not of dtype int32.
    ///     ValueError: `bitmask` has another shape, or is read-only.
    ///     IndexError: There is no such row.
    ///     MatcherError: The text has ended, or another thread is using this matcher.
    ///     LimitExceeded: As in `accept_token`.
    ///
    /// Examples:
    ///     >>> bitmask = stencilm.allocate_token_bitmask(1, info.vocab_size)
    ///     >>> matcher.fill_next_token_bitmask(bitmask)
    ///     True
    ///     >>> bin(int(bitmask[0, 0]))  # tokens 0 and 2
    ///     '0b101'
    #[pyo3(signature = (bitmask, index = Given::NOTHING), text_signature = "($self, bitmask, index=0)")]
    fn fill_next_token_bitmask(&self, bitmask: &Bound<'_, PyAny>, index: Given<'_>) -> PyResult<bool> {
        let mut guard = self.lock(bitmask.py())?;
        let mut rows = Rows::of(bitmask, guard.compiled().vocabulary().mask_words())?;
        let (inner, row) = (&mut *guard, rows.row(&index)?);
        let py = bitmask.py();
        watch::short(py, || inner.fill_mask(row))?.map_err(|error| errors::matcher(py, &error))
    }

    /// The number of a row, and the ids in which the mask differs from it, as int32 in native byte order.
    fn _find_mask_patch<'py>(&self, py: Python<'py>) -> PyResult<(u32, Bound<'py, PyBytes>)> {
        let patch = self.with(py, engine::GrammarMatcher::mask_patch)?;
        let flipped: Vec<u8> = patch.flipped.iter().flat_map(|id| id.to_ne_bytes()).collect();
        Ok((patch.row, PyBytes::new(py, &flipped)))
    }

    /// Whether `accept_token` would accept a token here; changes nothing.
    ///
    /// Args:
    ///     token_id: Its id. An id that the vocabulary does not have is not allowed.
    ///
    /// Raises:
    ///     TypeError: `token_id` is not an int.
    ///     LimitExceeded: As in `accept_token`.
    ///     MatcherError: As in `accept_token`.
    ///
    /// Examples:
    ///     >>> matcher.is_allowed(0), matcher.is_allowed(1)
    ///     (True, False)
    fn is_allowed(&self, token_id: &Bound<'_, PyAny>) -> PyResult<bool> {
        match arguments::token_id(token_id)? {
            Some(id) => self.with(token_id.py(), |inner| inner.is_allowed(id)),
            None => Ok(false),
        }
    }

    /// The number of tokens that the mask allows here; changes nothing.
    ///
    /// Raises:
    ///     MatcherError: The text has ended, or another thread is using this matcher.
    ///     LimitExceeded: As in `accept_token`.
    ///
    /// Examples:
    ///     >>> matcher.num_allowed_tokens()
    ///     2
    fn num_allowed_tokens(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, engine::GrammarMatcher::num_allowed_tokens)
    }

    /// How many of these tokens could be accepted in order; changes nothing.
    ///
    /// Args:
    ///     token_ids: Ids: any iterable of ints.
    ///
    /// Returns:
    ///     The length of the longest prefix that fits, from 0 to the number of tokens.
    ///
    /// Raises:
    ///     TypeError: One of them is not an int.
    ///     LimitExceeded: As in `accept_token`.
    ///     MatcherError: As in `accept_token`.
    ///
    /// Examples:
    ///     >>> matcher.validate_tokens([0, 1, 1, 0])
    ///     3
    fn validate_tokens(&self, token_ids: &Bound<'_, PyAny>) -> PyResult<usize> {
        let ids = arguments::token_ids(token_ids)?;
        self.with(token_ids.py(), |inner| inner.validate_tokens(ids.iter().map_while(|&id| id)))
    }

    /// The status of a text ("complete", "viable" or "dead"), and how many of its bytes fit.
    fn _longest_valid_prefix(&self, text: &Bound<'_, PyAny>) -> PyResult<(&'static str, usize)> {
        let bytes = &*arguments::text(text)?;
        let verdict = self.with(text.py(), |inner| inner.longest_valid_prefix(bytes))?;
        let status = match verdict.status {
            Status::Complete => "complete",
            Status::Viable => "viable",
            Status::Dead => "dead",
        };
        Ok((status, verdict.valid_bytes))
    }

    /// The text that must come next, whatever the model would choose; empty if there is a choice.
    ///
    /// The forced text is cut after its last whole character. Changes nothing.
    ///
    /// Raises:
    ///     LimitExceeded: As in `accept_token`.
    ///     MatcherError: As in `accept_token`.
    ///
    /// Examples:
    ///     >>> matcher.find_jump_forward_string()
    ///     'ab'
    fn find_jump_forward_string(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, engine::GrammarMatcher::forced_text)
    }

    /// The forced bytes, and the tokens that span their end, grouped by where they begin.
    fn _forced_spans<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<(Bound<'py, PyBytes>, Spans)> {
        let (forced, spans) = self.with(py, |inner| inner.forced_spans(limit))?;
        Ok((PyBytes::new(py, &forced), spans.into_iter().map(|span| (span.start, span.tokens)).collect()))
    }

    /// The id of the single token that the grammar asks for here; None if it asks for text, or for more than one.
    fn _forced_token(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        self.with(py, engine::GrammarMatcher::forced_token)
    }

    /// The last accepted tokens, at most `limit`, oldest first.
    fn _recent_tokens(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<u32>> {
        Ok(self.lock(py)?.recent_tokens(limit))
    }

    /// Why a token is allowed or refused here, as a sentence for people; changes nothing.
    ///
    /// Args:
    ///     token_id: Its id. An id without a token is explained, too.
    ///
    /// Raises:
    ///     TypeError: `token_id` is not an int.
    ///     LimitExceeded: As in `accept_token`.
    ///     MatcherError: As in `accept_token`.
    ///
    /// Examples:
    ///     >>> matcher.explain(3)
    ///     'token 3 "c" cannot come next: here comes "a", and not "c"'
    fn explain(&self, token_id: &Bound<'_, PyAny>) -> PyResult<String> {
        let py = token_id.py();
        let vocabulary = self.lock(py)?.compiled().vocabulary().clone();
        let Some(id) = arguments::token_id(token_id)? else {
            let why = Explanation::OutOfRange { vocab_size: vocabulary.vocab_size() };
            return Ok(format!("token {} {why}", arguments::short(token_id)));
        };
        let why = self.with(py, |inner| inner.explain(id))?;
        let text = vocabulary.token_bytes(id).map(|bytes| format!(" {}", engine::shown(bytes)));
        Ok(format!("token {id}{} {why}", text.unwrap_or_default()))
    }

    /// The texts of the grammar's captures, in the order in which they begin, outer ones first; changes nothing.
    ///
    /// Returns:
    ///     Pairs of a name and its bytes. A name appears as often as its part was captured.
    ///
    /// Raises:
    ///     LimitExceeded: As in `accept_token`.
    ///     MatcherError: As in `accept_token`.
    ///
    /// Examples:
    ///     >>> named = stencilm.Grammar.from_lark('start: word "c"\nword[capture]: /[ab]+/')
    ///     >>> matcher = stencilm.GrammarMatcher(stencilm.GrammarCompiler(info).compile(named))
    ///     >>> matcher.accept_string("abbc"), matcher.get_captures()
    ///     (True, [('word', b'abb')])
    fn get_captures<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyBytes>)>> {
        let captures = self.with(py, |inner| inner.get_captures())?;
        Ok(captures.into_iter().map(|(name, text)| (name, PyBytes::new(py, &text))).collect())
    }

    /// For each candidate, whether it is a literal, and its text.
    fn _candidates(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<(bool, String)>> {
        let candidates = self.with(py, |inner| inner.candidates(limit))?;
        let converted = candidates.into_iter().map(|candidate| match candidate {
            Candidate::Literal(text) => (true, text),
            Candidate::Pattern(pattern) => (false, pattern),
        });
        Ok(converted.collect())
    }

    /// A shortest text that completes the accepted text; empty if it is complete. Changes nothing.
    ///
    /// Args:
    ///     max_bytes: The longest text to look for, in bytes.
    ///
    /// Raises:
    ///     MatcherError: Every completion is longer than `max_bytes` (which may be negative), or another thread is
    ///         using this matcher.
    ///     LimitExceeded: As in `accept_token`.
    ///     TypeError: `max_bytes` is not an int.
    ///
    /// Examples:
    ///     >>> matcher.shortest_completion()
    ///     b'ab'
    #[pyo3(signature = (*, max_bytes = Given::NOTHING), text_signature = "($self, *, max_bytes=65536)")]
    fn shortest_completion<'py>(&self, py: Python<'py>, max_bytes: Given<'_>) -> PyResult<Bound<'py, PyBytes>> {
        const MOST: usize = 65_536;
        let max_bytes = max_bytes.value().map_or(Ok(MOST), |bytes| arguments::count("max_bytes", bytes))?;
        let text = self.with(py, |inner| inner.shortest_completion(max_bytes))?;
        Ok(PyBytes::new(py, &text))
    }

    /// The number of tokens that complete the text, not counting the stop token; changes nothing.
    ///
    /// They are the fewest that spell the shortest known completion; another text may take fewer.
    ///
    /// Raises:
    ///     MatcherError: The grammar has budgets of its own, the vocabulary cannot spell the end, or another thread is
    ///         using this matcher.
    ///     LimitExceeded: As in `accept_token`.
    ///
    /// Examples:
    ///     >>> matcher.tokens_to_end()
    ///     1
    fn tokens_to_end(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, engine::GrammarMatcher::tokens_to_end)
    }

    /// The number of tokens from its beginning within which the text must be complete; None without a budget.
    ///
    /// It is the given number; for a fork, it includes the tokens accepted before the fork.
    ///
    /// Examples:
    ///     >>> matcher.fork(token_budget=3).token_budget
    ///     3
    #[getter]
    fn token_budget(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        Ok(self.lock(py)?.token_budget())
    }

    /// How many tokens of the budget are left; below 0 if it could not be kept, None without a budget.
    ///
    /// Examples:
    ///     >>> short = matcher.fork(token_budget=3)
    ///     >>> short.accept_token(2), short.token_budget_left
    ///     (True, 2)
    #[getter]
    fn token_budget_left(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        Ok(self.lock(py)?.token_budget_left())
    }

    /// The most bytes of whitespace between the parts of a JSON text, as given; None without a limit.
    ///
    /// Examples:
    ///     >>> stencilm.GrammarMatcher(compiled, whitespace_budget=3).whitespace_budget
    ///     3
    #[getter]
    fn whitespace_budget(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        Ok(self.lock(py)?.whitespace_budget())
    }

    /// How many bytes of whitespace are left; below 0 if nothing else could come, None without a limit.
    ///
    /// Examples:
    ///     >>> matcher.whitespace_budget_left is None
    ///     True
    #[getter]
    fn whitespace_budget_left(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        Ok(self.lock(py)?.whitespace_budget_left())
    }

    /// Whether the last mask of this step lacks tokens because of the budget.
    ///
    /// Examples:
    ///     >>> matcher.is_narrowed
    ///     False
    #[getter]
    fn is_narrowed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.is_narrowed())
    }

    /// The tokens that the budget removed from the last mask, as the bytes of a row; empty if it removed none.
    fn _withheld<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let inner = self.lock(py)?;
        let words = inner.withheld().unwrap_or_default();
        Ok(PyBytes::new(py, &words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>()))
    }

    /// `GrammarMatcher.traverse_draft_tree` over contiguous int64 arrays, with a time limit in seconds.
    #[pyo3(signature = (next_token, next_sibling, tokens, bitmask, *, time_limit, root))]
    #[expect(clippy::too_many_arguments, reason = "the arguments of the public call, one by one")]
    fn _traverse_draft_tree(
        &self,
        py: Python<'_>,
        next_token: PyBuffer<i64>,
        next_sibling: PyBuffer<i64>,
        tokens: PyBuffer<i64>,
        bitmask: &Bound<'_, PyAny>,
        time_limit: Option<f64>,
        root: usize,
    ) -> PyResult<bool> {
        let mut guard = self.lock(py)?;
        let mut rows = Rows::of(bitmask, guard.compiled().vocabulary().mask_words())?;
        let (next_token, next_sibling, tokens) = (next_token.to_vec(py)?, next_sibling.to_vec(py)?, tokens.to_vec(py)?);
        let tree = DraftTree::new(&next_token, &next_sibling, &tokens, root)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        if rows.len() != tree.num_nodes() {
            return Err(PyValueError::new_err(format!(
                "the bitmask has {} rows, but the draft tree {} nodes; give one row for each node",
                rows.len(),
                tree.num_nodes()
            )));
        }
        let time_limit = time_limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let (inner, rows) = (&mut *guard, rows.all()?);
        // All nodes share one deadline.
        let limits = inner.compiled().limits().clone();
        watch::long(py, || limits.watch().over(|| inner.traverse_draft_tree(&tree, rows, time_limit)))?
            .map_err(|error| errors::matcher(py, &error))
    }

    /// `GrammarMatcher.draft_tree_temperatures` over contiguous int64 arrays.
    fn _draft_tree_temperatures(
        &self,
        py: Python<'_>,
        next_token: PyBuffer<i64>,
        next_sibling: PyBuffer<i64>,
        tokens: PyBuffer<i64>,
        root: usize,
    ) -> PyResult<Vec<Option<f64>>> {
        let mut guard = self.lock(py)?;
        let (next_token, next_sibling, tokens) = (next_token.to_vec(py)?, next_sibling.to_vec(py)?, tokens.to_vec(py)?);
        let tree = DraftTree::new(&next_token, &next_sibling, &tokens, root)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let inner = &mut *guard;
        let limits = inner.compiled().limits().clone();
        watch::long(py, || limits.watch().over(|| inner.draft_tree_temperatures(&tree)))?
            .map_err(|error| errors::matcher(py, &error))
    }

    /// Take back the last accepted tokens; a text passed to `accept_string` counts as one.
    ///
    /// Args:
    ///     num_tokens: How many, by default 1.
    ///
    /// Raises:
    ///     MatcherError: Fewer were accepted, `num_tokens` is negative, or another thread is using this matcher.
    ///     TypeError: It is not an int.
    ///
    /// Examples:
    ///     >>> matcher.accept_token(0), matcher.rollback(1), matcher.num_accepted_tokens
    ///     (True, None, 0)
    #[pyo3(signature = (num_tokens = None))]
    fn rollback(&self, py: Python<'_>, num_tokens: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let count = num_tokens.map_or(Ok(1), |count| arguments::count("num_tokens", count))?;
        self.with(py, |inner| inner.rollback(count))
    }

    /// Go back to the beginning of the text.
    ///
    /// Raises:
    ///     MatcherError: Another thread is using this matcher.
    ///
    /// Examples:
    ///     >>> matcher.accept_token(2), matcher.reset(), matcher.num_accepted_tokens
    ///     (True, None, 0)
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.lock(py)?.reset();
        Ok(())
    }

    /// Whether the text has ended: a stop token was accepted, or, with `terminate_without_stop_token`, it is complete.
    ///
    /// Examples:
    ///     >>> matcher.accept_token(2), matcher.is_terminated()
    ///     (True, False)
    ///     >>> matcher.accept_token(4), matcher.is_terminated()
    ///     (True, True)
    fn is_terminated(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.is_terminated())
    }

    /// Whether the accepted text is a whole text of the grammar and may end here. It may also go on.
    ///
    /// Examples:
    ///     >>> matcher.is_completed(), matcher.accept_token(2), matcher.is_completed()
    ///     (False, True, True)
    fn is_completed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.is_completed())
    }

    /// The ids of the tokens that may end the text: the vocabulary's, or `override_stop_tokens`.
    ///
    /// Examples:
    ///     >>> matcher.stop_token_ids
    ///     [4]
    #[getter]
    fn stop_token_ids(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.lock(py)?.stop_token_ids().to_vec())
    }

    /// The number of tokens accepted so far; each text passed to `accept_string` counts as one.
    ///
    /// Examples:
    ///     >>> matcher.accept_string("abb"), matcher.num_accepted_tokens
    ///     (True, 1)
    #[getter]
    fn num_accepted_tokens(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.lock(py)?.num_accepted_tokens())
    }

    /// The temperature, 0 or more, at which the grammar wants the next token sampled; None if it specifies none.
    ///
    /// Examples:
    ///     >>> matcher.temperature is None
    ///     True
    #[getter]
    fn temperature(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.with(py, engine::GrammarMatcher::temperature)
    }

    /// The memory that this matcher itself uses, in bytes, without the compiled grammar that it shares.
    ///
    /// Examples:
    ///     >>> matcher.memory_size_bytes > 0
    ///     True
    #[getter]
    fn memory_size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.lock(py)?.memory_bytes())
    }

    /// The mask from the slow reference, which tries every token by itself. For tests.
    fn _naive_bitmask(&self, py: Python<'_>, bitmask: &Bound<'_, PyAny>, index: Given<'_>) -> PyResult<()> {
        let mask = self.with(py, |inner| engine::naive::mask(inner))?;
        Rows::of(bitmask, mask.words().len())?.row(&index)?.copy_from_slice(mask.words());
        Ok(())
    }

    /// The bytes that must come next; they may end within a character.
    fn _forced_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let forced = self.with(py, engine::GrammarMatcher::forced_bytes)?;
        Ok(PyBytes::new(py, &forced))
    }
}
