//! Every mask equals the slow twin's, before and after rollback, in a fork, and when compiled anew.

mod common;

use common::{Random, matcher, random_grammar, random_vocabulary};
use proptest::prelude::*;
use std::sync::Arc;
use stencilm_engine::{CompiledGrammar, GrammarMatcher, MatcherError, MatcherOptions, TokenSet, naive};

fn mask(matcher: &mut GrammarMatcher) -> TokenSet {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    match matcher.fill_mask(mask.words_mut()) {
        Ok(_) | Err(MatcherError::NoTokenFits(_)) => mask,
        Err(error) => panic!("{error}"),
    }
}

fn walk(seed: u64) {
    let mut random = Random::new(seed);
    let Some(grammar) = random_grammar(&mut random) else { return };
    let vocabulary = random_vocabulary(&mut random);
    let mut live = matcher(grammar.clone(), vocabulary.clone());
    let mut accepted: Vec<u32> = Vec::new();
    let mut seen: Vec<TokenSet> = Vec::new();
    for _ in 0..30 {
        let fast = mask(&mut live);
        assert_eq!(fast, naive::mask(&live).unwrap(), "seed {seed} after {accepted:?}");
        seen.truncate(accepted.len());
        seen.push(fast.clone());
        let allowed: Vec<u32> = fast.iter().collect();
        if let Some(&token) = allowed.first() {
            assert!(live.is_allowed(token).unwrap());
        }
        if random.chance(5) && !accepted.is_empty() {
            let back = 1 + random.below(accepted.len());
            live.rollback(back).unwrap();
            accepted.truncate(accepted.len() - back);
            assert_eq!(mask(&mut live), seen[accepted.len()], "seed {seed}: rollback to {accepted:?}");
            continue;
        }
        if random.chance(8) {
            let mut fork = live.fork();
            assert_eq!(mask(&mut fork), fast, "seed {seed}: fork at {accepted:?}");
            std::mem::swap(&mut live, &mut fork);
        }
        if allowed.is_empty() {
            break;
        }
        let token = *random.pick(&allowed);
        assert!(live.accept_token(token).unwrap(), "seed {seed}: {token} is in the mask after {accepted:?}");
        accepted.push(token);
        if live.is_terminated() {
            live.rollback(1).unwrap();
            accepted.pop();
            assert!(live.is_completed());
            if random.chance(2) {
                break;
            }
        }
    }
    // The same prefix in a fresh machine and lexicon, without any cache.
    let fresh = Arc::new(CompiledGrammar::new(Arc::new(grammar), random_vocabulary_again(seed)));
    let mut fresh = GrammarMatcher::new(fresh, &MatcherOptions::default()).unwrap();
    for &token in &accepted {
        assert!(fresh.accept_token(token).unwrap());
    }
    assert_eq!(mask(&mut fresh), mask(&mut live), "seed {seed}: fresh after {accepted:?}");
}

fn random_vocabulary_again(seed: u64) -> Arc<stencilm_engine::Vocabulary> {
    let mut random = Random::new(seed);
    random_grammar(&mut random);
    random_vocabulary(&mut random)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fast_mask_equals_naive_mask(seed in any::<u64>()) {
        walk(seed);
    }
}
