//! ECMA-262 spelling rewritten to the spelling of `regex-syntax`, with a map back to the user's offsets.
//!
//! Only spelling changes here: escapes that differ, literal braces and brackets, everything inside `[...]`. What a
//! piece means, and whether the groups balance, is left to `regex-syntax`. Source: ECMA-262 (2024) 22.2.1 and
//! Annex B.1.2.

use super::error::{PatternError, PatternErrorKind};
use super::rewritten::Rewritten;

/// Rewrites an ECMA-262 pattern.
pub(super) fn rewrite(pattern: &str) -> Result<Rewritten, PatternError> {
    let mut rewriter = Rewriter { pattern, at: 0, out: Rewritten::empty(pattern) };
    while rewriter.at < pattern.len() {
        rewriter.piece()?;
    }
    Ok(rewriter.out)
}

struct Rewriter<'p> {
    pattern: &'p str,
    at: usize,
    out: Rewritten,
}

/// What an escape stands for.
enum Escape {
    Char(char),
    /// A class such as `\d` or `\p{L}`, in a spelling that both dialects share.
    Class,
    /// An assertion, spelled for `regex-syntax`.
    Assertion(&'static str),
}

/// One member of a class.
enum Member {
    Char(char),
    /// A class, from this offset to the current one, in a spelling that both dialects share.
    Class(usize),
}

impl<'p> Rewriter<'p> {
    fn rest(&self) -> &'p str {
        &self.pattern[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn error<T>(&self, kind: PatternErrorKind, start: usize, end: usize, what: &str) -> Result<T, PatternError> {
        Err(PatternError::about(kind, self.pattern, start, end, what))
    }

    /// Copies what both dialects spell the same.
    fn copy(&mut self, end: usize) {
        self.out.copy(self.pattern, self.at, end);
        self.at = end;
    }

    /// Writes `text` for the user's piece that starts at `start`.
    fn replace(&mut self, start: usize, text: &str) {
        self.out.replace(start, text);
    }

    fn replace_char(&mut self, start: usize, c: char) {
        self.replace(start, &spelled(c));
    }

    fn piece(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        let Some(c) = self.peek() else { return Ok(()) };
        match c {
            '\\' => match self.escape(false)? {
                Escape::Char(c) => self.replace_char(start, c),
                Escape::Assertion(text) => self.replace(start, text),
                Escape::Class => {
                    let end = self.at;
                    self.at = start;
                    self.copy(end);
                }
            },
            '[' => self.class()?,
            '(' => self.group()?,
            '{' => match counted(self.rest()) {
                Some(len) => self.copy(start + len),
                None => self.literal(c),
            },
            ']' | '}' => self.literal(c),
            _ => self.copy(start + c.len_utf8()),
        }
        Ok(())
    }

    /// A character that `regex-syntax` would take for syntax.
    fn literal(&mut self, c: char) {
        let start = self.at;
        self.at += c.len_utf8();
        self.replace_char(start, c);
    }

    /// The name of a group says nothing about what it matches, and ECMA-262 allows names that Rust does not.
    fn group(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        let rest = self.rest();
        let opening = if rest.starts_with("(?P<") { 4 } else { 3 };
        let named = rest.starts_with("(?P<")
            || rest.starts_with("(?<") && !rest.starts_with("(?<=") && !rest.starts_with("(?<!");
        if !named {
            let end = start + if rest.starts_with("(?") { 2 } else { 1 };
            self.copy(end);
            return Ok(());
        }
        let name_len = rest[opening..].find('>').unwrap_or(0);
        let name = &rest[opening..opening + name_len];
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '\u{200c}' | '\u{200d}');
        if name.is_empty() || !name.chars().all(plain) || name.starts_with(|c: char| c.is_ascii_digit()) {
            let end = start + opening + name_len;
            return self.error(PatternErrorKind::Syntax, start, end, "not a group name; write (?<name>...)");
        }
        self.at = start + opening + name_len + 1;
        self.replace(start, "(?:");
        Ok(())
    }

    /// Reads one escape and leaves the position after it.
    fn escape(&mut self, in_class: bool) -> Result<Escape, PatternError> {
        use PatternErrorKind::{Syntax, Unsupported};
        let start = self.at;
        self.at += 1;
        let Some(c) = self.peek() else {
            return self.error(
                Syntax,
                start,
                self.at,
                "nothing follows the backslash; write \\\\ for the backslash itself",
            );
        };
        self.at += c.len_utf8();
        let end = self.at;
        Ok(match c {
            't' => Escape::Char('\t'),
            'n' => Escape::Char('\n'),
            'v' => Escape::Char('\u{b}'),
            'f' => Escape::Char('\u{c}'),
            'r' => Escape::Char('\r'),
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => Escape::Class,
            'p' | 'P' => {
                let len = match self.peek() {
                    Some('{') => self.rest().find('}').map(|close| close + 1),
                    Some(letter) if letter.is_ascii_alphabetic() => Some(1),
                    _ => None,
                };
                let Some(len) = len else {
                    return self.error(
                        Syntax,
                        start,
                        end,
                        "a property needs a name; write \\p{L} or \\p{Script=Greek}",
                    );
                };
                self.at += len;
                Escape::Class
            }
            'b' if in_class => Escape::Char('\u{8}'),
            'b' => Escape::Assertion("\\b"),
            'B' if !in_class => Escape::Assertion("\\B"),
            'A' if !in_class => Escape::Assertion("\\A"),
            'z' | 'Z' if !in_class => Escape::Assertion("\\z"),
            '0' if !self.peek().is_some_and(|next| next.is_ascii_digit()) => Escape::Char('\0'),
            '1'..='9' if !in_class => {
                let what = "back-references are not supported; repeat the group, or list the alternatives";
                return self.error(Unsupported, start, end, what);
            }
            '0'..='9' => return self.error(Syntax, start, end, "octal escapes are not read; write \\x00"),
            'k' if !in_class => {
                let what = "back-references are not supported; repeat the group, or list the alternatives";
                return self.error(Unsupported, start, end, what);
            }
            'c' => match self.peek() {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    self.at += 1;
                    Escape::Char(char::from(letter as u8 & 31))
                }
                _ => return self.error(Syntax, start, end, "a control escape needs a letter, as in \\cJ"),
            },
            'x' => match self.hex(2) {
                Some(code) => Escape::Char(char::from(code as u8)),
                None => return self.error(Syntax, start, end, "two hexadecimal digits must follow, as in \\x41"),
            },
            'u' => Escape::Char(self.unicode(start)?),
            letter if letter.is_ascii_alphabetic() => {
                let what = "this escape is not known in ECMA-262; drop the backslash or write \\u{...}";
                return self.error(Syntax, start, end, what);
            }
            other => Escape::Char(other),
        })
    }

    /// Reads exactly `digits` hexadecimal digits.
    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text = self.rest().get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.at += digits;
        u32::from_str_radix(text, 16).ok()
    }

    /// What follows `\u`: four digits, a pair of surrogates, or `{...}`.
    fn unicode(&mut self, start: usize) -> Result<char, PatternError> {
        let syntax = PatternErrorKind::Syntax;
        if self.peek() == Some('{') {
            let digits = self.rest().find('}').map(|close| &self.rest()[1..close]);
            let code = digits
                .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
                .and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let end = self.at + digits.map_or(1, |digits| digits.len() + 2);
            self.at = end;
            return match code.map(char::from_u32) {
                Some(Some(c)) => Ok(c),
                _ => self.error(
                    syntax,
                    start,
                    end,
                    "not a Unicode scalar value; write \\u{0} to \\u{10FFFF}, no surrogates",
                ),
            };
        }
        let Some(high) = self.hex(4) else {
            return self.error(
                syntax,
                start,
                self.at,
                "four hexadecimal digits must follow, as in \\u00e9, or \\u{...}",
            );
        };
        if let Some(c) = char::from_u32(high) {
            return Ok(c);
        }
        let after_high = self.at;
        if high < 0xdc00 && self.rest().starts_with("\\u") {
            self.at += 2;
            if let Some(low @ 0xdc00..=0xdfff) = self.hex(4) {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).expect("a surrogate pair is a supplementary character"));
            }
        }
        let what = "half a surrogate pair matches no character; write both halves, or \\u{...}";
        self.error(syntax, start, after_high, what)
    }

    /// A whole class. Nothing in it is syntax for ECMA-262 but `^`, `-`, `\` and `]`.
    fn class(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        self.at += 1;
        let negated = self.peek() == Some('^');
        self.at += usize::from(negated);
        if self.peek() == Some(']') {
            self.at += 1;
            self.replace(start, if negated { "[\\x00-\\x{10FFFF}]" } else { "[^\\x00-\\x{10FFFF}]" });
            return Ok(());
        }
        self.replace(start, if negated { "[^" } else { "[" });
        loop {
            let first_at = self.at;
            let Some(first) = self.member(start)? else { break };
            let range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            if !range {
                self.write(first_at, &first);
                continue;
            }
            let dash_at = self.at;
            self.at += 1;
            let last_at = self.at;
            let Some(last) = self.member(start)? else { break };
            match (&first, &last) {
                (&Member::Char(from), &Member::Char(to)) if from <= to => {
                    let text = format!("{}-{}", spelled(from), spelled(to));
                    self.replace(first_at, &text);
                }
                (Member::Char(_), Member::Char(_)) => {
                    let what = "the range runs backwards; swap its ends";
                    return self.error(PatternErrorKind::Syntax, first_at, self.at, what);
                }
                // Annex B: `[\w-.]` is three members.
                _ => {
                    self.write(first_at, &first);
                    self.replace_char(dash_at, '-');
                    self.write(last_at, &last);
                }
            }
        }
        self.replace(self.at - 1, "]");
        Ok(())
    }

    fn write(&mut self, at: usize, member: &Member) {
        match *member {
            Member::Char(c) => self.replace_char(at, c),
            Member::Class(end) => self.replace(at, &self.pattern[at..end]),
        }
    }

    /// The next member of the class that opened at `opened`; nothing at its end, which is read too.
    fn member(&mut self, opened: usize) -> Result<Option<Member>, PatternError> {
        match self.peek() {
            None => {
                let what = "the class is never closed; add ] or escape the bracket as \\[";
                self.error(PatternErrorKind::Syntax, opened, self.pattern.len(), what)
            }
            Some(']') => {
                self.at += 1;
                Ok(None)
            }
            Some('\\') => Ok(Some(match self.escape(true)? {
                Escape::Char(c) => Member::Char(c),
                Escape::Class | Escape::Assertion(_) => Member::Class(self.at),
            })),
            Some(c) => {
                self.at += c.len_utf8();
                Ok(Some(Member::Char(c)))
            }
        }
    }
}

/// A character in a spelling that means itself everywhere in `regex-syntax`.
fn spelled(c: char) -> String {
    if c.is_ascii_alphanumeric() || !c.is_ascii() { c.to_string() } else { format!("\\x{{{:X}}}", u32::from(c)) }
}

/// The length of a counted quantifier at the start of `text`; any other brace is a literal.
fn counted(text: &str) -> Option<usize> {
    let inner = &text[1..text.find('}')?];
    let (least, most) = inner.split_once(',').unwrap_or((inner, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!least.is_empty() && digits(least) && digits(most)).then_some(inner.len() + 2)
}
