//! Texts made to be expensive: each is read or refused, without deep recursion and within bounds.

use stencilm_grammar::{ErrorKind, Grammar};

fn reads(text: &str) {
    let grammar = crate::grammar(text);
    let printed = grammar.to_string();
    // What is read may print longer than what is accepted, and then says so.
    match Grammar::from_ebnf(&printed, "root") {
        Ok(again) => assert_eq!(again.to_string(), printed),
        Err(error) => assert!(printed.len() > 1 << 20, "{error}"),
    }
}

#[test]
fn deep_groups() {
    let deep = 100_000;
    reads(&format!("root ::= {}\"a\"{}", "(".repeat(deep), ")".repeat(deep)));
    let deep = 10_000;
    reads(&format!("root ::= {}\"a\"{}", "(".repeat(deep), ")*".repeat(deep)));
    reads(&format!("root ::= {}\"a\"{}", "(\"b\" | ".repeat(deep), ")".repeat(deep)));
    reads(&format!("root ::= {}\"a\"{}", "(<[1]> (".repeat(deep / 2), ") <[2]>)".repeat(deep / 2)));
    reads(&format!("root ::= {}\"a\"{}", "a@(".repeat(deep), ")".repeat(deep)));
    reads(&format!("root ::= {}\"a\"", "~".repeat(500)));
    let error = Grammar::from_ebnf(&format!("root ::= {}", "(".repeat(deep)), "root").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Syntax);
    let objects = format!("root ::= {}\"a\"{}", "%object { member \"a\": ".repeat(500), "; }".repeat(500));
    reads(&objects);
}

#[test]
fn long_literals_and_lists() {
    reads(&format!("root ::= \"{}\"", "a".repeat((1 << 20) - 100)));
    reads(&format!("root ::= {}", "\"ab\" | ".repeat(20_000)));
    reads(&format!("root ::= {}", "\"ab\" ".repeat(20_000)));
    reads(&format!("root ::= {}", "<[1]> ".repeat(20_000)));
    reads(&format!("root ::= \"a\"{}", "*".repeat(50_000)));
    reads(&format!("root ::= %object {{ {} }}", "order = any; ".repeat(20_000)));
    let error = Grammar::from_ebnf(&" ".repeat((1 << 20) + 1), "root").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Limit);
}

#[test]
fn a_lexeme_ends_at_its_bound_and_not_after_it() {
    // A hundred thousand parts a thousand times: a constructor that ran to its end would take minutes and all memory.
    let mut text = format!("root ::= %lexeme({})\nr0 ::= \"ab\" [c-f]\n", "r15 ".repeat(1_000));
    for level in 1..=15 {
        text.push_str(&format!("r{level} ::= r{0} r{0}\n", level - 1));
    }
    let error = Grammar::from_ebnf(&text, "root").unwrap_err();
    assert_eq!((error.kind, &*error.place), (ErrorKind::Limit, "line 1, column 18"), "{error}");
    // Lists of lists, of which each is copied into the next.
    let mut text = "root ::= %lexeme(r15000)\nr0 ::= \"ab\"\n".to_string();
    for level in 1..=15_000 {
        text.push_str(&format!("r{level} ::= r{} | \"x{level}\"\n", level - 1));
    }
    let error = Grammar::from_ebnf(&text, "root").unwrap_err();
    assert!(error.kind == ErrorKind::Limit && error.message.contains("bytes of memory"), "{error}");
}

#[test]
fn doubling_rules_stay_small() {
    let mut text = "root ::= r50\nr0 ::= \"ab\" [c-f]\n".to_string();
    for level in 1..=50 {
        text.push_str(&format!("r{level} ::= r{0} r{0}\n", level - 1));
    }
    let printed = crate::grammar(&text).to_string();
    assert!(printed.len() < 20_000, "{}", printed.len());
    reads(&text);
    let mut text = "root ::= %lexeme(r30)\nr0 ::= \"ab\" [c-f]*\n".to_string();
    for level in 1..=30 {
        text.push_str(&format!("r{level} ::= (r{0} \"x\" | r{0} \"y\")*\n", level - 1));
    }
    let printed = crate::grammar(&text).to_string();
    assert!(printed.len() < 20_000, "{}", printed.len());
    reads(&text);
}

#[test]
fn doubling_lexemes_are_refused() {
    let mut text = "root ::= %lexeme(r40)\nr0 ::= \"ab\"\n".to_string();
    for level in 1..=40 {
        text.push_str(&format!("r{level} ::= r{0} r{0}\n", level - 1));
    }
    assert_eq!(Grammar::from_ebnf(&text, "root").unwrap_err().kind, ErrorKind::Limit);
}

#[test]
fn long_chains_of_rules() {
    let mut text = "root ::= r0\n".to_string();
    for level in 0..5_000 {
        text.push_str(&format!("r{level} ::= <[1]> r{} \"a\"\n", level + 1));
    }
    text.push_str("r5000 ::= \"x\"");
    reads(&text);
    let mut text = "root ::= r0\n".to_string();
    for level in 0..5_000 {
        text.push_str(&format!("r{level} ::= r{}\n", level + 1));
    }
    text.push_str("r5000 ::= \"x\"");
    assert_eq!(crate::grammar(&text).to_string(), "root ::= \"x\"\n");
}
