//! Canonical masks of random and of well-known tokenizers.
//!
//! The twin is the encoder. The masks must allow the encoder's tokens for a text of the grammar, one by one; and a
//! complete sequence that the masks allow must be what the encoder writes for its text.

use std::sync::Arc;

use stencilm_engine::{
    CompiledGrammar, EncodingSource, GrammarMatcher, MatcherError, MatcherOptions, TokenSet, Vocabulary,
};
use stencilm_grammar::{Grammar, Node};

use crate::Counts;
use crate::choices::Choices;
use crate::sentences::Sentences;
use crate::tokenizers;

/// The patterns that split texts for random tokenizers, if any.
const PATTERNS: [&str; 4] = [
    r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+",
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'s| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"[a-z]{1,2}|.|\n",
];

/// A byte-pair encoding with random merges: of pairs that occur in the texts, or of any pairs.
pub(crate) fn random_tokenizer(choices: &mut Choices<'_>, texts: &[Vec<u8>]) -> Option<Arc<Vocabulary>> {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let mut merges: Vec<(u32, u32, u32)> = Vec::new();
    for _ in 0..4 + choices.below(60) {
        let (left, right) = match texts.is_empty() || choices.chance(4) {
            true => {
                let any = |choices: &mut Choices<'_>| match choices.chance(2) {
                    true => u32::from(*choices.pick(b"abc\"{}:, 01[]()")),
                    false => choices.below(tokens.len()) as u32,
                };
                (any(choices), any(choices))
            }
            false => {
                let mut symbols: Vec<u32> = choices.pick(texts).iter().map(|&byte| u32::from(byte)).collect();
                merge(&mut symbols, &merges);
                if symbols.len() < 2 {
                    continue;
                }
                let at = choices.below(symbols.len() - 1);
                (symbols[at], symbols[at + 1])
            }
        };
        let whole = [&tokens[left as usize][..], &tokens[right as usize]].concat();
        if whole.len() > 12 || tokens.contains(&whole) {
            continue;
        }
        merges.push((left, right, tokens.len() as u32));
        tokens.push(whole);
    }
    let pattern = choices.chance(2).then(|| (*choices.pick(&PATTERNS)).to_owned());
    let bytes = (0..=255).collect();
    let source = EncodingSource { bytes, chars: None, changed: None, merges, whole_pieces: choices.chance(3), pattern };
    let stop = tokens.len() as u32;
    let tokens: Vec<Option<Vec<u8>>> = tokens.into_iter().map(Some).chain([None]).collect();
    let special = [(stop, "</s>".to_owned())];
    let vocabulary = Arc::new(Vocabulary::new(&tokens, tokens.len(), &[stop], &special).expect("the ids fit"));
    vocabulary.learn_encoding(&source).ok()?;
    Some(vocabulary)
}

fn merge(symbols: &mut Vec<u32>, merges: &[(u32, u32, u32)]) {
    for &(left, right, whole) in merges {
        let mut at = 0;
        while at + 1 < symbols.len() {
            if (symbols[at], symbols[at + 1]) == (left, right) {
                symbols.splice(at..at + 2, [whole]);
            }
            at += 1;
        }
    }
}

/// Walks along canonical masks, and along the encoder's tokens.
///
/// # Panics
/// If an invariant does not hold.
pub fn check(grammar: Grammar, what: String, choices: &mut Choices<'_>) -> Counts {
    let mut counts = Counts::default();
    if grammar.nodes().iter().any(|node| matches!(node, Node::Token(_))) {
        return counts;
    }
    let grammar = Arc::new(grammar);
    let mut sentences = Sentences::new(&grammar);
    let texts: Vec<Vec<u8>> =
        (0..4).filter_map(|_| sentences.next(choices, 60)).filter(|text| !text.is_empty()).collect();
    let number = choices.below(tokenizers::COUNT);
    let large = if choices.chance(6) { tokenizers::encoding(number) } else { None };
    let Some(vocabulary) = large.or_else(|| random_tokenizer(choices, &texts)) else { return counts };
    let Ok(compiled) = CompiledGrammar::new(grammar, vocabulary) else { return counts };
    let compiled = Arc::new(compiled);
    let mut ended = texts.iter().try_for_each(|text| written(&compiled, text, &what, &mut counts));
    for _ in 0..1 + choices.below(3) {
        ended = ended.and_then(|()| walk(&compiled, &what, choices, &mut counts));
    }
    if ended.is_err() {
        counts.limits = 1;
    }
    counts
}

fn matcher(compiled: &Arc<CompiledGrammar>) -> Result<GrammarMatcher, MatcherError> {
    GrammarMatcher::new(compiled.clone(), &MatcherOptions { canonical: true, ..MatcherOptions::default() })
}

fn mask(matcher: &mut GrammarMatcher) -> Result<TokenSet, MatcherError> {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    matcher.fill_mask(mask.words_mut())?;
    Ok(mask)
}

/// The masks allow what the encoder writes for a text of the grammar.
fn written(compiled: &Arc<CompiledGrammar>, text: &[u8], what: &str, counts: &mut Counts) -> Result<(), MatcherError> {
    let Ok(text) = std::str::from_utf8(text) else { return Ok(()) };
    let Some(tokens) = compiled.vocabulary().encode(text) else { return Ok(()) };
    let mut matcher = matcher(compiled)?;
    for (at, &token) in tokens.iter().enumerate() {
        let so_far = &tokens[..at];
        assert!(mask(&mut matcher)?.contains(token), "token {token} of {text:?} after {so_far:?}: {what}");
        counts.masks += 1;
        assert!(matcher.accept_token(token)?, "token {token} of {text:?} after {so_far:?}: {what}");
    }
    assert!(matcher.is_completed(), "{text:?}: {what}");
    let stop = compiled.vocabulary().stop_token_ids()[0];
    assert!(mask(&mut matcher)?.contains(stop), "the end of {text:?}: {what}");
    counts.texts += 1;
    Ok(())
}

/// What the masks allow is canonical, and the plain masks allow it, too.
fn walk(
    compiled: &Arc<CompiledGrammar>,
    what: &str,
    choices: &mut Choices<'_>,
    counts: &mut Counts,
) -> Result<(), MatcherError> {
    let vocabulary = compiled.vocabulary();
    let mut canonical = matcher(compiled)?;
    let mut plain = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default())?;
    let mut tokens: Vec<u32> = Vec::new();
    for _ in 0..2 + choices.below(16) {
        let (ours, theirs) = (mask(&mut canonical)?, mask(&mut plain)?);
        counts.masks += 1;
        let allowed: Vec<u32> = ours.iter().collect();
        assert!(allowed.iter().all(|&token| theirs.contains(token)), "allowed more after {tokens:?}: {what}");
        let text: Vec<u8> =
            tokens.iter().flat_map(|&token| vocabulary.token_bytes(token).unwrap_or_default()).copied().collect();
        if allowed.contains(&vocabulary.stop_token_ids()[0]) {
            // Bytes that are not text have no encoding.
            if let Ok(text) = std::str::from_utf8(&text) {
                assert_eq!(vocabulary.encode(text).as_ref(), Some(&tokens), "{text:?}: {what}");
                counts.texts += 1;
            }
        }
        let again = mask(&mut canonical.fork())?;
        assert_eq!(again, ours, "a fork after {tokens:?}: {what}");
        let token = *choices.pick(&allowed);
        if vocabulary.stop_token_ids().contains(&token) {
            break;
        }
        assert!(canonical.accept_token(token)?, "token {token} after {tokens:?}: {what}");
        assert!(plain.accept_token(token)?, "token {token} after {tokens:?}: {what}");
        tokens.push(token);
        if choices.chance(8) {
            let back = 1 + choices.below(tokens.len());
            canonical.rollback(back)?;
            plain.rollback(back)?;
            tokens.truncate(tokens.len() - back);
        }
    }
    Ok(())
}
