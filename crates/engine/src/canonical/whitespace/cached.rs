//! Results about whitespace tokens, cached for all grammars of a vocabulary.

use std::sync::Arc;

use stencilm_regex::ByteSet;
use stencilm_support::Bounded;

use super::runs::{BeforeWhitespace, DecidedAnyway, DecidedWhitespace, KnownNeedsCache, KnownWhitespace, WhitespaceAt};
use crate::canonical::cursor::table::{CursorId, Cursors};
use crate::canonical::encoder::facts::Encoder;
use crate::canonical::viability::search::{Search, TokenEnd};
use crate::error::EngineError;
use crate::lexeme::mask::LexemeMask;
use crate::state::stacks::SetId;
use crate::switches::Switch;

/// What may follow whitespace, the cursor before it, the token there if it may merge with whitespace, and the bounds on
/// how much may come.
type WhitespaceAfter = (ByteSet, CursorId, Option<u32>, (usize, bool));

/// Results about whitespace tokens, by what may follow them and by cursor.
#[derive(Default)]
pub(crate) struct WhitespaceCache {
    /// Tokens that no search decides: by what may follow, the cursor after a token, and what merges with the token.
    undecided: Bounded<(ByteSet, CursorId, u32), ()>,
    /// By the bytes that may follow and the cursor before.
    known: Bounded<(ByteSet, CursorId), Arc<KnownWhitespace>>,
    needs: KnownNeedsCache,
    at: Bounded<CursorId, Arc<WhitespaceAt>>,
    decided: Bounded<WhitespaceAfter, Arc<DecidedWhitespace>>,
    anyway: Bounded<WhitespaceAfter, Arc<DecidedAnyway>>,
    /// For each sparse lexeme mask, those of its tokens that are not whitespace. The mask is kept alive, since its
    /// address is the key.
    others: Bounded<usize, (Arc<LexemeMask>, Box<[u32]>)>,
}

impl WhitespaceCache {
    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.undecided.memory_bytes()
            + self.known.memory_bytes()
            + self.needs.memory_bytes()
            + self.at.memory_bytes()
            + self.decided.memory_bytes()
            + self.anyway.memory_bytes()
            + self.others.memory_bytes()
    }

    /// The results about whitespace tokens at a cursor, if these bytes, including whitespace, may follow.
    pub fn known(
        &mut self,
        encoding: &Encoder,
        cursors: &mut Cursors,
        next: ByteSet,
        cursor: CursorId,
    ) -> Arc<KnownWhitespace> {
        if let Some(known) = self.known.get(&(next, cursor)).filter(|_| Switch::CanonicalWhitespaceKept.is_on()) {
            return known.clone();
        }
        let (at, _) = self.at.get_or_make(cursor, || {
            let at = WhitespaceAt::new(encoding, cursors, cursor);
            let bytes = at.memory_bytes();
            (Arc::new(at), bytes)
        });
        let at = at.clone();
        let found = Arc::new(KnownWhitespace::new(encoding, cursors, &mut self.needs, &next, at));
        self.known.insert((next, cursor), found.clone(), found.memory_bytes());
        found
    }

    /// The tokens of a sparse lexeme mask that are not whitespace.
    pub fn listed_others(&mut self, encoding: &Encoder, mask: &Arc<LexemeMask>) -> &[u32] {
        let name = Arc::as_ptr(mask) as usize;
        let (known, _) = self.others.get_or_make(name, || {
            let listed = mask.listed.iter().flatten().copied();
            let others: Box<[u32]> = listed.filter(|&token| !encoding.is_whitespace(token)).collect();
            let bytes = size_of_val(&*others);
            ((mask.clone(), others), bytes)
        });
        &known.1
    }

    /// The results about whitespace tokens at a cursor, for every token before it.
    pub fn decided_anyway(
        &mut self,
        encoding: &Encoder,
        cursors: &mut Cursors,
        whitespace: &BeforeWhitespace,
        cursor: CursorId,
    ) -> Arc<DecidedAnyway> {
        let longest = encoding.tokens().trie().max_depth();
        let key = (whitespace.next, cursor, None, whitespace.bounds(longest));
        if let Some(known) = self.anyway.get(&key).filter(|_| Switch::CanonicalWhitespaceKept.is_on()) {
            return known.clone();
        }
        let known = self.known(encoding, cursors, whitespace.next, cursor);
        let found = Arc::new(DecidedAnyway::of(encoding, &known, whitespace));
        self.anyway.insert(key, found.clone(), found.memory_bytes());
        found
    }

    /// The results about the whitespace tokens that fit a cursor after a token.
    pub fn decided(
        &mut self,
        encoding: &Encoder,
        cursors: &mut Cursors,
        whitespace: &BeforeWhitespace,
        (cursor, before): (CursorId, Option<u32>),
    ) -> Arc<DecidedWhitespace> {
        let before = before.filter(|&before| encoding.may_merge_with_whitespace(before));
        let longest = encoding.tokens().trie().max_depth();
        let key = (whitespace.next, cursor, before, whitespace.bounds(longest));
        if let Some(known) = self.decided.get(&key).filter(|_| Switch::CanonicalWhitespaceKept.is_on()) {
            return known.clone();
        }
        let known = self.known(encoding, cursors, whitespace.next, cursor);
        let found = Arc::new(DecidedWhitespace::of(encoding, &known, whitespace, before));
        self.decided.insert(key, found.clone(), found.memory_bytes());
        found
    }

    /// Whether a whitespace token that follows a configuration is viable, given the cursor after it. Far from any
    /// bound, the question is asked where the amount of whitespace does not count.
    pub fn is_viable(
        &mut self,
        search: &mut Search<'_, '_>,
        configuration: SetId,
        before: &BeforeWhitespace,
        (token, after): (u32, CursorId),
    ) -> Result<bool, EngineError> {
        let encoding = search.encoding;
        if !before.are_far(encoding.tokens().token_bytes(token).map_or(0, <[u8]>::len)) {
            return Ok(search.follows_viably(configuration, token, after)? != Some(false));
        }
        let key = (before.next, after, encoding.merges.merging_number(token));
        if self.undecided.get(&key).is_some() {
            return Ok(true);
        }
        let found = search.is_viable(TokenEnd { configuration: before.same, token, cursor: after })?;
        if found.is_none() {
            // A repeated search would not decide it either.
            self.undecided.insert(key, (), 0);
        }
        Ok(found != Some(false))
    }
}
