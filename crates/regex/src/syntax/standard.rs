//! The Standard dialect in the spelling of `regex-syntax`.

use super::error::{PatternError, PatternErrorKind};
use super::rewritten::Rewritten;

/// The POSIX names that `regex-syntax` knows.
const POSIX_NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// The Standard dialect. It differs from `regex-syntax` in Python's `\Z` and in an opening bracket within a class:
/// the bracket is a character, as in Python, unless it begins a POSIX name or comes after a set operation, or where
/// classes may be `nested`.
///
/// # Errors
/// [`PatternErrorKind::Syntax`] for an unknown POSIX name. Where classes may be nested, it is a class.
pub(super) fn rewrite(pattern: &str, nested: bool) -> Result<Rewritten, PatternError> {
    let mut rewritten = Rewritten::empty(pattern);
    // Under `(?x)` brackets may be in comments.
    let is_verbose = sets_verbose(pattern);
    let mut classes = 0;
    let mut at = 0;
    while let Some(c) = pattern[at..].chars().next() {
        let rest = &pattern[at..];
        let end = at + c.len_utf8();
        match c {
            '\\' => {
                let escaped = pattern[end..].chars().next().map_or(0, char::len_utf8);
                if rest.starts_with("\\Z") {
                    rewritten.replace(at, "\\z");
                } else {
                    rewritten.copy(pattern, at, end + escaped);
                }
                at = end + escaped;
                continue;
            }
            '[' if is_verbose => {}
            '[' if classes > 0 && posix_name(rest).is_some() => {
                let name = posix_name(rest).unwrap_or_default();
                let end = at + name.len() + "[::]".len();
                if !nested && !POSIX_NAMES.contains(&name.trim_start_matches('^')) {
                    let names = POSIX_NAMES.map(|name| format!("[:{name}:]")).join(" ");
                    let what = format!("no POSIX class; there are {names}. Write `\\[` for a bracket in a class");
                    return Err(PatternError::about(PatternErrorKind::Syntax, pattern, at, end, what));
                }
                rewritten.copy(pattern, at, end);
                at = end;
                continue;
            }
            '[' if classes > 0 && !nested && !["&&", "--", "~~"].iter().any(|sign| pattern[..at].ends_with(sign)) => {
                rewritten.replace(at, "\\[");
                at = end;
                continue;
            }
            '[' => {
                classes += 1;
                // A bracket in first position is a character.
                let inner = &pattern[end..];
                let first = inner.strip_prefix('^').unwrap_or(inner);
                let end = pattern.len() - first.len() + usize::from(first.starts_with(']'));
                rewritten.copy(pattern, at, end);
                at = end;
                continue;
            }
            ']' if classes > 0 => classes -= 1,
            _ => {}
        }
        rewritten.copy(pattern, at, end);
        at = end;
    }
    Ok(rewritten)
}

/// The word of a POSIX name such as `[:alpha:]` at the beginning of a text.
fn posix_name(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix("[:")?.split_once(":]")?;
    name.trim_start_matches('^').chars().all(|c| c.is_ascii_lowercase()).then_some(name)
}

/// Whether the flags of a pattern may turn `x` on.
fn sets_verbose(pattern: &str) -> bool {
    pattern.match_indices("(?").any(|(at, _)| {
        let flags = pattern[at + 2..].split([':', ')', '-', '<', '=', '!', 'P']).next().unwrap_or("");
        flags.contains('x')
    })
}
