//! The value of a JSON string as written, to decide whether two keys are the same (RFC 8259, section 7).

use stencilm_grammar::Escape;
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
        match Escape::of(&body[at..]) {
            Escape::Whole { length, .. } => at += length,
            Escape::None => at += 1,
            Escape::Open { .. } => break,
        }
    }
    let whole = [b"\"", &body[..at], b"\""].concat();
    Begun { value: value_of(&whole), escape: body[at..].to_vec(), quoted: true }
}

/// The code point of the first character of a value and the length of its bytes; a surrogate may be one.
pub(crate) fn first_code(value: &[u8]) -> Option<(u32, usize)> {
    let length = value.first().map_or(0, |first| (first.leading_ones() as usize).max(1));
    let character = value.get(..length)?;
    match (std::str::from_utf8(character), character) {
        (Ok(character), _) => character.chars().next().map(|character| (u32::from(character), length)),
        (Err(_), &[0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF]) => {
            Some((0xD000 | u32::from(second & 0x3F) << 6 | u32::from(third & 0x3F), length))
        }
        _ => None,
    }
}

/// All escapes of a code point: the short one, if there is one, and those by its code with digits in either case.
pub(crate) fn escapes_of(code: u32) -> Vec<Vec<u8>> {
    let (mut units, lone) = ([0; 2], [code as u16]);
    let units = char::from_u32(code).map_or(&lone[..], |character| character.encode_utf16(&mut units));
    let mut spellings: Vec<Vec<u8>> = vec![Vec::new()];
    for unit in units {
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
    let short = match code {
        8 => Some(b'b'),
        12 => Some(b'f'),
        10 => Some(b'n'),
        13 => Some(b'r'),
        9 => Some(b't'),
        _ => u8::try_from(code).ok().filter(|letter| br#""\/"#.contains(letter)),
    };
    spellings.extend(short.map(|letter| vec![b'\\', letter]));
    spellings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_end_before_an_open_escape() {
        let cases: [(&str, &str, &str); 9] = [
            ("\"", "", ""),
            ("\n \"ab", "ab", ""),
            (r#""a\u00e9b"#, "aéb", ""),
            (r#""a\"#, "a", r"\"),
            (r#""a\u00"#, "a", r"\u00"),
            (r#""\uD83D\uDE"#, "", r"\uD83D\uDE"),
            (r#""\uD83D\uDE00\n"#, "😀\n", ""),
            (r#""\u00g\"#, r"\u00g", r"\"),
            (r#""\xa\u"#, r"\xa", r"\u"),
        ];
        for (written, value, escape) in cases {
            let begun = begun(written.as_bytes());
            assert_eq!((&*begun.value, &*begun.escape), (value.as_bytes(), escape.as_bytes()), "{written}");
        }
    }

    #[test]
    fn escapes_spell_their_character() {
        for (character, count) in [('a', 1), ('/', 3), ('\n', 3), ('é', 2), ('ÿ', 4), ('😀', 16)] {
            let escapes = escapes_of(u32::from(character));
            assert_eq!(escapes.len(), count, "{character:?}");
            for escape in escapes {
                let written = [b"\"", &escape[..], b"\""].concat();
                assert_eq!(value_of(&written), character.to_string().as_bytes(), "{character:?}");
            }
        }
    }

    #[test]
    fn half_of_a_pair_is_a_character_of_keys() {
        let value = value_of(br#""\uDBFFa""#);
        assert_eq!(first_code(&value), Some((0xDBFF, 3)));
        assert!(escapes_of(0xDBFF).contains(&br"\uDbfF".to_vec()));
        assert_eq!(first_code("😀".as_bytes()), Some((0x1F600, 4)));
        assert_eq!(first_code(b"\xed\xa0"), None);
        assert_eq!(first_code(b""), None);
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
