//! Numbers of cursors, and what is kept by them. The cursors themselves are in [`Places`](super::table::Places).

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;

/// So many bytes of forced text are looked at.
pub(crate) const MAX_BYTES: usize = 8;
/// A text that shows that a token keeps its end has at most one character more.
pub(crate) const MAX_CHARACTERS: usize = 3;
/// So many texts, and so many answers, are kept.
const MAX_TEXTS: usize = 4_000;
const MAX_ANSWERS: usize = 50_000;

/// So much is kept of each kind of answers for all grammars.
pub(crate) const MAX_KEPT: usize = 256;

/// The number of a cursor, good as long as its [`Places`] are not emptied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Place(pub u32);

/// Tokens that may follow another one, each with the place behind it.
pub(crate) type Followers = Arc<[(u32, Place)]>;

/// A walk of all shapes, of which later ones take over parts. Places are those of one [`Places`](super::table::Places), which keeps it.
pub(crate) struct Walk {
    /// By shape the place behind it, if it was come to.
    pub places: Vec<Option<Place>>,
    /// Where the tokens begin and end that cannot be read.
    pub dead: Vec<(u32, u32)>,
}

impl Walk {
    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        (self.places.len() + self.dead.len()) * 8
    }
}

/// A text behind a token that shows that it keeps its end.
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
    /// The bytes that may come behind it, perhaps some more.
    pub behind: ByteSet,
}

/// What is known of tokens before forced texts.
#[derive(Default)]
pub(crate) struct ForcedTexts {
    pub numbers: FxHashMap<Text, u32>,
    pub texts: Vec<Text>,
    /// By place behind a token, token and text: whether something leads on; `None` where the text does not tell.
    pub answers: FxHashMap<(Place, u32, u32), Option<bool>>,
}

impl ForcedTexts {
    pub fn number(&mut self, text: Text) -> u32 {
        let next = self.texts.len() as u32;
        *self.numbers.entry(text).or_insert_with(|| {
            self.texts.push(text);
            next
        })
    }

    /// Begins anew where there are many. Numbers are good within one operation, so none may have begun.
    pub fn forget_if_full(&mut self) {
        if self.texts.len() > MAX_TEXTS || self.answers.len() > MAX_ANSWERS {
            *self = ForcedTexts::default();
        }
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        self.texts.len() * (2 * size_of::<Text>() + 8) + self.answers.len() * 20
    }
}
