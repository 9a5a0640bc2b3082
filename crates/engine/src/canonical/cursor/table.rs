//! Numbered cursors with a table of steps: the tokenizer's reading of a text as an automaton that is built while it is
//! used.
//!
//! The same few cursors recur after other tokens and in other grammars. With numbers and a table of steps, reading a
//! token is one look-up for each character, and results about a cursor are stored under its number.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;
use stencilm_support::{Bounded, LARGE_BUDGET};

use super::state::{Cursor, CursorKey, length_of};
use crate::canonical::encoder::facts::{Encoder, Role};

/// Added to the class of a character of several bytes.
const CLASS: u32 = 1 << 25;

/// Added to a cursor after an ASCII byte that certainly settles a probed boundary.
const STANDS: u32 = 1 << 31;

/// In place of a cursor: not computed yet.
const UNKNOWN: u32 = u32::MAX;
/// In place of a cursor: no text fits.
const NOWHERE: u32 = u32::MAX - 1;

/// The greatest number of forced bytes that are examined.
pub(crate) const MAX_BYTES: usize = 8;
/// The greatest number of characters that show that a token keeps its end, minus one.
pub(crate) const MAX_CHARACTERS: usize = 3;

/// The number of a cursor, valid until its [`Cursors`] are emptied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CursorId(pub u32);

/// The tokens that may follow another one, each with the cursor after it.
pub(crate) type Followers = Arc<[(u32, CursorId)]>;

/// A text after a token that shows that the token keeps its end.
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

/// A text that is forced, and what may follow it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Text {
    pub bytes: [u8; MAX_BYTES],
    pub len: u8,
    /// The bytes that may follow; the set may be too large.
    pub after: ByteSet,
}

/// A cursor, and the bytes of an incomplete character after it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    cursor: CursorId,
    partial: [u8; 4],
    len: u8,
}

impl Reading {
    /// The cursor, if no character is incomplete.
    pub fn cursor(self) -> Option<CursorId> {
        (self.len == 0).then_some(self.cursor)
    }

    /// At a cursor after a whole character.
    pub fn at(cursor: CursorId) -> Reading {
        Reading { cursor, partial: [0; 4], len: 0 }
    }
}

/// The cursors met so far.
#[derive(Default)]
pub(crate) struct Cursors {
    cursors: Vec<CursorKey>,
    numbers: FxHashMap<CursorKey, CursorId>,
    /// The next cursor by cursor and ASCII byte, for cursors from which something was read; [`UNKNOWN`] for bytes not
    /// read yet.
    ascii: Vec<Option<Box<[u32; 128]>>>,
    /// The same after a probed boundary, with [`STANDS`]: see [`Cursors::reads`].
    probed: Vec<Option<Box<[u32; 128]>>>,
    /// The next cursor by cursor and other input: another byte, or 256 plus a character of several bytes.
    steps: FxHashMap<(CursorId, u32), Option<CursorId>>,
    /// By cursor and the role of the next token, the cursor before its first byte; [`UNKNOWN`] where not computed yet.
    /// See [`Cursors::begin`].
    begun: Vec<[u32; 8]>,
    may_end: FxHashMap<CursorId, bool>,
    /// By cursor after a token, and by what merges with the token: see [`Encoder::keeps_end`].
    pub shown: Bounded<(CursorId, u32), Shown>,
    /// By cursor after a token, the token, and the bytes that may come.
    pub followers: Bounded<(CursorId, u32, ByteSet), Option<Followers>>,
    /// By cursor in the beginning of a token that no merge makes: the tokens for which that makes a difference.
    pub distinguishing: Bounded<CursorId, Arc<[u32]>>,
    /// By cursor after a token, the token, and a forced text: whether the token is viable; `None` where the text does
    /// not decide.
    pub forced: Bounded<(CursorId, u32, Text), Option<bool>>,
}

impl Cursors {
    /// Whether there are so many cursors that the table should be emptied.
    pub fn are_full(&self) -> bool {
        self.memory_bytes() > LARGE_BUDGET
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let by_cursor = self.cursors.len() * (size_of::<Cursor>() + 640) + self.steps.len() * 24;
        let kept = self.followers.memory_bytes() + self.distinguishing.memory_bytes() + self.shown.memory_bytes();
        by_cursor + kept + self.forced.memory_bytes()
    }

    /// The number of a cursor.
    pub fn of(&mut self, key: &CursorKey) -> CursorId {
        match self.numbers.get(key) {
            Some(&known) => known,
            None => self.push(key.clone()),
        }
    }

    fn add(&mut self, cursor: Cursor) -> CursorId {
        self.of(&cursor.into())
    }

    fn push(&mut self, key: CursorKey) -> CursorId {
        let cursor = CursorId(self.cursors.len() as u32);
        self.cursors.push(key.clone());
        self.ascii.push(None);
        self.probed.push(None);
        self.begun.push([UNKNOWN; 8]);
        self.numbers.insert(key, cursor);
        cursor
    }

    /// The cursor with a number.
    pub fn key(&self, cursor: CursorId) -> &CursorKey {
        &self.cursors[cursor.0 as usize]
    }

    /// The cursor after one more token; `None` where the tokenizer would not write it there, whatever follows.
    /// `unmerged` says that no merge joins it with the token before.
    pub fn advance(&mut self, encoding: &Encoder, cursor: CursorId, token: u32, unmerged: bool) -> Option<CursorId> {
        let bytes = encoding.tokens().token_bytes(token)?;
        let at = self.begin(encoding, cursor, encoding.role(token)?, unmerged)?;
        self.read_all(encoding, at, bytes)
    }

    /// Both cursors after one more token: where no merge joins it with the token before, and where one does.
    pub fn advance_both(&mut self, encoding: &Encoder, cursor: CursorId, token: u32) -> [Option<CursorId>; 2] {
        let (Some(mut rest), Some(role)) = (encoding.tokens().token_bytes(token), encoding.role(token)) else {
            return [None; 2];
        };
        let mut at = [true, false].map(|unmerged| self.begin(encoding, cursor, role, unmerged));
        // Both cursors are nearly always the same after the first character, or one of them does not exist.
        while at[0] != at[1]
            && let Some((&first, after)) = rest.split_first()
            && first < 0x80
        {
            at = at.map(|at| self.read(encoding, at?, first));
            rest = after;
        }
        let [one, other] = at;
        let end = one.and_then(|one| self.read_all(encoding, one, rest));
        match one == other {
            true => [end; 2],
            false => [end, other.and_then(|other| self.read_all(encoding, other, rest))],
        }
    }

    /// The cursor after all these bytes.
    fn read_all(&mut self, encoding: &Encoder, mut at: CursorId, bytes: &[u8]) -> Option<CursorId> {
        let mut rest = bytes;
        while let Some((&first, after)) = rest.split_first() {
            if first < 0x80 {
                at = self.read(encoding, at, first)?;
                rest = after;
                continue;
            }
            let mut len = 1;
            if !self.key(at).within_character() {
                len = rest.iter().skip(1).take_while(|&&byte| byte & 0xC0 == 0x80).count() + 1;
            }
            let (unit, after) = rest.split_at(len);
            at = match std::str::from_utf8(unit).ok().and_then(|text| text.chars().next()) {
                Some(character) if len > 1 && character.len_utf8() == len => {
                    self.read_character(encoding, at, character)?
                }
                _ => unit.iter().try_fold(at, |at, &byte| self.read(encoding, at, byte))?,
            };
            rest = after;
        }
        Some(at)
    }

    /// The cursor before the first byte of the next token.
    pub fn begin(&mut self, encoding: &Encoder, cursor: CursorId, role: Role, unmerged: bool) -> Option<CursorId> {
        let what = u8::from(unmerged) | u8::from(role.is_byte) << 1 | u8::from(role.is_whole) << 2;
        match self.begun[cursor.0 as usize][usize::from(what)] {
            UNKNOWN => {
                let begun = self.key(cursor).begin(encoding, role, unmerged);
                let begun = begun.map(|cursor| self.add(cursor));
                self.begun[cursor.0 as usize][usize::from(what)] = begun.map_or(NOWHERE, |begun| begun.0);
                begun
            }
            NOWHERE => None,
            known => Some(CursorId(known)),
        }
    }

    /// The cursor after one more byte of a token.
    pub fn read(&mut self, encoding: &Encoder, cursor: CursorId, byte: u8) -> Option<CursorId> {
        if byte >= 0x80 {
            return match self.steps.get(&(cursor, u32::from(byte))) {
                Some(&known) => known,
                None => {
                    let next = self.step(encoding, cursor, &[byte]);
                    self.steps.insert((cursor, u32::from(byte)), next);
                    next
                }
            };
        }
        let row = self.ascii[cursor.0 as usize].as_ref();
        match row.map_or(UNKNOWN, |row| row[usize::from(byte)]) {
            UNKNOWN => {
                let next = self.step(encoding, cursor, &[byte]);
                let row = self.ascii[cursor.0 as usize].get_or_insert_with(|| Box::new([UNKNOWN; 128]));
                row[usize::from(byte)] = next.map_or(NOWHERE, |next| next.0);
                next
            }
            NOWHERE => None,
            known => Some(CursorId(known)),
        }
    }

    /// The cursor after one more whole character of a token.
    pub fn read_whole(&mut self, encoding: &Encoder, cursor: CursorId, character: char) -> Option<CursorId> {
        match u8::try_from(character).ok().filter(u8::is_ascii) {
            Some(byte) => self.read(encoding, cursor, byte),
            None => self.read_character(encoding, cursor, character),
        }
    }

    /// The cursor after one more character of several bytes.
    fn read_character(&mut self, encoding: &Encoder, cursor: CursorId, character: char) -> Option<CursorId> {
        // Nearly always only the class of the character matters.
        let unit = 256 + u32::from(character);
        let by_class = self.key(cursor).reads_by_class(encoding, character);
        let class = by_class.then(|| CLASS + u32::from(encoding.pretokenizer().class(character)));
        let known = class.and_then(|class| self.steps.get(&(cursor, class)));
        if let Some(&known) = known.or_else(|| self.steps.get(&(cursor, unit))) {
            return known;
        }
        let next = self.step(encoding, cursor, character.encode_utf8(&mut [0; 4]).as_bytes());
        let class = class.filter(|_| next.is_none_or(|next| !self.key(next).has_open_characters()));
        self.steps.insert((cursor, class.unwrap_or(unit)), next);
        next
    }

    /// Reads a byte; a character of several bytes is read when it is complete. So an incomplete character needs no
    /// cursor, and a walk through a vocabulary makes few cursors.
    pub fn read_on(&mut self, encoding: &Encoder, from: Reading, byte: u8) -> Option<Reading> {
        let Reading { cursor, mut partial, len } = from;
        if len == 0 && (byte < 0x80 || self.key(cursor).within_character()) {
            return Some(Reading { cursor: self.read(encoding, cursor, byte)?, ..from });
        }
        partial[usize::from(len)] = byte;
        let needed = length_of(partial[0])?;
        if usize::from(len) + 1 < needed {
            return Some(Reading { cursor, partial, len: len + 1 });
        }
        let character = std::str::from_utf8(&partial[..needed]).ok()?.chars().next()?;
        Some(Reading::at(self.read_character(encoding, cursor, character)?))
    }

    fn step(&mut self, encoding: &Encoder, cursor: CursorId, bytes: &[u8]) -> Option<CursorId> {
        let mut cursor = Cursor::clone(self.key(cursor));
        let read = bytes.iter().all(|&byte| cursor.read(encoding, byte));
        read.then(|| self.add(cursor))
    }

    /// Whether the text may end at a cursor.
    pub fn may_end(&mut self, encoding: &Encoder, cursor: CursorId) -> bool {
        match self.may_end.get(&cursor) {
            Some(&known) => known,
            None => {
                let may_end = self.key(cursor).may_end(encoding);
                self.may_end.insert(cursor, may_end);
                may_end
            }
        }
    }

    /// The cursor after a boundary that may be followed by any tokens. `unmerged` says that no merge crosses the
    /// boundary.
    pub fn probe(&mut self, encoding: &Encoder, cursor: CursorId, unmerged: bool) -> Option<CursorId> {
        self.begin(encoding, cursor, Role { is_byte: false, is_whole: true }, unmerged)
    }

    /// Reads an ASCII byte after a probed boundary. Returns the next cursor, and whether the boundary is certainly
    /// settled, whatever follows; `None` where the boundary cannot be right.
    pub fn reads(&mut self, encoding: &Encoder, cursor: CursorId, byte: u8) -> Option<(CursorId, bool)> {
        let row = self.probed[cursor.0 as usize].as_ref();
        let known = match row.map_or(UNKNOWN, |row| row[usize::from(byte)]) {
            UNKNOWN => {
                // Whether the character has a token or is written in bytes depends on the next tokens.
                let mut read = Cursor::clone(self.key(cursor));
                let next = read.feed_on(encoding, char::from(byte), true).then(|| {
                    let stands = read.stands(self.key(cursor));
                    self.add(read).0 | if stands { STANDS } else { 0 }
                });
                let row = self.probed[cursor.0 as usize].get_or_insert_with(|| Box::new([UNKNOWN; 128]));
                row[usize::from(byte)] = next.unwrap_or(NOWHERE);
                row[usize::from(byte)]
            }
            known => known,
        };
        (known != NOWHERE).then_some((CursorId(known & !STANDS), known & STANDS != 0))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::canonical::encoder::source::EncodingSource;
    use crate::canonical::encoding::Encoding;
    use crate::vocabulary::tokens::Tokens;

    /// Letters, spaces and a few merges; no merge makes "ba" and "  b".
    pub fn encoding() -> Encoding {
        let mut texts: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        texts.extend(["ab", "  ", " a", "\n\n", "é", "ba", "  b", "aé"].map(|text| text.as_bytes().to_vec()));
        let texts: Vec<Option<Vec<u8>>> = texts.into_iter().map(Some).collect();
        let tokens = Tokens::new(&texts, texts.len(), &[], &[]).expect("ids fit");
        let merges = [("a", "b", 256), (" ", " ", 257), (" ", "a", 258), ("\n", "\n", 259)];
        let id = |text: &str| u32::from(text.as_bytes()[0]);
        let mut merges: Vec<(u32, u32, u32)> =
            merges.into_iter().map(|(left, right, whole)| (id(left), id(right), whole)).collect();
        merges.extend([(0xC3, 0xA9, 260), (id("a"), 260, 263)]);
        let source = EncodingSource {
            bytes: (0..256).collect(),
            chars: None,
            changed: None,
            merges,
            whole_pieces: true,
            pattern: Some(r" ?[a-zé]+|[0-9]{1,3}|\s*\n+|\s+(?!\S)|\s+|[^\sa-z0-9é]".into()),
        };
        Encoding::new(&source, Arc::new(tokens)).expect("it can be laid out")
    }

    proptest! {
        #[test]
        fn numbers_are_cursors(
            picks in prop::collection::vec((prop::sample::select(vec![
                32u32, 97, 98, 10, 49, 0xC3, 0xA9, 63, 256, 257, 258, 259, 260, 261, 262, 263,
            ]), any::<bool>()), 1..12),
        ) {
            let encoding = encoding();
            let mut cursors = Cursors::default();
            // Twice, so that in the second round every step is cached.
            for _ in 0..2 {
                let mut by_itself = Cursor::start();
                let mut cursor = cursors.of(&by_itself.clone().into());
                for &(token, unmerged) in &picks {
                    let next = by_itself.advance(&encoding, token, unmerged);
                    let found = cursors.advance(&encoding, cursor, token, unmerged);
                    prop_assert_eq!(cursors.advance_both(&encoding, cursor, token)[usize::from(!unmerged)], found);
                    prop_assert_eq!(found.map(|cursor| Cursor::clone(cursors.key(cursor))), next.clone());
                    let (Some(next), Some(found)) = (next, found) else { break };
                    prop_assert_eq!(cursors.may_end(&encoding, found), next.may_end(&encoding));
                    (by_itself, cursor) = (next, found);
                }
            }
        }
    }
}
