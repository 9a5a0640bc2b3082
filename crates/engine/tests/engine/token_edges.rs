//! Single tokens that a grammar asks for: by name, by id, by leaving ids out; beside text, and in its place.

use std::sync::Arc;

use crate::common::matcher;
use crate::random::Random;
use proptest::prelude::*;
use stencilm_engine::{CompiledGrammar, EngineError, GrammarMatcher, MatcherError, TokenSet, Vocabulary, naive};
use stencilm_grammar::{Grammar, GrammarBuilder, NodeId, Report};

const TOKENS: [&str; 8] = ["a", "b", "ab", "a", "<tool>", "<end>", "</s>", "ba"];

/// 3 spells what 0 spells; 4 to 6 are special, and 6 stops.
fn vocabulary() -> Arc<Vocabulary> {
    let special = [(4, "<tool>".to_owned()), (5, "<end>".to_owned()), (6, "</s>".to_owned())];
    Arc::new(Vocabulary::new(&TOKENS.map(Some), 10, &[6], &special).unwrap())
}

fn grammar(build: impl FnOnce(&mut GrammarBuilder) -> NodeId) -> Grammar {
    let mut builder = GrammarBuilder::default();
    let root = build(&mut builder);
    builder.finish(root, Report::default()).unwrap()
}

fn word(builder: &mut GrammarBuilder, word: &str) -> NodeId {
    let expr = builder.exprs.literal(word.as_bytes());
    builder.lexeme(expr)
}

fn allowed(matcher: &mut GrammarMatcher) -> Vec<u32> {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    match matcher.fill_mask(mask.words_mut()) {
        Ok(_) | Err(MatcherError::NoTokenFits | MatcherError::NoStopToken) => {}
        Err(error) => panic!("{error}"),
    }
    assert_eq!(mask, naive::mask(matcher).unwrap());
    for id in 0..matcher.compiled().vocabulary().vocab_size() as u32 {
        assert_eq!(matcher.is_allowed(id).unwrap(), mask.contains(id), "token {id}");
    }
    mask.iter().collect()
}

#[test]
fn a_special_token_is_allowed_where_it_is_named_and_only_there() {
    let grammar = grammar(|builder| {
        let (a, tool, b) = (word(builder, "a"), builder.special_token("<tool>"), word(builder, "b"));
        builder.sequence(&[a, tool, b])
    });
    let mut matcher = matcher(grammar, vocabulary());
    assert_eq!(allowed(&mut matcher), [0, 3]);
    assert!(matcher.accept_token(0).unwrap());
    assert_eq!(allowed(&mut matcher), [4]);
    assert!(!matcher.accept_bytes(b"<tool>").unwrap(), "its text is not the token");
    assert!(matcher.accept_token(4).unwrap());
    assert_eq!(allowed(&mut matcher), [1]);
    matcher.rollback(1).unwrap();
    assert_eq!(allowed(&mut matcher), [4]);
    assert!(matcher.accept_token(4).unwrap() && matcher.accept_token(1).unwrap());
    assert_eq!(allowed(&mut matcher), [6]);
}

#[test]
fn an_ordinary_token_by_id_is_that_token_and_no_other_that_spells_the_same() {
    let by_id = grammar(|builder| builder.token_ids(&[(3, 3)], false));
    let mut live = matcher(by_id, vocabulary());
    assert_eq!(allowed(&mut live), [3]);
    assert!(!live.accept_bytes(b"a").unwrap());
    assert!(live.accept_token(3).unwrap());
    assert!(live.is_completed());
}

#[test]
fn a_stop_token_that_the_grammar_names_is_read_and_does_not_stop() {
    let grammar = grammar(|builder| {
        let (a, stop, b) = (word(builder, "a"), builder.special_token("</s>"), word(builder, "b"));
        let rest = builder.sequence(&[stop, b]);
        let rest = builder.repeat(rest, 0, Some(1));
        builder.sequence(&[a, rest])
    });
    let mut matcher = matcher(grammar, vocabulary());
    assert!(matcher.accept_token(0).unwrap());
    assert_eq!(allowed(&mut matcher), [6]);
    assert!(matcher.accept_token(6).unwrap());
    assert!(!matcher.is_terminated());
    assert_eq!(allowed(&mut matcher), [1]);
    assert!(matcher.accept_token(1).unwrap() && matcher.accept_token(6).unwrap());
    assert!(matcher.is_terminated());
}

#[test]
fn what_is_left_out_never_means_holes_or_stop_tokens() {
    let all_but = grammar(|builder| builder.token_ids(&[(1, 3)], true));
    assert_eq!(allowed(&mut matcher(all_but, vocabulary())), [0, 4, 5, 7]);
    let none_left = grammar(|builder| builder.token_ids(&[(0, 9)], true));
    assert_eq!(CompiledGrammar::new(Arc::new(none_left), vocabulary()).err(), Some(EngineError::NoTokenLeft));
}

#[test]
fn what_ebnf_leaves_out() {
    for (text, expected) in [
        ("root ::= !<[7]>", &[0, 1, 2, 3, 4, 5][..]),
        ("root ::= !<[0-2,5]>", &[3, 4, 7]),
        ("root ::= !<tool>", &[0, 1, 2, 3, 5, 7]),
        ("root ::= <[^0-3]>", &[4, 5, 7]),
        // The text of the one that is left out comes by other tokens.
        ("root ::= !<[0]> | \"ba\"", &[1, 2, 3, 4, 5, 7]),
        ("root ::= \"\" | !<[7]> \"a\"", &[0, 1, 2, 3, 4, 5, 6]),
    ] {
        let grammar = Grammar::from_ebnf(text, "root").unwrap();
        assert_eq!(allowed(&mut matcher(grammar, vocabulary())), expected, "{text}");
    }
    let mut live = matcher(Grammar::from_ebnf("root ::= !<[7]> \"b\"", "root").unwrap(), vocabulary());
    assert!(!live.accept_token(7).unwrap());
    assert!(live.accept_token(4).unwrap());
    assert_eq!(allowed(&mut live), [1]);
}

#[test]
fn names_and_ids_that_the_vocabulary_does_not_have_are_refused_with_a_way_out() {
    let refused = |node: fn(&mut GrammarBuilder) -> NodeId| {
        CompiledGrammar::new(Arc::new(grammar(node)), vocabulary()).err().expect("no such token").to_string()
    };
    assert_eq!(
        refused(|builder| builder.special_token("<tools>")),
        r#"no special token is named "<tools>": the nearest of 3 are "<tool>", "</s>", "<end>""#
    );
    for range in [(9, 10), (5, 4)] {
        let message =
            CompiledGrammar::new(Arc::new(grammar(|builder| builder.token_ids(&[range], false))), vocabulary());
        assert!(message.err().expect("no such ids").to_string().contains("vocabulary of size 10"));
    }
}

/// A list of spaces, words and single tokens: spaces that are read together with what follows them must end before a
/// token.
fn random_mixture(random: &mut Random, builder: &mut GrammarBuilder, depth: usize) -> NodeId {
    match random.below(if depth == 0 { 4 } else { 8 }) {
        0 => {
            let words = *random.pick(&["a", "ab", "b", "ba"]);
            let (head, space) = (builder.exprs.literal(words.as_bytes()), builder.exprs.literal(b" "));
            let spaces = builder.exprs.repeat(space, 0, Some(2));
            let expr = builder.exprs.concat(head, spaces);
            builder.lexeme(expr)
        }
        1 => {
            let letters: &str = random.pick::<&str>(&["a", "b", "ab"]);
            word(builder, letters)
        }
        2 => builder.special_token(*random.pick(&["<tool>", "<end>", "</s>"])),
        3 => {
            let from = random.below(10) as u32;
            let to = from + random.below(10 - from as usize) as u32;
            // Never all that is left.
            builder.token_ids(&[(from.max(1), to.max(1))], random.chance(2))
        }
        4 | 5 => {
            let parts: Vec<NodeId> =
                (0..1 + random.below(3)).map(|_| random_mixture(random, builder, depth - 1)).collect();
            builder.sequence(&parts)
        }
        6 => {
            let parts: Vec<NodeId> =
                (0..2 + random.below(2)).map(|_| random_mixture(random, builder, depth - 1)).collect();
            builder.choice(&parts)
        }
        _ => {
            let body = random_mixture(random, builder, depth - 1);
            builder.repeat(body, random.below(2) as u32, *random.pick(&[None, Some(2)]))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn masks_with_single_tokens_are_exact(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let grammar = grammar(|builder| random_mixture(&mut random, builder, 3));
        let mut tokens = TOKENS.map(|token| Some(token.to_owned())).to_vec();
        tokens.extend([" ", "a ", " a", "b  "].map(|token| Some(token.to_owned())));
        let special = [(4, "<tool>".to_owned()), (5, "<end>".to_owned()), (6, "</s>".to_owned())];
        let vocabulary = Arc::new(Vocabulary::new(&tokens, 13, &[6], &special).unwrap());
        let mut live = matcher(grammar, vocabulary);
        for _ in 0..10 {
            let allowed = allowed(&mut live);
            if allowed.is_empty() || live.is_terminated() {
                break;
            }
            prop_assert!(live.accept_token(*random.pick(&allowed)).unwrap());
            if live.is_terminated() {
                break;
            }
        }
    }
}

#[test]
fn a_single_token_is_allowed_also_where_its_text_would_repeat_a_key() {
    let text = r#"root ::= %object { others: "x"? | <[^0]>; item = ","; colon = ":"; open = "{"; close = "}"; }"#;
    let grammar = Grammar::from_ebnf(text, "root").unwrap();
    let tokens = ["{\"\":", ",\"\":", "x", "}", "</s>"];
    let vocabulary = Arc::new(Vocabulary::new(&tokens.map(Some), 5, &[4], &[(4, "</s>".to_owned())]).unwrap());
    let mut matcher = matcher(grammar, vocabulary);
    assert!(matcher.accept_token(0).unwrap());
    // As text `,"":` would be a second member with the same key, after an empty value; as a token it is the value.
    assert_eq!(allowed(&mut matcher), [1, 2, 3]);
}
