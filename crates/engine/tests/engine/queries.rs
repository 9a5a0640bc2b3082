//! Questions that change nothing, against their obvious twins, on random grammars.

use proptest::prelude::*;
use stencilm_engine::{DraftTree, Explanation, GrammarMatcher, MatcherError, Status, TokenSet, Verdict};
use stencilm_fuzz::choices::random_bytes;
use stencilm_fuzz::grammars::random_grammar;
use stencilm_fuzz::vocabularies::Tokens;
use stencilm_fuzz::{Choices, notations};
use stencilm_grammar::Node;

use crate::common::matcher;

/// A matcher of a random grammar after a random walk.
fn walked(random: &mut Choices<'_>) -> Option<GrammarMatcher> {
    let grammar = if random.chance(3) { notations::json_schema(random).0? } else { random_grammar(random)? };
    let vocabulary = Tokens::random(random, &[]).vocabulary();
    let mut matcher = matcher(grammar, vocabulary);
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_those_of_trying(seed in any::<u64>()) {
        let bytes = random_bytes(seed, 1024);
        let mut random = Choices::new(&bytes);
        let Some(mut matcher) = walked(&mut random) else { return Ok(()) };
        let before = state(&mut matcher);
        let vocabulary = matcher.compiled().vocabulary().clone();

        // Texts made of tokens are mostly nearly right.
        let ids: Vec<u32> = (0..random.below(6)).map(|_| random.below(vocabulary.vocab_size() + 1) as u32).collect();
        let mut probe = matcher.fork();
        let expected = ids.iter().take_while(|&&id| probe.accept_token(id).unwrap()).count();
        prop_assert_eq!(matcher.validate_tokens(ids.iter().copied()).unwrap(), expected);

        let text: Vec<u8> = ids.iter().flat_map(|&id| vocabulary.token_bytes(id).unwrap_or_default()).copied().collect();
        let verdict = matcher.longest_valid_prefix(&text).unwrap();
        if matcher.is_terminated() {
            prop_assert_eq!(verdict.valid_bytes, 0);
        } else {
            prop_assert_eq!(verdict, byte_by_byte(&matcher, &text));
            let forced = matcher.forced_bytes().unwrap();
            let tried = forced_by_trying(&matcher);
            let forced = &forced[..forced.len().min(50)];
            // Bytes tell nothing of the single tokens that may come in their place.
            let single = matcher.compiled().grammar().nodes().iter().any(|node| matches!(node, Node::Token(_)));
            prop_assert!(tried.starts_with(forced) && (single || forced == tried), "{:?} {:?}", forced, tried);
        }

        for id in 0..vocabulary.vocab_size() as u32 + 2 {
            let allowed = (id as usize) < vocabulary.vocab_size() && matcher.is_allowed(id).unwrap();
            let why = matcher.explain(id).unwrap();
            prop_assert_eq!(why == Explanation::Allowed, allowed, "token {} {}", id, why);
            if let Explanation::Refused { fits, byte, expected } = why {
                let mut probe = matcher.fork();
                prop_assert!(fits.is_empty() || probe.accept_bytes(&fits).unwrap());
                for other in 0..=255 {
                    let fits = probe.fork().accept_bytes(&[other]).unwrap();
                    prop_assert_eq!(fits, expected.bytes.contains(other));
                }
                prop_assert!(!expected.bytes.contains(byte));
                prop_assert_eq!(expected.end, probe.is_completed());
            }
        }
        prop_assert_eq!(state(&mut matcher), before);
    }

    #[test]
    fn a_completion_completes(seed in any::<u64>()) {
        let bytes = random_bytes(seed, 1024);
        let mut random = Choices::new(&bytes);
        let Some(mut matcher) = walked(&mut random) else { return Ok(()) };
        // Now and then in the middle of a token.
        if random.chance(2) {
            let text: Vec<u8> = (0..random.below(3)).map(|_| *random.pick(b"\"a{(b")).collect();
            matcher.accept_bytes(&text).unwrap();
        }
        let before = state(&mut matcher);
        match matcher.shortest_completion(100_000) {
            Ok(text) => {
                prop_assert_eq!(&matcher.shortest_completion(100_000).unwrap(), &text, "the same again");
                prop_assert_eq!(text.is_empty(), matcher.is_completed());
                if !matcher.is_terminated() {
                    let verdict = matcher.longest_valid_prefix(&text).unwrap();
                    prop_assert_eq!(verdict, Verdict { status: Status::Complete, valid_bytes: text.len() });
                    if let Some(less) = text.len().checked_sub(1) {
                        let error = matcher.shortest_completion(less);
                        let short = !matches!(error, Err(MatcherError::CompletionTooLong { .. }));
                        prop_assert!(!short || error.is_ok_and(|other| other.len() == text.len()), "the estimate is a bound");
                    }
                }
            }
            Err(MatcherError::NoTextCompletes | MatcherError::Engine(_)) => {}
            Err(error) => prop_assert!(false, "{}", error),
        }
        prop_assert_eq!(state(&mut matcher), before);
    }

    #[test]
    fn rows_of_a_draft_tree_are_the_masks_behind_its_nodes(seed in any::<u64>()) {
        let bytes = random_bytes(seed, 1024);
        let mut random = Choices::new(&bytes);
        let Some(mut matcher) = walked(&mut random) else { return Ok(()) };
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
                prop_assert_eq!(done, Ok(true));
                prop_assert_eq!(rows, expected.concat());
            }
            None => prop_assert!(done.is_err()),
        }
        prop_assert_eq!(state(&mut matcher), before);
    }
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
