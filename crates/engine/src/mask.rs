//! The tokens that may come next. Narrow threads are walked through the trie; wide ones take a row and add their exits.
//!
//! A thread is *wide* when many bytes lead on, as in a string body. Its lexeme's row (see `lexicon.rs`) holds
//! the tokens that stay inside; of those that leave, only the few distinct suffixes are walked, in what follows the
//! lexeme. All other threads are walked together from the root of the trie, which ends after a few steps nearly
//! everywhere. Threads are alternatives, so the mask is the union.
//!
//! All this takes every free key of an object for a new one, so that a mask does not depend on which keys were seen. The
//! tokens for which that may be wrong are *doubtful*; they are few, and decided one by one at the end.
//! [`crate::naive::mask`] is the slow twin.

use std::sync::Arc;

use stencilm_regex::StateId;

use crate::error::EngineError;
use crate::json_text;
use crate::lexicon::{DfaId, Row, RowHere};
use crate::machine::{Fork, ForkId};
use crate::run::{Doubt, Place, Run, offers_tokens, state_of};
use crate::stacks::{Entry, NIL, SetId};
use crate::tokens::Tokens;
use crate::tokenset;
use crate::walk::Walk;

/// What is to know of a mask that was filled.
pub(crate) struct Filled {
    /// Tokens for which taking keys for new ones may be wrong.
    pub doubtful: Vec<u32>,
    /// A row that the mask is made of.
    pub row: Option<Arc<Row>>,
}

/// A mask in the making.
struct Draft<'a> {
    vocabulary: &'a Tokens,
    mask: &'a mut [u32],
    /// Tokens for which taking keys for new ones may be wrong.
    doubtful: Vec<u32>,
    /// The row of the last wide thread.
    row: Option<Arc<Row>>,
    /// Whether the walk of the narrow threads begins within a key, which may hold escapes already.
    within_key: bool,
}

impl Run<'_> {
    /// Writes the mask of a configuration, without stop tokens and as if every free key were new. Gives the tokens that
    /// are doubtful because they end a key behind another key of the same token or state; those that end the key which
    /// is being written are found by [`Run::tokens_of_seen_keys`]. `mask` has the vocabulary's number of words.
    pub fn fill_mask(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        mask: &mut [u32],
    ) -> Result<Filled, EngineError> {
        mask.fill(0);
        self.recording = false;
        let (mut narrow, mut single) = (Vec::new(), Vec::new());
        let mut draft = Draft { vocabulary, mask, doubtful: Vec::new(), row: None, within_key: false };
        for thread in self.stacks.entries(configuration).to_vec() {
            if thread == Entry::BOTTOM {
                continue;
            }
            let fork = self.machine.fork(ForkId(thread.head)).clone();
            if offers_tokens(thread) {
                single.extend(fork.tokens.iter().map(|&(node, _)| node));
                continue;
            }
            let wide = self.lexicon.is_wide(fork.dfa, state_of(thread))?;
            if !wide || !self.add_wide(thread, &fork, &mut draft)? {
                narrow.push(thread);
                draft.within_key |= fork.free_tag.is_some() && state_of(thread) != StateId::START;
            }
        }
        if let Some(place) = self.place(&mut narrow) {
            let mut walk = Walk::new(self);
            let start = walk.spot(place, Doubt::default());
            let mut reached = Vec::new();
            vocabulary.trie().walk(
                start,
                |spot, byte, _| walk.step(spot, byte),
                |token, spot| reached.push((token, spot)),
            )?;
            for (token, spot) in reached {
                tokenset::set(draft.mask, token);
                draft.note(token, walk.doubt(spot));
            }
        }
        for (first, others) in vocabulary.duplicates() {
            if tokenset::get(draft.mask, *first) {
                others.iter().for_each(|&other| tokenset::set(draft.mask, other));
            }
        }
        // Last, because a single token is not its like: another id that spells the same is not meant.
        for node in single {
            self.machine.tokens.ids(node).add_to(draft.mask);
        }
        self.recording = true;
        Ok(Filled { doubtful: draft.doubtful, row: draft.row })
    }

    /// Adds the tokens of one wide thread, unless its lexeme is left too often for a row to pay.
    fn add_wide(&mut self, thread: Entry, fork: &Arc<Fork>, draft: &mut Draft<'_>) -> Result<bool, EngineError> {
        // `text & ~words` takes the row of `text`, and a walk of the few places where the two differ.
        let nearly = self.lexicon.nearly(fork.dfa, state_of(thread), fork.free_tag)?;
        let (dfa, state) = nearly.map_or((fork.dfa, state_of(thread)), |(whole, _)| (whole, StateId::START));
        let RowHere { row, mut tags } = self.lexicon.row(draft.vocabulary, dfa, state)?;
        let mut decided = Vec::new();
        if let Some((whole, tag)) = nearly {
            tags = vec![vec![tag]];
            decided = self.differences(thread, fork, whole, tag, draft)?;
        }
        if row.exits.is_none() && self.anything_follows(thread, fork, &row, &tags)? {
            return Ok(false);
        }
        let before: Vec<bool> = decided.iter().map(|&(token, _)| tokenset::get(draft.mask, token)).collect();
        row.add_inside(draft.mask);
        self.add_exits(thread, fork, &row, &tags, draft)?;
        for ((token, allowed), before) in decided.into_iter().zip(before) {
            if before || allowed {
                tokenset::set(draft.mask, token);
            } else {
                tokenset::clear(draft.mask, token);
            }
        }
        draft.row = Some(row);
        Ok(true)
    }

    /// Adds the tokens that go on behind the lexeme of a wide thread.
    fn add_exits(
        &mut self,
        thread: Entry,
        fork: &Arc<Fork>,
        row: &Row,
        tags: &[Vec<u32>],
        draft: &mut Draft<'_>,
    ) -> Result<(), EngineError> {
        for exits in row.exits.iter().flatten() {
            let mut threads = Vec::new();
            for &residual in &exits.residuals {
                for &tag in &tags[residual as usize] {
                    self.follow(fork, tag, thread, &mut threads)?;
                }
            }
            let Some(place) = self.place(&mut threads) else { continue };
            let mut walk = Walk::new(self);
            let start = walk.spot(place, Doubt::default());
            let mut reached = Vec::new();
            exits.suffixes.walk(
                start,
                |spot, byte, _| walk.step(spot, byte),
                |suffix, spot| reached.push((suffix, spot)),
            )?;
            for (suffix, spot) in reached {
                for &token in &exits.tokens[suffix as usize] {
                    tokenset::set(draft.mask, token);
                    draft.note(token, walk.doubt(spot));
                }
            }
        }
        Ok(())
    }

    /// Whether any byte can come behind the lexeme of a wide thread, wherever it ends.
    fn anything_follows(
        &mut self,
        thread: Entry,
        fork: &Arc<Fork>,
        row: &Row,
        tags: &[Vec<u32>],
    ) -> Result<bool, EngineError> {
        let mut threads = Vec::new();
        for &residual in row.endings.iter().flatten() {
            for &tag in &tags[residual as usize] {
                self.follow(fork, tag, thread, &mut threads)?;
            }
        }
        Ok(threads.iter().any(|&thread| thread != Entry::BOTTOM))
    }

    /// The tokens for which a thread may differ from the lexeme that its own is nearly the whole of, each with whether
    /// the thread allows it: both are walked together, and where they have become equal the walk goes no further.
    fn differences(
        &mut self,
        thread: Entry,
        fork: &Arc<Fork>,
        whole: DfaId,
        tag: u32,
        draft: &mut Draft<'_>,
    ) -> Result<Vec<(u32, bool)>, EngineError> {
        let mut walk = Walk::new(self);
        let start = walk.spot(Place::One(thread), Doubt::default());
        let (mut reached, mut refused) = (Vec::new(), Vec::new());
        let trie = draft.vocabulary.trie();
        trie.walk(
            (Some(start), StateId::START, false),
            |(spot, state, apart), byte, node| {
                let lexicon = &mut *walk.run.lexicon;
                let state = lexicon.next(whole, state, byte)?;
                if let Some(spot) = spot
                    && !apart
                    && spot.context == start.context
                {
                    let next = lexicon.next(fork.dfa, StateId(spot.state), byte)?;
                    let equal = match (lexicon.residuals(fork.dfa, next), lexicon.residuals(whole, state)) {
                        ([(own, residual)], [(_, other)]) => *own == tag && residual == other,
                        _ => false,
                    };
                    if equal {
                        return Ok(None);
                    }
                }
                let spot = match spot {
                    Some(spot) => walk.step(spot, byte)?,
                    None => None,
                };
                // Where the whole lexeme ends and this one may not, they differ in what follows for all that is below.
                let apart = apart || !walk.run.lexicon.accepts(whole, state).is_empty();
                if spot.is_none() && (apart || state == StateId::DEAD) {
                    if apart {
                        refused.extend(trie.entries_below(node));
                    }
                    return Ok(None);
                }
                Ok::<_, EngineError>(Some((spot, state, apart)))
            },
            |token, (spot, ..)| reached.push((token, spot)),
        )?;
        let mut decided: Vec<(u32, bool)> = refused.into_iter().map(|token| (token, false)).collect();
        for (token, spot) in reached {
            decided.push((token, spot.is_some()));
            if let Some(spot) = spot {
                draft.note(token, walk.doubt(spot));
            }
        }
        Ok(decided)
    }

    /// The tokens with which a thread of the configuration would end the key that it is writing, where its object has
    /// that key already: a free one, or a taken one in a spelling that the automaton does not know.
    pub fn tokens_of_seen_keys(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        tokens: &mut Vec<u32>,
    ) -> Result<(), EngineError> {
        for index in 0..self.stacks.entries(configuration).len() {
            let thread = self.stacks.entries(configuration)[index];
            if thread == Entry::BOTTOM {
                continue;
            }
            let fork = self.machine.fork(ForkId(thread.head)).clone();
            let (Some(free), Some(members)) = (fork.free_tag, fork.members) else { continue };
            let state = state_of(thread);
            let memory = self.stacks.members(thread.register);
            let alive = self.lexicon.residuals(fork.dfa, state).iter().any(|&(tag, _)| tag == free);
            let nothing_to_repeat = memory.seen == NIL && fork.taken_tag.is_none();
            if !alive || nothing_to_repeat || !self.lexicon.is_wide(fork.dfa, state)? {
                continue;
            }
            let nearly = self.lexicon.nearly(fork.dfa, state, fork.free_tag)?;
            let (dfa, state) = nearly.map_or((fork.dfa, state), |(whole, _)| (whole, StateId::START));
            let RowHere { row, .. } = self.lexicon.row(vocabulary, dfa, state)?;
            if row.exits.is_none() {
                // Then the thread was walked like a narrow one, and the doubtful tokens are known from there.
                continue;
            }
            let trie = vocabulary.trie();
            let so_far = self.stacks.text(memory.text);
            let seen: Vec<Vec<u8>> = self.stacks.list(memory.seen).map(|key| self.stacks.text(key)).collect();
            let repeats = |key: &[u8]| seen.iter().any(|seen| seen == key) || self.machine.is_taken(members, key);
            let body = so_far.trim_ascii_start().strip_prefix(b"\"").filter(|body| !body.contains(&b'\\'));
            let Some(body) = body else {
                // With escapes so far, every way to end the key is looked at.
                for &node in &row.ends {
                    let below = trie.entries_below(node as usize);
                    let example = below.clone().next().expect("every node leads to a token");
                    let bytes = vocabulary.token_bytes(example).expect("a token in the trie spells bytes");
                    let key = [&so_far, &bytes[..trie.depth(node as usize)]].concat();
                    if repeats(&json_text::value_of(&key)) {
                        tokens.extend(below);
                    }
                }
                continue;
            };
            for (node, gained) in &row.escaped_ends {
                if repeats(&[body, gained].concat()) {
                    tokens.extend(trie.entries_below(*node as usize));
                }
            }
            for key in &seen {
                if let Some(rest) = key.strip_prefix(body)
                    && let Some(node) = trie.find(&[rest, b"\""].concat())
                {
                    tokens.extend(trie.entries_below(node));
                }
            }
        }
        Ok(())
    }
}

impl Draft<'_> {
    /// Notes a token whose keys may not be new.
    fn note(&mut self, token: u32, doubt: Doubt) {
        let escapes = || self.vocabulary.token_bytes(token).is_some_and(|bytes| bytes.contains(&b'\\'));
        if doubt.seen || (doubt.taken && (self.within_key || escapes())) {
            self.doubtful.push(token);
        }
    }
}
