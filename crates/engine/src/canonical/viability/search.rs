//! A search for a continuation: what it has found so far, and the steps of the grammar.
//!
//! A token is viable if the tokenizer, for some text of the grammar that begins with this token, writes a boundary
//! after it. Nearly always one look at the next bytes decides: one of them certainly begins another piece, or a symbol
//! that merges with nothing before it. If few texts may follow, as after the quote of a key, the possible next tokens
//! are searched, nearest first and within a limit. [`order`](super::order) has the order of the attempts.

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;
use stencilm_support::{LOOKED_AT, SEARCHED};

use crate::canonical::cursor::masks::CursorMasks;
use crate::canonical::cursor::table::{CursorId, Cursors};
use crate::canonical::encoder::facts::Encoder;
use crate::canonical::viability::ahead::{Ahead, Next};
use crate::error::EngineError;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, SetId};

/// The end of a token, with the configuration and the cursor there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenEnd {
    pub configuration: SetId,
    pub token: u32,
    pub cursor: CursorId,
}

/// Results within one operation; they refer to configurations by number, so they are valid only there.
#[derive(Default)]
pub(crate) struct Found {
    /// Results about tokens, and whether they depend on anything beyond the lexeme: `None` while the search is under
    /// way.
    pub known: FxHashMap<TokenEnd, Option<(bool, bool)>>,
    /// Results about configurations.
    pub ahead: Ahead,
}

impl Found {
    /// Forgets everything but keeps the allocated memory: most masks use this, and each only a little.
    fn begin(&mut self) {
        if self.known.capacity() > LOOKED_AT {
            self.known = FxHashMap::default();
        }
        self.known.clear();
        self.ahead.begin();
    }
}

/// What an [`EndLayer`](super::layer::EndLayer) is asked: whether there is a continuation after a token.
pub(crate) struct EndQuestion {
    pub end: TokenEnd,
    /// What may come there.
    pub next: Next,
    /// The number of tokens that were followed before it.
    pub depth: usize,
}

/// A search for a continuation.
pub(crate) struct Search<'e, 'r> {
    pub run: &'e mut Run<'r>,
    pub encoding: &'e Encoder,
    pub cursors: &'e mut Cursors,
    pub cursor_masks: &'e mut CursorMasks,
    pub found: &'e mut Found,
    /// The number of nodes visited for the current token.
    pub looked: usize,
    /// The number of nodes visited for all tokens.
    pub looked_in_all: usize,
    /// Whether an answer depends on one that is still being searched.
    pub circular: bool,
    /// Whether the search for the current token was too long.
    pub given_up: bool,
    /// The thread to stay with: `has_left` says whether the search went where something other than its lexeme is read.
    pub home: Option<Entry>,
    /// The last such thread. Results for other threads do not apply to it.
    known_home: Option<Entry>,
    pub has_left: bool,
}

impl<'e, 'r> Search<'e, 'r> {
    /// A search of a new operation.
    pub fn new(
        run: &'e mut Run<'r>,
        encoding: &'e Encoder,
        cursors: &'e mut Cursors,
        cursor_masks: &'e mut CursorMasks,
        found: &'e mut Found,
    ) -> Search<'e, 'r> {
        found.begin();
        Search {
            run,
            encoding,
            cursors,
            cursor_masks,
            found,
            looked: 0,
            looked_in_all: 0,
            circular: false,
            given_up: false,
            home: None,
            known_home: None,
            has_left: false,
        }
    }

    /// From now on records in `has_left` whether the search goes beyond the lexeme of a thread. Forgets the results for
    /// another thread.
    pub fn stay_with(&mut self, thread: Option<Entry>) {
        if thread.is_some() && self.known_home != thread {
            self.found.known.clear();
            self.known_home = thread;
        }
        self.home = thread;
    }

    /// Whether a configuration is beyond the lexeme to stay with.
    pub fn is_beyond(&self, configuration: SetId) -> bool {
        self.home.is_none_or(|home| is_other(self.run.stacks.entries(configuration), &[home]))
    }

    /// Whether so much was searched that the remaining tokens are taken to be viable.
    pub fn is_over(&self) -> bool {
        self.looked_in_all > SEARCHED
    }

    /// Whether some of these bytes may come, and something after it.
    pub fn may_come(&mut self, configuration: SetId, bytes: &ByteSet) -> Result<bool, EngineError> {
        let Next { bytes: next, certain, .. } = self.next(configuration)?;
        Ok(!certain.intersect(bytes).is_empty() || self.is_read(configuration, &next.intersect(bytes))?)
    }

    /// Whether one of these bytes can be read.
    pub fn is_read(&mut self, configuration: SetId, bytes: &ByteSet) -> Result<bool, EngineError> {
        for byte in bytes.iter() {
            if self.step(configuration, byte)? != SetId::EMPTY {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Those of some bytes that settle the end of a token.
    pub fn settling_bytes(&self, end: TokenEnd, bytes: &ByteSet) -> ByteSet {
        self.encoding.settling_bytes(self.cursors.key(end.cursor), end.token, bytes)
    }

    pub fn next(&mut self, configuration: SetId) -> Result<Next, EngineError> {
        self.found.ahead.next(self.run, configuration)
    }

    pub fn step(&mut self, configuration: SetId, byte: u8) -> Result<SetId, EngineError> {
        self.found.ahead.step(self.run, configuration, byte)
    }

    pub fn read(&mut self, configuration: SetId, bytes: &[u8]) -> Result<SetId, EngineError> {
        let mut here = configuration;
        for &byte in bytes {
            here = self.step(here, byte)?;
            if here == SetId::EMPTY {
                break;
            }
        }
        Ok(here)
    }

    /// The end of a token that follows a configuration, given the cursor after it.
    pub fn end_of(&mut self, start: SetId, token: u32, cursor: CursorId) -> Result<TokenEnd, EngineError> {
        let bytes = self.encoding.tokens().token_bytes(token).unwrap_or_default();
        Ok(TokenEnd { configuration: self.read(start, bytes)?, token, cursor })
    }
}

/// Whether some thread is none of these, apart from its position within its lexeme.
pub(crate) fn is_other(threads: &[Entry], known: &[Entry]) -> bool {
    let same = |a: &Entry, b: &Entry| Entry { state: b.state, ..*a } == *b;
    threads.iter().any(|thread| !known.iter().any(|known| same(thread, known)))
}
