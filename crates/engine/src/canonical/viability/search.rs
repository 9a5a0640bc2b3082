//! A search for a continuation: what it has found so far, and where the grammar leads.
//!
//! A token is viable if the tokenizer writes some text of the grammar that begins with it with a boundary after it.
//! Nearly always one look at the next bytes decides: one of them certainly begins another piece, or a symbol that
//! nothing merges with. If the next text is narrow, as after the quote of a key, the tokens that may come next are
//! searched, nearest first and within a limit. [`order`](super::order) has the order of the attempts.

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

/// The end of a token: where the grammar and the tokenizer stand there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenEnd {
    pub configuration: SetId,
    pub token: u32,
    pub cursor: CursorId,
}

/// What was found so far within one operation, for which numbers of configurations are good.
#[derive(Default)]
pub(crate) struct Found {
    /// What was found of tokens, and whether beyond the lexeme: `None` while it is looked for.
    pub known: FxHashMap<TokenEnd, Option<(bool, bool)>>,
    /// What is known of configurations alone.
    pub ahead: Ahead,
}

impl Found {
    /// Forgets everything, but keeps the room for as much: most masks ask, and each little.
    fn begin(&mut self) {
        if self.known.capacity() > LOOKED_AT {
            self.known = FxHashMap::default();
        }
        self.known.clear();
        self.ahead.begin();
    }
}

/// What an [`EndLayer`](super::layer::EndLayer) is asked: whether there is a continuation from the end of a token.
pub(crate) struct EndQuestion {
    pub end: TokenEnd,
    /// What may come there.
    pub next: Next,
    /// So many tokens were followed before it.
    pub depth: usize,
}

/// A search for a continuation.
pub(crate) struct Search<'e, 'r> {
    pub run: &'e mut Run<'r>,
    pub encoding: &'e Encoder,
    pub cursors: &'e mut Cursors,
    pub cursor_masks: &'e mut CursorMasks,
    pub found: &'e mut Found,
    /// How many nodes were looked at after the token in question.
    pub looked: usize,
    /// How many after all of them.
    pub looked_in_all: usize,
    /// Whether an answer hangs on one that is still looked for.
    pub circular: bool,
    /// Whether the search for the token in question was too long.
    pub given_up: bool,
    /// A thread to stay with: whether the search went where something else than its lexeme is read.
    pub home: Option<Entry>,
    /// The last such thread: what is known of others says nothing of it.
    known_home: Option<Entry>,
    pub has_left: bool,
}

impl<'e, 'r> Search<'e, 'r> {
    /// A search of an operation, which has found nothing yet.
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

    /// From now on notes in `has_left` whether a search went beyond the lexeme that a thread reads. Forgets what it
    /// found for another one.
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

    /// Whether so many tokens were searched for so long that the others are taken to be viable.
    pub fn is_over(&self) -> bool {
        self.looked_in_all > SEARCHED
    }

    /// Whether some of these bytes, and something after it, may come.
    pub fn may_come(&mut self, configuration: SetId, bytes: &ByteSet) -> Result<bool, EngineError> {
        let Next { bytes: next, certain, .. } = self.next(configuration)?;
        Ok(!certain.intersect(bytes).is_empty() || self.is_read(configuration, &next.intersect(bytes))?)
    }

    /// Whether one of these bytes leads somewhere.
    pub fn is_read(&mut self, configuration: SetId, bytes: &ByteSet) -> Result<bool, EngineError> {
        for byte in bytes.iter() {
            if self.step(configuration, byte)? != SetId::EMPTY {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Those of some bytes before which a token keeps its end.
    pub fn settling_bytes(&self, end: TokenEnd, bytes: &ByteSet) -> ByteSet {
        self.encoding.settling_bytes(self.cursors.key(end.cursor), end.token, bytes)
    }

    /// What may come at a configuration.
    pub fn next(&mut self, configuration: SetId) -> Result<Next, EngineError> {
        self.found.ahead.next(self.run, configuration)
    }

    /// The configuration after a byte.
    pub fn step(&mut self, configuration: SetId, byte: u8) -> Result<SetId, EngineError> {
        self.found.ahead.step(self.run, configuration, byte)
    }

    /// The configuration after some bytes.
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

    /// The end of a token that follows a configuration, where the tokenizer stands at a cursor after it.
    pub fn end_of(&mut self, start: SetId, token: u32, cursor: CursorId) -> Result<TokenEnd, EngineError> {
        let bytes = self.encoding.tokens().token_bytes(token).unwrap_or_default();
        Ok(TokenEnd { configuration: self.read(start, bytes)?, token, cursor })
    }
}

/// Whether some threads are none of these, wherever those are in their lexemes.
pub(crate) fn is_other(threads: &[Entry], known: &[Entry]) -> bool {
    let same = |a: &Entry, b: &Entry| Entry { state: b.state, ..*a } == *b;
    threads.iter().any(|thread| !known.iter().any(|known| same(thread, known)))
}
