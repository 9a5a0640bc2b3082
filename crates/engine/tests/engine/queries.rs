//! Questions that change nothing, against their obvious twins, on random grammars.
//!
//! The cases are a fixed list, so that a run says the same every time; `STENCILM_SEEDS=300..100000` runs others.

use std::ops::Range;
use std::panic;
use std::sync::Arc;

use stencilm_engine::{
    CompiledGrammar, DraftTree, EngineError, Explanation, GrammarMatcher, MatcherError, MatcherOptions, Status,
    TokenSet, Verdict,
};
use stencilm_fuzz::choices::random_bytes;
use stencilm_fuzz::grammars::random_grammar;
use stencilm_fuzz::vocabularies::Tokens;
use stencilm_fuzz::{Choices, notations};
use stencilm_grammar::Node;

/// Longest completion that is asked for, in bytes.
const MOST: usize = 100_000;

/// A matcher of a random grammar after a random walk.
fn walked(random: &mut Choices<'_>) -> Option<GrammarMatcher> {
    let grammar = if random.chance(3) { notations::json_schema(random).0? } else { random_grammar(random)? };
    let vocabulary = Tokens::random(random, &[]).vocabulary();
    // Arrays whose elements must differ are refused where it cannot be told that values are left.
    let compiled = match CompiledGrammar::new(Arc::new(grammar), vocabulary) {
        Err(EngineError::NotRun(_) | EngineError::TooFewValues { .. }) => return None,
        compiled => Arc::new(compiled.unwrap()),
    };
    let mut matcher = GrammarMatcher::new(compiled, &MatcherOptions::default()).unwrap();
    for _ in 0..random.below(12) {
        let allowed = allowed(&mut matcher)?;
        matcher.accept_token(*random.pick(&allowed)).unwrap();
        if matcher.is_terminated() {
            break;
        }
    }
    Some(matcher)
}

fn allowed(matcher: &mut GrammarMatcher) -> Option<Vec<u32>> {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    matcher.fill_mask(mask.words_mut()).ok()?;
    Some(mask.iter().collect())
}

/// Everything that a question could have changed.
fn state(matcher: &mut GrammarMatcher) -> (usize, bool, bool, Option<Vec<u32>>) {
    (matcher.num_accepted_tokens(), matcher.is_completed(), matcher.is_terminated(), allowed(matcher))
}

fn byte_by_byte(matcher: &GrammarMatcher, text: &[u8]) -> Verdict {
    let mut probe = matcher.fork();
    let fits = |byte: &&u8| probe.accept_bytes(&[**byte]).unwrap();
    let valid_bytes = text.iter().take_while(fits).count();
    let status = match (valid_bytes == text.len(), probe.is_completed()) {
        (false, _) => Status::Dead,
        (true, true) => Status::Complete,
        (true, false) => Status::Viable,
    };
    Verdict { status, valid_bytes }
}

fn forced_by_trying(matcher: &GrammarMatcher) -> Vec<u8> {
    let mut probe = matcher.fork();
    let mut forced = Vec::new();
    while !probe.is_completed() && forced.len() < 50 {
        let mut fit = (0..=255).filter(|&byte| probe.fork().accept_bytes(&[byte]).unwrap());
        let (Some(byte), None) = (fit.next(), fit.next()) else { break };
        forced.push(byte);
        assert!(probe.accept_bytes(&[byte]).unwrap());
    }
    forced
}

/// The seeds of a usual run, or those of `STENCILM_SEEDS`, written as `from..to`.
fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("STENCILM_SEEDS") else { return 0..300 };
    let ends = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    ends.unwrap_or_else(|| panic!("STENCILM_SEEDS is {asked:?}; write it as from..to, such as 0..1000"))
}

/// Runs a check on the matcher of every seed, and says which seed it was where that fails.
fn for_each_case(check: impl Fn(GrammarMatcher, &mut Choices<'_>) + panic::RefUnwindSafe) {
    for seed in seeds() {
        let bytes = random_bytes(seed, 1024);
        let case = || {
            let mut random = Choices::new(&bytes);
            if let Some(matcher) = walked(&mut random) {
                check(matcher, &mut random);
            }
        };
        panic::catch_unwind(case).unwrap_or_else(|_| panic!("seed {seed}: see the panic before this one"));
    }
}

#[test]
fn answers_are_those_of_trying() {
    for_each_case(|mut matcher, random| {
        let before = state(&mut matcher);
        let vocabulary = matcher.compiled().vocabulary().clone();

        // Texts made of tokens are mostly nearly right.
        let ids: Vec<u32> = (0..random.below(6)).map(|_| random.below(vocabulary.vocab_size() + 1) as u32).collect();
        let mut probe = matcher.fork();
        let expected = ids.iter().take_while(|&&id| probe.accept_token(id).unwrap()).count();
        assert_eq!(matcher.validate_tokens(ids.iter().copied()).unwrap(), expected);

        let text: Vec<u8> =
            ids.iter().flat_map(|&id| vocabulary.token_bytes(id).unwrap_or_default()).copied().collect();
        let verdict = matcher.longest_valid_prefix(&text).unwrap();
        if matcher.is_terminated() {
            assert_eq!(verdict.valid_bytes, 0);
        } else {
            assert_eq!(verdict, byte_by_byte(&matcher, &text));
            let forced = matcher.forced_bytes().unwrap();
            let tried = forced_by_trying(&matcher);
            let forced = &forced[..forced.len().min(50)];
            // Bytes tell nothing of the single tokens that may come in their place.
            let single = matcher.compiled().grammar().nodes().iter().any(|node| matches!(node, Node::Token(_)));
            assert!(tried.starts_with(forced) && (single || forced == tried), "{:?} {:?}", forced, tried);
        }

        for id in 0..vocabulary.vocab_size() as u32 + 2 {
            let allowed = (id as usize) < vocabulary.vocab_size() && matcher.is_allowed(id).unwrap();
            let why = matcher.explain(id).unwrap();
            assert_eq!(why == Explanation::Allowed, allowed, "token {} {}", id, why);
            if let Explanation::Refused { fits, byte, expected } = why {
                let mut probe = matcher.fork();
                assert!(fits.is_empty() || probe.accept_bytes(&fits).unwrap());
                for other in 0..=255 {
                    let fits = probe.fork().accept_bytes(&[other]).unwrap();
                    assert_eq!(fits, expected.bytes.contains(other));
                }
                assert!(!expected.bytes.contains(byte));
                assert_eq!(expected.end, probe.is_completed());
            }
        }
        assert_eq!(state(&mut matcher), before);
    });
}

#[test]
fn a_completion_completes() {
    for_each_case(|mut matcher, random| {
        // Now and then in the middle of a token.
        if random.chance(2) {
            let text: Vec<u8> = (0..random.below(3)).map(|_| *random.pick(b"\"a{(b")).collect();
            matcher.accept_bytes(&text).unwrap();
        }
        let before = state(&mut matcher);
        match matcher.shortest_completion(MOST) {
            Ok(text) => {
                assert_eq!(&matcher.shortest_completion(MOST).unwrap(), &text, "the same again");
                assert_eq!(text.is_empty(), matcher.is_completed());
                if !matcher.is_terminated() {
                    let verdict = matcher.longest_valid_prefix(&text).unwrap();
                    assert_eq!(verdict, Verdict { status: Status::Complete, valid_bytes: text.len() });
                    if let Some(less) = text.len().checked_sub(1) {
                        let error = matcher.shortest_completion(less);
                        let short = !matches!(error, Err(MatcherError::CompletionTooLong { .. }));
                        assert!(
                            !short || error.is_ok_and(|other| other.len() == text.len()),
                            "the estimate is a bound"
                        );
                    }
                }
            }
            Err(MatcherError::NoTextCompletes | MatcherError::Engine(_)) => {}
            // Where a grammar counts to large numbers.
            Err(MatcherError::CompletionTooLong { bytes, max_bytes: MOST }) => assert!(bytes > MOST as u64),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(state(&mut matcher), before);
    });
}

#[test]
fn rows_of_a_draft_tree_are_the_masks_behind_its_nodes() {
    for_each_case(|mut matcher, random| {
        let before = state(&mut matcher);
        let vocabulary = matcher.compiled().vocabulary().clone();
        let words = vocabulary.mask_words();
        // A random tree: each node but the first has an earlier one as its parent.
        let count = 1 + random.below(12);
        let parents: Vec<usize> = (0..count).map(|node| if node == 0 { 0 } else { random.below(node) }).collect();
        let tokens: Vec<i64> = (0..count)
            .map(|node| {
                let mut at = path(&matcher, &parents, &[], node);
                let likely = at.as_mut().and_then(allowed).unwrap_or_default();
                if likely.is_empty() || random.chance(4) {
                    random.below(vocabulary.vocab_size() + 3) as i64 - 1
                } else {
                    i64::from(*random.pick(&likely))
                }
            })
            .collect();
        let (mut next_token, mut next_sibling) = (vec![-1; count], vec![-1; count]);
        for node in (1..count).rev() {
            next_sibling[node] = next_token[parents[node]];
            next_token[parents[node]] = node as i64;
        }
        let tree = DraftTree::new(&next_token, &next_sibling, &tokens, 0).unwrap();
        let mut rows = vec![7; words * count];
        let done = matcher.traverse_draft_tree(&tree, &mut rows, None);
        let expected: Option<Vec<Vec<u32>>> = (0..count)
            .map(|node| {
                let mut row = vec![0; words];
                if let Some(mut at) = path(&matcher, &parents, &tokens, node)
                    && !at.is_terminated()
                {
                    at.fill_mask(&mut row).ok()?;
                }
                Some(row)
            })
            .collect();
        match expected {
            Some(expected) => {
                assert_eq!(done, Ok(true));
                assert_eq!(rows, expected.concat());
            }
            None => assert!(done.is_err()),
        }
        assert_eq!(state(&mut matcher), before);
    });
}

/// The matcher behind a node, `None` where a token on the way is refused. Without tokens: where the parent's first token
/// would be chosen, which is only known for children of the root.
fn path(matcher: &GrammarMatcher, parents: &[usize], tokens: &[i64], node: usize) -> Option<GrammarMatcher> {
    let mut way = Vec::new();
    let mut at = node;
    while at != 0 {
        way.push(at);
        at = parents[at];
    }
    let mut matcher = matcher.fork();
    for &node in way.iter().rev() {
        let Some(&token) = tokens.get(node) else { break };
        if !u32::try_from(token).is_ok_and(|id| matcher.accept_token(id).unwrap()) {
            return None;
        }
    }
    Some(matcher)
}
