//! Printing expressions as pattern text in the standard dialect, which parses back.
//!
//! Sequences of bytes are combined to characters again. Expressions that no pattern describes have no text:
//! intersections, complements, and bytes that are not whole characters.

use std::fmt::Write;

use stencilm_support::{LimitExceeded, check_time};

use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

/// Longer texts do not help a reader.
const MAX_TEXT: usize = 4_096;

/// Classes of more pieces are not combined.
const MAX_PIECES: usize = 4_096;

/// Ranges of characters, both ends included.
type Chars = Vec<(u32, u32)>;

enum Step {
    Expr(ExprId, Place),
    Text(String),
}

/// The position of an expression, which decides whether it needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Alternative,
    Item,
    Repeated,
}

/// A pattern that is written in short steps, between which others may use the expressions; [`ExprSet::pattern`] does it
/// at once.
pub struct Printing {
    out: String,
    work: Vec<Step>,
}

/// The result of a step.
pub enum Printed {
    /// Some of the pattern is left to write.
    Part,
    /// The pattern is complete; `None` where there is none.
    All(Option<String>),
}

impl Printing {
    /// Nothing is written yet.
    pub fn of(id: ExprId) -> Printing {
        Printing { out: String::new(), work: vec![Step::Expr(id, Place::Alternative)] }
    }

    /// Continues; `exprs` must be the same set each time. After the end it must not be called again.
    ///
    /// # Errors
    /// A limit, where the thread has to stop.
    pub fn step(&mut self, exprs: &ExprSet) -> Result<Printed, LimitExceeded> {
        let Printing { out, work } = self;
        let Some(step) = work.pop() else {
            return Ok(Printed::All((out.len() <= MAX_TEXT).then(|| std::mem::take(out))));
        };
        check_time()?;
        if out.len() > MAX_TEXT || work.len() > MAX_TEXT {
            return Ok(Printed::All(None));
        }
        match step {
            Step::Text(text) => out.push_str(&text),
            Step::Expr(id, place) => {
                if exprs.print(id, place, out, work).is_none() {
                    return Ok(Printed::All(None));
                }
            }
        }
        Ok(Printed::Part)
    }
}

impl ExprSet {
    /// A pattern of the standard dialect for an expression; `None` where there is none, or only one of more than 4,096
    /// bytes.
    ///
    /// # Errors
    /// A limit, where the thread has to stop.
    pub fn pattern(&self, id: ExprId) -> Result<Option<String>, LimitExceeded> {
        let mut printing = Printing::of(id);
        loop {
            if let Printed::All(pattern) = printing.step(self)? {
                return Ok(pattern);
            }
        }
    }

    /// Prints an expression itself and puts its parts on the work list; `None` where no pattern describes it.
    fn print(&self, id: ExprId, place: Place, out: &mut String, work: &mut Vec<Step>) -> Option<()> {
        if let Some(chars) = self.chars(id) {
            out.push_str(&class(chars)?);
            return Some(());
        }
        let mut steps = Vec::new();
        let own = match self.get(id) {
            Expr::Nothing | Expr::And(_) | Expr::Not(_) | Expr::Bytes(_) => return None,
            Expr::Number(_) | Expr::Language(_) => return None,
            Expr::Text(text) => {
                let chars = text.chars().map(|c| class(vec![(u32::from(c), u32::from(c))]));
                steps.push(Step::Text(chars.collect::<Option<String>>()?));
                Place::Item
            }
            Expr::Empty => {
                steps.push(Step::Text("(?:)".into()));
                Place::Repeated
            }
            Expr::Concat { .. } => {
                self.spine(id, &mut steps)?;
                Place::Item
            }
            Expr::Or(parts) => {
                for (index, &part) in parts.iter().enumerate() {
                    if index > 0 {
                        steps.push(Step::Text("|".into()));
                    }
                    steps.push(Step::Expr(part, Place::Alternative));
                }
                Place::Alternative
            }
            Expr::Repeat { body, min, max } => {
                let count = match (min, max) {
                    (0, None) => "*".to_owned(),
                    (1, None) => "+".to_owned(),
                    (0, Some(1)) => "?".to_owned(),
                    (min, None) => format!("{{{min},}}"),
                    (min, Some(max)) if min == max => format!("{{{min}}}"),
                    (min, Some(max)) => format!("{{{min},{max}}}"),
                };
                steps.push(Step::Expr(*body, Place::Repeated));
                steps.push(Step::Text(count));
                Place::Item
            }
        };
        // A repetition within a sequence needs no parentheses; alternatives do, and so does whatever is repeated.
        let needed = own < place;
        if needed {
            out.push_str("(?:");
            work.push(Step::Text(")".into()));
        }
        work.extend(steps.into_iter().rev());
        Some(())
    }

    /// The parts of a concatenation, with bytes combined to characters.
    fn spine(&self, id: ExprId, steps: &mut Vec<Step>) -> Option<()> {
        let mut parts = Vec::new();
        let mut rest = id;
        while let Expr::Concat { head, tail } = *self.get(rest) {
            parts.push(head);
            rest = tail;
        }
        parts.push(rest);
        let mut at = 0;
        while at < parts.len() {
            let Expr::Bytes(lead) = self.get(parts[at]) else {
                steps.push(Step::Expr(parts[at], Place::Item));
                at += 1;
                continue;
            };
            let length = length_of(lead)?;
            let sets: Option<Vec<ByteSet>> =
                parts.get(at..at + length)?.iter().map(|&part| self.as_bytes(part)).collect();
            let mut chars = Chars::new();
            decode(&sets?, &mut chars)?;
            steps.push(Step::Text(class(chars)?));
            at += length;
        }
        Some(())
    }

    fn as_bytes(&self, id: ExprId) -> Option<ByteSet> {
        if let Expr::Bytes(set) = self.get(id) { Some(*set) } else { None }
    }

    /// The characters that an expression matches, if every text that it matches is a single one.
    fn chars(&self, id: ExprId) -> Option<Chars> {
        let mut chars = Chars::new();
        let mut work: Vec<(ExprId, Vec<ByteSet>)> = vec![(id, Vec::new())];
        while let Some((id, sets)) = work.pop() {
            if sets.len() > 4 || work.len() > MAX_PIECES {
                return None;
            }
            match self.get(id) {
                Expr::Empty => {
                    if length_of(sets.first()?)? != sets.len() {
                        return None;
                    }
                    decode(&sets, &mut chars)?;
                }
                Expr::Bytes(set) => work.push((ExprId::EMPTY, [&sets[..], &[*set]].concat())),
                Expr::Concat { head, tail } => work.push((*tail, [&sets[..], &[self.as_bytes(*head)?]].concat())),
                Expr::Or(parts) => work.extend(parts.iter().map(|&part| (part, sets.clone()))),
                _ => return None,
            }
        }
        Some(chars)
    }
}

/// The number of bytes of the characters with these first bytes.
fn length_of(lead: &ByteSet) -> Option<usize> {
    let length = |byte: u8| match byte {
        0..=0x7F => 1,
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 0,
    };
    let first = length(lead.first()?);
    (first > 0 && lead.iter().all(|byte| length(byte) == first)).then_some(first)
}

/// Adds the characters with these bytes, given as one set for each byte.
fn decode(sets: &[ByteSet], chars: &mut Chars) -> Option<()> {
    let continuation = ByteSet::range(0x80, 0xBF);
    let mut work: Vec<(usize, u32)> = vec![(0, 0)];
    while let Some((at, so_far)) = work.pop() {
        let set = &sets[at];
        if at > 0 && set.intersect(&continuation) != *set {
            return None;
        }
        let bits = if at > 0 { 0x3F } else { [0x7F, 0x1F, 0x0F, 0x07][sets.len() - 1] };
        let rest = &sets[at + 1..];
        let shift = 6 * rest.len() as u32;
        for byte in set.iter() {
            let value = so_far << 6 | (u32::from(byte) & bits);
            if !rest.is_empty() && rest.iter().any(|set| *set != continuation) {
                work.push((at + 1, value));
                continue;
            }
            let (first, last) = (value << shift, ((value + 1) << shift) - 1);
            match chars.last_mut() {
                Some(known) if known.1 + 1 == first => known.1 = last,
                _ => chars.push((first, last)),
            }
        }
        if chars.len() > MAX_PIECES || work.len() > MAX_PIECES {
            return None;
        }
    }
    Some(())
}

/// Ranges of characters, as a literal character or a class.
fn class(mut chars: Chars) -> Option<String> {
    chars.sort_unstable();
    let mut merged = Chars::new();
    for (first, last) in chars {
        match merged.last_mut() {
            Some(known) if first <= known.1 + 1 => known.1 = known.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    if let [(first, last)] = merged[..]
        && first == last
    {
        return shown(first);
    }
    // A class that excludes few characters is easier to read negated.
    let negated = merged.first()?.0 == 0 && merged.last()?.1 == u32::from(char::MAX);
    let mut ranges = merged;
    if negated {
        ranges = ranges
            .windows(2)
            .map(|pair| (pair[0].1 + 1, pair[1].0 - 1))
            .filter(|&gap| gap != (0xD800, 0xDFFF))
            .collect();
        if ranges.is_empty() {
            return Some("(?s:.)".into());
        }
    }
    let mut text = String::from(if negated { "[^" } else { "[" });
    for (first, last) in ranges {
        text.push_str(&shown(first)?);
        if last > first {
            if last > first + 1 {
                text.push('-');
            }
            text.push_str(&shown(last)?);
        }
    }
    text.push(']');
    Some(text)
}

/// A character as it is written in a pattern, inside and outside classes.
fn shown(char: u32) -> Option<String> {
    let char = char::from_u32(char)?;
    let mut text = String::new();
    match char {
        '\n' => text.push_str("\\n"),
        '\t' => text.push_str("\\t"),
        '\r' => text.push_str("\\r"),
        _ if regex_syntax::is_meta_character(char) => text.extend(['\\', char]),
        ' ' | '!'..='~' => text.push(char),
        _ if char.is_alphanumeric() => text.push(char),
        _ => write!(text, "\\u{{{:X}}}", u32::from(char)).ok()?,
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PatternOptions, Utf8, parse_pattern};

    #[test]
    fn a_printed_pattern_parses_back() {
        let cases = [
            ("abc", "abc"),
            ("a|bc|", "(?:a|bc)?"),
            ("[a-z]{2,5}x+", ""),
            ("(?:ab){3}|c*", ""),
            ("é|日本", ""),
            ("[é-ü]?x", "[é-ü]?x"),
            (r"[^\x22\\\x00-\x1f]*", ""),
            (".", r"[^\n]"),
            ("(?s).", "(?s:.)"),
            (r"\$\{[a-z]\}", r"\$\{[a-z]\}"),
            (r"(?:a|b*c)+d|\u{1F600}-", ""),
            (r"\w+@\w+\.(?:com|org)", ""),
            (r"\p{Greek}", ""),
        ];
        for (pattern, expected) in cases {
            let mut exprs = ExprSet::new();
            let mut parse =
                |pattern: &str| parse_pattern(&mut exprs, pattern, &PatternOptions::default(), &mut Utf8).unwrap();
            let id = parse(pattern);
            let printed = exprs.pattern(id).unwrap().unwrap_or_else(|| panic!("{pattern} can be printed"));
            if !expected.is_empty() && pattern != "a|bc|" {
                assert_eq!(printed, expected);
            }
            let again = parse_pattern(&mut exprs, &printed, &PatternOptions::default(), &mut Utf8).unwrap();
            assert_eq!(again, id, "{pattern} was printed as {printed}");
        }
    }

    #[test]
    fn what_no_pattern_can_say_has_no_text() {
        let mut exprs = ExprSet::new();
        let a = exprs.literal(b"a");
        let not = exprs.not(a);
        let half = exprs.literal(b"\xA9x");
        let lead = exprs.literal(b"\xC3");
        for id in [not, half, lead, ExprId::ANYTHING, ExprId::NOTHING] {
            assert_eq!(exprs.pattern(id), Ok(None));
        }
    }
}
