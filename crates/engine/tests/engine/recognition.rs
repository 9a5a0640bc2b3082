//! The machine reads every context-free grammar exactly: left-recursive, cyclic, ambiguous, with empty parts anywhere.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use stencilm_engine::{CompiledGrammar, GrammarMatcher, MatcherOptions, TokenSet, Vocabulary, naive};
use stencilm_grammar::{ErrorKind, Grammar, GrammarBuilder, Node, NodeId, Report, RuleId};
use stencilm_regex::ExprId;

use crate::common::matcher;
use crate::earley::{Earley, Letter, Verdict};
use crate::random::Random;

/// A builder that remembers which words its lexemes are.
#[derive(Default)]
pub struct Words {
    pub builder: GrammarBuilder,
    pub words: HashMap<ExprId, Vec<u8>>,
}

impl Words {
    fn word(&mut self, word: &str) -> NodeId {
        let expr = self.builder.exprs.literal(word.as_bytes());
        self.words.insert(expr, word.as_bytes().to_vec());
        self.builder.lexeme(expr)
    }

    pub fn node(&mut self, random: &mut Random, rules: &[RuleId], pool: &mut Vec<NodeId>, depth: usize) -> NodeId {
        let node = match random.below(if depth == 0 { 5 } else { 14 }) {
            0 => self.word(""),
            1 | 2 => {
                let word: &str = random.pick::<&str>(&["a", "b", "c", "ab", "aa"]);
                self.word(word)
            }
            3 | 4 => {
                let rule = *random.pick(rules);
                self.builder.node(Node::Rule(rule))
            }
            5..=8 => {
                let parts: Vec<NodeId> =
                    (0..random.below(4)).map(|_| self.node(random, rules, pool, depth - 1)).collect();
                self.builder.sequence(&parts)
            }
            9 | 10 => {
                let parts: Vec<NodeId> =
                    (0..1 + random.below(3)).map(|_| self.node(random, rules, pool, depth - 1)).collect();
                self.builder.choice(&parts)
            }
            11 => {
                let body = self.node(random, rules, pool, depth - 1);
                let min = random.below(3) as u32;
                let max = if random.chance(2) { None } else { Some(min + random.below(3) as u32) };
                self.builder.repeat(body, min, max)
            }
            12 if random.chance(2) => {
                let body = self.node(random, rules, pool, depth - 1);
                self.builder.capture("part", body)
            }
            12 => {
                let from = 3 + random.below(2) as u32;
                self.builder.token_ids(&[(from, 4)], false)
            }
            _ if pool.is_empty() => self.word("b"),
            _ => *random.pick(pool),
        };
        pool.push(node);
        node
    }
}

/// Three letters, and two special tokens.
fn letters() -> Arc<Vocabulary> {
    let special = [(3, "<x>".to_owned()), (4, "<y>".to_owned())];
    Arc::new(Vocabulary::new(&[Some("a"), Some("b"), Some("c")], 5, &[], &special).unwrap())
}

/// Reads every text over three letters and two tokens that is viable, and those that are not by their last letter, up to
/// a length and a number of them.
fn compare(grammar: &Grammar, twin: &Earley, what: &str) {
    let mut live = matcher(grammar.clone(), letters());
    let mut texts: Vec<Vec<Letter>> = vec![Vec::new()];
    let mut alphabet = b"abc".map(Letter::Byte).to_vec();
    if grammar.nodes().iter().any(|node| matches!(node, Node::Token(_))) {
        alphabet.extend([3, 4].map(Letter::Token));
    }
    let mut done = 0;
    while done < texts.len() && done < 150 {
        let text = texts[done].clone();
        done += 1;
        let expected = twin.verdict(&text);
        live.reset();
        let viable = text.iter().all(|&letter| match letter {
            Letter::Byte(byte) => live.accept_bytes(&[byte]).unwrap(),
            Letter::Token(id) => live.accept_token(id).unwrap(),
        });
        let found = Verdict { viable, complete: viable && live.is_completed() };
        assert_eq!(found, expected, "{what}: {text:?}");
        if viable && text.len() < 7 {
            texts.extend(alphabet.iter().map(|&letter| [&text[..], &[letter]].concat()));
        }
    }
}

fn random_grammar_is_read_exactly(seed: u64) {
    let mut random = Random::new(seed);
    let mut words = Words::default();
    let rules: Vec<RuleId> =
        (0..1 + random.below(4)).map(|index| words.builder.declare_rule(format!("rule{index}"))).collect();
    let mut pool = Vec::new();
    for &rule in &rules {
        let body = words.node(&mut random, &rules, &mut pool, 3);
        words.builder.define_rule(rule, body);
    }
    let root = words.builder.node(Node::Rule(rules[0]));
    match words.builder.finish(root, Report::default()) {
        Ok(grammar) => {
            let twin = Earley::new(&grammar, &words.words);
            compare(&grammar, &twin, &format!("seed {seed}"));
        }
        Err(error) => assert_eq!(error.kind, ErrorKind::Unsatisfiable, "seed {seed}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_grammars_are_read_as_the_twin_reads_them(seed in any::<u64>()) {
        random_grammar_is_read_exactly(seed);
    }
}

/// A grammar of rules written as `S -> S a | b`: words in lower case or signs, rules in upper case, `_` for nothing.
fn rules(text: &str) -> (Grammar, Earley) {
    let mut words = Words::default();
    let lines: Vec<(&str, &str)> = text.lines().map(|line| line.split_once("->").expect("a rule")).collect();
    let names: HashMap<&str, RuleId> =
        lines.iter().map(|(name, _)| (name.trim(), words.builder.declare_rule(name.trim()))).collect();
    for (name, body) in &lines {
        let mut alternatives = Vec::new();
        for alternative in body.split('|') {
            let mut parts = Vec::new();
            for part in alternative.split_whitespace() {
                let (part, optional) = part.strip_suffix('?').map_or((part, false), |part| (part, true));
                let node = match names.get(part) {
                    Some(&rule) => words.builder.node(Node::Rule(rule)),
                    None => words.word(if part == "_" { "" } else { part }),
                };
                parts.push(if optional { words.builder.repeat(node, 0, Some(1)) } else { node });
            }
            alternatives.push(words.builder.sequence(&parts));
        }
        let body = words.builder.choice(&alternatives);
        words.builder.define_rule(names[name.trim()], body);
    }
    let root = words.builder.node(Node::Rule(names[lines[0].0.trim()]));
    let grammar = words.builder.finish(root, Report::default()).expect("some text matches");
    let twin = Earley::new(&grammar, &words.words);
    (grammar, twin)
}

const KINDS: [&str; 24] = [
    "E -> E b T | T\nT -> a | c E c",
    "E -> E b E | E c E | a",
    "S -> S S | a",
    "S -> S S S | S S | a | _",
    "A -> A | a",
    "A -> B | a\nB -> A | b",
    "A -> B a | c\nB -> A b | a",
    "A -> B A c | b\nB -> a? b?",
    "A -> B? A a | B\nB -> A? b",
    "S -> a S b? | a",
    "S -> a S | a",
    "S -> a S? b?",
    "S -> L c | S b\nL -> L a | S a | _",
    "S -> A A A\nA -> A a | _",
    "S -> S a S b S | c | _",
    "S -> X S? Y? | a\nX -> S? a\nY -> b X | S",
    "S -> a S b? | c S b | a",
    "S -> a S b? c? | a",
    "S -> a S b? | b S c? | a",
    "S -> a T b? | a\nT -> b S c? | a S b? | b",
    "S -> a S X | a\nX -> b? c? | a b",
    "S -> a S X X | _\nX -> b? c?",
    "S -> a T X | T X X | b\nT -> a S? X? | b\nX -> b? | c",
    "S -> a S S b? | c | _",
];

#[test]
fn every_kind_of_recursion_is_read_exactly() {
    for kind in KINDS {
        let (grammar, twin) = rules(kind);
        compare(&grammar, &twin, kind);
    }
}

#[test]
fn long_texts_of_ambiguous_recursions_are_read() {
    let vocabulary = Arc::new(Vocabulary::new(&[Some("a"), Some("aa"), None], 3, &[2], &[]).unwrap());
    for (kind, length) in [("S -> S S S | a | _", 200), ("S -> S S S S | a | _", 80), ("S -> S a S | S S | _", 60)] {
        let compiled = Arc::new(CompiledGrammar::new(Arc::new(rules(kind).0), vocabulary.clone()).unwrap());
        let mut matcher = GrammarMatcher::new(compiled, &MatcherOptions::default()).unwrap();
        assert!(matcher.accept_bytes("a".repeat(length).as_bytes()).unwrap(), "{kind}");
        let mut mask = TokenSet::empty(vocabulary.vocab_size());
        matcher.fill_mask(mask.words_mut()).unwrap();
        assert_eq!(mask.iter().collect::<Vec<_>>(), [0, 1, 2], "{kind}");
    }
}

/// A frame may have been pushed at every place of these texts.
#[test]
fn stacks_of_very_ambiguous_texts_stay_small_and_exact() {
    let tokens = ["a", "b", "ab", "bba", "aaaa", "abababab"];
    let vocabulary = Arc::new(Vocabulary::new(&tokens.map(Some), tokens.len() + 1, &[6], &[]).unwrap());
    for text in ["root ::= (. root)* | . (root .)*", "root ::= \"a\" root? root? | \"b\"? root? \"a\" | \"b\""] {
        let grammar = Arc::new(Grammar::from_ebnf(text, "root").unwrap());
        let compiled = Arc::new(CompiledGrammar::new(grammar, vocabulary.clone()).unwrap());
        let mut live = GrammarMatcher::new(compiled, &MatcherOptions::default()).unwrap();
        let mut random = Random::new(5);
        let mut mask = TokenSet::empty(vocabulary.vocab_size());
        for count in 0..300 {
            let allowed: Vec<u32> = (0..2).filter(|&token| live.is_allowed(token).unwrap()).collect();
            if allowed.is_empty() {
                break;
            }
            assert!(live.accept_token(*random.pick(&allowed)).unwrap());
            if count % 60 == 7 {
                live.fill_mask(mask.words_mut()).unwrap();
                assert_eq!(mask, naive::mask(&live).unwrap(), "{text:?} after {count}");
                live.rollback(3).unwrap();
                let mut other = live.fork();
                other.fill_mask(mask.words_mut()).unwrap();
                assert_eq!(mask, naive::mask(&other).unwrap(), "{text:?} after {count}, less 3");
            }
        }
        assert!(live.memory_bytes() < 8 << 20, "{text:?}: {}", live.memory_bytes());
    }
}

#[test]
fn masks_of_every_kind_of_recursion_are_exact() {
    let tokens = ["a", "b", "c", "aa", "ab", "ba", "bc", "cb", "abab", "aab", "bbb", "cac", "caca"];
    let vocabulary = Arc::new(Vocabulary::new(&tokens.map(Some), tokens.len() + 1, &[13], &[]).unwrap());
    let mut random = Random::new(7);
    for kind in KINDS {
        let compiled = Arc::new(CompiledGrammar::new(Arc::new(rules(kind).0), vocabulary.clone()).unwrap());
        for _ in 0..5 {
            let mut live = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()).unwrap();
            for _ in 0..12 {
                let mut mask = TokenSet::empty(vocabulary.vocab_size());
                live.fill_mask(mask.words_mut()).unwrap();
                assert_eq!(mask, naive::mask(&live).unwrap(), "{kind}");
                let allowed: Vec<u32> = mask.iter().filter(|&token| token != 13).collect();
                if allowed.is_empty() {
                    break;
                }
                assert!(live.accept_token(*random.pick(&allowed)).unwrap());
            }
        }
    }
}

/// 2 alternatives at each of 40 levels: the paths to the first byte are 2^40, the places few.
#[test]
fn many_paths_to_the_same_first_byte_are_not_listed_one_by_one() {
    let mut text = String::new();
    for level in 0..40 {
        text += &format!("R{level} -> R{} b | R{} c\n", level + 1, level + 1);
    }
    text += "R40 -> a";
    let (grammar, _) = rules(&text);
    let mut live = matcher(grammar, letters());
    assert!(live.accept_bytes(b"a").unwrap());
    assert!(live.accept_bytes(&b"bc".repeat(20)).unwrap());
    assert!(live.is_completed());
    assert!(!live.accept_bytes(b"b").unwrap());
}

/// A chain of rules that all begin with the next one, longer than any call stack.
#[test]
fn a_long_chain_of_rules_is_no_problem() {
    let mut text = String::new();
    for level in 0..3000 {
        text += &format!("R{level} -> R{} b | c\n", level + 1);
    }
    text += "R3000 -> a";
    let (grammar, _) = rules(&text);
    let mut live = matcher(grammar, letters());
    assert!(live.accept_bytes(b"a").unwrap());
    assert!(live.accept_bytes(&b"b".repeat(3000)).unwrap());
    assert!(live.is_completed());
    assert!(!live.accept_bytes(b"b").unwrap());
}

/// Bytes that the memory of a matcher gains for each unit, after the first thousand of them.
fn growth(kind: &str, unit: &[u8]) -> usize {
    let (grammar, _) = rules(kind);
    let mut live = matcher(grammar, letters());
    let mut before = 0;
    for count in 0..4000 {
        if count == 1000 {
            before = live.memory_bytes();
        }
        assert!(live.accept_bytes(unit).unwrap(), "{kind}: unit {count}");
    }
    (live.memory_bytes() - before) / 3000
}

#[test]
fn lists_do_not_grow_a_stack() {
    let step = growth("S -> a S | a", b"a");
    for (kind, unit) in [
        ("S -> S a | a", &b"a"[..]),
        ("S -> a S?", b"a"),
        ("E -> E b T | T\nT -> a", b"ab"),
        ("E -> E b E | E c E | a", b"abac"),
        ("S -> S S | a", b"a"),
        ("A -> B a | b a\nB -> A b | a", b"ba"),
    ] {
        // What was accepted is kept, too, in a list that has up to twice the room.
        assert!(growth(kind, unit) <= step + 2 * (unit.len() - 1), "{kind}");
    }
}

/// What may be left out at the end of each level is one thread, not one for every level.
#[test]
fn parts_that_may_be_left_out_grow_a_stack_by_the_same_at_every_level() {
    for (kind, unit) in [
        ("S -> a S b? | a", &b"a"[..]),
        ("S -> a S b? c? | a", b"a"),
        ("S -> a S b? | b S c? | a", b"ab"),
        ("S -> a T b? | a\nT -> b S c? | b", b"ab"),
    ] {
        let step = growth(kind, unit);
        assert!(step < 2000, "{kind}: {step}");
    }
}

/// The mask of a deep stack of parts that may be left out, against the slow twin.
#[test]
fn masks_deep_in_parts_that_may_be_left_out_are_exact() {
    let tokens = ["a", "b", "c", "bb", "bcb", "bbbbbbbb", "cccc", "cb", "ab"];
    let vocabulary = Arc::new(Vocabulary::new(&tokens.map(Some), tokens.len() + 1, &[9], &[]).unwrap());
    for (kind, unit) in [
        ("S -> a S b? | a", &b"a"[..]),
        ("S -> a S b? c? | a", b"a"),
        ("S -> a S b? | b S c? | a", b"ab"),
        ("S -> a S b? | c S b c? | a", b"aac"),
    ] {
        let compiled = Arc::new(CompiledGrammar::new(Arc::new(rules(kind).0), vocabulary.clone()).unwrap());
        let mut random = Random::new(3);
        for depth in [1, 10, 70, 150, 300] {
            let mut live = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()).unwrap();
            assert!(live.accept_bytes(&unit.repeat(depth)).unwrap());
            for _ in 0..2 * depth + 3 {
                let mut mask = TokenSet::empty(vocabulary.vocab_size());
                live.fill_mask(mask.words_mut()).unwrap();
                assert_eq!(mask, naive::mask(&live).unwrap(), "{kind} at {depth}");
                // Upwards again nearly always, now and then one down.
                let fits = |&token: &u32| token != 9 && (tokens[token as usize] != "a" || random.chance(4));
                let allowed: Vec<u32> = mask.iter().filter(fits).collect();
                if allowed.is_empty() {
                    break;
                }
                let before = live.num_accepted_tokens();
                assert!(live.accept_token(*random.pick(&allowed)).unwrap());
                if random.chance(10) {
                    live.rollback(before.min(3)).unwrap();
                }
            }
        }
    }
}

/// Each level multiplies the ways to read one text, and the counts keep them apart.
#[test]
fn work_on_one_step_is_limited_and_the_matcher_stays_usable() {
    let mut words = Words::default();
    let rule = words.builder.declare_rule("r");
    let recursion = words.builder.node(Node::Rule(rule));
    let again = words.builder.repeat(recursion, 0, Some(1));
    let a = words.word("a");
    let part = words.builder.repeat(a, 0, Some(1));
    let pair = words.builder.sequence(&[again, part]);
    let inner = words.builder.repeat(pair, 1, None);
    let outer = words.builder.repeat(inner, 1, Some(61));
    words.builder.define_rule(rule, outer);
    let grammar = words.builder.finish(recursion, Report::default()).unwrap();
    let long = "a".repeat(64);
    let tokens = [Some("a"), Some(&long[..])];
    let vocabulary = Arc::new(Vocabulary::new(&tokens, 3, &[2], &[]).unwrap());
    let mut live = matcher(grammar, vocabulary);
    let mut before = live.fork();
    match live.accept_token(1) {
        Ok(accepted) => assert!(accepted),
        Err(error) => assert!(error.to_string().contains("ambiguous"), "{error}"),
    }
    assert!(before.accept_token(0).unwrap());
    assert!(before.is_completed());
}
