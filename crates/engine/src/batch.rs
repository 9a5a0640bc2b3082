//! Many sequences at once: the same call for every one, on a few threads that wait for the next batch.

use std::sync::{self, Arc, PoisonError};

use rayon::ThreadPool;

use crate::compiled::CompiledGrammar;
use crate::cpus::available_cpus;
use crate::locks::{Mutex, lock};

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
        let mut lines = Vec::new();
        for ((line, job), result) in jobs.into_iter().zip(&mut results) {
            if line >= lines.len() {
                lines.resize_with(line + 1, Vec::new);
            }
            lines[line].push((job, result));
        }
        lines.retain(|line| !line.is_empty());
        let lines: Vec<_> = lines.into_iter().map(|line| sync::Mutex::new(line.into_iter())).collect();
        let next = |line: usize| lines[line].lock().unwrap_or_else(PoisonError::into_inner).next();
        let work_from = |first: usize| {
            for line in (0..lines.len()).map(|after| (first + after) % lines.len()) {
                while let Some((job, result)) = next(line) {
                    *result = Some(work(job));
                }
            }
        };
        pool.in_place_scope(|scope| {
            let work_from = &work_from;
            (1..self.threads).for_each(|first| scope.spawn(move |_| work_from(first)));
            work_from(0);
        });
        drop(lines);
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

#[cfg(test)]
mod tests {
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
