//! Several sequences of one grammar: rolled back and forked in any order, run in batches on several threads, and their
//! captures.

use stencilm_engine::{GrammarMatcher, MatcherError, TokenSet, Workers};

use crate::Counts;
use crate::choices::Choices;
use crate::setting::{Ended, Setting, allowed, mask, state};

/// Rolled back and forked in any order, every sequence equals one that accepted its tokens directly.
pub fn forks(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let what = &setting.what;
    let mut live: Vec<(GrammarMatcher, Vec<u32>)> = vec![(setting.matcher()?, Vec::new())];
    for _ in 0..4 + choices.below(30) {
        let at = choices.below(live.len());
        let is_only = live.len() == 1;
        let (matcher, tokens) = &mut live[at];
        match choices.below(8) {
            0 | 1 if !tokens.is_empty() => {
                let back = 1 + choices.below(tokens.len());
                matcher.rollback(back).expect("so many tokens were accepted");
                tokens.truncate(tokens.len() - back);
            }
            2 => {
                let more = tokens.len() + 1;
                let error = matcher.rollback(more);
                assert_eq!(error, Err(MatcherError::RollbackPastStart { asked: more, accepted: tokens.len() }));
            }
            3 => {
                let fork = (matcher.fork(), tokens.clone());
                live.push(fork);
            }
            4 if choices.chance(4) => {
                matcher.reset();
                tokens.clear();
            }
            5 if !is_only => drop(live.swap_remove(at)),
            _ if matcher.is_terminated() => assert_eq!(mask_error(matcher), MatcherError::Terminated, "{what}"),
            _ => {
                let allowed = allowed(matcher)?;
                let token = *choices.pick(&allowed);
                assert!(matcher.accept_token(token)?, "token {token} after {tokens:?}: {what}");
                tokens.push(token);
            }
        }
        // Check any of them, not only the one that was used last.
        let at = choices.below(live.len());
        let (matcher, tokens) = &mut live[at];
        let mut straight = setting.matcher()?;
        for &token in &*tokens {
            assert!(straight.accept_token(token)?, "token {token} of {tokens:?}: {what}");
        }
        assert_eq!(state(matcher)?, state(&mut straight)?, "after {tokens:?}: {what}");
        counts.masks += 1;
    }
    Ok(())
}

fn mask_error(matcher: &mut GrammarMatcher) -> MatcherError {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    matcher.fill_mask(mask.words_mut()).expect_err("there is no mask behind the end")
}

/// Sequences that several threads work on at once equal those of one thread.
pub fn batches(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let what = &setting.what;
    let mut alone = Vec::new();
    for _ in 0..1 + choices.below(8) {
        alone.push(setting.walked(choices)?);
    }
    // The same vocabulary with nothing computed, so that threads compute the same things at the same time.
    let anew = setting.anew();
    let mut together = Vec::new();
    for matcher in &alone {
        let mut other = GrammarMatcher::new(anew.clone(), &Default::default())?;
        for token in matcher.recent_tokens(usize::MAX) {
            assert!(other.accept_token(token)?, "{what}");
        }
        together.push(other);
    }
    let workers = Workers::new(Some(1 + choices.below(4)));
    for _ in 0..1 + choices.below(4) {
        let jobs = together.iter_mut().map(|matcher| (workers.line(matcher.compiled()), matcher)).collect();
        let masks = workers.each(
            jobs,
            |matcher: &mut GrammarMatcher| if matcher.is_terminated() { Ok(None) } else { mask(matcher).map(Some) },
        );
        let mut tokens = Vec::new();
        for (matcher, found) in alone.iter_mut().zip(masks) {
            let expected = if matcher.is_terminated() { None } else { Some(mask(matcher)?) };
            assert_eq!(found?, expected, "the mask of a batch: {what}");
            counts.masks += 1;
            let allowed: Vec<u32> = expected.map_or(Vec::new(), |mask| mask.iter().collect());
            // Now and then a token that does not fit.
            tokens.push(match allowed.is_empty() || choices.chance(6) {
                true => choices.below(setting.vocabulary.vocab_size()) as u32,
                false => *choices.pick(&allowed),
            });
        }
        let jobs = together.iter_mut().zip(&tokens).map(|job| (workers.line(job.0.compiled()), job)).collect();
        let accepted = workers.each(jobs, |(matcher, &token)| matcher.accept_token(token));
        for ((matcher, &token), accepted) in alone.iter_mut().zip(&tokens).zip(accepted) {
            assert_eq!(accepted?, matcher.accept_token(token)?, "token {token} of a batch: {what}");
        }
    }
    Ok(())
}

/// A captured text is a part of the text, does not depend on how the text was split, and is undone by a rollback.
pub fn captures(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let what = &setting.what;
    let mut matcher = setting.walked(choices)?;
    let tokens = matcher.recent_tokens(usize::MAX);
    let found = matcher.get_captures()?;
    let stops = matcher.stop_token_ids().to_vec();
    let text: Vec<u8> = tokens
        .iter()
        .filter(|id| setting.has_token_nodes() || !stops.contains(id))
        .flat_map(|&id| setting.vocabulary.token_bytes(id).unwrap_or_default())
        .copied()
        .collect();
    for (name, part) in &found {
        counts.texts += 1;
        assert!(!name.is_empty(), "{what}");
        let is_part = part.is_empty() || text.windows(part.len()).any(|window| window == part);
        assert!(is_part, "{name} is {part:?} in {text:?}: {what}");
    }
    assert_eq!(matcher.fork().get_captures()?, found, "of a fork: {what}");
    if !setting.has_token_nodes() && !matcher.is_terminated() {
        let mut other = setting.matcher()?;
        let cut = choices.below(text.len() + 1);
        assert!(other.accept_bytes(&text[..cut])? && other.accept_bytes(&text[cut..])?, "{text:?}: {what}");
        assert_eq!(other.get_captures()?, found, "of {text:?} cut at {cut}: {what}");
    }
    if !tokens.is_empty() {
        let back = 1 + choices.below(tokens.len());
        matcher.rollback(back).expect("so many tokens were accepted");
        let mut straight = setting.matcher()?;
        for &token in &tokens[..tokens.len() - back] {
            assert!(straight.accept_token(token)?, "{what}");
        }
        assert_eq!(matcher.get_captures()?, straight.get_captures()?, "rolled back: {what}");
    }
    Ok(())
}
