//! All texts of an expression that has few of them, such as a constant or an `enum`.

use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

/// An expression with a larger byte set has too many texts.
const MAX_BYTES_OF_SET: usize = 32;

/// The greatest number of parts visited for each text, in addition to its bytes.
const MAX_PARTS: usize = 64;

/// A list of byte strings, stored concatenated.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Texts {
    bytes: Vec<u8>,
    /// The end of each string.
    ends: Vec<usize>,
}

impl Texts {
    /// The texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }

    /// The number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The total number of bytes.
    pub fn total_len(&self) -> usize {
        self.bytes.len()
    }

    fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }
}

/// What is still to be read, as an index into the list of rests; 0 stands for nothing.
type Rest = usize;

impl ExprSet {
    /// The strings that an expression matches, in any order and perhaps with duplicates. `None` where there are more
    /// than `most` or they have more than `most_bytes` in total, or where the expression is more than sequences and
    /// alternatives.
    pub fn texts(&self, id: ExprId, most: usize, most_bytes: usize) -> Option<Texts> {
        let (mut texts, mut text) = (Texts::default(), Vec::new());
        // A rest is an expression followed by another rest.
        let mut rests: Vec<(ExprId, Rest)> = vec![(id, 0)];
        // The length of the text to keep, the byte after it, and what is to come.
        let mut work: Vec<(usize, Option<u8>, Rest)> = vec![(0, None, 1)];
        while let Some((len, byte, mut rest)) = work.pop() {
            text.truncate(len);
            text.extend(byte);
            loop {
                if rest == 0 {
                    texts.push(&text);
                    break;
                }
                let (expr, after) = rests[rest - 1];
                rest = after;
                let mut link = |expr, after| {
                    rests.push((expr, after));
                    rests.len()
                };
                match self.get(expr) {
                    Expr::Empty => {}
                    Expr::Bytes(set) => match set.single() {
                        Some(byte) => text.push(byte),
                        None if set.len() > MAX_BYTES_OF_SET => return None,
                        None => {
                            work.extend(set.iter().map(|byte| (text.len(), Some(byte), after)));
                            break;
                        }
                    },
                    Expr::Text(piece) => text.extend_from_slice(piece.as_bytes()),
                    &Expr::Concat { head, tail } => {
                        let after = link(tail, after);
                        rest = link(head, after);
                    }
                    Expr::Or(parts) => {
                        for &part in parts.iter().rev() {
                            work.push((text.len(), None, link(part, after)));
                        }
                        break;
                    }
                    _ => return None,
                }
                if text.len() > most_bytes || work.len() > most || rests.len() > most_bytes + most * MAX_PARTS {
                    return None;
                }
            }
            if texts.len() + work.len() > most || texts.total_len() > most_bytes {
                return None;
            }
        }
        Some(texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::byte_set::ByteSet;

    fn sorted(texts: &Texts) -> Vec<&[u8]> {
        let mut texts: Vec<&[u8]> = texts.iter().collect();
        texts.sort_unstable();
        texts.dedup();
        texts
    }

    #[test]
    fn few_texts_are_listed() {
        let mut set = ExprSet::new();
        let words = ["", "a", "ab", "abc", "b", "ca", "cb"];
        let all = set.literals(&words);
        let texts = set.texts(all, 7, 100).unwrap();
        assert_eq!(sorted(&texts), words.map(str::as_bytes));
        let (x, y) = (set.bytes(ByteSet::range(b'x', b'z')), set.literal(b"y"));
        let both = set.concat_all(&[all, x, y]);
        let texts = set.texts(both, 21, 1000).unwrap();
        let mut expected: Vec<String> =
            words.iter().flat_map(|word| ["x", "y", "z"].map(|middle| format!("{word}{middle}y"))).collect();
        expected.sort_unstable();
        assert_eq!(sorted(&texts), expected.iter().map(String::as_bytes).collect::<Vec<_>>());
        assert_eq!(set.texts(both, 20, 1000), None);
        assert_eq!(set.texts(both, 21, 50), None);
        assert_eq!(set.texts(ExprId::EMPTY, 1, 0).unwrap().iter().collect::<Vec<_>>(), [b""]);
    }

    #[test]
    fn what_has_many_texts_or_others_is_not_listed() {
        let mut set = ExprSet::new();
        let (a, b) = (set.literal(b"a"), set.literal(b"b"));
        let some = set.repeat(a, 0, Some(3));
        let (either, not) = (set.or(&[some, b]), set.not(a));
        for expr in [ExprId::NOTHING, ExprId::ANY_BYTE, ExprId::ANYTHING, some, either, not] {
            assert_eq!(set.texts(expr, 100, 1000), None);
        }
        // Two to the power of forty texts.
        let (one, other) = (set.literal(b"cd"), set.literal(b"ce"));
        let pair = set.or(&[one, other]);
        let mut many = ExprId::EMPTY;
        for _ in 0..40 {
            many = set.concat(pair, many);
        }
        assert_eq!(set.texts(many, 100, 10_000), None);
    }
}
