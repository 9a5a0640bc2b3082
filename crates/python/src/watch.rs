//! Calls into the engine: how long they hold Python's lock, and what interrupts them.
//!
//! A short call holds Python's lock, because releasing it costs more than a cached mask. If the call turns out to be
//! long, or must wait for an engine lock, it releases Python's lock on the way ([`short`]). A call that is long from
//! the start releases it at once ([`long`]). Python's lock is only taken while no engine lock is held:
//!
//! - Other threads than the main thread take it when the call is over.
//! - The main thread must take it to run signal handlers. An operation that holds engine locks cannot be paused for
//!   that. So the operation of a long call on the main thread is stopped, which leaves everything as it was, and
//!   repeated on a separate thread, while the main thread waits and runs the handlers.
//! - Before the process forks, all operations are stopped in the same way, so that the child finds every engine lock
//!   free. The parent repeats them.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use libmimalloc_sys::{mi_collect, mi_thread_init};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use stencilm_engine::Limits;
use stencilm_grammar::GrammarError;
use stencilm_support::{Host, Watch, assert_none_held, set_host};

/// A short call releases Python's lock after this. It is checked when the engine reads the clock.
const SHORT: Duration = Duration::from_micros(300);

/// After this, an operation on the main thread is repeated on another thread.
const ON_MAIN_THREAD: Duration = Duration::from_millis(20);

/// How often the main thread checks for signals while it waits.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(10);

/// How long a fork waits for operations to end.
const BEFORE_FORK: Duration = Duration::from_secs(5);

/// The number of operations that run without Python's lock.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Whether the process is about to fork. Set and reset by a thread that holds Python's lock.
static IS_FORKING: AtomicBool = AtomicBool::new(false);

/// Whether an operation was still running when this process was forked, so that its locks may never be free.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The call that this thread works on, if it can be stopped.
    static CALL: Cell<*const Call<'static>> = const { Cell::new(ptr::null()) };
    /// What a signal handler raised during the call.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// Whether this is Python's main thread, once known.
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// One attempt at an operation.
struct Call<'a> {
    /// Whether the thread holds Python's lock, and may release it.
    is_attached: Cell<bool>,
    /// Python's state of the thread, if the call has released the lock on the way.
    released: Cell<*mut ffi::PyThreadState>,
    /// Whether the operation must be stopped if it is long, because signal handlers run on this thread.
    ends_when_long: Cell<bool>,
    /// Set by the thread that waits for the operation, if the result is no longer wanted.
    is_cancelled: Option<&'a AtomicBool>,
    /// The time of the first check.
    begun: Cell<Option<Instant>>,
    is_stopped: Cell<bool>,
}

/// One operation that runs without Python's lock, counted while this value lives.
struct Running(());

impl Running {
    /// If a fork is under way, waits until it is over. Only to be called without Python's lock.
    fn begin() -> Running {
        loop {
            let running = Running::new();
            if !IS_FORKING.load(Ordering::SeqCst) {
                return running;
            }
            drop(running);
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn new() -> Running {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        Running(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Ends an attempt, even if it panics: takes Python's lock again if the call released it, and forgets the call.
struct End<'a> {
    call: &'a Call<'a>,
    outer: *const Call<'static>,
}

impl Drop for End<'_> {
    #[inline]
    fn drop(&mut self) {
        CALL.set(self.outer);
        if !self.call.released.get().is_null() {
            self.call.attach();
        }
    }
}

impl<'a> Call<'a> {
    fn new(is_attached: bool, ends_when_long: bool, is_cancelled: Option<&'a AtomicBool>) -> Call<'a> {
        Call {
            is_attached: Cell::new(is_attached),
            released: Cell::new(ptr::null_mut()),
            ends_when_long: Cell::new(ends_when_long),
            is_cancelled,
            begun: Cell::new(None),
            is_stopped: Cell::new(false),
        }
    }

    /// Runs the operation; [`Call::is_stopped`] tells whether it was stopped. `Send` keeps Python objects out of it.
    #[inline]
    fn run<T: Send>(&self, operation: impl FnOnce() -> T + Send) -> T {
        let _end = End { call: self, outer: CALL.replace(ptr::from_ref(self).cast()) };
        operation()
    }

    /// Whether the operation must stop. Engine locks may be held.
    fn look(&self) -> bool {
        if self.is_stopped.get() {
            return true;
        }
        let is_cancelled = self.is_cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed));
        if is_cancelled || IS_FORKING.load(Ordering::SeqCst) {
            self.is_stopped.set(true);
            return true;
        }
        let now = Instant::now();
        let Some(begun) = self.begun.get() else {
            self.begun.set(Some(now));
            return false;
        };
        if self.is_attached.get() && now - begun > SHORT {
            self.release();
        }
        if self.ends_when_long.get() && now - begun > ON_MAIN_THREAD {
            self.is_stopped.set(true);
        }
        self.is_stopped.get()
    }

    /// Releases Python's lock until the end of the call. Engine locks may be held: nothing waits here.
    fn release(&self) {
        // While this thread holds Python's lock, no fork begins. If one is in progress, this thread runs as part of
        // another fork hook in Python; then keep the lock, so that the fork waits.
        if IS_FORKING.load(Ordering::SeqCst) {
            return;
        }
        self.is_attached.set(false);
        RUNNING.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the thread holds Python's lock, since `is_attached` was set. Nothing of Python is used until `End`
        // takes it again: the operation is `Send`, so it contains no token of the lock.
        self.released.set(unsafe { ffi::PyEval_SaveThread() });
    }

    #[cold]
    fn attach(&self) {
        assert_none_held();
        RUNNING.fetch_sub(1, Ordering::SeqCst);
        // SAFETY: it is what `PyEval_SaveThread` returned to this thread, and is used once.
        unsafe { ffi::PyEval_RestoreThread(self.released.replace(ptr::null_mut())) };
    }

    /// The call that this thread works on.
    fn with_current<T>(look: impl FnOnce(&Call<'_>) -> T) -> Option<T> {
        // SAFETY: `Call::run` sets the pointer to a call that lives longer than its operation, in which this is called, and
        // resets it at the end.
        unsafe { CALL.get().as_ref() }.map(look)
    }
}

fn is_stopped() -> bool {
    Call::with_current(|call| call.look()).unwrap_or(false)
}

fn before_waiting() {
    Call::with_current(|call| {
        if call.is_attached.get() {
            call.release();
        }
    });
}

/// Returns freed memory to the system at once: it is too much to be kept for the usual delay.
fn after_freeing() {
    // SAFETY: the allocator accepts this call at any time, from any thread.
    unsafe {
        // The allocator does not know a thread that has only freed memory, and would do nothing for it.
        mi_thread_init();
        mi_collect(true);
    }
}

/// Registers this module's callbacks with the engine, and its fork hooks with Python.
pub fn set_up(module: &Bound<'_, PyModule>) -> PyResult<()> {
    set_host(Host { is_stopped, before_waiting, after_freeing });
    let py = module.py();
    let os = py.import("os")?;
    // Systems without `fork` have no hooks for it either.
    if let Ok(register) = os.getattr("register_at_fork") {
        let hooks = pyo3::types::PyDict::new(py);
        hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
        hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
        hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
        register.call((), Some(&hooks))?;
    }
    Ok(())
}

/// Stops all operations. Python's lock is held throughout, so that none begins meanwhile.
#[pyfunction]
fn before_fork() {
    IS_FORKING.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    while RUNNING.load(Ordering::SeqCst) > 0 && begun.elapsed() < BEFORE_FORK {
        thread::sleep(Duration::from_micros(50));
    }
}

#[pyfunction]
fn after_fork_in_parent() {
    IS_FORKING.store(false, Ordering::SeqCst);
}

#[pyfunction]
fn after_fork_in_child() {
    // The threads of operations that were still running do not exist in the child.
    IS_BROKEN.fetch_or(RUNNING.swap(0, Ordering::SeqCst) > 0, Ordering::SeqCst);
    IS_FORKING.store(false, Ordering::SeqCst);
    IS_MAIN.set(Some(true));
}

/// Refuses to work in a process whose locks may never be free.
fn check_process() -> PyResult<()> {
    if !IS_BROKEN.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "this process was forked while another thread was inside stencilm for more than 5 s, so what they share may never be \
         free again; start processes with the method \"spawn\" or \"forkserver\" of multiprocessing, or fork before other \
         threads work",
    ))
}

/// Whether signal handlers run on this thread.
fn is_main(py: Python<'_>) -> bool {
    if let Some(known) = IS_MAIN.get() {
        return known;
    }
    let ask = || -> PyResult<bool> {
        let threading = py.import(intern!(py, "threading"))?;
        let main = threading.call_method0(intern!(py, "main_thread"))?.getattr(intern!(py, "ident"))?;
        main.eq(threading.call_method0(intern!(py, "get_ident"))?)
    };
    // If the answer is not known, checking for signals does no harm.
    let is_main = ask().unwrap_or(true);
    IS_MAIN.set(Some(is_main));
    is_main
}

/// Runs an operation that is usually short. If it fails, it leaves everything as it was, and may be run again.
pub fn short<T: Send, E: Send>(
    py: Python<'_>,
    mut operation: impl FnMut() -> Result<T, E> + Send,
) -> PyResult<Result<T, E>> {
    check_process()?;
    let call = Call::new(true, is_main(py), None);
    let result = call.run(&mut operation);
    if result.is_err() && call.is_stopped.get() { again(py, operation) } else { Ok(result) }
}

/// Runs an operation that may take long. If it fails, it leaves everything as it was, and may be run again.
pub fn long<T: Send, E: Send>(
    py: Python<'_>,
    mut operation: impl FnMut() -> Result<T, E> + Send,
) -> PyResult<Result<T, E>> {
    check_process()?;
    let (is_main, attempt) = (is_main(py), &mut operation);
    let (result, is_stopped) = py.detach(move || detached(is_main, attempt));
    if let Some(error) = RAISED.take() {
        return Err(error);
    }
    if result.is_err() && is_stopped { again(py, operation) } else { Ok(result) }
}

/// Runs an operation that cannot be stopped, without Python's lock.
pub fn unstoppable<T: Send>(py: Python<'_>, operation: impl FnOnce() -> T + Send) -> PyResult<T> {
    check_process()?;
    Ok(py.detach(|| {
        let running = Running::begin();
        let result = operation();
        drop(running);
        assert_none_held();
        result
    }))
}

/// Runs a part of the work of a thread that Python does not know. A fork waits until it ends, and stops what reads the
/// clock.
pub fn background<T: Send>(operation: impl FnOnce() -> T + Send) -> T {
    let _running = Running::begin();
    let result = Call::new(false, false, None).run(operation);
    assert_none_held();
    result
}

/// One attempt without Python's lock, and whether it was stopped.
fn detached<T: Send>(is_main: bool, operation: impl FnOnce() -> T + Send) -> (T, bool) {
    let _running = Running::begin();
    let call = Call::new(false, is_main, None);
    let result = call.run(operation);
    assert_none_held();
    (result, call.is_stopped.get())
}

/// Continues an operation that was stopped: runs the signal handlers, and starts again.
#[cold]
#[inline(never)]
fn again<T: Send, E: Send>(
    py: Python<'_>,
    mut operation: impl FnMut() -> Result<T, E> + Send,
) -> PyResult<Result<T, E>> {
    loop {
        py.check_signals()?;
        let attempt = &mut operation;
        let (result, is_stopped) =
            if is_main(py) { apart(py, attempt)? } else { py.detach(move || detached(false, attempt)) };
        if result.is_ok() || !is_stopped {
            return Ok(result);
        }
    }
}

/// The place where a separate thread puts its result for the thread that waits for it.
struct Place<T> {
    result: Mutex<Option<thread::Result<T>>>,
    arrived: Condvar,
}

impl<T> Place<T> {
    fn lock(&self) -> MutexGuard<'_, Option<thread::Result<T>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bring(&self, result: thread::Result<T>) {
        *self.lock() = Some(result);
        self.arrived.notify_all();
    }

    /// Waits, and runs signal handlers meanwhile. If one raises, sets `cancelled`, and returns its error once the
    /// operation has ended.
    fn wait(&self, py: Python<'_>, cancelled: &AtomicBool) -> PyResult<thread::Result<T>>
    where
        T: Send,
    {
        let mut raised = None;
        loop {
            let result = py.detach(|| {
                let timeout = self.arrived.wait_timeout_while(self.lock(), BETWEEN_SIGNALS, |result| result.is_none());
                timeout.unwrap_or_else(PoisonError::into_inner).0.take()
            });
            if let Some(result) = result {
                return raised.map_or(Ok(result), Err);
            }
            if let Err(error) = py.check_signals() {
                // The last exception wins, as when one handler raises within another.
                raised = Some(error);
                cancelled.store(true, Ordering::Relaxed);
            }
            // A handler may have forked; then the working thread is in the other process.
            check_process()?;
        }
    }
}

/// Runs one attempt on a separate thread, while this one runs the signal handlers.
fn apart<T: Send, E: Send>(
    py: Python<'_>,
    operation: &mut (impl FnMut() -> Result<T, E> + Send),
) -> PyResult<(Result<T, E>, bool)> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let place = Arc::new(Place { result: Mutex::new(None), arrived: Condvar::new() });
    // A fork from here on waits until the result is stored.
    let running = Running::new();
    let work = {
        let (place, cancelled, operation) = (place.clone(), cancelled.clone(), &mut *operation);
        move || {
            let attempt = AssertUnwindSafe(|| {
                let call = Call::new(false, false, Some(&cancelled));
                let result = call.run(operation);
                (result, call.is_stopped.get())
            });
            place.bring(panic::catch_unwind(attempt));
            drop(running);
        }
    };
    let work: Box<dyn FnOnce() + Send + '_> = Box::new(work);
    // SAFETY: the thread uses what it borrows only until it stores the result, and `wait` does not return earlier. It
    // may do so in a forked child, but that does not have the thread.
    let work: Box<dyn FnOnce() + Send + 'static> = unsafe { std::mem::transmute(work) };
    match thread::Builder::new().name("stencilm-call".into()).spawn(work) {
        Ok(_) => match place.wait(py, &cancelled)? {
            Ok(result) => Ok(result),
            Err(panic) => panic::resume_unwind(panic),
        },
        // The system refuses more threads: this thread does the work, and checks for signals afterwards.
        Err(_) => Ok(py.detach(|| detached(false, operation))),
    }
}

/// What the threads of a batch know about its call.
pub struct Shared<'a> {
    ends_when_long: bool,
    is_cancelled: Option<&'a AtomicBool>,
    begun: Instant,
    is_stopped: AtomicBool,
}

impl Shared<'_> {
    /// Runs an operation that is part of the call, from any thread; `None` if it was stopped and must be run again.
    pub fn run<T: Send, E: Send>(&self, operation: impl FnOnce() -> Result<T, E> + Send) -> Option<Result<T, E>> {
        let call = Call::new(false, self.ends_when_long, self.is_cancelled);
        call.begun.set(Some(self.begun));
        let result = call.run(operation);
        if result.is_err() && call.is_stopped.get() {
            self.is_stopped.store(true, Ordering::Relaxed);
            return None;
        }
        Some(result)
    }
}

/// Lets other threads take part in the [`long`] call of this thread.
pub fn share<T>(operation: impl FnOnce(&Shared<'_>) -> T) -> T {
    let shared = |call: &Call<'_>| {
        let begun = call.begun.get().unwrap_or_else(Instant::now);
        call.begun.set(Some(begun));
        let (ends_when_long, is_stopped) = (call.ends_when_long.get(), AtomicBool::new(false));
        let shared = Shared { ends_when_long, is_cancelled: call.is_cancelled, begun, is_stopped };
        let result = operation(&shared);
        call.is_stopped.set(shared.is_stopped.into_inner());
        result
    };
    Call::with_current(shared).expect("only called within a call")
}

/// Reads a notation within limits, as a part of a [`long`] call. It holds no engine locks, so signal handlers run while
/// it works.
pub fn reading<T>(limits: &Limits, read: impl FnOnce() -> T) -> T {
    let ended_when_long = Call::with_current(|call| call.ends_when_long.replace(false));
    let watch = Watch::new(limits.milliseconds, Some(is_interrupted)).until(limits.cancel.clone()).from_now();
    let result = watch.over(read);
    Call::with_current(|call| {
        call.ends_when_long.set(ended_when_long.unwrap_or(false));
        call.begun.set(None);
    });
    result
}

/// Writes a text, without a deadline. It holds no engine locks, so signal handlers run while it works.
///
/// # Errors
/// What a signal handler raises.
pub fn writing<T: Send>(py: Python<'_>, write: impl Fn() -> Result<T, GrammarError> + Send + Sync) -> PyResult<T> {
    let limits = Limits::default();
    let written = long(py, || reading(&limits, &write))?;
    Ok(written.expect("without limits only a handler that raised or a fork ends it, and after a fork it begins anew"))
}

/// Runs the signal handlers; returns whether one raised.
fn is_interrupted() -> bool {
    if IS_MAIN.get() != Some(true) {
        return false;
    }
    assert_none_held();
    // A handler may fork.
    RUNNING.fetch_sub(1, Ordering::SeqCst);
    let checked = Python::attach(|py| py.check_signals());
    RUNNING.fetch_add(1, Ordering::SeqCst);
    let Err(error) = checked else { return false };
    RAISED.replace(Some(error));
    true
}
