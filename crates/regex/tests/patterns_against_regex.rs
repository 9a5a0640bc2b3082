//! The slow twin: random patterns and texts, judged by the crate `regex`.

use proptest::prelude::*;
use stencilm_regex::{Anchoring, Deriver, Dialect, Limits, PatternOptions, Utf8, parse_pattern};

/// Patterns over a few characters, with assertions anywhere, loops over them included.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        6 => prop::sample::select(vec!["a", "b", "c", "ab", "ca", "-", "a-b", "→", r"\n"]).prop_map(str::to_string),
        3 => prop::sample::select(vec![".", "[ab]", "[^a]", r"[c\-]", "(?s:.)", r"\pL", "(?i:A)"]).prop_map(str::to_string),
        3 => prop::sample::select(vec!["^", "$", r"\A", r"\z"]).prop_map(str::to_string),
        2 => prop::sample::select(vec!["(?m:^)", "(?m:$)"]).prop_map(str::to_string),
        2 => prop::sample::select(vec![r"\b", r"\B", r"\b{start}", r"\b{end-half}"]).prop_map(str::to_string),
        1 => Just(String::new()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            1 => inner.clone().prop_map(|body| format!("({body})")),
            3 => (inner, prop::sample::select(vec!["*", "+", "?", "*?", "{2}", "{2,}", "{0,2}", "{1,3}", "{2,3}", "{0}"]))
                .prop_map(|(body, count)| format!("(?:{body}){count}")),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!['a', 'a', 'b', 'c', 'A', '-', '→', '\n']), 0..7)
        .prop_map(|chars| chars.into_iter().collect())
}

/// To `regex`, letters with accents are word characters and to us they are not; no text here has one.
fn twin(pattern: &str, anchoring: Anchoring) -> regex::Regex {
    let pattern = match anchoring {
        Anchoring::Whole => format!(r"\A(?:{pattern})\z"),
        Anchoring::Search => pattern.to_string(),
    };
    regex::Regex::new(&pattern).unwrap_or_else(|error| panic!("{pattern:?}: {error}"))
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn matches_what_regex_matches(pattern in pattern(), texts in prop::collection::vec(text(), 24)) {
        for anchoring in [Anchoring::Whole, Anchoring::Search] {
            let twin = twin(&pattern, anchoring);
            // The texts have no line terminator but \n, so the dialects agree; only `\b{start}` is not ECMA-262.
            let dialects = [Dialect::Standard, Dialect::EcmaScript];
            for &dialect in &dialects[..if pattern.contains(r"\b{") { 1 } else { 2 }] {
                let mut deriver = Deriver::new(Limits::default());
                let options = PatternOptions { dialect, anchoring };
                let root = parse_pattern(&mut deriver.exprs, &pattern, &options, &mut Utf8).expect("the pattern is supported");
                for text in &texts {
                    let found = deriver.matches(root, text.as_bytes()).expect("small patterns stay within the limits");
                    prop_assert_eq!(found, twin.is_match(text), "{:?} on {:?}", options, text);
                }
            }
        }
    }
}

#[test]
fn classes_hold_the_same_characters() {
    let classes = [
        ".",
        "(?s:.)",
        r"\p{L}",
        r"[\p{Lu}\p{Greek}--x]",
        "(?i)[k-s]",
        "(?i:ß)",
        r"[^\p{Ll}0-9€-→]",
        r"[\u{7FF}-\u{FFFE}]",
    ];
    for class in classes {
        let twin = twin(class, Anchoring::Whole);
        let mut deriver = Deriver::new(Limits::default());
        let root = parse_pattern(&mut deriver.exprs, class, &PatternOptions::default(), &mut Utf8).unwrap();
        // Every character of the first planes that hold scripts, and some of each of the others.
        let chars = ('\0'..='\u{1FFFF}').chain(('\u{20000}'..=char::MAX).step_by(61)).chain([char::MAX]);
        for c in chars {
            let mut buffer = [0; 4];
            let text = c.encode_utf8(&mut buffer);
            let found = deriver.matches(root, text.as_bytes()).unwrap();
            assert_eq!(found, twin.is_match(text), "{class} on {c:?}");
        }
    }
}
