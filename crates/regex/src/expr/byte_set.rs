//! A set of bytes as four machine words: the alphabet symbol of every expression.

use std::fmt;

/// A set of byte values, 0 to 255.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// No byte.
    pub const EMPTY: ByteSet = ByteSet([0; 4]);
    /// Every byte.
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);

    /// The characters of ASCII.
    pub const ASCII: ByteSet = ByteSet([u64::MAX, u64::MAX, 0, 0]);

    /// The set of one byte.
    pub fn of(byte: u8) -> ByteSet {
        let mut set = ByteSet::EMPTY;
        set.insert(byte);
        set
    }

    /// The bytes from `first` to `last`, both included.
    pub fn range(first: u8, last: u8) -> ByteSet {
        let mut set = ByteSet::EMPTY;
        for byte in first..=last {
            set.insert(byte);
        }
        set
    }

    /// Adds one byte.
    pub const fn insert(&mut self, byte: u8) {
        self.0[(byte >> 6) as usize] |= 1 << (byte & 63);
    }

    /// Whether the byte is in the set.
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0
    }

    /// How many bytes of the set are smaller than this one.
    #[inline]
    pub fn rank(&self, byte: u8) -> usize {
        let (word, bit) = (usize::from(byte >> 6), byte & 63);
        let below = self.0[..word].iter().map(|word| word.count_ones()).sum::<u32>();
        (below + (self.0[word] & ((1 << bit) - 1)).count_ones()) as usize
    }

    /// How many bytes are in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no byte is in the set.
    pub fn is_empty(&self) -> bool {
        *self == ByteSet::EMPTY
    }

    /// The byte of a set of one.
    pub fn single(&self) -> Option<u8> {
        let [first, second, third, fourth] = self.0;
        if !(first | second | third | fourth).is_power_of_two() {
            return None;
        }
        let mut bytes = self.iter();
        bytes.next().filter(|_| bytes.next().is_none())
    }

    /// The smallest byte of the set.
    pub fn first(&self) -> Option<u8> {
        self.iter().next()
    }

    /// Bytes in either set.
    pub fn union(&self, other: &ByteSet) -> ByteSet {
        self.zip(other, |a, b| a | b)
    }

    /// Bytes in both sets.
    pub fn intersect(&self, other: &ByteSet) -> ByteSet {
        self.zip(other, |a, b| a & b)
    }

    /// Bytes not in the set.
    pub fn complement(&self) -> ByteSet {
        self.zip(self, |a, _| !a)
    }

    /// The bytes in ascending order.
    #[inline]
    pub fn iter(&self) -> Bytes {
        Bytes { words: self.0, word: 0 }
    }

    /// The bytes as ranges, both ends included, that do not touch, in ascending order.
    pub fn ranges(&self) -> Vec<(u8, u8)> {
        let mut ranges: Vec<(u8, u8)> = Vec::new();
        for byte in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == byte => *last = byte,
                _ => ranges.push((byte, byte)),
            }
        }
        ranges
    }

    fn zip(&self, other: &ByteSet, combine: impl Fn(u64, u64) -> u64) -> ByteSet {
        ByteSet(std::array::from_fn(|i| combine(self.0[i], other.0[i])))
    }
}

/// The bytes of a set in ascending order.
#[derive(Clone)]
pub struct Bytes {
    words: [u64; 4],
    word: usize,
}

impl Iterator for Bytes {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        while let Some(rest) = self.words.get_mut(self.word) {
            if *rest != 0 {
                let bit = rest.trailing_zeros();
                *rest &= *rest - 1;
                return Some((self.word as u32 * 64 + bit) as u8);
            }
            self.word += 1;
        }
        None
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> ByteSet {
        let mut set = ByteSet::EMPTY;
        bytes.into_iter().for_each(|byte| set.insert(byte));
        set
    }
}

impl fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        let mut bytes = self.iter().peekable();
        while let Some(first) = bytes.next() {
            let mut last = first;
            while last < 255 && bytes.peek() == Some(&(last + 1)) {
                last += 1;
                bytes.next();
            }
            write!(f, "{}", first.escape_ascii())?;
            if last > first {
                write!(f, "-{}", last.escape_ascii())?;
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterates_in_order_and_counts() {
        let set: ByteSet = [255, 0, 64, 63, b'a'].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, b'a', 255]);
        assert_eq!(set.ranges(), [(0, 0), (63, 64), (b'a', b'a'), (255, 255)]);
        assert_eq!((set.len(), set.complement().len()), (5, 251));
        assert_eq!([0, 1, 63, 64, 65, b'a', b'b', 255].map(|byte| set.rank(byte)), [0, 1, 1, 2, 3, 3, 4, 4]);
        assert_eq!(set.union(&set.complement()), ByteSet::ALL);
        assert!(set.intersect(&set.complement()).is_empty());
        assert_eq!((ByteSet::of(70).single(), set.single(), ByteSet::EMPTY.single()), (Some(70), None, None));
    }

    #[test]
    fn prints_ranges() {
        let set = ByteSet::range(b'a', b'c').union(&ByteSet::of(b'\n'));
        assert_eq!(format!("{set:?}"), r"[\na-c]");
    }
}
