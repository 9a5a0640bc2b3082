//! The token index as an oracle of masks, and tokens over the end of forced text, on random grammars.

use std::sync::Arc;
use std::time::Duration;

use stencilm_engine::{
    CompiledGrammar, GrammarMatcher, IndexBuilder, IndexError, IndexLimits, MatcherOptions, TokenIndex, TokenSet,
};
use stencilm_fuzz::choices::random_bytes;
use stencilm_fuzz::grammars::random_grammar;
use stencilm_fuzz::vocabularies::Tokens;
use stencilm_fuzz::{Choices, notations};

const LIMITS: IndexLimits = IndexLimits { max_states: 60, max_bytes: 1 << 20 };

/// A random grammar over a random vocabulary.
fn compiled(random: &mut Choices<'_>) -> Option<Arc<CompiledGrammar>> {
    let grammar = if random.chance(3) { notations::json_schema(random).0? } else { random_grammar(random)? };
    let vocabulary = Tokens::random(random, &[]).vocabulary();
    Some(Arc::new(CompiledGrammar::new(Arc::new(grammar), vocabulary).ok()?))
}

fn built(compiled: &CompiledGrammar) -> Result<TokenIndex, IndexError> {
    let mut builder = IndexBuilder::new(compiled, LIMITS)?;
    while !builder.advance(Duration::from_millis(1))? {}
    Ok(builder.finish().expect("the builder said that it is done"))
}

#[test]
fn an_index_allows_what_the_matcher_allows() {
    let mut compared = 0;
    for seed in 0..120 {
        let bytes = random_bytes(seed, 1024);
        let random = &mut Choices::new(&bytes);
        let Some(compiled) = compiled(random) else { continue };
        let Ok(index) = built(&compiled) else { continue };
        let Ok(mut matcher) = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()) else { continue };
        let saved = TokenIndex::from_bytes(&index.to_bytes(), compiled.vocabulary().clone()).unwrap();
        assert_eq!(saved.to_bytes(), index.to_bytes(), "seed {seed}");
        let mut state = 0;
        for _ in 0..10 {
            assert_eq!(index.is_final(state), matcher.is_completed(), "seed {seed}");
            let mut ours = TokenSet::empty(compiled.vocabulary().vocab_size());
            index.fill_mask(state, ours.words_mut()).unwrap();
            let mut theirs = TokenSet::empty(compiled.vocabulary().vocab_size());
            if matcher.fill_mask(theirs.words_mut()).is_err() {
                assert_eq!(ours.iter().count(), 0, "seed {seed}");
                break;
            }
            assert_eq!(ours, theirs, "seed {seed}");
            compared += 1;
            let moves: Vec<(u32, u32)> = index.transitions(state).collect();
            if moves.is_empty() {
                break;
            }
            let &(token, next) = random.pick(&moves);
            assert_eq!(index.next(state, token), Some(next), "seed {seed}");
            assert!(matcher.accept_token(token).unwrap(), "seed {seed}");
            state = next;
        }
    }
    assert!(compared > 40, "only {compared} masks were compared");
}

#[test]
fn spans_are_tokens_over_the_end_of_forced_text() {
    let mut seen = 0;
    for seed in 0..120 {
        let bytes = random_bytes(seed, 1024);
        let random = &mut Choices::new(&bytes);
        let Some(compiled) = compiled(random) else { continue };
        let Ok(mut matcher) = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()) else { continue };
        let vocabulary = compiled.vocabulary();
        let (forced, spans) = matcher.forced_spans(usize::MAX).unwrap();
        assert_eq!(forced, matcher.forced_bytes().unwrap());
        if forced.len() > 40 {
            continue;
        }
        // The slow twin: every token at every place, on a copy of the matcher.
        for start in 0..forced.len() {
            let mut expected: Vec<u32> = (0..vocabulary.vocab_size() as u32)
                .filter(|&token| {
                    let Some(bytes) = vocabulary.token_bytes(token) else { return false };
                    let rest = &forced[start..];
                    let first = vocabulary.trie().find(bytes).and_then(|node| vocabulary.trie().entry_at(node));
                    bytes.len() > rest.len()
                        && bytes.starts_with(rest)
                        && first == Some(token)
                        && matcher.fork().accept_bytes(&[&forced[..start], bytes].concat()).unwrap()
                })
                .collect();
            let found = spans.iter().find(|span| span.start == start);
            let mut found: Vec<u32> = found.map_or(Vec::new(), |span| span.tokens.clone());
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "seed {seed}, byte {start}");
            seen += found.len();
        }
        if let Ok(index) = built(&compiled) {
            assert_eq!(index.forced_spans(0, usize::MAX), (forced, spans), "seed {seed}");
        }
    }
    assert!(seen > 2, "only {seen} tokens were seen");
}
