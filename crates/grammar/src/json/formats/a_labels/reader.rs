//! Labels that are read byte by byte, as in a walk of a trie: those with a common beginning are decoded once.

use stencilm_regex::LanguageReader;

use super::completions::{MAX_ENCODED, ROOM, completion, is_mended_once};
use super::decoder::{Decoder, FIRST_INSERTION};

pub(super) const PREFIX: &[u8] = b"xn--";

/// A label, or its beginning, in small letters.
pub(super) struct Reader {
    /// Whether it stands in a name with letters from right to left.
    turning: bool,
    pub(super) text: Vec<u8>,
    /// So many bytes of it were read before.
    begun: usize,
    /// By the bytes of the encoding that were read, what they decode to; `None` where they are no beginning of an
    /// encoding. Only as far as it was asked for.
    decoders: Vec<Option<Decoder>>,
    /// What was last asked of the text, and the answer: a limit of length often leaves what the longest label leaves.
    asked: Option<((usize, usize), bool)>,
}

impl Reader {
    pub(super) fn after(turning: bool, read: &[u8]) -> Reader {
        Reader { turning, text: read.to_vec(), begun: read.len(), decoders: Vec::new(), asked: None }
    }

    /// What stands after the prefix.
    fn encoded(&self) -> Option<&[u8]> {
        self.text.strip_prefix(PREFIX)
    }

    /// The same, and what it decodes to.
    fn decoded(&mut self) -> Option<(&[u8], Option<&Decoder>)> {
        let encoded = self.text.strip_prefix(PREFIX)?;
        if self.decoders.is_empty() {
            // What was read before never changes.
            let before = self.begun.saturating_sub(PREFIX.len());
            self.decoders.resize(before, None);
            self.decoders.push(Decoder::read(&encoded[..before]));
        }
        for end in self.decoders.len()..=encoded.len() {
            let decoder = match encoded[end - 1] {
                // What were digits are letters.
                b'-' => Decoder::read(&encoded[..end]),
                digit => self.decoders[end - 1].as_ref().and_then(|decoder| decoder.after(&[digit])),
            };
            self.decoders.push(decoder);
        }
        Some((encoded, self.decoders[encoded.len()].as_ref()))
    }

    /// Whether at least and at most so many characters are seen to complete the encoding. Of one that is open and no
    /// label, a character more leads to one that is, since what is looked for, and in which order, is the same there.
    fn is_open(&mut self, least: usize, most: usize) -> bool {
        let turning = self.turning;
        let Some(encoded) = self.encoded() else { return false };
        let Some(room) = MAX_ENCODED.checked_sub(encoded.len()) else { return false };
        let most = most.min(room);
        // One insertion after one more hyphen mostly mends what there is to mend.
        let is_certain = most >= ROOM || (most > FIRST_INSERTION && is_mended_once(encoded, turning));
        if least == 0 && is_certain {
            return true;
        }
        if let Some((_, known)) = self.asked.filter(|&(asked, _)| asked == (least, most)) {
            return known;
        }
        let is_completed = |(encoded, decoder)| completion(encoded, decoder, least, most, turning).is_some();
        let is_open = self.decoded().is_some_and(is_completed);
        self.asked = Some(((least, most), is_open));
        is_open
    }
}

impl LanguageReader for Reader {
    fn read(&mut self, bytes: &[u8]) -> bool {
        let known =
            self.text[self.begun..].iter().zip(bytes).take_while(|(old, new)| **old == new.to_ascii_lowercase());
        let known = self.begun + known.count();
        self.asked = None;
        self.text.truncate(known);
        self.decoders.truncate((known + 1).saturating_sub(PREFIX.len()));
        self.text.extend(bytes[known - self.begun..].iter().map(u8::to_ascii_lowercase));
        match self.encoded() {
            None => PREFIX.starts_with(&self.text),
            Some(encoded) => {
                let is_letter = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
                encoded.iter().all(is_letter) && self.is_open(0, MAX_ENCODED)
            }
        }
    }

    fn is_member(&mut self) -> bool {
        let turning = self.turning;
        self.decoded().and_then(|(_, decoder)| decoder).is_some_and(|decoder| decoder.is_label(turning))
    }

    fn is_completed(&mut self, least: u32, most: u32) -> bool {
        let (least, most) = (least as usize, most as usize);
        match PREFIX.len().checked_sub(self.text.len()).filter(|&prefix| prefix > 0) {
            None => self.is_open(least, most),
            Some(prefix) => {
                let Some(most) = most.checked_sub(prefix) else { return false };
                Reader::after(self.turning, PREFIX).is_open(least.saturating_sub(prefix), most)
            }
        }
    }
}
