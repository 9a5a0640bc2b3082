//! Tables of cases that Rust and Python read alike: what a notation accepts, what it rejects, and how it refuses.

#[path = "../ebnf/recogniser.rs"]
mod recogniser;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use stencilm_grammar::{ErrorKind, Grammar, GrammarError, LarkOptions, NamedGrammar, RegexError, from_regex};
use stencilm_regex::PatternErrorKind;

#[derive(Deserialize)]
struct Table {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    grammar: String,
    #[serde(default)]
    grammars: BTreeMap<String, String>,
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    reject: Vec<String>,
    /// Whether it holds JSON, whose objects the recogniser leaves to other tests.
    #[serde(default)]
    json: bool,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    kind: String,
    /// Line and column; empty where they do not matter.
    place: String,
    words: String,
}

fn table(name: &str) -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tables").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn kind(name: &str) -> ErrorKind {
    match name {
        "syntax" => ErrorKind::Syntax,
        "unsupported" => ErrorKind::Unsupported,
        "unsatisfiable" => ErrorKind::Unsatisfiable,
        "limit" => ErrorKind::Limit,
        _ => panic!("{name} is no kind of error"),
    }
}

/// Checks every case, and says of all that fail how they do.
fn check_all(table: &Table, read: impl Fn(&Case) -> Result<Grammar, GrammarError>) {
    let failed: Vec<&str> = table
        .cases
        .iter()
        .filter(|case| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(case, read(case)))).is_err())
        .map(|case| &*case.name)
        .collect();
    assert!(failed.is_empty(), "{} cases fail: {failed:#?}", failed.len());
}

fn check(case: &Case, read: Result<Grammar, GrammarError>) {
    let name = &case.name;
    if let Some(refusal) = &case.error {
        let error = read.expect_err(name);
        assert_eq!(error.kind, kind(&refusal.kind), "{name}: {error}");
        assert!(refusal.place.is_empty() || error.place == refusal.place, "{name}: {error}");
        assert!(error.message.contains(&refusal.words), "{name}: {error}");
        return;
    }
    let grammar = read.unwrap_or_else(|error| panic!("{name}: {error}"));
    let printed = grammar.to_string();
    let again = Grammar::from_ebnf(&printed, "root").unwrap_or_else(|error| panic!("{name}: {error}\n{printed}"));
    assert_eq!(again.to_string(), printed, "{name}: the print is not stable");
    if case.json {
        return;
    }
    for grammar in [&grammar, &again] {
        for (texts, expected) in [(&case.accept, true), (&case.reject, false)] {
            for text in texts {
                let found = recogniser::matches(grammar, text.as_bytes());
                assert_eq!(found, expected, "{name}: {text:?}\n{printed}");
            }
        }
    }
}

#[test]
fn lark() {
    check_all(&table("lark.json"), |case| {
        let named: Vec<(&str, NamedGrammar<'_>)> =
            case.grammars.iter().map(|(name, text)| (name.as_str(), NamedGrammar::Lark(text))).collect();
        let options = LarkOptions { grammars: &named, ..LarkOptions::default() };
        Grammar::from_lark(&case.grammar, &options)
    });
}

#[test]
fn ebnf() {
    check_all(&table("ebnf.json"), |case| Grammar::from_ebnf(&case.grammar, "root"));
}

#[test]
fn regex() {
    check_all(&table("regex.json"), |case| {
        from_regex(&case.grammar).map_err(|error| match error {
            RegexError::Grammar(error) => error,
            RegexError::Pattern(error) => {
                let kind = match error.kind {
                    PatternErrorKind::Syntax => ErrorKind::Syntax,
                    PatternErrorKind::Unsupported => ErrorKind::Unsupported,
                    PatternErrorKind::Limit => ErrorKind::Limit,
                };
                GrammarError::new(kind, format!("offset {}", error.offset), error.message)
            }
        })
    });
}
