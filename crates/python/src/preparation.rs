//! `_core.Preparation`: masks that a thread finds before they are asked for.
//!
//! One thread of the process works on all preparations, one after the other: they can wait, and must not take the
//! processors from work that cannot. The thread exists while there is something to do.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use stencilm_engine::{self as engine, PreparationBudget, PreparationEnd, PreparationStep};
use stencilm_support as support;

use crate::arguments;
use crate::compiled::CompiledGrammar;
use crate::errors;
use crate::watch;

/// After this, an interrupted step is tried again.
const BEFORE_RETRY: Duration = Duration::from_micros(100);

/// How often a waiting caller checks for signals.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(10);

/// What is known about a preparation.
#[derive(Clone, Copy, Default)]
struct Progress {
    masks: usize,
    bytes: usize,
    elapsed: Duration,
    end: Option<PreparationEnd>,
}

/// A preparation, shared by its thread and those who wait for it.
struct Shared {
    cancel: support::CancelToken,
    /// The process in which it began: a forked child does not have the thread.
    process: u32,
    progress: Mutex<Progress>,
    ended: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one step, and stores what is known after it.
    fn step(&self, work: &mut engine::Preparation) -> PreparationStep {
        let step = work.step();
        let now = Progress { masks: work.masks(), bytes: work.bytes(), elapsed: work.elapsed(), end: work.end() };
        *self.lock() = now;
        if now.end.is_some() {
            self.ended.notify_all();
        }
        step
    }

    fn progress(&self) -> Progress {
        if self.process != std::process::id() {
            return Progress { end: Some(PreparationEnd::Cancelled), ..Progress::default() };
        }
        *self.lock()
    }
}

/// Preparations that wait for the thread.
struct Queue {
    process: u32,
    waiting: VecDeque<(engine::Preparation, Arc<Shared>)>,
    has_thread: bool,
}

/// Changed only by a thread that holds Python's lock or is counted as running, so no fork finds it locked.
static QUEUE: Mutex<Queue> = Mutex::new(Queue { process: 0, waiting: VecDeque::new(), has_thread: false });

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets the thread of this process work on a preparation; returns it if the system refuses a thread.
fn enqueue(work: engine::Preparation, shared: Arc<Shared>) -> Option<(engine::Preparation, Arc<Shared>)> {
    let mut queue = queue();
    if queue.process != std::process::id() {
        // The waiting preparations belong to the process that this one was forked from.
        *queue = Queue { process: std::process::id(), waiting: VecDeque::new(), has_thread: false };
    }
    queue.waiting.push_back((work, shared));
    if !queue.has_thread {
        let thread = thread::Builder::new().name("stencilm-prepare".into()).spawn(work_on_all);
        queue.has_thread = thread.is_ok();
        if thread.is_err() {
            return queue.waiting.pop_back();
        }
    }
    None
}

fn work_on_all() {
    let next = || {
        watch::background(|| {
            let mut queue = queue();
            let next = queue.waiting.pop_front();
            queue.has_thread = next.is_some();
            next
        })
    };
    while let Some((mut work, shared)) = next() {
        loop {
            match watch::background(|| shared.step(&mut work)) {
                PreparationStep::Done => {}
                PreparationStep::Interrupted => thread::sleep(BEFORE_RETRY),
                PreparationStep::Ended(_) => break,
            }
        }
    }
}

/// Finds masks in the background, before they are needed.
#[pyclass(subclass, frozen, weakref, module = "stencilm._core")]
pub struct Preparation {
    shared: Arc<Shared>,
}

#[pymethods]
impl Preparation {
    #[new]
    fn new(
        py: Python<'_>,
        compiled_grammar: &CompiledGrammar,
        milliseconds: &Bound<'_, PyAny>,
        bytes: Option<&Bound<'_, PyAny>>,
        background: &Bound<'_, PyAny>,
    ) -> PyResult<Preparation> {
        let background = arguments::truth("background", background)?;
        let limits = compiled_grammar.inner.limits();
        if limits.cancel.as_ref().is_some_and(support::CancelToken::is_cancelled) {
            return Err(errors::cancelled(py));
        }
        let out_of_range = |name: &str, value: &Bound<'_, PyAny>| {
            PyValueError::new_err(format!("{name} is {}, but must be a number from 0 up", arguments::short(value)))
        };
        let time = arguments::time("milliseconds", milliseconds, Duration::from_millis(1))?
            .ok_or_else(|| out_of_range("milliseconds", milliseconds))?;
        let bytes = bytes.map(|bytes| arguments::whole("bytes", bytes)?.ok_or_else(|| out_of_range("bytes", bytes)));
        // A full cache of masks is dropped as a whole, so stay well below its limit.
        let most = limits.mask_cache_bytes / 2;
        let bytes = bytes.transpose()?.map_or(most, |bytes| bytes.min(most));
        let cancel = support::CancelToken::default();
        let budget = PreparationBudget { time, bytes };
        let work = engine::Preparation::new(&compiled_grammar.inner, budget, cancel.clone());
        let (process, progress, ended) = (std::process::id(), Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { cancel, process, progress, ended });
        let left = match background {
            true => enqueue(work, shared.clone()),
            false => Some((work, shared.clone())),
        };
        if let Some((mut work, shared)) = left {
            let mut until_the_end = || loop {
                match shared.step(&mut work) {
                    PreparationStep::Done => {}
                    PreparationStep::Interrupted => return Err(()),
                    PreparationStep::Ended(_) => return Ok(()),
                }
            };
            while watch::long(py, &mut until_the_end)?.is_err() {
                py.detach(|| thread::sleep(BEFORE_RETRY));
            }
        }
        Ok(Preparation { shared })
    }

    /// End it soon. What was found by then is kept.
    fn cancel(&self) {
        self.shared.cancel.cancel();
    }

    /// Whether it has ended.
    #[getter]
    fn done(&self) -> bool {
        self.shared.progress().end.is_some()
    }

    /// Wait until it has ended, for at most `timeout` seconds; returns whether it has.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let timeout = match timeout {
            None => None,
            Some(seconds) if seconds.lt(0).unwrap_or(false) => Some(Duration::ZERO),
            Some(seconds) => Some(arguments::time("timeout", seconds, Duration::from_secs(1))?.ok_or_else(|| {
                let shown = arguments::short(seconds);
                PyValueError::new_err(format!("timeout is {shown}, but must be a number of seconds, or None"))
            })?),
        };
        let due = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            if self.shared.progress().end.is_some() {
                return Ok(true);
            }
            let now = Instant::now();
            if due.is_some_and(|due| now >= due) {
                return Ok(false);
            }
            let slice = due.map_or(BETWEEN_SIGNALS, |due| BETWEEN_SIGNALS.min(due - now));
            py.detach(|| {
                let progress = self.shared.lock();
                if progress.end.is_none() {
                    drop(self.shared.ended.wait_timeout(progress, slice));
                }
            });
            py.check_signals()?;
        }
    }

    /// Why it has ended.
    #[getter]
    fn ended_by(&self) -> Option<&'static str> {
        self.shared.progress().end.map(|end| match end {
            PreparationEnd::Complete => "complete",
            PreparationEnd::Time => "time",
            PreparationEnd::Bytes => "bytes",
            PreparationEnd::Cancelled => "cancelled",
            PreparationEnd::Dropped => "dropped",
        })
    }

    /// The number of new masks that it has found.
    #[getter]
    fn masks(&self) -> usize {
        self.shared.progress().masks
    }

    /// The growth of the grammar and the shared lexemes, in bytes.
    #[getter]
    fn bytes(&self) -> usize {
        self.shared.progress().bytes
    }

    /// The time that it has worked, in milliseconds.
    #[getter]
    fn milliseconds(&self) -> f64 {
        self.shared.progress().elapsed.as_secs_f64() * 1e3
    }
}
