//! Objects and arrays that count: what they match, to what they are completed, and that counting costs no masks.

use std::sync::Arc;

use stencilm_engine::{EngineError, GrammarMatcher, Status, TokenSet, Vocabulary, naive};
use stencilm_grammar::{ErrorKind, Grammar, JsonSchemaOptions, Spelling, from_json_schema};

use crate::common::matcher;

fn bytes_as_tokens() -> Arc<Vocabulary> {
    let mut tokens: Vec<Option<Vec<u8>>> = (0..=255u8).map(|byte| Some(vec![byte])).collect();
    tokens.extend(["\":", ",\"", "1,", ",1", "]]", "}}"].map(|text| Some(text.as_bytes().to_vec())));
    Arc::new(Vocabulary::new(&tokens, tokens.len(), &[], &[]).expect("the tokens differ"))
}

fn read(text: &str) -> GrammarMatcher {
    let grammar = Grammar::from_ebnf(text, "root").unwrap_or_else(|error| panic!("{error}\n{text}"));
    matcher(grammar, bytes_as_tokens())
}

#[track_caller]
fn check(grammar: &str, inside: &[&str], outside: &[&str]) {
    let mut matcher = read(grammar);
    for text in inside {
        let verdict = matcher.longest_valid_prefix(text.as_bytes()).expect("within the limits");
        assert_eq!(verdict.status, Status::Complete, "{text}: {verdict:?}");
    }
    for text in outside {
        let verdict = matcher.longest_valid_prefix(text.as_bytes()).expect("within the limits");
        assert_ne!(verdict.status, Status::Complete, "{text}");
    }
}

/// Where the first byte is that does not fit, so that a dead end shows.
#[track_caller]
fn dies_at(grammar: &str, text: &str, valid: usize) {
    let verdict = read(grammar).longest_valid_prefix(text.as_bytes()).expect("within the limits");
    assert_eq!((verdict.status, verdict.valid_bytes), (Status::Dead, valid), "{text}");
}

/// A key may be written without quotes, where the grammar says so; that of one letter ended in a panic.
#[test]
fn keys_without_quotes_come_beside_other_members() {
    let grammar = r#"root ::= %object { member "b" = "b": "1"; optional "cd" = "cd": "1"; others: "2"; }"#;
    check(grammar, &["{b:1}", r#"{b:1,cd:1,"c":2}"#], &["{b:2}", r#"{"b":1}"#, r#"{b:1,"b":2}"#, r#"{b:1,"cd":2}"#]);
    let mut matcher = read(grammar);
    for byte in br#"{b:1,"c":2,"cd"#.iter().copied() {
        let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
        matcher.fill_mask(mask.words_mut()).expect("within the limits");
        assert!(mask == naive::mask(&matcher).expect("within the limits"), "before {:?}", char::from(byte));
        assert!(matcher.accept_token(u32::from(byte)).expect("within the limits"), "{:?}", char::from(byte));
    }
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    matcher.fill_mask(mask.words_mut()).expect("within the limits");
    assert!(!mask.contains(u32::from(b'"')), "the other member is called as one that has a value of its own");
}

/// Keys that run out, one of which must be there: no dead end, and masks as the slow twin has them.
#[test]
fn one_of_few_keys_must_be_there() {
    let grammar = r#"root ::= %object { count {0,2}; optional "c": "1"; others = "\"" [ab] "\"": [12]; some: [12]; }"#;
    check(
        grammar,
        &[r#"{"a":1}"#, r#"{"b":2,"a":1}"#, r#"{"c":1,"a":2}"#],
        &["{}", r#"{"c":1}"#, r#"{"a":1,"a":1}"#, r#"{"c":1,"a":1,"b":1}"#],
    );
    dies_at(grammar, r#"{"c":1}"#, 6);
    dies_at(grammar, r#"{"a":1,"b":2,"#, 12);
    let mut matcher = read(grammar);
    for byte in br#"{"c":1,"b":2}"#.iter().copied() {
        let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
        matcher.fill_mask(mask.words_mut()).expect("within the limits");
        assert!(mask == naive::mask(&matcher).expect("within the limits"), "before {:?}", char::from(byte));
        assert!(matcher.accept_token(u32::from(byte)).expect("within the limits"), "{:?}", char::from(byte));
    }
    // Another value than the rest is not to be had of the last key that is left.
    let other = r#"root ::= %object { others = "\"" [ab] "\"": [12]; some: "2"; }"#;
    let error = Grammar::from_ebnf(other, "root").expect_err("the last key may be gone");
    assert!(error.message.contains("only few keys"), "{error}");
}

#[test]
fn members_in_order_come_before_mixed_ones() {
    let grammar = r#"root ::= %object {
        member "a": "1"; optional "b": "1"; mixed; member "c": "1"; optional "d": "1"; others = "\"x" [a-z]* "\"": "1";
    }"#;
    check(
        grammar,
        &[r#"{"a":1,"c":1}"#, r#"{"a":1,"b":1,"d":1,"xy":1,"c":1,"x":1}"#, r#"{"a":1,"c":1,"d":1}"#],
        &[
            r#"{"c":1,"a":1}"#,
            r#"{"a":1,"c":1,"b":1}"#,
            r#"{"a":1,"b":1}"#,
            r#"{"a":1,"c":1,"c":1}"#,
            r#"{"a":1,"c":1,"x":1,"x":1}"#,
        ],
    );
    dies_at(grammar, r#"{"x":1"#, 2);
    dies_at(grammar, r#"{"a":1,"x":1,"b""#, 14);
}

#[test]
fn members_are_counted() {
    let grammar =
        r#"root ::= %object { count {2,3}; member "a": "1"; optional "b": "1"; others = "\"x" [a-z]* "\"": "1"; }"#;
    check(
        grammar,
        &[r#"{"a":1,"b":1}"#, r#"{"a":1,"x":1,"xx":1}"#, r#"{"a":1,"b":1,"x":1}"#],
        &[r#"{"a":1}"#, r#"{"a":1,"b":1,"x":1,"xx":1}"#, "{}"],
    );
    dies_at(grammar, r#"{"a":1}"#, 6);
    dies_at(grammar, r#"{"a":1,"b":1,"x":1,"#, 18);
    // Two of three must come, in order: the first two cannot both be left out.
    let grammar = r#"root ::= %object { count {2,}; optional "a": "1"; optional "b": "1"; optional "c": "1"; }"#;
    check(grammar, &[r#"{"a":1,"c":1}"#, r#"{"b":1,"c":1}"#], &[r#"{"a":1}"#]);
    dies_at(grammar, r#"{"c""#, 2);
    // What is required keeps its place.
    let grammar = r#"root ::= %object { order = any; count {0,2}; member "a": "1"; optional "b": "1"; others: "1"; }"#;
    check(grammar, &[r#"{"b":1,"a":1}"#, r#"{"a":1}"#], &[r#"{"b":1,"x":1}"#]);
    dies_at(grammar, r#"{"b":1,"x"#, 8);
}

#[test]
fn one_of_the_others_must_have_some_value() {
    let grammar = r#"root ::= %object {
        count {0,2}; optional "a": "1"; others = "\"x" [a-z]* "\"": [1-9]; some: "7";
    }"#;
    check(
        grammar,
        &[r#"{"x":7}"#, r#"{"x":1,"xy":7}"#, r#"{"a":1,"x":7}"#, r#"{"x":7,"xx":7}"#],
        &["{}", r#"{"a":1}"#, r#"{"x":1}"#, r#"{"x":1,"xx":2}"#],
    );
    dies_at(grammar, r#"{"x":1,"xx":2"#, 12);
    dies_at(grammar, r#"{"a":1,"xx":2"#, 12);
}

#[test]
fn classes_of_others_have_values_and_names_of_their_own() {
    let grammar = r#"root ::= %object {
        optional "xa": "0";
        taken "xa" "xb"; others = "\"x" [a-z]* "\"": "1";
        taken "yc"; others = "\"y" [a-z]* "\"": "2";
    }"#;
    check(
        grammar,
        &[r#"{"xc":1,"yb":2,"y":2}"#, r#"{"xa":0,"x":1,"yxb":2}"#],
        &[r#"{"xb":1}"#, r#"{"yc":2}"#, r#"{"xc":2}"#, r#"{"x":1,"y":2,"x":1}"#],
    );
}

#[test]
fn keys_that_run_out_lead_to_no_dead_end() {
    let grammar = r#"root ::= %object { others = "\"" [ab]{2} "\"": "1"; }"#;
    let full = r#"{"aa":1,"ab":1,"ba":1,"bb":1}"#;
    check(grammar, &["{}", full], &[r#"{"aa":1,"ab":1,"aa":1}"#]);
    // After both keys that begin with it, the letter cannot come a third time; and nothing after all of them.
    dies_at(grammar, r#"{"aa":1,"ab":1,"a"#, 16);
    dies_at(grammar, r#"{"aa":1,"aa"#, 10);
    dies_at(grammar, r#"{"aa":1,"ab":1,"ba":1,"bb":1,"#, 28);
    // Names count, however they are spelled.
    let grammar = r#"root ::= %object {
        optional "ab": "2"; others = "\"" [ab] ("b" | "\\u0062") "\"": "1";
    }"#;
    check(grammar, &[r#"{"ab":2,"bb":1}"#, r#"{"b\u0062":1}"#], &[r#"{"bb":1,"ab":2}"#, r#"{"a\u0062":1}"#]);
    dies_at(grammar, r#"{"ab":2,"a"#, 9);
    dies_at(grammar, r#"{"b\u0062":1,"b"#, 12);
    dies_at(grammar, r#"{"bb":1,"#, 7);
    // What is left of the keys is what may still be counted.
    let grammar = r#"root ::= %object {
        count {3,}; optional "x": "2"; optional "y": "2"; others = "\"" [ab] "\"": "1";
    }"#;
    check(grammar, &[r#"{"x":2,"a":1,"b":1}"#, r#"{"x":2,"y":2,"b":1}"#], &[r#"{"a":1,"b":1}"#]);
    dies_at(grammar, r#"{"a"#, 2);
    // Many keys, and still an end to each.
    let grammar = r#"root ::= %object { others = "\"" [a-z]{9} "\"": "1"; }"#;
    dies_at(grammar, r#"{"abcdefghi":1,"abcdefghi"#, 24);
    dies_at(grammar, r#"{"abcdefghi":1,"abcdefghj":1,"abcdefghi"#, 38);
    // An escape that has begun can become a character of nearly any kind, and is not tried digit by digit.
    let schema = r#"{"patternProperties":{"^.{1,2}$":true},"additionalProperties":false}"#;
    let options = JsonSchemaOptions { spelling: Spelling::Any, ..JsonSchemaOptions::default() };
    let grammar = from_json_schema(schema, &options).expect("it has instances");
    let mut matcher = matcher(grammar, bytes_as_tokens());
    for text in [r#"{"\u00e9":1,"\u00e9\u00e9":1,"éé":1}"#, r#"{"éé":1,"\ud83d\ude00\u00E9":1,"\u00e9\u00E9":1}"#] {
        let fits = text.rfind(',').expect("the last member is a repeat");
        let verdict = matcher.longest_valid_prefix(text.as_bytes()).expect("within the limits");
        assert!(verdict.status == Status::Dead && verdict.valid_bytes > fits, "{text}: {verdict:?}");
    }
}

#[test]
fn elements_are_counted_by_kind() {
    let grammar = r#"root ::= %array { count {2,4}; contains c {1,2}; place: "9"; rest: [1-4]; rest c: [5-8]; }"#;
    check(grammar, &["[9,5]", "[9,1,5]", "[9,5,6,1]"], &["[9]", "[5,9]", "[9,1]", "[9,5,6,7]", "[9,1,2,5,3]"]);
    dies_at(grammar, "[9,1,2,3", 7);
    dies_at(grammar, "[9,5,6,7", 7);
    // One element may do for both counters, which saves the place.
    let grammar = r#"root ::= %array {
        count {0,2}; contains c {1,}; contains d {2,}; rest c: "1"; rest d: "2"; rest c d: "3"; rest: "4";
    }"#;
    check(grammar, &["[3,2]", "[2,3]", "[3,3]"], &["[1,2]", "[4,3]", "[]"]);
    dies_at(grammar, "[1", 1);
    dies_at(grammar, "[2,2", 3);
}

/// An object with so many members to come in any order, of which one takes longer than it looks: its keys must differ.
fn members_in_any_order(count: usize) -> String {
    let members: String = (0..count).map(|n| format!(r#"member "k{n}": "{}"; "#, n % 10)).collect();
    format!(
        r#"root ::= %object {{ order = any; {members} member "o": %object {{ count {{3,}}; others = "\"" [a-z]* "\"": "1"; }}; }}"#
    )
}

#[test]
fn completions_bring_counts_within_their_bounds() {
    for (grammar, begin, completion) in [
        (
            r#"root ::= %object { count {3,}; member "long": "1"; optional "b": "22"; others: "1"; }"#,
            "",
            r#"{"long":1,"":1,"#,
        ),
        (r#"root ::= %object { others: [1-9]; some: "77"; }"#, "", r#"{"":77}"#),
        (r#"root ::= %array { contains c {2,}; rest: "1"; rest c: "222"; }"#, "", "[222,222]"),
        (r#"root ::= %array { contains c {1,}; rest: "1"; rest c: "222"; }"#, "[222,", "1]"),
        (r#"root ::= %array { count {1000,}; rest: "1"; }"#, "", "[1,1,1"),
        (r#"root ::= %array { count {3,3}; contains c {1,1}; place c: "12"; place: "3"; rest: "4"; }"#, "[12", ",3,4]"),
        (r#"root ::= "x" %array { place: "1"; also: "22"; rest: root; count {1,2}; }"#, "x[22", "]"),
        (&members_in_any_order(40), "", "{"),
    ] {
        let mut matcher = read(grammar);
        assert_eq!(matcher.accept_bytes(begin.as_bytes()), Ok(true), "{grammar}");
        let found = matcher.shortest_completion(10_000).expect("it can be completed");
        let found = String::from_utf8(found).expect("text");
        assert!(found.starts_with(completion), "{grammar}: {found}");
        assert_eq!(matcher.accept_bytes(found.as_bytes()), Ok(true), "{grammar}: {found}");
        assert!(matcher.is_completed(), "{grammar}: {found}");
    }
}

#[test]
fn counts_far_from_their_bounds_share_masks() {
    for grammar in [
        r#"root ::= %array { contains c {1000,}; count {1000,}; rest: "1"; rest c: "2"; }"#,
        r#"root ::= %array { contains c {1,100000}; count {0,200000}; rest: "1"; rest c: "2"; }"#,
        r#"root ::= "[" %object { count {0,100000}; others = "\"" [a-z0-9]* "\"": [12]; some: "2"; } "]""#,
    ] {
        let mut matcher = read(grammar);
        let is_object = grammar.contains("object");
        assert_eq!(matcher.accept_bytes(if is_object { b"[{" } else { b"[" }), Ok(true));
        let mut mask = vec![0; matcher.compiled().vocabulary().mask_words()];
        let mut held = Vec::new();
        for index in 0..300 {
            let element = if is_object { format!("\"k{index}\":2,") } else { "2,".into() };
            for byte in element.bytes() {
                matcher.fill_mask(&mut mask).expect("within the limits");
                assert_eq!(matcher.accept_bytes(&[byte]), Ok(true));
            }
            held.push(matcher.compiled().memory_bytes());
        }
        let (early, late) = (held[100], held[299]);
        assert!(late < early + 20_000, "{grammar}: {early} bytes, then {late}");
    }
}

#[test]
fn elements_differ_as_values() {
    let string = r#"string ::= "\"" ([^"\\] | "\\u00" [0-9a-f]{2})* "\"" "#;
    check(
        &format!("root ::= %array {{ unique; rest: string; }} {string}"),
        &[r#"["a","b"]"#, "[]", r#"["a","A",""]"#, r#"[ "a" , "aa" ]"#],
        &[r#"["a","a"]"#, r#"["a","\u0061"]"#, r#"["","b",""]"#, r#"[ "a" , "a" ]"#],
    );
    let number = r#"number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ("e" "-"? [0-9]+)?"#;
    check(
        &format!("root ::= %array {{ unique; rest: number | \"null\"; }} {number}"),
        &["[1,2]", "[1,10,1.5,100]", "[0,null,0.5]", "[12,1.2]"],
        &["[1,1.0]", "[10,1e1]", "[0,-0]", "[0,0e7]", "[null,null]", "[120,12e1]"],
    );
    let object = r#"%object { order = any; optional "a": [0-9]; optional "b": [0-9]; }"#;
    check(
        &format!("root ::= %array {{ unique; rest: {object}; }}"),
        &[r#"[{"a":1},{"b":1}]"#, r#"[{},{"a":1},{"a":2}]"#, r#"[{"a":1,"b":2},{"a":2,"b":1}]"#],
        &["[{},{}]", r#"[{"a":1,"b":2},{"b":2,"a":1}]"#, r#"[{"a":1},{ "a" : 1 }]"#],
    );
    // An array within is unique on its own, and its elements count for nothing outside.
    check(
        "root ::= %array { unique; rest: %array { unique; rest: [0-9]; }; }",
        &["[[1,2],[2,1],[1]]"],
        &["[[1,1]]", "[[1,2],[1,2]]"],
    );
}

#[test]
fn two_elements_are_equal_as_values() {
    let string = r#"string ::= "\"" ([^"\\] | "\\u00" [0-9a-f]{2})* "\"" "#;
    let strings = format!("root ::= %array {{ repeated; rest: string; }} {string}");
    check(
        &strings,
        &[r#"["a","a"]"#, r#"["a","\u0061"]"#, r#"["","b",""]"#, r#"[ "a" , "a" , "b" ]"#],
        &[r#"["a","b"]"#, "[]", r#"["a"]"#, r#"["a","A",""]"#, r#"[ "a" , "aa" ]"#],
    );
    dies_at(&strings, r#"["a","b"]"#, 8);
    let number = r#"number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ("e" "-"? [0-9]+)?"#;
    check(
        &format!("root ::= %array {{ repeated; place: \"null\"; rest: number | \"null\"; }} {number}"),
        &["[null,1,1.0]", "[null,10,1e1]", "[null,0,-0]", "[null,null]", "[null,12e1,5,120]"],
        &["[null,1,2]", "[null,1,10,1.5,100]", "[null]", "[null,12,1.2]", "[1,1]"],
    );
    let object = r#"%object { order = any; optional "a": [0-9]; optional "b": [0-9]; }"#;
    check(
        &format!("root ::= %array {{ repeated; rest: {object}; }}"),
        &["[{},{}]", r#"[{"a":1,"b":2},{"b":2,"a":1}]"#, r#"[{"a":1},{ "a" : 1 }]"#],
        &[r#"[{"a":1},{"b":1}]"#, r#"[{},{"a":1},{"a":2}]"#, r#"[{"a":1,"b":2},{"a":2,"b":1}]"#],
    );
    // An array within is on its own, and within elements that differ it is one of them.
    check(
        "root ::= %array { repeated; rest: %array { unique; rest: [0-9]; }; }",
        &["[[1,2],[2,1],[1,2]]", "[[],[]]"],
        &["[[1,2],[2,1],[1]]", "[[1,1],[1,1]]"],
    );
    check(
        "root ::= %array { unique; rest: %array { repeated; rest: [0-9]; }; }",
        &["[]", "[[1,1]]", "[[1,1],[1,1,1]]", "[[1,1],[2,2]]"],
        &["[[1,2]]", "[[1,1],[1,1]]", "[[]]"],
    );
    // Counters are read as ever.
    check(
        r#"root ::= %array { repeated; contains c {1,1}; rest c: "7"; rest: [0-6]; }"#,
        &["[1,7,1]", "[7,2,2]"],
        &["[7,7]", "[1,1]", "[1,7]", "[7,1,1,7]"],
    );
}

#[test]
fn two_equal_elements_are_completed_soon() {
    let completed = |grammar: &str, text: &str| {
        let mut matcher = read(grammar);
        assert_eq!(matcher.accept_bytes(text.as_bytes()), Ok(true), "{text}");
        String::from_utf8(matcher.shortest_completion(100).expect("there is one")).expect("text")
    };
    let numbers = r#"root ::= %array { repeated; rest: "0" ("." "0"+)? | [1-9] [0-9]*; }"#;
    for (text, expected) in [
        ("", "[0,0]"),
        ("[", "0,0]"),
        ("[0", ",0]"),
        ("[7", ",7]"),
        ("[12,3,1", "2]"),
        ("[12,3,", "3]"),
        ("[3,3,1", "]"),
    ] {
        assert_eq!(completed(numbers, text), expected, "{text}");
    }
    // A new pair is shorter than what is there.
    assert_eq!(completed(numbers, "[1234567,"), "0,0]");
    let places = r#"root ::= %array { repeated; place: "7"; place: "8"; rest: "9" | "\"a\""; }"#;
    assert_eq!(completed(places, ""), "[7,8,9,9]");
}

#[test]
fn nothing_is_begun_that_could_only_be_a_repeat() {
    let three = r#"root ::= %array { unique; rest: "\"ab\"" | "\"ac\"" | "12"; count {0,5}; }"#;
    dies_at(three, r#"["ab","ab""#, 8);
    dies_at(three, r#"["ab","ac","a"#, 11);
    dies_at(three, r#"["ab",12,"ac","#, 13);
    let number = r#"root ::= %array { unique; rest: "0" ("e" [0-9]+)? | "7" ("." "0"+)?; }"#;
    dies_at(number, "[0,0", 3);
    dies_at(number, "[7,7", 3);
    dies_at(number, "[0,7,", 4);
    // Exponents of zero give no new number, and no digit after them does.
    let zero = r#"root ::= %array { unique; rest: "0" ("." "0"+)? ("e" [0-9]+)? | "1"; }"#;
    dies_at(zero, "[0,0.0e1", 3);
    dies_at(zero, "[1,0e5,", 6);
    // Strings of digits never run out, however they are written; those of a list do.
    let digits = r#"root ::= %array { unique; rest: "\"" ([0-9] | "\\u003" [0-9])* "\""; }"#;
    check(digits, &[r#"["1","11","111","\u0031\u0032"]"#], &[r#"["1","\u0031"]"#]);
    let listed = r#"root ::= %array { unique; rest: "\"" ("a" | "ab" | "abc" | "b/c") "\""; }"#;
    dies_at(listed, r#"["ab","abc","a","a"#, 17);
    dies_at(listed, r#"["ab","abc","ab"#, 14);
    dies_at(listed, r#"["ab","a","abc","b/c","#, 21);
    let places = r#"root ::= %array { unique; place: "1" | "2"; place: "1"; rest: "3" | "1"; }"#;
    check(places, &["[]", "[1]", "[2]", "[2,1]", "[2,1,3]"], &["[1,1]", "[2,1,1]", "[1,3]"]);
    dies_at(places, "[1,", 2);
    dies_at(places, "[2,1,1", 5);
    dies_at(places, "[2,1,3,", 6);
    let closed = r#"root ::= %array { unique; rest: %object { member "k": "1" | "23"; }; count {2,}; }"#;
    dies_at(closed, r#"[{"k":1},{"k":1"#, 14);
    dies_at(closed, r#"[{"k":23},{"k":1},"#, 17);
    check(closed, &[r#"[{"k":23},{"k":1}]"#], &[r#"[{"k":1}]"#]);
}

#[test]
fn no_separator_is_begun_after_the_last_new_element() {
    // The comma and the space are one lexeme, so no element has begun after the comma.
    for separators in [(", ", ": "), (" ,\t", ":")] {
        let separators = Some((separators.0.to_owned(), separators.1.to_owned()));
        let options = JsonSchemaOptions { any_whitespace: false, separators, ..JsonSchemaOptions::default() };
        for (items, text) in [
            (r#"{"const":""}"#, r#"[""]"#),
            (r#"{"enum":[true,null]}"#, "[trueSEPnull]"),
            (r#"{"type":"array","items":{"const":1},"maxItems":1}"#, "[[1]SEP[]]"),
        ] {
            let schema = format!(r#"{{"type":"array","items":{items},"uniqueItems":true}}"#);
            let grammar = from_json_schema(&schema, &options).expect("a plain schema");
            let mut matcher = matcher(grammar, bytes_as_tokens());
            let separator = &options.separators.as_ref().expect("both have some").0;
            let text = text.replace("SEP", separator);
            let open = text.strip_suffix(']').expect("an array ends with a bracket");
            assert_eq!(
                matcher.longest_valid_prefix(text.as_bytes()).expect("within the limits").status,
                Status::Complete
            );
            let more = [open, separator].concat();
            let verdict = matcher.longest_valid_prefix(more.as_bytes()).expect("within the limits");
            assert_eq!((verdict.status, verdict.valid_bytes), (Status::Dead, open.len()), "{schema} {more:?}");
            assert!(matcher.accept_bytes(open.as_bytes()).expect("within the limits"));
            let mut mask = TokenSet::empty(bytes_as_tokens().vocab_size());
            matcher.fill_mask(mask.words_mut()).expect("within the limits");
            assert_eq!(mask.iter().collect::<Vec<_>>(), [u32::from(b']')], "{schema} {open:?}");
        }
    }
}

#[test]
fn completions_of_unique_elements_are_new() {
    for (grammar, begin) in [
        (r#"root ::= %array { unique; count {4,}; rest: [0-9]+; }"#, "[0,"),
        (r#"root ::= %array { unique; rest: "-"? [0-9]+ ("." [0-9]+)? ("e" "-"? [0-9]+)?; }"#, "[0,1,2.50,"),
        (r#"root ::= %array { unique; count {3,}; rest: %object { member "k": [0-9]; }; }"#, r#"[{"k":0},"#),
        (r#"root ::= %array { unique; count {3,3}; rest: "true" | "false" | "null"; }"#, "[true"),
        (r#"root ::= %array { unique; count {3,}; rest: "\"" [a-b]{0,1} "\""; }"#, r#"["a""#),
    ] {
        let mut matcher = read(grammar);
        assert_eq!(matcher.accept_bytes(begin.as_bytes()), Ok(true), "{grammar}");
        let found = matcher.shortest_completion(1_000).expect("it can be completed");
        assert_eq!(matcher.accept_bytes(&found), Ok(true), "{grammar}");
        assert!(matcher.is_completed(), "{grammar}: {}", String::from_utf8_lossy(&found));
        // Taking back forgets the elements, too.
        matcher.rollback(1).expect("it was accepted");
        assert_eq!(matcher.accept_bytes(&found), Ok(true), "{grammar}");
    }
}

#[test]
fn too_few_values_are_refused() {
    let compiled = |text: &str| {
        let grammar = Grammar::from_ebnf(text, "root").expect("it has texts but for what differs");
        stencilm_engine::CompiledGrammar::new(Arc::new(grammar), bytes_as_tokens()).map(|_| ())
    };
    let few = compiled(r#"root ::= %array { unique; count {4,}; rest: "1" | "2" | "1.0" | "3"; }"#);
    assert_eq!(few, Err(EngineError::TooFewValues(4)));
    assert_eq!(compiled(r#"root ::= %array { unique; count {3,}; rest: "1" | "2" | "1.0" | "3"; }"#), Ok(()));
    assert_eq!(compiled(r#"root ::= %array { unique; place: "1"; rest: "1" | "2"; }"#), Ok(()));
    // The first element may take what the second one needs.
    let undecided = compiled(r#"root ::= %array { unique; count {2,}; place: "1" | "2"; rest: "1"; }"#);
    assert!(matches!(undecided, Err(EngineError::NotRun(_))), "{undecided:?}");
    assert_eq!(compiled(r#"root ::= %array { unique; count {3,}; place: "1" | "2"; rest: [1-9]+; }"#), Ok(()));
    let zeros = r#"root ::= %array { unique; count {2,}; rest: "0" ("e" [0-9]+)?; }"#;
    assert_eq!(compiled(zeros), Err(EngineError::TooFewValues(2)));
    let tokens = compiled("root ::= %array { unique; rest: <[1]>; }");
    assert!(matches!(tokens, Err(EngineError::NotRun(_))), "{tokens:?}");
}

/// Characters, texts of three letters, and tokens that end strings and begin the next elements.
fn tokens_across_elements() -> Vec<Vec<u8>> {
    let mut tokens: Vec<Vec<u8>> = (0x20..0x7fu8).map(|byte| vec![byte]).collect();
    let of_strings = [
        "\",",
        "\"]",
        "\",\"",
        "\",\"a",
        "b\",\"",
        "c\"}]",
        "\\u0061",
        "\\u00",
        "61",
        "abc\"",
        "\"abc\"",
        "\"},{\"k\":\"ab",
    ];
    let of_objects = [
        r#"":"#,
        r#"":""#,
        r#","n"#,
        r#","n":"#,
        r#"n":1"#,
        "1}",
        "1,",
        "{\"",
        " {\"k",
        "},",
        "}]",
        "[1,",
        r#"1,"k":""#,
    ];
    tokens.extend(of_strings.into_iter().chain(of_objects).map(|text| text.as_bytes().to_vec()));
    let letters = || b'a'..=b'r';
    for first in letters() {
        for second in letters() {
            tokens.extend(letters().map(|third| vec![first, second, third]));
        }
    }
    tokens
}

/// Holds the masks after beginnings of arrays, of elements that differ, against those of the slow twin.
fn masks_after_elements_are_exact(arrays: &[(&str, &[&str])]) {
    let tokens: Vec<Option<Vec<u8>>> = tokens_across_elements().into_iter().map(Some).collect();
    let vocabulary = Arc::new(Vocabulary::new(&tokens, tokens.len(), &[], &[]).expect("a vocabulary"));
    let string = r#"string ::= "\"" ([a-z] | "\\u00" [0-9a-f]{2}){0,6} "\"" "#;
    for &(element, texts) in arrays {
        let grammar = format!("root ::= %array {{ unique; rest: {element}; }} {string}");
        let fresh = matcher(Grammar::from_ebnf(&grammar, "root").expect("a grammar"), vocabulary.clone());
        for text in texts {
            let mut matcher = fresh.fork();
            assert_eq!(matcher.accept_bytes(text.as_bytes()), Ok(true), "{text}");
            let mut mask = TokenSet::empty(vocabulary.vocab_size());
            matcher.fill_mask(mask.words_mut()).expect("within the limits");
            let naive = naive::mask(&matcher).expect("within the limits");
            let wrong: Vec<String> = (0..tokens.len())
                .filter(|&token| mask.contains(token as u32) != naive.contains(token as u32))
                .map(|token| String::from_utf8_lossy(tokens[token].as_deref().unwrap_or_default()).into_owned())
                .collect();
            assert!(wrong.is_empty(), "{text}: {wrong:?}");
        }
    }
}

/// In a large vocabulary the tokens within a string are decided by the elements seen.
#[test]
fn masks_within_unique_strings_are_exact_in_a_large_vocabulary() {
    masks_after_elements_are_exact(&[
        ("string", &["[\"abc\",\"", "[\"abc\",\"a", "[\"abcdef\",\"abc", "[\"a\",\"b\",\"ab", "[\"abc\",\"\\u0061b"]),
        (
            r#""\"abc\"" | "\"abd\"" | "\"abef\"" | "\"b\"" | "\"ba\"""#,
            &[r#"["abc","#, r#"["abc","abd","#, r#"["abc","abd",""#, r#"["abef","abd","ab"#, r#"["b","ba","abc","#],
        ),
        // After a first element the next one may begin within the same token, and be a repeat of it.
        (r#""1" [0-9]* | "\"ab\"""#, &[r#"["ab"#, r#"["a"#, r#"[1,"ab"#]),
        (r#""\"ab\"" | "\"c" [a-z]* "\"""#, &[r#"["ab"#, r#"["cd","ab"#]),
    ]);
}

/// The same within the members of objects.
#[test]
fn masks_within_unique_objects_are_exact_in_a_large_vocabulary() {
    masks_after_elements_are_exact(&[
        (
            r#"%object { order = any; optional "k": string; optional "n": "1" | "2"; optional "m": "3"; }"#,
            &[
                r#"[{},"#,
                r#"[{},{"n":1},{"#,
                r#"[{"k":"abc","n":1},{"n":"#,
                r#"[{"k":"a","n":1},{"n":1,"k":"a"#,
                r#"[{"k":"a"},{"k":"a","#,
                r#"[{"k":"a"},{"k":"a","m":3},{"m":3,"k":"a""#,
                r#"[{"n":1},{"m":3},{"m":3,"n":1},{"m"#,
            ],
        ),
        (
            r#"%object { optional "k": string; optional "n": "1" | "2"; optional "o": %object { optional "n": [0-9]+; }; }"#,
            &[
                r#"[{},{"#,
                r#"[{"k":"a","n":1},{"k":"a","#,
                r#"[{"o":{}},{"o":"#,
                r#"[{"o":{"n":1}},{"o":{"n":"#,
                r#"[{"o":{"n":1}},{"o":{"n":1"#,
                r#"[{"k":"a","o":{}},{"k":"a","o"#,
                r#"[{"n":1},{"n":2},{},{"n"#,
            ],
        ),
        (
            r#"%object { member "k": string; optional "n": "1" | "2"; }"#,
            &[r#"[{"k":"abc"},{"k":"ab"#, r#"[{"k":"a","n":1},{"k":"a","n":"#, r#"[{"k":"abcabc"},{"k":"abc"#],
        ),
    ]);
}

/// Arrays whose elements must differ: every byte of these texts has a mask, which is what completing the text says.
fn check_unique_elements(items: &str, options: &JsonSchemaOptions, texts: &[&str]) {
    let vocabulary = bytes_as_tokens();
    let schema = format!(r#"{{"type":"array","uniqueItems":true,"items":{items}}}"#);
    let grammar = from_json_schema(&schema, options).expect("a plain schema");
    let fresh = matcher(grammar, vocabulary.clone());
    for text in texts {
        let mut matcher = fresh.fork();
        for byte in text.bytes().map(Some).chain([None]) {
            let mut mask = TokenSet::empty(vocabulary.vocab_size());
            matcher.fill_mask(mask.words_mut()).expect("within the limits");
            assert_eq!(mask, naive::mask(&matcher).expect("within the limits"), "{items} within {text}");
            let mut fork = matcher.fork();
            let completion = fork.shortest_completion(1_000).expect("there is no dead end");
            assert!(
                fork.accept_bytes(&completion).expect("within the limits") && fork.is_completed(),
                "{items} {text}"
            );
            let Some(byte) = byte else { break };
            if !matcher.accept_token(u32::from(byte)).expect("within the limits") {
                break;
            }
        }
    }
}

/// Elements of which few are left, or infinitely many after some that look as if there were few.
#[test]
fn small_unique_elements_have_masks() {
    for (items, texts) in [
        (r#"{"type":"object","maxProperties":1}"#, &[r#"[{},{"a":1},{"a":2},{"#, "[ {},{ "][..]),
        (r#"{"type":"object","minProperties":1,"maxProperties":2}"#, &[r#"[{"a":1},{"a":1,"b":2},{"b":2,"a":"#]),
        (
            r#"{"type":"object","maxProperties":1,"patternProperties":{"^x":{"type":"string"}}}"#,
            &[r#"[{},{"x":"","#, r#"[{"x":""},{"x":""#],
        ),
        (r#"{"type":"object","maxProperties":1,"propertyNames":{"pattern":"^[a-z]+$"}}"#, &[r#"[{},{"a":null},{"a":"#]),
        (
            r#"{"type":"integer","minimum":-1,"maximum":12}"#,
            &["[-1,0,1,2,3,4,5,6,7,8,9,10,11,1", "[1,10,11,12,-0,-1.0", "[12,11,10,1.0,"],
        ),
        (r#"{"type":"number","multipleOf":0.5,"minimum":0,"maximum":1}"#, &["[0.0,1.00,0.5", "[0.50,1,-0", "[0.5,0.0"]),
        (
            r#"{"anyOf":[{"type":"boolean"},{"type":"integer","minimum":8,"maximum":10}]}"#,
            &["[8,true,10,9,f", "[8,10,9,", "[10,1"],
        ),
        (
            r#"{"type":"array","items":{"type":"integer","minimum":0,"maximum":1},"maxItems":1}"#,
            &["[[],[0],[1.0", "[[],[1],["],
        ),
        // Zeros after a point make no new number, however many.
        (r#"{"enum":[[1,20,3.5],[4]]}"#, &["[[1,20,3.5],[4.0]", "[[4],[1.0,20,3.50"]),
        (r#"{"const":{"x":1,"y":2,"z":3}}"#, &[r#"[{"x":1,"y":2,"z":3}"#]),
    ] {
        check_unique_elements(items, &JsonSchemaOptions::default(), texts);
    }
    let numbers = |bounds: &str| format!("root ::= %array {{ unique; rest: %number(\"{bounds}\"); }}");
    dies_at(&numbers(">=0 <12 *1 plain"), "[1,10,11,1", 9);
    dies_at(&numbers(">=0 <12 *1 plain"), "[1.0,10,11,1", 11);
    dies_at(&numbers(">=0 <2 *1 plain"), "[1,0,", 4);
    dies_at(&numbers(">=0 <=1 *0.5 plain"), "[0.5,0,0.", 7);
}

/// Numbers with exponents, of which few are left: their values run out, and their spellings do not.
#[test]
fn unique_numbers_run_out_in_every_spelling() {
    let plain = JsonSchemaOptions::default();
    let any = JsonSchemaOptions { spelling: Spelling::Any, ..plain.clone() };
    for (items, texts) in [
        (
            r#"{"type":"integer","minimum":1,"maximum":12}"#,
            &["[1,2,3,4,5,6,7,8,9,100e-1,0.11e2,1200E-02", "[1e0,12,11,10,0.1", "[1e1,1"][..],
        ),
        (
            r#"{"type":"number","multipleOf":0.5,"minimum":0,"maximum":1}"#,
            &["[0.0,10e-1,5", "[0.5,0e7,0.0", "[50e-2,1,-0", "[1,0.5e+0,0."],
        ),
        (r#"{"enum":[1,10,2.5,1e-7,-3]}"#, &["[1,10,2.5,1e-07,-3e0", "[1.0,25e-1,10000", "[-3,-", "[1,0.0000001"]),
        (r#"{"type":["integer","boolean"],"minimum":1,"maximum":2}"#, &["[2,true,10e-1,false", "[1,2,t"]),
        (
            r#"{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":2},"b":{"enum":[0,0.5]}},
                "required":["a","b"],"additionalProperties":false}"#,
            &[r#"[{"a":1,"b":0},{"a":10e-1,"b":5e-1},{"a":2,"b":0.0},{"a":"#, r#"[{"a":2,"b":0},{"a":2.0,"b":0"#],
        ),
    ] {
        check_unique_elements(items, &any, texts);
    }
    let objects = r#"{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":2},"b":{"enum":[0,0.5]}},
        "required":["a","b"],"additionalProperties":false}"#;
    let objects = format!(r#"{{"type":"array","uniqueItems":true,"items":{objects}}}"#);
    for (options, text) in [
        (&any, r#"[{"a":1,"b":0},{"a":0.00002e5,"b":0.5},{"a":20e-1,"b":0e9},{"a":0.1e1,"b":0.005E+02}]"#),
        (&any, r#"[{"a":0.2e1,"b":50e-2},{"a":2,"b":0.0},{"a":0.01e02,"b":5e-1},{"a":1.0e-0,"b":-0.00e3}]"#),
        (&plain, r#"[{"a":1,"b":0},{"a":1.000,"b":0.5},{"a":2.00,"b":0.00},{"a":2.0,"b":0.500}]"#),
    ] {
        let grammar = from_json_schema(&objects, options).expect("a plain schema");
        let mut matcher = matcher(grammar, bytes_as_tokens());
        for (at, byte) in text.bytes().enumerate() {
            assert_eq!(matcher.accept_token(u32::from(byte)), Ok(true), "{text} at {at}");
        }
        assert!(matcher.is_completed(), "{text}");
    }
    let small = r#"{"type":"number","multipleOf":1e-7,"minimum":1e-7,"maximum":5e-7}"#;
    check_unique_elements(
        small,
        &JsonSchemaOptions::default(),
        &["[1e-7,2e-07,0.0000003,4e-7,5", "[1e-7,1", "[5e-7,5e-0"],
    );
    let all = |count: u32| {
        let schema = format!(r#"{{"type":"array","uniqueItems":true,"minItems":{count},"items":{{"enum":[1,2,3]}}}}"#);
        from_json_schema(&schema, &any)
    };
    let mut matcher = matcher(all(3).expect("there are three"), bytes_as_tokens());
    assert_eq!(matcher.shortest_completion(1_000).as_deref(), Ok(&b"[1,2,3]"[..]));
    assert_eq!(all(4).map(|_| ()).map_err(|error| error.kind), Err(ErrorKind::Unsatisfiable));
}

/// A thousand numbers of which one is left after the other.
#[test]
fn unique_numbers_are_used_up() {
    let numbers = r#"{"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":999}}"#;
    let grammar = from_json_schema(numbers, &JsonSchemaOptions::default()).expect("a plain schema");
    let mut matcher = matcher(grammar, bytes_as_tokens());
    let all: Vec<String> = (0..999).map(|number| number.to_string()).collect();
    assert_eq!(matcher.accept_bytes(format!("[{},", all.join(",")).as_bytes()), Ok(true));
    let mut mask = TokenSet::empty(bytes_as_tokens().vocab_size());
    for byte in *b"999]" {
        matcher.fill_mask(mask.words_mut()).expect("within the limits");
        let others = mask.iter().filter(|&token| !b" \t\r\n.".contains(&(token as u8))).collect::<Vec<_>>();
        assert_eq!(others, [u32::from(byte)]);
        assert!(matcher.accept_token(u32::from(byte)).expect("within the limits"));
    }
}

/// What ends a key with an escape in the token, after names that begin as the key does, and after one that was written.
#[test]
fn keys_with_escapes_are_not_written_twice() {
    let ends = ["b\\\"c\"", "b\\\"d\"", "\\\"c\"", "b\\u0022c\"", "b\\n\"", "\\n\"", "b\\\"c\":", "y\\\"z\""];
    let mut tokens: Vec<Option<Vec<u8>>> = (0..=255u8).map(|byte| Some(vec![byte])).collect();
    tokens.extend(ends.map(|text| Some(text.as_bytes().to_vec())));
    let vocabulary = Arc::new(Vocabulary::new(&tokens, tokens.len(), &[], &[]).expect("the tokens differ"));
    let schema = r#"{"properties": {"ab\"c": {}, "ab\n": {}, "abc": {}, "b": {}, "xy\"z": {}}}"#;
    let any = JsonSchemaOptions { any_order: true, ..JsonSchemaOptions::default() };
    let spelled = JsonSchemaOptions { spelling: Spelling::Any, ..any.clone() };
    for options in [JsonSchemaOptions::default(), any, spelled] {
        let grammar = from_json_schema(schema, &options).expect("the schema is fine");
        for text in [
            r#"{"ab\"c": 1, "a"#,
            r#"{"ab\"c": 1, "ab"#,
            r#"{"ab\n": 1, "a"#,
            r#"{"b": 1, "ab\"d": 1, "a"#,
            r#"{"b": 1, "ab\"d": 1, "ab"#,
            r#"{"x": 1, "ab\n\n": 1, "ab\n"#,
            r#"{"xy\"z": 1, "x"#,
        ] {
            let mut matcher = matcher(grammar.clone(), vocabulary.clone());
            for byte in text.bytes() {
                let mut mask = TokenSet::empty(vocabulary.vocab_size());
                matcher.fill_mask(mask.words_mut()).expect("within the limits");
                assert_eq!(mask, naive::mask(&matcher).expect("within the limits"), "within {text}");
                assert!(matcher.accept_token(u32::from(byte)).expect("within the limits"), "{text}");
            }
            let mut mask = TokenSet::empty(vocabulary.vocab_size());
            matcher.fill_mask(mask.words_mut()).expect("within the limits");
            assert_eq!(mask, naive::mask(&matcher).expect("within the limits"), "behind {text}");
        }
    }
}

/// After the first value only a comma may come, for the closed object would be a repeat; a line break begins its end.
#[test]
fn a_space_that_closes_a_repeat_is_refused() {
    let vocabulary = bytes_as_tokens();
    let indented = JsonSchemaOptions { any_whitespace: false, indent: Some(2), ..JsonSchemaOptions::default() };
    let objects = r#"{"type": "array", "uniqueItems": true, "items": {"type": "object", "additionalProperties": {"type": "integer"}}}"#;
    let few = r#"{"type": "array", "uniqueItems": true, "items": {"properties": {"a": {"const": 1}}, "type": "object",
        "additionalProperties": false}}"#;
    for (schema, text) in [
        (objects, "[\n  {\n    \"a\": 1\n  },\n  {\n    \"a\": 1"),
        (objects, "[\n  {\n    \"a\": 1\n  },\n  {\n    \"a\": 1,\n    \"b\": 2"),
        (few, "[\n  {\n    \"a\": 1\n  },\n  {"),
        (few, "[\n  {},\n  {"),
        (
            r#"{"type": "array", "uniqueItems": true, "items": {"type": "array", "items": {"type": "integer"}}}"#,
            "[\n  [\n    1\n  ],\n  [\n    1",
        ),
    ] {
        let grammar = from_json_schema(schema, &indented).expect("the schema is fine");
        let mut matcher = matcher(grammar, vocabulary.clone());
        for (at, byte) in text.bytes().map(Some).chain([None]).enumerate() {
            let mut mask = TokenSet::empty(vocabulary.vocab_size());
            matcher.fill_mask(mask.words_mut()).expect("within the limits");
            assert_eq!(mask, naive::mask(&matcher).expect("within the limits"), "{text:?} at {at}");
            if let Some(byte) = byte {
                assert!(matcher.accept_token(u32::from(byte)).expect("within the limits"), "{text:?} at {at}");
            }
        }
    }
}

/// Values that run out for a counter: what it asks for more is always left.
#[test]
fn unique_elements_are_counted() {
    for (schema, inside, outside) in [
        (
            r#"{"type":"array","uniqueItems":true,"contains":{"enum":[1,2,3]}}"#,
            &["[1,2]", "[3,\"a\",{},1]", "[4,1,3,2,5]", "[4,5,6,3]"][..],
            &["[]", "[1,1]", "[4,5,6]"][..],
        ),
        (
            r#"{"type":"array","uniqueItems":true,"contains":{"const":-3},"items":{"type":"integer"},"minItems":2}"#,
            &["[-3,1]", "[1,2,-3]"],
            &["[-3]", "[1,2]", "[-3,-3]"],
        ),
        (
            r#"{"type":"array","uniqueItems":true,"contains":{"enum":[1,2,3]},"minContains":1,"maxContains":2,"maxItems":3}"#,
            &["[1,2]", "[3]", "[0,1,2]"],
            &["[1,2,3]", "[0]", "[0,4,5]"],
        ),
        // A value that both counters count.
        (
            r#"{"type":"array","uniqueItems":true,"maxItems":2,"allOf":[{"contains":{"enum":[1,2]},"minContains":2},
                {"contains":{"enum":[2,3]},"maxContains":1}]}"#,
            &["[1,2]", "[2,1.0]"],
            &["[1]", "[1,3]", "[2,3]", "[1,1]"],
        ),
        // The second one must be 7, which the first one must not take away.
        (
            r#"{"type":"array","uniqueItems":true,"prefixItems":[{"type":"integer","minimum":5,"maximum":20},{"const":7}],"minItems":2}"#,
            &["[5,7]", "[20,7,null]", "[17,7,5]"],
            &["[7,7]", "[5]", "[4,7]", "[5,7,7]"],
        ),
        (
            r#"{"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":12},"minItems":5,
                "contains":{"minimum":4},"maxContains":1}"#,
            &["[0,10,2,3,1]", "[3,2,1,0,4]"],
            &["[0,1,2,3]", "[0,1,2,3,3]", "[10,11]", "[5,0,1,2,0]"],
        ),
        (
            r#"{"type":"array","uniqueItems":true,"maxItems":3,"contains":{"properties":{"a":{"const":true}}},"minContains":2,
                "items":{"properties":{"a":{"type":"boolean"}},"additionalProperties":false}}"#,
            &[r#"[{"a":true},{}]"#, r#"[1,"x"]"#, r#"[{"a":false},{},7]"#],
            &[r#"[{"a":false}]"#, r#"[{"a":false},{}]"#, "[{},{}]"],
        ),
    ] {
        let grammar = from_json_schema(schema, &JsonSchemaOptions::default()).expect("a grammar");
        for text in inside.iter().chain(outside) {
            let mut matcher = matcher(grammar.clone(), bytes_as_tokens());
            let is_inside = inside.contains(text);
            let verdict = matcher.longest_valid_prefix(text.as_bytes()).expect("within the limits");
            assert_eq!(verdict.status == Status::Complete, is_inside, "{text} under {schema}");
            for byte in text.bytes().take(verdict.valid_bytes) {
                let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
                matcher.fill_mask(mask.words_mut()).expect("within the limits");
                assert!(mask == naive::mask(&matcher).expect("within the limits"), "{text} under {schema}");
                assert!(matcher.accept_token(u32::from(byte)).expect("within the limits"), "{text} under {schema}");
                let mut fork = matcher.fork();
                let completion = fork.shortest_completion(200).expect("there is no dead end");
                assert!(
                    fork.accept_bytes(&completion).expect("within the limits") && fork.is_completed(),
                    "{text} under {schema}"
                );
            }
        }
    }
    // That they run out is decided by counters, or not at all.
    let unique = |how: &str| {
        let grammar = format!(
            r#"root ::= %array {{ count {{0,2}}; contains c {{2,}}; contains d {{0,1}}; unique{how}; rest c: "1"; rest c d: "2"; rest d: "3"; }}"#
        );
        let grammar = Grammar::from_ebnf(&grammar, "root").expect("a grammar");
        stencilm_engine::CompiledGrammar::new(Arc::new(grammar), bytes_as_tokens()).map(|_| ())
    };
    assert!(matches!(unique(""), Err(EngineError::NotRun(_))));
    assert_eq!(unique(" counted"), Ok(()));
}
