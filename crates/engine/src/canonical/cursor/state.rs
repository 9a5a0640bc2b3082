//! The tokenizer's reading of a text after a sequence of tokens.
//!
//! How the tokenizer encodes a text is decided except for its end: whether the last piece continues, and sometimes
//! where a run of whitespace is cut, depends on what follows. A cursor keeps exactly that: the state of the
//! pre-tokenizer, the characters after the last position at which the piece may end, and the token boundaries among
//! them. A boundary that merges would cross must turn out to lie between pieces; a position between pieces must turn
//! out to be a boundary.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxBuildHasher;
use stencilm_support::LOOKED_AT;

use crate::canonical::encoder::facts::{Encoder, OFF, Role};
use crate::canonical::pretokenizer::pattern::{DEAD, START};

/// A token boundary that is not settled yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Cut {
    /// The number of characters from the last position at which the piece may end.
    at: u16,
    /// Whether no merge joins its two sides. Otherwise it must be the end of a piece.
    unmerged: bool,
    /// Whether a token that no merge makes begins here.
    whole: bool,
}

/// The state of the tokenizer after a sequence of tokens.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Cursor {
    state: u16,
    /// Whether nothing was read yet.
    pub empty: bool,
    /// Whether there is a position at which the piece may end. `open` holds the characters after it.
    has_end: bool,
    /// Whether the piece up to that position is a token that no merge makes.
    is_whole: bool,
    /// Whether the piece begins with such a token.
    begins_whole: bool,
    /// The position of this piece in the trie of such tokens; [`OFF`] where it cannot become one.
    whole: u32,
    open: Vec<char>,
    cuts: Vec<Cut>,
    /// The bytes of an incomplete character, and their number.
    partial: ([u8; 4], u8),
    /// Whether these bytes come from tokens for single bytes.
    by_bytes: bool,
}

/// A cursor as a key of tables. Its hash is computed only once, and a comparison with itself needs only the address:
/// every mask looks up several tables by cursor.
#[derive(Clone, Debug)]
pub(crate) struct CursorKey(Arc<Keyed>);

#[derive(Debug)]
struct Keyed {
    hash: u64,
    cursor: Cursor,
    /// See [`CursorKey::for_mask`]. It is not set to the key itself, since that would keep it alive forever.
    for_mask: OnceLock<CursorKey>,
}

impl CursorKey {
    /// The cursor without the parts that do not affect whether the very next token fits.
    pub fn for_mask(&self) -> &CursorKey {
        if self.whole == OFF {
            return self;
        }
        self.0.for_mask.get_or_init(|| Cursor { whole: OFF, ..self.0.cursor.clone() }.into())
    }

    /// The same cursor, except that the piece cannot become a token that no merge makes. `None` where it cannot anyway,
    /// or where the end of the piece is not settled.
    pub fn without_whole(&self) -> Option<&CursorKey> {
        let is_plain = self.has_end && self.open.is_empty() && !self.within_character();
        (self.may_become_whole() && is_plain).then(|| self.for_mask())
    }
}

impl From<Cursor> for CursorKey {
    fn from(cursor: Cursor) -> CursorKey {
        use std::hash::BuildHasher;
        CursorKey(Arc::new(Keyed { hash: FxBuildHasher.hash_one(&cursor), cursor, for_mask: OnceLock::new() }))
    }
}

impl Deref for CursorKey {
    type Target = Cursor;

    fn deref(&self) -> &Cursor {
        &self.0.cursor
    }
}

impl Hash for CursorKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl PartialEq for CursorKey {
    fn eq(&self, other: &CursorKey) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.hash == other.0.hash && self.0.cursor == other.0.cursor)
    }
}

impl Eq for CursorKey {}

/// The number of bytes of a character with this first byte.
pub(crate) fn length_of(first: u8) -> Option<usize> {
    match first {
        0..0x80 => Some(1),
        0xC2..0xE0 => Some(2),
        0xE0..0xF0 => Some(3),
        0xF0..0xF5 => Some(4),
        _ => None,
    }
}

impl Cursor {
    /// The cursor before the first token, and after one without text.
    pub fn start() -> Cursor {
        Cursor {
            state: START,
            empty: true,
            has_end: false,
            is_whole: false,
            begins_whole: false,
            whole: 0,
            open: Vec::new(),
            cuts: Vec::new(),
            partial: ([0; 4], 0),
            by_bytes: false,
        }
    }

    /// The node of this piece in the trie of tokens that no merge makes, if it may still become one.
    pub fn whole_node(&self) -> Option<usize> {
        self.may_become_whole().then(|| self.whole as usize - 1)
    }

    /// Whether the text ends within a character.
    pub fn within_character(&self) -> bool {
        self.partial.1 > 0
    }

    /// Whether some earlier boundary must turn out to be the end of a piece, or some possible end a boundary.
    pub fn waits_for_ends(&self) -> bool {
        self.is_whole || self.cuts.iter().any(|cut| !cut.unmerged) || (self.has_end && !self.open.is_empty())
    }

    /// Whether a probed boundary is settled whatever follows; `before` is the cursor one character ago, see
    /// [`Cursors::reads`](super::table::Cursors::reads).
    pub fn stands(&self, before: &Cursor) -> bool {
        let is_another = self.begins_whole && !before.begins_whole;
        match self.cuts[..] {
            [] => is_another || self.whole == OFF,
            [Cut { at: 0, unmerged: true, .. }] => self.has_end && !self.is_whole && self.whole == OFF,
            _ => false,
        }
    }

    /// Whether all characters of one class lead to the same cursor, apart from characters that stay open.
    pub fn reads_by_class(&self, encoding: &Encoder, character: char) -> bool {
        let begins_whole_pieces = || encoding.whole_firsts.contains(character.encode_utf8(&mut [0; 4]).as_bytes()[0]);
        encoding.splits()
            && !encoding.by_characters()
            && !self.within_character()
            && matches!(self.whole, OFF | 0)
            && !begins_whole_pieces()
    }

    /// Whether some characters are open because the end of the piece is not settled.
    pub fn has_open_characters(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the piece may become a token that no merge makes.
    pub fn may_become_whole(&self) -> bool {
        self.whole != OFF && self.whole != 0
    }

    /// If everything up to here is settled and the piece may end here: the state, which then determines the rest.
    pub fn settled(&self) -> Option<u16> {
        (self.has_end && self.open.is_empty() && self.cuts.is_empty() && self.partial.1 == 0 && !self.is_whole)
            .then_some(self.state)
    }

    /// The cursor after one more token; `None` where the tokenizer would not write it here, whatever follows.
    /// `unmerged` says that no merge joins it with the token before. The slow reference of
    /// [`Cursors`](super::table::Cursors).
    #[cfg(test)]
    pub fn advance(&self, encoding: &Encoder, token: u32, unmerged: bool) -> Option<Cursor> {
        let bytes = encoding.tokens().token_bytes(token)?;
        let mut next = self.begin(encoding, encoding.role(token)?, unmerged)?;
        bytes.iter().all(|&byte| next.read(encoding, byte)).then_some(next)
    }

    /// The cursor before the first byte of the next token.
    pub(crate) fn begin(&self, encoding: &Encoder, role: Role, unmerged: bool) -> Option<Cursor> {
        if !encoding.splits() && !unmerged && !self.empty {
            return None;
        }
        if self.partial.1 > 0 && (!unmerged || (encoding.by_characters() && !role.is_byte)) {
            return None;
        }
        let mut next = self.clone();
        if next.empty {
            next.empty = false;
            next.begins_whole = role.is_whole;
        } else if next.partial.1 == 0 && encoding.splits() {
            next.cuts.push(Cut { at: next.open.len() as u16, unmerged, whole: role.is_whole });
        }
        next.by_bytes |= role.is_byte;
        Some(next)
    }

    /// Reads a byte of a token; `false` where the tokenizer would not write it here.
    pub fn read(&mut self, encoding: &Encoder, byte: u8) -> bool {
        let (buffer, len) = &mut self.partial;
        buffer[usize::from(*len)] = byte;
        *len += 1;
        let Some(needed) = length_of(buffer[0]) else { return false };
        if usize::from(*len) < needed {
            return !self.by_bytes || !encoding.closed_firsts.contains(buffer[0]);
        }
        let character = std::str::from_utf8(&buffer[..usize::from(*len)]).ok().and_then(|text| text.chars().next());
        let Some(character) = character else { return false };
        self.partial = ([0; 4], 0);
        if encoding.by_characters() && encoding.is_symbol(character) == self.by_bytes {
            return false;
        }
        self.by_bytes = false;
        !encoding.splits() || self.feed(encoding, character)
    }

    /// Whether the text may end here.
    pub fn may_end(&self, encoding: &Encoder) -> bool {
        if self.empty || !encoding.splits() {
            return self.partial.1 == 0;
        }
        if self.partial.1 > 0 {
            return false;
        }
        let pretokenizer = encoding.pretokenizer();
        let mut here = self.clone();
        loop {
            if pretokenizer.may_end_text(here.state) {
                // The piece ends with the text, so no merge may cross the remaining boundaries.
                return here.cuts.iter().all(|cut| cut.unmerged) && (!here.ends_wholly(encoding) || here.begins_whole);
            }
            let Some(rest) = here.end_piece() else { return false };
            if !rest.into_iter().all(|character| here.feed(encoding, character)) {
                return false;
            }
        }
    }

    /// Whether the piece up to here is a token that no merge makes.
    fn ends_wholly(&self, encoding: &Encoder) -> bool {
        self.whole != OFF && encoding.is_whole_piece(self.whole)
    }

    /// Ends the piece at the last possible position. Returns the characters after it, which have to be read again;
    /// `None` where no token begins there.
    fn end_piece(&mut self) -> Option<Vec<char>> {
        let first = *self.cuts.first()?;
        if !self.has_end || first.at != 0 || (self.is_whole && !self.begins_whole) {
            return None;
        }
        self.cuts.remove(0);
        self.begins_whole = first.whole;
        (self.state, self.whole) = (START, 0);
        (self.has_end, self.is_whole) = (false, false);
        Some(std::mem::take(&mut self.open))
    }

    /// Reads a character; `false` where the tokens contradict what it settles.
    pub fn feed(&mut self, encoding: &Encoder, character: char) -> bool {
        self.feed_on(encoding, character, false) && self.rest_fits(encoding)
    }

    /// Whether the open characters fit, if the piece certainly ends before them. Otherwise a run of whitespace with
    /// contradictory boundaries would seem possible until something else follows, which may never come.
    fn rest_fits(&self, encoding: &Encoder) -> bool {
        if !self.certainly_ends() {
            return true;
        }
        let mut here = self.clone();
        while here.certainly_ends() {
            let Some(rest) = here.end_piece() else { return false };
            if !rest.into_iter().all(|character| here.feed_on(encoding, character, false)) {
                return false;
            }
        }
        true
    }

    /// Whether the piece certainly ends at the last possible position: a longer piece would contain a boundary that
    /// must be the end of a piece.
    fn certainly_ends(&self) -> bool {
        self.has_end && self.cuts.iter().any(|cut| usize::from(cut.at) < self.open.len() && !cut.unmerged)
    }

    /// Reads a character, perhaps after a probed boundary. Once a piece ends at the probed boundary, what follows is
    /// not read, since any tokens may come.
    pub fn feed_on(&mut self, encoding: &Encoder, character: char, probing: bool) -> bool {
        let pretokenizer = encoding.pretokenizer();
        let mut rest = VecDeque::from([character]);
        while let Some(character) = rest.pop_front() {
            let (next, ends) = pretokenizer.step(self.state, pretokenizer.class(character));
            if ends && !self.move_end(encoding) {
                return false;
            }
            if next == DEAD {
                let Some(open) = self.end_piece() else { return false };
                if probing && self.cuts.is_empty() {
                    self.whole = OFF;
                    return true;
                }
                rest.push_front(character);
                open.into_iter().rev().for_each(|character| rest.push_front(character));
                continue;
            }
            if !self.has_end && !self.settle_cuts() {
                return false;
            }
            self.state = next;
            self.whole = encoding.whole_step(self.whole, character);
            // A piece may be open only for so long; a longer one is refused.
            if self.open.len() >= LOOKED_AT {
                return false;
            }
            self.open.push(character);
            if pretokenizer.may_end(next) && !self.move_end(encoding) {
                return false;
            }
        }
        true
    }

    /// While the piece cannot have ended yet, earlier boundaries lie within it.
    fn settle_cuts(&mut self) -> bool {
        let here = self.open.len();
        let fits = self.cuts.iter().all(|cut| usize::from(cut.at) > here || cut.unmerged);
        self.cuts.retain(|cut| usize::from(cut.at) > here);
        fits
    }

    /// The piece may end here, and so no longer at an earlier position.
    fn move_end(&mut self, encoding: &Encoder) -> bool {
        let here = self.open.len();
        if self.has_end && here == 0 {
            return true;
        }
        if self.cuts.iter().any(|cut| usize::from(cut.at) < here && !cut.unmerged) {
            return false;
        }
        self.cuts.retain(|cut| usize::from(cut.at) >= here);
        self.cuts.iter_mut().for_each(|cut| cut.at -= here as u16);
        self.open.clear();
        self.has_end = true;
        self.is_whole = self.ends_wholly(encoding);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::canonical::encoder::source::EncodingSource;
    use crate::canonical::encoding::Encoding;
    use crate::vocabulary::tokens::Tokens;

    #[test]
    fn bytes_of_characters_that_all_have_tokens_are_never_written() {
        let mut texts: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        // All characters whose first byte is 0xC3, and all but one of those with 0xC4.
        let characters = ('\u{c0}'..='\u{ff}').chain('\u{101}'..='\u{13f}');
        let chars: Vec<(char, u32)> = characters.zip(256..).collect();
        texts.extend(chars.iter().map(|(character, _)| character.to_string().into_bytes()));
        let texts: Vec<Option<Vec<u8>>> = texts.into_iter().map(Some).collect();
        let tokens = Tokens::new(&texts, texts.len(), &[], &[]).expect("ids fit");
        let source = EncodingSource {
            bytes: (0..256).collect(),
            chars: Some(chars),
            changed: None,
            merges: Vec::new(),
            whole_pieces: false,
            pattern: None,
        };
        let encoding = Encoding::new(&source, Arc::new(tokens)).expect("it can be laid out");
        for (first, last, fits) in [(0xC3, 0xA9, false), (0xC4, 0x80, true)] {
            let after = Cursor::start().advance(&encoding, first, true);
            assert_eq!(after.is_some(), fits, "{first:x}");
            assert_eq!(after.and_then(|cursor| cursor.advance(&encoding, last, true)).is_some(), fits, "{first:x}");
        }
    }
}
