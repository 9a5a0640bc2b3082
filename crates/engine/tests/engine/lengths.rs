//! Masks of texts with a greatest length: at every count they are what the slow twin says.

use std::sync::Arc;

use crate::common::matcher;
use stencilm_engine::{TokenSet, Vocabulary, naive};
use stencilm_grammar::{JsonSchemaOptions, from_json_schema};

/// All bytes, and runs of characters to far beyond those for which sets of tokens are kept; some end strings, some are there
/// twice.
fn vocabulary() -> Arc<Vocabulary> {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    for count in 2..60 {
        tokens.push(b"a".repeat(count));
        tokens.push("é".repeat(count).into_bytes());
        tokens.push([&b"b".repeat(count), &b"\xC3"[..]].concat());
    }
    for count in 1..9 {
        for end in ["\"", "\"]", "\", \"", "\": \"", "\\u0061", "\\"] {
            tokens.push([&b"a".repeat(count), end.as_bytes()].concat());
        }
    }
    tokens.push(b"a".repeat(40));
    tokens.push("é".repeat(28).into_bytes());
    let tokens: Vec<Option<Vec<u8>>> = tokens.into_iter().map(Some).collect();
    Arc::new(Vocabulary::new(&tokens, tokens.len(), &[], &[]).unwrap())
}

#[test]
fn masks_at_every_count_are_those_of_the_slow_twin() {
    let vocabulary = vocabulary();
    for (schema, begin) in [
        (r#"{"type": "string", "maxLength": 70}"#, "\""),
        // Those that begin as the unbounded string for every token, which is known by then.
        (r#"{"type": "string"}"#, "\""),
        (r#"{"type": "string", "maxLength": 1000}"#, "\""),
        (r#"{"anyOf": [{"type": "string", "minLength": 1, "maxLength": 900}, {"type": "integer"}]}"#, "\""),
        (r#"{"type": "array", "items": {"type": "string", "maxLength": 500}}"#, "[\"a\", \""),
        (
            r#"{"type": "object", "patternProperties": {"^a": {}}, "propertyNames": {"maxLength": 700}}"#,
            "{\"aa\": 1, \"",
        ),
        (r#"{"type": "string", "minLength": 33, "maxLength": 64}"#, "\""),
        (r#"{"type": "string", "pattern": "^[aé]{3,50}$"}"#, "\""),
        (r#"{"anyOf": [{"type": "string", "maxLength": 30}, {"pattern": "^a", "maxLength": 47}]}"#, "\""),
        (r#"{"type": "array", "items": {"type": "string", "maxLength": 40}}"#, "[\""),
        (r#"{"type": "array", "items": {"maxLength": 28}, "uniqueItems": true}"#, "[\"a\", \"aé\", \""),
        (r#"{"type": "object", "properties": {"a": {"type": "string", "maxLength": 35}}}"#, "{\"a\": \""),
        (r#"{"type": "object", "propertyNames": {"maxLength": 33}}"#, "{\"aa\": 1, \""),
    ] {
        let grammar = from_json_schema(schema, &JsonSchemaOptions::default()).unwrap();
        let mut matcher = matcher(grammar, vocabulary.clone());
        let mut read = 0;
        for byte in [begin, &"aé".repeat(80)].concat().bytes() {
            let mut mask = TokenSet::empty(vocabulary.vocab_size());
            matcher.fill_mask(mask.words_mut()).unwrap();
            assert!(mask == naive::mask(&matcher).unwrap(), "{schema} behind {read} bytes");
            let patch = matcher.mask_patch().unwrap();
            let mut patched = TokenSet::empty(vocabulary.vocab_size());
            assert!(vocabulary.write_row(patch.row, patched.words_mut()), "{schema} behind {read} bytes");
            for token in patch.flipped {
                match patched.contains(token) {
                    true => patched.remove(token),
                    false => patched.insert(token),
                }
            }
            assert!(mask == patched, "{schema} behind {read} bytes, as a patch");
            if !matcher.accept_token(u32::from(byte)).unwrap() {
                break;
            }
            read += 1;
        }
        assert!(read > 30, "{schema}: {read} bytes");
    }
}
