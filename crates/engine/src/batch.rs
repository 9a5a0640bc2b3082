//! Many sequences at once: the same call for every one, on a few threads that wait for the next batch.

use std::sync::Arc;

use rayon::ThreadPool;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

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

    /// Does `work` for every job, each by one thread, and gives the results in the order of the jobs.
    pub fn each<J: Send, R: Send>(&self, jobs: Vec<J>, work: impl Fn(J) -> R + Send + Sync) -> Vec<R> {
        if self.threads == 1 || jobs.len() < 2 {
            return jobs.into_iter().map(work).collect();
        }
        match self.pool() {
            Some(pool) => pool.install(|| jobs.into_par_iter().map(work).collect()),
            // The system refuses more threads: this one does the work.
            None => jobs.into_iter().map(work).collect(),
        }
    }

    fn pool(&self) -> Option<Arc<ThreadPool>> {
        let mut pool = lock(&self.pool);
        let process = std::process::id();
        if let Some(foreign) = pool.take_if(|pool| pool.process != process) {
            // Its threads stayed in the other process: dropping it would wait for them.
            std::mem::forget(foreign);
        }
        if pool.is_none() {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(self.threads);
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
    fn results_come_in_the_order_of_the_jobs() {
        for threads in [1, 3] {
            let workers = Workers::new(Some(threads));
            for count in [0, 1, 2, 100] {
                let doubled = workers.each((0..count).collect(), |job: u32| job * 2);
                assert_eq!(doubled, (0..count).map(|job| job * 2).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn jobs_may_write_to_rows_of_their_own() {
        let mut words = vec![0u32; 64];
        let workers = Workers::new(Some(2));
        workers.each(words.chunks_mut(4).enumerate().collect(), |(row, words)| words.fill(row as u32));
        assert!(words.iter().enumerate().all(|(index, &word)| word as usize == index / 4));
    }

    #[test]
    fn one_thread_at_least_and_few_by_default() {
        assert_eq!(Workers::new(Some(0)).threads(), 1);
        assert!((1..=8).contains(&Workers::new(None).threads()));
    }
}
