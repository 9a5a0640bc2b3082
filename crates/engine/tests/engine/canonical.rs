//! Canonical masks against their definition, for grammars of few texts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stencilm_engine::{CompiledGrammar, EncodingSource, GrammarMatcher, MatcherOptions, TokenSet, Vocabulary};
use stencilm_grammar::Grammar;

const GPT_2: &str = r"'s| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA_3: &str = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A tokenizer over bytes with a pattern, these merges, and tokens that are only ever whole pieces.
fn vocabulary(pattern: &str, merges: &[(&[u8], &[u8])], whole_pieces: &[&str]) -> Arc<Vocabulary> {
    let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    let mut ids = Vec::new();
    for &(left, right) in merges {
        let id = |text: &[u8]| tokens.iter().position(|token| token == text).expect("merges join tokens") as u32;
        ids.push((id(left), id(right), tokens.len() as u32));
        tokens.push([left, right].concat());
    }
    tokens.extend(whole_pieces.iter().map(|piece| piece.as_bytes().to_vec()));
    let stop = tokens.len() as u32;
    let tokens: Vec<Option<Vec<u8>>> = tokens.into_iter().map(Some).chain([None]).collect();
    let vocabulary = Arc::new(Vocabulary::new(&tokens, tokens.len(), &[stop], &[(stop, "</s>".to_owned())]).unwrap());
    let source = EncodingSource {
        bytes: (0..=255).collect(),
        chars: None,
        changed: None,
        merges: ids,
        whole_pieces: !whole_pieces.is_empty(),
        pattern: Some(pattern.to_owned()),
    };
    vocabulary.learn_encoding(&source).unwrap();
    vocabulary
}

/// All texts of a grammar that has few, found byte by byte.
fn texts(compiled: &Arc<CompiledGrammar>) -> Vec<String> {
    let mut work = vec![(GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()).unwrap(), Vec::new())];
    let mut found = Vec::new();
    while let Some((matcher, text)) = work.pop() {
        if matcher.is_completed() {
            found.push(String::from_utf8(text.clone()).unwrap());
        }
        for byte in 0..=u8::MAX {
            let mut next = matcher.fork();
            if next.accept_bytes(&[byte]).unwrap() {
                work.push((next, [&text[..], &[byte]].concat()));
            }
        }
    }
    found
}

#[test]
fn masks_have_what_the_tokenizer_writes() {
    for (pattern, grammar) in [
        // After a line break another one may come, which would make one piece of all, or two spaces, which merge.
        (LLAMA_3, r#"root ::= [ \n]{0,5}"#),
        (LLAMA_3, r#"root ::= [ \n]{0,3}{0,2} | "  ""#),
        (LLAMA_3, r#"root ::= "\n" " "{0,6}"#),
        (LLAMA_3, r#"root ::= "\n" " "{0,3} "a"?"#),
        (GPT_2, r#"root ::= [ \n]{0,3}{0,2}"#),
    ] {
        let vocabulary = vocabulary(pattern, &[(b" ", b" ")], &[]);
        let stop = vocabulary.stop_token_ids()[0];
        let grammar_of = Grammar::from_ebnf(grammar, "root").unwrap();
        let compiled = Arc::new(CompiledGrammar::new(Arc::new(grammar_of), vocabulary.clone()).unwrap());
        let mut expected: BTreeMap<Vec<u32>, BTreeSet<u32>> = BTreeMap::new();
        for text in texts(&compiled) {
            let tokens = vocabulary.encode(&text).unwrap();
            for (at, &token) in tokens.iter().chain([&stop]).enumerate() {
                expected.entry(tokens[..at].to_vec()).or_default().insert(token);
            }
        }
        for (so_far, expected) in expected {
            let options = MatcherOptions { canonical: true, ..MatcherOptions::default() };
            let mut matcher = GrammarMatcher::new(compiled.clone(), &options).unwrap();
            for &token in &so_far {
                assert!(matcher.accept_token(token).unwrap(), "{token} of {so_far:?}: {grammar}");
            }
            let mut mask = TokenSet::empty(vocabulary.vocab_size());
            matcher.fill_mask(mask.words_mut()).unwrap();
            let found: BTreeSet<u32> = mask.iter().collect();
            assert_eq!(found, expected, "after {so_far:?}: {grammar} with {pattern}");
        }
    }
}

#[test]
fn what_is_taken_over_from_another_piece_may_be_refused_within_a_character() {
    // "а" may yet become "абв", which merges never make; the first byte of another letter would be joined with it.
    let mut merges: Vec<(&[u8], &[u8])> = vec![(b"\xd0", b"\xb0"), (b"\xd0\xb0", b"\xd0")];
    // And so many others that the lexeme decides most tokens.
    let letters = b"abcdefghijklmnopqrstuvwxyz";
    merges.extend(letters.chunks(1).flat_map(|left| letters.chunks(1).map(move |right| (left, right))));
    let vocabulary = vocabulary(GPT_2, &merges, &["абв"]);
    let grammar = Grammar::from_ebnf(r#"root ::= [^ ]*"#, "root").unwrap();
    let compiled = Arc::new(CompiledGrammar::new(Arc::new(grammar), vocabulary.clone()).unwrap());
    let options = MatcherOptions { canonical: true, ..MatcherOptions::default() };
    let mut matcher = GrammarMatcher::new(compiled, &options).unwrap();
    assert!(matcher.accept_token(256).unwrap());
    let mut mask = TokenSet::empty(vocabulary.vocab_size());
    matcher.fill_mask(mask.words_mut()).unwrap();
    assert!(!mask.contains(0xD0) && mask.contains(0xD1));
}
