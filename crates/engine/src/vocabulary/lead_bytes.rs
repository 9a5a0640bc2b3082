//! Characters in 32 groups, so that a walk need not look below a node where all groups lead back to where it is.
//!
//! A group is given by the first byte of a character: the kind of a letter, or of what else tokens and patterns treat the same.
//! Characters of several bytes count as whole ones. Sets of groups are bits.

use stencilm_regex::ByteSet;

/// The groups of the characters that begin after each node of a trie, as bits, and `ILL_FORMED` where something is none;
/// all bits within a character. A node is given as the byte that leads to it and its depth, in depth-first order.
pub(crate) fn groups_below(nodes: impl ExactSizeIterator<Item = (u8, usize)>) -> Vec<u32> {
    let mut below = vec![0u32; nodes.len()];
    let mut path: Vec<(usize, Option<Rest>, u32)> = Vec::new();
    let gather = |below: &mut Vec<u32>, path: &mut Vec<(usize, Option<Rest>, u32)>, depth: usize| {
        while path.len() > depth {
            let (child, rest, group) = path.pop().expect("the loop runs only while the path is longer than depth");
            if let Some(&(parent, ..)) = path.last() {
                below[parent] |= below[child] | group;
            }
            if rest.is_some() {
                below[child] = u32::MAX;
            }
        }
    };
    for (index, (byte, depth)) in nodes.enumerate() {
        gather(&mut below, &mut path, depth - 1);
        let (rest, group) = match path.last().and_then(|&(_, rest, _)| rest) {
            Some(rest) if rest.bytes().contains(&byte) => (rest.after(), 0),
            Some(_) => (Rest::after_first(byte), 1 << ILL_FORMED | 1 << group_of(byte)),
            None => (Rest::after_first(byte), 1 << group_of(byte)),
        };
        path.push((index, rest, group));
    }
    gather(&mut below, &mut path, 0);
    below
}

/// What must come within a character of several bytes: a byte of a range, then so many from 80 to BF.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rest {
    low: u8,
    high: u8,
    more: u8,
}

impl Rest {
    /// After the first byte of a character; `None` where it has no other, or is none (Unicode 16, table 3-7).
    pub fn after_first(byte: u8) -> Option<Rest> {
        let (low, high, more) = match byte {
            0xC2..=0xDF => (0x80, 0xBF, 0),
            0xE0 => (0xA0, 0xBF, 1),
            0xED => (0x80, 0x9F, 1),
            0xE1..=0xEF => (0x80, 0xBF, 1),
            0xF0 => (0x90, 0xBF, 2),
            0xF1..=0xF3 => (0x80, 0xBF, 2),
            0xF4 => (0x80, 0x8F, 2),
            _ => return None,
        };
        Some(Rest { low, high, more })
    }

    pub fn bytes(self) -> std::ops::RangeInclusive<u8> {
        self.low..=self.high
    }

    pub fn after(self) -> Option<Rest> {
        (self.more > 0).then(|| Rest { low: 0x80, high: 0xBF, more: self.more - 1 })
    }

    /// The bits of the first byte that belong to the character.
    pub fn mask_of_first(self) -> u8 {
        0x1F >> self.more
    }
}

/// The group of characters of several bytes of which some are whitespace to a regular expression, by their first byte.
const WITH_WHITESPACE: u32 = 6;
/// That of the others.
const WITHOUT_WHITESPACE: u32 = 28;
/// That of bytes which begin no character.
const ILL_FORMED: u32 = 30;

/// The groups of all bytes beyond ASCII.
const OF_MANY_BYTES: u32 = 1 << WITH_WHITESPACE | 1 << WITHOUT_WHITESPACE | 1 << ILL_FORMED;

/// The group of a character by its first byte: the kind of a letter, or of what else tokens and patterns treat the same;
/// 0 to 31.
pub(crate) const fn group_of(byte: u8) -> u32 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        b' ' => 3,
        b'\t' | b'\n' | b'\r' => 4,
        0x00..=0x1F | 0x7F => 5,
        0xC2 | 0xE1 | 0xE2 | 0xE3 | 0xEF => WITH_WHITESPACE,
        0xC3..=0xF4 => WITHOUT_WHITESPACE,
        0x80.. => ILL_FORMED,
        b'"' => 7,
        b'\\' => 8,
        b'/' => 9,
        b'_' => 10,
        b'-' => 11,
        b'.' => 12,
        b',' => 13,
        b':' => 14,
        b'@' => 15,
        b'#' => 16,
        b'+' => 17,
        b'%' => 18,
        b'&' => 19,
        b'=' => 20,
        b'?' => 21,
        b'\'' => 22,
        b'*' => 23,
        b';' => 24,
        b'(' | b')' | b'[' | b']' => 25,
        b'<' | b'>' => 26,
        b'{' | b'}' => 27,
        b'!' | b'$' => 29,
        b'^' | b'`' | b'|' | b'~' => 31,
    }
}

/// The groups of which every byte is in a set, as bits, for [`Trie::walk_mask`](crate::vocabulary::trie::Trie::walk_mask) where it matters what may come within a
/// character, too.
pub fn groups_within(bytes: ByteSet) -> u32 {
    let missing = (0..=u8::MAX).filter(|&byte| !bytes.contains(byte));
    missing.fold(u32::MAX, |groups, byte| groups & !if byte < 0x80 { 1 << group_of(byte) } else { OF_MANY_BYTES })
}

/// The groups of which every character leads from a state back to it, as bits, for [`Trie::walk_mask`](crate::vocabulary::trie::Trie::walk_mask). `next` gives the
/// state after a byte, or `None` where the automaton is dead, or something has matched.
pub fn loops<E>(state: u32, mut next: impl FnMut(u32, u8) -> Result<Option<u32>, E>) -> Result<u32, E> {
    let mut groups = u32::MAX;
    let mut of_one_byte = u32::MAX;
    let mut known: Vec<(u32, Rest)> = Vec::new();
    for first in 0..=u8::MAX {
        let group = 1 << group_of(first);
        if groups & group == 0 {
            continue;
        }
        let after = next(state, first)?;
        if after != Some(state) {
            of_one_byte &= !group;
        }
        let mut work: Vec<(u32, Option<Rest>)> = Vec::new();
        match after {
            Some(after) => work.push((after, Rest::after_first(first))),
            None => groups &= !group,
        }
        while let Some((from, rest)) = work.pop() {
            let Some(rest) = rest else {
                if from != state {
                    groups &= !group;
                    break;
                }
                continue;
            };
            if known.contains(&(from, rest)) {
                continue;
            }
            // Known to lead back, or the group is out and `known` with it.
            known.push((from, rest));
            for byte in rest.bytes() {
                match next(from, byte)? {
                    Some(after) if rest.after().is_some() || after != state => work.push((after, rest.after())),
                    Some(_) => {}
                    None => {
                        groups &= !group;
                        work.clear();
                        break;
                    }
                }
            }
        }
        if groups & group == 0 {
            known.clear();
        }
    }
    // Bytes that begin no character may be anywhere, also between those of one.
    if of_one_byte & OF_MANY_BYTES != OF_MANY_BYTES {
        groups &= !(1 << ILL_FORMED);
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn whitespace_beyond_ascii_keeps_no_other_character_from_being_skipped() {
        let but_c2 = |byte| if byte == 0xC2 { None } else { Some(byte) };
        let next = |state: u32, byte: u8| -> Result<Option<u32>, Infallible> {
            let rest = if state == 0 { Rest::after_first(byte) } else { None };
            Ok(match (state, byte) {
                (0, 0..0x80) => Some(0),
                (0, _) => rest.and(but_c2(byte)).map(u32::from),
                (0xC3..=0xDF | 0x100, 0x80..=0xBF) => Some(0),
                (0xE0..=0xEF, byte) => {
                    Rest::after_first(state as u8).filter(|rest| rest.bytes().contains(&byte)).map(|_| 0x100)
                }
                (0xF0..=0xF4, byte) => {
                    Rest::after_first(state as u8).filter(|rest| rest.bytes().contains(&byte)).map(|_| 0x101)
                }
                (0x101, 0x80..=0xBF) => Some(0x100),
                _ => None,
            })
        };
        let Ok(groups) = loops(0, next);
        let ascii = ByteSet::range(0, 0x7F);
        assert_eq!(groups_within(ascii), groups & !(1 << WITHOUT_WHITESPACE));
        assert_eq!(groups_within(ByteSet::EMPTY.complement()), u32::MAX);
        assert_eq!(groups, !(1 << WITH_WHITESPACE | 1 << ILL_FORMED));
    }
}
