//! Canonical masks of one grammar, cached under what their computation read.
//!
//! A mask of few tokens is stored as a list, by cursor and last token. A mask of many tokens is the plain mask and the
//! cursor mask, without the dead ends; these do not depend on the last token and are cached by cursor.

use std::sync::Arc;

use crate::canonical::cursor::state::CursorKey;
use crate::canonical::encoding::{Encoding, Known};
use crate::canonical::viability::crossing::SuffixesAfter;
use crate::canonical::viability::dead_ends::DeadEnds;
use crate::canonical::viability::search::{Search, TokenEnd};
use crate::canonical::whitespace::runs::WhitespaceInLexemes;
use crate::error::EngineError;
use crate::mask::cache::DependencyCaches;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;

/// A cursor and the token before it.
pub(crate) type Before = (CursorKey, Option<u32>);

/// The cached canonical masks of a grammar.
pub(crate) struct CanonicalMasks {
    pub few: DependencyCaches<Before, Box<[u32]>>,
    pub dead_ends: DependencyCaches<CursorKey, DeadEnds>,
    /// By cursor and last token, where dead ends found by cursor leave tokens open.
    pub dead_ends_after: DependencyCaches<Before, DeadEnds>,
    pub in_lexemes: WhitespaceInLexemes,
    pub after: SuffixesAfter,
}

impl CanonicalMasks {
    /// Empty caches of at most `max_bytes` bytes each. No token has more than `horizon` bytes.
    pub fn new(max_bytes: usize, horizon: usize) -> CanonicalMasks {
        CanonicalMasks {
            few: DependencyCaches::new(max_bytes, horizon),
            dead_ends: DependencyCaches::new(max_bytes, horizon),
            dead_ends_after: DependencyCaches::new(max_bytes, horizon),
            in_lexemes: WhitespaceInLexemes::default(),
            after: SuffixesAfter::new(max_bytes, horizon),
        }
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.few.memory_bytes()
            + self.dead_ends.memory_bytes()
            + self.dead_ends_after.memory_bytes()
            + self.in_lexemes.memory_bytes()
            + self.after.memory_bytes()
    }
}

/// Which tokens of a canonical mask are viable.
#[derive(Clone)]
pub(crate) enum CanonicalVerdict {
    /// Only these, ascending.
    Few(Arc<Box<[u32]>>),
    /// All that the grammar and the tokenizer allow, except these.
    Many(Arc<DeadEnds>),
}

impl CanonicalVerdict {
    /// Whether a token that fits is viable. `unmerged` says that no merge joins it with the one before.
    pub fn is_viable(&self, token: u32, unmerged: bool) -> bool {
        match self {
            CanonicalVerdict::Few(tokens) => tokens.binary_search(&token).is_ok(),
            CanonicalVerdict::Many(dead_ends) => !dead_ends.has(token, unmerged),
        }
    }
}

impl Run<'_> {
    /// Whether a token is viable, given the configuration and the cursor after it.
    pub fn goes_on_after(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        token: u32,
        key: &CursorKey,
    ) -> Result<bool, EngineError> {
        let mut known = encoding.known();
        let Known { cursors, cursor_masks, search, .. } = &mut *known;
        let cursor = cursors.of(key);
        let mut search = Search::new(self, encoding, cursors, cursor_masks, search);
        Ok(search.is_viable(TokenEnd { configuration, token, cursor })? != Some(false))
    }
}
