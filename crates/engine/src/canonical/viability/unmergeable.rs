//! Cursors in a piece that may yet become one that merges never make.
//!
//! There are as many of them as such pieces have beginnings, and for nearly all tokens they are like the one where the piece
//! becomes none: what is known there is taken over, and only the tokens are asked for that go on with the beginning.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use stencilm_regex::ByteSet;
use stencilm_support::{MANY, memory};

use crate::canonical::cursor::state::{Cursor, CursorKey};
use crate::canonical::cursor::table::{CursorId, Cursors, Reading};
use crate::canonical::encoder::facts::Kind;
use crate::canonical::encoding::{Encoding, Known};
use crate::canonical::viability::dead_ends::DeadEnds;
use crate::canonical::viability::search::Search;
use crate::error::EngineError;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;
use crate::switches::Switch;
use crate::vocabulary::token_set;

/// Where some bytes lead from a place and from the one without the beginning, if they fit.
type Pair = (Option<Reading>, Option<Reading>);

impl Encoding {
    /// The cursor where the piece becomes none that merges never make, if only a few tokens distinguish it from this one.
    pub fn without_whole(&self, cursor: &CursorKey) -> Option<CursorKey> {
        let is_on = Switch::CanonicalUnmergeable.is_on();
        let without = cursor.without_whole().filter(|_| is_on && !self.by_characters())?.clone();
        let mut known = self.known();
        let places = &mut known.places;
        let (place, there) = (places.of(cursor), places.of(&without));
        // As for a single space there may be too many tokens that depend on a beginning.
        (self.distinguishing(places, place, there).len() <= MANY).then_some(without)
    }

    /// The tokens that lead from a place elsewhere than from the one without the beginning: a few more than those that go on with
    /// it.
    fn distinguishing(&self, places: &mut Cursors, place: CursorId, without: CursorId) -> Arc<[u32]> {
        if let Some(known) = places.distinguishing.get(&place) {
            return known.clone();
        }
        let found: Arc<[u32]> = self.find_distinguishing(places, place, without).into();
        places.distinguishing.insert(place, found.clone(), memory::of_shared::<u32>(found.len()));
        found
    }

    fn find_distinguishing(&self, places: &mut Cursors, place: CursorId, without: CursorId) -> Vec<u32> {
        let (vocabulary, trie) = (self.tokens(), self.tokens().trie());
        let bytes = self.whole_nexts(places.cursor(place));
        let is_distinguishing = |places: &mut Cursors, token: u32| {
            places.advance_both(self, place, token) != places.advance_both(self, without, token)
        };
        let mut distinguishing = FxHashSet::default();
        // What is only ever a whole piece begins otherwise.
        for &token in &self.odd_tokens {
            let first = vocabulary.token_bytes(token).and_then(<[u8]>::first);
            if first.is_some_and(|&first| bytes.contains(first)) && is_distinguishing(places, token) {
                distinguishing.insert(token);
            }
        }
        let plain = Kind { is_byte: false, is_whole: false };
        let begin = [true, false]
            .map(|unmerged| [place, without].map(|place| places.begin(self, place, plain, unmerged).map(Reading::at)));
        // Where the tokens of a node lead, from both cursors, and the bytes that may make a difference after it.
        let mut path: Vec<([Pair; 2], ByteSet)> = vec![(begin.map(|[with, without]| (with, without)), bytes)];
        for (mut node, end) in trie.roots(bytes) {
            while node < end {
                path.truncate(trie.depth(node));
                let &(above, bytes) = path.last().expect("the path begins with the places");
                let byte = trie.byte(node);
                if !bytes.contains(byte) {
                    node += trie.size(node);
                    continue;
                }
                let here = above.map(|(with, without)| {
                    let mut read = |from: Option<Reading>| places.read_on(self, from?, byte);
                    (read(with), read(without))
                });
                if here.iter().all(|(with, without)| with == without) {
                    node += trie.size(node);
                    continue;
                }
                if let Some(token) = trie.entry_at(node) {
                    distinguishing.extend(std::iter::once(token).chain(vocabulary.same_bytes(token).iter().copied()));
                }
                let differing = here.iter().filter(|(with, without)| with != without);
                let bytes = differing.fold(ByteSet::EMPTY, |bytes, &pair| bytes.union(&self.differing(places, pair)));
                path.push((here, bytes));
                node += 1;
            }
        }
        let mut distinguishing: Vec<u32> = distinguishing.into_iter().collect();
        distinguishing.sort_unstable();
        distinguishing
    }

    /// The bytes after which two places may differ.
    fn differing(&self, places: &Cursors, (with, without): Pair) -> ByteSet {
        let place = |reading: Option<Reading>| reading.and_then(Reading::place);
        let (Some(with), Some(without)) = (place(with), place(without)) else { return ByteSet::ALL };
        let (with, without) = (places.cursor(with), places.cursor(without));
        match with.without_whole() {
            Some(cursor) if cursor == without => self.whole_nexts(with),
            _ => ByteSet::ALL,
        }
    }

    /// The first bytes with which a beginning of a whole piece goes on.
    fn whole_nexts(&self, cursor: &Cursor) -> ByteSet {
        let (Some(trie), Some(node)) = (&self.whole_pieces, cursor.whole_node()) else { return ByteSet::EMPTY };
        trie.child_nodes(node).map(|child| trie.byte(child)).collect()
    }
}

impl Run<'_> {
    /// The dead ends at a cursor in a beginning of a whole piece, from those without the beginning.
    pub(crate) fn dead_ends_in_whole(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        (cursor, before): (&CursorKey, Option<u32>),
        (without, known_there): (&CursorKey, &DeadEnds),
        fitting: &[u32],
    ) -> Result<DeadEnds, EngineError> {
        let mut known = encoding.known();
        let Known { places, cursor_masks, search, .. } = &mut *known;
        let (place, without) = (places.of(cursor), places.of(without));
        let distinguishing = encoding.distinguishing(places, place, without);
        let mut found = known_there.but_for(&distinguishing);
        let mut search = Search::new(self, encoding, places, cursor_masks, search);
        // Also those that the grammar does not allow: that is a part of what is read here.
        for &token in distinguishing.iter() {
            let fits = token_set::get(fitting, token);
            let Some((unmerged, after)) = found.case(&mut search, (place, before), token, fits) else { continue };
            if search.follows_viably(configuration, token, after)? == Some(false) {
                found.add(token, unmerged);
            }
        }
        found.sort();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical::cursor::table::tests::encoding;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// All tokens but the distinguishing ones lead to the same from both places, or stand within a character that settles
        /// it.
        #[test]
        fn only_few_tokens_depend_on_a_beginning(
            picks in prop::collection::vec((0usize..16, any::<bool>()), 0..8),
        ) {
            let encoding = encoding();
            let tokens = [32u32, 97, 98, 10, 49, 0xC3, 0xA9, 63, 256, 257, 258, 259, 260, 261, 262, 263];
            let mut places = Cursors::default();
            let mut place = places.of(&Cursor::start().into());
            for (pick, unmerged) in picks {
                place = places.advance(&encoding, place, tokens[pick], unmerged).unwrap_or(place);
                let Some(without) = encoding.without_whole(&places.cursor(place).clone()) else { continue };
                let without = places.of(&without);
                let distinguishing = encoding.distinguishing(&mut places, place, without);
                for token in 0..encoding.tokens().vocab_size() as u32 {
                    for unmerged in [true, false] {
                        let ends = [place, without].map(|place| places.advance(&encoding, place, token, unmerged));
                        let is_same = ends[0] == ends[1] || match ends {
                            [Some(with), Some(without)] => {
                                let with = places.cursor(with);
                                with.within_character() && with.for_mask() == places.cursor(without)
                            }
                            _ => false,
                        };
                        prop_assert!(is_same || distinguishing.contains(&token), "{} {}", token, unmerged);
                    }
                }
            }
        }
    }
}
