//! Random texts: the passes change no language, and what prints reads back.

use proptest::prelude::*;
use stencilm_grammar::passes::{drop_unreachable, inline_renames, join_lexemes, name_shared, normalised, share_equal};
use stencilm_grammar::{Grammar, GrammarBuilder, Mark, Node, NodeId, Report, Temperature};

use stencilm_regex::ExprSet;
use stencilm_regex::syntax::{PatternOptions, Utf8, parse_pattern};

use crate::recogniser::{TOKEN, matches};

/// A rule body; leaves refer to rules by number.
#[derive(Clone, Debug)]
enum Body {
    Text(&'static str),
    Class(u8, u8),
    Wide,
    Token,
    Call(usize),
    Sequence(Vec<Body>),
    Choice(Vec<Body>),
    Repeat(Box<Body>, u32, Option<u32>),
    Marked(Mark, Box<Body>),
    Without(Box<Body>),
}

fn body() -> impl Strategy<Value = Body> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["", "a", "b", "ab", "aa", "cab"]).prop_map(Body::Text),
        (b'a'..=b'c', 0u8..2).prop_map(|(first, more)| Body::Class(first, first + more)),
        Just(Body::Wide),
        Just(Body::Token),
        (0usize..4).prop_map(Body::Call),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Body::Sequence),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Body::Choice),
            (inner.clone(), 0u32..3, prop::option::of(0u32..3)).prop_map(|(body, min, more)| Body::Repeat(
                body.into(),
                min,
                more.map(|more| min + more)
            )),
            (0usize..3, inner.clone()).prop_map(|(mark, body)| {
                let marks = [
                    Mark::Capture("c d".into()),
                    Mark::MaxTokens(7),
                    Mark::Temperature(Temperature::new(0.25).expect("a number from 0 on")),
                ];
                Body::Marked(marks[mark].clone(), body.into())
            }),
            inner.prop_map(|body| Body::Without(body.into())),
        ]
    })
}

fn build(builder: &mut GrammarBuilder, rules: &[stencilm_grammar::RuleId], body: &Body) -> NodeId {
    match body {
        Body::Text(text) => {
            let expr = builder.exprs.literal(text.as_bytes());
            builder.lexeme(expr)
        }
        Body::Class(first, last) => {
            let expr = builder.exprs.bytes(stencilm_regex::ByteSet::range(*first, *last));
            builder.lexeme(expr)
        }
        Body::Wide => {
            let byte = builder.exprs.bytes(stencilm_regex::ByteSet::range(b'A', 0xf0));
            let expr = builder.exprs.repeat(byte, 0, None);
            builder.lexeme(expr)
        }
        Body::Token => builder.token_ids(&[(1, 2)], false),
        Body::Call(rule) => builder.node(Node::Rule(rules[*rule % rules.len()])),
        Body::Sequence(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| build(builder, rules, part)).collect();
            builder.sequence(&parts)
        }
        Body::Choice(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| build(builder, rules, part)).collect();
            builder.choice(&parts)
        }
        Body::Repeat(body, min, max) => {
            let body = build(builder, rules, body);
            builder.repeat(body, *min, *max)
        }
        Body::Marked(mark, body) => {
            let body = build(builder, rules, body);
            builder.marked(mark.clone(), body)
        }
        Body::Without(body) => {
            // Any text of three bytes at most that the lexeme, where it is one, does not match.
            let node = build(builder, rules, body);
            let inner = match body.as_ref() {
                Body::Text(text) => builder.exprs.literal(text.as_bytes()),
                _ => return node,
            };
            let not = builder.exprs.not(inner);
            let byte = builder.exprs.bytes(stencilm_regex::ByteSet::range(b'a', b'c'));
            let short = builder.exprs.repeat(byte, 0, Some(3));
            let expr = builder.exprs.and(&[not, short]);
            builder.lexeme(expr)
        }
    }
}

/// The body of each rule holds that of the one before it as a node, so that nodes lie within rules that they use.
fn assemble(bodies: &[Body]) -> Option<Grammar> {
    let mut builder = GrammarBuilder::default();
    let rules: Vec<_> = (0..bodies.len()).map(|rule| builder.declare_rule(format!("r {rule}"))).collect();
    let mut before = None;
    for (&rule, body) in rules.iter().zip(bodies) {
        let mut body = build(&mut builder, &rules, body);
        if let Some(before) = before {
            body = builder.choice(&[body, before]);
        }
        before = Some(body);
        builder.define_rule(rule, body);
    }
    let root = builder.node(Node::Rule(rules[0]));
    builder.finish(root, Report::default()).ok()
}

/// All texts of up to three letters, and some with tokens or wide bytes.
fn texts() -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
    let mut at = 0;
    while at < texts.len() {
        let text = texts[at].clone();
        at += 1;
        if text.len() < 3 {
            texts.extend([b'a', b'b', b'c'].map(|byte| [&text[..], &[byte]].concat()));
        }
    }
    let others: Vec<Vec<u8>> = texts
        .iter()
        .filter(|text| text.len() < 3)
        .flat_map(|text| {
            [TOKEN, b'Q', 0xe9]
                .into_iter()
                .flat_map(move |byte| (0..=text.len()).map(move |at| [&text[..at], &[byte], &text[at..]].concat()))
        })
        .collect();
    texts.extend(others);
    texts
}

fn language(grammar: &Grammar) -> Vec<bool> {
    texts().iter().map(|text| matches(grammar, text)).collect()
}

/// Patterns of repetitions side by side and within each other: a text beside what repeats it, counted or not.
fn repetitions() -> impl Strategy<Value = String> {
    let atoms = ["a", "[ab]", "[a-c]", "[ab][cd]", ".", r"\d", "é", "ab", "", "a?b*"];
    let counts = ["", "*", "+", "?", "{2}", "{4}", "{2,}", "{1,3}", "{0,4}", "{9,20}"];
    let item = (prop::sample::select(atoms.to_vec()), prop::sample::select(counts.to_vec()))
        .prop_map(|(atom, count)| format!("(?:{atom}){count}"));
    let sequence = move |part: BoxedStrategy<String>| {
        let sequence = prop::collection::vec(part, 1..5).prop_map(|parts| parts.concat());
        let count = prop::sample::select(counts.to_vec());
        (prop::collection::vec(sequence, 1..3), count)
            .prop_map(|(alternatives, count)| format!("(?:{}){count}", alternatives.join("|")))
    };
    let inner = prop_oneof![3 => item.clone(), 1 => sequence(item.boxed())];
    sequence(inner.boxed())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A grammar that was printed and read prints the same, and holds the same expressions when it is printed and read
    /// as a pattern.
    #[test]
    fn repetitions_print_as_they_are_read(pattern in repetitions()) {
        for text in [format!("root ::= /{pattern}/"), format!("root ::= /{pattern}/ \"-\" | /{pattern}/ root")] {
            let once = Grammar::from_ebnf(&text, "root").unwrap().to_string();
            let twice = Grammar::from_ebnf(&once, "root").unwrap().to_string();
            prop_assert_eq!(&twice, &once, "{}", text);
        }
        let mut exprs = ExprSet::new();
        let parse = |exprs: &mut ExprSet, pattern: &str| {
            parse_pattern(exprs, pattern, &PatternOptions::default(), &mut Utf8).unwrap()
        };
        let expr = parse(&mut exprs, &pattern);
        // Reading a pattern puts what all its alternatives begin with before them, so the first time may make another.
        if let Some(printed) = exprs.pattern(expr).unwrap() {
            let read = parse(&mut exprs, &printed);
            let again = exprs.pattern(read).unwrap().expect("what was read from a pattern prints as one");
            prop_assert_eq!(parse(&mut exprs, &again), read, "{} was printed as {}, then {}", pattern, printed, again);
        }
        // An expression that was taken apart and put together is the same.
        let mut copies = ExprSet::new();
        let copy = copies.import(&exprs, expr);
        prop_assert_eq!(exprs.import(&copies, copy), expr, "{}", pattern);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn passes_keep_the_language(bodies in prop::collection::vec(body(), 1..4)) {
        let Some(grammar) = assemble(&bodies) else { return Ok(()) };
        let expected = language(&grammar);
        let shared = share_equal(&grammar);
        let cases = [
            ("drop_unreachable", drop_unreachable(&grammar)),
            ("inline_renames", inline_renames(&grammar)),
            ("share_equal", shared.clone()),
            ("join_lexemes", join_lexemes(&grammar)),
            ("name_shared", name_shared(&shared)),
            ("normalised", normalised(&grammar)),
        ];
        for (pass, result) in cases {
            prop_assert!(language(&result) == expected, "{} changed\n{}\nto\n{}", pass, grammar, result);
        }
    }

    #[test]
    fn prints_read_back(bodies in prop::collection::vec(body(), 1..4)) {
        let Some(grammar) = assemble(&bodies) else { return Ok(()) };
        let printed = grammar.to_string();
        let again = Grammar::from_ebnf(&printed, "root").map_err(|error| TestCaseError::fail(format!("{error}\n{printed}")))?;
        prop_assert_eq!(again.to_string(), printed.clone());
        prop_assert!(language(&again) == language(&grammar), "{}", printed);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-c\"\\\\|()*+?{}0-9,&~@%<>\\[\\]/#:;=. \n-]{0,60}") {
        let _ = Grammar::from_ebnf(&text, "root");
        if let Ok(grammar) = Grammar::from_ebnf(&format!("root ::= {text}"), "root") {
            let printed = grammar.to_string();
            let again = Grammar::from_ebnf(&printed, "root").map_err(|error| TestCaseError::fail(format!("{error}\n{printed}")))?;
            prop_assert_eq!(again.to_string(), printed);
        }
    }
}
