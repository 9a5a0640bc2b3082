//! How characters are spelled: the alphabet seam, and plain UTF-8.
//!
//! A pattern is about characters, an expression about bytes. Everything that a pattern can match, including "any
//! character" in a search, is spelled through [`Alphabet`], so that the same translation serves plain text and text
//! within a JSON string.

use regex_syntax::utf8::{Utf8Range, Utf8Sequence, Utf8Sequences};
use rustc_hash::FxHashMap;

use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::ExprId;

/// How characters are spelled in the text that the expression reads.
pub trait Alphabet {
    /// One character out of sorted, disjoint ranges of Unicode scalar values (both ends included).
    ///
    /// No spelling may be empty, and spellings must be uniquely decodable in sequence; a range that crosses the
    /// surrogates does not contain them.
    fn class(&mut self, exprs: &mut ExprSet, ranges: &[(char, char)]) -> ExprId;

    /// Whether different characters have different spellings. If not, the texts that a look-around excludes cannot be
    /// expressed, and patterns with one are refused.
    fn distinguishes(&self) -> bool {
        true
    }
}

/// Characters spelled in UTF-8: never a surrogate, never an invalid byte.
#[derive(Clone, Copy, Default, Debug)]
pub struct Utf8;

impl Alphabet for Utf8 {
    fn class(&mut self, exprs: &mut ExprSet, ranges: &[(char, char)]) -> ExprId {
        let sequences: Vec<Utf8Sequence> =
            ranges.iter().flat_map(|&(first, last)| Utf8Sequences::new(first, last)).collect();
        let sequences: Vec<&[Utf8Range]> = sequences.iter().map(Utf8Sequence::as_slice).collect();
        trie(exprs, &sequences)
    }
}

/// A trie over sorted sequences, at most four deep.
///
/// Byte ranges at the same place of two sequences are equal or disjoint: `Utf8Sequences` splits a range until
/// everything after a wide byte range is any continuation byte, and the ranges of a class do not overlap. So equal
/// leads are neighbours, and joining the leads that have equal tails gives a deterministic expression.
fn trie(exprs: &mut ExprSet, sequences: &[&[Utf8Range]]) -> ExprId {
    let mut leads: FxHashMap<ExprId, ByteSet> = FxHashMap::default();
    let mut order: Vec<ExprId> = Vec::new();
    let mut rest = sequences;
    while let Some(&first) = rest.first() {
        let lead = first[0];
        let count = rest.iter().take_while(|sequence| sequence[0] == lead).count();
        let (group, after) = rest.split_at(count);
        let tail = if first.len() == 1 {
            ExprId::EMPTY
        } else {
            let tails: Vec<&[Utf8Range]> = group.iter().map(|sequence| &sequence[1..]).collect();
            trie(exprs, &tails)
        };
        let set = leads.entry(tail).or_insert_with(|| {
            order.push(tail);
            ByteSet::EMPTY
        });
        *set = set.union(&ByteSet::range(lead.start, lead.end));
        rest = after;
    }
    let parts: Vec<ExprId> = order
        .into_iter()
        .map(|tail| {
            let head = exprs.bytes(leads[&tail]);
            exprs.concat(head, tail)
        })
        .collect();
    exprs.or(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derivative::deriver::Deriver;
    use crate::limits::Limits;

    fn check(ranges: &[(char, char)], inside: &[char], outside: &[char]) {
        let mut deriver = Deriver::new(Limits::default());
        let class = Utf8.class(&mut deriver.exprs, ranges);
        for (chars, expected) in [(inside, true), (outside, false)] {
            for c in chars {
                let found = deriver.matches(class, c.to_string().as_bytes()).unwrap();
                assert_eq!(found, expected, "{c:?} in {ranges:?}");
            }
        }
        for bytes in [&b""[..], b"\xff", b"\x80", b"\xed\xa0\x80", b"\xc0\x80", b"\xe2\x82", b"\xf4\x90\x80\x80"] {
            assert!(!deriver.matches(class, bytes).unwrap(), "{bytes:?} is no character");
        }
    }

    #[test]
    fn spells_characters_and_nothing_else() {
        check(&[('\0', char::MAX)], &['\0', 'a', 'é', '€', '\u{d7ff}', '\u{e000}', '😀', char::MAX], &[]);
        check(&[('a', 'c'), ('e', 'e')], &['a', 'c', 'e'], &['d', 'f', 'é']);
        check(
            &[('\u{7f}', '\u{80}'), ('\u{7ff}', '\u{801}')],
            &['\u{7f}', '\u{80}', '\u{801}'],
            &['\u{81}', '\u{802}'],
        );
        check(&[], &[], &['a', '€']);
    }

    #[test]
    fn any_character_is_small() {
        let mut exprs = ExprSet::new();
        let before = exprs.len();
        Utf8.class(&mut exprs, &[('\0', char::MAX)]);
        assert!(exprs.len() - before < 30, "{}", exprs.len() - before);
    }
}
