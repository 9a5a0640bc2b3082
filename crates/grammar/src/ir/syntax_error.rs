//! Errors in a text of several lines: an offset while it is read, line and column for who wrote it.

use stencilm_regex::ExprSet;
use stencilm_support::{LimitExceeded, check_time};

use crate::error::{ErrorKind, GrammarError};

/// An error in a text, at an offset that becomes a line and column once the text is available.
#[derive(Clone, Debug)]
pub(crate) struct SyntaxError {
    pub kind: ErrorKind,
    pub offset: usize,
    pub message: String,
}

impl SyntaxError {
    /// The text is not valid in its notation.
    pub fn at(offset: usize, message: impl Into<String>) -> SyntaxError {
        SyntaxError { kind: ErrorKind::Syntax, offset, message: message.into() }
    }

    /// The text asks for something that cannot be enforced exactly.
    pub fn unsupported(offset: usize, message: impl Into<String>) -> SyntaxError {
        SyntaxError { kind: ErrorKind::Unsupported, offset, message: message.into() }
    }

    /// A limit of size, depth or work was exceeded.
    pub fn limit(offset: usize, message: impl Into<String>) -> SyntaxError {
        SyntaxError { kind: ErrorKind::Limit, offset, message: message.into() }
    }

    /// Fails at this offset if the operation takes too long.
    pub fn check_time(offset: usize) -> Result<(), SyntaxError> {
        check_time().map_err(|limit| SyntaxError::limit(offset, limit.while_reading()))
    }

    /// Fails at this offset if the operation takes too long or too much memory; to be called between two expressions.
    pub fn check_growth(exprs: &mut ExprSet, offset: usize) -> Result<(), SyntaxError> {
        exprs.may_grow().map_err(|limit| SyntaxError::growth(offset, limit))
    }

    /// The error for expressions that were abandoned at this offset.
    pub fn growth(offset: usize, limit: LimitExceeded) -> SyntaxError {
        let message = match limit {
            LimitExceeded::Expressions(most) => {
                format!(
                    "the grammar has more than {most} parts of regular expressions; shorten its literals or split it"
                )
            }
            _ => limit.while_reading(),
        };
        SyntaxError::limit(offset, message)
    }

    /// An error with line and column in a text that is a part of another text and starts at `start`.
    pub fn within(error: GrammarError, part: &str, start: usize) -> SyntaxError {
        let GrammarError { kind, place, message } = error;
        let numbers = place.strip_prefix("line ").and_then(|place| place.split_once(", column "));
        let numbers = numbers.and_then(|(line, column)| Some((line.parse().ok()?, column.parse().ok()?)));
        let (line, column): (usize, usize) = numbers.expect("what reads it tells line and column");
        let before: usize = part.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let inside = part[before..].chars().take(column - 1).map(char::len_utf8).sum::<usize>();
        SyntaxError { kind, offset: start + before + inside, message }
    }

    /// The error with its position in `text` as line and column.
    pub fn placed(self, text: &str) -> GrammarError {
        let before = &text.as_bytes()[..self.offset.min(text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        // Counts characters, not bytes: UTF-8 continuation bytes are skipped.
        let column = before[start..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count() + 1;
        GrammarError::new(self.kind, format!("line {line}, column {column}"), self.message)
    }

    /// An error about the whole grammar, which has no position: reported at the start rule.
    pub fn of_whole(error: GrammarError, text: &str, start: usize) -> GrammarError {
        let GrammarError { kind, place, message } = error;
        if place.is_empty() {
            SyntaxError { kind, offset: start, message }.placed(text)
        } else {
            GrammarError { kind, place, message }
        }
    }
}
