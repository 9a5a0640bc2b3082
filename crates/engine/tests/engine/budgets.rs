//! Budgets of tokens and temperatures: held against a reading of the grammar in which every thread has a stack of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use stencilm_engine::{
    CompiledGrammar, EngineError, GrammarMatcher, IndexBuilder, IndexError, IndexLimits, MatcherError, MatcherOptions,
    TokenSet, Vocabulary, naive,
};
use stencilm_grammar::{Grammar, GrammarBuilder, Mark, Node, NodeId, Report, RuleId};
use stencilm_regex::{Expr, ExprId, ExprSet};

use crate::common::matcher;

const TOKENS: [&str; 9] = ["a", "b", "ab", "ba", "aab", "bbb", "</s>", "c", "ca"];
const STOP: u32 = 6;

fn vocabulary() -> Arc<Vocabulary> {
    Arc::new(Vocabulary::new(&TOKENS.map(Some), TOKENS.len(), &[STOP], &[(STOP, "</s>".to_owned())]).unwrap())
}

/// A random part of a grammar.
#[derive(Clone, Debug)]
enum Tree {
    Text(&'static str),
    All(Vec<Tree>),
    Any(Vec<Tree>),
    Repeat(Box<Tree>, u32, Option<u32>),
    Limit(u32, Box<Tree>),
    /// The whole grammar again, after a letter.
    Again,
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        4 => prop::sample::select(&["a", "b", "ab", "", "bb", "c"][..]).prop_map(Tree::Text),
        1 => Just(Tree::Again),
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        let several = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            3 => several().prop_map(Tree::All),
            2 => several().prop_map(Tree::Any),
            3 => (inner.clone(), 0u32..2, prop::option::of(2u32..4))
                .prop_map(|(body, min, max)| Tree::Repeat(Box::new(body), min, max)),
            4 => (1u32..4, inner.clone()).prop_map(|(budget, body)| Tree::Limit(budget, Box::new(body))),
        ]
    })
}

fn build(builder: &mut GrammarBuilder, root: RuleId, tree: &Tree) -> NodeId {
    match tree {
        Tree::Text(text) => {
            let expr = builder.exprs.literal(text.as_bytes());
            builder.lexeme(expr)
        }
        Tree::All(parts) => {
            let parts: Vec<NodeId> = parts.iter().map(|part| build(builder, root, part)).collect();
            builder.sequence(&parts)
        }
        Tree::Any(parts) => {
            let parts: Vec<NodeId> = parts.iter().map(|part| build(builder, root, part)).collect();
            builder.choice(&parts)
        }
        Tree::Repeat(body, min, max) => {
            let body = build(builder, root, body);
            builder.repeat(body, *min, *max)
        }
        Tree::Limit(budget, body) => {
            let body = build(builder, root, body);
            builder.marked(Mark::MaxTokens(*budget), body)
        }
        Tree::Again => {
            let letter = build(builder, root, &Tree::Text("c"));
            let again = builder.node(Node::Rule(root));
            builder.sequence(&[letter, again])
        }
    }
}

/// The grammar of a tree; nothing at all may match where recursion does not end.
fn grammar(tree: &Tree) -> Option<Grammar> {
    let mut builder = GrammarBuilder::default();
    let root = builder.declare_rule("root");
    let body = build(&mut builder, root, tree);
    builder.define_rule(root, body);
    let start = builder.node(Node::Rule(root));
    builder.finish(start, Report::default()).ok()
}

/// What waits on a stack of the twin, the top one last.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Item {
    Bytes(Vec<u8>),
    Node(u32),
    /// A repetition with so many rounds done.
    Rounds(u32, u32),
    /// The end of a part with a budget that began after so many tokens.
    End(u32, u32),
}

type Stack = Vec<Item>;

/// Every way to read the text so far, each with its own stack, and the parts that may end here.
#[derive(Clone, Default)]
struct Twin {
    threads: BTreeSet<Stack>,
    ended: BTreeSet<Stack>,
    tokens: u32,
}

impl Twin {
    fn new(grammar: &Grammar) -> Twin {
        let start = vec![Item::Node(grammar.root().0)];
        let (threads, ended) = closed(grammar, [start].into(), 0);
        Twin { threads, ended, tokens: 0 }
    }

    fn is_completed(&self) -> bool {
        self.threads.contains(&Vec::new())
    }

    /// Without the threads in parts that may end and have seen as many tokens as they may.
    fn dropped(&mut self, grammar: &Grammar, tokens: u32) {
        let spent = |part: &&Stack| match part.last() {
            Some(&Item::End(node, began)) => tokens - began.min(tokens) >= budget(grammar, node),
            _ => unreachable!("a part that ends is the top of its stack"),
        };
        let spent: Vec<&Stack> = self.ended.iter().filter(spent).collect();
        let kept: BTreeSet<Stack> =
            self.threads.iter().filter(|thread| !spent.iter().any(|part| thread.starts_with(part))).cloned().collect();
        if !kept.is_empty() {
            self.threads = kept;
        }
    }

    /// After a token; nothing where it does not fit.
    fn after(&self, grammar: &Grammar, token: &[u8]) -> Option<Twin> {
        let mut next = self.clone();
        for &byte in token {
            let mut moved = BTreeSet::new();
            for thread in &next.threads {
                let Some((Item::Bytes(bytes), below)) = thread.split_last() else { continue };
                if bytes[0] == byte {
                    let mut stack = below.to_vec();
                    stack.push(Item::Bytes(bytes[1..].to_vec()));
                    moved.insert(stack);
                }
            }
            (next.threads, next.ended) = closed(grammar, moved, self.tokens + 1);
            next.dropped(grammar, self.tokens);
        }
        next.tokens += 1;
        next.dropped(grammar, next.tokens);
        (!next.threads.is_empty()).then_some(next)
    }
}

fn budget(grammar: &Grammar, node: u32) -> u32 {
    match grammar.node(NodeId(node)) {
        Node::Marked { mark: Mark::MaxTokens(budget), .. } => *budget,
        node => unreachable!("{node:?} has no budget"),
    }
}

/// The bytes of a plain text.
fn spelled(exprs: &ExprSet, expr: ExprId) -> Vec<u8> {
    match exprs.get(expr) {
        Expr::Empty => Vec::new(),
        Expr::Bytes(set) => vec![set.single().expect("a letter is one byte")],
        Expr::Concat { head, tail } => [spelled(exprs, *head), spelled(exprs, *tail)].concat(),
        Expr::Repeat { body, min, .. } => spelled(exprs, *body).repeat(*min as usize),
        other => unreachable!("{other:?} is no plain text"),
    }
}

/// The stacks that begin with bytes, and the empty one; and those that stand before the end of a part.
fn closed(grammar: &Grammar, mut work: BTreeSet<Stack>, tokens: u32) -> (BTreeSet<Stack>, BTreeSet<Stack>) {
    let (mut threads, mut ended, mut seen) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    while let Some(stack) = work.pop_first() {
        if !seen.insert(stack.clone()) {
            continue;
        }
        let Some((top, below)) = stack.split_last() else {
            threads.insert(stack);
            continue;
        };
        let with = |items: &[Item]| [below, items].concat();
        match top {
            Item::Bytes(bytes) if bytes.is_empty() => drop(work.insert(below.to_vec())),
            Item::Bytes(_) => drop(threads.insert(stack)),
            Item::End(..) => {
                ended.insert(stack.clone());
                work.insert(below.to_vec());
            }
            &Item::Rounds(node, done) => {
                let Node::Repeat { body, min, max } = *grammar.node(NodeId(node)) else { unreachable!() };
                if done >= min {
                    work.insert(below.to_vec());
                }
                if max.is_none_or(|max| done < max) {
                    // Unbounded counts are all equivalent from the least one on.
                    let done = (done + 1).min(max.unwrap_or(min.max(1)));
                    work.insert(with(&[Item::Rounds(node, done), Item::Node(body.0)]));
                }
            }
            &Item::Node(id) => match grammar.node(NodeId(id)) {
                Node::Lexeme(expr) => {
                    work.insert(with(&[Item::Bytes(spelled(grammar.exprs(), *expr))]));
                }
                Node::Sequence(parts) => {
                    let parts: Vec<Item> = parts.iter().rev().map(|part| Item::Node(part.0)).collect();
                    work.insert(with(&parts));
                }
                Node::Choice(parts) => work.extend(parts.iter().map(|part| with(&[Item::Node(part.0)]))),
                Node::Repeat { .. } => drop(work.insert(with(&[Item::Rounds(id, 0)]))),
                Node::Rule(rule) => drop(work.insert(with(&[Item::Node(grammar.rule(*rule).body.0)]))),
                Node::Marked { body, .. } => {
                    work.insert(with(&[Item::End(id, tokens), Item::Node(body.0)]));
                }
                node => unreachable!("{node:?} is not made here"),
            },
        }
    }
    (threads, ended)
}

fn mask(matcher: &mut GrammarMatcher) -> TokenSet {
    let mut mask = TokenSet::empty(TOKENS.len());
    match matcher.fill_mask(mask.words_mut()) {
        Ok(_) | Err(MatcherError::NoTokenFits | MatcherError::NoStopToken) => {}
        Err(error) => panic!("{error}"),
    }
    mask
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn masks_are_those_of_the_reading_with_a_stack_for_every_thread(
        tree in trees(),
        choices in prop::collection::vec(0usize..100, 0..14),
        back in 0usize..6,
    ) {
        let Some(grammar) = grammar(&tree) else { return Ok(()) };
        let mut twins = vec![Twin::new(&grammar)];
        let mut matcher = matcher(grammar.clone(), vocabulary());
        let mut taken: Vec<u32> = Vec::new();
        let check = |matcher: &mut GrammarMatcher, twin: &Twin| {
            let allowed: Vec<u32> = (0..TOKENS.len() as u32)
                .filter(|&id| match id {
                    STOP => twin.is_completed(),
                    _ => twin.after(&grammar, TOKENS[id as usize].as_bytes()).is_some(),
                })
                .collect();
            let mask = mask(matcher);
            prop_assert_eq!(mask.iter().collect::<Vec<u32>>(), allowed.clone());
            prop_assert_eq!(naive::mask(matcher).unwrap(), mask);
            for id in 0..TOKENS.len() as u32 {
                prop_assert_eq!(matcher.is_allowed(id).unwrap(), allowed.contains(&id), "token {}", id);
            }
            let forced = matcher.forced_bytes().unwrap();
            prop_assert!(matcher.fork().accept_bytes(&forced).unwrap());
            Ok(allowed)
        };
        for choice in choices {
            let twin = twins.last().expect("the first is there").clone();
            // Stacks that count deeper and deeper would make the twin slow, not the matcher.
            if twin.threads.len() > 2_000 {
                break;
            }
            let mut allowed = check(&mut matcher, &twin)?;
            allowed.retain(|&id| id != STOP);
            if allowed.is_empty() {
                break;
            }
            let id = allowed[choice % allowed.len()];
            prop_assert!(matcher.accept_token(id).unwrap());
            taken.push(id);
            twins.push(twin.after(&grammar, TOKENS[id as usize].as_bytes()).expect("it is allowed"));
        }
        let back = back.min(taken.len());
        let mut forked = matcher.fork();
        forked.rollback(back).unwrap();
        check(&mut forked, &twins[taken.len() - back])?;
        check(&mut matcher, &twins[taken.len()])?;
        for &id in &taken[taken.len() - back..] {
            prop_assert!(forked.accept_token(id).unwrap());
        }
        prop_assert_eq!(mask(&mut forked), mask(&mut matcher));
    }
}

/// What may come after these tokens, by the text of each token.
fn allowed(ebnf: &str, tokens: &[u32]) -> Vec<&'static str> {
    let mut matcher = matcher(Grammar::from_ebnf(ebnf, "root").unwrap(), vocabulary());
    for &id in tokens {
        assert!(matcher.accept_token(id).unwrap(), "{ebnf}: {id}");
    }
    assert_eq!(mask(&mut matcher), naive::mask(&matcher).unwrap());
    mask(&mut matcher).iter().map(|id| TOKENS[id as usize]).collect()
}

#[test]
fn a_part_ends_when_its_budget_is_spent() {
    let free = r#"root ::= text "c"
text[max_tokens=2] ::= [ab]*"#;
    assert_eq!(allowed(free, &[0]), ["a", "b", "ab", "ba", "aab", "bbb", "c"]);
    assert_eq!(allowed(free, &[0, 4]), ["c"]);
    // The token in which a part begins is not counted.
    let behind = r#"root ::= "a" text "c"
text[max_tokens=1] ::= [ab]*"#;
    assert_eq!(allowed(behind, &[2, 1]), ["c"]);
    assert_eq!(allowed(behind, &[2]), ["a", "b", "ab", "ba", "aab", "bbb", "c"]);
    // Each occurrence has its own.
    let each = r#"root ::= text "c" text
text[max_tokens=1] ::= [ab]*"#;
    assert_eq!(allowed(each, &[5, 8]), ["a", "b", "ab", "ba", "aab", "bbb", "</s>"]);
    assert_eq!(allowed(each, &[5, 8, 0]), ["</s>"]);
}

#[test]
fn a_part_that_cannot_end_yet_ends_as_soon_as_it_can() {
    let pairs = r#"root ::= pairs "c"
pairs[max_tokens=1] ::= ("a" "b")*"#;
    assert_eq!(allowed(pairs, &[0]), ["b"], "not ba, which reads on behind the end");
    assert_eq!(allowed(pairs, &[0, 1]), ["c"]);
    assert_eq!(allowed(pairs, &[2]), ["c"]);
}

#[test]
fn texts_are_no_tokens() {
    let grammar = Grammar::from_ebnf("root ::= text \"c\"\ntext[max_tokens=1] ::= [ab]*", "root").unwrap();
    let mut matcher = matcher(grammar, vocabulary());
    assert!(matcher.accept_bytes(b"ababababab").unwrap());
    assert_eq!(mask(&mut matcher).iter().count(), 7);
    assert!(matcher.accept_token(0).unwrap());
    assert_eq!(mask(&mut matcher).iter().collect::<Vec<u32>>(), [7]);
    assert!(!matcher.accept_bytes(b"a").unwrap());
}

#[test]
fn the_innermost_temperature_counts_and_the_highest_of_several() {
    let grammar = r#"root ::= outer "c" (one | two)
outer[temperature=0.5] ::= "a" inner "a"
inner[temperature=0.25] ::= "b"*
one[temperature=0.5] ::= "a"
two[temperature=1.5] ::= "a" "a""#;
    let mut matcher = matcher(Grammar::from_ebnf(grammar, "root").unwrap(), vocabulary());
    let mut seen = vec![matcher.temperature().unwrap()];
    for id in [0, 1, 1, 0, 7, 0] {
        assert!(matcher.accept_token(id).unwrap());
        seen.push(matcher.temperature().unwrap());
    }
    let half = Some(0.5);
    assert_eq!(seen, [half, half, half, half, None, Some(1.5), Some(1.5)]);
    matcher.rollback(2).unwrap();
    assert_eq!(matcher.temperature().unwrap(), None);
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let compile = |ebnf: &str| CompiledGrammar::new(Arc::new(Grammar::from_ebnf(ebnf, "root").unwrap()), vocabulary());
    for rule in
        [r#"root[max_tokens=3] ::= root "a" | "b""#, "root ::= a\na[temperature=1] ::= b? \"b\" | \"c\"\nb ::= a"]
    {
        let error = compile(rule).map(drop).unwrap_err();
        assert!(matches!(error, EngineError::NotRun(_)), "{rule}: {error}");
    }
    let compiled = compile("root ::= a\na[max_tokens=3] ::= \"b\"*").unwrap();
    let limits = IndexLimits { max_states: 100, max_bytes: 100_000 };
    let index = IndexBuilder::new(&compiled, limits).map(drop);
    assert_eq!(index.unwrap_err(), IndexError::TokenBudgets);
    let matcher = GrammarMatcher::new(Arc::new(compiled), &MatcherOptions::default());
    assert_eq!(matcher.unwrap().temperature().unwrap(), None);
}
