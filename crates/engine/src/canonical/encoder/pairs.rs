//! The pairs that a byte-pair encoder merges, and how it makes tokens of a piece of text with them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::switches::Switch;

/// No symbol.
pub(crate) const NONE: u32 = u32::MAX;

/// The symbols that the encoder starts from, and the pairs that it merges. Ranks begin with 1; 0 stands for "there from
/// the start".
pub(crate) struct Pairs {
    /// The symbol of each byte: of every byte where text is encoded from bytes, else of the bytes of characters without
    /// a token.
    pub bytes: Vec<u32>,
    /// The symbols of characters, where text is encoded from characters.
    pub chars: Option<FxHashMap<char, u32>>,
    /// A character that the encoder reads as another one.
    pub changed: Option<char>,
    /// The merges by left part, and those of one left part by right part.
    merges: Vec<Merge>,
    /// Where the merges of each left part begin, with one more entry for the end.
    starts: Vec<u32>,
    /// A hash filter with bits for the merges: nearly all pairs that are asked for do not merge, and the filter stays
    /// in the processor's cache.
    bits: Box<[u64]>,
}

/// The least number of bits for each merge.
const BITS_EACH: usize = 4;

/// The position of a pair's bit in `words` words, a power of two.
fn bit_of(left: u32, right: u32, words: usize) -> (usize, u64) {
    let mixed = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 32) as usize & (words - 1), 1 << (mixed >> 58))
}

/// For each number, where its entries begin in a list that is sorted by these numbers; with one more entry for the end.
pub(crate) fn starts_of(numbers: usize, sorted: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut starts = vec![0; numbers + 1];
    sorted.for_each(|number| starts[number as usize + 1] += 1);
    for at in 0..numbers {
        starts[at + 1] += starts[at];
    }
    starts
}

/// A merge with some left part.
struct Merge {
    right: u32,
    rank: u32,
    whole: u32,
}

impl Pairs {
    /// Takes merges in the order of their ranks: left part, right part, and result.
    pub fn new(
        bytes: Vec<u32>,
        chars: Option<FxHashMap<char, u32>>,
        changed: Option<char>,
        merges: &[(u32, u32, u32)],
    ) -> Pairs {
        let mut sorted: Vec<(u32, Merge)> = Vec::with_capacity(merges.len());
        let ranked = merges.iter().zip(1..);
        sorted.extend(ranked.map(|(&(left, right, whole), rank)| (left, Merge { right, rank, whole })));
        // If the same parts occur more than once, the last merge counts.
        sorted.sort_unstable_by_key(|(left, merge)| (*left, merge.right, Reverse(merge.rank)));
        sorted.dedup_by_key(|(left, merge)| (*left, merge.right));
        let lefts = sorted.last().map_or(0, |&(left, _)| left as usize + 1);
        let starts = starts_of(lefts, sorted.iter().map(|&(left, _)| left));
        let words = (sorted.len() * BITS_EACH).div_ceil(64).next_power_of_two();
        let mut bits = vec![0; words].into_boxed_slice();
        for (left, merge) in &sorted {
            let (word, bit) = bit_of(*left, merge.right, words);
            bits[word] |= bit;
        }
        let merges = sorted.into_iter().map(|(_, merge)| merge).collect();
        Pairs { bytes, chars, changed, merges, starts, bits }
    }

    /// The merges in the order of their ranks.
    pub fn in_order(&self) -> Vec<(u32, u32, u32)> {
        let of_left =
            |left: u32| self.of_left(left).iter().map(move |merge| (merge.rank, left, merge.right, merge.whole));
        let mut merges: Vec<(u32, u32, u32, u32)> = self.lefts().flat_map(of_left).collect();
        merges.sort_unstable();
        merges.into_iter().map(|(_, left, right, whole)| (left, right, whole)).collect()
    }

    /// The left part, right part and rank of each merge, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        self.lefts().flat_map(|left| self.of_left(left).iter().map(move |merge| (left, merge.right, merge.rank)))
    }

    /// The rank and the result of merging two parts. The merges of one left part are adjacent, since it is asked about
    /// with many right parts.
    #[inline]
    pub fn merge(&self, left: u32, right: u32) -> Option<(u32, u32)> {
        let (word, bit) = bit_of(left, right, self.bits.len());
        if self.bits[word] & bit == 0 && Switch::CanonicalMergeBits.is_on() {
            return None;
        }
        let merges = self.of_left(left);
        let at = merges.binary_search_by_key(&right, |merge| merge.right).ok()?;
        Some((merges[at].rank, merges[at].whole))
    }

    fn lefts(&self) -> std::ops::Range<u32> {
        0..self.starts.len() as u32 - 1
    }

    #[inline]
    fn of_left(&self, left: u32) -> &[Merge] {
        match self.starts.get(left as usize..left as usize + 2) {
            Some(&[start, end]) => &self.merges[start as usize..end as usize],
            _ => &[],
        }
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.merges.len() * size_of::<Merge>() + self.starts.len() * 4 + size_of_val(&self.bits[..])
    }

    /// Appends the symbols of a text; `false` where it has none.
    pub fn spell(&self, text: &[u8], symbols: &mut Vec<u32>) -> bool {
        let Some(chars) = &self.chars else {
            symbols.extend(text.iter().map(|&byte| self.bytes[usize::from(byte)]));
            return !symbols.contains(&NONE);
        };
        let Ok(text) = std::str::from_utf8(text) else { return false };
        for character in text.chars() {
            if Some(character) == self.changed {
                return false;
            }
            match chars.get(&character) {
                Some(&symbol) => symbols.push(symbol),
                None => {
                    let mut buffer = [0; 4];
                    let spelled = character.encode_utf8(&mut buffer).bytes();
                    symbols.extend(spelled.map(|byte| self.bytes[usize::from(byte)]));
                }
            }
        }
        !symbols.contains(&NONE)
    }

    /// Merges symbols until none can be merged: the lowest rank first, and of equal ranks the leftmost. Reports the
    /// rank and the parts of each merge. The time is a little more than linear in the length.
    pub fn merge_all(&self, symbols: &mut Vec<u32>, mut report: impl FnMut(u32, u32, u32)) {
        let len = symbols.len();
        let mut next: Vec<usize> = (1..=len).collect();
        let mut previous: Vec<usize> = (0..len).map(|at| at.wrapping_sub(1)).collect();
        let mut heap = BinaryHeap::new();
        let offer = |symbols: &[u32], next: &[usize], at: usize, heap: &mut BinaryHeap<_>| {
            if at < len
                && next[at] < len
                && let Some((rank, whole)) = self.merge(symbols[at], symbols[next[at]])
            {
                heap.push(Reverse((rank, at, symbols[at], symbols[next[at]], whole)));
            }
        };
        (0..len).for_each(|at| offer(symbols, &next, at, &mut heap));
        while let Some(Reverse((rank, at, left, right, whole))) = heap.pop() {
            // A pair is skipped if one of its parts was merged otherwise meanwhile.
            if symbols[at] != left || next[at] >= len || symbols[next[at]] != right {
                continue;
            }
            report(rank, left, right);
            let gone = next[at];
            symbols[at] = whole;
            symbols[gone] = NONE;
            next[at] = next[gone];
            if next[at] < len {
                previous[next[at]] = at;
            }
            offer(symbols, &next, previous[at], &mut heap);
            offer(symbols, &next, at, &mut heap);
        }
        symbols.retain(|&symbol| symbol != NONE);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical::encoder::merges::tests::merges_of;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn pieces_are_merged_by_one_merge_after_the_other(
            picks in prop::collection::vec((0u32..40, 0u32..40), 1..30),
            text in prop::collection::vec(97u32..100, 1..120),
        ) {
            let (_, merges) = merges_of(&picks);
            let pairs = Pairs::new((0..256).collect(), None, None, &merges);
            let (mut merged, mut report) = (text.clone(), Vec::new());
            pairs.merge_all(&mut merged, |rank, left, right| report.push((rank, left, right)));
            // By definition.
            let (mut one, mut expected) = (text, Vec::new());
            loop {
                let ranked = (1..one.len()).filter_map(|at| Some((pairs.merge(one[at - 1], one[at])?, at)));
                let Some(((rank, whole), at)) = ranked.min_by_key(|&((rank, _), at)| (rank, at)) else { break };
                expected.push((rank, one[at - 1], one[at]));
                one.splice(at - 1..=at, [whole]);
            }
            prop_assert_eq!(merged, one);
            prop_assert_eq!(report, expected);
        }
    }
}
