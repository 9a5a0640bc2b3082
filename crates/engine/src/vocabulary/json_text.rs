//! The value of a JSON string as written, to decide whether two keys are the same (RFC 8259, section 7).

pub(crate) use stencilm_grammar::string_value as value_of;

/// An incomplete key.
pub(crate) struct Begun {
    /// Its complete characters as UTF-8; the bytes, if the key is not a JSON string.
    pub value: Vec<u8>,
    /// The beginning of an escape that is no complete character yet.
    pub escape: Vec<u8>,
    /// Whether it is a JSON string.
    pub quoted: bool,
}

/// Decodes the beginning of a JSON string, given with its first quote and any whitespace before it.
pub(crate) fn begun(written: &[u8]) -> Begun {
    let written = written.trim_ascii_start();
    let Some(body) = written.strip_prefix(b"\"") else {
        return Begun { value: written.to_vec(), escape: Vec::new(), quoted: false };
    };
    let mut at = 0;
    while at < body.len() {
        let length = match &body[at..] {
            [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'A' | b'b' | b'B', ..] => 12,
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            _ => 1,
        };
        if at + length > body.len() {
            break;
        }
        at += length;
    }
    let whole = [b"\"", &body[..at], b"\""].concat();
    Begun { value: value_of(&whole), escape: body[at..].to_vec(), quoted: true }
}

/// All escapes of a character: the short one, if there is one, and those by its code with digits in either case.
pub(crate) fn escapes_of(character: char) -> Vec<Vec<u8>> {
    let mut units = [0; 2];
    let mut spellings: Vec<Vec<u8>> = vec![Vec::new()];
    for unit in character.encode_utf16(&mut units) {
        spellings.iter_mut().for_each(|spelling| spelling.extend(b"\\u"));
        for digit in format!("{unit:04x}").bytes() {
            let upper = digit.to_ascii_uppercase();
            if upper != digit {
                let raised = spellings.iter().map(|spelling| [&spelling[..], &[upper]].concat());
                let raised: Vec<Vec<u8>> = raised.collect();
                spellings.iter_mut().for_each(|spelling| spelling.push(digit));
                spellings.extend(raised);
            } else {
                spellings.iter_mut().for_each(|spelling| spelling.push(digit));
            }
        }
    }
    let short = match character {
        '\u{8}' => Some(b'b'),
        '\u{c}' => Some(b'f'),
        '\n' => Some(b'n'),
        '\r' => Some(b'r'),
        '\t' => Some(b't'),
        '"' | '\\' | '/' => Some(character as u8),
        _ => None,
    };
    spellings.extend(short.map(|letter| vec![b'\\', letter]));
    spellings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_end_before_an_open_escape() {
        let cases: [(&str, &str, &str); 7] = [
            ("\"", "", ""),
            ("\n \"ab", "ab", ""),
            (r#""a\u00e9b"#, "aéb", ""),
            (r#""a\"#, "a", r"\"),
            (r#""a\u00"#, "a", r"\u00"),
            (r#""\uD83D\uDE"#, "", r"\uD83D\uDE"),
            (r#""\uD83D\uDE00\n"#, "😀\n", ""),
        ];
        for (written, value, escape) in cases {
            let begun = begun(written.as_bytes());
            assert_eq!((&*begun.value, &*begun.escape), (value.as_bytes(), escape.as_bytes()), "{written}");
        }
    }

    #[test]
    fn escapes_spell_their_character() {
        for (character, count) in [('a', 1), ('/', 3), ('\n', 3), ('é', 2), ('ÿ', 4), ('😀', 16)] {
            let escapes = escapes_of(character);
            assert_eq!(escapes.len(), count, "{character:?}");
            for escape in escapes {
                let written = [b"\"", &escape[..], b"\""].concat();
                assert_eq!(value_of(&written), character.to_string().as_bytes(), "{character:?}");
            }
        }
    }

    #[test]
    fn different_spellings_have_one_value() {
        let cases: [(&str, &str); 9] = [
            (r#""abc""#, "abc"),
            ("\n  \"abc\"", "abc"),
            (r#""\u0061bc""#, "abc"),
            (r#""a\/b\"c\\""#, "a/b\"c\\"),
            (r#""\n\t\b\f\r""#, "\n\t\u{8}\u{c}\r"),
            (r#""\uD83D\uDE00""#, "😀"),
            (r#""😀""#, "😀"),
            (r#""\u00e9""#, "é"),
            (r#""""#, ""),
        ];
        for (written, value) in cases {
            assert_eq!(value_of(written.as_bytes()), value.as_bytes(), "{written}");
        }
    }
}
