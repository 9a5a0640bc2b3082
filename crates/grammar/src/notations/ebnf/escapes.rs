//! Escapes in quoted texts and character classes, read and written.

use super::scanner::Scanner;
use crate::ir::syntax_error::SyntaxError;

/// Sorted, disjoint ranges of characters.
pub(crate) type Ranges = Vec<(char, char)>;

/// Escapes of one letter, as in C and JSON.
const LETTERS: [(char, char); 9] = [
    ('n', '\n'),
    ('t', '\t'),
    ('r', '\r'),
    ('b', '\u{8}'),
    ('f', '\u{c}'),
    ('v', '\u{b}'),
    ('a', '\u{7}'),
    ('0', '\0'),
    ('e', '\u{1b}'),
];

/// The beginning of a text, for messages.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

/// Reads a character after a backslash, at which the scanner stands. `more` are other characters that may be escaped.
pub(crate) fn escape(scanner: &mut Scanner<'_>, more: &[char]) -> Result<char, SyntaxError> {
    let start = scanner.offset;
    let rest = &scanner.text[start + 1..];
    let letter = rest.chars().next();
    let wrong = |message: String| Err(SyntaxError::at(start, message));
    let Some(letter) = letter else { return wrong("a backslash ends the text; write \\\\ for a backslash".into()) };
    let digits = match letter {
        'x' => Some(2),
        'u' if rest[1..].starts_with('{') => None,
        'u' => Some(4),
        'U' => Some(8),
        _ => {
            let known = LETTERS.iter().find(|(known, _)| *known == letter).map(|&(_, c)| c);
            let itself = || ("\"'\\/?".contains(letter) || more.contains(&letter)).then_some(letter);
            let octal = letter == '0' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
            return match known.or_else(itself).filter(|_| !octal) {
                Some(c) => {
                    scanner.offset += 1 + letter.len_utf8();
                    Ok(c)
                }
                None => wrong(format!(
                    "the escape \\{letter} is not known; use \\n \\t \\r \\b \\f \\v \\a \\0 \\e \\\" \\' \\\\ \\/, \
                     \\xNN, \\uNNNN or \\u{{...}} for a character, and /.../ for classes such as \\d"
                )),
            };
        }
    };
    let (code, length) = match digits {
        Some(count) => (hex(&rest[1..], count), 1 + count),
        None => {
            let inner = &rest[2..];
            let end = inner.find('}').unwrap_or(0).min(8);
            ((1..=6).contains(&end).then(|| hex(inner, end)).flatten(), end + 3)
        }
    };
    let Some(mut code) = code else {
        return wrong("an escape by number is \\xNN, \\uNNNN, \\UNNNNNNNN or \\u{N...} with hexadecimal digits".into());
    };
    scanner.offset += 1 + length;
    if (0xd800..0xdc00).contains(&code) && scanner.text[scanner.offset..].starts_with("\\u") {
        // A surrogate pair, as JSON writes characters above U+FFFF.
        if let Some(low) = hex(&scanner.text[scanner.offset + 2..], 4).filter(|low| (0xdc00..0xe000).contains(low)) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            scanner.offset += 6;
        }
    }
    match char::from_u32(code) {
        Some(c) => Ok(c),
        None => wrong(format!(
            "U+{code:04X} is no character; write both halves of a surrogate pair, or %bytes[..] for bytes"
        )),
    }
}

fn hex(text: &str, count: usize) -> Option<u32> {
    let digits = text.get(..count)?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

/// Reads a class, at whose bracket the scanner stands.
pub(crate) fn class(scanner: &mut Scanner<'_>) -> Result<Ranges, SyntaxError> {
    let start = scanner.offset;
    scanner.offset += 1;
    let negated = scanner.text[scanner.offset..].starts_with('^');
    scanner.offset += usize::from(negated);
    let mut ranges: Ranges = Vec::new();
    loop {
        let Some(next) = scanner.text[scanner.offset..].chars().next().filter(|&c| c != '\n') else {
            let message = "the class has no closing ] on its line; close it, and write a line break as \\n";
            return Err(SyntaxError::at(start, message));
        };
        if next == ']' {
            scanner.offset += 1;
            break;
        }
        let place = scanner.offset;
        let first = class_char(scanner, next)?;
        let rest = &scanner.text[scanner.offset..];
        let mut last = first;
        if rest.starts_with('-') && !rest.starts_with("-]") {
            scanner.offset += 1;
            let Some(next) = scanner.text[scanner.offset..].chars().next().filter(|&c| c != '\n') else { continue };
            last = class_char(scanner, next)?;
        }
        if last < first {
            let message = format!("the range {first:?}-{last:?} is reversed; write {last:?}-{first:?}");
            return Err(SyntaxError::at(place, message));
        }
        ranges.push((first, last));
    }
    if ranges.is_empty() && !negated {
        return Err(SyntaxError::at(start, "[] has no characters; put some between the brackets"));
    }
    let ranges = merged(ranges);
    let ranges = if negated { complement(&ranges) } else { ranges };
    if ranges.is_empty() {
        return Err(SyntaxError::at(start, "the class excludes every character; leave one"));
    }
    Ok(ranges)
}

fn class_char(scanner: &mut Scanner<'_>, next: char) -> Result<char, SyntaxError> {
    if next == '\\' {
        return escape(scanner, &['[', ']', '-', '^', '$', '.', '*', '+', '(', ')', '{', '}', '|']);
    }
    scanner.offset += next.len_utf8();
    Ok(next)
}

fn after(c: char) -> Option<char> {
    if c == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(c) + 1) }
}

fn before(c: char) -> Option<char> {
    if c == '\u{e000}' { Some('\u{d7ff}') } else { u32::from(c).checked_sub(1).and_then(char::from_u32) }
}

/// The same characters as sorted ranges that neither overlap nor touch.
pub(crate) fn merged(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable();
    let mut result: Ranges = Vec::new();
    for (first, last) in ranges {
        match result.last_mut() {
            Some((_, end)) if after(*end).is_none_or(|next| first <= next) => *end = last.max(*end),
            _ => result.push((first, last)),
        }
    }
    result
}

/// All other characters.
pub(crate) fn complement(ranges: &[(char, char)]) -> Ranges {
    let mut result = Vec::new();
    let mut start = Some('\0');
    for &(first, last) in ranges {
        if let (Some(start), Some(end)) = (start, before(first))
            && start <= end
        {
            result.push((start, end));
        }
        start = after(last);
    }
    result.extend(start.map(|start| (start, char::MAX)));
    result
}

/// Writes a text in quotes.
pub(crate) fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        if c == '"' { out.push_str("\\\"") } else { write_char(out, c) }
    }
    out.push('"');
}

fn write_char(out: &mut String, c: char) {
    match LETTERS.iter().take(5).find(|(_, known)| *known == c) {
        _ if c == '\\' => out.push_str("\\\\"),
        Some((letter, _)) => out.extend(['\\', *letter]),
        // Characters that are invisible, or that look like others.
        None if c.is_control() || c.is_whitespace() && c != ' ' || !is_plain(c) => {
            out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
        }
        None => out.push(c),
    }
}

/// Whether a character is displayed as itself: it's not invisible, private, unassigned or combined with its neighbour.
fn is_plain(c: char) -> bool {
    // Characters that `str::escape_debug` doesn't escape. It also escapes combining marks at the beginning of a text.
    c.is_ascii() || c.escape_debug().len() == 1
}

/// Writes a class of the ranges.
pub(crate) fn write_class(out: &mut String, ranges: &[(char, char)]) {
    let others = complement(ranges);
    if others.is_empty() {
        out.push('.');
        return;
    }
    let negated = ranges.last().is_some_and(|&(_, last)| last == char::MAX);
    out.push_str(if negated { "[^" } else { "[" });
    for &(first, last) in if negated { &others } else { ranges } {
        write_class_char(out, first);
        if first != last {
            if after(first) != Some(last) {
                out.push('-');
            }
            write_class_char(out, last);
        }
    }
    out.push(']');
}

fn write_class_char(out: &mut String, c: char) {
    if "[]-^".contains(c) {
        out.push('\\');
        out.push(c);
    } else {
        write_char(out, c);
    }
}
