//! A JSON value as a text that is the same for equal values and for no others: no whitespace, members sorted, strings
//! with the fewest escapes, numbers as digits and a power of ten. It is JSON again, and its own canonical text.

use rustc_hash::FxHashMap;

use super::document::{Document, Json, JsonId};

/// The canonical text of a value of a document.
pub(crate) fn canonical(document: &Document, value: JsonId) -> Vec<u8> {
    let mut texts: FxHashMap<JsonId, Vec<u8>> = FxHashMap::default();
    for id in document.inside(value) {
        let mut take = |child: &JsonId| texts.remove(child).unwrap_or_default();
        let mut text = Vec::new();
        match document.get(id) {
            Json::Null => text.extend_from_slice(b"null"),
            Json::Bool(value) => text.extend_from_slice(if *value { b"true" } else { b"false" }),
            Json::Number(number) => push_number(number.as_bytes(), &mut text),
            Json::String(string) => push_string(string, &mut text),
            Json::Array(items) => {
                text.push(b'[');
                text.extend_from_slice(&items.iter().map(&mut take).collect::<Vec<_>>().join(&b','));
                text.push(b']');
            }
            Json::Object(entries) => {
                let mut members: Vec<Vec<u8>> = Vec::with_capacity(entries.len());
                for (key, value) in entries.iter() {
                    let mut member = Vec::new();
                    push_string(key, &mut member);
                    member.push(b':');
                    member.append(&mut take(value));
                    members.push(member);
                }
                members.sort_unstable();
                text.push(b'{');
                text.extend_from_slice(&members.join(&b','));
                text.push(b'}');
            }
        }
        texts.insert(id, text);
    }
    texts.remove(&value).unwrap_or_default()
}

/// The canonical text of a complete JSON text. Two texts are the same value if and only if their canonical texts are
/// equal: `1` and `10e-1`, `"a"` and `"\u0061"`, objects in any order. A text that is not JSON is its own canonical
/// text, without the whitespace around it.
///
/// An object whose members are not in order is copied once for each such object; otherwise time and memory are linear
/// in the length of the text. Nesting takes no stack.
pub fn canonical_json(text: &[u8]) -> Vec<u8> {
    let text = text.trim_ascii();
    Reader { text, at: 0 }.read().unwrap_or_else(|| text.to_vec())
}

/// A container that isn't closed yet.
enum Open {
    Array,
    /// The positions where its members start.
    Object(Vec<usize>),
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    /// The canonical text; `None` if the text is not JSON.
    fn read(mut self) -> Option<Vec<u8>> {
        let mut open: Vec<Open> = Vec::new();
        let mut done = Vec::with_capacity(self.text.len());
        loop {
            self.whitespace();
            match self.peek()? {
                start @ (b'{' | b'[') => {
                    self.at += 1;
                    done.push(start);
                    self.whitespace();
                    let end = if start == b'{' { b'}' } else { b']' };
                    if !self.eat(end) {
                        if start == b'{' {
                            open.push(Open::Object(vec![done.len()]));
                            self.key(&mut done)?;
                        } else {
                            open.push(Open::Array);
                        }
                        continue;
                    }
                    done.push(end);
                }
                _ => self.scalar(&mut done)?,
            }
            loop {
                self.whitespace();
                let Some(container) = open.last_mut() else {
                    return (self.at == self.text.len()).then_some(done);
                };
                if self.eat(b',') {
                    done.push(b',');
                    if let Open::Object(members) = container {
                        members.push(done.len());
                        self.key(&mut done)?;
                    }
                    break;
                }
                match open.pop()? {
                    Open::Array if self.eat(b']') => done.push(b']'),
                    Open::Object(members) if self.eat(b'}') => {
                        sort_members(&members, &mut done);
                        done.push(b'}');
                    }
                    _ => return None,
                }
            }
        }
    }

    fn key(&mut self, into: &mut Vec<u8>) -> Option<()> {
        self.whitespace();
        self.string(into)?;
        self.whitespace();
        into.push(b':');
        self.eat(b':').then_some(())
    }

    fn scalar(&mut self, into: &mut Vec<u8>) -> Option<()> {
        if self.peek() == Some(b'"') {
            return self.string(into);
        }
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r'));
        let word = &rest[..length.unwrap_or(rest.len())];
        self.at += word.len();
        match word {
            b"null" | b"true" | b"false" => into.extend_from_slice(word),
            _ if is_number(word) => push_number(word, into),
            _ => return None,
        }
        Some(())
    }

    /// A string with its quotes; unescaped text is copied.
    fn string(&mut self, into: &mut Vec<u8>) -> Option<()> {
        if !self.eat(b'"') {
            return None;
        }
        into.push(b'"');
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))?;
            into.extend_from_slice(&rest[..plain]);
            self.at += plain + 1;
            match rest[plain] {
                b'"' => break,
                b'\\' => self.escape(into)?,
                _ => return None,
            }
        }
        into.push(b'"');
        Some(())
    }

    /// Reads what follows a backslash.
    fn escape(&mut self, into: &mut Vec<u8>) -> Option<()> {
        let letter = self.peek()?;
        self.at += 1;
        let character = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.hex4()?;
                let pair = self.text.get(self.at..self.at + 2) == Some(b"\\u");
                let second = if (0xd800..0xdc00).contains(&unit) && pair {
                    let at = self.at;
                    self.at += 2;
                    let second = self.hex4().filter(|second| (0xdc00..0xe000).contains(second));
                    if second.is_none() {
                        self.at = at;
                    }
                    second
                } else {
                    None
                };
                let code = second.map_or(unit, |second| 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00));
                match char::from_u32(code) {
                    Some(character) => character,
                    None => {
                        // A lone surrogate is not a character and has no other spelling.
                        into.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                        return Some(());
                    }
                }
            }
            _ => return None,
        };
        push_character(character, into);
        Some(())
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |code, &digit| Some(code * 16 + char::from(digit).to_digit(16)?))
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
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
}

/// Sorts the members at the end of a text, which are separated by commas and start at these positions.
fn sort_members(starts: &[usize], text: &mut Vec<u8>) {
    let end = text.len();
    let ends = starts.iter().skip(1).map(|next| next - 1).chain([end]);
    let mut members: Vec<&[u8]> = starts.iter().zip(ends).map(|(&start, end)| &text[start..end]).collect();
    if !members.is_sorted() {
        members.sort_unstable();
        let sorted = members.join(&b',');
        text.truncate(starts[0]);
        text.extend_from_slice(&sorted);
    }
}

fn push_string(string: &str, into: &mut Vec<u8>) {
    into.push(b'"');
    string.chars().for_each(|character| push_character(character, into));
    into.push(b'"');
}

/// Writes a character as it stands between quotes.
fn push_character(character: char, into: &mut Vec<u8>) {
    match character {
        '"' | '\\' => into.extend_from_slice(&[b'\\', character as u8]),
        '\0'..='\x1f' => into.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes()),
        _ => into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Whether the text is a JSON number.
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (mantissa, exponent) = split(text, b"eE");
    let (int, fraction) = split(mantissa, b".");
    digits(int)
        && (int[0] != b'0' || int.len() == 1)
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(b"+").unwrap_or(unsigned(exponent))))
}

fn unsigned(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"-").unwrap_or(text)
}

/// The parts before and after the first of some marks.
fn split<'t>(text: &'t [u8], marks: &[u8]) -> (&'t [u8], Option<&'t [u8]>) {
    match text.iter().position(|byte| marks.contains(byte)) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// Writes a well-formed JSON number as its digits without zeros around them, times a power of ten: `-12.50` is
/// `-125e-1`. Exponents of any size are added exactly.
fn push_number(text: &[u8], into: &mut Vec<u8>) {
    let (mantissa, exponent) = split(unsigned(text), b"eE");
    let (int, fraction) = split(mantissa, b".");
    let fraction = fraction.unwrap_or_default();
    let digits = [int, fraction].concat();
    let Some(first) = digits.iter().position(|&digit| digit != b'0') else {
        into.push(b'0');
        return;
    };
    let end = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    if text[0] == b'-' {
        into.push(b'-');
    }
    into.extend_from_slice(&digits[first..end]);
    into.push(b'e');
    into.extend_from_slice(&shifted(exponent.unwrap_or(b"0"), int.len() as i64 - end as i64));
}

/// The sum of a decimal integer of any length and a number, without plus sign or leading zeros; zero has no minus sign.
fn shifted(text: &[u8], by: i64) -> Vec<u8> {
    let negative = text[0] == b'-';
    let magnitude = unsigned(text.strip_prefix(b"+").unwrap_or(text));
    let zeros = magnitude.iter().take_while(|&&digit| digit == b'0').count();
    let magnitude = &magnitude[zeros..];
    if magnitude.len() <= 17 {
        let small = magnitude.iter().fold(0, |value, &digit| value * 10 + i64::from(digit - b'0'));
        return (if negative { -small } else { small } + by).to_string().into_bytes();
    }
    // The sign cannot change: no text has as many digits as such a large exponent.
    let mut carry = if negative { -by } else { by };
    let mut digits = magnitude.to_vec();
    for digit in digits.iter_mut().rev() {
        let sum = i64::from(*digit - b'0') + carry;
        *digit = b'0' + sum.rem_euclid(10) as u8;
        carry = sum.div_euclid(10);
    }
    let mut result = if negative { b"-".to_vec() } else { Vec::new() };
    if carry > 0 {
        result.extend_from_slice(carry.to_string().as_bytes());
    }
    let zeros = if carry > 0 { 0 } else { digits.iter().take_while(|&&digit| digit == b'0').count() };
    result.extend_from_slice(&digits[zeros..]);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_schema::read::parse::parse;
    use proptest::prelude::*;

    fn of(text: &str) -> String {
        let from_text = canonical_json(text.as_bytes());
        if let Ok(document) = parse(text, &[], 100_000) {
            assert_eq!(from_text, canonical(&document, document.root()), "{text}");
        }
        assert_eq!(canonical_json(&from_text), from_text, "{text}");
        String::from_utf8(from_text).unwrap()
    }

    #[test]
    fn canonical_texts_compare_by_value() {
        for (a, b) in [
            ("1", "1.0"),
            (r#"[1,{"a":2,"b":[]}]"#, r#" [10e-1, {"b": [ ], "a":2.0} ]"#),
            ("-0", "0"),
            ("0e99", "0.00"),
            ("-12.50", "-125E-1"),
            ("1e99999999999999999999", "10e99999999999999999998"),
            ("1e100000000000000000000", "0.1e+0100000000000000000001"),
            ("1e-100000000000000000000", "10e-100000000000000000001"),
            ("0.1e-99999999999999999999", "1e-100000000000000000000"),
            (r#""a/\n\"""#, r#""\u0061\/\u000a\u0022""#),
            (r#""😀""#, r#""\uD83D\ude00""#),
            (r#"{"é":{},"a\\":null}"#, r#"{"a\u005c":null,"\u00e9":{}}"#),
        ] {
            assert_eq!(of(a), of(b), "{a} = {b}");
        }
        for (a, b) in [
            ("1", "\"1\""),
            ("[1,2]", "[2,1]"),
            ("{}", "[]"),
            ("\"a\"", "\"A\""),
            ("false", "0"),
            ("1", "-1"),
            ("1e99999999999999999999", "1e99999999999999999998"),
            ("1e99999999999999999999", "1e-99999999999999999999"),
            ("[[1],2]", "[[1,2]]"),
            (r#"{"a":{"b":1}}"#, r#"{"a":{},"b":1}"#),
            (r#""\ud83d""#, r#""\ude00""#),
        ] {
            assert_ne!(of(a), of(b), "{a} and {b}");
        }
    }

    #[test]
    fn what_is_no_json_is_its_own_text() {
        for text in ["", "a", "[1", "[1,]", "{\"a\"}", "01", "1.", "-", "1e", "\"\\x\"", "\"\n\"", "1 2", "+1", "{1:2}"]
        {
            assert_eq!(canonical_json(text.as_bytes()), text.as_bytes());
        }
        assert_eq!(canonical_json(b" \xff "), b"\xff");
    }

    #[test]
    fn nesting_takes_no_stack() {
        let depth = 200_000;
        let text = "[{\"a\":".repeat(depth) + "1e0" + &"}]".repeat(depth);
        assert_eq!(canonical_json(text.as_bytes()), text.as_bytes());
    }

    proptest! {
        /// Compares with arithmetic on small numbers.
        #[test]
        fn numbers_are_the_same_exactly_when_they_are_equal(
            a in 0u64..2000, b in 0u64..2000, down in 0u32..4, up in 0u32..4,
        ) {
            let (left, right) = (a * 10_000 * 10u64.pow(up), b * 10_000 * 10u64.pow(up) / 10u64.pow(down));
            prop_assume!(b * 10_000 % 10u64.pow(down) == 0);
            let same = of(&format!("{a}e{up}")) == of(&format!("{b}e{}", i64::from(up) - i64::from(down)));
            prop_assert_eq!(same, left == right);
        }
    }
}
