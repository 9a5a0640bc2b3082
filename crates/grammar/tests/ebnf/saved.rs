//! Grammars as JSON text and back, and texts that were damaged.

use stencilm_grammar::{ErrorKind, Grammar, JsonSchemaOptions, any_json, from_json_schema};

use crate::grammar;

#[test]
fn round_trips() {
    let schema =
        r##"{"type":"object","properties":{"a":{"$ref":"#"},"b":{"type":"string","maxLength":9}},"title":"t"}"##;
    let grammars = [
        grammar("root ::= \"é\" %bytes[80-FF]* | \"(\" root \")\" | root root"),
        grammar("root ::= ([a-z]{2,900} & ~\"if\") <|a|> <[1-3,7]> <[^9]> x@(\"y\"){3,}"),
        grammar("root ::= %object { order = any; member \"a\": root; others: \"1\"; } | \"2\""),
        any_json(&JsonSchemaOptions::default()).expect("any JSON"),
        from_json_schema(schema, &JsonSchemaOptions::default()).expect("a schema"),
    ];
    for grammar in grammars {
        let text = grammar.serialize_json();
        let again = Grammar::deserialize_json(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again.to_string(), grammar.to_string());
        assert_eq!(again.report(), grammar.report());
        assert_eq!(again.serialize_json(), text);
    }
}

#[test]
fn damaged_texts_are_refused() {
    let text = grammar("root ::= \"ab\" <[1]> x@(\"y\")").serialize_json();
    let cases = [
        ("", "line 1, column 0", "no serialized grammar"),
        ("[]", "line 1, column 2", "no serialized grammar"),
        ("{}", "#/format", "not \"stencilm-grammar\""),
        (r#"{"format":"stencilm-grammar","version":2}"#, "#/version", "the version is 2"),
        (r#"{"format":"stencilm-grammar","version":3}"#, "line 1, column 41", "missing field"),
    ];
    for (text, place, words) in cases {
        let error = Grammar::deserialize_json(text).expect_err(text);
        assert_eq!((error.kind, error.place.as_str()), (ErrorKind::Syntax, place), "{text}: {error}");
        assert!(error.message.contains(words), "{text}: {error}");
    }
    let changed = [
        (r#"{"lexeme":"#, r#"{"lexeme":99"#),
        (r#""root":"#, r#""root":9"#),
        (r#""sequence":["#, r#""sequence":[77,"#),
        (r#""sequence":["#, r#""sequence":[-1,"#),
        (r#"[[1,1]]"#, "[[2,1]]"),
        (r#""root":"#, r#""extra":1,"root":"#),
    ];
    for (from, to) in changed {
        assert!(text.contains(from), "{from} in {text}");
        let error = Grammar::deserialize_json(&text.replacen(from, to, 1)).expect_err(to);
        assert_eq!(error.kind, ErrorKind::Syntax, "{to}: {error}");
    }
}

/// What no notation writes, so that only a text that was changed has it.
#[test]
fn objects_and_arrays_that_no_notation_writes() {
    let object = grammar("root ::= %object { member \"a\": \"1\"; member \"b\": \"2\"; }").serialize_json();
    let array = grammar("root ::= %array { contains c {1,}; rest c: \"1\"; }").serialize_json();
    let counters = format!(r#""contains":[{}]"#, vec!["[1,null]"; 33].join(","));
    for (text, from, to, kind, place, words) in [
        (&object, r#""ordered":2"#, r#""ordered":3"#, ErrorKind::Syntax, "#/members/0", "more members are in order"),
        (&array, r#""rest":[[0,1]]"#, r#""rest":[[0,2]]"#, ErrorKind::Syntax, "#/items/0", "counts for a counter"),
        (&array, r#""contains":[[1,null]]"#, &counters, ErrorKind::Limit, "#/items/0", "more than 32 counters"),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        let error = Grammar::deserialize_json(&text.replacen(from, to, 1)).expect_err(to);
        assert_eq!((error.kind, error.place.as_str()), (kind, place), "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}

/// Every text with a part cut out or a number changed is refused or read, without a panic.
#[test]
fn no_damage_panics() {
    let text = grammar("root ::= [a-c]* \"x\" <|t|> | %object { member \"k\": root; others: \"1\"; }").serialize_json();
    for (at, byte) in text.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit()).take(400) {
        let mut bytes = text.clone().into_bytes();
        for other in [b'0', b'3', b'9'] {
            bytes[at] = other;
            let _ = Grammar::deserialize_json(std::str::from_utf8(&bytes).expect("ASCII stays ASCII"));
        }
        bytes[at] = byte;
    }
}

#[test]
fn expansive_texts_are_refused() {
    // Each entry doubles the length of a concatenation.
    let mut exprs = vec![r#"{"bytes":[[97,97]]}"#.to_string()];
    exprs.extend((0..60).map(|at| format!(r#"{{"concat":[{at},{at}]}}"#)));
    let text = format!(
        r#"{{"format":"stencilm-grammar","version":3,"exprs":[{}],"nodes":[{{"lexeme":60}}],"rules":[],"members":[],"items":[],
        "root":0,"report":{{"enforced":[],"annotations":[],"relaxed":[]}}}}"#,
        exprs.join(",")
    );
    assert_eq!(Grammar::deserialize_json(&text).expect_err("too large").kind, ErrorKind::Limit);
}

#[test]
fn combinations() {
    let a = grammar("root ::= x root | \"b\"\nx ::= \"a\" x \"c\" | \"d\"");
    let both = Grammar::concat(&[&a, &a]).expect("a sequence");
    let either = Grammar::union(&[&a, &grammar("root ::= \"z\"")]).expect("a choice");
    for (combined, inside, outside) in [
        (&both, &["bb", "dbb", "badcb"][..], &["b", "", "dd"][..]),
        (&either, &["b", "db", "z"][..], &["bz", "zz", ""][..]),
    ] {
        for grammar in [combined, &grammar(&combined.to_string())] {
            for (texts, expected) in [(inside, true), (outside, false)] {
                for text in texts {
                    assert_eq!(crate::recogniser::matches(grammar, text.as_bytes()), expected, "{text}\n{grammar}");
                }
            }
        }
    }
    let names: Vec<&str> = both.rules().iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names.len(), 4);
    assert!(names.iter().all(|name| names.iter().filter(|other| other == &name).count() == 1), "{names:?}");
    assert_eq!(Grammar::concat(&[]).expect("the empty text").to_string(), "root ::= \"\"\n");
    assert_eq!(Grammar::union(&[]).expect_err("nothing").kind, ErrorKind::Unsatisfiable);
}
