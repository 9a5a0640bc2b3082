//! Patterns with their flags, and texts as patterns.

use stencilm_regex::syntax::{
    Anchoring, Dialect, PatternError, PatternErrorKind, PatternOptions, Utf8, parse_part, parse_pattern,
};
use stencilm_regex::{ExprId, ExprSet};

use crate::error::ErrorKind;
use crate::ir::syntax_error::SyntaxError;

/// Whether a pattern has look-around or lazy repetition.
pub(super) fn is_context(pattern: &str) -> bool {
    let mut before = ' ';
    let mut in_class = false;
    let mut chars = pattern.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
                before = 'x';
                continue;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            _ if in_class => {}
            '?' if "*+?}".contains(before) => return true,
            '(' if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|opening| pattern[at..].starts_with(opening)) => {
                return true;
            }
            _ => {}
        }
        before = if c == '?' && before == '(' { '(' } else { c };
    }
    false
}

/// A pattern with its flags in front, and the number of characters that these take.
pub(super) fn with_flags(place: usize, pattern: &str, flags: &str) -> Result<(String, usize), SyntaxError> {
    let mut known = String::new();
    for flag in flags.chars() {
        match flag {
            'i' | 'm' | 's' | 'x' if !known.contains(flag) => known.push(flag),
            // Patterns always match characters, so `u` changes nothing.
            'i' | 'm' | 's' | 'x' | 'u' => {}
            _ => {
                let message = format!("the flag {flag:?} of the pattern is not known; there are i, m, s, x and u");
                return Err(SyntaxError::at(place, message));
            }
        }
    }
    if known.is_empty() {
        return Ok((pattern.to_string(), 0));
    }
    // With flag `x`, a comment ends with its line.
    let end = if known.contains('x') { "\n)" } else { ")" };
    let whole = format!("(?{known}:{pattern}{end}");
    Ok((whole, known.len() + 3))
}

/// Reads a pattern. Its first `before` characters are not in the text; the slash before the rest is.
pub(super) fn pattern(exprs: &mut ExprSet, place: usize, pattern: &str, before: usize) -> Result<ExprId, SyntaxError> {
    let options = PatternOptions { dialect: Dialect::Standard, anchoring: Anchoring::Whole };
    parse_pattern(exprs, pattern, &options, &mut Utf8)
        .map_err(|error| of_pattern(error, |offset| place + 1 + offset.saturating_sub(before)))
}

/// An error in a pattern, at its position in the text.
pub(super) fn of_pattern(error: PatternError, place: impl Fn(usize) -> usize) -> SyntaxError {
    let kind = match error.kind {
        PatternErrorKind::Syntax => ErrorKind::Syntax,
        PatternErrorKind::Unsupported => ErrorKind::Unsupported,
        PatternErrorKind::Limit => ErrorKind::Limit,
    };
    SyntaxError { kind, offset: place(error.offset), message: error.message }
}

/// Refuses a pattern that is wrong by itself, regardless of its context.
pub(super) fn check_pattern(place: usize, text: &str, flags: &str) -> Result<(), SyntaxError> {
    let exprs = &mut ExprSet::new();
    if !is_context(text) {
        let (flagged, before) = with_flags(place, text, flags)?;
        return pattern(exprs, place, &flagged, before).map(|_| ());
    }
    parse_part(exprs, text, Dialect::Standard, &mut Utf8)
        .map(|_| ())
        .map_err(|error| of_pattern(error, |offset| place + 1 + offset))
}

/// A text as a pattern that matches only it.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation() && c != '_' && c != '<' && c != '>' {
            escaped.push('\\');
        }
        match c {
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::is_context;

    #[test]
    fn patterns_that_look_around_or_are_lazy() {
        for (pattern, expected) in [
            ("a?", false),
            ("a??", true),
            ("a*?", true),
            ("a{2}?", true),
            (r"a\*?", false),
            ("[*?+?]", false),
            ("(?:a)", false),
            ("(?i)a", false),
            ("(?<n>a)", false),
            ("(?<!a)", true),
            ("a(?=b)", true),
            (r"\(?=", false),
        ] {
            assert_eq!(is_context(pattern), expected, "{pattern}");
        }
    }
}
