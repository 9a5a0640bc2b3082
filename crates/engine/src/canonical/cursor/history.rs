//! The cursors of one sequence, one for each step of its history, so that undoing is truncation here too.

use std::sync::Arc;

use crate::canonical::cursor::state::{Cursor, CursorKey};
use crate::canonical::encoding::Encoding;

/// The cursor of a sequence after each of its steps.
#[derive(Clone)]
pub(crate) struct CursorHistory {
    pub encoding: Arc<Encoding>,
    /// The cursor after each step, and the token before it, if that has text.
    steps: Vec<(CursorKey, Option<u32>)>,
}

impl CursorHistory {
    /// The history of a sequence without tokens.
    pub fn new(encoding: Arc<Encoding>) -> CursorHistory {
        CursorHistory { encoding, steps: vec![(Cursor::start().into(), None)] }
    }

    /// The current cursor, and the token before it.
    pub fn now(&self) -> &(CursorKey, Option<u32>) {
        self.steps.last().expect("a history holds the start")
    }

    /// Whether the text may end here with the tokens that the tokenizer would write.
    pub fn may_end(&self) -> bool {
        self.now().0.may_end(&self.encoding)
    }

    /// The cursor after one more token, and whether no merge joins the token with the one before; `None` where the
    /// tokenizer would not write it here.
    pub fn after(&self, token: u32) -> Option<(CursorKey, bool)> {
        let (cursor, before) = self.now();
        let unmerged = self.encoding.stay_unmerged(*before, token);
        Some((self.encoding.advance(cursor, token, unmerged)?, unmerged))
    }

    /// Adds a step: a token with text, and the cursor after it.
    pub fn push(&mut self, token: u32, cursor: CursorKey) {
        self.steps.push((cursor, Some(token)));
    }

    /// Adds a step to which the tokenizer's rules do not apply: a text, a stop token, or a token without text. What
    /// follows is tokenized as if it began a text.
    pub fn push_boundary(&mut self) {
        self.steps.push((Cursor::start().into(), None));
    }

    /// Forgets all but the first `steps` steps.
    pub fn truncate(&mut self, steps: usize) {
        self.steps.truncate(steps + 1);
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.steps.len() * (size_of::<Cursor>() + 72)
    }
}
