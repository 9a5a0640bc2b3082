//! Every mask equals the slow twin's, before and after rollback, in a fork, and when compiled anew.

use crate::common::{Random, random_grammar, random_vocabulary};
use proptest::prelude::*;
use std::sync::Arc;
use stencilm_engine::{CompiledGrammar, GrammarMatcher, MatcherError, MatcherOptions, TokenSet, naive};

fn mask(matcher: &mut GrammarMatcher) -> TokenSet {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    match matcher.fill_mask(mask.words_mut()) {
        Ok(_) | Err(MatcherError::NoTokenFits | MatcherError::NoStopToken) => mask,
        Err(error) => panic!("{error}"),
    }
}

/// Three sequences of one compiled grammar, so that the later ones find masks that the earlier ones left.
fn walks(seed: u64) {
    let mut random = Random::new(seed);
    let Some(grammar) = random_grammar(&mut random) else { return };
    let grammar = Arc::new(grammar);
    let compiled = Arc::new(CompiledGrammar::new(grammar.clone(), random_vocabulary(&mut random)));
    for _ in 0..3 {
        let (accepted, last) = walk(seed, &mut random, &compiled);
        // The same prefix in a fresh machine and lexicon, without anything kept.
        let fresh = Arc::new(CompiledGrammar::new(grammar.clone(), random_vocabulary_again(seed)));
        let mut fresh = GrammarMatcher::new(fresh, &MatcherOptions::default()).unwrap();
        for &token in &accepted {
            assert!(fresh.accept_token(token).unwrap());
        }
        assert_eq!(mask(&mut fresh), last, "seed {seed}: fresh after {accepted:?}");
    }
}

fn walk(seed: u64, random: &mut Random, compiled: &Arc<CompiledGrammar>) -> (Vec<u32>, TokenSet) {
    let mut live = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()).unwrap();
    let mut accepted: Vec<u32> = Vec::new();
    let mut seen: Vec<TokenSet> = Vec::new();
    for _ in 0..20 {
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
    let last = mask(&mut live);
    (accepted, last)
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
        walks(seed);
    }
}
