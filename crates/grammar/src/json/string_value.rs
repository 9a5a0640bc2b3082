//! The value of a JSON string as it is written, to decide whether two keys are the same (RFC 8259, section 7).

/// The string value, in UTF-8, of a complete JSON string with its quotes and possibly whitespace before it. A text that
/// is not a JSON string is its own value.
pub fn string_value(written: &[u8]) -> Vec<u8> {
    let written = written.trim_ascii_start();
    let Some(body) = written.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else {
        return written.to_vec();
    };
    if !body.contains(&b'\\') {
        return body.to_vec();
    }
    let mut value = Vec::with_capacity(body.len());
    let mut index = 0;
    while index < body.len() {
        if body[index] != b'\\' {
            value.push(body[index]);
            index += 1;
            continue;
        }
        let escape = body.get(index + 1).copied().unwrap_or(b'\\');
        index += 2;
        match escape {
            b'b' => value.push(8),
            b'f' => value.push(12),
            b'n' => value.push(b'\n'),
            b'r' => value.push(b'\r'),
            b't' => value.push(b'\t'),
            b'u' => {
                let first = hex4(body, index);
                index += 4;
                let code = match first {
                    0xD800..=0xDBFF if body.get(index..index + 2) == Some(b"\\u") => {
                        let second = hex4(body, index + 2);
                        index += 6;
                        0x10000 + ((first - 0xD800) << 10) + (second.wrapping_sub(0xDC00) & 0x3FF)
                    }
                    other => other,
                };
                let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => value.push(other),
        }
    }
    value
}

fn hex4(body: &[u8], at: usize) -> u32 {
    let digits = body.get(at..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0xFFFD)
}
