//! Bytes in 30 groups, so that a walk need not look below a node where all bytes lead back to where it is.
//!
//! A group holds letters of a kind, or what else tokens and patterns treat the same. Sets of groups are bits.

use stencilm_regex::ByteSet;

/// All groups.
const ALL: u32 = (1 << 30) - 1;

/// The group of all bytes beyond ASCII.
const BEYOND_ASCII: u32 = 6;

/// The groups of the bytes below each node of a trie, as bits. A node is given as the byte that leads to it and its depth, in
/// depth-first order.
pub(crate) fn groups_below(nodes: impl DoubleEndedIterator<Item = (u8, usize)> + ExactSizeIterator) -> Vec<u32> {
    let mut below = vec![0; nodes.len()];
    // By depth the groups of what was passed so far and has no parent yet.
    let mut passed: Vec<u32> = Vec::new();
    for (index, (byte, depth)) in nodes.enumerate().rev() {
        if passed.len() <= depth {
            passed.resize(depth + 1, 0);
        }
        below[index] = std::mem::take(&mut passed[depth]);
        passed[depth - 1] |= below[index] | 1 << group_of(byte);
    }
    below
}

/// The group of a byte, 0 to 29.
const fn group_of(byte: u8) -> u32 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        b' ' => 3,
        b'\t' | b'\n' | b'\r' => 4,
        0x00..=0x1F | 0x7F => 5,
        0x80.. => BEYOND_ASCII,
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
        b'!' | b'$' => 28,
        b'^' | b'`' | b'|' | b'~' => 29,
    }
}

/// The groups of which every byte is in a set, as bits, for [`Trie::walk_mask`](crate::vocabulary::trie::Trie::walk_mask).
pub fn groups_within(bytes: ByteSet) -> u32 {
    bytes.complement().iter().fold(ALL, |groups, byte| groups & !(1 << group_of(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_all_bytes_below() {
        // "a", "a1", "a1 ", "a\xC3", "b"
        let nodes = [(b'a', 1), (b'1', 2), (b' ', 3), (0xC3, 2), (b'b', 1)];
        let groups = |bytes: &[u8]| bytes.iter().fold(0, |groups, &byte| groups | 1 << group_of(byte));
        let expected = [groups(b"1 \xC3"), groups(b" "), 0, 0, 0];
        assert_eq!(groups_below(nodes.into_iter()), expected);
    }

    #[test]
    fn a_group_is_within_a_set_that_has_all_of_it() {
        assert_eq!(groups_within(ByteSet::ALL), ALL);
        assert_eq!(groups_within(ByteSet::EMPTY), 0);
        assert_eq!(groups_within(ByteSet::range(0, 0x7F)), ALL & !(1 << BEYOND_ASCII));
        assert_eq!(groups_within(ByteSet::range(0, 0xFE)), ALL & !(1 << BEYOND_ASCII));
        assert_eq!(groups_within(ByteSet::range(b'a', b'z')), 1 << group_of(b'q'));
        assert_eq!(groups_within(ByteSet::range(b'a', b'y')), 0);
    }
}
