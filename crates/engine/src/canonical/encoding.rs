//! How a tokenizer makes tokens of text, together with what is built while this is used.

use std::ops::Deref;
use std::sync::Arc;

use stencilm_support::{Guard, Mutex, lock};

use crate::canonical::cursor::masks::CursorMasks;
use crate::canonical::cursor::state::CursorKey;
use crate::canonical::cursor::table::Cursors;
use crate::canonical::encoder::facts::Encoder;
use crate::canonical::encoder::source::EncodingSource;
use crate::canonical::viability::context_independent::ContextIndependent;
use crate::canonical::viability::crossing::CrossingClasses;
use crate::canonical::viability::ends::Anywhere;
use crate::canonical::viability::pending::PendingTokens;
use crate::canonical::viability::search::Found;
use crate::canonical::whitespace::cached::WhitespaceCache;
use crate::vocabulary::tokens::Tokens;

pub(crate) struct Encoding {
    encoder: Encoder,
    known: Mutex<Known>,
}

impl Deref for Encoding {
    type Target = Encoder;

    fn deref(&self) -> &Encoder {
        &self.encoder
    }
}

/// What was built so far.
#[derive(Default)]
pub(crate) struct Known {
    pub cursors: Cursors,
    pub cursor_masks: CursorMasks,
    pub context_independent: ContextIndependent,
    pub whitespace: WhitespaceCache,
    pub crossing_classes: CrossingClasses,
    pub anywhere: Anywhere,
    pub search: Found,
    pub pending_tokens: PendingTokens,
}

impl Encoding {
    /// # Errors
    /// A sentence that says what is not supported.
    pub fn new(source: &EncodingSource, tokens: Arc<Tokens>) -> Result<Encoding, String> {
        Ok(Encoding { encoder: Encoder::new(source, tokens)?, known: Mutex::default() })
    }

    /// Locks what was built so far, for one operation.
    pub fn known(&self) -> Guard<'_, Known> {
        let mut known = lock(&self.known);
        if known.cursors.are_full() {
            // All of this refers to cursors by number.
            let Known { cursors, context_independent, whitespace, crossing_classes, .. } = &mut *known;
            (*cursors, *context_independent, *whitespace, *crossing_classes) = Default::default();
        }
        known
    }

    /// The cursor after one more token, in the form in which the table has it, so that comparing it needs only the
    /// address.
    pub fn advance(&self, key: &CursorKey, token: u32, unmerged: bool) -> Option<CursorKey> {
        let cursors = &mut self.known().cursors;
        let cursor = cursors.of(key);
        let after = cursors.advance(self, cursor, token, unmerged)?;
        Some(cursors.key(after).clone())
    }

    /// The tokens that fit a cursor after a token.
    pub fn fitting(&self, key: &CursorKey, before: Option<u32>) -> Arc<[u32]> {
        let mut known = self.known();
        let Known { cursor_masks, cursors, .. } = &mut *known;
        cursor_masks.after(self, cursors, key, before)
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let known = lock(&self.known);
        self.encoder.memory_bytes()
            + known.cursors.memory_bytes()
            + known.cursor_masks.memory_bytes()
            + known.context_independent.memory_bytes()
            + known.whitespace.memory_bytes()
            + known.crossing_classes.memory_bytes()
            + known.anywhere.memory_bytes()
    }
}
