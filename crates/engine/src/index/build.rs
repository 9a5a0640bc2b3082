//! Builds an index: explores the configurations, minimises the automaton over bytes, and walks the trie for each state.
//! If the vocabulary cannot distinguish all bytes, it minimises a second time, over tokens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use stencilm_support::FEW;

use crate::compiled::CompiledGrammar;
use crate::index::bytes::{ByteAutomaton, Exploration, NOWHERE};
use crate::index::error::{IndexError, IndexLimits};
use crate::index::minimize::{Arrow, classes};
use crate::index::spelling;
use crate::index::token_index::{MAX_TARGETS, Stretch, TokenIndex};
use crate::shared::Vocabulary;
use crate::vocabulary::ranks::Ranks;

const FAR_TOO_MANY: usize = 2;

/// An index under construction. Each call of [`IndexBuilder::advance`] works for a limited time.
pub struct IndexBuilder {
    vocabulary: Arc<Vocabulary>,
    limits: IndexLimits,
    stage: Stage,
}

enum Stage {
    Exploring(Box<Exploration>),
    Walking(Box<Walking>),
    Done(Box<TokenIndex>),
    Taken,
}

/// The states that tokens reach, walked one after another.
struct Walking {
    automaton: ByteAutomaton,
    ranks: Arc<Ranks>,
    /// The number of each state of the byte automaton that some tokens reach.
    number: Vec<u32>,
    at: Vec<u32>,
    starts: Vec<u32>,
    stretches: Vec<Stretch>,
}

impl IndexBuilder {
    /// Begins the index of a grammar.
    ///
    /// # Errors
    /// [`IndexError::SingleTokens`], [`IndexError::TokenBudgets`], and limits of the engine.
    pub fn new(compiled: &CompiledGrammar, limits: IndexLimits) -> Result<IndexBuilder, IndexError> {
        if compiled.tokens().any() {
            return Err(IndexError::SingleTokens);
        }
        if compiled.has_budgets() {
            return Err(IndexError::TokenBudgets);
        }
        if compiled.declares_names() {
            return Err(IndexError::DeclaredNames);
        }
        let limits = IndexLimits { max_states: limits.max_states.min(MAX_TARGETS), ..limits };
        let stage = Stage::Exploring(Box::new(Exploration::new(compiled)?));
        Ok(IndexBuilder { vocabulary: compiled.vocabulary().clone(), limits, stage })
    }

    /// Works for about `time`; returns whether the index is ready for [`IndexBuilder::finish`].
    ///
    /// # Errors
    /// [`IndexError`]; after that the builder cannot be used any more.
    pub fn advance(&mut self, time: Duration) -> Result<bool, IndexError> {
        let until = Instant::now() + time;
        match &mut self.stage {
            Stage::Exploring(exploration) => {
                if exploration.advance(until, self.limits.max_states, self.limits.max_bytes)? {
                    let Stage::Exploring(explored) = std::mem::replace(&mut self.stage, Stage::Taken) else {
                        unreachable!("the stage was just looked at");
                    };
                    let mut walking = Walking::new(explored.minimal(), self.vocabulary.ranks());
                    walking.check_size(&self.vocabulary, self.limits.max_bytes)?;
                    walking.reserve(&self.vocabulary, self.limits.max_bytes);
                    self.stage = Stage::Walking(Box::new(walking));
                }
                Ok(false)
            }
            Stage::Walking(walking) => {
                if walking.advance(&self.vocabulary, until, &self.limits)? {
                    let Stage::Walking(walked) = std::mem::replace(&mut self.stage, Stage::Taken) else {
                        unreachable!("the stage was just looked at");
                    };
                    self.stage = Stage::Done(Box::new(walked.index(self.vocabulary.clone())?));
                }
                Ok(false)
            }
            Stage::Done(_) | Stage::Taken => Ok(true),
        }
    }

    /// The numbers of finished and of known states in the current stage.
    pub fn progress(&self) -> (usize, usize) {
        match &self.stage {
            Stage::Exploring(exploration) => exploration.progress(),
            Stage::Walking(walking) => (walking.starts.len() - 1, walking.at.len()),
            Stage::Done(index) => (index.num_states(), index.num_states()),
            Stage::Taken => (0, 0),
        }
    }

    /// The finished index, at the first call after [`IndexBuilder::advance`] has returned `true`.
    pub fn finish(&mut self) -> Option<TokenIndex> {
        match std::mem::replace(&mut self.stage, Stage::Taken) {
            Stage::Done(index) => Some(*index),
            other => {
                self.stage = other;
                None
            }
        }
    }
}

impl Walking {
    fn new(automaton: ByteAutomaton, ranks: Arc<Ranks>) -> Walking {
        let mut number = vec![NOWHERE; automaton.len()];
        number[0] = 0;
        Walking { automaton, ranks, number, at: vec![0], starts: vec![0], stretches: Vec::new() }
    }

    /// Refuses an index that would be far too large after a sample of its states. Waiting until the limit is reached
    /// would take many times as long.
    fn check_size(&self, vocabulary: &Vocabulary, limit: usize) -> Result<(), IndexError> {
        let states = self.automaton.len();
        let most = states.saturating_mul(self.ranks.tokens.len() * size_of::<Stretch>());
        // If each byte is a token, tokens reach all states of the automaton over bytes.
        if most / FAR_TOO_MANY <= limit || !self.distinguishes_bytes(vocabulary) {
            return Ok(());
        }
        let stretches: usize = (0..FEW).map(|at| self.count_stretches(vocabulary, at * states / FEW)).sum();
        let estimate = (stretches * size_of::<Stretch>()).saturating_mul(states) / FEW;
        match estimate / FAR_TOO_MANY > limit {
            true => Err(IndexError::WouldBeTooLarge { estimate, states, limit }),
            false => Ok(()),
        }
    }

    /// Reserves memory for the transitions if there may be many. Growing a list copies it and touches twice as many
    /// pages.
    fn reserve(&mut self, vocabulary: &Vocabulary, limit: usize) {
        let states = self.automaton.len();
        let sampled = states / FEW;
        if sampled == 0 {
            return;
        }
        let stretches: usize = (0..sampled).map(|at| self.count_stretches(vocabulary, at * states / sampled)).sum();
        let estimate = stretches * (states + states / 8) / sampled;
        self.stretches.reserve(estimate.min(limit / size_of::<Stretch>()));
    }

    /// The number of stretches of a state of the automaton over bytes.
    fn count_stretches(&self, vocabulary: &Vocabulary, state: usize) -> usize {
        let (mut count, mut last): (usize, Option<Stretch>) = (0, None);
        let Ok(()) = vocabulary.trie().walk::<u32, std::convert::Infallible>(
            state as u32,
            |state, byte, _| Ok(Some(self.automaton.next(state, byte)).filter(|&next| next != NOWHERE)),
            |token, target| {
                let rank = self.ranks.rank_of[token as usize];
                if !last.as_mut().is_some_and(|last| last.takes(rank, target)) {
                    count += 1;
                    last = Some(Stretch::new(rank, rank + 1, target));
                }
            },
        );
        count
    }

    fn advance(&mut self, vocabulary: &Vocabulary, until: Instant, limits: &IndexLimits) -> Result<bool, IndexError> {
        let trie = vocabulary.trie();
        let (automaton, rank_of) = (&self.automaton, &self.ranks.rank_of);
        while let Some(&here) = self.at.get(self.starts.len() - 1) {
            let (number, at, stretches) = (&mut self.number, &mut self.at, &mut self.stretches);
            let first = stretches.len();
            let Ok(()) = trie.walk::<u32, std::convert::Infallible>(
                here,
                |state, byte, _| Ok(Some(automaton.next(state, byte)).filter(|&next| next != NOWHERE)),
                |token, state| {
                    let target = &mut number[state as usize];
                    if *target == NOWHERE {
                        *target = at.len() as u32;
                        at.push(state);
                    }
                    let (rank, target) = (rank_of[token as usize], *target);
                    if !stretches[first..].last_mut().is_some_and(|last| last.takes(rank, target)) {
                        stretches.push(Stretch::new(rank, rank + 1, target));
                    }
                },
            );
            self.starts.push(stretches.len() as u32);
            if stretches.len() * size_of::<Stretch>() > limits.max_bytes {
                return Err(IndexError::TooLarge(limits.max_bytes));
            }
            if Instant::now() >= until {
                break;
            }
        }
        let is_done = self.starts.len() > self.at.len();
        if is_done {
            self.stretches.shrink_to_fit();
        }
        Ok(is_done)
    }

    fn index(mut self, vocabulary: Arc<Vocabulary>) -> Result<TokenIndex, IndexError> {
        if !self.distinguishes_bytes(&vocabulary) {
            self.check_spelling(&vocabulary)?;
            self.merge();
        }
        let Walking { automaton, ranks, at, starts, stretches, .. } = self;
        Ok(TokenIndex { vocabulary, ranks, automaton, at, starts, stretches })
    }

    /// Refuses an index with a state from which no tokens lead to the end of a text. There is no such state if each
    /// byte is a token.
    fn check_spelling(&self, vocabulary: &Vocabulary) -> Result<(), IndexError> {
        let finals: Vec<bool> = self.at.iter().map(|&state| self.automaton.finals[state as usize]).collect();
        let arrows = || {
            let stretches = |bounds: &[u32]| &self.stretches[bounds[0] as usize..bounds[1] as usize];
            (0..).zip(self.starts.windows(2)).flat_map(move |(tail, bounds)| {
                stretches(bounds).iter().map(move |stretch| (tail, stretch.target(), stretch.start))
            })
        };
        let Some(dead) = spelling::first_dead_end(&finals, arrows().map(|(tail, head, _)| (tail, head))) else {
            return Ok(());
        };
        // States are numbered breadth-first, so each one except the first is first reached from a state with a lower
        // number.
        let mut before = vec![None; self.at.len()];
        for (tail, head, rank) in arrows() {
            before[head as usize].get_or_insert((tail, rank));
        }
        let (mut tokens, mut state) = (Vec::new(), dead);
        while state != 0 {
            let (tail, rank) = before[state as usize].expect("some token reaches each state but the first");
            tokens.push(self.ranks.tokens[rank as usize]);
            state = tail;
        }
        let spelled = |&token: &u32| vocabulary.token_bytes(token).expect("the tokens of the trie spell something");
        let text = tokens.iter().rev().flat_map(spelled).copied().collect();
        let at = self.at[dead as usize];
        Err(IndexError::Unspelled(spelling::unspelled(&self.automaton, vocabulary.trie(), text, at)))
    }

    /// Whether each byte that leads anywhere is a token of its own. Then states that tokens cannot distinguish are
    /// already the same state of the byte automaton.
    fn distinguishes_bytes(&self, vocabulary: &Vocabulary) -> bool {
        let live: Vec<bool> = (0..self.automaton.width)
            .map(|column| {
                (0..self.automaton.len())
                    .any(|state| self.automaton.table[state * self.automaton.width + column] != NOWHERE)
            })
            .collect();
        (0..=u8::MAX).all(|byte| {
            let trie = vocabulary.trie();
            !live[usize::from(self.automaton.columns[usize::from(byte)])]
                || trie.find(&[byte]).is_some_and(|node| trie.entry_at(node).is_some())
        })
    }

    /// Merges states that tokens cannot distinguish, and numbers the remaining ones again in the same way.
    fn merge(&mut self) {
        let kinds: Vec<u32> = self.at.iter().map(|&state| u32::from(self.automaton.finals[state as usize])).collect();
        let mut arrows = Vec::new();
        for (state, bounds) in self.starts.windows(2).enumerate() {
            for stretch in &self.stretches[bounds[0] as usize..bounds[1] as usize] {
                let labels = stretch.start..stretch.end();
                arrows.extend(labels.map(|label| Arrow { tail: state as u32, label, head: stretch.target() }));
            }
        }
        let class_of = classes(&kinds, &arrows);
        let mut example = FxHashMap::default();
        for (state, &class) in class_of.iter().enumerate() {
            example.entry(class).or_insert(state);
        }
        let mut number = FxHashMap::default();
        number.insert(class_of[0], 0);
        let mut order = vec![class_of[0]];
        let (mut at, mut starts, mut stretches) = (Vec::new(), vec![0], Vec::<Stretch>::new());
        while let Some(class) = order.get(at.len()) {
            let state = example[class];
            at.push(self.at[state]);
            let first = stretches.len();
            for stretch in &self.stretches[self.starts[state] as usize..self.starts[state + 1] as usize] {
                let class = class_of[stretch.target() as usize];
                let fresh = number.len() as u32;
                let target = *number.entry(class).or_insert(fresh);
                if target == fresh {
                    order.push(class);
                }
                for rank in stretch.start..stretch.end() {
                    if !stretches[first..].last_mut().is_some_and(|last| last.takes(rank, target)) {
                        stretches.push(Stretch::new(rank, rank + 1, target));
                    }
                }
            }
            starts.push(stretches.len() as u32);
        }
        (self.at, self.starts, self.stretches) = (at, starts, stretches);
    }
}
