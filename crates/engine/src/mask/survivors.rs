//! Which of several tokens can be read at all.
//!
//! The tokens are read in the order of their bytes, so a common beginning is read once.

use crate::error::EngineError;
use crate::parse::stepper::Run;
use crate::parse::unverified::{Unverified, VerifyReason};
use crate::state::stacks::{Entry, SetId};
use crate::vocabulary::tokens::Tokens;

impl Run<'_> {
    /// Verifies the tokens for which an optimistic mask may be wrong: those behind which nothing can follow are refused.
    pub(crate) fn refuse_unverified(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        unverified: Vec<Unverified>,
        refused: &mut Vec<u32>,
    ) -> Result<(), EngineError> {
        let within_key = self.is_within_free_key(configuration);
        let strings = if self.machine.keeps_text() { self.strings_seen(configuration)? } else { None };
        let mut asked = Vec::new();
        for Unverified { token, cause } in unverified {
            let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
            let is_new = match cause {
                VerifyReason::WholeKey { unclear: false } if !within_key => {
                    !self.may_repeat_a_whole_key(vocabulary.whole_keys(), token)
                }
                VerifyReason::WholeKey { .. } => !self.may_repeat_a_key(bytes, within_key),
                VerifyReason::BegunKey => false,
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

    /// Those of these tokens behind which nothing can follow, without repetition.
    pub(crate) fn dead_tokens(
        &mut self,
        vocabulary: &Tokens,
        configuration: SetId,
        mut tokens: Vec<u32>,
    ) -> Result<Vec<u32>, EngineError> {
        let spelled = |token: u32| vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
        tokens.sort_unstable_by(|&a, &b| spelled(a).cmp(spelled(b)).then(a.cmp(&b)));
        tokens.dedup();
        // What the elements of an array are compared with, and where spent parts end, is decided by all threads together.
        if self.machine.keeps_text() || self.spent_at.is_some() {
            let mut dead = Vec::new();
            for token in tokens {
                if !self.survives(configuration, spelled(token))? {
                    dead.push(token);
                }
            }
            return Ok(dead);
        }
        let seen_keys = self.stacks.seen_keys;
        let threads = self.stacks.entries(configuration).to_vec();
        let tokens = self.dead_in(vocabulary, &threads, tokens)?;
        // Nothing of it stays.
        self.stacks.seen_keys = seen_keys;
        Ok(tokens)
    }

    /// Those of these tokens, in the order of their bytes, behind which none of these threads is left.
    fn dead_in(
        &mut self,
        vocabulary: &Tokens,
        threads: &[Entry],
        mut tokens: Vec<u32>,
    ) -> Result<Vec<u32>, EngineError> {
        // What is left behind each byte of the token before, up to the first byte behind which nothing is.
        let mut behind: Vec<Vec<Entry>> = Vec::new();
        let mut before: &[u8] = &[];
        let mut kept = 0;
        for index in 0..tokens.len() {
            let token = tokens[index];
            let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
            let common = before.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            behind.truncate(common);
            while behind.len() < bytes.len() && behind.last().is_none_or(|threads| !threads.is_empty()) {
                self.stacks.allow(1);
                let mut next = Vec::new();
                for &thread in behind.last().map_or(threads, |threads| threads) {
                    self.step_thread(thread, bytes[behind.len()], &mut next)?;
                }
                self.stacks.join(&mut next)?;
                behind.push(next);
            }
            if behind.last().is_none_or(|threads| threads.is_empty()) {
                tokens[kept] = token;
                kept += 1;
            }
            before = bytes;
        }
        tokens.truncate(kept);
        Ok(tokens)
    }
}
