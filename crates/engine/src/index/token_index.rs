//! The index itself: its states, its transitions, and forced texts.

use std::sync::Arc;

use crate::error::MatcherError;
use crate::index::bytes::{ByteAutomaton, NOWHERE};
use crate::index::error::IndexError;
use crate::query::boundary_tokens::Span;
use crate::shared::Vocabulary;
use crate::vocabulary::ranks::Ranks;
use crate::vocabulary::token_set;
use crate::vocabulary::trie::WalkError;

/// Ends a walk that has found enough.
struct Enough;

impl WalkError for Enough {
    fn check() -> Result<(), Enough> {
        Ok(())
    }
}

/// Tokens with consecutive ranks in the trie that lead to the same state. It has only eight bytes, because large
/// indexes consist almost entirely of stretches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    /// The rank of the first token.
    pub start: u32,
    /// The number of further tokens, and the state.
    pub more_and_target: u32,
}

/// The greatest number of bytes of forced texts listed for one index. Each stretch counts as [`STRETCH`] more.
const MAX_FORCED: u64 = 1 << 24;
const STRETCH: u64 = 16;

/// The greatest number of tokens in a stretch, and the greatest number of states.
pub(super) const MAX_RUN: u32 = 1 << 8;
pub(super) const MAX_TARGETS: usize = 1 << 24;

impl Stretch {
    /// A stretch from one rank up to another, of at most [`MAX_RUN`] tokens.
    pub fn new(start: u32, end: u32, target: u32) -> Stretch {
        Stretch { start, more_and_target: (end - start - 1) << 24 | target }
    }

    /// The rank after the last.
    pub fn end(&self) -> u32 {
        self.start + (self.more_and_target >> 24) + 1
    }

    pub fn target(&self) -> u32 {
        self.more_and_target & (MAX_TARGETS as u32 - 1)
    }

    /// Adds the next token if it leads to the same state and the stretch has room.
    #[inline]
    pub fn takes(&mut self, rank: u32, target: u32) -> bool {
        let fits = self.end() == rank && self.target() == target && rank - self.start < MAX_RUN;
        self.more_and_target += u32::from(fits) << 24;
        fits
    }
}

/// A minimal deterministic automaton over tokens. It allows exactly the tokens that the masks of a matcher allow.
///
/// State 0 is the start. The others are numbered in the order of a breadth-first search along the trie.
pub struct TokenIndex {
    pub(super) vocabulary: Arc<Vocabulary>,
    pub(super) ranks: Arc<Ranks>,
    pub(super) automaton: ByteAutomaton,
    /// For each state, the state of the byte automaton.
    pub(super) at: Vec<u32>,
    /// Where the stretches of each state begin, with one more entry for the end.
    pub(super) starts: Vec<u32>,
    pub(super) stretches: Vec<Stretch>,
}

impl TokenIndex {
    /// The number of states.
    pub fn num_states(&self) -> usize {
        self.at.len()
    }

    /// The number of transitions. Tokens with equal bytes count separately.
    pub fn num_transitions(&self) -> usize {
        (0..self.num_states() as u32).map(|state| self.transitions(state).count()).sum()
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Approximate bytes of memory held, without the vocabulary and the order of its tokens, which all its indexes
    /// share.
    pub fn memory_bytes(&self) -> usize {
        self.automaton.memory_bytes()
            + (self.at.len() + self.starts.len()) * 4
            + self.stretches.len() * size_of::<Stretch>()
    }

    /// Whether the text may end at a state. In all methods, states are numbers below [`TokenIndex::num_states`].
    pub fn is_final(&self, state: u32) -> bool {
        self.automaton.finals[self.at[state as usize] as usize]
    }

    /// The state after a token; `None` where the token is not allowed or ends the text.
    pub fn next(&self, state: u32, token: u32) -> Option<u32> {
        let mut rank = *self.ranks.rank_of.get(token as usize)?;
        if rank == NOWHERE {
            // The trie may contain another token with the same bytes.
            let same = self.vocabulary.duplicates().iter().find(|(_, others)| others.contains(&token));
            rank = self.ranks.rank_of[same?.0 as usize];
        }
        let stretches = self.stretches_of(state);
        let stretch = stretches.partition_point(|stretch| stretch.end() <= rank);
        stretches.get(stretch).filter(|stretch| stretch.start <= rank).map(Stretch::target)
    }

    /// The tokens that a state allows, in the order of their bytes, each with the next state.
    pub fn transitions(&self, state: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let has_duplicates = !self.vocabulary.duplicates().is_empty();
        self.stretches_of(state).iter().flat_map(move |stretch| {
            let tokens = &self.ranks.tokens[stretch.start as usize..stretch.end() as usize];
            tokens.iter().flat_map(move |&token| {
                let others = if has_duplicates { self.vocabulary.same_bytes(token) } else { &[] };
                std::iter::once(token).chain(others.iter().copied()).map(move |token| (token, stretch.target()))
            })
        })
    }

    /// Writes the tokens that may come at a state, with the stop tokens where the text may end.
    ///
    /// # Errors
    /// [`MatcherError::MaskSize`] for a mask of the wrong size.
    pub fn fill_mask(&self, state: u32, mask: &mut [u32]) -> Result<(), MatcherError> {
        if mask.len() != self.vocabulary.mask_words() {
            return Err(MatcherError::MaskSize {
                words: mask.len(),
                expected: self.vocabulary.mask_words(),
                vocab_size: self.vocabulary.vocab_size(),
            });
        }
        mask.fill(0);
        for stretch in self.stretches_of(state) {
            for &token in &self.ranks.tokens[stretch.start as usize..stretch.end() as usize] {
                token_set::set(mask, token);
            }
        }
        for (first, others) in self.vocabulary.duplicates() {
            if token_set::get(mask, *first) {
                others.iter().for_each(|&other| token_set::set(mask, other));
            }
        }
        if self.is_final(state) {
            self.vocabulary.stop_token_ids().iter().for_each(|&id| token_set::set(mask, id));
        }
        Ok(())
    }

    /// The states at which a stretch of forced text begins: exactly one byte may come, and no other stretch passes
    /// through the state.
    ///
    /// # Errors
    /// [`IndexError::TooMuchForced`] where all stretches together are very long: thousands of them may share the same
    /// end.
    pub fn forced_states(&self) -> Result<Vec<u32>, IndexError> {
        let mut inside = vec![false; self.automaton.len()];
        for &start in &self.at {
            let mut here = start;
            while let Some((_, next)) = self.automaton.only(here)
                && !std::mem::replace(&mut inside[next as usize], true)
            {
                here = next;
            }
        }
        let is_start = |state: u32| {
            let here = self.at[state as usize];
            !inside[here as usize] && self.automaton.only(here).is_some()
        };
        let states: Vec<u32> = (0..self.num_states() as u32).filter(|&state| is_start(state)).collect();
        let lengths = self.forced_lengths();
        let length = |state: &u32| u64::from(lengths[self.at[*state as usize] as usize]);
        let bytes = states.iter().map(length).sum::<u64>() + states.len() as u64 * STRETCH;
        match bytes > MAX_FORCED {
            true => Err(IndexError::TooMuchForced { stretches: states.len(), limit: MAX_FORCED }),
            false => Ok(states),
        }
    }

    /// The number of forced bytes at each state of the automaton over bytes.
    fn forced_lengths(&self) -> Vec<u32> {
        let mut lengths = vec![NOWHERE; self.automaton.len()];
        let mut chain = Vec::new();
        for first in 0..self.automaton.len() as u32 {
            let mut here = first;
            while lengths[here as usize] == NOWHERE {
                // A chain cannot return to itself, since no text would end there.
                match self.automaton.only(here) {
                    Some((_, next)) => {
                        chain.push(here);
                        here = next;
                    }
                    None => lengths[here as usize] = 0,
                }
            }
            let mut length = lengths[here as usize];
            for state in chain.drain(..).rev() {
                length += 1;
                lengths[state as usize] = length;
            }
        }
        lengths
    }

    /// The forced bytes at a state, and the positions in them at which tokens may begin that extend beyond their end,
    /// with at most `limit` tokens for each position; as [`crate::GrammarMatcher::forced_spans`].
    pub fn forced_spans(&self, state: u32, limit: usize) -> (Vec<u8>, Vec<Span>) {
        let mut forced = Vec::new();
        let mut end = self.at[state as usize];
        while let Some((byte, next)) = self.automaton.only(end) {
            forced.push(byte);
            end = next;
        }
        let trie = self.vocabulary.trie();
        let step = |state: u32, byte| Some(self.automaton.next(state, byte)).filter(|&next| next != NOWHERE);
        let spans = crate::query::boundary_tokens::span_starts(trie, &forced).filter_map(|(start, node)| {
            let mut tokens = Vec::new();
            let nodes = trie.children(node);
            let mut states = vec![0; trie.max_depth() + 1];
            let _ = trie.walk_part(
                nodes,
                trie.depth(node),
                end,
                &mut states,
                |state, byte, node, _| {
                    let next = step(state, byte);
                    if next.is_some() {
                        tokens.extend(trie.entry_at(node));
                    }
                    if tokens.len() < limit { Ok(next) } else { Err(Enough) }
                },
                |_, _| {},
            );
            (!tokens.is_empty()).then_some(Span { start, tokens })
        });
        let spans = spans.collect();
        (forced, spans)
    }

    fn stretches_of(&self, state: u32) -> &[Stretch] {
        &self.stretches[self.starts[state as usize] as usize..self.starts[state as usize + 1] as usize]
    }
}
