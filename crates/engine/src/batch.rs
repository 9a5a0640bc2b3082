//! Many sequences at once: the same call for each, on a few threads that then wait for the next batch.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{self, Arc, PoisonError};
use std::vec;

use rayon::ThreadPool;
use stencilm_support::{Mutex, available_cpus, lock};

use crate::compiled::CompiledGrammar;

/// More threads than this are used only where they are asked for: masks are short work, and engines have other threads.
const MAX_DEFAULT_THREADS: usize = 8;

/// Threads for batches. They start with the first batch that has work for more than one, and live as long as this.
pub struct Workers {
    threads: usize,
    pool: Mutex<Option<Pool>>,
}

/// The threads of one process: in a process that was forked off they do not exist.
struct Pool {
    process: u32,
    threads: Arc<ThreadPool>,
}

impl Workers {
    /// As many threads as the process has processors, at most 8; or just so many, at least one.
    pub fn new(threads: Option<usize>) -> Workers {
        let threads = threads.unwrap_or_else(|| available_cpus().min(MAX_DEFAULT_THREADS));
        Workers { threads: threads.max(1), pool: Mutex::new(None) }
    }

    /// How many threads work on a batch.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// In which line the jobs of a grammar wait: those of one line work with the same lexemes, so each thread has a line of its
    /// own, as long as there are jobs in it.
    pub fn line(&self, compiled: &CompiledGrammar) -> usize {
        if self.threads == 1 {
            return 0;
        }
        compiled.spread(self.threads);
        compiled.lane()
    }

    /// Does `work` for every job, each in its [line](Workers::line) and by one thread, and gives the results in the order of the
    /// jobs. The calling thread is one of those that work, so that little work waits for nobody.
    pub fn each<J: Send, R: Send>(&self, jobs: Vec<(usize, J)>, work: impl Fn(J) -> R + Send + Sync) -> Vec<R> {
        let pool = if self.threads == 1 || jobs.len() < 2 { None } else { self.pool() };
        // Where the system refuses more threads, this one does the work.
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
            // Its threads stayed in the other process: dropping it would wait for them.
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

/// A job and its place among all of them.
type Placed<J> = (usize, J);

/// Jobs that work with the same lexemes. Apart from other lines in memory, for which threads would wait as for a lock.
#[repr(align(128))]
struct Line<J> {
    jobs: sync::Mutex<vec::IntoIter<Placed<J>>>,
    /// How many threads work on it.
    at_work: AtomicUsize,
}

/// So many threads work on one line at most: while one has the lexemes, another writes its mask. More of them would do
/// nothing but wait for each other.
const THREADS_OF_A_LINE: usize = 2;

impl<J> Line<J> {
    fn next(&self) -> Option<Placed<J>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    fn has_jobs(&self) -> bool {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).len() > 0
    }

    /// Puts a thread to work on it, where so many are; whether it is.
    fn join(&self, at_work: usize) -> bool {
        self.at_work.compare_exchange(at_work, at_work + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// The threads that work on one batch.
struct Crew<J, R, W> {
    lines: Vec<Line<J>>,
    /// What each thread has done: results that stood next to each other would be waited for, too.
    done: sync::Mutex<Vec<Vec<Placed<R>>>>,
    work: W,
    threads: usize,
}

impl<J: Send, R: Send, W: Fn(J) -> R + Send + Sync> Crew<J, R, W> {
    /// Works as the thread with this number, as long as there are lines for it. Each thread calls two others first, so that no
    /// one spends its time with waking up all of them, and none is woken for work that is over by then.
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

    /// A line with jobs, for a thread that begins with its own: one on which nobody works, else one with room for another.
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
                // Until every line has its threads; a machine that is busy may bring them late.
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
