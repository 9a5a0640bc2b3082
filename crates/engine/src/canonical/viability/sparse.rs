//! Masks of few tokens: each token is checked against the tokenizer and against what may follow it.

use std::sync::Arc;

use super::search::{Search, TokenEnd};
use crate::canonical::cursor::state::CursorKey;
use crate::canonical::encoder::facts::Encoder;
use crate::canonical::encoding::{Encoding, Known};
use crate::canonical::whitespace::cached::WhitespaceCache;
use crate::canonical::whitespace::runs::WhitespaceInLexemes;
use crate::error::EngineError;
use crate::lexeme::mask::LexemeMask;
use crate::mask::cache::KeptMask;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;
use crate::switches::Switch;
use crate::vocabulary::token_set;

impl Run<'_> {
    /// The tokens of a sparse mask that fit a cursor after a token and have a continuation, ascending. `kept` is the
    /// cached form of the mask, if that is exactly the mask.
    pub(crate) fn canonical_of_few(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        (key, before): (&CursorKey, Option<u32>),
        in_lexemes: &mut WhitespaceInLexemes,
        (mask, plain): (&[u32], Option<&KeptMask>),
    ) -> Result<Vec<u32>, EngineError> {
        let mut known = encoding.known();
        let Known { cursors, cursor_masks, whitespace: whitespace_cache, search, .. } = &mut *known;
        let cursor = cursors.of(key);
        let mut search = Search::new(self, encoding, cursors, cursor_masks, search);
        let (mut kept, mut decided) = (Vec::new(), None);
        let threads = search.run.stacks.entries(configuration).to_vec();
        let whitespace = match Switch::CanonicalWhitespace.is_on() {
            true => search.before_whitespace(in_lexemes, &threads)?,
            false => None,
        };
        if let Some(whitespace) = &whitespace {
            let decided =
                decided.insert(whitespace_cache.decided(encoding, search.cursors, whitespace, (cursor, before)));
            for &(token, after) in decided.open.iter().filter(|&&(token, _)| token_set::get(mask, token)) {
                if whitespace_cache.is_viable(&mut search, configuration, whitespace, (token, after))? {
                    kept.push(token);
                }
            }
        }
        let tokens = tokens_of_few(encoding, (mask, plain), whitespace_cache, whitespace.is_some());
        let mut longer: Option<Longer<'_>> = None;
        // The tokens are nearly always in trie order, in which a prefix comes before the longer tokens.
        for token in tokens.into_iter().rev() {
            let Some(bytes) = encoding.tokens().token_bytes(token) else { continue };
            if Switch::CanonicalLonger.is_on()
                && let Some(longer) = &mut longer
                && longer.rules_out(&mut search, configuration, bytes)?
            {
                // The slow reference: searched like any other.
                debug_assert!(match encoding.follow(search.cursors, cursor, before, token) {
                    Some(after) => search.follows_viably(configuration, token, after)? != Some(true),
                    None => true,
                });
                continue;
            }
            let Some(after) = encoding.follow(search.cursors, cursor, before, token) else { continue };
            if search.is_over() {
                kept.push(token);
                continue;
            }
            let end = search.end_of(configuration, token, after)?;
            if search.is_viable(end)? != Some(false) {
                kept.push(token);
                longer = Some(Longer { bytes, end, from: None });
            }
        }
        if let Some(decided) = decided {
            // A viable token can be read, so the grammar allows it.
            debug_assert!(decided.viable.iter().all(|&token| token_set::get(mask, token)));
            kept = [&decided.viable[..], &kept].concat();
        }
        // There is a long sorted run first, for which a stable sort is fast.
        kept.sort();
        Ok(kept)
    }
}

/// A viable token that may rule out its own prefixes. If every text that continues with a prefix is written with the
/// longer token, as is common for a word whose beginnings are tokens as well, the prefix is no canonical token.
struct Longer<'t> {
    bytes: &'t [u8],
    end: TokenEnd,
    /// The least length of such a prefix; computed when first asked for.
    from: Option<usize>,
}

impl Longer<'_> {
    /// Whether the token rules out a prefix of it, if both may come at a configuration.
    fn rules_out(
        &mut self,
        search: &mut Search<'_, '_>,
        configuration: SetId,
        bytes: &[u8],
    ) -> Result<bool, EngineError> {
        if bytes.len() >= self.bytes.len() || !self.bytes.starts_with(bytes) {
            return Ok(false);
        }
        let from = match self.from {
            Some(from) => from,
            None => *self.from.insert(self.forced_from(search, configuration)?),
        };
        Ok(bytes.len() >= from)
    }

    fn forced_from(&self, search: &mut Search<'_, '_>, configuration: SetId) -> Result<usize, EngineError> {
        if !search.is_in_all_texts(self.end)? {
            return Ok(self.bytes.len());
        }
        let (mut from, mut here) = (0, configuration);
        for (at, &byte) in self.bytes.iter().enumerate() {
            let next = search.next(here)?;
            if next.may_end || next.bytes.single().is_none() {
                from = at + 1;
            }
            here = search.step(here, byte)?;
        }
        Ok(from)
    }
}

/// The tokens that a sparse mask may have, in any order and perhaps with duplicates; `None` where they are not listed.
pub(crate) fn listed_tokens(kept: &KeptMask) -> Option<impl Iterator<Item = u32> + '_> {
    let (lexeme_mask, beside) = listed(kept)?;
    let inside = lexeme_mask.and_then(|lexeme_mask| lexeme_mask.listed.as_deref()).unwrap_or_default();
    Some(inside.iter().chain(beside).copied())
}

/// The same, as the lexeme mask that the mask started from, if any, and the list of differences.
fn listed(kept: &KeptMask) -> Option<(Option<&Arc<LexemeMask>>, &[u32])> {
    kept.beside_lexeme_mask().filter(|(lexeme_mask, _)| lexeme_mask.is_none_or(|mask| mask.listed.is_some()))
}

/// The tokens of a sparse mask, without the whitespace tokens if these are `decided`.
fn tokens_of_few(
    encoding: &Encoder,
    (mask, plain): (&[u32], Option<&KeptMask>),
    whitespace_cache: &mut WhitespaceCache,
    decided: bool,
) -> Vec<u32> {
    let mut tokens: Vec<u32> = match plain.and_then(listed) {
        Some((lexeme_mask, beside)) => {
            let inside = match lexeme_mask {
                // The lexeme mask is nearly always that of the whitespace tokens.
                Some(lexeme_mask) if decided => whitespace_cache.listed_others(encoding, lexeme_mask),
                Some(lexeme_mask) => lexeme_mask.listed.as_deref().unwrap_or_default(),
                None => &[],
            };
            inside.iter().chain(beside).copied().collect()
        }
        None => token_set::iter(mask).collect(),
    };
    // The list of differences also has tokens that are in the lexeme mask but not in the mask.
    tokens.retain(|&token| token_set::get(mask, token) && !(decided && encoding.is_whitespace(token)));
    tokens
}
