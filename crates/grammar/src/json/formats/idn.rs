//! Internationalised host names (RFC 5890 to 5893): labels of letters, digits, marks and inner hyphens, with the rules
//! for characters that need a certain context (RFC 5892, appendix A) and for labels written from right to left (RFC
//! 5893).
//!
//! A label is a sequence of blocks: a character, or a character that needs a context together with that context. What
//! no block holds is said by where they stand: what may begin and end a label, that hyphens are not third and fourth,
//! and that a katakana dot needs kana. So a name needs no intersection but for its lengths, and what is left of it
//! after some text is found fast. How long a label is when it is encoded is decided only as far as its number of
//! characters decides it. Labels that are encoded already are decided by a program ([`super::a_labels`]).

use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, own_pattern};
use stencilm_regex::{ExprId, ExprSet};

use super::a_labels;
use super::letters::{ARABIC_DIGITS, DIGITS, GERESH, KATAKANA_DOT, Letters, joining, viramas};
use crate::json::format::Punycode;
use crate::json::strings::Strings;

/// The four kinds of dot.
const DOT: &str = r".\x{3002}\x{ff0e}\x{ff61}";

/// The text between the quotes.
pub(super) fn hostname(exprs: &mut ExprSet, strings: &mut Strings, punycode: Punycode) -> ExprId {
    let dot = pattern(exprs, strings, &format!("[{DOT}]"));
    // In a name without right-to-left letters, the rules for beginnings and ends of labels don't apply.
    let names = [false, true].map(|turning| {
        let label = label(exprs, strings, turning);
        let encoded = a_labels::expr(exprs, strings, turning, punycode);
        let label = exprs.or(&[label, encoded]);
        joined(exprs, label, dot)
    });
    let name = exprs.or(&names);
    // Encoded, each non-ASCII letter takes at least one character, and `xn--` takes four.
    let length = format!(r"(?:[\x01-\x7f--.]{{0,63}}|[^\x00{DOT}]{{0,59}})");
    let length = pattern(exprs, strings, &length);
    let short_labels = joined(exprs, length, dot);
    let short = pattern(exprs, strings, "[^\\x00]{0,253}");
    exprs.and(&[name, short_labels, short])
}

/// A label that is not encoded, for names with right-to-left letters, or for names without.
pub(super) fn label(exprs: &mut ExprSet, strings: &mut Strings, turning: bool) -> ExprId {
    let mut labels = left_to_right(exprs, strings, turning);
    if turning {
        labels.extend(right_to_left(exprs, strings, DIGITS));
        labels.extend(right_to_left(exprs, strings, ARABIC_DIGITS));
    }
    exprs.or(&labels)
}

/// Labels separated by dots.
pub(super) fn joined(exprs: &mut ExprSet, label: ExprId, dot: ExprId) -> ExprId {
    let another = exprs.concat(dot, label);
    let others = exprs.repeat(another, 0, None);
    exprs.concat(label, others)
}

/// Blocks of one character, of two, and of more.
#[derive(Clone, Copy)]
struct Blocks {
    single: ExprId,
    pairs: ExprId,
    longer: ExprId,
}

impl Blocks {
    fn parse(exprs: &mut ExprSet, strings: &mut Strings, single: &str, pairs: &[&str], longer: &[&str]) -> Blocks {
        let mut any = |patterns: &[&str]| {
            let patterns: Vec<ExprId> = patterns.iter().map(|block| pattern(exprs, strings, block)).collect();
            exprs.or(&patterns)
        };
        Blocks { single: any(&[single]), pairs: any(pairs), longer: any(longer) }
    }

    fn several(self, exprs: &mut ExprSet) -> ExprId {
        exprs.or(&[self.pairs, self.longer])
    }

    fn all(self, exprs: &mut ExprSet) -> ExprId {
        exprs.or(&[self.single, self.pairs, self.longer])
    }
}

/// The parts of a label.
struct Label {
    first: Blocks,
    inner: Blocks,
    last: Blocks,
    /// What may follow the last block.
    after: ExprId,
    hyphen: ExprId,
}

impl Label {
    /// The labels; if `asked`, only those with this character, which must be allowed first and last.
    fn labels(&self, exprs: &mut ExprSet, asked: Option<ExprId>) -> ExprId {
        let Label { first, inner, last, after, hyphen } = *self;
        let last_blocks = last.all(exprs);
        let end = exprs.concat(last_blocks, after);
        let block = inner.all(exprs);
        let block_or_hyphen = exprs.or(&[block, hyphen]);
        let any = exprs.repeat(block_or_hyphen, 0, None);
        let rest = exprs.concat(any, end);
        let maybe_hyphen = exprs.optional(hyphen);
        let single_or_hyphen = exprs.or(&[inner.single, hyphen]);
        // Does not begin with two hyphens.
        let then_rest = exprs.concat(block, rest);
        let next = exprs.or(&[end, then_rest]);
        let third = exprs.concat(maybe_hyphen, next);
        let (several, several_last) = (inner.several(exprs), last.several(exprs));
        let alternatives = |exprs: &mut ExprSet, alternatives: &[&[ExprId]]| {
            let alternatives: Vec<ExprId> =
                alternatives.iter().map(|alternative| exprs.concat_all(alternative)).collect();
            exprs.or(&alternatives)
        };
        let after_one =
            &[&[single_or_hyphen, third][..], &[last.single, after], &[several, rest], &[several_last, after]];
        let after_one = alternatives(exprs, after_one);
        let Some(asked) = asked else {
            let every = first.all(exprs);
            return alternatives(
                exprs,
                &[&[every, after], &[first.single, after_one], &[first.pairs, third], &[first.longer, rest]],
            );
        };
        let then = |exprs: &mut ExprSet, more| exprs.or(&[after, more]);
        let (then_one, then_third, then_rest) = (then(exprs, after_one), then(exprs, third), then(exprs, rest));
        let rest_asked = exprs.concat_all(&[any, asked, then_rest]);
        let third_asked = alternatives(exprs, &[&[asked, then_rest], &[block, rest_asked]]);
        let third_asked = exprs.concat(maybe_hyphen, third_asked);
        alternatives(
            exprs,
            &[
                &[asked, then_one],
                &[first.single, asked, then_third],
                &[first.single, single_or_hyphen, third_asked],
                &[first.single, several, rest_asked],
                &[first.pairs, third_asked],
                &[first.longer, rest_asked],
            ],
        )
    }
}

/// Joiners with their context: after a virama; the non-joiner also between two letters that would join.
fn joiners(letters: &str, marks: &str) -> [String; 2] {
    let virama = viramas(&format!("{letters}{marks}"));
    let [ahead, back] = joining(letters);
    [
        format!(r"{virama}[\x{{200c}}\x{{200d}}]"),
        // A letter may join on both sides, so what is between two non-joiners depends on both.
        format!(r"{ahead}{marks}*(?:\x{{200c}}{marks}*[{back}&&{ahead}]{marks}*)*\x{{200c}}{marks}*{back}"),
    ]
}

/// Left-to-right labels; `turning` means that other labels of the name are right-to-left.
fn left_to_right(exprs: &mut ExprSet, strings: &mut Strings, turning: bool) -> Vec<ExprId> {
    let letters = Letters::new();
    let Letters { left, marks, .. } = &letters;
    let [after_virama, separated] = &joiners(left, marks);
    // A middle dot stands between two l, and a numeral sign before Greek letters.
    let catalan = r"l(?:\x{b7}l)+";
    let greek = |letters: &str| [r"\x{375}", r"\x{375}{2,}"].map(|mark| format!(r"{mark}[\p{{Greek}}&&[{letters}]]"));
    let [number, numbers] = &greek(&format!("{left}{marks}"));
    let [last_number, last_numbers] = &greek(left);
    let first = letters.first();
    let (after, hyphen) = (if turning { format!("{marks}*") } else { String::new() }, pattern(exprs, strings, "-"));
    let after = pattern(exprs, strings, &after);
    let mut label = |dot: &str| {
        let mut blocks = |single: &str, pairs: &[&str], longer: &[&str]| {
            Blocks::parse(exprs, strings, &format!("[{single}]"), pairs, longer)
        };
        let pairs = &[&**number, after_virama];
        let inner = blocks(&format!("{left}{marks}{DIGITS}{dot}"), pairs, &[catalan, numbers, separated]);
        let (first, last) = if turning {
            let last = blocks(&format!("{left}{DIGITS}"), &[last_number], &[catalan, last_numbers, separated]);
            (blocks(&first, &[], &[catalan, separated]), last)
        } else {
            (blocks(&format!("{first}{DIGITS}{dot}"), &[number], &[catalan, numbers, separated]), inner)
        };
        Label { first, inner, last, after, hyphen }
    };
    // A label with a katakana dot must also contain kana or Han.
    let (label, dotted) = (label(""), label(KATAKANA_DOT));
    let kana = pattern(exprs, strings, &letters.kana());
    vec![label.labels(exprs, None), dotted.labels(exprs, Some(kana))]
}

/// Right-to-left labels, with digits of one kind.
fn right_to_left(exprs: &mut ExprSet, strings: &mut Strings, digits: &str) -> Vec<ExprId> {
    let Letters { right, marks, .. } = &Letters::new();
    let [after_virama, separated] = &joiners(right, marks);
    let quoted = |letters: &str| ["", "{2,}"].map(|count| format!(r"[\p{{Hebrew}}&&[{letters}]][{GERESH}]{count}"));
    let [first_pair, first_longer] = &quoted(right);
    let [pair, longer] = &quoted(&format!("{right}{marks}"));
    let mut blocks = |single: &str, pairs: &[&str], longer: &[&str]| {
        Blocks::parse(exprs, strings, &format!("[{single}]"), pairs, longer)
    };
    let label = Label {
        first: blocks(right, &[first_pair], &[first_longer, separated]),
        inner: blocks(&format!("{right}{marks}{digits}"), &[pair, after_virama], &[longer, separated]),
        last: blocks(&format!("{right}{digits}"), &[pair], &[longer, separated]),
        after: pattern(exprs, strings, &format!("{marks}*")),
        hyphen: pattern(exprs, strings, "-"),
    };
    vec![label.labels(exprs, None)]
}

/// A pattern that must match as a whole, in the dialect that has class differences.
fn pattern(exprs: &mut ExprSet, strings: &mut Strings, pattern: &str) -> ExprId {
    let options = PatternOptions { dialect: Dialect::Nested, anchoring: Anchoring::Whole };
    own_pattern(exprs, pattern, &options, &mut strings.alphabet())
}
