//! The tokens that may come next. Narrow threads are walked through the trie; wide ones take a row and add their exits.
//!
//! A thread is *wide* when nearly every byte leads on, as in a string body. Its lexeme's row (see `lexicon.rs`) holds
//! the tokens that stay inside; of those that leave, only the few distinct suffixes are walked, in what follows the
//! lexeme. All other threads are walked together from the root of the trie, which ends after a few steps nearly
//! everywhere. Threads are alternatives, so the mask is the union. [`crate::naive::mask`] is the slow twin.

use std::sync::Arc;

use stencilm_regex::StateId;

use crate::error::EngineError;
use crate::json_text;
use crate::lexicon::{DfaId, Row, RowHere};
use crate::machine::{Fork, ForkId, Machine};
use crate::run::{Place, Run, UNKNOWN_TEXT, state_of};
use crate::stacks::{Entry, MembersState, NIL, SetId, Stacks};
use crate::tokenset;
use crate::vocabulary::Vocabulary;

impl Run<'_> {
    /// Writes the mask of a configuration, without stop tokens. `mask` has the vocabulary's number of words.
    pub fn fill_mask(
        &mut self,
        vocabulary: &Vocabulary,
        configuration: SetId,
        mask: &mut [u32],
    ) -> Result<(), EngineError> {
        mask.fill(0);
        let mut narrow = Vec::new();
        for thread in self.stacks.entries(configuration).to_vec() {
            if thread == Entry::BOTTOM {
                continue;
            }
            let fork = self.machine.fork(ForkId(thread.head)).clone();
            if !self.lexicon.is_wide(fork.dfa, state_of(thread))? || !self.add_wide(vocabulary, thread, &fork, mask)? {
                narrow.push(thread);
            }
        }
        if let Some(place) = self.place(&mut narrow) {
            vocabulary.trie().walk_mask(place, |place, byte| self.step_place(place, byte), mask)?;
        }
        for (first, others) in vocabulary.duplicates() {
            if tokenset::get(mask, *first) {
                others.iter().for_each(|&other| tokenset::set(mask, other));
            }
        }
        Ok(())
    }

    /// Adds the tokens of one wide thread, unless its lexeme is left too often for a row to pay.
    fn add_wide(
        &mut self,
        vocabulary: &Vocabulary,
        thread: Entry,
        fork: &Arc<Fork>,
        mask: &mut [u32],
    ) -> Result<bool, EngineError> {
        // `text & ~words` takes the row of `text`, and a walk of the few places where the two differ.
        let nearly = self.lexicon.nearly(fork.dfa, state_of(thread))?;
        let row = match nearly {
            Some((whole, _)) => self.lexicon.row(vocabulary, whole, StateId::START)?,
            None => self.lexicon.row(vocabulary, fork.dfa, state_of(thread))?,
        };
        let Some(RowHere { row, mut tags }) = row else { return Ok(false) };
        let mut decided = Vec::new();
        if let Some((whole, tag)) = nearly {
            tags = vec![vec![tag]];
            decided = self.differences(vocabulary, thread, fork, whole, tag)?;
        }
        // Tokens that end a key which was seen before are decided one by one, whatever the row says of them.
        for token in self.tokens_of_seen_keys(vocabulary, thread, fork, &row, &tags) {
            decided.push((token, self.allows(vocabulary, thread, token)?));
        }
        let before: Vec<bool> = decided.iter().map(|&(token, _)| tokenset::get(mask, token)).collect();
        row.add_inside(mask);
        self.add_exits(vocabulary, thread, fork, &row, &tags, mask)?;
        // A token may have been decided twice; what was decided last knew more.
        for ((token, allowed), before) in decided.into_iter().zip(before) {
            if before || allowed {
                tokenset::set(mask, token);
            } else {
                tokenset::clear(mask, token);
            }
        }
        Ok(true)
    }

    /// Adds the tokens that go on behind the lexeme of a wide thread.
    fn add_exits(
        &mut self,
        vocabulary: &Vocabulary,
        thread: Entry,
        fork: &Arc<Fork>,
        row: &Row,
        tags: &[Vec<u32>],
        mask: &mut [u32],
    ) -> Result<(), EngineError> {
        for exits in &row.exits {
            let mut threads = Vec::new();
            for &residual in &exits.residuals {
                for &tag in &tags[residual as usize] {
                    self.follow(fork, tag, thread, Some(UNKNOWN_TEXT), &mut threads)?;
                }
            }
            let Some(place) = self.place(&mut threads) else { continue };
            self.inexact = false;
            let mut reached = Vec::new();
            exits.suffixes.walk(place, |place, byte| self.step_place(place, byte), |suffix, _| reached.push(suffix))?;
            if self.inexact {
                for &token in exits.tokens.iter().flatten() {
                    if self.allows(vocabulary, thread, token)? {
                        tokenset::set(mask, token);
                    }
                }
            } else {
                for suffix in reached {
                    exits.tokens[suffix as usize].iter().for_each(|&token| tokenset::set(mask, token));
                }
            }
        }
        Ok(())
    }

    /// The tokens for which a thread may differ from the lexeme that its own is nearly the whole of, each with whether
    /// the thread allows it: both are walked together, and where they have become equal the walk goes no further.
    fn differences(
        &mut self,
        vocabulary: &Vocabulary,
        thread: Entry,
        fork: &Arc<Fork>,
        whole: DfaId,
        tag: u32,
    ) -> Result<Vec<(u32, bool)>, EngineError> {
        let mut start = thread;
        if fork.free_tag.is_some() {
            let state = self.stacks.members(thread.register);
            start.register = self.stacks.intern_members(MembersState { text: UNKNOWN_TEXT, ..state });
        }
        let mut decided = Vec::new();
        self.inexact = false;
        vocabulary.trie().walk(
            (Some(Place::One(start)), StateId::START, false),
            |(place, state, apart), byte| {
                let state = self.lexicon.next(whole, state, byte)?;
                if let Some(Place::One(here)) = place
                    && !apart
                    && here == (Entry { state: here.state, ..start })
                {
                    let next = self.lexicon.next(fork.dfa, state_of(here), byte)?;
                    let equal = match (self.lexicon.residuals(fork.dfa, next), self.lexicon.residuals(whole, state)) {
                        ([(own, residual)], [(_, other)]) => *own == tag && residual == other,
                        _ => false,
                    };
                    if equal {
                        return Ok(None);
                    }
                }
                let place = match place {
                    Some(place) => self.step_place(place, byte)?,
                    None => None,
                };
                // Where the whole lexeme ends and this one may not, they differ in what follows for all that is below.
                let apart = apart || !self.lexicon.accepts(whole, state).is_empty();
                let over = place.is_none() && state == StateId::DEAD && !apart;
                Ok::<_, EngineError>((!over).then_some((place, state, apart)))
            },
            |token, (place, ..)| decided.push((token, place.is_some())),
        )?;
        if self.inexact {
            for (token, allowed) in &mut decided {
                *allowed = self.allows(vocabulary, thread, *token)?;
            }
        }
        Ok(decided)
    }

    /// Whether a token may follow one thread.
    fn allows(&mut self, vocabulary: &Vocabulary, thread: Entry, token: u32) -> Result<bool, EngineError> {
        let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
        self.survives(Place::One(thread), bytes)
    }

    /// The tokens with which the thread would end a free key that its object has already.
    fn tokens_of_seen_keys(
        &self,
        vocabulary: &Vocabulary,
        thread: Entry,
        fork: &Fork,
        row: &Row,
        tags: &[Vec<u32>],
    ) -> Vec<u32> {
        let Some(free) = fork.free_tag else { return Vec::new() };
        let (so_far, possible) = keys_that_may_repeat(self.stacks, thread);
        if possible.is_empty() {
            return Vec::new();
        }
        let trie = vocabulary.trie();
        let mut tokens = Vec::new();
        for (node, residuals) in &row.ends {
            if !residuals.iter().any(|&residual| tags[residual as usize].contains(&free)) {
                continue;
            }
            let node = *node as usize;
            let below = trie.entries_below(node);
            // Any token below the node begins with the bytes that lead to the node.
            let Some(example) = below.clone().next() else { continue };
            let bytes = vocabulary.token_bytes(example).expect("a token in the trie spells bytes");
            let key = json_text::value_of(&[&so_far, &bytes[..trie.depth(node)]].concat());
            if possible.contains(&key) {
                tokens.extend(below);
            }
        }
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }
}

/// The key that the thread has written so far, and the keys of its object that it may still come to repeat.
fn keys_that_may_repeat(stacks: &Stacks, thread: Entry) -> (Vec<u8>, Vec<Vec<u8>>) {
    let state = stacks.members(thread.register);
    if state.seen == NIL {
        return (Vec::new(), Vec::new());
    }
    let so_far = stacks.text(state.text);
    // Without escapes so far, a key that does not begin like this cannot come out any more.
    let begun = so_far.trim_ascii_start();
    let plain = if begun.is_empty() { Some(begun) } else { begun.strip_prefix(b"\"") };
    let plain = plain.filter(|body| !body.contains(&b'\\'));
    let possible = stacks
        .list(state.seen)
        .filter(|&key| key != UNKNOWN_TEXT)
        .map(|key| stacks.text(key))
        .filter(|key| plain.is_none_or(|body| key.starts_with(body)))
        .collect();
    (so_far, possible)
}

/// Whether the mask depends on the keys that an object has seen, so that it must not be kept for another.
pub(crate) fn has_doubtful_key(machine: &Machine, stacks: &Stacks, configuration: SetId) -> bool {
    stacks.entries(configuration).iter().any(|&thread| {
        thread != Entry::BOTTOM
            && machine.fork(ForkId(thread.head)).free_tag.is_some()
            && !keys_that_may_repeat(stacks, thread).1.is_empty()
    })
}
