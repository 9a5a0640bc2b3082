//! The tokens that a search follows: those that the grammar reads or those that the tokenizer writes after another one,
//! if either are few; otherwise all tokens that both allow.

use std::iter::once;
use std::sync::Arc;

use stencilm_regex::ByteSet;
use stencilm_support::{FEW, LOOKED_AT, MANY, memory};

use super::layer::EndLayer;
use super::search::{EndQuestion, Search, TokenEnd, is_other};
use crate::canonical::cursor::table::{CursorId, Followers};
use crate::canonical::viability::ahead::Listed;
use crate::error::EngineError;
use crate::state::stacks::SetId;
use crate::vocabulary::token_set;

/// Applies if the grammar reads few tokens.
pub(crate) struct ReadTokens;

impl EndLayer for ReadTokens {
    fn is_viable(&self, search: &mut Search<'_, '_>, question: &EndQuestion) -> Result<Option<bool>, EngineError> {
        let Some(listed) = search.few_that_are_read(question.end.configuration)? else { return Ok(None) };
        search.looked += listed.tokens.len();
        for &(next, here, beyond) in listed.tokens.iter() {
            if search.follows(here, question, next)? {
                search.has_left |= beyond;
                return Ok(Some(true));
            }
        }
        search.has_left |= listed.some_beyond;
        Ok(Some(false))
    }
}

/// Applies if the tokenizer writes few tokens after this one.
pub(crate) struct FollowingTokens;

impl EndLayer for FollowingTokens {
    fn is_viable(
        &self,
        search: &mut Search<'_, '_>,
        &EndQuestion { end, next, depth }: &EndQuestion,
    ) -> Result<Option<bool>, EngineError> {
        let vocabulary = search.encoding.tokens();
        if vocabulary.trie().nodes_after(next.bytes) <= MANY {
            return Ok(None);
        }
        let Some(few) = search.few_that_follow((end.token, end.cursor), next.bytes) else { return Ok(None) };
        let mut some_beyond = false;
        for &(token, cursor) in few.iter() {
            // Whether the path there goes beyond the lexeme.
            let (mut configuration, mut beyond) = (end.configuration, false);
            for &byte in vocabulary.token_bytes(token).unwrap_or_default() {
                configuration = search.step(configuration, byte)?;
                if configuration == SetId::EMPTY {
                    break;
                }
                beyond = beyond || search.is_beyond(configuration);
            }
            if search.search(TokenEnd { configuration, token, cursor }, depth + 1)? {
                search.has_left |= beyond;
                return Ok(Some(true));
            }
            some_beyond |= beyond;
        }
        search.has_left |= some_beyond;
        Ok(Some(false))
    }
}

/// All tokens that the grammar reads, within the limit of a search.
pub(crate) struct EveryToken;

impl EndLayer for EveryToken {
    fn is_viable(&self, search: &mut Search<'_, '_>, question: &EndQuestion) -> Result<Option<bool>, EngineError> {
        let look = |search: &mut Search<'_, '_>| {
            search.looked += 1;
            search.looked <= LOOKED_AT
        };
        let mut viable = None;
        let walked =
            search.walk_read(question.end.configuration, look, Search::is_beyond, |search, token, here, beyond| {
                if search.follows(here, question, token)? {
                    viable = Some(beyond);
                }
                Ok(viable.is_none())
            })?;
        search.given_up |= walked.is_none() && viable.is_none();
        search.has_left |= viable.or(walked).unwrap_or(false);
        Ok(Some(walked.is_none()))
    }
}

impl Search<'_, '_> {
    /// Whether a token fits after another one and is viable, given the configuration after it.
    fn follows(&mut self, configuration: SetId, question: &EndQuestion, token: u32) -> Result<bool, EngineError> {
        let TokenEnd { token: before, cursor, .. } = question.end;
        match self.encoding.follow(self.cursors, cursor, Some(before), token) {
            Some(cursor) => self.search(TokenEnd { configuration, token, cursor }, question.depth + 1),
            None => Ok(false),
        }
    }

    /// Walks over the tokens that the grammar reads from a configuration, each with the configuration after it and
    /// whether its path goes beyond a lexeme. Returns `None` if `visit` ends the walk or too many nodes were visited;
    /// otherwise whether any path goes beyond.
    fn walk_read(
        &mut self,
        configuration: SetId,
        mut look: impl FnMut(&mut Self) -> bool,
        is_beyond: impl Fn(&Self, SetId) -> bool,
        mut visit: impl FnMut(&mut Self, u32, SetId, bool) -> Result<bool, EngineError>,
    ) -> Result<Option<bool>, EngineError> {
        let vocabulary = self.encoding.tokens();
        let trie = vocabulary.trie();
        let alive = self.next(configuration)?.bytes;
        // The configurations on the path, each with the bytes that may be live: other bytes cost no step.
        let mut path = vec![(configuration, alive, false)];
        let mut some_beyond = false;
        for (mut node, end) in trie.roots(alive) {
            while node < end {
                path.truncate(trie.depth(node));
                let &(above, alive, beyond) = path.last().expect("the path begins with the configuration at the root");
                if !alive.contains(trie.byte(node)) {
                    node += trie.size(node);
                    continue;
                }
                if !look(self) {
                    return Ok(None);
                }
                let here = self.step(above, trie.byte(node))?;
                if here == SetId::EMPTY {
                    node += trie.size(node);
                    continue;
                }
                let beyond = beyond || is_beyond(self, here);
                some_beyond |= beyond;
                if let Some(entry) = trie.entry_at(node) {
                    for token in once(entry).chain(vocabulary.same_bytes(entry).iter().copied()) {
                        if !visit(self, token, here, beyond)? {
                            return Ok(None);
                        }
                    }
                }
                path.push((here, self.next(here)?.bytes, beyond));
                node += 1;
            }
        }
        Ok(Some(some_beyond))
    }

    /// The tokens that the grammar reads, if they are few.
    fn few_that_are_read(&mut self, configuration: SetId) -> Result<Option<Listed>, EngineError> {
        if let Some(known) = &self.found.ahead.of(configuration).read {
            return Ok(known.clone());
        }
        if self.next(configuration)?.bytes.len() >= FEW {
            return Ok(None);
        }
        let (mut tokens, mut looked) = (Vec::new(), 0);
        let look = |_: &mut Self| {
            looked += 1;
            looked <= FEW
        };
        let is_beyond =
            |search: &Self, here| is_other(search.run.stacks.entries(here), search.run.stacks.entries(configuration));
        let walked = self.walk_read(configuration, look, is_beyond, |_, token, here, beyond| {
            tokens.push((token, here, beyond));
            Ok(true)
        })?;
        let found = walked.map(|some_beyond| Listed { tokens: tokens.into(), some_beyond });
        self.found.ahead.of(configuration).read = Some(found.clone());
        Ok(found)
    }

    /// The tokens that begin with some bytes and may follow a token, each with the cursor after it, if they are few.
    fn few_that_follow(&mut self, (token, cursor): (u32, CursorId), bytes: ByteSet) -> Option<Followers> {
        let key = (cursor, token, bytes);
        if let Some(known) = self.cursors.followers.get(&key) {
            return known.clone();
        }
        let found: Option<Followers> = self.find_few_that_follow((token, cursor), bytes).map(Arc::from);
        let owned = found.as_deref().map_or(0, |few| memory::of_shared::<(u32, CursorId)>(few.len()));
        self.cursors.followers.insert(key, found.clone(), owned);
        found
    }

    fn find_few_that_follow(
        &mut self,
        (token, cursor): (u32, CursorId),
        bytes: ByteSet,
    ) -> Option<Vec<(u32, CursorId)>> {
        let encoding = self.encoding;
        let vocabulary = encoding.tokens();
        self.cursors.key(cursor).settled()?;
        let key = self.cursors.key(cursor).clone();
        let fitting = self.cursor_masks.after(encoding, self.cursors, &key, Some(token));
        let mut found = Vec::new();
        for (root, _) in vocabulary.trie().roots(bytes) {
            for entry in vocabulary.trie().entries_below(root) {
                let same = once(entry).chain(vocabulary.same_bytes(entry).iter().copied());
                found.extend(same.filter(|&next| token_set::get(&fitting, next)));
                if found.len() > FEW {
                    return None;
                }
            }
        }
        let follow = |next: u32| Some((next, encoding.follow(self.cursors, cursor, Some(token), next)?));
        Some(found.into_iter().filter_map(follow).collect())
    }
}
