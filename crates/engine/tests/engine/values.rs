//! Values that are a few texts, and values that are the same in many grammars: masks are those of the slow twin, whatever other
//! grammars of the vocabulary have read before.

use std::sync::Arc;

use stencilm_engine::{GrammarMatcher, TokenSet, Vocabulary, naive};
use stencilm_grammar::{Grammar, JsonSchemaOptions, from_json_schema};

use crate::common::matcher;

/// All bytes, and tokens that go on after keys and values: into a value, to its end, and into the next key.
fn vocabulary() -> Arc<Vocabulary> {
    let mut tokens: Vec<Option<Vec<u8>>> = (0..=255u8).map(|byte| Some(vec![byte])).collect();
    tokens.extend(
        [
            "{\"",
            "\":",
            "\": ",
            "\":\"",
            "\":\"\",",
            "\":\"\",\"",
            "\":[",
            "\":[]",
            "\":[],\"a",
            "\":[\"",
            "\":{",
            "\":{}",
            "\":{},",
            "\":{\"",
            "\":{\"\":",
            "\":1",
            "\":1,\"",
            "\":12}",
            "\":1.5,",
            "\":null",
            "\":null,\"b\":",
            "\":true}",
            "\": 1, \"",
            "\":tru",
            "\":1,\"a\":",
            "\":1,\"c\":1",
            "\",\"",
            "a\":",
            "ab\":1",
            "ab\"",
            "red\"",
            "\"red",
            "\"re",
            "d\",\"",
            "d\"}",
            "\"green\",",
            "reen",
            "1}",
            "1,",
            "12",
            "nul",
            "l,",
            "null}",
            "\n",
            "\n  \"",
            "  ",
        ]
        .map(|text| Some(text.as_bytes().to_vec())),
    );
    let stop = tokens.len() as u32;
    tokens.push(None);
    Arc::new(Vocabulary::new(&tokens, tokens.len(), &[stop], &[]).expect("the tokens differ"))
}

fn mask(matcher: &mut GrammarMatcher) -> TokenSet {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    matcher.fill_mask(mask.words_mut()).expect("within the limits");
    mask
}

/// Compares the masks before and after every byte of a text.
#[track_caller]
fn check_masks(grammar: &Grammar, vocabulary: &Arc<Vocabulary>, text: &str) {
    let mut matcher = matcher(grammar.clone(), vocabulary.clone());
    for (at, byte) in text.bytes().map(Some).chain([None]).enumerate() {
        assert!(mask(&mut matcher) == naive::mask(&matcher).expect("within the limits"), "{text} at {at}");
        if let Some(byte) = byte {
            assert!(matcher.accept_token(u32::from(byte)).expect("within the limits"), "{text} at {at}");
        }
    }
}

fn surfaces() -> [JsonSchemaOptions; 4] {
    let free = JsonSchemaOptions::default();
    let any_order = JsonSchemaOptions { any_order: true, ..free.clone() };
    let compact = JsonSchemaOptions {
        any_whitespace: false,
        separators: Some((",".to_owned(), ":".to_owned())),
        ..any_order.clone()
    };
    let indented = JsonSchemaOptions { any_whitespace: false, indent: Some(2), ..free.clone() };
    [free, any_order, compact, indented]
}

#[test]
fn constants_and_enums_are_read_as_their_texts() {
    let vocabulary = vocabulary();
    for (values, texts) in [
        (r#"["red"]"#, &["\"red\""][..]),
        (r#"["red", "re", "green", ""]"#, &["\"red\"", "\"re\"", "\"\""]),
        // A number may be written with more zeros, so these are no few texts.
        (r#"["red", null, 1, 12, true]"#, &["\"red\"", "null", "12", "1.0"]),
        (r#"[null, true, false]"#, &["null", "true"]),
        (r#"["a\"b", "é", "\n"]"#, &["\"a\\\"b\"", "\"é\"", "\"\\n\""]),
        (r#"[[], ["red"], {}]"#, &["[]", "[\"red\"]", "{}"]),
    ] {
        for options in surfaces() {
            let whole = from_json_schema(&format!(r#"{{"enum": {values}}}"#), &options).expect("the schema is fine");
            let schema =
                format!(r#"{{"type": "object", "properties": {{"ab": {{"enum": {values}}}}}, "required": ["ab"]}}"#);
            let member = from_json_schema(&schema, &options).expect("the schema is fine");
            for text in texts {
                if options.indent.is_none() {
                    check_masks(&whole, &vocabulary, text);
                    check_masks(&member, &vocabulary, &format!("{{\"ab\":{text}"));
                } else {
                    check_masks(&member, &vocabulary, "{\n  \"ab\": ");
                }
            }
        }
    }
}

#[test]
fn alternatives_of_texts_may_begin_with_whitespace_or_go_on_after_each_other() {
    let vocabulary = vocabulary();
    for (grammar, text) in [
        (r#"root ::= "a" [ ]{0,3} ("1" | " 1" | "12") ("," | "}")"#, "a  12}"),
        (r#"root ::= ("red" | "re" | "r") ("d" | "ed")?"#, "rede"),
        (r#"root ::= ("red" | "")+ "1""#, "redred1"),
        (r#"root ::= %lexeme("re" | "red" | "") "d" %lexeme("1" | "12") ","?"#, "redd12"),
    ] {
        let grammar = Grammar::from_ebnf(grammar, "root").unwrap_or_else(|error| panic!("{error}\n{grammar}"));
        check_masks(&grammar, &vocabulary, text);
    }
}

#[test]
fn values_are_read_the_same_whatever_other_grammars_have_read() {
    let values = [
        "{}",
        r#"{"type": "string"}"#,
        r#"{"type": "integer"}"#,
        r#"{"type": ["string", "null"]}"#,
        r#"{"type": "array"}"#,
        r#"{"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}"#,
        r#"{"type": "array", "items": {"type": "integer"}, "minItems": 1}"#,
        r#"{"type": "object"}"#,
        r#"{"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1}"#,
        r#"{"type": "object", "additionalProperties": false}"#,
        r#"{"type": "object", "properties": {"a": {}}, "additionalProperties": false}"#,
        r#"{"type": "array", "uniqueItems": true}"#,
    ];
    let vocabulary = vocabulary();
    // Twice: the second time everything was read by another grammar before.
    for round in 0..2 {
        for (options, known) in
            surfaces().into_iter().take(3).zip(["", r#""ab": {}, "c": {"type": "integer"}"#, r#""c": {}"#])
        {
            for value in values.iter().skip(round) {
                let schema = format!(
                    r#"{{"type": "object", "properties": {{{known}}}, "additionalProperties": {value}, "maxProperties": 3}}"#
                );
                let grammar = from_json_schema(&schema, &options).expect("the schema is fine");
                for text in [r#"{"x"#, r#"{"ab"#, r#"{"x y"#] {
                    check_masks(&grammar, &vocabulary, text);
                }
                let open =
                    format!(r#"{{"type": "object", "properties": {{{known}}}, "additionalProperties": {value}}}"#);
                let nested = format!(r#"{{"type": "array", "items": {open}}}"#);
                let grammar = from_json_schema(&nested, &options).expect("the schema is fine");
                check_masks(&grammar, &vocabulary, r#"[{},{"x"#);
            }
        }
    }
}
