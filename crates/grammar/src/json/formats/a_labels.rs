//! Labels of host names in Punycode (RFC 3492): `xn--` and an encoding of a label that [`super::idn`] allows.
//!
//! What a label decodes to is decided by all of it, so a program decides them ([`Language`]). The last hyphen ends the
//! letters of ASCII, and after it stand numbers, each of which inserts a character. While [`ROOM`] characters are left,
//! any beginning may still become letters of ASCII by one more hyphen, and a few insertions mend whatever is wrong with
//! them. With less room, so many digits are tried (`MAX_TRIED`), and a beginning of which no end is found by then is
//! refused: hardly any, and none of a label that is not near a limit of length.

use stencilm_regex::{ByteSet, ExprId, ExprSet, Language, LanguageReader};

use super::whole::whole;
use crate::json::format::Punycode;
use crate::json::strings::Strings;

mod characters;
mod completions;
mod decoder;
mod reader;

use completions::{MAX_ENCODED, ROOM, completion, hyphenated};
use decoder::{Decoder, FIRST_INSERTION};
use reader::{PREFIX, Reader};

/// The length of the shortest label, such as `xn--zca`.
const SHORTEST: usize = 7;

/// The labels that may stand in certain names. Their characters are not escaped in any spelling of JSON, because
/// Punycode is in practice written without escapes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ALabels {
    name: &'static str,
    /// Whether they are for names with right-to-left letters; otherwise for names without.
    turning: bool,
}

static LANGUAGES: [ALabels; 2] =
    [ALabels { name: "a-label", turning: false }, ALabels { name: "a-label bidi", turning: true }];

/// The language with a name.
///
/// # Errors
/// If there is none; the error lists the names of all languages.
pub(crate) fn language(name: &str) -> Result<&'static dyn Language, String> {
    match LANGUAGES.iter().find(|language| language.name == name) {
        Some(language) => Ok(language),
        None => {
            let names = LANGUAGES.map(|language| format!("{:?}", language.name)).join(", ");
            Err(format!("there is no language {name:?}; known are {names}"))
        }
    }
}

/// The labels for names with right-to-left letters, or for names without.
pub(super) fn expr(exprs: &mut ExprSet, strings: &mut Strings, turning: bool, punycode: Punycode) -> ExprId {
    match punycode {
        Punycode::Checked => exprs.language(&LANGUAGES[usize::from(turning)]),
        Punycode::Refused => ExprId::NOTHING,
        Punycode::Unchecked => {
            whole(exprs, strings, &format!(r"[Xx][Nn]--[A-Za-z0-9\-]{{0,{}}}[A-Za-z0-9]", MAX_ENCODED - 1))
        }
    }
}

impl Language for ALabels {
    fn name(&self) -> &'static str {
        self.name
    }

    fn classes(&self) -> Vec<ByteSet> {
        let letters = (b'a'..=b'z').map(|letter| [letter, letter.to_ascii_uppercase()].into_iter().collect());
        (b'0'..=b'9').chain([b'-']).map(ByteSet::of).chain(letters).collect()
    }

    fn after(&self, read: &[u8], bytes: &[u8]) -> Option<Box<[u8]>> {
        let mut reader = Reader::after(self.turning, read);
        reader.read(bytes).then(|| reader.text.into_boxed_slice())
    }

    fn is_member(&self, read: &[u8]) -> bool {
        Reader::after(self.turning, read).is_member()
    }

    fn shortest(&self, read: &[u8]) -> u32 {
        SHORTEST.saturating_sub(read.len()).max(1) as u32
    }

    fn longest(&self, read: &[u8]) -> u32 {
        (PREFIX.len() + MAX_ENCODED - read.len()) as u32
    }

    fn completion(&self, read: &[u8], least: u32, most: u32) -> Option<Vec<u8>> {
        completed(self, read, least as usize, most as usize)
    }

    fn easy_completion(&self, read: &[u8]) -> Option<Vec<u8>> {
        if self.is_member(read) {
            return Some(Vec::new());
        }
        match read.strip_prefix(PREFIX) {
            Some(encoded) => (FIRST_INSERTION + 1..=ROOM).find_map(|most| hyphenated(encoded, 0, most, self.turning)),
            None => completed(self, read, 0, SHORTEST),
        }
    }

    fn most(&self) -> u32 {
        SHORTEST as u32
    }

    fn run(&self, read: &[u8]) -> Option<u32> {
        Some((MAX_ENCODED - ROOM).saturating_sub(read.strip_prefix(PREFIX)?.len()) as u32)
    }

    fn reader(&self, read: &[u8]) -> Box<dyn LanguageReader> {
        Box::new(Reader::after(self.turning, read))
    }
}

/// From `least` to `most` characters that complete a label, as few as are found.
fn completed(language: &ALabels, label: &[u8], least: usize, most: usize) -> Option<Vec<u8>> {
    match label.strip_prefix(PREFIX) {
        Some(encoded) => {
            let lengths = least..=most.min(least + ROOM);
            let decoder = Decoder::read(encoded);
            lengths.into_iter().find_map(|most| completion(encoded, decoder.as_ref(), least, most, language.turning))
        }
        None => {
            let prefix = &PREFIX[label.len()..];
            let more = |all: usize| all.saturating_sub(prefix.len());
            let rest = completed(language, PREFIX, more(least), most.checked_sub(prefix.len())?)?;
            Some([prefix, &rest].concat())
        }
    }
}

#[cfg(test)]
mod tests;
