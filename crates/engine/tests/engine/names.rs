//! Names that a text declares: masks against the slow twin, on walks by tokens that declare a name and refer to it at once.
//! `tests/grammars/test_declared_names.py` holds them against all texts of small grammars.

use std::sync::Arc;

use crate::common::matcher;
use crate::random::Random;
use stencilm_engine::{CompiledGrammar, TokenSet, Vocabulary, naive};
use stencilm_grammar::{Grammar, JsonSchemaOptions, from_json_schema};

const TOKENS: [&str; 23] = [
    "}",
    "a",
    "b",
    "=",
    ";",
    ",",
    "ab",
    "a=",
    "a;",
    "=a",
    "b=a",
    ";a=a",
    "a=b;b",
    "\"",
    "[",
    "]",
    "{\"d\":\"",
    "\"}",
    "{\"r\":\"a",
    ",{\"r\":\"",
    "\\u0061",
    "\"},{\"r\":\"a\"}",
    "</s>",
];

fn vocabulary() -> Arc<Vocabulary> {
    Arc::new(Vocabulary::new(&TOKENS.map(Some), TOKENS.len(), &[TOKENS.len() as u32 - 1], &[]).unwrap())
}

fn check_walks(grammar: &Grammar) {
    let mut random = Random::new(7);
    for _ in 0..60 {
        let mut matcher = matcher(grammar.clone(), vocabulary());
        for _ in 0..25 {
            let mut mask = TokenSet::empty(TOKENS.len());
            matcher.fill_mask(mask.words_mut()).expect("some token always fits");
            assert_eq!(mask, naive::mask(&matcher).expect("within the limits"));
            let allowed: Vec<u32> = mask.iter().filter(|&token| (token as usize) < TOKENS.len() - 1).collect();
            if allowed.is_empty() {
                break;
            }
            assert!(matcher.accept_token(*random.pick(&allowed)).expect("within the limits"));
        }
    }
}

#[test]
fn masks_are_those_of_the_slow_twin() {
    for text in [
        r#"root ::= (%declares("s": [ab]+) "=" (%refers("s") | "b")? ";"?)* "#,
        r#"root ::= %declares("s": [ab]{1,2}) rest*
           rest ::= ";" %refers("s") | "," %declares("s": "a" | "ab") | "=" %refers("s") %refers("s")"#,
        r#"root ::= root "," root | %declares("s": "a"+) | ("b" | %declares("t": "b")) "=" %refers("t") | ";" %refers("s")"#,
    ] {
        check_walks(&Grammar::from_ebnf(text, "root").expect("a grammar"));
    }
}

#[test]
fn masks_of_json_are_those_of_the_slow_twin() {
    let schema = r#"{"type": "array", "items": {"anyOf": [
        {"type": "object", "properties": {"d": {"type": "string", "x-stencilm-declares": "s", "maxLength": 2}},
         "required": ["d"], "additionalProperties": false},
        {"type": "object", "properties": {"r": {"type": "string", "x-stencilm-refers": "s"}},
         "required": ["r"], "additionalProperties": false}]}}"#;
    let options = JsonSchemaOptions {
        any_whitespace: false,
        separators: Some((",".into(), ":".into())),
        ..JsonSchemaOptions::default()
    };
    check_walks(&from_json_schema(schema, &options).expect("a schema"));
}

#[test]
fn what_is_read_on_its_own_is_refused() {
    for text in [r#"root ::= %declares("s": "a") x@("b")"#, r#"root ::= %declares("s": "a") %max_tokens(3: "b"*)"#] {
        let grammar = Arc::new(Grammar::from_ebnf(text, "root").expect("a grammar"));
        let error = CompiledGrammar::new(grammar, vocabulary()).map(drop).expect_err("it cannot be kept");
        assert!(error.to_string().contains("declares names"), "{error}");
    }
}
