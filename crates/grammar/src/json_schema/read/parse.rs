//! JSON text to a [`Document`] (RFC 8259): a stack of open containers instead of recursion, duplicate keys refused.

use std::borrow::Cow;

use stencilm_support::{LimitExceeded, check_time};

use super::document::Compared;
use super::document::{Document, Entries, Json, JsonId, KeyTable, Slot, quoted};
use crate::error::{ErrorKind, GrammarError};

/// The greatest nesting depth of arrays and objects.
pub(crate) const MAX_DEPTH: usize = 1_000;
/// The greatest number of values.
pub(crate) const MAX_VALUES: usize = 1_000_000;
enum Frame<'t> {
    /// Its elements are those from index `from` on.
    Array { offset: usize, first: u32, from: usize },
    /// Its members are those from index `from` on.
    Object { offset: usize, first: u32, from: usize, table: KeyTable<'t> },
}

/// Stands for the value of a member until it has been read.
const UNREAD: JsonId = JsonId(u32::MAX);

struct Parser<'a> {
    text: &'a str,
    at: usize,
    may_go_on: fn() -> Result<(), LimitExceeded>,
    slots: Vec<Slot<'a>>,
    /// The elements so far of all open arrays, those of the innermost last.
    elements: Vec<JsonId>,
    /// The members so far of all open objects, those of the innermost last.
    members: Vec<(Cow<'a, str>, JsonId)>,
}

/// Parses the JSON text of a schema, then those of the documents beside it, each with its URI.
///
/// # Errors
/// [`ErrorKind::Syntax`] with line and column, [`ErrorKind::Limit`] if it is too long, nested too deeply or has too
/// many values.
pub(crate) fn parse<'t>(
    text: &'t str,
    beside: &'t [(String, String)],
    max_bytes: usize,
) -> Result<Document<'t>, GrammarError> {
    parse_while(text, beside, max_bytes, || Ok(()))
}

/// As [`parse`], but ends if it takes too long.
pub(crate) fn parse_in_time<'t>(
    text: &'t str,
    beside: &'t [(String, String)],
    max_bytes: usize,
) -> Result<Document<'t>, GrammarError> {
    parse_while(text, beside, max_bytes, check_time)
}

fn parse_while<'t>(
    text: &'t str,
    beside: &'t [(String, String)],
    max_bytes: usize,
    may_go_on: fn() -> Result<(), LimitExceeded>,
) -> Result<Document<'t>, GrammarError> {
    let mut parser = Parser {
        text,
        at: 0,
        may_go_on,
        slots: Vec::with_capacity(text.len() / 16),
        elements: Vec::with_capacity(16),
        members: Vec::with_capacity(16),
    };
    let mut roots = Vec::with_capacity(1 + beside.len());
    let mut bytes = 0;
    for (uri, text) in std::iter::once(("", text)).chain(beside.iter().map(|(uri, text)| (&**uri, &**text))) {
        bytes += text.len();
        if bytes > max_bytes {
            let message = format!(
                "the schema has {bytes} bytes and at most {max_bytes} are accepted; split it up, or raise \
                 `schema_bytes` of the limits"
            );
            return Err(GrammarError::new(ErrorKind::Limit, uri, message));
        }
        (parser.text, parser.at) = (text, 0);
        parser.document().map_err(|error| match uri {
            "" => error,
            uri => GrammarError { place: format!("{uri}, {}", error.place), ..error },
        })?;
        roots.push((JsonId(parser.slots.len() as u32 - 1), uri));
    }
    Ok(Document { slots: parser.slots, roots, compared: Compared::default() })
}

impl<'a> Parser<'a> {
    fn document(&mut self) -> Result<(), GrammarError> {
        let mut open: Vec<Frame<'a>> = Vec::new();
        'value: loop {
            self.whitespace();
            let offset = self.at;
            let first = self.slots.len() as u32;
            let mut done = match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.whitespace();
                    if self.eat(b'}') {
                        self.push(Json::Object(Entries::default()), offset, first)?
                    } else {
                        self.check_depth(open.len())?;
                        let (from, mut table) = (self.members.len(), KeyTable::default());
                        self.key(from, &mut table)?;
                        open.push(Frame::Object { offset, first, from, table });
                        continue 'value;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    self.whitespace();
                    if self.eat(b']') {
                        self.push(Json::Array(Box::default()), offset, first)?
                    } else {
                        self.check_depth(open.len())?;
                        open.push(Frame::Array { offset, first, from: self.elements.len() });
                        continue 'value;
                    }
                }
                _ => {
                    let value = self.scalar()?;
                    self.push(value, offset, first)?
                }
            };
            // A value is complete: add it to its container; if that closes the container, continue with that.
            loop {
                self.whitespace();
                let closed = match open.last_mut() {
                    None if self.at == self.text.len() => return Ok(()),
                    None => return Err(self.error("something follows the end of the JSON value; remove it")),
                    Some(Frame::Array { .. }) => {
                        self.elements.push(done);
                        if self.eat(b',') {
                            continue 'value;
                        }
                        if !self.eat(b']') {
                            return Err(self.error("expected , or ] in an array"));
                        }
                        open.pop()
                    }
                    Some(Frame::Object { from, table, .. }) => {
                        if let Some((_, value)) = self.members.last_mut() {
                            *value = done;
                        }
                        if self.eat(b',') {
                            self.whitespace();
                            self.key(*from, table)?;
                            continue 'value;
                        }
                        if !self.eat(b'}') {
                            return Err(self.error("expected , or } in an object"));
                        }
                        open.pop()
                    }
                };
                done = match closed.expect("the frame was just looked at") {
                    Frame::Array { offset, first, from } => {
                        let elements = self.elements.drain(from..).collect();
                        self.push(Json::Array(elements), offset, first)?
                    }
                    Frame::Object { offset, first, from, table } => {
                        let members = self.members.drain(from..).collect();
                        self.push(Json::Object(Entries::new(members, table)), offset, first)?
                    }
                };
            }
        }
    }

    fn push(&mut self, value: Json<'a>, offset: usize, first: u32) -> Result<JsonId, GrammarError> {
        if self.slots.len() >= MAX_VALUES {
            let message = format!("the schema has more than {MAX_VALUES} values; split it up");
            return Err(GrammarError::new(ErrorKind::Limit, self.line_and_column(offset), message));
        }
        (self.may_go_on)().map_err(|limit| GrammarError::limit(self.line_and_column(offset), limit))?;
        let id = JsonId(self.slots.len() as u32);
        let slots = &mut self.slots;
        let adopt = |(index, child): (usize, &JsonId)| slots[child.0 as usize].parent = Some((id, index as u32));
        match &value {
            Json::Array(items) => items.iter().enumerate().for_each(adopt),
            Json::Object(entries) => entries.values().enumerate().for_each(adopt),
            _ => {}
        }
        self.slots.push(Slot { value, offset: offset as u32, end: self.at as u32, first, parent: None });
        Ok(id)
    }

    fn check_depth(&self, depth: usize) -> Result<(), GrammarError> {
        if depth < MAX_DEPTH {
            return Ok(());
        }
        let message =
            format!("the schema is nested more than {MAX_DEPTH} deep; name inner parts in $defs and $ref them");
        Err(GrammarError::new(ErrorKind::Limit, self.line_and_column(self.at), message))
    }

    /// Parses a key and its colon, for an object whose members start at index `from`; adds the member without its
    /// value.
    fn key(&mut self, from: usize, table: &mut KeyTable<'a>) -> Result<(), GrammarError> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a key in double quotes"));
        }
        let key = self.string()?;
        if !table.admit(&self.members[from..], &key) {
            self.at = start;
            return Err(self.error(format!("the key {} stands twice in one object; remove one", quoted(&key))));
        }
        self.whitespace();
        if !self.eat(b':') {
            return Err(self.error("expected : after a key"));
        }
        self.members.push((key, UNREAD));
        Ok(())
    }

    fn scalar(&mut self) -> Result<Json<'a>, GrammarError> {
        match self.peek() {
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            None => Err(self.error("the JSON ends where a value should stand")),
            _ => {
                for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
                    if self.text[self.at..].starts_with(word) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                Err(self.error("expected a JSON value"))
            }
        }
    }

    fn number(&mut self) -> Result<Json<'a>, GrammarError> {
        let start = self.at;
        self.eat(b'-');
        let digits = self.digits();
        let leading_zero = digits > 1 && self.text.as_bytes()[self.at - digits] == b'0';
        let mut well_formed = digits > 0 && !leading_zero;
        if well_formed && self.eat(b'.') {
            well_formed = self.digits() > 0;
        }
        if well_formed && (self.eat(b'e') || self.eat(b'E')) {
            let _sign = self.eat(b'+') || self.eat(b'-');
            well_formed = self.digits() > 0;
        }
        if !well_formed {
            return Err(self.error("not a JSON number"));
        }
        Ok(Json::Number(&self.text[start..self.at]))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    /// Parses a string in double quotes and decodes it.
    fn string(&mut self) -> Result<Cow<'a, str>, GrammarError> {
        self.at += 1;
        let mut decoded = Cow::Borrowed("");
        loop {
            let rest = &self.text[self.at..];
            let Some(plain) = end_of_plain(rest.as_bytes()) else {
                self.at = self.text.len();
                return Err(self.error("a string is never closed; add \""));
            };
            // Borrows the text if nothing comes before it.
            decoded += &rest[..plain];
            self.at += plain;
            match rest.as_bytes()[plain] {
                b'"' => {
                    self.at += 1;
                    return Ok(decoded);
                }
                b'\\' => decoded.to_mut().push(self.escape()?),
                _ => return Err(self.error("a control character in a string must be escaped")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, GrammarError> {
        let start = self.at;
        self.at += 2;
        Ok(match self.text.as_bytes().get(start + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let unit = self.hex4()?;
                let lone = "a lone surrogate is no character; write both halves of the pair";
                let code = match unit {
                    0xd800..=0xdbff if self.text[self.at..].starts_with("\\u") => {
                        self.at += 2;
                        match self.hex4()? {
                            low @ 0xdc00..=0xdfff => 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00),
                            _ => unit,
                        }
                    }
                    _ => unit,
                };
                match char::from_u32(code) {
                    Some(decoded) => decoded,
                    None => {
                        self.at = start;
                        return Err(self.error(lone));
                    }
                }
            }
            _ => {
                self.at = start;
                return Err(self.error("an unknown escape in a string"));
            }
        })
    }

    fn hex4(&mut self) -> Result<u32, GrammarError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        let Some(digits) = digits else {
            return Err(self.error("expected four hexadecimal digits after \\u"));
        };
        self.at += 4;
        Ok(digits.iter().fold(0, |code, &digit| code * 16 + (digit as char).to_digit(16).unwrap_or(0)))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    #[cold]
    fn error(&self, message: impl Into<String>) -> GrammarError {
        GrammarError::new(ErrorKind::Syntax, self.line_and_column(self.at), message)
    }

    fn line_and_column(&self, at: usize) -> String {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        format!("line {line}, column {column}")
    }
}

/// The position of the first byte that ends plain text in a string: a quote, a backslash or a control character.
fn end_of_plain(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGHS: u64 = ONES << 7;
    let (words, rest) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The high bit of each byte that is less than `n`, for `n` up to 128; only the lowest such bit is reliable.
        let below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & HIGHS;
        let found = below(word, 0x20) | below(word ^ (ONES * 0x22), 1) | below(word ^ (ONES * 0x5c), 1);
        if found != 0 {
            return Some(8 * index + found.trailing_zeros() as usize / 8);
        }
    }
    let left = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))?;
    Some(8 * words.len() + left)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::end_of_plain;

    proptest! {
        #[test]
        fn plain_text_ends_where_the_first_other_byte_stands(text in "[ -~\u{e9}\u{20ac}\u{1f600}\0-\u{1f}\"]{0,40}") {
            let slow = text.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            prop_assert_eq!(end_of_plain(text.as_bytes()), slow);
        }

        #[test]
        fn so_it_does_in_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let slow = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            prop_assert_eq!(end_of_plain(&bytes), slow);
        }
    }
}
