//! Names with labels in Punycode: masks are those of the slow twin, far from limits of length and near them.

use std::sync::Arc;

use stencilm_engine::{GrammarMatcher, TokenSet, Vocabulary, naive};
use stencilm_grammar::{Grammar, JsonSchemaOptions, Spelling, from_json_schema};

use crate::common::matcher;

/// All bytes, and pieces of labels, some of which go on after one.
fn vocabulary() -> Arc<Vocabulary> {
    let mut tokens: Vec<Option<Vec<u8>>> = (0..=255u8).map(|byte| Some(vec![byte])).collect();
    let pieces = [
        "xn",
        "xn--",
        "n--",
        "-- ",
        "--",
        "zca",
        "zca\"",
        "zca.",
        "zca.xn--",
        "ca.com\"",
        "-3ya",
        "3ya.",
        "ya.de\"",
        "ya\"}",
        "a.",
        "a\"",
        "b.b",
        "7a\"",
        "com",
        ".com",
        ".com\"",
        "\\u0061",
        "\\u00",
        "0061",
        "61",
        "a\\u002d3ya",
        "aaaa",
        "aaaaaaaa",
        "mnchen",
        "mnchen-3ya",
        "mnchen-3ya\"",
        "4dbc5h",
        "5h.",
        "5h.1",
        "5h.a",
        "XN--",
        "ZCA",
        "\u{fc}",
        "\u{5d0}",
        ".\u{5d0}",
        "--a",
        "-a",
        "l\u{b7}l",
        "\u{fc}.a",
        "\u{fc}\u{fc}\u{fc}",
        "\u{5d0}\u{5d1}.\u{5d0}",
        "bbbbb.a\"",
        "------------",
    ];
    tokens.extend(pieces.iter().map(|piece| Some(piece.as_bytes().to_vec())));
    let stop = tokens.len() as u32;
    tokens.push(None);
    Arc::new(Vocabulary::new(&tokens, tokens.len(), &[stop], &[]).expect("the tokens differ"))
}

fn grammar(schema: &str, spelling: Spelling) -> Grammar {
    let options = JsonSchemaOptions { spelling, ..JsonSchemaOptions::default() };
    from_json_schema(schema, &options).unwrap()
}

fn mask(matcher: &mut GrammarMatcher) -> TokenSet {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    matcher.fill_mask(mask.words_mut()).expect("within the limits");
    mask
}

#[test]
fn masks_of_names_are_the_naive_ones() {
    let vocabulary = vocabulary();
    let long = format!("xn--{}-", "a".repeat(48));
    let name = format!("{}.{}.{}.{}.xn--mnchen-3ya", "b".repeat(63), "c".repeat(63), "d".repeat(60), "e".repeat(46));
    let encoded = "xn--mnchen-3ya.xn--zca.xn--4dbc5h";
    let label = format!("{}\u{fc}a.a", "b".repeat(57));
    let cases: [(&str, Spelling, &[&str]); 11] = [
        (
            r#"{"format": "hostname"}"#,
            Spelling::Natural,
            &["xn--mnchen-3ya.de", "XN--ZCA.xn--zca", "xn--4dbc5h.a", &name],
        ),
        (r#"{"format": "hostname"}"#, Spelling::Natural, &[&format!("{long}7aaa"), &format!("{long}aaa-3ya")]),
        (r#"{"format": "hostname"}"#, Spelling::Any, &["xn--mnchen-3ya.de", r"x\u006e--\u007aca.a"]),
        (r#"{"format": "idn-hostname"}"#, Spelling::Natural, &["xn--mnchen-3ya.\u{fc}.a", "\u{5d0}.xn--4dbc5h.a"]),
        (r#"{"format": "idn-hostname"}"#, Spelling::Natural, &[&label, &name]),
        (
            r#"{"format": "idn-hostname", "maxLength": 12}"#,
            Spelling::Natural,
            &["a.xn--zca.\u{fc}", "\u{5d0}.xn--zca.a", "l\u{b7}l.\u{fc}.bbbbb", "mnchen.com.a"],
        ),
        (r#"{"format": "hostname", "maxLength": 20}"#, Spelling::Natural, &["a.xn--mgberp4a5d4ar"]),
        (r#"{"format": "hostname", "maxLength": 16}"#, Spelling::Natural, &["xn--mnchen-3ya.d", "a.xn--4dbc5h.a"]),
        (r#"{"format": "hostname", "maxLength": 10, "minLength": 9}"#, Spelling::Any, &["xn--zca.aa", "xn--4dbc5h"]),
        (r#"{"format": "hostname", "pattern": "\\.com$"}"#, Spelling::Natural, &["xn--mnchen-3ya.com"]),
        (r#"{"format": "hostname", "not": {"const": "xn--zca"}}"#, Spelling::Natural, &[encoded]),
    ];
    for (schema, spelling, texts) in cases {
        let schema = schema.replacen('{', r#"{"type": "string", "#, 1);
        for text in texts {
            let mut matcher = matcher(grammar(&schema, spelling), vocabulary.clone());
            let text = format!("\"{text}\"");
            for (at, byte) in text.bytes().enumerate() {
                let expected = naive::mask(&matcher).expect("within the limits");
                let found = mask(&mut matcher);
                let all = 0..vocabulary.vocab_size() as u32;
                let differ = all.filter(|&token| found.contains(token) != expected.contains(token));
                let spelled =
                    |token| String::from_utf8_lossy(vocabulary.token_bytes(token).unwrap_or(b"</s>")).into_owned();
                let differ: Vec<String> = differ.map(spelled).collect();
                assert!(differ.is_empty(), "{schema} {} {differ:?}", &String::from_utf8_lossy(&text.as_bytes()[..at]));
                // What cannot be completed is refused; the masks before that were compared.
                if !matcher.accept_token(u32::from(byte)).expect("within the limits") {
                    break;
                }
            }
        }
    }
}
