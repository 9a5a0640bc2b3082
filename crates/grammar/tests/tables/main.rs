//! Tables of cases that Rust and Python both read: what a notation accepts, what it rejects, and how it refuses.

#[path = "../ebnf/recogniser.rs"]
mod recogniser;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use stencilm_grammar::{
    ErrorKind, Grammar, GrammarError, JsonSchemaOptions, LarkOptions, NamedGrammar, RegexError, from_json_schema,
    from_regex,
};
use stencilm_regex::PatternErrorKind;

#[derive(Deserialize)]
struct Table {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    grammar: Spelled,
    #[serde(default)]
    grammars: BTreeMap<String, Named>,
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    reject: Vec<String>,
    /// Whether it holds JSON, whose objects the recogniser leaves to other tests.
    #[serde(default)]
    json: bool,
    error: Option<Refusal>,
}

/// A grammar by name: a Lark text, or another grammar as EBNF.
#[derive(Deserialize)]
#[serde(untagged)]
enum Named {
    Lark(String),
    Other { ebnf: String },
}

/// A text; a long one as parts, each with how often it comes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Spelled {
    Text(String),
    Parts(Vec<(String, usize)>),
}

impl Spelled {
    fn text(&self) -> String {
        match self {
            Spelled::Text(text) => text.clone(),
            Spelled::Parts(parts) => parts.iter().map(|(part, times)| part.repeat(*times)).collect(),
        }
    }
}

#[derive(Deserialize)]
struct Refusal {
    kind: String,
    /// Line and column, an offset or a JSON pointer; empty where the text is too long to be read.
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
        // A text that is too long is not read, so it has no places.
        let is_too_long = refusal.words.contains("bytes and at most");
        assert!(is_too_long || error.place == refusal.place, "{name}: {error}");
        assert!(!refusal.words.is_empty() && error.message.contains(&refusal.words), "{name}: {error}");
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
        let others: Vec<Option<Grammar>> = case
            .grammars
            .values()
            .map(|named| match named {
                Named::Lark(_) => None,
                Named::Other { ebnf } => Some(Grammar::from_ebnf(ebnf, "root").expect("a grammar beside the case")),
            })
            .collect();
        let named = case.grammars.iter().zip(&others).map(|((name, named), other)| match (named, other) {
            (Named::Lark(text), _) => (name.as_str(), NamedGrammar::Lark(text)),
            (_, other) => (name.as_str(), NamedGrammar::Grammar(other.as_ref().expect("it was read"))),
        });
        let named: Vec<(&str, NamedGrammar<'_>)> = named.collect();
        let options = LarkOptions { grammars: &named, ..LarkOptions::default() };
        Grammar::from_lark(&case.grammar.text(), &options)
    });
}

#[test]
fn ebnf() {
    check_all(&table("ebnf.json"), |case| Grammar::from_ebnf(&case.grammar.text(), "root"));
}

#[test]
fn regex() {
    check_all(&table("regex.json"), |case| {
        from_regex(&case.grammar.text()).map_err(|error| match error {
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

#[test]
fn patterns_of_json_schema() {
    let mut table = table("pattern.json");
    for case in &mut table.cases {
        for texts in [&mut case.accept, &mut case.reject] {
            texts.iter_mut().for_each(|text| *text = serde_json::to_string(text).expect("a string is JSON"));
        }
    }
    check_all(&table, |case| {
        let schema = serde_json::json!({"type": "string", "pattern": case.grammar.text()});
        from_json_schema(&schema.to_string(), &JsonSchemaOptions::default())
    });
}
