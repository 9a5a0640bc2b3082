//! Hard and hostile patterns end well: in time, on a small stack, and with an error that says why.

use std::time::{Duration, Instant};

use stencilm_regex::{
    Anchoring, Deriver, Dialect, ExprId, Limits, PatternError,
    PatternErrorKind::{self, Limit, Syntax},
    PatternOptions, Utf8, parse_pattern,
};

/// Far above what these take, so that a busy machine does not fail them; quadratic work would take minutes.
const DEADLINE: Duration = Duration::from_secs(20);

fn parse(pattern: &str, dialect: Dialect, anchoring: Anchoring) -> Result<(Deriver, ExprId), PatternError> {
    let mut deriver = Deriver::new(Limits::default());
    let root = parse_pattern(&mut deriver.exprs, pattern, &PatternOptions { dialect, anchoring }, &mut Utf8)?;
    Ok((deriver, root))
}

/// Runs in both dialects and anchorings on a thread with the stack of a test thread, and prints how long it took.
fn check(name: &str, pattern: String, expected: Result<(), PatternErrorKind>) {
    let name = name.to_string();
    let run = move || {
        for (dialect, anchoring) in [(Dialect::Standard, Anchoring::Whole), (Dialect::EcmaScript, Anchoring::Search)] {
            let start = Instant::now();
            let found = parse(&pattern, dialect, anchoring);
            let elapsed = start.elapsed();
            let exprs = found.as_ref().map_or(0, |(deriver, _)| deriver.exprs.len());
            println!("{name}, {dialect:?} {anchoring:?}: {elapsed:?}, {exprs} expressions");
            assert_eq!(found.map(|_| ()).map_err(|error| error.kind), expected, "{name} {dialect:?} {anchoring:?}");
            assert!(elapsed < DEADLINE, "{name} {dialect:?} {anchoring:?} took {elapsed:?}");
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).expect("a thread can be started");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn nested(open: &str, depth: usize, core: &str, close: &str) -> String {
    open.repeat(depth) + core + &close.repeat(depth)
}

#[test]
fn deep_nesting() {
    check("990 groups", nested("(", 990, "a", ")"), Ok(()));
    check("40 groups with anchors", nested("(^|x", 40, "a", "y)"), Ok(()));
    check("30 loops with anchors", nested("(?:^a|", 30, "b", "c$)*"), Ok(()));
    check("300 groups with anchors", nested("(^|x", 300, "a", "y)"), Err(Limit));
    check("30 loops with word boundaries", nested(r"(?:\b|", 30, "b", "c)*"), Ok(()));
    check("300 stars", nested("(?:", 300, "a", "b)*"), Ok(()));
    let stars = nested("(?:", 300, "a", "b)*");
    check("300 stars in two alternatives", format!("{stars}c|{stars}d"), Ok(()));
    check("20,000 groups", nested("(", 20_000, "a", ")"), Err(Limit));
    check("20,000 open groups", "(".repeat(20_000), Err(Syntax));
    check("20,000 stars", "a".to_string() + &"*".repeat(20_000), Err(Limit));
    check("20,000 anchored groups", nested("(^", 20_000, "a", "$)"), Err(Limit));
}

#[test]
fn long_patterns() {
    check("1 MB literal", "abcdefghijklmnop".repeat(1 << 16), Ok(()));
    check("1 MB anchored literal", format!("^{}$", "abcdefghijklmno€".repeat(55_000)), Ok(()));
    check("700 KB of classes", "[ab][cd].".repeat(80_000), Ok(()));
    check("640 KB of escapes", r"\x41\n\d".repeat(80_000), Ok(()));
    check("512 KB of optional pieces", "a?b?".repeat(1 << 17), Ok(()));
    check("256 KB of anchors", "^^$$".repeat(1 << 16), Ok(()));
    check("512 KB of anchors", "^^$$".repeat(1 << 17), Err(Limit));
    check("500 KB of word boundaries", r"a\b-\b".repeat(80_000), Err(Limit));
    check("2 MB", "a".repeat(2 << 20), Err(Limit));
    check("10,000 Unicode classes", r"\pL-".repeat(10_000), Err(Limit));
    check("4,000 Unicode classes", r"\pL-".repeat(4_000), Ok(()));
    check("2,000 folded Unicode classes", format!("(?i){}", r"\pL-".repeat(2_000)), Ok(()));
    check("2,000 negated folded classes", format!("(?i){}", "[^a]-".repeat(2_000)), Ok(()));
    check("a backward range in a class of 200,000", format!("[{}]", "ab-".repeat(66_666)), Err(Syntax));
    check("1 class of 200,000 letters", format!("[{}]", "ab".repeat(100_000)), Ok(()));
}

#[test]
fn wide_and_counted_patterns() {
    let words: Vec<String> = (0..5_000).map(|n| format!("word{n}")).collect();
    check("5,000 words", words.join("|"), Ok(()));
    check("5,000 anchored words", format!("^({})$", words.join("|")), Ok(()));
    check("5,000 words, each anchored", format!("^{}$", words.join("$|^")), Ok(()));
    check("5,000 words between boundaries", format!(r"\b({})\b", words.join("|")), Ok(()));
    check("counters", "(?:(?:a{1000}){1000}){1000}b{0,4294967295}".to_string(), Ok(()));
    check("anchored counters", "(?:(?:^|a){1000}){1000}$".to_string(), Ok(()));
    check("exponential", r"(?:.*a.{25}){3}^(?:a+)+b(?:a|aa)*b(?:x+x+)+y".to_string(), Ok(()));
    check("written-out counters", nested(r"(?:\b", 4, "a-", "){100}"), Err(Limit));
    check("loops of boundaries", nested(r"(?:\b(?m:^)?a|", 12, "-", r"b?\B(?m:$)?)*"), Ok(()));
}
