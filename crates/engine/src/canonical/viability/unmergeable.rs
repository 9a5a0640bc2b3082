//! Cursors in a piece that may still become a token that no merge makes.
//!
//! There are as many such cursors as such tokens have prefixes. For nearly all tokens, a cursor of this kind equals the
//! one without the prefix: the results of that one are reused, and only the tokens that continue the prefix are
//! examined.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use stencilm_regex::ByteSet;
use stencilm_support::{MANY, memory};

use crate::canonical::cursor::state::{Cursor, CursorKey};
use crate::canonical::cursor::table::{CursorId, Cursors, Reading};
use crate::canonical::encoder::facts::Role;
use crate::canonical::encoding::{Encoding, Known};
use crate::canonical::viability::dead_ends::DeadEnds;
use crate::canonical::viability::search::Search;
use crate::error::EngineError;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;
use crate::switches::Switch;
use crate::vocabulary::token_set;

/// Where some bytes lead from a cursor and from the one without the prefix, if they fit.
type Pair = (Option<Reading>, Option<Reading>);

impl Encoding {
    /// The cursor where the piece cannot become such a token, if only a few tokens distinguish it from this one.
    pub fn without_whole(&self, key: &CursorKey) -> Option<CursorKey> {
        let is_on = Switch::CanonicalUnmergeable.is_on();
        let without = key.without_whole().filter(|_| is_on && !self.by_characters())?.clone();
        let mut known = self.known();
        let cursors = &mut known.cursors;
        let (cursor, there) = (cursors.of(key), cursors.of(&without));
        // For a single space, for example, there may be too many tokens that depend on the prefix.
        (self.distinguishing(cursors, cursor, there).len() <= MANY).then_some(without)
    }

    /// The tokens for which a cursor and the one without the prefix lead to different cursors: a few more than those
    /// that continue the prefix.
    fn distinguishing(&self, cursors: &mut Cursors, cursor: CursorId, without: CursorId) -> Arc<[u32]> {
        if let Some(known) = cursors.distinguishing.get(&cursor) {
            return known.clone();
        }
        let found: Arc<[u32]> = self.find_distinguishing(cursors, cursor, without).into();
        cursors.distinguishing.insert(cursor, found.clone(), memory::of_shared::<u32>(found.len()));
        found
    }

    fn find_distinguishing(&self, cursors: &mut Cursors, cursor: CursorId, without: CursorId) -> Vec<u32> {
        let (vocabulary, trie) = (self.tokens(), self.tokens().trie());
        let bytes = self.whole_nexts(cursors.key(cursor));
        let is_distinguishing = |cursors: &mut Cursors, token: u32| {
            cursors.advance_both(self, cursor, token) != cursors.advance_both(self, without, token)
        };
        let mut distinguishing = FxHashSet::default();
        // A token that no merge makes begins in another way.
        for &token in &self.odd_tokens {
            let first = vocabulary.token_bytes(token).and_then(<[u8]>::first);
            if first.is_some_and(|&first| bytes.contains(first)) && is_distinguishing(cursors, token) {
                distinguishing.insert(token);
            }
        }
        let plain = Role { is_byte: false, is_whole: false };
        let begin = [true, false].map(|unmerged| {
            [cursor, without].map(|cursor| cursors.begin(self, cursor, plain, unmerged).map(Reading::at))
        });
        // Where the tokens of a node lead from both cursors, and the bytes that may make a difference after it.
        let mut path: Vec<([Pair; 2], ByteSet)> = vec![(begin.map(|[with, without]| (with, without)), bytes)];
        for (mut node, end) in trie.roots(bytes) {
            while node < end {
                path.truncate(trie.depth(node));
                let &(above, bytes) = path.last().expect("the path begins with the cursors");
                let byte = trie.byte(node);
                if !bytes.contains(byte) {
                    node += trie.size(node);
                    continue;
                }
                let here = above.map(|(with, without)| {
                    let mut read = |from: Option<Reading>| cursors.read_on(self, from?, byte);
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
                let bytes = differing.fold(ByteSet::EMPTY, |bytes, &pair| bytes.union(&self.differing(cursors, pair)));
                path.push((here, bytes));
                node += 1;
            }
        }
        let mut distinguishing: Vec<u32> = distinguishing.into_iter().collect();
        distinguishing.sort_unstable();
        distinguishing
    }

    /// The bytes for which two cursors may differ.
    fn differing(&self, cursors: &Cursors, (with, without): Pair) -> ByteSet {
        let cursor = |reading: Option<Reading>| reading.and_then(Reading::cursor);
        let (Some(with), Some(without)) = (cursor(with), cursor(without)) else { return ByteSet::ALL };
        let (with, without) = (cursors.key(with), cursors.key(without));
        match with.without_whole() {
            Some(key) if key == without => self.whole_nexts(with),
            _ => ByteSet::ALL,
        }
    }

    /// The next bytes of the tokens that no merge makes and that have this prefix.
    fn whole_nexts(&self, key: &Cursor) -> ByteSet {
        let (Some(trie), Some(node)) = (&self.whole_pieces, key.whole_node()) else { return ByteSet::EMPTY };
        trie.child_nodes(node).map(|child| trie.byte(child)).collect()
    }
}

impl Run<'_> {
    /// The dead ends at a cursor with such a prefix, from those of the cursor without it.
    pub(crate) fn dead_ends_in_whole(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        (key, before): (&CursorKey, Option<u32>),
        (without, known_there): (&CursorKey, &DeadEnds),
        fitting: &[u32],
    ) -> Result<DeadEnds, EngineError> {
        let mut known = encoding.known();
        let Known { cursors, cursor_masks, search, .. } = &mut *known;
        let (cursor, without) = (cursors.of(key), cursors.of(without));
        let distinguishing = encoding.distinguishing(cursors, cursor, without);
        let mut found = known_there.but_for(&distinguishing);
        let mut search = Search::new(self, encoding, cursors, cursor_masks, search);
        // This includes tokens that the grammar does not allow; finding that out is part of what is read here.
        for &token in distinguishing.iter() {
            let fits = token_set::get(fitting, token);
            let Some((unmerged, after)) = found.case(&mut search, (cursor, before), token, fits) else { continue };
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

        /// All other tokens lead to the same cursor from both, or end within a character that decides it.
        #[test]
        fn only_few_tokens_depend_on_a_beginning(
            picks in prop::collection::vec((0usize..16, any::<bool>()), 0..8),
        ) {
            let encoding = encoding();
            let tokens = [32u32, 97, 98, 10, 49, 0xC3, 0xA9, 63, 256, 257, 258, 259, 260, 261, 262, 263];
            let mut cursors = Cursors::default();
            let mut cursor = cursors.of(&Cursor::start().into());
            for (pick, unmerged) in picks {
                cursor = cursors.advance(&encoding, cursor, tokens[pick], unmerged).unwrap_or(cursor);
                let Some(without) = encoding.without_whole(&cursors.key(cursor).clone()) else { continue };
                let without = cursors.of(&without);
                let distinguishing = encoding.distinguishing(&mut cursors, cursor, without);
                for token in 0..encoding.tokens().vocab_size() as u32 {
                    for unmerged in [true, false] {
                        let ends = [cursor, without].map(|cursor| cursors.advance(&encoding, cursor, token, unmerged));
                        let is_same = ends[0] == ends[1] || match ends {
                            [Some(with), Some(without)] => {
                                let with = cursors.key(with);
                                with.within_character() && with.for_mask() == cursors.key(without)
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
