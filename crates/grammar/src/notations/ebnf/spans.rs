//! Character classes found again in expressions: which alternatives are UTF-8 of single characters, and of which.

use stencilm_regex::syntax::{Alphabet, Utf8};
use stencilm_regex::{Expr, ExprId, ExprSet};

use super::escapes;
use super::escapes::Ranges;

/// The greatest number of byte sequences from which a class is reconstructed.
const MAX_SEQUENCES: usize = 2_000;

/// One range of bytes for each byte of a character.
type Sequence = Vec<(u8, u8)>;

/// The alternatives that together form a class, as its characters, and the other alternatives. `None` if there is no
/// such class with a non-ASCII character: a set of ASCII bytes is printed as a class anyway.
pub(super) fn class_and_others(exprs: &mut ExprSet, parts: &[ExprId]) -> Option<(Ranges, Vec<ExprId>)> {
    let mut ranges: Ranges = Vec::new();
    let mut others = Vec::new();
    let mut is_wide = false;
    for &part in parts {
        match characters(exprs, part) {
            Some(mut found) => {
                is_wide |= found.iter().any(|&(_, last)| !last.is_ascii());
                ranges.append(&mut found);
            }
            None => others.push(part),
        }
    }
    if !is_wide {
        return None;
    }
    // Verifies that the class is the same expression, so the guesses above need not be right.
    let ranges = escapes::merged(ranges);
    let class = Utf8.class(exprs, &ranges);
    let whole = exprs.or(parts);
    let mut all = others.clone();
    all.push(class);
    (exprs.or(&all) == whole).then_some((ranges, others))
}

fn characters(exprs: &ExprSet, id: ExprId) -> Option<Ranges> {
    let mut found = Vec::new();
    sequences(exprs, id, &mut Vec::new(), &mut found)?;
    let mut ranges = Vec::new();
    for sequence in found {
        decode(&sequence, &mut ranges)?;
    }
    Some(ranges)
}

/// Collects all paths of at most four bytes through an expression; the recursion is no deeper than that.
fn sequences(exprs: &ExprSet, id: ExprId, prefix: &mut Sequence, found: &mut Vec<Sequence>) -> Option<()> {
    if prefix.len() >= 4 || found.len() > MAX_SEQUENCES {
        return None;
    }
    let (set, tail) = match exprs.get(id) {
        Expr::Bytes(set) => (set, None),
        Expr::Concat { head, tail } => match exprs.get(*head) {
            Expr::Bytes(set) => (set, Some(*tail)),
            _ => return None,
        },
        Expr::Or(parts) if !prefix.is_empty() => {
            for &part in parts {
                sequences(exprs, part, prefix, found)?;
            }
            return Some(());
        }
        _ => return None,
    };
    for range in set.ranges() {
        prefix.push(range);
        match tail {
            None => found.push(prefix.clone()),
            Some(tail) => sequences(exprs, tail, prefix, found)?,
        }
        prefix.pop();
    }
    Some(())
}

/// The characters of a sequence. A byte range needs every continuation after it, otherwise it is split into single
/// bytes.
fn decode(sequence: &[(u8, u8)], ranges: &mut Ranges) -> Option<()> {
    let length = match sequence[0].0 {
        0..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    if sequence.len() != length {
        return None;
    }
    let free = sequence.iter().rposition(|&byte| byte != (0x80, 0xbf)).unwrap_or(0);
    let mut firsts: Vec<Vec<u8>> = vec![Vec::new()];
    for &(first, last) in &sequence[..free] {
        firsts =
            firsts.iter().flat_map(|start| (first..=last).map(move |byte| [start, &[byte][..]].concat())).collect();
        if firsts.len() > MAX_SEQUENCES || ranges.len() > MAX_SEQUENCES {
            return None;
        }
    }
    for start in firsts {
        let ends = [sequence[free].0, sequence[free].1];
        let rest = sequence.len() - free - 1;
        let [low, high] = [(ends[0], 0x80u8), (ends[1], 0xbf)].map(|(byte, filler)| {
            let mut bytes = start.clone();
            bytes.push(byte);
            bytes.extend(std::iter::repeat_n(filler, rest));
            std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next())
        });
        ranges.push((low?, high?));
    }
    Some(())
}
