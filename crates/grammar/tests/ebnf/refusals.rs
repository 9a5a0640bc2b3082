//! What is refused, where, and with which words.

use stencilm_grammar::{ErrorKind, Grammar};

fn refused(text: &str, kind: ErrorKind, place: &str, words: &str) {
    let error = Grammar::from_ebnf(text, "root").expect_err(text);
    assert_eq!((error.kind, error.place.as_str()), (kind, place), "{text}\n{error}");
    assert!(error.message.contains(words), "{text}\n{error}");
}

#[test]
fn malformed_texts() {
    let cases = [
        ("", "line 1, column 1", "no rule is named `root`"),
        ("main ::= \"a\"", "line 1, column 1", "no rule is named `root`"),
        ("root ::= a", "line 1, column 10", "the rule `a` is used but not defined"),
        ("root ::= ab-c\nab_c ::= \"a\"", "line 1, column 10", "or write `ab_c`"),
        ("root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1", "defined twice"),
        ("root ::=", "line 1, column 1", "nothing stands here"),
        ("root ::= (\"a\"", "line 1, column 10", "no closing `)`"),
        ("root ::= \"a\")", "line 1, column 13", "closes nothing"),
        ("root ::= \"abc", "line 1, column 10", "no closing \""),
        ("root ::=\n  \"é\" \"abc\n\"", "line 2, column 7", "no closing \""),
        ("root ::= /abc", "line 1, column 10", "no closing /"),
        ("root ::= /a(/", "line 1, column 12", ""),
        ("root ::= [abc", "line 1, column 10", "no closing ]"),
        ("root ::= [z-a]", "line 1, column 11", "reversed; write 'a'-'z'"),
        ("root ::= []", "line 1, column 10", "[] has no characters"),
        ("root ::= \"a\"{3,2}", "line 1, column 13", "write {2,3}"),
        ("root ::= \"a\"{99999999999}", "line 1, column 14", "above 4294967295"),
        ("root ::= \"a\"{1,2", "line 1, column 13", "close it with `}`"),
        ("root ::= \"\\q\"", "line 1, column 11", "the escape \\q is not known"),
        ("root ::= \"\\ud800\"", "line 1, column 11", "U+D800 is no character"),
        ("root ::= \"\\u{110000}\"", "line 1, column 11", "no character"),
        ("root ::= \"\\x4\"", "line 1, column 11", "\\xNN"),
        ("root ::= * \"a\"", "line 1, column 10", "repeats nothing"),
        ("root ::= \"a\" | *", "line 1, column 16", "repeats nothing"),
        ("root ::= \"a\" & ", "line 1, column 16", "nothing before"),
        ("root ::= ~", "line 1, column 10", "nothing behind it"),
        ("root = \"a\"", "line 1, column 6", "`::=` must follow"),
        ("\"a\"", "line 1, column 1", "a rule must start"),
        ("root ::= \"a\" ::= \"b\"", "line 1, column 14", "`::=` stands where"),
        ("root ::= ö", "line 1, column 10", "starts nothing"),
        ("root ::= %foo(\"a\")", "line 1, column 10", "%foo is not known"),
        ("root ::= %lexeme \"a\"", "line 1, column 18", "`(` must follow `%lexeme`"),
        ("root ::= <|tool", "line 1, column 10", "close it with `|>`"),
        ("root ::= <[5-1]>", "line 1, column 10", "write 1-5"),
        ("root ::= <[]>", "line 1, column 10", "a token is written"),
        ("root ::= %bytes[6]", "line 1, column 16", "hexadecimal"),
        ("root ::= %lexeme(<|a|>)", "line 1, column 18", "a token of the model stands within a terminal"),
        ("root ::= %lexeme(a)\na ::= \"x\" a | \"y\"", "line 2, column 11", "refers to itself within a terminal"),
        ("root ::= %object { member a: \"b\"; }", "line 1, column 27", "in quotes"),
        ("root ::= %object { foo = \"b\"; }", "line 1, column 20", "no entry of an object"),
        ("root ::= %object { member \"a\": \"b\"", "line 1, column 10", "no closing `}`"),
        ("root ::= %object { member \"a\": \"b\"; member \"a\": \"c\"; }", "line 1, column 10", "described twice"),
    ];
    for (text, place, words) in cases {
        refused(text, ErrorKind::Syntax, place, words);
    }
}

#[test]
fn what_matches_nothing() {
    refused("root ::= root", ErrorKind::Unsatisfiable, "line 1, column 1", "nothing can match");
    refused("root ::= \"a\" root", ErrorKind::Unsatisfiable, "line 1, column 1", "nothing can match");
    refused("root ::= %bytes[]", ErrorKind::Unsatisfiable, "line 1, column 1", "nothing can match");
    refused("root ::= \"a\" & \"b\"", ErrorKind::Unsatisfiable, "line 1, column 1", "nothing can match");
}

#[test]
fn keys_that_run_out() {
    let text = |rest: &str| format!(r#"root ::= %object {{ others = "\"" {rest}; }}"#);
    for rest in [
        r#""a\"": "1""#,
        r#"[a-z]{0,5} "\"": "1""#,
        r#"("a"* | "b") "\"": "1""#,
        r#"[a-z]* "\"": "1""#,
        r#"[a-z]{9} "\"": "1"; some: "2""#,
    ] {
        Grammar::from_ebnf(&text(rest), "root").expect(rest);
    }
    refused(&text(r#"[ab] "\"": "1"; some: "2""#), ErrorKind::Unsupported, "line 1, column 10", "only few keys");
    for open in [r#"[a-z]* : "1""#, r#"[a-z]* "\""?: "1""#, r#"[a-z"]* "\"": "1""#, r#"[a-z]* "\\\"": "1""#] {
        refused(&text(open), ErrorKind::Unsupported, "line 1, column 10", "may end without a quote");
    }
    for closed in [r#"([a-z] | "\\" ["\\n])* "\"": "1""#, r#"[a-z]* "\"" " "*: "1""#] {
        Grammar::from_ebnf(&text(closed), "root").expect(closed);
    }
    let all_taken = r#"root ::= %object { taken "a" "b"; others = "\"" [ab] "\"": "1"; }"#;
    refused(all_taken, ErrorKind::Unsatisfiable, "line 1, column 10", "are taken");
    // Three keys are too few for four members.
    let too_many = r#"root ::= %object { count {4,}; others = "\"" [a-c] "\"": "1"; }"#;
    refused(too_many, ErrorKind::Unsatisfiable, "line 1, column 1", "nothing can match");
}

#[test]
fn patterns_keep_their_kind() {
    refused("root ::= /(a)\\1/", ErrorKind::Unsupported, "line 1, column 14", "");
}
