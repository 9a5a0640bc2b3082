//! The tokens that a search follows: those that the grammar reads, or those that the tokenizer writes after another one,
//! whichever are few.

use std::sync::Arc;

use stencilm_regex::ByteSet;
use stencilm_support::{FEW, memory};

use super::search::{Search, is_other};
use crate::canonical::cursor::by_place::{CursorId, Followers};
use crate::canonical::cursor::next_bytes::Listed;
use crate::error::EngineError;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;
use crate::vocabulary::token_set;

impl Search<'_> {
    /// The tokens that the grammar reads, where they are few.
    pub fn few_that_are_read(
        &mut self,
        run: &mut Run<'_>,
        configuration: SetId,
    ) -> Result<Option<Listed>, EngineError> {
        if let Some(known) = &self.found.ahead.of(configuration).read {
            return Ok(known.clone());
        }
        let vocabulary = self.encoding.tokens();
        let trie = vocabulary.trie();
        let bytes = self.next_bytes(run, configuration)?.0;
        if bytes.len() >= FEW {
            return Ok(None);
        }
        let mut path = vec![(configuration, bytes, false)];
        let (mut found, mut looked, mut some_beyond) = (Some(Vec::new()), 0, false);
        'nodes: for (mut node, end) in trie.roots(bytes) {
            while node < end {
                path.truncate(trie.depth(node));
                let &(above, alive, beyond) = path.last().expect("the path begins with the configuration at the root");
                let here = match alive.contains(trie.byte(node)) {
                    true => self.step(run, above, trie.byte(node))?,
                    false => SetId::EMPTY,
                };
                if here == SetId::EMPTY {
                    node += trie.size(node);
                    continue;
                }
                looked += 1;
                if looked > FEW {
                    found = None;
                    break 'nodes;
                }
                let beyond = beyond || is_other(run.stacks.entries(here), run.stacks.entries(configuration));
                some_beyond |= beyond;
                if let (Some(entry), Some(found)) = (trie.entry_at(node), &mut found) {
                    let same = std::iter::once(entry).chain(vocabulary.same_bytes(entry).iter().copied());
                    found.extend(same.map(|token| (token, here, beyond)));
                }
                path.push((here, self.next_bytes(run, here)?.0, beyond));
                node += 1;
            }
        }
        let found = found.map(|tokens| Listed { tokens: tokens.into(), some_beyond });
        self.found.ahead.of(configuration).read = Some(found.clone());
        Ok(found)
    }

    /// The tokens that begin with some bytes and may follow a token, each with the place after it, where they are few.
    pub fn few_that_follow(&mut self, (token, place): (u32, CursorId), bytes: ByteSet) -> Option<Followers> {
        let key = (place, token, bytes);
        if let Some(known) = self.places.followers.get(&key) {
            return known.clone();
        }
        let found: Option<Followers> = self.find_few_that_follow((token, place), bytes).map(Arc::from);
        let owned = found.as_deref().map_or(0, |few| memory::of_shared::<(u32, CursorId)>(few.len()));
        self.places.followers.insert(key, found.clone(), owned);
        found
    }

    fn find_few_that_follow(
        &mut self,
        (token, place): (u32, CursorId),
        bytes: ByteSet,
    ) -> Option<Vec<(u32, CursorId)>> {
        let encoding = self.encoding;
        let vocabulary = encoding.tokens();
        self.places.cursor(place).settled()?;
        let cursor = self.places.cursor(place).clone();
        let fitting = self.cursor_masks.after(encoding, self.places, &cursor, Some(token));
        let mut found = Vec::new();
        for (root, _) in vocabulary.trie().roots(bytes) {
            for entry in vocabulary.trie().entries_below(root) {
                if token_set::get(&fitting, entry) {
                    found.push(entry);
                }
                found.extend(
                    vocabulary.same_bytes(entry).iter().copied().filter(|&next| token_set::get(&fitting, next)),
                );
                if found.len() > FEW {
                    return None;
                }
            }
        }
        let follow = |next: u32| Some((next, encoding.follow(self.places, place, Some(token), next)?));
        Some(found.into_iter().filter_map(follow).collect())
    }
}
