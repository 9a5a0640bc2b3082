//! Objects with many alternatives that read the same keys: masks are those of the slow twin where a key may repeat one that the
//! object has, however many alternatives are open.

use std::sync::Arc;

use stencilm_engine::{CompiledGrammar, GrammarMatcher, Limits, MatcherOptions, TokenSet, Vocabulary, naive};
use stencilm_grammar::{JsonSchemaOptions, from_json_schema};

use crate::common::matcher;
use crate::random::Random;

/// Single characters, and tokens that hold the end of a key, whole keys, escapes, and whole members.
fn vocabulary() -> Arc<Vocabulary> {
    let single = ("\"\\{}[],: \nabcdxyz_u0126".chars()).map(String::from);
    let longer = [
        "{\"",
        "\":",
        "\": ",
        "\":1",
        "\":1,",
        "\":1,\"",
        "\",\"",
        "_x",
        "_x\"",
        "_x\":1",
        "_x\":1,\"",
        "_y\":",
        "a_",
        "a_x\"",
        "\"a_x\"",
        "\"a_x\":1,\"a_y\":1",
        "a\":1,\"a\"",
        "a\":1,\"b\":2}",
        "a\":1,\"b\":1,\"a\"",
        "b\":2,",
        "\\u0061",
        "\\u0061\"",
        "\\\"",
        "\\\"\"",
        "z\"",
        "z\":1",
        "z\",",
        "z\"z",
        "z\\",
        "\":[\"",
        "\":{\"",
        "1}",
        "1,\"",
        "2,\"a",
        "\"z\":1,\"",
        "\"z\":1,\"z\"",
    ];
    let longer = longer.map(String::from).into_iter();
    let mut tokens: Vec<Option<Vec<u8>>> = single.chain(longer).map(|text| Some(text.into_bytes())).collect();
    let stop = tokens.len() as u32;
    tokens.push(None);
    Arc::new(Vocabulary::new(&tokens, tokens.len(), &[stop], &[]).expect("the tokens differ"))
}

fn mask(matcher: &mut GrammarMatcher) -> TokenSet {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    matcher.fill_mask(mask.words_mut()).expect("within the limits");
    mask
}

/// Schemas whose normal form has many objects with the same keys.
const SCHEMAS: [&str; 8] = [
    r#"{"type": "object", "dependentRequired": {"a_x": ["a_y"], "b_x": ["b_y"], "c_x": ["c_y"]}}"#,
    r#"{"type": "object", "dependentRequired": {"a": ["b"], "b": ["c"], "c": ["a_x", "d"]}, "maxProperties": 4}"#,
    r#"{"type": "object", "dependentRequired": {"a": ["b"], "z": ["a"]}, "properties": {"z": {"const": 1}, "b": {"type": "integer"}}}"#,
    r#"{"not": {"enum": [{"a": 1, "b": 2}, {"c": 1, "d": 2}, {"z": 1, "a": 2}]}}"#,
    r#"{"type": "object", "not": {"enum": [{}, {"a": 1}, {"b": {"a": 1}}]}, "minProperties": 1}"#,
    r#"{"type": "object", "dependentSchemas": {"a": {"required": ["b"]}, "b": {"properties": {"a": {"const": 2}}}}}"#,
    r#"{"oneOf": [{"required": ["a"]}, {"required": ["b", "c"]}, {"required": ["z"], "type": "object"}], "type": "object"}"#,
    r#"{"type": "object", "propertyNames": {"pattern": "^[abz]{1,2}$"}, "anyOf": [{"required": ["a"]}, {"minProperties": 3}, {"maxProperties": 1}]}"#,
];

#[test]
fn masks_of_objects_in_many_alternatives_are_the_naive_ones() {
    let vocabulary = vocabulary();
    // A key may repeat one that is there, plainly or with an escape.
    let texts = [
        r#"{"z": 1, "z"#,
        r#"{"z":1,"a":1,"b":2,"z"#,
        r#"{"z":1,"\u0061"#,
        r#"{"a_x":1,"z":1,"a_"#,
        r#"{"zz":1,"z":1,"a":{"a":1},"zz"#,
    ];
    let mut decisions = 0;
    for schema in SCHEMAS {
        for any_order in [false, true] {
            let options = JsonSchemaOptions { any_order, ..JsonSchemaOptions::default() };
            let grammar = from_json_schema(schema, &options).expect("it has instances");
            let fresh = matcher(grammar, vocabulary.clone());
            for seed in 0..40 {
                let mut random = Random::new(seed);
                let mut matcher = fresh.fork();
                let mut text: Vec<u8> = Vec::new();
                if seed < texts.len() as u64 {
                    text = texts[seed as usize].into();
                    if !matcher.accept_bytes(&text).expect("within the limits") {
                        continue;
                    }
                }
                for _ in 0..24 {
                    let expected = naive::mask(&matcher).expect("within the limits");
                    let spelled = String::from_utf8_lossy(&text).into_owned();
                    assert_eq!(mask(&mut matcher), expected, "{schema}, any order {any_order}: {spelled}");
                    decisions += 1;
                    let stop = vocabulary.vocab_size() as u32 - 1;
                    let next: Vec<u32> = expected.iter().filter(|&token| token != stop).collect();
                    if next.is_empty() {
                        break;
                    }
                    let token = *random.pick(&next);
                    text.extend(vocabulary.token_bytes(token).expect("it spells bytes"));
                    assert!(matcher.accept_token(token).expect("within the limits"));
                }
            }
        }
    }
    assert!(decisions > 5_000, "{decisions} masks were compared");
}

/// With so many alternatives open, each token was once read by all of them for each of them.
#[test]
fn a_key_so_far_that_is_a_key_of_the_object_costs_no_more_with_each_alternative() {
    let pairs: Vec<String> = ('a'..='j').map(|c| format!(r#""{c}_x": ["{c}_y"]"#)).collect();
    let schema = format!(r#"{{"type": "object", "dependentRequired": {{{}}}}}"#, pairs.join(", "));
    let grammar = from_json_schema(&schema, &JsonSchemaOptions::default()).expect("it has instances");
    // A second is a thousand times what it takes.
    let limits = Limits { milliseconds: 10_000, ..Limits::default() };
    let compiled = CompiledGrammar::with_limits(Arc::new(grammar), vocabulary(), limits).expect("a plain grammar");
    let mut matcher = GrammarMatcher::new(Arc::new(compiled), &MatcherOptions::default()).expect("within the limits");
    assert!(matcher.accept_bytes(br#"{"z": 1, "z"#).expect("within the limits"));
    let found = mask(&mut matcher);
    assert_eq!(found, naive::mask(&matcher).expect("within the limits"));
}
