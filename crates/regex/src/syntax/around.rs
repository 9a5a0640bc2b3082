//! Look-ahead and look-behind, as conditions on the rest and on the beginning of the text.
//!
//! `regex-syntax` does not read them. So each is cut out of the pattern, read as a separate pattern, and replaced by a
//! named group, which the tree turns into a leaf. [`super::sequences`] has what is then made of the tree.

use super::error::{PatternError, PatternErrorKind};
use super::rewritten::Rewritten;
use crate::expr::node::ExprId;

/// The prefix of the names of the groups that stand for look-around.
const NAME: &str = "stencilm_around_";
/// The greatest number of look-arounds in a pattern, including nested ones.
const MAX_AROUNDS: usize = 200;

/// A look-around that was cut out.
pub(super) struct Cut {
    pub ahead: bool,
    pub negative: bool,
    /// The pattern inside.
    pub body: Rewritten,
    /// Whether it could end with a comment.
    pub verbose: bool,
    /// The offset in the user's pattern.
    pub offset: usize,
}

impl Cut {
    /// The pattern inside as one group. With `open`, it includes the rest of the text about which a look-ahead does not
    /// ask, or the beginning about which a look-behind does not.
    pub fn whole(&self, pattern: &str, open: bool) -> Rewritten {
        let any = "(?s:.)*";
        let mut text = Rewritten::empty(pattern);
        if open && !self.ahead {
            text.replace(self.offset, any);
        }
        text.replace(self.offset, "(?:");
        text.append(&self.body, 0, self.body.text.len());
        // A comment would swallow the bracket.
        text.replace(self.offset, if self.verbose { "\n)" } else { ")" });
        if open && self.ahead {
            text.replace(self.offset, any);
        }
        text
    }
}

/// A look-around as a condition.
#[derive(Clone, Copy)]
pub(super) struct Around {
    pub ahead: bool,
    pub negative: bool,
    /// What the rest of the text, or its beginning up to here, must match, or must not, for each kind of character on
    /// the other side of this position.
    pub by_edge: [ExprId; 4],
    /// Whether a look-around inside may look to the other side.
    pub beyond: bool,
    pub offset: usize,
}

impl Around {
    /// Whether it depends on the character on the other side.
    pub fn asks(&self) -> bool {
        self.by_edge.iter().any(|&expr| expr != self.by_edge[0])
    }
}

/// The number of the look-around for which a group with this name stands.
pub(super) fn number(name: &str) -> Option<usize> {
    name.strip_prefix(NAME)?.parse().ok()
}

/// Cuts the outermost look-arounds out of a pattern; nested ones stay in their bodies.
pub(super) fn cut(rewritten: Rewritten, pattern: &str) -> Result<(Rewritten, Vec<Cut>), PatternError> {
    let text = &rewritten.text;
    let is_one = |at: usize| ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|opening| text[at..].starts_with(opening));
    if !text.match_indices("(?").any(|(at, _)| is_one(at)) {
        return Ok((rewritten, Vec::new()));
    }
    let mut whole = Rewritten::empty(pattern);
    let mut cuts: Vec<Cut> = Vec::new();
    // The flags inside each open group, the outermost first.
    let mut flags: Vec<String> = vec![String::new()];
    // The look-around that is open, and the depth of this position within it.
    let mut open: Option<(usize, usize)> = None;
    let mut copied = 0;
    let mut classes = 0;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '\\' => at += text[at + 1..].chars().next().map_or(0, char::len_utf8),
            '[' => {
                classes += 1;
                // A bracket in first position is a character.
                let rest = text[at + 1..].strip_prefix('^').unwrap_or(&text[at + 1..]);
                if rest.starts_with(']') {
                    at = text.len() - rest.len();
                }
            }
            ']' if classes > 0 => classes -= 1,
            _ if classes > 0 => {}
            '#' if flags.last().is_some_and(|flags| flags.contains('x')) => {
                at += text[at..].find('\n').unwrap_or(text.len() - at - 1);
            }
            '(' if open.is_none() && is_one(at) => {
                if cuts.len() >= MAX_AROUNDS {
                    let what = "more than 200 look-arounds; use fewer, or several patterns";
                    let offset = rewritten.original(at);
                    return Err(PatternError::about(PatternErrorKind::Limit, pattern, offset, offset + 3, what));
                }
                whole.append(&rewritten, copied, at);
                whole.replace(rewritten.original(at), &format!("(?P<{NAME}{}>)", cuts.len()));
                let after = text[at..].starts_with("(?<");
                let start = at + if after { 4 } else { 3 };
                let mut body = Rewritten::empty(pattern);
                let inherited = flags.last().cloned().unwrap_or_default();
                if !inherited.is_empty() {
                    body.replace(rewritten.original(at), &format!("(?{inherited})"));
                }
                let negative = text[..start].ends_with('!');
                cuts.push(Cut { ahead: !after, negative, body, verbose: false, offset: rewritten.original(at) });
                open = Some((start, flags.len()));
                flags.push(inherited);
                at = start;
                continue;
            }
            '(' => {
                let inner = flags_inside(&text[at..], &mut flags, is_one(at));
                flags.push(inner);
            }
            ')' => {
                let closed = if flags.len() > 1 { flags.pop() } else { None };
                if let Some((start, _)) = open.filter(|&(_, depth)| flags.len() == depth) {
                    let cut = cuts.last_mut().expect("one is open");
                    cut.body.append(&rewritten, start, at);
                    cut.verbose = closed.is_some_and(|flags| flags.contains('x'));
                    copied = at + 1;
                    open = None;
                }
            }
            _ => {}
        }
        at += text[at..].chars().next().map_or(1, char::len_utf8);
    }
    if open.is_some() {
        let offset = cuts.last().map_or(0, |cut| cut.offset);
        let what = "the group is never closed; add ) or escape the parenthesis as \\(";
        return Err(PatternError::about(PatternErrorKind::Syntax, pattern, offset, offset + 3, what));
    }
    whole.append(&rewritten, copied, text.len());
    Ok((whole, cuts))
}

/// The flags inside a group that begins here. A group of flags alone applies until the end of the group around it.
fn flags_inside(text: &str, flags: &mut [String], is_around: bool) -> String {
    let mut inner = flags.last().cloned().unwrap_or_default();
    let Some(named) = text.strip_prefix("(?").filter(|_| !is_around) else { return inner };
    let end = named.find([':', ')', '<']).unwrap_or(0);
    let plain = named[..end].split('-').next().unwrap_or_default();
    if plain.chars().all(|flag| flag.is_ascii_alphabetic()) && !named[..end].starts_with('P') {
        inner.push_str(plain);
        let off = named[..end].split('-').nth(1).unwrap_or_default();
        inner.retain(|flag| !off.contains(flag));
        if named[end..].starts_with(')') {
            *flags.last_mut().expect("the pattern itself is never closed") = inner.clone();
        }
    }
    inner
}
