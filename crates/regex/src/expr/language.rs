//! Languages decided by a program, as leaves of expressions.
//!
//! Whether a text is a member may depend on all of it in a way that no small automaton decides, as when a host-name
//! label is the encoding of another. Then a program says which beginnings can be completed and which are members. The
//! state is the text read so far, in a normal form that the program chooses.

use std::fmt;
use std::hash::{Hash, Hasher};

use stencilm_support::memory;

use crate::expr::byte_set::ByteSet;

/// A language decided by a program.
pub trait Language: Send + Sync {
    /// The name, which no other language has.
    fn name(&self) -> &'static str;

    /// The bytes of its texts, those together that it never distinguishes.
    fn classes(&self) -> Vec<ByteSet>;

    /// What was read with more bytes, in the normal form; `None` where no member begins so.
    fn after(&self, read: &[u8], bytes: &[u8]) -> Option<Box<[u8]>>;

    /// Whether what was read is a member.
    fn is_member(&self, read: &[u8]) -> bool;

    /// At least so many bytes complete what was read, which is no member; exactly so many where nothing was.
    fn shortest(&self, read: &[u8]) -> u32;

    /// At least and at most so many bytes that complete what was read, as few as are seen to; `None` where none are.
    fn completion(&self, read: &[u8], least: u32, most: u32) -> Option<Vec<u8>>;

    /// Some bytes that complete what was read, where they are found fast.
    fn easy_completion(&self, read: &[u8]) -> Option<Vec<u8>>;

    /// So many bytes, or fewer, complete every beginning of a member.
    fn most(&self) -> u32;

    /// No more bytes complete what was read.
    fn longest(&self, read: &[u8]) -> u32;

    /// So many bytes of the language, at least, may come, whichever they are; `None` where some may not.
    fn run(&self, read: &[u8]) -> Option<u32>;

    /// Reads on after what was read.
    fn reader(&self, read: &[u8]) -> Box<dyn LanguageReader>;
}

/// Reads one text after the other after the same beginning. What two that follow each other begin with is read once, as
/// in a walk of a trie.
pub trait LanguageReader {
    /// Reads a text, in place of the one before; whether a member begins so, as in [`Language::after`].
    fn read(&mut self, bytes: &[u8]) -> bool;

    /// Whether the text, with which a member begins, is one.
    fn is_member(&mut self) -> bool;

    /// Whether at least and at most so many bytes are seen to complete what was read. Where they are, a byte more leads
    /// to where it is seen again.
    fn is_completed(&mut self, least: u32, most: u32) -> bool;
}

/// What is left of a language after some text. It can always be completed.
#[derive(Clone)]
pub struct LanguageRest {
    language: &'static dyn Language,
    read: Box<[u8]>,
}

impl LanguageRest {
    pub(crate) fn start(language: &'static dyn Language) -> LanguageRest {
        LanguageRest { language, read: Box::default() }
    }

    /// The language, where nothing was read.
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

    /// What is left after one more byte; `None` where nothing is.
    pub fn after(&self, byte: u8) -> Option<LanguageRest> {
        self.after_all(&[byte])
    }

    /// The same after more bytes.
    pub fn after_all(&self, bytes: &[u8]) -> Option<LanguageRest> {
        Some(LanguageRest { language: self.language, read: self.language.after(&self.read, bytes)? })
    }

    /// Whether nothing more need come.
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
