//! What each format of a structural tag accepts and refuses: the table that the Python tests read, too.

use std::sync::Arc;

use serde_json::Value;
use stencilm_engine::{GrammarMatcher, MatcherError, TokenSet, Vocabulary, naive};
use stencilm_grammar::{ErrorKind, Grammar, StructuralTagOptions};

use crate::common::matcher;

const SPECIAL: [(u32, &str); 3] = [(256, "<|tool|>"), (257, "<|end|>"), (258, "<stop>")];

fn table() -> Value {
    serde_json::from_str(include_str!("../../../../tests/structural_tags/cases.json")).expect("the table is JSON")
}

/// One token for each byte, and three special ones of which the last one stops.
fn vocabulary() -> Arc<Vocabulary> {
    let mut tokens: Vec<Option<Vec<u8>>> = (0..=255).map(|byte| Some(vec![byte])).collect();
    tokens.extend(SPECIAL.map(|_| None));
    let special = SPECIAL.map(|(id, name)| (id, name.to_owned()));
    Arc::new(Vocabulary::new(&tokens, 259, &[258], &special).unwrap())
}

fn grammar(case: &Value) -> Result<Grammar, stencilm_grammar::GrammarError> {
    Grammar::from_structural_tag(&case["tag"].to_string(), &StructuralTagOptions::default())
}

/// A tag to be refused; a long one is a list of parts, each with how often it comes.
fn refused(case: &Value) -> Result<Grammar, stencilm_grammar::GrammarError> {
    let Some(parts) = case["text"].as_array() else { return grammar(case) };
    let part = |part: &Value| part[0].as_str().unwrap().repeat(part[1].as_u64().unwrap() as usize);
    let mut options = StructuralTagOptions::default();
    options.max_bytes = case["schema_bytes"].as_u64().map_or(options.max_bytes, |bytes| bytes as usize);
    Grammar::from_structural_tag(&parts.iter().map(part).collect::<String>(), &options)
}

fn ids(text: &Value) -> Vec<u32> {
    match text {
        Value::String(text) => text.bytes().map(u32::from).collect(),
        Value::Array(parts) => parts.iter().flat_map(ids).collect(),
        token => match &token["token"] {
            Value::Number(id) => vec![id.as_u64().expect("ids are small") as u32],
            name => SPECIAL.iter().filter(|(_, special)| name == special).map(|(id, _)| *id).collect(),
        },
    }
}

/// Whether the whole text belongs; every mask on the way is that of the slow twin.
fn matches(matcher: &mut GrammarMatcher, text: &Value) -> bool {
    for id in ids(text) {
        let mut mask = TokenSet::empty(259);
        match matcher.fill_mask(mask.words_mut()) {
            Ok(_) | Err(MatcherError::NoTokenFits | MatcherError::NoStopToken) => {}
            Err(error) => panic!("{error}"),
        }
        assert_eq!(mask, naive::mask(matcher).unwrap(), "before {id} of {text}");
        if !matcher.accept_token(id).unwrap() {
            return false;
        }
    }
    matcher.is_completed()
}

#[test]
fn cases() {
    for case in table()["cases"].as_array().expect("a list") {
        let grammar = grammar(case).unwrap_or_else(|error| panic!("{error}: {case}"));
        let compiled = matcher(grammar, vocabulary()).compiled().clone();
        for (list, expected) in [("inside", true), ("outside", false)] {
            for text in case[list].as_array().expect("a list") {
                let mut matcher = GrammarMatcher::new(compiled.clone(), &Default::default()).unwrap();
                assert_eq!(matches(&mut matcher, text), expected, "{} {text}", case["name"]);
            }
        }
    }
}

#[test]
fn refusals() {
    for case in table()["refusals"].as_array().expect("a list") {
        let error = refused(case).expect_err("it is refused");
        let kind = match error.kind {
            ErrorKind::Syntax => "syntax",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Unsatisfiable => "unsatisfiable",
            ErrorKind::Limit => "limit",
        };
        assert_eq!((kind, &*error.place), (case["kind"].as_str().unwrap(), case["place"].as_str().unwrap()), "{error}");
        let says = case["says"].as_str().unwrap();
        assert!(!says.is_empty() && error.message.contains(says), "{error}");
    }
}
