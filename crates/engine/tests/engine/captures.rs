//! Named parts: which texts are captured, and that they are parts of the text that their node really matches.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use stencilm_engine::{GrammarMatcher, Vocabulary};
use stencilm_grammar::{GrammarBuilder, Node, NodeId, Report, RuleId};
use stencilm_regex::{ByteSet, ExprId};

use crate::common::matcher;
use crate::earley::{Earley, Letter};
use crate::random::Random;
use crate::recognition::Words;

fn vocabulary() -> Arc<Vocabulary> {
    let special = [(4, "<x>".to_owned())];
    Arc::new(Vocabulary::new(&[Some("a"), Some("b"), Some(","), Some("ab")], 6, &[5], &special).unwrap())
}

fn start(build: impl FnOnce(&mut GrammarBuilder) -> NodeId) -> GrammarMatcher {
    let mut builder = GrammarBuilder::default();
    let root = build(&mut builder);
    matcher(builder.finish(root, Report::default()).unwrap(), vocabulary())
}

fn letters(builder: &mut GrammarBuilder, least: u32) -> NodeId {
    let letter = builder.exprs.bytes(ByteSet::range(b'a', b'b'));
    let expr = builder.exprs.repeat(letter, least, None);
    builder.lexeme(expr)
}

fn word(builder: &mut GrammarBuilder, word: &str) -> NodeId {
    let expr = builder.exprs.literal(word.as_bytes());
    builder.lexeme(expr)
}

fn shown(matcher: &GrammarMatcher) -> String {
    let found = matcher.get_captures().unwrap();
    let shown: Vec<String> =
        found.iter().map(|(name, text)| format!("{name}={}", String::from_utf8_lossy(text))).collect();
    shown.join(" ")
}

/// A left-recursive list whose items are captured, and the list itself.
fn list(builder: &mut GrammarBuilder) -> NodeId {
    let rule = builder.declare_rule("list");
    let (call, comma) = (builder.node(Node::Rule(rule)), word(builder, ","));
    let letters = letters(builder, 1);
    let item = builder.capture("item", letters);
    let more = builder.sequence(&[call, comma, item]);
    let body = builder.choice(&[more, item]);
    builder.define_rule(rule, body);
    builder.capture("list", call)
}

#[test]
fn captures_are_those_that_are_complete() {
    let mut live = start(|builder| {
        let (list, end) = (list(builder), word(builder, "!"));
        builder.sequence(&[list, end])
    });
    assert_eq!(shown(&live), "");
    assert!(live.accept_token(3).unwrap());
    assert_eq!(shown(&live), "", "more letters may come");
    assert!(live.accept_token(2).unwrap() && live.accept_token(0).unwrap() && live.accept_token(2).unwrap());
    assert_eq!(shown(&live), "item=ab item=a");
    live.rollback(1).unwrap();
    assert_eq!(shown(&live), "item=ab");
    let mut other = live.fork();
    assert!(other.accept_bytes(b"b!").unwrap() && other.accept_token(5).unwrap());
    assert_eq!(shown(&other), "list=ab,ab item=ab item=ab");
    assert_eq!(shown(&live), "item=ab");
    live.reset();
    assert_eq!(shown(&live), "");
}

#[test]
fn the_first_alternative_counts_and_the_end_takes_least() {
    let mut live = start(|builder| {
        let (any, some) = (letters(builder, 0), letters(builder, 0));
        let (first, second) = (builder.capture("first", any), builder.capture("second", some));
        let both = builder.sequence(&[first, second]);
        let other = builder.capture("other", any);
        builder.choice(&[both, other])
    });
    assert!(live.accept_bytes(b"abba").unwrap());
    assert_eq!(shown(&live), "first=abba second=");
}

#[test]
fn single_tokens_are_read_where_they_were_accepted() {
    let mut live = start(|builder| {
        let (special, by_id) = (builder.special_token("<x>"), builder.token_ids(&[(3, 3)], false));
        let (tail, a) = (letters(builder, 0), word(builder, "a"));
        let text = builder.sequence(&[a, special, by_id, tail]);
        builder.capture("text", text)
    });
    assert!([0, 4, 3, 1].iter().all(|&id| live.accept_token(id).unwrap()));
    assert_eq!(shown(&live), "text=aabb");
}

#[test]
fn counted_rounds_and_long_lists() {
    let mut live = start(|builder| {
        let a = word(builder, "a");
        let one = builder.capture("one", a);
        builder.repeat(one, 2, Some(1_000_000_000))
    });
    for _ in 0..3000 {
        assert!(live.accept_token(0).unwrap());
    }
    let found = live.get_captures().unwrap();
    assert!(found.len() == 3000 && found.iter().all(|(name, text)| name == "one" && text == b"a"));
}

#[test]
fn too_much_work_is_a_limit() {
    let mut live = start(|builder| {
        let rule = builder.declare_rule("pairs");
        let (call, a) = (builder.node(Node::Rule(rule)), word(builder, "a"));
        let (one, two) = (builder.capture("one", a), builder.sequence(&[call, call]));
        let body = builder.choice(&[two, one]);
        builder.define_rule(rule, body);
        call
    });
    for _ in 0..600 {
        assert!(live.accept_token(0).unwrap());
    }
    assert!(live.get_captures().unwrap_err().to_string().contains("took more than"));
}

/// Every capture of a random grammar that is a text of the grammar must be a text of what it names, and they must come
/// in order; a text as a whole is captured as a whole.
fn captures_are_parts(seed: u64) {
    let mut random = Random::new(seed);
    let mut words = Words::default();
    let rules: Vec<RuleId> =
        (0..1 + random.below(3)).map(|index| words.builder.declare_rule(format!("rule{index}"))).collect();
    let mut pool = Vec::new();
    for &rule in &rules {
        let body = words.node(&mut random, &rules, &mut pool, 3);
        words.builder.define_rule(rule, body);
    }
    let names: Vec<String> = (0..rules.len()).map(|index| format!("rule{index}")).collect();
    let calls: Vec<NodeId> = rules.iter().map(|&rule| words.builder.node(Node::Rule(rule))).collect();
    let parts: Vec<NodeId> =
        names.iter().zip(&calls).map(|(name, &call)| words.builder.capture(name.as_str(), call)).collect();
    let part = *random.pick(&parts);
    let pair = words.builder.sequence(&[part, parts[0]]);
    let root = words.builder.choice(&[pair, part]);
    let root = words.builder.capture("root", root);
    let roots: HashMap<String, NodeId> = names.into_iter().zip(calls).collect();
    let alone = words.builder.clone();
    let Ok(grammar) = words.builder.finish(root, Report::default()) else { return };
    let letters: HashMap<ExprId, Vec<u8>> = words.words;
    let twin = Earley::new(&grammar, &letters);
    let special = [(3, "<x>".to_owned()), (4, "<y>".to_owned())];
    let vocabulary = Arc::new(Vocabulary::new(&[Some("a"), Some("b"), Some("c")], 5, &[], &special).unwrap());
    let mut live = matcher(grammar, vocabulary);
    let mut text = Vec::new();
    for _ in 0..8 {
        let Some(next) = (0..5).map(|_| random.below(5) as u32).find(|&id| live.accept_token(id).unwrap()) else {
            break;
        };
        text.push(if next < 3 { Letter::Byte(b"abc"[next as usize]) } else { Letter::Token(next) });
        let found = live.get_captures().unwrap();
        let bytes: Vec<u8> = text
            .iter()
            .filter_map(|letter| match letter {
                Letter::Byte(byte) => Some(*byte),
                Letter::Token(_) => None,
            })
            .collect();
        let whole = found.first().filter(|(name, _)| name == "root");
        assert_eq!(whole.is_some(), twin.verdict(&text).complete, "seed {seed}: {text:?}");
        assert!(whole.is_none_or(|(_, whole)| *whole == bytes), "seed {seed}: {text:?}");
        for (name, part) in &found {
            let Some(&call) = roots.get(name) else { continue };
            if text.len() > bytes.len() {
                continue; // Where tokens stood does not show in the bytes.
            }
            let grammar = alone.clone().finish(call, Report::default()).expect("a part was found");
            let part: Vec<Letter> = part.iter().map(|&byte| Letter::Byte(byte)).collect();
            let verdict = Earley::new(&grammar, &letters).verdict(&part);
            assert!(verdict.complete, "seed {seed}: {name}={part:?} in {text:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn captures_of_random_grammars_are_parts_that_match(seed in any::<u64>()) {
        captures_are_parts(seed);
    }
}
