//! Every mask equals the slow twin's: at first, from the cache, after a rollback, in a fork, and when compiled anew.
//!
//! What is compared, and what else must hold on the way, stands in the crate `stencilm-fuzz`; here it runs over a fixed list of
//! cases, so that a run says the same every time. Searching for new ones is the fuzzer's work.

use std::io::Write;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};

use stencilm_fuzz::choices::random_bytes;
use stencilm_fuzz::{Choices, Counts, Source, check};

/// Runs cases of a source on two threads until so many decisions have been compared; prints what was.
fn compare(source: Source, decisions: u64) {
    let next = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    let work = || {
        let mut counts = Counts::default();
        while done.load(Ordering::Relaxed) < decisions {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let data = random_bytes(seed, 1024);
            let outcome = panic::catch_unwind(|| check(source, &mut Choices::new(&data)));
            let more = outcome.unwrap_or_else(|_| panic!("{source:?}, seed {seed}: see the panic before this one"));
            done.fetch_add(more.decisions, Ordering::Relaxed);
            counts += more;
        }
        counts
    };
    let mut counts = Counts::default();
    std::thread::scope(|scope| {
        // The recogniser recurses; it is slow and simple on purpose.
        let thread = || std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, work).expect("a thread");
        for thread in [thread(), thread()] {
            counts += thread.join().expect("no case fails");
        }
    });
    assert!(counts.limits * 20 <= counts.cases, "too many cases ended at a limit: {counts:?}");
    assert!(counts.texts > counts.grammars, "the recogniser was hardly asked: {counts:?}");
    // Not `println!`, which the test runner keeps to itself.
    writeln!(std::io::stderr(), "{source:?}: {counts:?}").expect("standard error can be written");
}

#[test]
fn masks_of_random_grammars_equal_the_naive_ones() {
    compare(Source::Nodes, 6_000_000);
}

#[test]
fn masks_of_random_regular_expressions_equal_the_naive_ones() {
    compare(Source::Regex, 2_000_000);
}

#[test]
fn masks_of_random_schemas_equal_the_naive_ones() {
    compare(Source::JsonSchema, 4_000_000);
}

#[test]
fn masks_of_random_lark_texts_equal_the_naive_ones() {
    compare(Source::Lark, 2_000_000);
}
