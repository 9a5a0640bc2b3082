//! What a matcher promises: stop tokens, rollback, refusals without change, and keys that never repeat.

use std::sync::Arc;

use crate::common::matcher;
use stencilm_engine::{CompiledGrammar, GrammarMatcher, MatcherError, MatcherOptions, TokenSet, Vocabulary, naive};
use stencilm_grammar::{AdditionalMembers, Grammar, GrammarBuilder, Members, Report, Surface};
use stencilm_regex::ByteSet;

fn vocabulary(tokens: &[&str]) -> Arc<Vocabulary> {
    let mut all: Vec<Option<String>> = tokens.iter().map(|token| Some((*token).to_owned())).collect();
    all.push(Some("</s>".into()));
    let stop = all.len() as u32 - 1;
    Arc::new(Vocabulary::new(&all, all.len(), &[stop], &[]).unwrap())
}

fn literals(words: &[&str]) -> Grammar {
    let mut builder = GrammarBuilder::default();
    let words = builder.exprs.literals(words);
    let root = builder.lexeme(words);
    builder.finish(root, Report::default()).expect("the words match")
}

/// An object of additional keys with the value 1, written without whitespace; a key may be anything but the reserved one.
fn object_of_additional_keys(reserved: Option<&str>) -> Grammar {
    let mut builder = GrammarBuilder::default();
    let exprs = &mut builder.exprs;
    let [empty, open, colon, item, close] = [&b"{}"[..], b"{", b":", b",", b"}"].map(|text| exprs.literal(text));
    let plain = exprs.bytes([b'"', b'\\'].into_iter().collect::<ByteSet>().complement());
    let digit = exprs.bytes(b"0123456789abcdef".iter().copied().collect());
    let begin = exprs.literal(b"\\u00");
    let escaped = exprs.concat_all(&[begin, digit, digit]);
    let character = exprs.or(&[plain, escaped]);
    let (quote, body) = (exprs.literal(b"\""), exprs.repeat(character, 0, None));
    let key = exprs.concat_all(&[quote, body, quote]);
    let one = exprs.literal(b"1");
    let value = builder.lexeme(one);
    let surface = Surface { empty, open, colon, item, close };
    let space = builder.key_space(key, &[]).expect("keys have values");
    let free = AdditionalMembers {
        key,
        space,
        reserved: reserved.into_iter().map(Into::into).collect(),
        value,
        some: None,
        last: None,
    };
    let members = Members { declared: vec![], ordered: 0, additional: vec![free], min: 0, max: None, surface };
    let root = builder.object(members);
    builder.finish(root, Report::default()).expect("an object matches")
}

fn allowed(matcher: &mut GrammarMatcher, tokens: &[&str]) -> Vec<String> {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    matcher.fill_mask(mask.words_mut()).unwrap();
    assert_eq!(mask, naive::mask(matcher).unwrap());
    let name = |id: u32| tokens.get(id as usize).copied().unwrap_or("EOS").to_owned();
    mask.iter().map(name).collect()
}

#[test]
fn a_stop_token_ends_a_complete_text_and_nothing_else() {
    let tokens = ["a", "b", "ab"];
    let mut matcher = matcher(literals(&["ab", "abab"]), vocabulary(&tokens));
    assert_eq!(allowed(&mut matcher, &tokens), ["a", "ab"]);
    assert!(!matcher.accept_token(3).unwrap(), "too early");
    assert!(matcher.accept_token(2).unwrap());
    assert_eq!(allowed(&mut matcher, &tokens), ["a", "ab", "EOS"]);
    assert!(matcher.is_completed() && !matcher.is_terminated());
    assert!(matcher.accept_token(3).unwrap());
    assert!(matcher.is_terminated());
    for token in 0..5 {
        assert!(!matcher.accept_token(token).unwrap(), "token {token} after the end");
    }
    assert!(!matcher.accept_bytes(b"a").unwrap());
    assert_eq!(matcher.fill_mask(&mut [0]), Err(MatcherError::Terminated));
    matcher.rollback(1).unwrap();
    assert_eq!(allowed(&mut matcher, &tokens), ["a", "ab", "EOS"]);
}

#[test]
fn refusals_change_nothing() {
    let tokens = ["a", "b"];
    let mut matcher = matcher(literals(&["ab"]), vocabulary(&tokens));
    for token in [1, 2, 3, u32::MAX] {
        assert!(!matcher.accept_token(token).unwrap());
    }
    assert!(!matcher.accept_bytes(b"ax").unwrap());
    assert_eq!(matcher.rollback(1), Err(MatcherError::RollbackPastStart { asked: 1, accepted: 0 }));
    assert_eq!(matcher.num_accepted_tokens(), 0);
    assert!(matcher.accept_bytes(b"ab").unwrap());
    assert!(matcher.is_completed());
    matcher.reset();
    assert!(!matcher.is_completed());
    let error = matcher.fill_mask(&mut [0, 0]).unwrap_err();
    assert_eq!(error, MatcherError::MaskSize { words: 2, expected: 1, vocab_size: 3 });
}

#[test]
fn complete_without_a_stop_token() {
    let options = MatcherOptions { terminate_without_stop_token: true, ..MatcherOptions::default() };
    let compiled = Arc::new(CompiledGrammar::new(Arc::new(literals(&["ab"])), vocabulary(&["a", "b"])).unwrap());
    let mut matcher = GrammarMatcher::new(compiled.clone(), &options).unwrap();
    assert!(matcher.accept_token(0).unwrap() && !matcher.is_terminated());
    assert!(matcher.accept_token(1).unwrap() && matcher.is_terminated());
    assert!(!matcher.accept_token(0).unwrap() && !matcher.accept_token(2).unwrap(), "nothing after the end");
    let options = MatcherOptions { override_stop_tokens: Some(vec![9]), ..MatcherOptions::default() };
    let error = GrammarMatcher::new(compiled, &options).err().unwrap();
    assert_eq!(error, MatcherError::StopTokenOutOfRange { id: 9, vocab_size: 3 });
}

#[test]
fn a_vocabulary_that_cannot_spell_the_grammar_says_so() {
    let mut matcher = matcher(literals(&["ax"]), vocabulary(&["a", "b"]));
    assert!(matcher.accept_token(0).unwrap());
    assert_eq!(matcher.fill_mask(&mut [0]), Err(MatcherError::NoTokenFits));
}

#[test]
fn a_text_that_nothing_can_end_says_so() {
    let options = MatcherOptions { override_stop_tokens: Some(vec![]), ..MatcherOptions::default() };
    let compiled = Arc::new(CompiledGrammar::new(Arc::new(literals(&["ab"])), vocabulary(&["ab"])).unwrap());
    let mut matcher = GrammarMatcher::new(compiled, &options).unwrap();
    assert!(matcher.accept_token(0).unwrap() && matcher.is_completed());
    assert_eq!(matcher.fill_mask(&mut [0]), Err(MatcherError::NoStopToken));
}

#[test]
fn keys_never_repeat_however_tokens_cut_them() {
    let tokens = [
        "{\"",
        "x",
        "y",
        "\":1",
        "\":1,\"",
        "x\":1,\"x\"",
        "x\":1,\"y\"",
        "x\":1,\"y\":1,\"y",
        "\"",
        ":",
        "}",
        "x\"",
        "x\":",
    ];
    let mut matcher = matcher(object_of_additional_keys(None), vocabulary(&tokens));
    assert!(matcher.accept_token(0).unwrap());
    let first = allowed(&mut matcher, &tokens);
    assert!(!first.contains(&"x\":1,\"x\"".to_owned()), "one token with the same key twice");
    assert!(first.contains(&"x\":1,\"y\"".to_owned()));
    assert!(first.contains(&"x\":1,\"y\":1,\"y".to_owned()), "the second y may become yx");
    assert!(matcher.accept_bytes(b"x\":1,\"").unwrap());
    let second = allowed(&mut matcher, &tokens);
    assert!(second.contains(&"x".to_owned()), "x may go on to something longer");
    for repeated in ["x\"", "x\":", "x\":1,\"y\""] {
        assert!(!second.contains(&repeated.to_owned()), "{repeated} would repeat the key x");
    }
    assert!(matcher.accept_bytes(b"x").unwrap());
    let third = allowed(&mut matcher, &tokens);
    assert!(!third.contains(&"\"".to_owned()) && third.contains(&"x\"".to_owned()), "x again, but not xx");
}

#[test]
fn reserved_keys_are_refused_in_every_spelling_however_tokens_cut_it() {
    let tokens =
        ["{\"", "a\"", "b\"", "\\u00", "6", "1", "2", "61\"", "62\"", "1\"", "\"", ":1}", "\\u0061\"", "\\u0061b\""];
    let mut matcher = matcher(object_of_additional_keys(Some("a")), vocabulary(&tokens));
    assert!(matcher.accept_token(0).unwrap());
    let start = allowed(&mut matcher, &tokens);
    assert!(start.contains(&"b\"".into()) && start.contains(&"\\u0061b\"".into()));
    assert!(!start.contains(&"a\"".into()) && !start.contains(&"\\u0061\"".into()));
    assert!(matcher.accept_token(3).unwrap());
    assert_eq!(allowed(&mut matcher, &tokens), ["6", "1", "2", "62\""], "within an escape");
    assert!(matcher.accept_token(4).unwrap());
    let digits = allowed(&mut matcher, &tokens);
    assert!(digits.contains(&"a\"".into()) && !digits.contains(&"1\"".into()), "6a is j, but 61 is a");
    assert!(matcher.accept_token(5).unwrap());
    let after = allowed(&mut matcher, &tokens);
    assert!(!after.contains(&"\"".into()) && after.contains(&"b\"".into()), "behind the escape");
}

#[test]
fn a_kept_mask_depends_on_every_frame_it_read_in_whatever_order() {
    // root ::= "1" (P | Q F) | "2" (P | Q G), P ::= "q" "pb" F, Q ::= ("q" "pc") "r". After "1q" the walk meets the
    // stack {F} twice: first made anew after "pb", then as what lies below "r". After "2q" the latter is {G}.
    let mut builder = GrammarBuilder::default();
    let [one, two, q, pb, pc, r, f, g] = ["1", "2", "q", "pb", "pc", "r", "f", "g"].map(|text| {
        let text = builder.exprs.literal(text.as_bytes());
        builder.lexeme(text)
    });
    let p = builder.sequence(&[q, pb, f]);
    let inner = builder.sequence(&[q, pc]);
    let q = builder.sequence(&[inner, r]);
    let [first, second] = [(one, f), (two, g)].map(|(number, last)| {
        let long = builder.sequence(&[q, last]);
        let either = builder.choice(&[p, long]);
        builder.sequence(&[number, either])
    });
    let root = builder.choice(&[first, second]);
    let grammar = builder.finish(root, Report::default()).expect("some text matches");
    let tokens = ["1q", "2q", "pbf", "pcrf", "pcrg"];
    let compiled = Arc::new(CompiledGrammar::new(Arc::new(grammar), vocabulary(&tokens)).unwrap());
    for (token, expected) in [(0, ["pbf", "pcrf"]), (1, ["pbf", "pcrg"]), (0, ["pbf", "pcrf"])] {
        let mut matcher = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()).unwrap();
        assert!(matcher.accept_token(token).unwrap());
        assert_eq!(allowed(&mut matcher, &tokens), expected);
    }
}

#[test]
fn forks_go_their_own_ways() {
    let tokens = ["a", "b"];
    let mut left = matcher(literals(&["aa", "bb"]), vocabulary(&tokens));
    let mut right = left.fork();
    assert!(left.accept_token(0).unwrap() && right.accept_token(1).unwrap());
    assert_eq!((allowed(&mut left, &tokens), allowed(&mut right, &tokens)), (vec!["a".into()], vec!["b".into()]));
}

#[test]
fn long_texts_and_deep_nesting_neither_recurse_nor_slow_down() {
    // list ::= "[" list? "]"
    let mut builder = GrammarBuilder::default();
    let rule = builder.declare_rule("list");
    let [open, close] = [b"[", b"]"].map(|text| {
        let text = builder.exprs.literal(text);
        builder.lexeme(text)
    });
    let call = builder.node(stencilm_grammar::Node::Rule(rule));
    let inner = builder.repeat(call, 0, Some(1));
    let body = builder.sequence(&[open, inner, close]);
    builder.define_rule(rule, body);
    let grammar = builder.finish(call, Report::default()).expect("a list matches");
    let mut matcher = matcher(grammar, vocabulary(&["[", "]", "]]", "[]"]));
    for _ in 0..100_000 {
        assert!(matcher.accept_token(0).unwrap());
    }
    for _ in 0..50_000 {
        assert!(matcher.accept_token(2).unwrap());
    }
    assert!(matcher.is_completed());
    matcher.reset();
    assert_eq!(matcher.num_accepted_tokens(), 0);
}
