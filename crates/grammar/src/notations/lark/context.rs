//! Terminals that depend on what stands around them: with look-around, or with lazy repetition. As in the toolkit, such
//! a terminal is one pattern with all that it is made of written out, because look-around sees across its parts.

use rustc_hash::FxHashSet;
use stencilm_regex::syntax::{Dialect, Utf8, parse_part};
use stencilm_regex::{ExprId, ExprSet};

use super::patterns::{check_pattern, escaped, is_context, of_pattern, with_flags};
use super::spread::spread;
use super::tree::{Definition, Part, PartId, Unit};
use crate::ir::syntax_error::SyntaxError;

/// The greatest length of a pattern that is written out, in bytes.
const MAX_PATTERN: usize = 1 << 16;
/// The greatest nesting depth of parts and terminals in it.
const MAX_NESTING: usize = 200;

/// For each definition, by index, whether it depends on its context.
pub(super) fn definitions(unit: &Unit) -> Result<Vec<bool>, SyntaxError> {
    spread(unit, |definition, found| definition.is_terminal && holds(unit, definition, found))
}

fn holds(unit: &Unit, definition: &Definition, found: &[bool]) -> bool {
    unit.parts_of(definition).any(|id| match unit.part(id) {
        Part::Pattern(pattern, _) => is_context(pattern),
        Part::Name { name, .. } => unit.definitions.get_index_of(name).is_some_and(|index| found[index]),
        _ => false,
    })
}

/// The texts of a part in groups, each with the condition on what follows it.
pub(super) fn groups(
    exprs: &mut ExprSet,
    unit: &Unit,
    part: PartId,
    place: usize,
) -> Result<Vec<(ExprId, ExprId)>, SyntaxError> {
    let mut pattern = String::new();
    write(unit, part, &mut pattern, 0)?;
    parse_part(exprs, &pattern, Dialect::Standard, &mut Utf8).map_err(|error| {
        // An error in one of its patterns is reported at the position in that pattern.
        let alone =
            patterns(unit, part).into_iter().find_map(|(place, text, flags)| check_pattern(place, text, flags).err());
        alone.unwrap_or_else(|| of_pattern(error, |_| place))
    })
}

/// The patterns within a part, each with its position and flags.
fn patterns(unit: &Unit, part: PartId) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut work = vec![part];
    while let Some(id) = work.pop() {
        if !seen.insert(id) {
            continue;
        }
        let part = unit.part(id);
        if let Part::Pattern(text, flags) = part {
            found.push((unit.place(id), text.as_str(), flags.as_str()));
        }
        if let Part::Name { name, .. } = part {
            work.extend(unit.definitions.get(name).map(|used| used.body));
        }
        work.extend(part.children().iter().rev());
    }
    found
}

/// Writes a part as a pattern.
fn write(unit: &Unit, id: PartId, out: &mut String, depth: usize) -> Result<(), SyntaxError> {
    let place = unit.place(id);
    if depth > MAX_NESTING || out.len() > MAX_PATTERN {
        let message = "a terminal with look-around or lazy repetition is nested too deeply, or too long when it is written \
                       out; simplify it";
        return Err(SyntaxError::limit(place, message));
    }
    let group = |out: &mut String, parts: &[PartId], between: &str| {
        out.push_str("(?:");
        for (index, &part) in parts.iter().enumerate() {
            if index > 0 {
                out.push_str(between);
            }
            write(unit, part, out, depth + 1)?;
        }
        out.push(')');
        Ok(())
    };
    match unit.part(id) {
        Part::Text(text, folds) => {
            out.push_str(if *folds { "(?i:" } else { "(?:" });
            out.push_str(&escaped(text));
            out.push(')');
            Ok(())
        }
        Part::Pattern(pattern, flags) => {
            let (flagged, _) = with_flags(place, pattern, flags)?;
            out.push_str(&format!("(?:{flagged})"));
            Ok(())
        }
        Part::Range(first, last) => {
            out.push_str(&format!("[\\x{{{:x}}}-\\x{{{:x}}}]", u32::from(*first), u32::from(*last)));
            Ok(())
        }
        Part::Sequence(parts) => group(out, parts, ""),
        Part::Choice(parts) => group(out, parts, "|"),
        Part::Repeat { body, min, max } => {
            group(out, &[*body], "")?;
            match max {
                Some(max) => out.push_str(&format!("{{{min},{max}}}")),
                None => out.push_str(&format!("{{{min},}}")),
            }
            Ok(())
        }
        Part::Name { name, arguments, .. } if arguments.is_empty() => match unit.definitions.get(name) {
            Some(used) if used.is_terminal && used.parameters.is_empty() => group(out, &[used.body], ""),
            _ => Err(refused(place)),
        },
        _ => Err(refused(place)),
    }
}

fn refused(place: usize) -> SyntaxError {
    let message = "this stands in a terminal with look-around or lazy repetition, which is made of texts, patterns and \
                   terminals only; make a terminal of its own of it, and use both in a rule";
    SyntaxError::unsupported(place, message)
}
