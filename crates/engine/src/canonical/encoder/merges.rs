//! The merges of a byte-pair encoding: the tokens of a piece of text, and which two tokens may be neighbours.
//!
//! A sequence of tokens is what the encoder makes of its text exactly if every two neighbours are. As long as no merge
//! crosses a boundary, both sides merge as if they were alone; and whether a merge crosses it is decided by the symbols
//! next to the boundary, which are the right spine of the one token and the left spine of the other (Vieira et al.
//! 2025, "Language Models over Canonical Byte-Pair Encodings"). The tokens with a symbol on their left spine are its
//! subtree in the tree of left parts ([`left_tree`](super::left_spine)). Those among them that a merge disturbs are a
//! range, so the set of all tokens that may not follow another one consists of a few ranges.

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;

use super::left_spine::LeftTree;
use super::pairs::{NONE, Pairs};
use super::texts::Texts;
use crate::switches::Switch;
use crate::vocabulary::token_set;

/// How merges make a token.
#[derive(Clone, Copy)]
struct Made {
    /// The rank of its last merge; 0 for a symbol of which text consists at first, [`NONE`] for a token that no merge
    /// makes. Symbols that are not tokens of the vocabulary have entries too, since they are on the spines of tokens.
    rank: u32,
    left: u32,
    right: u32,
    /// Whether its merges happen in the order of their ranks.
    ordered: bool,
}

/// A merge of a token with a right part, and the tokens that begin with that part.
#[derive(Clone, Copy)]
struct Right {
    /// The merge happens if the token on the left still exists after this rank.
    from: u32,
    /// The tokens that begin with the right part, as a range in the order of the tree. Those that the merge disturbs
    /// come first.
    start: u32,
    disturbed: u32,
    end: u32,
}

/// A token whose merges do not happen in the order of their ranks, and a symbol at its left end that merges with
/// something.
#[derive(Clone, Copy)]
struct Beginning {
    token: u32,
    /// The rank from which both the symbol and the merge exist, and the rank at which the symbol disappears.
    from: u32,
    gone: u32,
}

/// What is checked first about a token and the one after it.
#[derive(Clone, Copy, Default)]
struct End {
    /// One bit for each of a few classes of symbols: those with which a symbol at its right end merges.
    joins: u64,
    /// The number of the set of first bytes of what it merges with.
    merging: u32,
    /// Whether merges make the token from its text.
    is_made: bool,
}

/// The class of a symbol, as one bit of a word.
fn bit_of(symbol: u32) -> u64 {
    1 << (symbol.wrapping_mul(0x9E37_79B9) >> 26)
}

/// The merges of a vocabulary, arranged for questions about neighbours.
pub(crate) struct Merges {
    pub pairs: Pairs,
    made: Vec<Made>,
    /// For every token, the merges in which it is the left part, as a range of `rights`, the earliest first.
    starts: Vec<u32>,
    rights: Vec<Right>,
    /// The tokens whose merges happen in the order of their ranks.
    tree: LeftTree,
    /// The tokens whose merges do not happen in that order, by what merges with a symbol at their left ends.
    unordered: FxHashMap<u32, Vec<Beginning>>,
    /// By token.
    ends: Vec<End>,
    /// For each token, the classes of the symbols at its left end, as bits; 0 where no merge makes it. If it has no bit
    /// in common with what the token before merges with, the two stay unmerged, which is nearly always the case. This
    /// list is separate from the rest because tokens are asked for in any order, each in another cache line.
    begins: Vec<u64>,
    /// For each token, its first byte.
    firsts: Vec<u8>,
    /// The sets of first bytes that tokens merge with, over all parts of their right spines.
    merging: Vec<ByteSet>,
}

impl Merges {
    /// Computes how each token is made, and which tokens it disturbs.
    pub fn new(pairs: Pairs, texts: &Texts<'_>) -> Merges {
        let size = texts.vocab_size();
        let never = Made { rank: NONE, left: NONE, right: NONE, ordered: true };
        let mut made = vec![never; size];
        let mut symbols = Vec::new();
        for token in 0..size as u32 {
            let Some(bytes) = texts.of(token) else { continue };
            symbols.clear();
            // A token for a byte of a character without a token is a symbol itself, and is never merged from text.
            let is_byte = pairs.chars.is_some() && bytes.len() == 1 && pairs.bytes[usize::from(bytes[0])] == token;
            if is_byte {
                made[token as usize].rank = 0;
                continue;
            }
            if !pairs.spell(bytes, &mut symbols) {
                continue;
            }
            if *symbols == [token] {
                made[token as usize].rank = 0;
                continue;
            }
            let mut last = never;
            pairs.merge_all(&mut symbols, |rank, left, right| {
                let ordered = last.ordered && (last.rank == NONE || last.rank <= rank);
                last = Made { rank, left, right, ordered };
            });
            if *symbols == [token] && last.rank != NONE {
                made[token as usize] = last;
            }
        }
        let is_made = |token: u32| made[token as usize].rank != NONE && texts.is_spelled(token);
        let ends = (0..size as u32).map(|token| End { is_made: is_made(token), ..End::default() }).collect();
        let first_of = |token: u32| *texts.of(token).and_then(<[u8]>::first).unwrap_or(&0);
        let firsts = (0..size as u32).map(first_of).collect();
        let in_tree = |token: &u32| made[*token as usize].ordered && made[*token as usize].rank != NONE;
        let merged = (0..size as u32).filter(in_tree).map(|token| {
            let Made { rank, left, .. } = made[token as usize];
            (token, (rank != 0).then_some((left, rank)))
        });
        let tree = LeftTree::new(size, merged);
        let mut merges = Merges {
            unordered: FxHashMap::default(),
            pairs,
            made,
            starts: Vec::new(),
            rights: Vec::new(),
            tree,
            ends,
            begins: vec![0; size],
            firsts,
            merging: Vec::new(),
        };
        merges.lay_out_pairs(texts);
        merges.lay_out_unordered();
        merges
    }

    fn lay_out_pairs(&mut self, texts: &Texts<'_>) {
        let size = self.made.len();
        let in_range = |&(left, right, _): &(u32, u32, u32)| (left as usize) < size && (right as usize) < size;
        let all: Vec<(u32, u32, u32)> = self.pairs.iter().filter(in_range).collect();
        let mut merging = vec![ByteSet::EMPTY; size];
        for &(left, right, _) in &all {
            self.ends[left as usize].joins |= bit_of(right);
        }
        for token in 0..size as u32 {
            if self.makes(token) {
                let symbols = self.spine(token, |made| made.left);
                self.begins[token as usize] = symbols.fold(0, |bits, symbol| bits | bit_of(symbol));
            }
        }
        self.starts = vec![0; size + 1];
        for same_left in all.chunk_by(|a, b| a.0 == b.0) {
            let left = same_left[0].0;
            let first = self.rights.len();
            for &(_, right, rank) in same_left {
                if let Some(&first) = texts.of(right).and_then(<[u8]>::first) {
                    merging[left as usize].insert(first);
                }
                let there = self.made[right as usize];
                if there.rank == NONE || !there.ordered {
                    continue;
                }
                let least = rank.max(self.made[left as usize].rank);
                let (start, end) = self.tree.range(right);
                let disturbed = self.tree.till(right, |child| self.made[child as usize].rank >= least);
                self.rights.push(Right { from: rank.max(there.rank), start, disturbed, end });
            }
            self.rights[first..].sort_unstable_by_key(|right| right.from);
            self.starts[left as usize + 1] = (self.rights.len() - first) as u32;
        }
        for at in 0..size {
            self.starts[at + 1] += self.starts[at];
        }
        // A right part is shorter than the whole, so shorter tokens are completed first.
        let mut by_length: Vec<u32> =
            (0..size as u32).filter(|&token| self.made[token as usize].right != NONE).collect();
        by_length.sort_by_key(|&token| texts.of(token).map_or(0, <[u8]>::len));
        for token in by_length {
            let right = self.made[token as usize].right as usize;
            self.ends[token as usize].joins |= self.ends[right].joins;
            merging[token as usize] = merging[token as usize].union(&merging[right]);
        }
        let mut numbers: FxHashMap<ByteSet, u32> = FxHashMap::default();
        for (ends, bytes) in self.ends.iter_mut().zip(merging) {
            let bytes = if ends.is_made { bytes } else { ByteSet::ALL };
            let next = numbers.len() as u32;
            ends.merging = *numbers.entry(bytes).or_insert_with(|| {
                self.merging.push(bytes);
                next
            });
        }
    }

    fn lay_out_unordered(&mut self) {
        let mut beginning: FxHashMap<u32, Vec<Beginning>> = FxHashMap::default();
        for token in (0..self.made.len() as u32).filter(|&token| !self.made[token as usize].ordered) {
            for (symbol, from, gone) in self.left_symbols(token) {
                beginning.entry(symbol).or_default().push(Beginning { token, from, gone });
            }
        }
        for (left, right, rank) in self.pairs.iter() {
            if let Some(tokens) = beginning.get(&right) {
                let merged = tokens.iter().map(|begins| Beginning { from: begins.from.max(rank), ..*begins });
                self.unordered.entry(left).or_default().extend(merged);
            }
        }
    }

    /// The symbols at the left end of a token while it is merged, with the ranks at which each appears and disappears.
    /// That order is given by the greatest rank merged so far: merges elsewhere with greater ranks come later, those
    /// with lower ranks earlier.
    fn left_symbols(&self, token: u32) -> Vec<(u32, u32, u32)> {
        let mut symbols = Vec::new();
        self.symbols_of(token, &mut symbols);
        let (mut found, mut from, mut now) = (Vec::new(), 0, 0);
        let rank = |pair: &[u32]| self.pairs.merge(pair[0], pair[1]).map(|(rank, _)| rank);
        while let Some((rank, at)) =
            symbols.windows(2).enumerate().filter_map(|(at, pair)| Some((rank(pair)?, at))).min()
        {
            now = rank.max(now);
            if at == 0 {
                found.push((symbols[0], from, now));
                from = now;
            }
            let (_, whole) = self.pairs.merge(symbols[at], symbols[at + 1]).expect("a pair with a rank can be merged");
            symbols.splice(at..=at + 1, [whole]);
        }
        found.push((symbols[0], from, NONE));
        found
    }

    /// A token and the symbols at one of its ends while it is merged.
    fn spine(&self, token: u32, next: fn(&Made) -> u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(token), move |&part| {
            Some(&self.made[part as usize]).filter(|made| made.rank != 0).map(next)
        })
    }

    /// Whether merges make this token from its text.
    pub fn makes(&self, token: u32) -> bool {
        self.ends.get(token as usize).is_some_and(|ends| ends.is_made)
    }

    /// The first bytes of everything that may merge with the end of a token; all bytes where no merge makes the token.
    pub fn merging(&self, token: u32) -> &ByteSet {
        &self.merging[self.ends[token as usize].merging as usize]
    }

    /// The same, by number.
    pub fn merging_of(&self, number: u32) -> &ByteSet {
        &self.merging[number as usize]
    }

    /// A number that tokens share if they merge with the same first bytes.
    pub fn merging_number(&self, token: u32) -> u32 {
        self.ends[token as usize].merging
    }

    /// Whether two tokens stay unmerged in one piece of text, so that the encoder makes exactly these two from it.
    pub fn stay_unmerged(&self, left: u32, right: u32) -> bool {
        let Some(&begins) = self.begins.get(right as usize).filter(|&&begins| begins != 0) else { return false };
        if !self.makes(left) {
            return false;
        }
        if Switch::CanonicalEndBits.is_on()
            && (self.ends[left as usize].joins & begins == 0
                || !self.merging(left).contains(self.firsts[right as usize]))
        {
            return true;
        }
        if !self.made[left as usize].ordered || !self.made[right as usize].ordered {
            return !self.may_merge(left, right) || self.stay_unmerged_slowly(left, right);
        }
        let (mut part, mut gone) = (left, NONE);
        loop {
            // Nearly always the rest of the spine merges with nothing at that left end.
            let shared = self.ends[part as usize].joins & begins;
            if shared == 0 {
                return true;
            }
            let here = self.made[part as usize];
            let (mut other, mut other_gone) = (right, NONE);
            loop {
                let there = self.made[other as usize];
                if shared & bit_of(other) != 0
                    && there.rank < gone
                    && here.rank <= other_gone
                    && let Some((rank, _)) = self.pairs.merge(part, other)
                    && rank < gone
                    && rank <= other_gone
                {
                    return false;
                }
                if there.rank == 0 {
                    break;
                }
                (other, other_gone) = (there.left, there.rank);
            }
            if here.rank == 0 {
                return true;
            }
            (part, gone) = (here.right, here.rank);
        }
    }

    /// Whether some symbol at the right end of one token merges with one at the left end of another.
    fn may_merge(&self, left: u32, right: u32) -> bool {
        self.spine(left, |made| made.right)
            .any(|part| self.spine(right, |made| made.left).any(|other| self.pairs.merge(part, other).is_some()))
    }

    /// The slow reference: encodes the text of both.
    pub fn stay_unmerged_slowly(&self, left: u32, right: u32) -> bool {
        let mut symbols = Vec::new();
        self.symbols_of(left, &mut symbols);
        self.symbols_of(right, &mut symbols);
        self.pairs.merge_all(&mut symbols, |_, _, _| {});
        symbols == [left, right]
    }

    /// The symbols from which a token is merged.
    fn symbols_of(&self, token: u32, symbols: &mut Vec<u32>) {
        let mut work = vec![token];
        while let Some(token) = work.pop() {
            let made = self.made[token as usize];
            if made.rank == 0 || made.rank == NONE {
                symbols.push(token);
            } else {
                work.extend([made.right, made.left]);
            }
        }
    }

    /// Removes the tokens from a set that may not follow a token in one piece of text; the tokens of `but`, which are
    /// all in the set, are kept.
    pub fn clear_merging(&self, left: u32, set: &mut [u32], but: &[u32]) {
        if !self.makes(left) {
            return set.copy_from_slice(but);
        }
        let ordered = self.made[left as usize].ordered;
        let (mut part, mut gone) = (left, NONE);
        loop {
            let here = self.made[part as usize];
            let rights = self.starts[part as usize] as usize..self.starts[part as usize + 1] as usize;
            for right in &self.rights[rights] {
                if !ordered {
                    for &token in self.tree.tokens(right.start, right.end) {
                        if token_set::get(set, token) && !self.stay_unmerged_slowly(left, token) {
                            token_set::clear(set, token);
                        }
                    }
                } else if right.from < gone {
                    for &token in self.tree.tokens(right.start, right.disturbed) {
                        token_set::clear(set, token);
                    }
                } else {
                    break;
                }
            }
            if here.rank == 0 {
                break;
            }
            (part, gone) = (here.right, here.rank);
        }
        let mut gone = NONE;
        for part in self.spine(left, |made| made.right) {
            let here = self.made[part as usize].rank;
            for begins in self.unordered.get(&part).into_iter().flatten() {
                let (when, till) = (begins.from.max(here), begins.gone.min(gone));
                // If both have the same rank, the order of the two merges must be found by encoding.
                let is_open = !ordered || when == till;
                if token_set::get(set, begins.token)
                    && (is_open || when < till)
                    && (!is_open || !self.stay_unmerged_slowly(left, begins.token))
                {
                    token_set::clear(set, begins.token);
                }
            }
            gone = here;
        }
        set.iter_mut().zip(but).for_each(|(word, but)| *word |= but);
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.pairs.memory_bytes()
            + self.rights.len() * size_of::<Right>()
            + self.made.len() * (size_of::<Made>() + size_of::<End>() + 33)
            + self.merging.len() * size_of::<ByteSet>()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical::encoder::source::EncodingSource;
    use crate::vocabulary::tokens::Tokens;

    /// The two parts of a merge and its result.
    pub type Merge = (u32, u32, u32);

    /// Tokens for the letters a to c and for merges of earlier tokens, not always of the latest ones.
    pub fn merges_of(picks: &[(u32, u32)]) -> (Vec<Vec<u8>>, Vec<Merge>) {
        let mut texts: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        let mut merges = Vec::new();
        let letter = |at: u32, len: u32| if at < 3 { u32::from(b'a') + at } else { 253 + at % (len - 253) };
        for &(left, right) in picks {
            let len = texts.len() as u32;
            let (left, right) = (letter(left % (len - 253), len), letter(right % (len - 253), len));
            let (left, right) = (left.min(len - 1), right.min(len - 1));
            let text = [&texts[left as usize][..], &texts[right as usize]].concat();
            if text.len() > 9 || merges.iter().any(|&(a, b, _)| (a, b) == (left, right)) {
                continue;
            }
            let known = texts.iter().position(|known| *known == text);
            let whole = known.unwrap_or_else(|| {
                texts.push(text);
                texts.len() - 1
            });
            merges.push((left, right, whole as u32));
        }
        (texts, merges)
    }

    /// Merges of bytes, or why they are refused.
    fn laid_out(tokens: &Tokens, merges: Vec<Merge>) -> Result<Merges, String> {
        let bytes: Vec<u32> = (0..256).collect();
        let pairs = Pairs::new(bytes.clone(), None, None, &merges);
        let (chars, changed, pattern) = (None, None, None);
        let source = EncodingSource { bytes, chars, changed, merges, whole_pieces: false, pattern };
        Ok(Merges::new(pairs, &Texts::new(&source, tokens)?))
    }

    #[test]
    fn merges_that_do_not_spell_their_tokens_are_refused() {
        let letters = (0..=u8::MAX).map(|byte| Some(vec![byte]));
        let spelled: Vec<Option<Vec<u8>>> = letters.chain([Some(b"abab".to_vec()), None, None]).collect();
        let tokens = Tokens::new(&spelled, spelled.len(), &[], &[]).expect("ids fit");
        let [a, b] = [b'a', b'b'].map(u32::from);
        // A token that is its own part would never end; a result without text is allowed if nothing makes it.
        let refused =
            [vec![(a, b, a)], vec![(b, a, 256)], vec![(a, a, 257), (257, b, 257)], vec![(a, a, 257), (b, b, 257)]];
        for merges in refused {
            assert!(laid_out(&tokens, merges.clone()).is_err(), "{merges:?}");
        }
        let harmless = [vec![(257, a, 257)], vec![(257, 258, 257), (258, 257, 258)], vec![(258, b, 257), (a, b, 258)]];
        for merges in harmless {
            let merges = laid_out(&tokens, merges).expect("nothing is made otherwise than it is spelled");
            assert!(merges.makes(a) && !merges.makes(257) && !merges.makes(258));
        }
    }

    #[test]
    fn merges_make_long_tokens() {
        // Each token is the previous one twice.
        let lengths: Vec<usize> = (1..=7).map(|power| 1 << power).collect();
        let mut texts: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        texts.extend(lengths.iter().map(|&length| vec![b'a'; length]));
        let part = |whole: u32| if whole == 256 { u32::from(b'a') } else { whole - 1 };
        let merges: Vec<Merge> = (256..263).map(|whole| (part(whole), part(whole), whole)).collect();
        let spelled: Vec<Option<&[u8]>> = texts.iter().map(|text| Some(&text[..])).collect();
        let tokens = Tokens::new(&spelled, texts.len(), &[], &[]).expect("ids fit");
        let merges = laid_out(&tokens, merges).expect("each is its parts");
        assert!((256..263).all(|token| merges.makes(token)));
        assert!(merges.stay_unmerged(262, 261) && !merges.stay_unmerged(261, 261));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn neighbours_are_those_of_the_encoder(
            picks in prop::collection::vec((0u32..40, 0u32..40), 1..30),
            turn in any::<prop::sample::Index>(),
            unspelled in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let (texts, mut merges) = merges_of(&picks);
            // Ranks in another order than that in which the tokens were made.
            let len = merges.len();
            merges.rotate_left(turn.index(len));
            let mut spelled: Vec<Option<&[u8]>> = texts.iter().map(|text| Some(&text[..])).collect();
            for token in unspelled {
                // A letter or a merged token may lack text, as a newline that ends texts does.
                let at = token.index(texts.len() - 253);
                spelled[if at < 3 { usize::from(b'a') + at } else { 253 + at }] = None;
            }
            let tokens = Tokens::new(&spelled, texts.len(), &[], &[]).expect("ids fit");
            let merges = laid_out(&tokens, merges).expect("each is its parts");
            let all: Vec<u32> = (0..texts.len() as u32).filter(|&token| token > 255 || (97..100).contains(&token)).collect();
            for &left in &all {
                let mut set = vec![u32::MAX; tokens.mask_words()];
                merges.clear_merging(left, &mut set, &vec![0; tokens.mask_words()]);
                for &right in &all {
                    let fits = merges.makes(left) && merges.makes(right);
                    let expected = fits && merges.stay_unmerged_slowly(left, right);
                    prop_assert_eq!(merges.stay_unmerged(left, right), expected);
                    if fits {
                        prop_assert_eq!(token_set::get(&set, right), expected, "{} {}", left, right);
                    }
                    if fits && !expected {
                        let first = texts[right as usize][0];
                        prop_assert!(merges.merging(left).contains(first));
                    }
                }
            }
        }
    }
}
