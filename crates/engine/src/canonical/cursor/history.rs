//! The cursors of one sequence: one for each step of its history, so that undoing is truncating here too.

use std::sync::Arc;

use crate::canonical::cursor::state::{Cursor, CursorKey};
use crate::canonical::encoding::Encoding;

/// Where a sequence stands after each of its steps.
#[derive(Clone)]
pub(crate) struct CursorHistory {
    pub encoding: Arc<Encoding>,
    /// After each step the cursor, and the token before it, if it spells text.
    steps: Vec<(CursorKey, Option<u32>)>,
}

impl CursorHistory {
    /// Before the first token.
    pub fn new(encoding: Arc<Encoding>) -> CursorHistory {
        CursorHistory { encoding, steps: vec![(Cursor::start().into(), None)] }
    }

    /// The cursor, and the token before it.
    pub fn now(&self) -> &(CursorKey, Option<u32>) {
        self.steps.last().expect("a history holds the start")
    }

    /// Whether the text may end here as its tokenizer would write it.
    pub fn may_end(&self) -> bool {
        self.now().0.may_end(&self.encoding)
    }

    /// The cursor after one more token, and whether no merge joins it with the one before; `None` where the tokenizer
    /// would not have written it.
    pub fn after(&self, token: u32) -> Option<(CursorKey, bool)> {
        let (cursor, before) = self.now();
        let unmerged = self.encoding.stay_unmerged(*before, token);
        Some((self.encoding.advance(cursor, token, unmerged)?, unmerged))
    }

    /// One more step: a token that spells text, with the cursor after it.
    pub fn push(&mut self, token: u32, cursor: CursorKey) {
        self.steps.push((cursor, Some(token)));
    }

    /// One more step that says nothing of tokens: a text, a stop token or one that stands for no text. What follows is
    /// written as if it began a text.
    pub fn push_boundary(&mut self) {
        self.steps.push((Cursor::start().into(), None));
    }

    /// Forgets the last steps.
    pub fn truncate(&mut self, steps: usize) {
        self.steps.truncate(steps + 1);
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        self.steps.len() * (size_of::<Cursor>() + 72)
    }
}
