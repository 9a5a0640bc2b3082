//! `_core.BatchMatcher`: one call for many sequences, without the interpreter's lock.

use std::cell::RefCell;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use stencilm_engine::{GrammarMatcher, MatcherError, Workers};
use stencilm_support::{Parts, Watch};

use crate::arguments;
use crate::bitmask::{Rows, is_foreign};
use crate::errors;
use crate::matcher::Matcher;
use crate::watch;

/// More threads than any machine can use; each costs memory.
const MAX_THREADS: usize = 1024;

/// A pool of threads that work on the sequences of a batch.
#[pyclass(subclass, frozen, weakref, module = "stencilm._core")]
pub struct BatchMatcher {
    workers: Workers,
}

#[pymethods]
impl BatchMatcher {
    #[new]
    #[pyo3(signature = (max_threads = None))]
    fn new(max_threads: Option<&Bound<'_, PyAny>>) -> PyResult<BatchMatcher> {
        let threads = |value: &Bound<'_, PyAny>| match arguments::whole("max_threads", value)? {
            Some(number @ 1..=MAX_THREADS) => Ok(number),
            _ => Err(PyValueError::new_err(format!(
                "max_threads is {}, but must be from 1 to {MAX_THREADS}",
                arguments::short(value)
            ))),
        };
        Ok(BatchMatcher { workers: Workers::new(max_threads.map(threads).transpose()?) })
    }

    /// The most threads that work on a batch.
    ///
    /// Examples:
    ///     >>> batch.max_threads
    ///     2
    #[getter]
    fn max_threads(&self) -> usize {
        self.workers.threads()
    }

    /// Write the masks of all sequences into the rows of a bitmask.
    ///
    /// Args:
    ///     matchers: One for each sequence, all of one vocabulary.
    ///     bitmask: As in `GrammarMatcher.fill_next_token_bitmask`, int32 of shape (batch, ceil(vocab_size / 32)).
    ///     indices: The row of each sequence, each row once; by default 0, 1, 2 and so on.
    ///
    /// Returns:
    ///     For each sequence, whether its mask must be applied.
    ///
    /// Raises:
    ///     BatchError: Some sequences failed; their rows are zeros, and the rows of the others are filled.
    ///     TypeError: `bitmask` is not of dtype int32, or an element of `matchers` is not a matcher.
    ///     ValueError: There are not as many indices as matchers, a row or a matcher occurs twice, or the bitmask has
    ///         another shape.
    ///
    /// Examples:
    ///     >>> bitmask = stencilm.allocate_token_bitmask(2, info.vocab_size)
    ///     >>> batch.batch_fill_next_token_bitmask(matchers, bitmask)
    ///     [True, True]
    #[pyo3(signature = (matchers, bitmask, indices = None))]
    fn batch_fill_next_token_bitmask(
        &self,
        matchers: &Bound<'_, PyAny>,
        bitmask: &Bound<'_, PyAny>,
        indices: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<bool>> {
        let py = bitmask.py();
        let (matchers, indices) = (listed(matchers)?, rows_of(indices)?);
        same_length(&matchers, "indices", indices.as_ref().map_or(matchers.len(), Vec::len))?;
        let mut guards = lock_all(py, &matchers)?;
        let Some(words) = words_of_all(&guards)? else { return Ok(Vec::new()) };
        let mut rows = Rows::of(bitmask, words)?;
        let jobs = guards.iter_mut().map(|guard| &mut **guard).zip(rows.rows(indices.as_deref(), matchers.len())?);
        self.run(py, jobs, |matcher, row| matcher.fill_mask(row).inspect_err(|_| row.fill(0)))
    }

    /// Write the patches of all masks, and return the number of flipped tokens; these are written only if all fit.
    fn batch_find_mask_patches(
        &self,
        py: Python<'_>,
        matchers: &Bound<'_, PyAny>,
        row_ids: &Bound<'_, PyAny>,
        offsets: &Bound<'_, PyAny>,
        flipped: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let matchers = listed(matchers)?;
        let [row_ids, offsets, flipped] = [
            Integers::of("row_ids", row_ids, matchers.len())?,
            Integers::of("offsets", offsets, matchers.len() + 1)?,
            Integers::of("flipped", flipped, 0)?,
        ];
        let nothing = vec![(); matchers.len()];
        let mut guards = lock_all(py, &matchers)?;
        let jobs = guards.iter_mut().map(|guard| &mut **guard).zip(nothing);
        let (patches, failed) = split(self.results(py, jobs, |matcher, ()| matcher.unordered_mask_patch())?);
        let (mut rows, mut ends) = (Vec::with_capacity(patches.len()), Vec::with_capacity(patches.len() + 1));
        let mut total = 0;
        ends.push(0);
        for patch in &patches {
            rows.push(patch.as_ref().map_or(0, |patch| patch.row as i32));
            total += patch.as_ref().map_or(0, |patch| patch.flipped.len());
            ends.push(total as i32);
        }
        row_ids.write(&rows);
        offsets.write(&ends);
        if total <= flipped.len() {
            let all: Vec<i32> =
                patches.iter().flatten().flat_map(|patch| patch.flipped.iter().map(|&token| token as i32)).collect();
            flipped.write(&all);
        }
        if failed.is_empty() {
            return Ok(total);
        }
        let failed = failed.into_iter().map(|(index, error)| (index, errors::matcher(py, &error))).collect();
        Err(errors::batch(py, patches.into_iter().map(|patch| patch.map(|patch| patch.row)).collect(), failed))
    }

    /// Accept the given token, if any, for every sequence, and fill the mask after it.
    #[pyo3(signature = (matchers, token_ids, bitmask, indices = None))]
    fn batch_accept_and_fill(
        &self,
        py: Python<'_>,
        matchers: &Bound<'_, PyAny>,
        token_ids: &Bound<'_, PyAny>,
        bitmask: &Bound<'_, PyAny>,
        indices: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<(bool, bool)>> {
        let (matchers, indices) = (listed(matchers)?, rows_of(indices)?);
        let token_ids = arguments::items("token_ids", "token ids", token_ids)?;
        same_length(&matchers, "token_ids", token_ids.len())?;
        let given = |id: &Bound<'_, PyAny>| if id.is_none() { None } else { Some(arguments::token_id(id)) };
        let token_ids = token_ids.iter().map(|id| given(id).transpose());
        let token_ids = token_ids.collect::<PyResult<Vec<Option<Option<u32>>>>>()?;
        same_length(&matchers, "indices", indices.as_ref().map_or(matchers.len(), Vec::len))?;
        let mut guards = lock_all(py, &matchers)?;
        let Some(words) = words_of_all(&guards)? else { return Ok(Vec::new()) };
        let mut rows = Rows::of(bitmask, words)?;
        let arguments = token_ids.into_iter().zip(rows.rows(indices.as_deref(), matchers.len())?);
        // A round may be stopped between accepting and filling; the next one continues with the mask.
        let arguments = arguments.map(|(id, row)| (id, row, None));
        let jobs = guards.iter_mut().map(|guard| &mut **guard).zip(arguments);
        self.run(py, jobs, |matcher, (id, row, accepted)| {
            let fits = match *accepted {
                Some(fits) => fits,
                None => match *id {
                    None => true,
                    Some(None) => false,
                    Some(Some(id)) => matcher.accept_token(id).inspect_err(|_| row.fill(0))?,
                },
            };
            *accepted = Some(fits);
            if matcher.is_terminated() {
                // After the end, no token is chosen.
                row.fill(u32::MAX);
                return Ok((fits, false));
            }
            matcher.fill_mask(row).map(|needed| (fits, needed)).inspect_err(|_| row.fill(0))
        })
    }

    /// Accept one token for every sequence; a refused token leaves its sequence unchanged.
    ///
    /// Args:
    ///     matchers: One for each sequence.
    ///     token_ids: An id for each: any iterable of ints.
    ///
    /// Returns:
    ///     For each sequence, what `GrammarMatcher.accept_token` returns.
    ///
    /// Raises:
    ///     BatchError: Some sequences failed; the others have accepted or refused their tokens.
    ///     TypeError: An id is not an int, or an element of `matchers` is not a matcher.
    ///     ValueError: There are not as many ids as matchers, or a matcher occurs twice.
    ///
    /// Examples:
    ///     >>> batch.batch_accept_token(matchers, [0, 1])
    ///     [True, False]
    fn batch_accept_token(
        &self,
        py: Python<'_>,
        matchers: &Bound<'_, PyAny>,
        token_ids: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<bool>> {
        let (matchers, ids) = (listed(matchers)?, arguments::token_ids(token_ids)?);
        self.each(py, &matchers, "token_ids", ids, |matcher, id| id.map_or(Ok(false), |id| matcher.accept_token(id)))
    }

    /// Accept one text for every sequence; a refused text leaves its sequence unchanged.
    ///
    /// Args:
    ///     matchers: One for each sequence.
    ///     texts: A text for each, str or bytes.
    ///
    /// Returns:
    ///     For each sequence, what `GrammarMatcher.accept_string` returns.
    ///
    /// Raises:
    ///     BatchError: Some sequences failed; the others have accepted or refused their texts.
    ///     TypeError: A text is neither str nor bytes, or an element of `matchers` is not a matcher.
    ///     ValueError: There are not as many texts as matchers, or a matcher occurs twice.
    ///
    /// Examples:
    ///     >>> batch.batch_accept_string(matchers, ["ab", b"b"])
    ///     [True, False]
    fn batch_accept_string(
        &self,
        py: Python<'_>,
        matchers: &Bound<'_, PyAny>,
        texts: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<bool>> {
        let (matchers, texts) = (listed(matchers)?, arguments::items("texts", "texts, str or bytes", texts)?);
        let texts = texts.iter().map(arguments::text).collect::<PyResult<Vec<_>>>()?;
        self.each(py, &matchers, "texts", texts, |matcher, text| matcher.accept_bytes(text))
    }

    /// `GrammarMatcher.temperature` of every sequence: a number, 0 or more, or None.
    ///
    /// Args:
    ///     matchers: One for each sequence.
    ///
    /// Raises:
    ///     BatchError: Some sequences failed.
    ///     TypeError: An element of `matchers` is not a matcher.
    ///     ValueError: A matcher occurs twice.
    ///
    /// Examples:
    ///     >>> batch.batch_temperature(matchers)
    ///     [None, None]
    fn batch_temperature(&self, py: Python<'_>, matchers: &Bound<'_, PyAny>) -> PyResult<Vec<Option<f64>>> {
        let matchers = listed(matchers)?;
        let nothing = vec![(); matchers.len()];
        self.each(py, &matchers, "matchers", nothing, |matcher, ()| matcher.temperature())
    }

    /// Take back the last tokens of every sequence.
    ///
    /// Args:
    ///     matchers: One for each sequence.
    ///     counts: How many tokens each takes back, 0 or more.
    ///
    /// Raises:
    ///     BatchError: Some sequences have accepted fewer; the others were rolled back.
    ///     MatcherError: A count is negative.
    ///     TypeError: A count is not an int, or an element of `matchers` is not a matcher.
    ///     ValueError: There are not as many counts as matchers, or a matcher occurs twice.
    ///
    /// Examples:
    ///     >>> batch.batch_accept_token(matchers, [0, 2]), batch.batch_rollback(matchers, [1, 0])
    ///     ([True, True], None)
    fn batch_rollback(&self, py: Python<'_>, matchers: &Bound<'_, PyAny>, counts: &Bound<'_, PyAny>) -> PyResult<()> {
        let (matchers, counts) = (listed(matchers)?, arguments::items("counts", "ints", counts)?);
        let counts =
            counts.iter().map(|count| arguments::count("num_tokens", count)).collect::<PyResult<Vec<usize>>>()?;
        self.each(py, &matchers, "counts", counts, |matcher, &mut count| matcher.rollback(count)).map(|_| ())
    }
}

/// The work of a batch for one sequence.
struct Job<'a, A, R> {
    matcher: &'a mut GrammarMatcher,
    argument: A,
    /// Missing until it is done.
    result: Option<Result<R, MatcherError>>,
}

/// A round of a batch was stopped.
struct Unfinished;

/// How many rounds there were.
static ROUNDS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The round that this thread works on, and since when.
    static ROUND: RefCell<Option<(u64, Parts)>> = const { RefCell::new(None) };
}

/// The watch over one sequence of a round. What this thread did for other sequences counts, since the batch has one
/// deadline.
fn watch_over(matcher: &GrammarMatcher, round: u64) -> Watch {
    let watch = matcher.compiled().limits().watch();
    ROUND.with_borrow_mut(|current| {
        current.take_if(|(number, _)| *number != round);
        let (_, parts) = current.get_or_insert_with(|| (round, Parts::new()));
        watch.after(parts)
    })
}

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

    fn run<'a, A: Send, R: Send + for<'py> IntoPyObject<'py>>(
        &self,
        py: Python<'_>,
        jobs: impl Iterator<Item = (&'a mut GrammarMatcher, A)>,
        operation: impl Fn(&mut GrammarMatcher, &mut A) -> Result<R, MatcherError> + Send + Sync,
    ) -> PyResult<Vec<R>> {
        let (results, failed) = split(self.results(py, jobs, operation)?);
        if failed.is_empty() {
            return Ok(results.into_iter().flatten().collect());
        }
        let failed = failed.into_iter().map(|(index, error)| (index, errors::matcher(py, &error))).collect();
        Err(errors::batch(py, results, failed))
    }

    /// Works in rounds: what a signal or a fork stopped in one is done in the next.
    fn results<'a, A: Send, R: Send>(
        &self,
        py: Python<'_>,
        jobs: impl Iterator<Item = (&'a mut GrammarMatcher, A)>,
        operation: impl Fn(&mut GrammarMatcher, &mut A) -> Result<R, MatcherError> + Send + Sync,
    ) -> PyResult<Vec<Result<R, MatcherError>>> {
        let mut jobs: Vec<Job<'_, A, R>> =
            jobs.map(|(matcher, argument)| Job { matcher, argument, result: None }).collect();
        let round = || {
            watch::share(|call| {
                let open = jobs.iter_mut().filter(|job| job.result.is_none());
                // The results are collected separately: threads that wrote into neighbouring jobs would share cache
                // lines.
                let open =
                    open.map(|job| (self.workers.line(job.matcher.compiled()), (&mut *job.matcher, &mut job.argument)));
                let number = ROUNDS.fetch_add(1, Ordering::Relaxed);
                let results =
                    self.workers.each(open.collect(), |(matcher, argument): (&mut GrammarMatcher, &mut A)| {
                        let watch = watch_over(matcher, number);
                        call.run(|| watch.over(|| operation(matcher, argument)))
                    });
                for (job, result) in jobs.iter_mut().filter(|job| job.result.is_none()).zip(results) {
                    job.result = result;
                }
            });
            if jobs.iter().all(|job| job.result.is_some()) { Ok(()) } else { Err(Unfinished) }
        };
        // Only a raising signal handler leaves jobs undone, and then its error was returned by the `?`.
        if watch::long(py, round)?.is_err() {
            unreachable!("a round is unfinished only where it was stopped, and then there is another one");
        }
        Ok(jobs.into_iter().map(|job| job.result.expect("all jobs are done")).collect())
    }
}

fn listed<'py>(matchers: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    arguments::items("matchers", "GrammarMatchers", matchers)
}

fn rows_of<'py>(indices: Option<&Bound<'py, PyAny>>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    indices.map(|indices| arguments::items("indices", "rows of the bitmask", indices)).transpose()
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

/// The number of words of a mask, the same for all sequences of a batch; `None` for an empty batch.
fn words_of_all(guards: &[MutexGuard<'_, GrammarMatcher>]) -> PyResult<Option<usize>> {
    let Some(first) = guards.first() else { return Ok(None) };
    let words = first.compiled().vocabulary().mask_words();
    match guards.iter().position(|guard| guard.compiled().vocabulary().mask_words() != words) {
        None => Ok(Some(words)),
        Some(other) => Err(PyValueError::new_err(format!(
            "matcher {other} belongs to a vocabulary of another size than matcher 0; fill their masks in batches of \
             their own"
        ))),
    }
}

/// The results of the sequences, and the errors of the failed ones by index.
type Split<R> = (Vec<Option<R>>, Vec<(usize, MatcherError)>);

fn split<R>(results: Vec<Result<R, MatcherError>>) -> Split<R> {
    let (mut kept, mut failed) = (Vec::with_capacity(results.len()), Vec::new());
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Ok(result) => kept.push(Some(result)),
            Err(error) => {
                failed.push((index, error));
                kept.push(None);
            }
        }
    }
    (kept, failed)
}

/// A caller's one-dimensional int32 array.
struct Integers(PyBuffer<i32>);

impl Integers {
    /// # Errors
    /// `TypeError` for anything but an int32 array, `ValueError` if it is read-only, not contiguous, or too short.
    fn of(name: &'static str, array: &Bound<'_, PyAny>, at_least: usize) -> PyResult<Integers> {
        let buffer = PyBuffer::<i32>::get(array).map_err(|_| {
            PyTypeError::new_err(format!("{name} is a {}, but must be an int32 numpy array", arguments::kind(array)))
        })?;
        let problem = match () {
            () if buffer.dimensions() != 1 => format!("has {} dimensions, but must have 1", buffer.dimensions()),
            () if is_foreign(&buffer) => "has a foreign byte order; give int32 in the machine's own".to_owned(),
            () if buffer.readonly() => "is read-only; give a writable array".to_owned(),
            () if !buffer.is_c_contiguous() => "is not contiguous; give an array without gaps".to_owned(),
            () if buffer.item_count() < at_least => {
                format!("has room for {} numbers, but {at_least} are to be written", buffer.item_count())
            }
            () => return Ok(Integers(buffer)),
        };
        Err(PyValueError::new_err(format!("{name} {problem}")))
    }

    fn len(&self) -> usize {
        self.0.item_count()
    }

    /// Writes numbers, starting at the beginning.
    fn write(&self, numbers: &[i32]) {
        assert!(numbers.len() <= self.len(), "there is room, as was asked");
        // SAFETY: the array is held, writable, contiguous, and has at least as many numbers; bytes need no alignment. A
        // thread that writes to it meanwhile races with us, as with NumPy.
        unsafe {
            let bytes = self.0.buf_ptr().cast::<u8>();
            bytes.copy_from_nonoverlapping(numbers.as_ptr().cast(), size_of_val(numbers));
        }
    }
}
