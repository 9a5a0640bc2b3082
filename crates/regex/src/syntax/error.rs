//! Why a pattern is refused: what is wrong, where in the user's own text, and what to write instead.

use std::fmt;

use regex_syntax::{ast, hir};

use super::rewritten::Rewritten;

/// What kind of refusal a [`PatternError`] is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PatternErrorKind {
    /// The text is not a pattern of its dialect.
    Syntax,
    /// It is a pattern, and something in it cannot be enforced exactly.
    Unsupported,
    /// It is too long, too deep or too costly.
    Limit,
}

/// A pattern that was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatternError {
    /// What kind of refusal.
    pub kind: PatternErrorKind,
    /// Where, in bytes from the start of the pattern.
    pub offset: usize,
    /// The offending piece, what is wrong with it and the way out.
    pub message: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {} of the pattern)", self.message, self.offset)
    }
}

impl std::error::Error for PatternError {}

impl PatternError {
    /// An error about the piece `pattern[offset..end]`.
    pub(super) fn about(
        kind: PatternErrorKind,
        pattern: &str,
        offset: usize,
        end: usize,
        what: impl fmt::Display,
    ) -> PatternError {
        let piece = excerpt(pattern, offset, end);
        let message = if piece.is_empty() { format!("end of pattern: {what}") } else { format!("`{piece}`: {what}") };
        PatternError { kind, offset, message }
    }

    pub(super) fn too_long(pattern: &str, limit: usize) -> PatternError {
        let message = format!("the pattern has {} bytes and at most {limit} are accepted; split it", pattern.len());
        PatternError { kind: PatternErrorKind::Limit, offset: limit, message }
    }

    pub(super) fn too_costly(what: impl fmt::Display) -> PatternError {
        PatternError { kind: PatternErrorKind::Limit, offset: 0, message: what.to_string() }
    }

    pub(super) fn from_ast(error: &ast::Error, pattern: &str, rewritten: &Rewritten) -> PatternError {
        use PatternErrorKind::{Limit, Syntax, Unsupported};
        use ast::ErrorKind::*;
        let mut offset = rewritten.original(error.span().start.offset);
        let mut end = rewritten.original(error.span().end.offset);
        if end == offset {
            // The parser points before the character that it could not read.
            end += pattern[offset..].chars().next().map_or(0, char::len_utf8);
        }
        if matches!(error.kind(), EscapeHexEmpty | EscapeHexInvalid | EscapeHexInvalidDigit | EscapeUnexpectedEof) {
            offset = pattern[..offset].rfind('\\').unwrap_or(offset);
        }
        let rest = &pattern[offset..];
        // `regex-syntax` reports a bad flag where Python and PCRE have a construct of their own.
        let group =
            pattern[..offset].rfind("(?").filter(|_| matches!(error.kind(), FlagUnrecognized | FlagUnexpectedEof));
        let opening = group.and_then(|start| {
            let openings = ["(?P=", "(?P>", "(?>", "(?(", "(?#", "(?|", "(?&"];
            openings.into_iter().find(|opening| pattern[start..].starts_with(opening)).map(|opening| (start, opening))
        });
        if let Some((offset, opening)) = opening {
            let what = match opening {
                "(?P=" => "back-references are not supported; repeat the group, or list the alternatives",
                "(?#" => "comments in groups are not supported; leave it out",
                _ => "this kind of group is not supported; use (?:...) and spell the alternatives out",
            };
            return PatternError::about(Unsupported, pattern, offset, offset + opening.len(), what);
        }
        let (kind, way_out) = match error.kind() {
            UnsupportedBackreference if rest.starts_with("\\0") || is_in_class(&pattern[..offset]) => {
                (Syntax, "octal escapes are not read; write \\x00")
            }
            UnsupportedBackreference => {
                (Unsupported, "back-references are not supported; repeat the group, or list the alternatives")
            }
            UnsupportedLookAround => (
                Unsupported,
                "look-around is not supported; say the same with alternatives, a character class or a second pattern",
            ),
            NestLimitExceeded(_) => (Limit, "nested too deeply; flatten the groups"),
            DecimalInvalid => (Syntax, "not a number of at most 4294967295"),
            RepetitionMissing => (Syntax, "nothing to repeat; put what is repeated before it or escape it with \\"),
            RepetitionCountInvalid => (Syntax, "the least count is above the greatest; swap them"),
            RepetitionCountUnclosed | RepetitionCountDecimalEmpty => {
                (Syntax, "not a counted repetition; write {2}, {2,} or {2,5}, or escape the brace as \\{")
            }
            ClassRangeInvalid => (Syntax, "the range runs backwards; swap its ends"),
            ClassUnclosed => (Syntax, "the class is never closed; add ] or escape the bracket as \\["),
            GroupUnclosed => (Syntax, "the group is never closed; add ) or escape the parenthesis as \\("),
            GroupUnopened => (Syntax, "no group is open; remove it or escape it as \\)"),
            EscapeHexInvalid => (Syntax, "not a Unicode scalar value; lone surrogates cannot be matched"),
            EscapeUnrecognized if rest.starts_with("\\k") => {
                (Unsupported, "back-references are not supported; repeat the group, or list the alternatives")
            }
            EscapeUnrecognized => (Syntax, "this escape is not known; drop the backslash or write \\x.."),
            EscapeUnexpectedEof if rest.len() > 1 => {
                (Syntax, "too few hexadecimal digits follow; write \\x41, \\u0041 or \\u{41}")
            }
            EscapeUnexpectedEof => (Syntax, "nothing follows the backslash; write \\\\ for the backslash itself"),
            kind => return PatternError::about(Syntax, pattern, offset, end, format_args!("{kind}; correct it")),
        };
        PatternError::about(kind, pattern, offset, end, way_out)
    }

    pub(super) fn from_hir(error: &hir::Error, pattern: &str, rewritten: &Rewritten) -> PatternError {
        let offset = rewritten.original(error.span().start.offset);
        let end = rewritten.original(error.span().end.offset);
        let what = match error.kind() {
            hir::ErrorKind::UnicodePropertyNotFound | hir::ErrorKind::UnicodePropertyValueNotFound => {
                "this Unicode property is not known; use a general category or a script, as in \\p{L} or \\p{Script=Greek}"
                    .to_string()
            }
            kind => format!("{kind}; leave the `u` flag alone"),
        };
        PatternError::about(PatternErrorKind::Unsupported, pattern, offset, end, what)
    }
}

/// Whether the text after this prefix of a pattern is within a class.
fn is_in_class(before: &str) -> bool {
    let mut open = 0;
    let mut rest = before.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            '[' => {
                open += 1;
                rest.next_if_eq(&'^');
                // A bracket in first position is a character.
                rest.next_if_eq(&']');
            }
            ']' if open > 0 => open -= 1,
            _ => {}
        }
    }
    open > 0
}

/// At most 24 characters of the piece, so that a message stays one line.
fn excerpt(pattern: &str, offset: usize, end: usize) -> String {
    const LONGEST: usize = 24;
    let mut piece: String = pattern[offset..end.max(offset)].chars().take(LONGEST + 1).collect();
    if piece.chars().count() > LONGEST {
        piece = piece.chars().take(LONGEST).collect::<String>() + "…";
    }
    piece.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() }).collect()
}
