//! Verifying: which of the tokens that an optimistic mask may wrongly allow can be read at all.
//!
//! They are few: those that end a key or an element which may have been seen. They are read in the order of their
//! bytes, so a common beginning is read once.

use std::sync::Arc;

use stencilm_grammar::MembersId;
use stencilm_regex::StateId;

use crate::error::EngineError;
use crate::lexeme::cache::DfaId;
use crate::lexeme::mask::{LexemeMask, LexemeMaskAt};
use crate::machine::expansion::IN_WHITESPACE;
use crate::machine::layout::ExpansionId;
use crate::parse::stepper::Run;
use crate::parse::unverified::{Unverified, VerifyReason};
use crate::state::stacks::{Entry, NIL, SetId};
use crate::switches::Switch;
use crate::vocabulary::json_text;
use crate::vocabulary::tokens::Tokens;

impl Run<'_> {
    /// The tokens with which a thread of the configuration would end the key being written, where the object already
    /// has that key: an additional key, or a reserved name in a spelling that the automaton does not exclude.
    pub fn tokens_of_seen_keys(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        tokens: &mut Vec<Unverified>,
    ) -> Result<(), EngineError> {
        // Threads that read the same key after the same used keys have the same answer, so only the first one is asked.
        let mut asked: Vec<(DfaId, StateId, u32, u32)> = Vec::new();
        for index in 0..self.stacks.entries(configuration).len() {
            let thread = self.stacks.entries(configuration)[index];
            if thread == Entry::BOTTOM {
                continue;
            }
            let expansion = self.machine.fork(ExpansionId(thread.head));
            if !expansion.additional || thread.state & IN_WHITESPACE != 0 {
                continue;
            }
            let expansion = expansion.clone();
            let (Some(dfa), Some(members), class) = (expansion.dfa(), expansion.members, expansion.class) else {
                continue;
            };
            let state = StateId(thread.state);
            let memory = self.stacks.members(thread.register);
            if (memory.seen == NIL && !expansion.has_reserved) || !self.lexeme_cache.is_dense(vocabulary, dfa, state)? {
                continue;
            }
            let LexemeMaskAt { mask, .. } = self.lexeme_cache.mask(vocabulary, dfa, state)?;
            if !mask.unkept.is_empty() {
                // Such a thread was walked as a sparse one, which found its unverified tokens.
                continue;
            }
            if expansion.locally_finite {
                self.tokens_towards_used_keys(vocabulary, &expansion, thread, tokens);
            }
            let so_far = self.stacks.text(memory.text);
            let place = (dfa, state, memory.text, memory.seen);
            let is_first = !asked.contains(&place);
            let seen: Vec<Vec<u8>> = match is_first {
                true => self.stacks.seen.entries(memory.seen).map(|key| self.stacks.text(key)).collect(),
                false => Vec::new(),
            };
            if is_first {
                asked.push(place);
            }
            let begun = BegunKey { members, class, so_far, seen };
            self.ends_of_seen_keys(vocabulary, &mask, &begun, tokens);
        }
        Ok(())
    }

    /// The tokens of a lexeme mask that end the begun key such that the object already has it.
    fn ends_of_seen_keys(
        &self,
        vocabulary: &Tokens,
        mask: &LexemeMask,
        begun: &BegunKey,
        tokens: &mut Vec<Unverified>,
    ) {
        let trie = vocabulary.trie();
        let BegunKey { members, class, so_far, seen } = begun;
        let body = so_far.trim_ascii_start().strip_prefix(b"\"").filter(|body| !body.contains(&b'\\'));
        let Some(body) = body else {
            // The key so far has escapes, so every possible end is decoded and compared.
            for &node in mask.ends.iter() {
                let below = trie.entries_below(node as usize);
                let example = below.clone().next().expect("every node leads to a token");
                let bytes = vocabulary.token_bytes(example).expect("a token in the trie spells bytes");
                let key = [&**so_far, &bytes[..trie.depth(node as usize)]].concat();
                let key = json_text::value_of(&key);
                if seen.contains(&key) || self.machine.is_reserved(*members, *class, &key) {
                    tokens.extend(below.map(Unverified::begun_key));
                }
            }
            return;
        };
        let reserved = self.machine.reserved_after(*members, *class, body);
        if seen.is_empty() && reserved.is_empty() {
            return;
        }
        for (node, gained) in mask.escaped_ends(vocabulary) {
            let is_seen = || seen.iter().any(|key| key.strip_prefix(body) == Some(&**gained));
            let rest = |name: &Arc<str>| name.as_bytes()[body.len()..].cmp(gained);
            if is_seen() || reserved.binary_search_by(rest).is_ok() {
                tokens.extend(trie.entries_below(*node as usize).map(Unverified::begun_key));
            }
        }
        for key in seen {
            if let Some(rest) = key.strip_prefix(body)
                && let Some(node) = trie.find(&[rest, b"\""].concat())
            {
                tokens.extend(trie.entries_below(node).map(Unverified::begun_key));
            }
        }
    }

    /// Verifies the tokens for which an optimistic mask may be wrong, and refuses those after which nothing can follow.
    pub(crate) fn refuse_unverified(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        unverified: Vec<Unverified>,
        refused: &mut Vec<u32>,
    ) -> Result<(), EngineError> {
        let within_key = self.is_within_additional_key(configuration);
        let strings = if self.machine.keeps_text() { self.strings_seen(configuration)? } else { None };
        let mut asked = Vec::new();
        for Unverified { token, cause } in unverified {
            let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
            let is_new = match cause {
                VerifyReason::WholeKey { unclear: false } if !within_key && Switch::TokenKeys.is_on() => {
                    !self.may_repeat_a_whole_key(vocabulary.whole_keys(), token)
                }
                VerifyReason::WholeKey { .. } => !self.may_repeat_a_key(bytes, within_key),
                VerifyReason::BegunKey | VerifyReason::Repeat => false,
                VerifyReason::Element => strings.as_ref().is_some_and(|strings| strings.are_not_in(bytes)),
            };
            if !is_new {
                asked.push(token);
            }
        }
        if !asked.is_empty() {
            refused.append(&mut self.dead_tokens(vocabulary, configuration, asked)?);
        }
        Ok(())
    }

    /// Those of these tokens after which nothing can follow without repeating a key or an element. Reading them in the
    /// order of their bytes reads common prefixes once.
    pub(crate) fn dead_tokens(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        mut tokens: Vec<u32>,
    ) -> Result<Vec<u32>, EngineError> {
        let spelled = |token: u32| vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
        tokens.sort_unstable_by(|&a, &b| spelled(a).cmp(spelled(b)).then(a.cmp(&b)));
        tokens.dedup();
        let seen_keys = self.stacks.seen_keys;
        let mut start = self.stacks.entries(configuration).to_vec();
        self.take_text(&mut start);
        // The threads, and the text, after each byte of the previous token, up to the first byte that leaves no thread.
        let mut after = vec![(start, self.text)];
        let mut before: &[u8] = &[];
        let mut kept = 0;
        for index in 0..tokens.len() {
            let token = tokens[index];
            let bytes = spelled(token);
            let common = before.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            after.truncate(common + 1);
            while let Some((threads, text)) = after.last()
                && let Some(&byte) = bytes.get(after.len() - 1)
                && !threads.is_empty()
            {
                self.stacks.allow(1);
                self.text = *text;
                let mut next = Vec::new();
                self.read_byte(threads, byte, &mut next)?;
                after.push((next, self.text));
            }
            let (threads, text) = after.last().expect("the first ones are never taken");
            self.text = *text;
            if !self.goes_on(threads)? {
                tokens[kept] = token;
                kept += 1;
            }
            before = bytes;
        }
        tokens.truncate(kept);
        // Undo what the walk recorded.
        (self.text, self.stacks.seen_keys) = (None, seen_keys);
        Ok(tokens)
    }

    /// Whether any of these threads does more than repeat an element.
    fn goes_on(&mut self, threads: &[Entry]) -> Result<bool, EngineError> {
        if self.text.is_none() {
            return Ok(!threads.is_empty());
        }
        let mut left = threads.to_vec();
        self.drop_repeats(&mut left)?;
        Ok(!left.is_empty())
    }
}

/// A key being written that may become one which its object already has.
struct BegunKey {
    members: MembersId,
    class: u32,
    /// The key's text so far.
    so_far: Vec<u8>,
    /// The keys of its object; empty where another thread has already asked for them.
    seen: Vec<Vec<u8>>,
}
