//! The crossing tokens of lexemes that may end nearly everywhere.
//!
//! One idea: a lexeme such as a name may end after each of its characters, so nearly all tokens cross its end, too many
//! to store. But a token that stays within the lexeme to its last byte may come in any case. So only the others matter,
//! and these are few.

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, Tag};
use stencilm_support::{LOOKED_AT, LimitExceeded, SEARCHED};

use crate::lexeme::cache::LexemeCache;
use crate::lexeme::crossing::{CrossingTokens, Crossings, Suffixes};
use crate::lexeme::mask::{LexemeMask, LexemeMaskAt};
use crate::machine::reader::Reader;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;

/// Finds the tokens that do not stay within a lexeme, read from a state, and the places in them after which exactly the
/// residuals of one of the [unkept](crate::lexeme::mask::LexemeMask::unkept) groups have matched.
pub(crate) fn find_leaving(
    lexeme_cache: &mut LexemeCache,
    vocabulary: &Tokens,
    (reader, state): (&Reader<'_>, u32),
    here: &LexemeMaskAt,
) -> Result<(), LimitExceeded> {
    if here.mask.leaving.get().is_some() {
        return Ok(());
    }
    let mut groups = Groups {
        tags: here.mask.unkept.iter().map(|residuals| sorted(here.tags_of_all(residuals))).collect(),
        known: FxHashMap::default(),
    };
    let first = reader.bytes(lexeme_cache, state)?;
    let mut crossings: Vec<Vec<(&[u8], u32)>> = vec![Vec::new(); groups.tags.len()];
    let mut count = 0;
    // For each byte of the last token, the state after it, if any, and the group that has matched there.
    let mut path: Vec<(Option<u32>, Option<usize>)> = Vec::new();
    let mut last: &[u8] = &[];
    for token in tokens_not_within(vocabulary, &here.mask, first) {
        let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
        path.truncate(last.iter().zip(bytes).take_while(|(a, b)| a == b).count());
        last = bytes;
        while path.len() < bytes.len() && path.last().is_none_or(|&(state, _)| state.is_some()) {
            let from = path.last().and_then(|&(state, _)| state).unwrap_or(state);
            let next = reader.next(lexeme_cache, from, bytes[path.len()])?;
            path.push((next, next.and_then(|state| groups.of(lexeme_cache, reader, state))));
        }
        for (&(_, group), at) in path.iter().zip(1..bytes.len()) {
            if let Some(group) = group {
                crossings[group].push((&bytes[at..], token));
                count += 1;
            }
        }
        if count > SEARCHED {
            here.mask.leaving.get_or_init(|| None);
            return Ok(());
        }
    }
    let leaving = here.mask.unkept.iter().zip(crossings).map(|(residuals, crossings)| {
        CrossingTokens::known(Crossings::through_all(residuals, Suffixes::of(crossings)))
    });
    let leaving: Box<[CrossingTokens]> = leaving.collect();
    lexeme_cache.masks_bytes += leaving.iter().map(CrossingTokens::memory_bytes).sum::<usize>();
    here.mask.leaving.get_or_init(|| Some(leaving));
    Ok(())
}

/// The groups of residuals, by their tags in one automaton.
struct Groups {
    tags: Vec<Vec<Tag>>,
    /// By state.
    known: FxHashMap<u32, Option<usize>>,
}

impl Groups {
    /// The group that has matched in a state.
    fn of(&mut self, lexeme_cache: &LexemeCache, reader: &Reader<'_>, state: u32) -> Option<usize> {
        *self.known.entry(state).or_insert_with(|| {
            let accepted = sorted(reader.accepts(lexeme_cache, state).iter().copied());
            self.tags.iter().position(|tags| *tags == accepted)
        })
    }
}

/// The tokens that begin with one of some bytes and are not in a lexeme mask, in the order of their bytes. Of tokens
/// with equal bytes there is one.
fn tokens_not_within(vocabulary: &Tokens, mask: &LexemeMask, first: ByteSet) -> Vec<u32> {
    let trie = vocabulary.trie();
    let bytes_of = |token| vocabulary.token_bytes(token).unwrap_or_default();
    let begins = |&token: &u32| bytes_of(token).first().is_some_and(|&byte| first.contains(byte));
    if vocabulary.vocab_size() > mask.count + LOOKED_AT {
        return trie
            .roots(first)
            .flat_map(|(root, _)| trie.entries_below(root))
            .filter(|&token| !mask.has(token))
            .collect();
    }
    let mut others = TokenSet::empty(vocabulary.vocab_size());
    mask.write(others.words_mut());
    others.words_mut().iter_mut().for_each(|word| *word = !*word);
    let others = others.iter().take_while(|&token| (token as usize) < vocabulary.vocab_size());
    let mut others: Vec<u32> = others.filter(begins).collect();
    others.sort_by_key(|&token| bytes_of(token));
    others.dedup_by_key(|token| bytes_of(*token));
    others
}

fn sorted(tags: impl Iterator<Item = Tag>) -> Vec<Tag> {
    let mut tags: Vec<Tag> = tags.collect();
    tags.sort_unstable();
    tags
}
