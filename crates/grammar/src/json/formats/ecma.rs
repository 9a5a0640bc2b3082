//! Patterns of ECMA-262 as an expression: its grammar (section 22.2.1, with or without the `u` flag; of Annex B only
//! `]` and `}` as they stand).
//!
//! Groups nest, which no regular expression can follow to any depth, so they are followed to [`DEPTH`]. What hangs on
//! letters far apart is not decided: whether a name or number refers to a group there is, the order of the ends of a
//! range or count, and the names of properties.

use stencilm_regex::{ExprId, ExprSet};

use super::whole::whole;
use crate::json::strings::Strings;

/// The greatest nesting depth of groups.
const DEPTH: usize = 24;

const HEX: &str = "[0-9A-Fa-f]";
const COUNT: &str = r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??";

/// The text between the quotes.
pub(super) fn pattern(exprs: &mut ExprSet, strings: &mut Strings) -> ExprId {
    let character =
        format!("[fnrtv]|c[A-Za-z]|x{HEX}{{2}}|u{HEX}{{4}}|u\\{{0*(?:10{HEX}{{4}}|{HEX}{{1,5}})\\}}|[ -/:-@\\[-`{{-~]");
    let class_letter = r"[dDsSwW]|[pP]\{[A-Za-z0-9_]+(?:=[A-Za-z0-9_]+)?\}";
    let name = r"<[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*>";
    let class = class(&format!("(?:[^\\\\\\]\\-]|\\\\(?:{character}|[0b\\-]))"), &format!("\\\\(?:{class_letter})"));
    let escape = format!(r"\\(?:{character}|[1-9][0-9]*|{class_letter}|k{name})");
    let atom = |plain: &str| format!(r"(?:{plain}|{escape}|{class})(?:{COUNT})?|[\^$|]|\\[bB]");
    let atoms = whole(exprs, strings, &atom(r"[^\^$\\*+?()\[{|]"));
    let atoms_but_digits = whole(exprs, strings, &atom(r"[^\^$\\*+?()\[{|0-9]"));
    let zero = whole(exprs, strings, r"\\0");
    let count = whole(exprs, strings, &format!("(?:{COUNT})?"));
    let open = whole(exprs, strings, &format!(r"\((?:\?(?::|{name}))?"));
    let look = whole(exprs, strings, r"\(\?<?[=!]");
    let close = whole(exprs, strings, r"\)");
    let mut inner = ExprId::NOTHING;
    for _ in 0..=DEPTH {
        let group = exprs.concat_all(&[open, inner, close, count]);
        let look = exprs.concat_all(&[look, inner, close]);
        let terms = exprs.or(&[atoms, group, look]);
        let others = exprs.or(&[atoms_but_digits, group, look]);
        // `\0` must not be followed by a digit, which would make it an octal number.
        let zeros = exprs.repeat(zero, 1, None);
        let followed = exprs.concat(zeros, others);
        let terms = exprs.or(&[terms, followed]);
        let terms = exprs.repeat(terms, 0, None);
        let last = exprs.optional(zeros);
        inner = exprs.concat(terms, last);
    }
    inner
}

/// A class in brackets. A hyphen is a letter at the beginning, at the end and after a range; elsewhere it forms a range
/// with the two letters around it.
fn class(letter: &str, set: &str) -> String {
    let any = format!("(?:{letter}|-|{set})");
    let plain = format!("(?:{letter}|{set})");
    let range = format!("(?:{letter}|-)-(?:{letter}|-)|{any}{plain}*{letter}-(?:{letter}|-)");
    format!("\\[\\^?(?:{range})*(?:{any}(?:{plain}*{any})?)?\\]")
}
