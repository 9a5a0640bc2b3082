//! A deadline for what a thread is doing, and a way to interrupt it.
//!
//! Everything that may take long calls [`check_time`] often. Whoever is responsible for the time sets a watch around
//! it; that costs next to nothing if the work is soon done, because the clock is first read after some checks.
//!
//! The deadline is processor time of the thread, so that a busy machine refuses nothing that an idle one accepts.
//! Reading that clock takes a system call, about ten times as long as the wall clock. Processor time never exceeds
//! wall-clock time, so it is read only once enough of the latter has passed.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::LimitExceeded;
use crate::host;
use crate::thread_time::thread_time;

/// The number of checks between two readings of the clock.
const CHECKS: u32 = 32;

/// The time between two questions to the host whether to go on.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(10);

/// Work that takes less time never reads the processor's clock; longer work is taken to have used this much before the
/// first reading.
const UNCLOCKED: Duration = Duration::from_millis(1);

/// Cancels the operations that were given it, from any thread.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Ends these operations soon, and every later one when it begins. It cannot be undone.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the token was cancelled.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Checks whether an operation that was given this token, if any, may begin.
    ///
    /// # Errors
    /// [`LimitExceeded::Cancelled`].
    #[inline]
    pub fn check(token: Option<&CancelToken>) -> Result<(), LimitExceeded> {
        match token.is_some_and(CancelToken::is_cancelled) {
            true => Err(LimitExceeded::Cancelled),
            false => Ok(()),
        }
    }
}

/// Two tokens are equal if cancelling one of them cancels the other.
impl PartialEq for CancelToken {
    fn eq(&self, other: &CancelToken) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CancelToken {}

/// How long an operation may take, and what else may end it.
pub struct Watch {
    milliseconds: u64,
    /// The processor time that earlier parts of the call have used.
    used: Duration,
    cancel: Option<CancelToken>,
    /// When the wall clock was first read.
    begun: Option<Instant>,
    /// The state of the processor's clock, once it was read.
    clock: Option<Clock>,
    asked: Option<Instant>,
    is_interrupted: Option<fn() -> bool>,
    /// Asked at every reading of the clock whether others need what the operation holds.
    gives_way: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

/// The time that a call of several parts has used; each part has a watch of its own.
pub struct Parts {
    begun: Instant,
    clock: Option<Duration>,
}

impl Parts {
    /// Begins with the first part.
    #[expect(clippy::new_without_default, reason = "it is about the moment")]
    pub fn new() -> Parts {
        Parts { begun: Instant::now(), clock: thread_time() }
    }

    /// The processor time of the thread since then. While it is short, no system call is made.
    fn used(&self) -> Duration {
        let since = self.begun.elapsed();
        match self.clock {
            _ if since < UNCLOCKED => Duration::ZERO,
            Some(begun) => thread_time().map_or(since, |time| time.saturating_sub(begun)),
            None => since,
        }
    }
}

/// The readings of the processor's clock.
#[derive(Clone, Copy)]
struct Clock {
    /// The processor time of the thread when the operation began.
    begun: Duration,
    /// The wall-clock time before which the deadline cannot have come; `None` where it never comes.
    next: Option<Instant>,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
    static LEFT: Cell<u32> = const { Cell::new(0) };
    /// What last ended the operation, within a part that [`unless_ended`] runs.
    static ENDED: Cell<Option<LimitExceeded>> = const { Cell::new(None) };
}

/// Restores the previous watch and what it has reported, also after a panic.
struct Restore {
    watch: Option<Watch>,
    ended: Option<LimitExceeded>,
}

impl Restore {
    /// Replaces the current watch by this one.
    fn instead_of(watch: Option<Watch>) -> Restore {
        Restore { watch: WATCH.with(|place| std::mem::replace(&mut *place.borrow_mut(), watch)), ended: ENDED.get() }
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        WATCH.with(|watch| *watch.borrow_mut() = self.watch.take());
        ENDED.set(self.ended);
    }
}

impl Watch {
    /// A watch of `milliseconds`, which also ends the operation when `is_interrupted` says so. That is asked from time
    /// to time.
    pub fn new(milliseconds: u64, is_interrupted: Option<fn() -> bool>) -> Watch {
        Watch {
            milliseconds,
            used: Duration::ZERO,
            cancel: None,
            begun: None,
            clock: None,
            asked: None,
            is_interrupted,
            gives_way: None,
        }
    }

    /// The same for a part of a call whose other parts used time of the same thread.
    pub fn after(self, parts: &Parts) -> Watch {
        Watch { used: parts.used(), ..self }
    }

    /// The same, but it also ends when this token is cancelled.
    #[must_use]
    pub fn until(self, cancel: Option<CancelToken>) -> Watch {
        Watch { cancel, ..self }
    }

    /// The same, counted from now on: for work that may go on for long before it first checks. Otherwise the time
    /// before the first reading counts as short, which saves short operations a system call.
    #[must_use]
    pub fn from_now(self) -> Watch {
        let now = Instant::now();
        let limit = Duration::from_millis(self.milliseconds).saturating_sub(self.used);
        let begin = |time: Duration| Clock { begun: time.saturating_sub(self.used), next: now.checked_add(limit) };
        Watch { begun: Some(now), asked: Some(now), clock: thread_time().map(begin), ..self }
    }

    /// The same for work that can wait: it is interrupted as soon as others need what it holds.
    #[must_use]
    pub fn giving_way(self, to_others: Arc<dyn Fn() -> bool + Send + Sync>) -> Watch {
        Watch { gives_way: Some(to_others), ..self }
    }

    /// Runs an operation under this watch. If a watch is set already, that one stays: it is responsible for everything
    /// within.
    pub fn over<T>(self, operation: impl FnOnce() -> T) -> T {
        let is_set = WATCH.with(|watch| watch.borrow().is_some());
        let _restore = (!is_set).then(|| {
            LEFT.with(|left| left.set(CHECKS));
            Restore::instead_of(Some(self))
        });
        operation()
    }

    fn look(&mut self, at_once: bool) -> Result<(), LimitExceeded> {
        CancelToken::check(self.cancel.as_ref())?;
        if self.gives_way.as_ref().is_some_and(|others_need_it| others_need_it()) {
            return Err(LimitExceeded::Interrupted);
        }
        let now = Instant::now();
        // Nothing is asked until the first interval has passed.
        let asked = *self.asked.get_or_insert(now);
        if let Some(is_interrupted) = self.is_interrupted
            && now - asked > BETWEEN_QUESTIONS
        {
            self.asked = Some(now);
            if is_interrupted() {
                return Err(LimitExceeded::Interrupted);
            }
        }
        let begun = *self.begun.get_or_insert(now);
        let is_short = self.used.is_zero() && now - begun < UNCLOCKED.min(Duration::from_millis(self.milliseconds));
        if is_short && !at_once {
            return Ok(());
        }
        match self.is_over(now, now - begun) {
            true => Err(LimitExceeded::Time(self.milliseconds)),
            false => Ok(()),
        }
    }

    /// Whether the deadline has come, `since` after the wall clock was first read.
    fn is_over(&mut self, now: Instant, since: Duration) -> bool {
        if self.clock.is_some_and(|clock| clock.next.is_none_or(|next| now < next)) {
            return false;
        }
        let limit = Duration::from_millis(self.milliseconds);
        let Some(time) = thread_time() else { return self.used + since > limit };
        let before = self.used + since.min(UNCLOCKED);
        let begun = self.clock.map_or_else(|| time.saturating_sub(before), |clock| clock.begun);
        let left = limit.saturating_sub(time.saturating_sub(begun));
        self.clock = Some(Clock { begun, next: now.checked_add(left) });
        left.is_zero()
    }
}

/// Runs an operation to its end without deadline or interrupt. For what is built once for everybody, since one request
/// must not leave it half built.
pub fn unwatched<T>(operation: impl FnOnce() -> T) -> T {
    let _restore = Restore::instead_of(None);
    operation()
}

/// Runs a part of an operation that continues even if the part fails. An end is reported only once, and by then another
/// error, or none, may have replaced it in the result. So this checks whether an end was reported within the part, and
/// not what the part returned.
///
/// # Errors
/// What ended it, as in [`check_time`].
pub fn unless_ended<T>(part: impl FnOnce() -> T) -> Result<T, LimitExceeded> {
    let before = ENDED.replace(None);
    let found = part();
    let ended = ENDED.get();
    ENDED.set(ended.or(before));
    ended.map_or(Ok(found), Err)
}

/// The result of a search; `None` where it reached a bound of its own before it could decide.
///
/// # Errors
/// Where the operation has to end. Then nothing is known about what was searched.
pub fn decided<T, E>(search: impl FnOnce() -> Result<T, E>) -> Result<Option<T>, LimitExceeded> {
    Ok(unless_ended(search)?.ok())
}

/// Checks whether the operation may go on.
///
/// # Errors
/// [`LimitExceeded::Time`], [`LimitExceeded::Cancelled`] and [`LimitExceeded::Interrupted`].
#[inline]
pub fn check_time() -> Result<(), LimitExceeded> {
    let left = LEFT.with(Cell::get);
    if left > 1 {
        LEFT.with(|cell| cell.set(left - 1));
        return Ok(());
    }
    look(false)
}

/// The same after work that took as long as `steps` usual steps.
///
/// # Errors
/// As [`check_time`].
#[inline]
pub fn check_time_after(steps: u32) -> Result<(), LimitExceeded> {
    LEFT.with(|left| left.set(left.get().saturating_sub(steps.saturating_sub(1))));
    check_time()
}

/// The same between steps that may each take long: the clock is read at once.
///
/// # Errors
/// As [`check_time`].
pub fn check_time_now() -> Result<(), LimitExceeded> {
    look(true)
}

/// Not inlined, since it is checked in many places.
#[cold]
#[inline(never)]
fn look(at_once: bool) -> Result<(), LimitExceeded> {
    LEFT.with(|cell| cell.set(CHECKS));
    // The watch is removed meanwhile, since what it asks may check the time itself.
    let Some(mut watch) = WATCH.with(|watch| watch.borrow_mut().take()) else { return Ok(()) };
    let answer = match host::is_stopped() {
        true => Err(LimitExceeded::Interrupted),
        false => watch.look(at_once),
    };
    WATCH.with(|place| *place.borrow_mut() = Some(watch));
    if let Err(limit) = answer {
        ENDED.set(Some(limit));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(count: u32) -> Result<(), LimitExceeded> {
        (0..count).try_for_each(|_| check_time())
    }

    /// Works for `milliseconds` of processor time.
    fn work(milliseconds: u64) {
        let begun = thread_time();
        let is_done = |time: Option<Duration>| match (begun, time) {
            (Some(begun), Some(time)) => time - begun > Duration::from_millis(milliseconds),
            _ => panic!("the systems that tests run on say how much processor time was used"),
        };
        while !is_done(thread_time()) {}
    }

    /// Checks from time to time whether to go on.
    fn long(step: impl Fn() -> Result<(), LimitExceeded>) -> Result<(), LimitExceeded> {
        for _ in 0..200 {
            work(1);
            step()?;
        }
        Ok(())
    }

    #[test]
    fn what_takes_too_long_ends() {
        assert_eq!(checks(10 * CHECKS), Ok(()));
        assert_eq!(Watch::new(5, None).over(|| long(|| checks(CHECKS))), Err(LimitExceeded::Time(5)));
        // Nothing of the watch is left.
        assert_eq!(checks(10 * CHECKS), Ok(()));
        assert_eq!(Watch::new(u64::MAX, None).over(|| long(|| checks(CHECKS))), Ok(()));
    }

    #[test]
    fn what_is_done_before_the_first_look_counts_where_it_is_asked_for() {
        let late = || {
            work(30);
            check_time_now()
        };
        assert_eq!(Watch::new(20, None).from_now().over(late), Err(LimitExceeded::Time(20)));
        assert_eq!(Watch::new(20, Some(|| true)).from_now().over(late), Err(LimitExceeded::Interrupted));
        assert_eq!(Watch::new(20, None).over(late), Ok(()));
        assert_eq!(Watch::new(u64::MAX, None).from_now().over(late), Ok(()));
    }

    #[test]
    fn time_in_which_the_thread_does_not_run_does_not_count() {
        let idle = || {
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(5));
                checks(10 * CHECKS)?;
            }
            check_time_now()
        };
        assert_eq!(Watch::new(40, None).over(idle), Ok(()));
    }

    #[test]
    fn between_long_steps_the_clock_is_read_at_once() {
        let steps = || {
            check_time_now()?;
            work(20);
            check_time()?;
            check_time_now()
        };
        assert_eq!(steps(), Ok(()));
        assert_eq!(Watch::new(60_000, Some(|| false)).over(steps), Ok(()));
        assert_eq!(Watch::new(5, None).over(steps), Err(LimitExceeded::Time(5)));
        assert_eq!(Watch::new(60_000, Some(|| true)).over(steps), Err(LimitExceeded::Interrupted));
    }

    #[test]
    fn the_parts_of_a_call_have_one_deadline() {
        let parts = Parts::new();
        let part = || Watch::new(20, None).after(&parts).over(|| long_part(5));
        let done = (0..20).take_while(|_| part().is_ok()).count();
        assert!((1..5).contains(&done), "{done}");
        assert_eq!(part(), Err(LimitExceeded::Time(20)));
        assert_eq!(Watch::new(20, None).over(|| long_part(5)), Ok(()));
    }

    fn long_part(milliseconds: u64) -> Result<(), LimitExceeded> {
        check_time_now()?;
        work(milliseconds);
        check_time_now()
    }

    #[test]
    fn a_token_ends_what_was_given_it_from_any_thread() {
        let token = CancelToken::default();
        let watch = |token: &CancelToken| Watch::new(60_000, None).until(Some(token.clone()));
        let ended = std::thread::scope(|scope| {
            let worker = scope.spawn(|| watch(&token).over(|| long(|| checks(CHECKS))));
            token.clone().cancel();
            worker.join().expect("it ends")
        });
        assert_eq!(ended, Err(LimitExceeded::Cancelled));
        assert_eq!(CancelToken::check(Some(&token)), Err(LimitExceeded::Cancelled));
        assert_eq!(watch(&CancelToken::default()).over(|| checks(10 * CHECKS)), Ok(()));
        assert_eq!(CancelToken::check(None), Ok(()));
    }

    #[test]
    fn what_can_wait_ends_when_others_need_what_it_holds() {
        let watch = |is_needed| Watch::new(60_000, None).giving_way(Arc::new(move || is_needed));
        assert_eq!(watch(true).over(|| checks(CHECKS)), Err(LimitExceeded::Interrupted));
        assert_eq!(watch(false).over(|| checks(10 * CHECKS)), Ok(()));
    }

    /// A watch that reports an end at a single check.
    fn ended_once(look: usize) -> Watch {
        let looks = std::sync::atomic::AtomicUsize::new(0);
        Watch::new(60_000, None).giving_way(Arc::new(move || looks.fetch_add(1, Ordering::Relaxed) == look))
    }

    #[test]
    fn an_end_reported_once_is_known_of_a_part_that_swallowed_it() {
        let deaf = || (0..4).filter(|_| check_time_now().is_err()).count();
        let part = |look| ended_once(look).over(|| (unless_ended(deaf), unless_ended(deaf)));
        let ended = Err(LimitExceeded::Interrupted);
        assert_eq!([3, 4, 8].map(part), [(ended, Ok(0)), (Ok(0), ended), (Ok(0), Ok(0))]);
        // The part around it learns of the end, but later parts do not.
        let around = || unless_ended(|| (unless_ended(deaf), unless_ended(deaf)).1);
        assert_eq!(ended_once(2).over(|| (around(), around())), (ended.map(|_: usize| Ok(0)), Ok(Ok(0))));
        assert_eq!(unless_ended(|| ended_once(0).over(deaf)), Ok(1), "the end of what has a watch of its own");
        assert_eq!(ended_once(0).over(|| unless_ended(|| unwatched(deaf))), Ok(0));
    }

    #[test]
    fn a_bound_of_its_own_is_no_end() {
        let search = |found: Result<u8, LimitExceeded>| ended_once(0).over(|| decided(|| check_time_now().and(found)));
        assert_eq!(search(Ok(1)), Err(LimitExceeded::Interrupted));
        let own = || decided(|| Err::<u8, _>(LimitExceeded::Search(1)));
        assert_eq!(ended_once(0).over(own), Ok(None));
        assert_eq!(decided(|| Ok::<_, LimitExceeded>(1)), Ok(Some(1)));
    }

    #[test]
    fn what_is_unwatched_runs_to_its_end() {
        let operation = || {
            check_time_now()?;
            work(10);
            unwatched(|| checks(10 * CHECKS)).expect("nothing ends it");
            check_time_now()
        };
        assert_eq!(Watch::new(1, None).over(operation), Err(LimitExceeded::Time(1)));
    }

    #[test]
    fn what_is_interrupted_ends_and_the_outer_watch_answers() {
        let inner = || Watch::new(0, None).over(|| checks(10 * CHECKS));
        assert_eq!(Watch::new(60_000, None).over(inner), Ok(()));
        // Nothing is asked before some time has passed.
        assert_eq!(Watch::new(60_000, Some(|| true)).over(inner), Ok(()));
        let ended = Watch::new(60_000, Some(|| true)).over(|| long(inner));
        assert_eq!(ended, Err(LimitExceeded::Interrupted));
    }
}
