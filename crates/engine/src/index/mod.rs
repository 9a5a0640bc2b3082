//! The explicit automaton over tokens of a regular grammar: states, and which token leads from each to which.
//!
//! It is built from the minimal automaton over bytes, by one walk of the trie for each state. Numbered along the trie, the
//! tokens that lead to one state come in long runs (all that begins with a word goes the same way), so transitions are
//! kept as runs: for a class of characters a tenth of what single entries would take, and never more than one and a half
//! times as much.

mod build;
mod bytes;
mod minimize;
mod saved;
mod spelling;

use std::sync::Arc;

use crate::error::{EngineError, MatcherError};
use crate::query::boundary_tokens::Span;
use crate::shared::Vocabulary;
use crate::vocabulary::token_set;
use crate::vocabulary::trie::Trie;

pub use build::IndexBuilder;
use bytes::{ByteAutomaton, NOWHERE};
pub use saved::SavedIndexError;
pub use spelling::Unspelled;

/// Bounds on a [`TokenIndex`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexLimits {
    /// The most states.
    pub max_states: usize,
    /// The most bytes that its transitions take.
    pub max_bytes: usize,
}

/// Why there is no index.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IndexError {
    /// The machine of the grammar has too many configurations, perhaps infinitely many.
    #[error(
        "the index has more than {0} states; the grammar nests or counts too far for an explicit automaton, so use a \
         GrammarMatcher, bound its repetitions, or raise max_states"
    )]
    TooManyStates(usize),
    /// There are too many transitions.
    #[error("the transitions of the index take more than {0} bytes; use a GrammarMatcher, or raise max_bytes")]
    TooLarge(usize),
    /// There would be far too many transitions, as some of the states show.
    #[error(
        "the transitions of the index would take about {estimate} bytes, as a sample of its {states} states shows, more \
         than twice the limit of {limit}; use a GrammarMatcher, bound its repetitions, or raise max_bytes"
    )]
    WouldBeTooLarge {
        /// The bytes that they would take.
        estimate: usize,
        /// How many states there are.
        states: usize,
        /// The most bytes that they may take.
        limit: usize,
    },
    /// The grammar asks for single tokens.
    #[error("the grammar asks for single tokens, which an automaton over texts does not have; use a GrammarMatcher")]
    SingleTokens,
    /// The grammar has budgets of tokens.
    #[error(
        "the grammar has parts with max_tokens, which depend on how a text was cut into tokens; use a GrammarMatcher"
    )]
    TokenBudgets,
    /// A reference depends on the names before it, of which there are endlessly many.
    #[error(
        "the grammar declares names, to which later parts refer, so it has endlessly many states; use a GrammarMatcher"
    )]
    DeclaredNames,
    /// The vocabulary cannot spell a text that it begins.
    #[error(
        "the vocabulary cannot spell all texts of the grammar: {0}; give a vocabulary with tokens for it, or leave it out \
         of the grammar"
    )]
    Unspelled(Unspelled),
    /// The engine gave up.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Tokens that follow one another in the trie and lead to the same state: in eight bytes, because large indexes are hardly
/// anything else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretch {
    /// The first, by its rank in the trie.
    start: u32,
    /// How many follow it, and the state.
    more_and_target: u32,
}

/// So many tokens are one stretch at most, and so many states are numbered.
const MAX_RUN: u32 = 1 << 8;
const MAX_TARGETS: usize = 1 << 24;

impl Stretch {
    /// From one rank to before another, at most [`MAX_RUN`] of them.
    fn new(start: u32, end: u32, target: u32) -> Stretch {
        Stretch { start, more_and_target: (end - start - 1) << 24 | target }
    }

    /// The rank behind the last.
    fn end(&self) -> u32 {
        self.start + (self.more_and_target >> 24) + 1
    }

    fn target(&self) -> u32 {
        self.more_and_target & (MAX_TARGETS as u32 - 1)
    }

    /// Takes the next token, too, if it leads to the same state and there is room for it.
    #[inline]
    fn takes(&mut self, rank: u32, target: u32) -> bool {
        let fits = self.end() == rank && self.target() == target && rank - self.start < MAX_RUN;
        self.more_and_target += u32::from(fits) << 24;
        fits
    }
}

/// The tokens of a trie in its own order.
pub(crate) struct Ranks {
    tokens: Vec<u32>,
    rank_of: Vec<u32>,
}

impl Ranks {
    pub fn new(trie: &Trie, vocab_size: usize) -> Ranks {
        let tokens: Vec<u32> = (0..trie.len()).filter_map(|node| trie.entry_at(node)).collect();
        let mut rank_of = vec![NOWHERE; vocab_size];
        for (rank, &token) in tokens.iter().enumerate() {
            rank_of[token as usize] = rank as u32;
        }
        Ranks { tokens, rank_of }
    }
}

/// A minimal deterministic automaton over tokens: it allows exactly what the masks of a matcher allow.
///
/// State 0 is the first; the others are numbered as they are met breadth-first along the trie.
pub struct TokenIndex {
    vocabulary: Arc<Vocabulary>,
    ranks: Arc<Ranks>,
    automaton: ByteAutomaton,
    /// The state of the byte automaton at each state.
    at: Vec<u32>,
    /// Where the stretches of each state begin, and the end of all.
    starts: Vec<u32>,
    stretches: Vec<Stretch>,
}

impl TokenIndex {
    /// How many states there are.
    pub fn num_states(&self) -> usize {
        self.at.len()
    }

    /// How many transitions there are; tokens that spell the same count each.
    pub fn num_transitions(&self) -> usize {
        (0..self.num_states() as u32).map(|state| self.transitions(state).count()).sum()
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Bytes of memory held, about; not by the vocabulary and the order of its tokens, which all its indexes share.
    pub fn memory_bytes(&self) -> usize {
        self.automaton.memory_bytes()
            + (self.at.len() + self.starts.len()) * 4
            + self.stretches.len() * size_of::<Stretch>()
    }

    /// Whether the text may end at a state. States are numbers below [`TokenIndex::num_states`] here and in what follows.
    pub fn is_final(&self, state: u32) -> bool {
        self.automaton.finals[self.at[state as usize] as usize]
    }

    /// The state behind a token; `None` where it is not allowed or ends the text.
    pub fn next(&self, state: u32, token: u32) -> Option<u32> {
        let mut rank = *self.ranks.rank_of.get(token as usize)?;
        if rank == NOWHERE {
            // Perhaps another token that spells the same is in the trie.
            let same = self.vocabulary.duplicates().iter().find(|(_, others)| others.contains(&token));
            rank = self.ranks.rank_of[same?.0 as usize];
        }
        let stretches = self.stretches_of(state);
        let stretch = stretches.partition_point(|stretch| stretch.end() <= rank);
        stretches.get(stretch).filter(|stretch| stretch.start <= rank).map(Stretch::target)
    }

    /// The tokens that lead on from a state, in the order of their bytes, each with the state behind it.
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

    /// Writes the tokens that may come at a state, stop tokens at the end of a text among them.
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

    /// The states at which a stretch of forced text begins: where one byte is the only way on, and no other stretch comes
    /// through.
    pub fn forced_states(&self) -> Vec<u32> {
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
        (0..self.num_states() as u32).filter(|&state| is_start(state)).collect()
    }

    /// The bytes that must come at a state, and where tokens may begin in them that span their end, at most `limit` for
    /// each place; as [`crate::GrammarMatcher::forced_spans`].
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
            // The walk ends early by an error without meaning.
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
                    if tokens.len() < limit { Ok(next) } else { Err(()) }
                },
                |_| {},
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
