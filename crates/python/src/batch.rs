//! `_core.BatchMatcher`: one call for many sequences, without the interpreter's lock.

use std::sync::MutexGuard;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use stencilm_engine::{GrammarMatcher, MatcherError, Workers};

use crate::arguments;
use crate::bitmask::Rows;
use crate::errors;
use crate::matcher::Matcher;
use crate::watch;

/// Threads that work on the sequences of a batch.
#[pyclass(subclass, frozen, weakref, module = "stencilm._core")]
pub struct BatchMatcher {
    workers: Workers,
}

#[pymethods]
impl BatchMatcher {
    #[new]
    #[pyo3(signature = (max_threads = None))]
    fn new(max_threads: Option<usize>) -> BatchMatcher {
        BatchMatcher { workers: Workers::new(max_threads) }
    }

    #[getter]
    fn max_threads(&self) -> usize {
        self.workers.threads()
    }

    #[pyo3(signature = (matchers, bitmask, indices = None))]
    fn batch_fill_next_token_bitmask(
        &self,
        matchers: Vec<Bound<'_, PyAny>>,
        bitmask: &Bound<'_, PyAny>,
        indices: Option<Vec<isize>>,
    ) -> PyResult<Vec<bool>> {
        let py = bitmask.py();
        let indices = indices.unwrap_or_else(|| (0..matchers.len() as isize).collect());
        same_length(&matchers, "indices", indices.len())?;
        let mut guards = lock_all(py, &matchers)?;
        let Some(first) = guards.first() else { return Ok(Vec::new()) };
        let words = first.compiled().vocabulary().mask_words();
        if let Some(other) = guards.iter().position(|guard| guard.compiled().vocabulary().mask_words() != words) {
            return Err(PyValueError::new_err(format!(
                "matcher {other} belongs to a vocabulary of another size than matcher 0; fill their masks in batches \
                 of their own"
            )));
        }
        let mut rows = Rows::of(bitmask, words)?;
        let jobs = guards.iter_mut().map(|guard| &mut **guard).zip(rows.rows(&indices)?);
        self.run(py, jobs, |matcher, row| matcher.fill_mask(row).inspect_err(|_| row.fill(0)))
    }

    fn batch_accept_token(
        &self,
        py: Python<'_>,
        matchers: Vec<Bound<'_, PyAny>>,
        token_ids: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<bool>> {
        let ids = arguments::token_ids(token_ids)?;
        self.each(py, &matchers, "token_ids", ids, |matcher, id| id.map_or(Ok(false), |id| matcher.accept_token(id)))
    }

    fn batch_accept_string(
        &self,
        py: Python<'_>,
        matchers: Vec<Bound<'_, PyAny>>,
        texts: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<bool>> {
        let texts = texts.iter().map(arguments::text).collect::<PyResult<Vec<_>>>()?;
        self.each(py, &matchers, "texts", texts, |matcher, text| matcher.accept_bytes(text))
    }

    fn batch_temperature(&self, py: Python<'_>, matchers: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Option<f64>>> {
        let nothing = vec![(); matchers.len()];
        self.each(py, &matchers, "matchers", nothing, |matcher, ()| matcher.temperature())
    }

    fn batch_rollback(
        &self,
        py: Python<'_>,
        matchers: Vec<Bound<'_, PyAny>>,
        counts: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let counts =
            counts.iter().map(|count| arguments::count("num_tokens", count)).collect::<PyResult<Vec<usize>>>()?;
        self.each(py, &matchers, "counts", counts, |matcher, &mut count| matcher.rollback(count)).map(|_| ())
    }
}

/// What a batch does for one sequence.
struct Job<'a, A, R> {
    matcher: &'a mut GrammarMatcher,
    argument: A,
    /// Missing until it is done.
    result: Option<Result<R, MatcherError>>,
}

/// A round of a batch was stopped.
struct Unfinished;

impl BatchMatcher {
    fn each<A: Send, R: Send + for<'py> IntoPyObject<'py>>(
        &self,
        py: Python<'_>,
        matchers: &[Bound<'_, PyAny>],
        name: &str,
        arguments: Vec<A>,
        operation: impl Fn(&mut GrammarMatcher, &mut A) -> Result<R, MatcherError> + Send + Sync,
    ) -> PyResult<Vec<R>> {
        same_length(matchers, name, arguments.len())?;
        let mut guards = lock_all(py, matchers)?;
        self.run(py, guards.iter_mut().map(|guard| &mut **guard).zip(arguments), operation)
    }

    /// Works in rounds: what was stopped in one, for a signal or a fork, is done in the next.
    fn run<'a, A: Send, R: Send + for<'py> IntoPyObject<'py>>(
        &self,
        py: Python<'_>,
        jobs: impl Iterator<Item = (&'a mut GrammarMatcher, A)>,
        operation: impl Fn(&mut GrammarMatcher, &mut A) -> Result<R, MatcherError> + Send + Sync,
    ) -> PyResult<Vec<R>> {
        let mut jobs: Vec<Job<'_, A, R>> =
            jobs.map(|(matcher, argument)| Job { matcher, argument, result: None }).collect();
        let round = || {
            watch::share(|call| {
                let open: Vec<&mut Job<'_, A, R>> = jobs.iter_mut().filter(|job| job.result.is_none()).collect();
                self.workers.each(open, |job| {
                    job.result = call.run(|| operation(job.matcher, &mut job.argument));
                });
            });
            if jobs.iter().all(|job| job.result.is_some()) { Ok(()) } else { Err(Unfinished) }
        };
        // Only a signal whose handler raises leaves something undone, and its error has come back before.
        if watch::long(py, round)?.is_err() {
            unreachable!("a round is unfinished only where it was stopped, and then there is another one");
        }
        collected(py, jobs.into_iter().map(|job| job.result.expect("all jobs are done")).collect())
    }
}

fn same_length(matchers: &[Bound<'_, PyAny>], name: &str, length: usize) -> PyResult<()> {
    if matchers.len() == length {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "there are {} matchers, but {length} {name}; give as many of both",
        matchers.len()
    )))
}

/// All matchers of a batch, each of them once.
fn lock_all<'a>(py: Python<'_>, matchers: &'a [Bound<'_, PyAny>]) -> PyResult<Vec<MutexGuard<'a, GrammarMatcher>>> {
    let mut order: Vec<(usize, usize)> =
        matchers.iter().enumerate().map(|(index, matcher)| (matcher.as_ptr() as usize, index)).collect();
    order.sort_unstable();
    if let Some(pair) = order.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(PyValueError::new_err(format!(
            "matchers {} and {} of the batch are the same; give every sequence a matcher of its own, made with fork()",
            pair[0].1, pair[1].1
        )));
    }
    let mut guards = Vec::with_capacity(matchers.len());
    for (index, matcher) in matchers.iter().enumerate() {
        let matcher = matcher.cast::<Matcher>().map_err(|_| {
            PyTypeError::new_err(format!("matchers[{index}] is a {}, not a GrammarMatcher", arguments::shown(matcher)))
        })?;
        guards.push(matcher.get().lock(py)?);
    }
    Ok(guards)
}

/// The results of all sequences, or one error that holds those of the sequences that failed and the results of the others.
fn collected<R: for<'py> IntoPyObject<'py>>(py: Python<'_>, results: Vec<Result<R, MatcherError>>) -> PyResult<Vec<R>> {
    if results.iter().all(Result::is_ok) {
        return Ok(results.into_iter().flatten().collect());
    }
    let mut failed = Vec::new();
    let mut kept = Vec::with_capacity(results.len());
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Ok(result) => kept.push(Some(result)),
            Err(error) => {
                failed.push((index, errors::matcher(py, &error)));
                kept.push(None);
            }
        }
    }
    Err(errors::batch(py, kept, failed))
}
