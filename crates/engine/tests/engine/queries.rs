//! Every question to a matcher, against its obvious twin, on random grammars: the targets of the fuzzer on a fixed list of cases.
//!
//! A run says the same every time; `STENCILM_SEEDS=300..100000` runs other cases.

use std::ops::Range;
use std::panic;

use stencilm_fuzz::choices::random_bytes;
use stencilm_fuzz::{Counts, Target};

/// The seeds of a usual run, or those of `STENCILM_SEEDS`, written as `from..to`.
fn seeds(usual: u64) -> Range<u64> {
    let Ok(asked) = std::env::var("STENCILM_SEEDS") else { return 0..usual };
    let ends = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    ends.unwrap_or_else(|| panic!("STENCILM_SEEDS is {asked:?}; write it as from..to, such as 0..1000"))
}

/// Runs a target on the cases of so many seeds, and says which one it was where a case fails.
fn run(name: &str, usual: u64) -> Counts {
    let target = Target::named(name).expect("it is in the list of targets");
    let mut counts = Counts::default();
    for seed in seeds(usual) {
        let data = random_bytes(seed, 1024);
        let case = panic::catch_unwind(|| target.check(&data));
        counts += case.unwrap_or_else(|_| panic!("{name}, seed {seed}: see the panic before this one"));
    }
    assert!(counts.limits * 4 < counts.cases, "{name}: too many cases ended at a limit: {counts:?}");
    counts
}

#[test]
fn what_fits_and_why() {
    let counts = run("queries", 300);
    assert!(counts.decisions > 20_000 && counts.masks > 100, "{counts:?}");
}

#[test]
fn completions_complete() {
    assert!(run("completions", 300).texts > 100);
}

#[test]
fn texts_with_holes_are_those_that_can_be_filled() {
    let counts = run("holes", 120);
    assert!(counts.decisions > 2_000 && counts.masks > 100 && counts.texts > 100, "{counts:?}");
}

#[test]
fn masks_within_holes_are_exact() {
    assert!(run("quotients", 120).masks > 500);
}

#[test]
fn what_is_forced_and_the_tokens_over_its_end() {
    assert!(run("forced", 300).decisions > 500);
}

#[test]
fn rows_of_draft_trees_are_the_masks_after_their_nodes() {
    assert!(run("drafts", 300).masks > 500);
}

#[test]
fn forks_and_rollbacks_are_as_if_they_had_not_been() {
    assert!(run("forks", 300).masks > 1_000);
}

#[test]
fn batches_are_as_single_calls() {
    assert!(run("batches", 200).masks > 500);
}

#[test]
fn captures_are_parts_of_the_text_however_it_was_cut() {
    assert!(run("captures", 1_000).texts > 10);
}

#[test]
fn what_is_interrupted_leaves_no_trace() {
    let counts = run("deadlines", 350);
    assert!(counts.masks > 100 && counts.decisions > 0, "{counts:?}");
}

#[test]
fn canonical_masks_let_pass_what_the_encoder_writes() {
    let counts = run("canonical", 150);
    assert!(counts.texts > 100 && counts.masks > 500, "{counts:?}");
}

#[test]
fn canonical_masks_are_the_encodings_of_all_texts() {
    let counts = run("canonical-twin", 300);
    // Half of them against all texts that there are.
    assert!(counts.masks > 3_000 && counts.texts > 1_500, "{counts:?}");
}

#[test]
fn grammars_survive_being_written() {
    assert!(run("round-trips", 200).masks > 500);
    assert!(run("serialization", 200).masks > 500);
}

#[test]
fn masks_of_repetitions() {
    assert!(run("repetitions", 400).masks > 800);
}

#[test]
fn masks_of_very_ambiguous_grammars() {
    assert!(run("ambiguous", 60).masks > 50);
}
