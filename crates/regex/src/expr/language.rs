//! Languages decided by a program, as leaves of expressions.
//!
//! Whether a text is a member may depend on all of it in a way that no small automaton decides, as when a host-name
//! label is the encoding of another one. Then a program decides which prefixes can be completed and which texts are
//! members. The state is the text read so far, in a normal form that the program chooses.

use std::fmt;
use std::hash::{Hash, Hasher};

use stencilm_support::memory;

use crate::expr::byte_set::ByteSet;

/// A language decided by a program.
pub trait Language: Send + Sync {
    /// The name, which must be unique.
    fn name(&self) -> &'static str;

    /// The bytes that occur in its texts, grouped into classes that it never distinguishes.
    fn classes(&self) -> Vec<ByteSet>;

    /// The text read so far extended by more bytes, in normal form; `None` where no member begins so.
    fn after(&self, read: &[u8], bytes: &[u8]) -> Option<Box<[u8]>>;

    /// Whether the text read is a member.
    fn is_member(&self, read: &[u8]) -> bool;

    /// A lower bound on the number of bytes that complete the text read, if it is no member; exact for the empty text.
    fn shortest(&self, read: &[u8]) -> u32;

    /// A completion of the text read with `least` to `most` bytes, as short as a quick search finds; `None` where it
    /// finds none.
    fn completion(&self, read: &[u8], least: u32, most: u32) -> Option<Vec<u8>>;

    /// A completion of the text read that is found fast.
    fn easy_completion(&self, read: &[u8]) -> Option<Vec<u8>>;

    /// A number of bytes within which every prefix of a member can be completed.
    fn most(&self) -> u32;

    /// An upper bound on the number of bytes that complete the text read.
    fn longest(&self, read: &[u8]) -> u32;

    /// A number of bytes of the language that may certainly come next, whichever they are; `None` where some may not.
    fn run(&self, read: &[u8]) -> Option<u32>;

    /// A reader that continues after the text read.
    fn reader(&self, read: &[u8]) -> Box<dyn LanguageReader>;
}

/// Reads one text after another, all after the same prefix. What two successive texts have in common at the beginning
/// is read once, as in a walk of a trie.
pub trait LanguageReader {
    /// Reads a text in place of the one before. Returns whether a member begins so, as in [`Language::after`].
    fn read(&mut self, bytes: &[u8]) -> bool;

    /// Whether the text, which is a prefix of a member, is a member itself.
    fn is_member(&mut self) -> bool;

    /// Whether a quick search completes the text with `least` to `most` bytes. If it does, there is a next byte after
    /// which it does so again.
    fn is_completed(&mut self, least: u32, most: u32) -> bool;
}

/// The rest of a language after some text. It can always be completed.
#[derive(Clone)]
pub struct LanguageRest {
    language: &'static dyn Language,
    read: Box<[u8]>,
}

impl LanguageRest {
    pub(crate) fn start(language: &'static dyn Language) -> LanguageRest {
        LanguageRest { language, read: Box::default() }
    }

    /// The language, if nothing was read yet.
    pub fn whole(&self) -> Option<&'static dyn Language> {
        self.read.is_empty().then_some(self.language)
    }

    /// See [`Language::classes`].
    pub fn classes(&self) -> Vec<ByteSet> {
        self.language.classes()
    }

    /// All bytes of its texts.
    pub fn bytes(&self) -> ByteSet {
        self.classes().iter().fold(ByteSet::EMPTY, |all, class| all.union(class))
    }

    /// The rest after one more byte; `None` where there is none.
    pub fn after(&self, byte: u8) -> Option<LanguageRest> {
        self.after_all(&[byte])
    }

    /// The same after more bytes.
    pub fn after_all(&self, bytes: &[u8]) -> Option<LanguageRest> {
        Some(LanguageRest { language: self.language, read: self.language.after(&self.read, bytes)? })
    }

    /// Whether the text read is a member.
    pub fn is_nullable(&self) -> bool {
        self.language.is_member(&self.read)
    }

    /// See [`Language::shortest`].
    pub fn shortest(&self) -> u32 {
        self.language.shortest(&self.read)
    }

    /// See [`Language::reader`].
    pub fn reader(&self) -> Box<dyn LanguageReader> {
        self.language.reader(&self.read)
    }

    /// See [`Language::completion`].
    pub fn completion(&self, least: u32, most: u32) -> Option<Vec<u8>> {
        self.language.completion(&self.read, least, most)
    }

    /// See [`Language::easy_completion`].
    pub fn easy_completion(&self) -> Option<Vec<u8>> {
        self.language.easy_completion(&self.read)
    }

    /// See [`Language::most`].
    pub fn most(&self) -> u32 {
        self.language.most()
    }

    /// See [`Language::longest`].
    pub fn longest(&self) -> u32 {
        self.language.longest(&self.read)
    }

    /// See [`Language::run`].
    pub fn run(&self) -> Option<u32> {
        self.language.run(&self.read)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        memory::allocated(size_of::<LanguageRest>()) + memory::of_slice::<u8>(self.read.len())
    }
}

impl PartialEq for LanguageRest {
    fn eq(&self, other: &LanguageRest) -> bool {
        self.read == other.read && self.language.name() == other.language.name()
    }
}

impl Eq for LanguageRest {}

impl Hash for LanguageRest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.language.name().hash(state);
        self.read.hash(state);
    }
}

impl fmt::Debug for LanguageRest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} behind {:?}", self.language.name(), String::from_utf8_lossy(&self.read))
    }
}
