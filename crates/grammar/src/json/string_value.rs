//! The value of a JSON string as it is written, to decide whether two keys are the same (RFC 8259, section 7).
//!
//! A grammar may allow more in a key than JSON does. What is no escape of JSON stands for itself, and half of a
//! surrogate pair is a value of its own, in the bytes that UTF-8 would give it, so that different keys stay different.

/// The string value, in UTF-8, of a complete JSON string with its quotes and possibly whitespace before it. A text that
/// is not a JSON string is its own value.
pub fn string_value(written: &[u8]) -> Vec<u8> {
    let written = written.trim_ascii_start();
    let Some(body) = written.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else {
        return written.to_vec();
    };
    let mut value = Vec::with_capacity(body.len());
    let mut at = 0;
    while at < body.len() {
        match Escape::of(&body[at..]) {
            Escape::Whole { length, code } => {
                push(&mut value, code);
                at += length;
            }
            // Nothing follows, by which half of a pair would become whole.
            Escape::Open { half: Some(code) } => {
                push(&mut value, code);
                at += UNIT;
            }
            Escape::Open { half: None } | Escape::None => {
                value.push(body[at]);
                at += 1;
            }
        }
    }
    value
}

/// The length of `\uXXXX`.
const UNIT: usize = 6;

/// What the beginning of the rest of a string is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// No escape, or one that JSON does not have.
    None,
    /// An escape.
    Whole {
        /// Its bytes.
        length: usize,
        /// The code point that it spells: a surrogate, where the other half of the pair is missing.
        code: u32,
    },
    /// The beginning of an escape: the bytes after it decide.
    Open {
        /// The surrogate that it spells if nothing follows.
        half: Option<u32>,
    },
}

impl Escape {
    /// What a text begins with.
    pub fn of(text: &[u8]) -> Escape {
        let Some(escaped) = text.strip_prefix(b"\\") else { return Escape::None };
        let Some(&letter) = escaped.first() else { return Escape::Open { half: None } };
        let code = match letter {
            b'"' | b'\\' | b'/' => letter,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return Escape::of_units(text),
            _ => return Escape::None,
        };
        Escape::Whole { length: 2, code: u32::from(code) }
    }

    fn of_units(text: &[u8]) -> Escape {
        let first = match Unit::of(text) {
            Unit::Whole(code) => code,
            Unit::Open => return Escape::Open { half: None },
            Unit::None => return Escape::None,
        };
        let lone = Escape::Whole { length: UNIT, code: first };
        if !(0xD800..0xDC00).contains(&first) {
            return lone;
        }
        match Unit::of(&text[UNIT..]) {
            Unit::Whole(second @ 0xDC00..0xE000) => {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                Escape::Whole { length: 2 * UNIT, code }
            }
            Unit::Open if may_be_second(&text[UNIT..]) => Escape::Open { half: Some(first) },
            _ => lone,
        }
    }
}

/// What the beginning of a text is of `\uXXXX`.
enum Unit {
    None,
    Whole(u32),
    Open,
}

impl Unit {
    fn of(text: &[u8]) -> Unit {
        let mark = text.len().min(2);
        if text[..mark] != b"\\u"[..mark] {
            return Unit::None;
        }
        let digits = &text[mark..text.len().min(UNIT)];
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return Unit::None;
        }
        if digits.len() < 4 {
            return Unit::Open;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit");
        Unit::Whole(digits.iter().fold(0, |code, &byte| code << 4 | digit(byte)))
    }
}

/// Whether the digits that are there of `\uXXXX` may be those of a low surrogate, DC00 to DFFF.
fn may_be_second(open: &[u8]) -> bool {
    let digit = |at: usize| open.get(at).map(u8::to_ascii_lowercase);
    digit(2).is_none_or(|first| first == b'd') && digit(3).is_none_or(|second| (b'c'..=b'f').contains(&second))
}

/// Adds a code point in the bytes that UTF-8 gives it, or would if surrogates were characters.
fn push(value: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(character) => value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        None => value.extend([0xE0 | code >> 12, 0x80 | code >> 6 & 0x3F, 0x80 | code & 0x3F].map(|byte| byte as u8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_does_not_have_stands_for_itself() {
        let cases: [(&str, &[u8]); 10] = [
            (r#""\u000""#, br"\u000"),
            (r#""\u001""#, br"\u001"),
            (r#""\u+12f""#, br"\u+12f"),
            (r#""\x61""#, br"\x61"),
            (r#""a\""#, br"a\"),
            (r#""\ud800""#, b"\xed\xa0\x80"),
            (r#""\uD801""#, b"\xed\xa0\x81"),
            (r#""\ud83d\u0061""#, b"\xed\xa0\xbda"),
            (r#""\ud83d\ud83d\ude00\udE00""#, b"\xed\xa0\xbd\xf0\x9f\x98\x80\xed\xb8\x80"),
            (r#""\ud83d\ude0""#, b"\xed\xa0\xbd\\ude0"),
        ];
        for (written, value) in cases {
            assert_eq!(string_value(written.as_bytes()), value, "{written}");
        }
    }

    #[test]
    fn an_escape_is_open_only_while_it_may_become_whole() {
        let cases: [(&str, Escape); 12] = [
            (r"\", Escape::Open { half: None }),
            (r"\u00", Escape::Open { half: None }),
            (r"\u00x", Escape::None),
            (r"\u00e9x", Escape::Whole { length: 6, code: 0xE9 }),
            (r"\ud83d", Escape::Open { half: Some(0xD83D) }),
            (r"\ud83d\", Escape::Open { half: Some(0xD83D) }),
            (r"\ud83d\uD", Escape::Open { half: Some(0xD83D) }),
            (r"\ud83d\uDe0", Escape::Open { half: Some(0xD83D) }),
            (r"\ud83d\ud8", Escape::Whole { length: 6, code: 0xD83D }),
            (r"\ud83dx", Escape::Whole { length: 6, code: 0xD83D }),
            (r"\ud83d\n", Escape::Whole { length: 6, code: 0xD83D }),
            (r"\ud83d\ude00", Escape::Whole { length: 12, code: 0x1F600 }),
        ];
        for (text, escape) in cases {
            assert_eq!(Escape::of(text.as_bytes()), escape, "{text}");
        }
    }
}
