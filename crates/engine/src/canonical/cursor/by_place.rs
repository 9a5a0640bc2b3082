//! Numbers of cursors, and what is kept by them. The cursors themselves are in [`Cursors`](super::table::Cursors).

use std::sync::Arc;

use stencilm_regex::ByteSet;

/// So many bytes of forced text are looked at.
pub(crate) const MAX_BYTES: usize = 8;
/// A text that shows that a token keeps its end has at most one character more.
pub(crate) const MAX_CHARACTERS: usize = 3;

/// The number of a cursor, good as long as its [`Cursors`] are not emptied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CursorId(pub u32);

/// Tokens that may follow another one, each with the place after it.
pub(crate) type Followers = Arc<[(u32, CursorId)]>;

/// A text after a token that shows that it keeps its end.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shown {
    pub bytes: [u8; MAX_CHARACTERS + 1],
    pub len: u8,
}

impl Shown {
    pub fn text(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    pub fn with(mut self, byte: u8) -> Shown {
        self.bytes[usize::from(self.len)] = byte;
        self.len += 1;
        self
    }
}

/// A text that comes in any case, and what may follow it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Text {
    pub bytes: [u8; MAX_BYTES],
    pub len: u8,
    /// The bytes that may come after it, perhaps some more.
    pub after: ByteSet,
}
