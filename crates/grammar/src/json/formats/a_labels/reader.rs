//! Labels that are read byte by byte, as in a walk of a trie: those with a common beginning are decoded once.

use stencilm_regex::LanguageReader;

use super::completions::{MAX_ENCODED, ROOM, completion, is_mended_once};
use super::decoder::{Decoder, FIRST_INSERTION};

pub(super) const PREFIX: &[u8] = b"xn--";

/// A label or its prefix, in lowercase.
pub(super) struct Reader {
    /// Whether it's in a name with right-to-left letters.
    turning: bool,
    pub(super) text: Vec<u8>,
    /// How many bytes of it were read before the reader was created.
    begun: usize,
    /// The decoders after each byte of the encoding; `None` where the bytes are not a prefix of an encoding. Computed
    /// on demand.
    decoders: Vec<Option<Decoder>>,
    /// The last question about the text, and its answer: with a limit of length, the question is often the same as for
    /// the longest label.
    asked: Option<((usize, usize), bool)>,
}

impl Reader {
    pub(super) fn after(turning: bool, read: &[u8]) -> Reader {
        Reader { turning, text: read.to_vec(), begun: read.len(), decoders: Vec::new(), asked: None }
    }

    /// The text after the prefix.
    fn encoded(&self) -> Option<&[u8]> {
        self.text.strip_prefix(PREFIX)
    }

    /// The text after the prefix, and its decoder.
    fn decoded(&mut self) -> Option<(&[u8], Option<&Decoder>)> {
        let encoded = self.text.strip_prefix(PREFIX)?;
        if self.decoders.is_empty() {
            // The bytes read before never change.
            let before = self.begun.saturating_sub(PREFIX.len());
            self.decoders.resize(before, None);
            self.decoders.push(Decoder::read(&encoded[..before]));
        }
        for end in self.decoders.len()..=encoded.len() {
            let decoder = match encoded[end - 1] {
                // The bytes that were read as digits turn out to be letters.
                b'-' => Decoder::read(&encoded[..end]),
                digit => self.decoders[end - 1].as_ref().and_then(|decoder| decoder.after(&[digit])),
            };
            self.decoders.push(decoder);
        }
        Some((encoded, self.decoders[encoded.len()].as_ref()))
    }

    /// Whether some number of characters, from `least` to `most`, is found to complete the encoding. If so, and the
    /// encoding is not a label yet, some next character leads to one for which that is found too, because the search
    /// there is the same, in the same order.
    fn is_open(&mut self, least: usize, most: usize) -> bool {
        let turning = self.turning;
        let Some(encoded) = self.encoded() else { return false };
        let Some(room) = MAX_ENCODED.checked_sub(encoded.len()) else { return false };
        let most = most.min(room);
        // One insertion after another hyphen repairs most encodings.
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
