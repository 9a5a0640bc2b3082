//! Many sequences at once: the same call for each, on a few threads that then wait for the next batch.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{self, Arc, PoisonError};
use std::vec;

use rayon::ThreadPool;
use stencilm_support::{Mutex, available_cpus, lock};

use crate::compiled::CompiledGrammar;

/// More threads are used only when asked for: masks are short work, and the programs around this one have other
/// threads.
const MAX_DEFAULT_THREADS: usize = 8;

/// Threads for batches. They start with the first batch that has work for more than one, and end when this is dropped.
pub struct Workers {
    threads: usize,
    pool: Mutex<Option<Pool>>,
}

/// The threads of one process. They do not exist in a forked process.
struct Pool {
    process: u32,
    threads: Arc<ThreadPool>,
}

impl Workers {
    /// With `None`, as many threads as the process has processors, but at most 8; otherwise the given number, but at
    /// least one.
    pub fn new(threads: Option<usize>) -> Workers {
        let threads = threads.unwrap_or_else(|| available_cpus().min(MAX_DEFAULT_THREADS));
        Workers { threads: threads.max(1), pool: Mutex::new(None) }
    }

    /// The number of threads that work on a batch.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The line in which the jobs of a grammar wait. The jobs of one line work with the same lexemes, so each thread
    /// takes a line of its own as long as there are jobs in it.
    pub fn line(&self, compiled: &CompiledGrammar) -> usize {
        if self.threads == 1 {
            return 0;
        }
        compiled.spread(self.threads);
        compiled.lane()
    }

    /// Runs `work` for every job, each in its [line](Workers::line) and by one thread, and returns the results in the
    /// order of the jobs. The calling thread works too, so that a small batch does not wait for other threads.
    pub fn each<J: Send, R: Send>(&self, jobs: Vec<(usize, J)>, work: impl Fn(J) -> R + Send + Sync) -> Vec<R> {
        let pool = if self.threads == 1 || jobs.len() < 2 { None } else { self.pool() };
        // If the system refuses to start threads, this thread does the work alone.
        let Some(pool) = pool else { return jobs.into_iter().map(|(_, job)| work(job)).collect() };
        let mut results: Vec<Option<R>> = jobs.iter().map(|_| None).collect();
        let crew = Crew { lines: lines_of(jobs), done: sync::Mutex::default(), work, threads: self.threads };
        pool.in_place_scope(|scope| crew.work_from(0, scope));
        for (index, result) in crew.done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten() {
            results[index] = Some(result);
        }
        results.into_iter().map(|result| result.expect("every job was done")).collect()
    }

    fn pool(&self) -> Option<Arc<ThreadPool>> {
        let mut pool = lock(&self.pool);
        let process = std::process::id();
        if let Some(foreign) = pool.take_if(|pool| pool.process != process) {
            // Its threads are in the other process, and dropping the pool would wait for them.
            std::mem::forget(foreign);
        }
        if pool.is_none() {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(self.threads - 1);
            let threads = builder.thread_name(|index| format!("stencilm-{index}")).build().ok()?;
            *pool = Some(Pool { process, threads: Arc::new(threads) });
        }
        pool.as_ref().map(|pool| pool.threads.clone())
    }
}

/// A job and its position among all jobs.
type Placed<J> = (usize, J);

/// Jobs that work with the same lexemes. Aligned so that no two lines share a cache line, for which threads would wait.
#[repr(align(128))]
struct Line<J> {
    jobs: sync::Mutex<vec::IntoIter<Placed<J>>>,
    /// The number of threads that work on it.
    at_work: AtomicUsize,
}

/// The greatest number of threads for one line: while one thread has the lexemes, the other one writes its mask. More
/// would only wait.
const THREADS_OF_A_LINE: usize = 2;

impl<J> Line<J> {
    fn next(&self) -> Option<Placed<J>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    fn has_jobs(&self) -> bool {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).len() > 0
    }

    /// Lets a thread join if exactly `at_work` threads are working on the line; returns whether it joined.
    fn join(&self, at_work: usize) -> bool {
        self.at_work.compare_exchange(at_work, at_work + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// The threads that work on one batch.
struct Crew<J, R, W> {
    lines: Vec<Line<J>>,
    /// The results of each thread. They are stored separately, since threads would wait for shared cache lines here,
    /// too.
    done: sync::Mutex<Vec<Vec<Placed<R>>>>,
    work: W,
    threads: usize,
}

impl<J: Send, R: Send, W: Fn(J) -> R + Send + Sync> Crew<J, R, W> {
    /// Works as the thread with this number as long as there are lines for it. Each thread first wakes two others: so
    /// no thread spends its time waking all the others, and none is woken after the work is done.
    fn work_from<'scope>(&'scope self, number: usize, scope: &rayon::Scope<'scope>) {
        let Some(mut line) = self.join_line(number) else { return };
        for other in [2 * number + 1, 2 * number + 2].into_iter().filter(|&other| other < self.threads) {
            scope.spawn(move |scope| self.work_from(other, scope));
        }
        let mut done = Vec::new();
        loop {
            while let Some((index, job)) = line.next() {
                done.push((index, (self.work)(job)));
            }
            line.at_work.fetch_sub(1, Ordering::Relaxed);
            let Some(next) = self.join_line(number) else { break };
            line = next;
        }
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push(done);
    }

    /// A line with jobs, searched from the thread's own number on: first one without threads, then one with room for
    /// another thread.
    fn join_line(&self, number: usize) -> Option<&Line<J>> {
        let count = self.lines.len();
        let in_turn = || (0..count).map(|after| &self.lines[(number + after) % count]);
        (0..THREADS_OF_A_LINE).find_map(|at_work| in_turn().find(|line| line.has_jobs() && line.join(at_work)))
    }
}

/// The jobs of each line that has any.
fn lines_of<J>(jobs: Vec<(usize, J)>) -> Vec<Line<J>> {
    let mut lines: Vec<Vec<Placed<J>>> = Vec::new();
    for (index, (line, job)) in jobs.into_iter().enumerate() {
        if line >= lines.len() {
            lines.resize_with(line + 1, Vec::new);
        }
        lines[line].push((index, job));
    }
    lines.retain(|line| !line.is_empty());
    let line = |jobs: Vec<_>| Line { jobs: sync::Mutex::new(jobs.into_iter()), at_work: AtomicUsize::new(0) };
    lines.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs_whatever_line_they_wait_in() {
        for threads in [1, 3] {
            let workers = Workers::new(Some(threads));
            for lines in [1, 2, 5] {
                for count in [0, 1, 2, 100] {
                    let jobs = (0..count).map(|job: usize| (job * job % lines, job)).collect();
                    let doubled = workers.each(jobs, |job| job * 2);
                    assert_eq!(doubled, (0..count).map(|job| job * 2).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn lines_are_worked_on_at_once_each_by_two_threads_at_most() {
        let workers = Workers::new(Some(6));
        for lines in [1, 2, 3] {
            let at_work: Vec<AtomicUsize> = (0..lines).map(|_| AtomicUsize::new(0)).collect();
            let most_of_one = AtomicUsize::new(0);
            let all_met = AtomicBool::new(false);
            let jobs = (0..24 * lines).map(|job| (job % lines, job % lines)).collect();
            let begun = Instant::now();
            workers.each(jobs, |line: usize| {
                let now = at_work[line].fetch_add(1, Ordering::SeqCst) + 1;
                most_of_one.fetch_max(now, Ordering::SeqCst);
                // Wait until every line has its threads; a busy machine may start them late.
                while !all_met.load(Ordering::SeqCst) && begun.elapsed() < Duration::from_secs(20) {
                    let here = at_work.iter().map(|line| line.load(Ordering::SeqCst)).sum::<usize>();
                    all_met.fetch_or(here == THREADS_OF_A_LINE * lines, Ordering::SeqCst);
                    std::thread::yield_now();
                }
                at_work[line].fetch_sub(1, Ordering::SeqCst);
            });
            assert!(all_met.into_inner(), "{lines} lines did not get their threads");
            assert_eq!(most_of_one.into_inner(), THREADS_OF_A_LINE);
        }
    }

    #[test]
    fn jobs_may_write_to_rows_of_their_own() {
        let mut words = vec![0u32; 64];
        let workers = Workers::new(Some(2));
        let rows = words.chunks_mut(4).enumerate().map(|(row, words)| (row % 2, (row, words)));
        workers.each(rows.collect(), |(row, words)| words.fill(row as u32));
        assert!(words.iter().enumerate().all(|(index, &word)| word as usize == index / 4));
    }

    #[test]
    fn one_thread_at_least_and_few_by_default() {
        assert_eq!(Workers::new(Some(0)).threads(), 1);
        assert!((1..=8).contains(&Workers::new(None).threads()));
    }
}
