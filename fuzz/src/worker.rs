//! One process of a run: it works through cases by number, reports its position to its parent, and minimises panics
//! itself.
//!
//! Its reports are lines: `case N` before each, `counts ...` now and then, `failure FILE` followed by the message.

use std::io::{self, Write};
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use stencilm_fuzz::choices::random_bytes;
use stencilm_fuzz::minimize::minimize;
use stencilm_fuzz::{Counts, Target};
use stencilm_support::Watch;

/// The deadline of a case, as a user might set it. A case that goes on after it is endless.
const DEADLINE_MS: u64 = 20_000;

/// A worker is replaced after this many cases, so that no case depends on hours of earlier ones.
const MAX_CASES: u64 = 4_000;

/// A worker ends after this many different failures.
const MAX_FAILURES: usize = 20;

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// The cases to run, of one target.
pub struct Work {
    pub target: &'static Target,
    pub seed: u64,
    pub from: u64,
    /// The number of the case before which it ends.
    pub to: u64,
    pub time: Duration,
    pub out: PathBuf,
}

/// The bytes of a case: the same everywhere for a seed and a number.
pub fn case_bytes(seed: u64, number: u64) -> Vec<u8> {
    let len = [64, 256, 1024, 1024][number as usize % 4];
    random_bytes(seed.wrapping_mul(0x1_0000_0001).wrapping_add(number), len)
}

/// Runs one case in the usual way.
pub fn run_case(target: &Target, data: &[u8]) -> Counts {
    Watch::new(DEADLINE_MS, None).over(|| target.check(data))
}

/// Works through the cases, or through as many as one process should.
pub fn work(work: &Work) {
    panic::set_hook(Box::new(|info| *LAST_PANIC.lock().expect("only the hook writes") = info.to_string()));
    let begun = Instant::now();
    let (mut counts, mut reported) = (Counts::default(), Instant::now());
    let mut failures: Vec<String> = Vec::new();
    for number in work.from..work.to.min(work.from + MAX_CASES) {
        if begun.elapsed() >= work.time || failures.len() >= MAX_FAILURES {
            break;
        }
        report(&format!("case {number}"));
        let data = case_bytes(work.seed, number);
        match panic::catch_unwind(|| run_case(work.target, &data)) {
            Ok(more) => counts += more,
            Err(_) => failed(work, number, &data, &mut failures),
        }
        if reported.elapsed() > Duration::from_millis(500) {
            report(&counts.line());
            (counts, reported) = (Counts::default(), Instant::now());
        }
    }
    report(&counts.line());
    report("done");
}

fn report(line: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent reads");
}

/// Failures of the same kind panic at the same place.
pub fn kind_of(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
        + message.lines().nth(1).map_or("", |line| line.split(':').next().unwrap_or(""))
}

fn last_panic() -> String {
    LAST_PANIC.lock().expect("only the hook writes").clone()
}

fn failed(work: &Work, number: u64, data: &[u8], failures: &mut Vec<String>) {
    let kind = kind_of(&last_panic());
    if failures.contains(&kind) {
        return;
    }
    failures.push(kind.clone());
    let begun = Instant::now();
    let small = minimize(data, 3_000, |candidate| {
        // The parent takes silence for an endless case.
        report(&format!("case {number}"));
        begun.elapsed() < Duration::from_secs(60)
            && panic::catch_unwind(|| run_case(work.target, candidate)).is_err()
            && kind_of(&last_panic()) == kind
    });
    let _ = panic::catch_unwind(|| run_case(work.target, &small));
    let message = last_panic();
    let path = work.out.join(format!("{}-{}-{number}-panic.bin", work.target.name, work.seed));
    save(work.target, &path, &small, &message);
    report(&format!("failure {}", path.display()));
}

/// Saves a case, and beside it what it is and why it failed.
pub fn save(target: &Target, path: &Path, data: &[u8], message: &str) {
    let shown = panic::catch_unwind(|| target.shown(data)).unwrap_or_else(|_| "the grammar cannot be made".into());
    std::fs::write(path, data).expect("the file can be written");
    std::fs::write(path.with_extension("txt"), format!("{message}\n{shown}")).expect("the file can be written");
}
