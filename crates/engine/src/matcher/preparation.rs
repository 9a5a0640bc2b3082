//! Masks found before they are needed, by a walk through the grammar.
//!
//! The walk takes places in the order of how likely a model is to reach them, computes the mask of each, and goes on
//! with tokens that a model may write there: all if they are few; if they are many, the names of the grammar, the
//! tokens that end a lexeme, and two common ones for all that stay in it. It leaves what a mask would have left,
//! entries in the caches of machine and lexemes, so no mask changes.
//!
//! It gives way: as soon as somebody waits for a lock that it holds, the unfinished mask is dropped, and started again
//! later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_support::{CancelToken, FEW, LimitExceeded, STEPS, Watch, unwatched};

use super::{Input, Step, next_step};
use crate::compiled::HeldLayout;
use crate::compiled::{CompiledGrammar, Layout};
use crate::error::EngineError;
use crate::mask::cache::KeptMask;
use crate::mask::pipeline::DecidedMask;
use crate::state::stacks::{SetId, Stacks};
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

/// Of the tokens in which a mask differs from its row so many are taken with the same beginning.
const MAX_SAME_BEGINNING: u32 = 6;

/// So many visits go by until a layout is measured again, which takes as long as some masks.
const VISITS_MEASURED: usize = 8;

/// What a step of the walk adds to the cost of a place: the lower, the more likely.
const STEP: u32 = 4;

/// How much a preparation may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PreparationBudget {
    /// Wall-clock time, from the first step on.
    pub time: Duration,
    /// Bytes by which the grammar and the lexemes of its vocabulary may grow.
    pub bytes: usize,
}

/// Why a preparation has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreparationEnd {
    /// Every likely place was visited.
    Complete,
    /// Its time is over.
    Time,
    /// What it may hold is full.
    Bytes,
    /// It was cancelled.
    Cancelled,
    /// Nobody uses the grammar any more.
    Dropped,
}

/// How a step of a preparation has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreparationStep {
    /// There is more to do.
    Done,
    /// Others need what the step holds, or the host has stopped it: it is to be done again a little later.
    Interrupted,
    /// There is nothing more to do.
    Ended(PreparationEnd),
}

/// How a place is reached: it is gone to when its turn comes, since most never have one.
struct Path {
    from: Step,
    /// The token that leads there; `None` for the beginning.
    token: Option<u32>,
    /// What is left of a name that has begun.
    rest: Box<[u8]>,
}

/// A walk through a grammar that finds the masks which are asked for first. It holds no grammar: where all others let go of
/// it, the walk ends.
pub struct Preparation {
    compiled: Weak<CompiledGrammar>,
    layout: Weak<Layout>,
    cancel: CancelToken,
    budget: PreparationBudget,
    begun: Option<Instant>,
    /// The time from the first step to the end.
    took: Option<Duration>,
    /// The bytes that the grammar and the lexemes held when it began.
    held: usize,
    grown: usize,
    layout_bytes: usize,
    visits: usize,
    /// The most that one step has added.
    largest: usize,
    masks: usize,
    stacks: Stacks,
    paths: Vec<Path>,
    /// Those that were not gone yet, the cheapest first.
    open: BinaryHeap<Reverse<(u32, u32)>>,
    seen: FxHashSet<SetId>,
    /// The place whose mask was found last that was not known before.
    found: Option<SetId>,
    words: Vec<u32>,
    /// The names of the grammar that may stand among others.
    names: Vec<Box<[u8]>>,
    end: Option<PreparationEnd>,
}

impl Preparation {
    /// A walk that has not begun.
    pub fn new(compiled: &Arc<CompiledGrammar>, budget: PreparationBudget, cancel: CancelToken) -> Preparation {
        Preparation {
            compiled: Arc::downgrade(compiled),
            layout: Weak::new(),
            cancel,
            budget,
            begun: None,
            took: None,
            held: 0,
            grown: 0,
            layout_bytes: 0,
            visits: 0,
            largest: 0,
            masks: 0,
            stacks: Stacks::new(),
            paths: Vec::new(),
            open: BinaryHeap::new(),
            seen: FxHashSet::default(),
            found: None,
            words: Vec::new(),
            names: Vec::new(),
            end: None,
        }
    }

    /// How many masks it has found that were not known.
    pub fn masks(&self) -> usize {
        self.masks
    }

    /// The bytes by which the grammar and the lexemes of its vocabulary have grown; others may have added to the latter.
    pub fn bytes(&self) -> usize {
        self.grown
    }

    /// The time since the first step, up to the end.
    pub fn elapsed(&self) -> Duration {
        self.took.or_else(|| self.begun.map(|begun| begun.elapsed())).unwrap_or_default()
    }

    /// Why it has ended.
    pub fn end(&self) -> Option<PreparationEnd> {
        self.end
    }

    /// Visits the next place.
    pub fn step(&mut self) -> PreparationStep {
        if self.end.is_none() {
            let begun = *self.begun.get_or_insert_with(Instant::now);
            match self.try_step(begun) {
                Ok(step @ (PreparationStep::Done | PreparationStep::Interrupted)) => return step,
                Ok(PreparationStep::Ended(end)) | Err(end) => {
                    self.end = Some(end);
                    self.took = Some(begun.elapsed());
                    // Nothing of it is needed any more.
                    (self.stacks, self.paths, self.open) = (Stacks::new(), Vec::new(), BinaryHeap::new());
                    (self.seen, self.words, self.names) = (FxHashSet::default(), Vec::new(), Vec::new());
                }
            }
        }
        PreparationStep::Ended(self.end.expect("it was just set"))
    }

    fn try_step(&mut self, begun: Instant) -> Result<PreparationStep, PreparationEnd> {
        let compiled = self.compiled.upgrade().ok_or(PreparationEnd::Dropped)?;
        let is_cancelled = {
            let (mine, limits) = (self.cancel.clone(), compiled.limits().cancel.clone());
            move || mine.is_cancelled() || limits.as_ref().is_some_and(CancelToken::is_cancelled)
        };
        if is_cancelled() {
            return Err(PreparationEnd::Cancelled);
        }
        // A budget that no clock can count to is none.
        let due = begun.checked_add(self.budget.time);
        let is_due = move || due.is_some_and(|due| Instant::now() >= due);
        if is_due() {
            return Err(PreparationEnd::Time);
        }
        let layout = match self.layout.upgrade() {
            Some(layout) => HeldLayout::new(layout),
            // The lexemes were full.
            None if self.layout.ptr_eq(&Weak::new()) => self.begin(&compiled),
            None => return Err(PreparationEnd::Bytes),
        };
        if !layout.is_free() {
            return Ok(PreparationStep::Interrupted);
        }
        let asked = layout.layout().clone();
        let give_way = {
            let is_cancelled = is_cancelled.clone();
            move || asked.is_waited_for() || is_due() || is_cancelled()
        };
        let watch = Watch::new(compiled.limits().milliseconds, None).giving_way(Arc::new(give_way));
        let visited = watch.over(|| self.visit(&compiled, &layout));
        self.measure(&layout);
        match visited {
            Ok(false) => return Err(PreparationEnd::Complete),
            Ok(true) => {}
            Err(EngineError::Limit(LimitExceeded::Interrupted | LimitExceeded::Cancelled)) => {
                return match () {
                    () if is_cancelled() => Err(PreparationEnd::Cancelled),
                    () if is_due() => Err(PreparationEnd::Time),
                    () => Ok(PreparationStep::Interrupted),
                };
            }
            // A mask beyond a limit is none to be had; what lies elsewhere may be.
            Err(_) => _ = self.open.pop(),
        }
        // The next step may add as much as the largest.
        if self.grown.saturating_add(self.largest) > self.budget.bytes || self.stacks.memory_bytes() > self.budget.bytes
        {
            return Err(PreparationEnd::Bytes);
        }
        Ok(PreparationStep::Done)
    }

    /// Takes the layout of the grammar, and with it the vocabulary.
    fn begin(&mut self, compiled: &Arc<CompiledGrammar>) -> HeldLayout {
        let layout = HeldLayout::new(compiled.layout());
        self.layout = Arc::downgrade(layout.layout());
        self.layout_bytes = layout.memory_bytes().unwrap_or(0);
        self.held = self.layout_bytes + layout.lexemes().held();
        let vocabulary = compiled.vocabulary();
        self.words = vec![0; vocabulary.mask_words()];
        let known = compiled.grammar().all_members().iter().flat_map(|members| &members.declared);
        let mut seen = FxHashSet::default();
        let names = known.map(|known| &*known.name).filter(|name| !name.is_empty() && seen.insert(name.to_owned()));
        self.names = names.take(FEW).map(|name| name.as_bytes().into()).collect();
        layout
    }

    /// Goes to the cheapest place, finds its mask, and adds the continuations; `false` where no place is left. Where it fails,
    /// nothing has happened.
    fn visit(&mut self, compiled: &CompiledGrammar, layout: &Layout) -> Result<bool, EngineError> {
        if self.paths.is_empty() {
            let configuration = layout.with(&mut self.stacks, |run| run.initial())?;
            self.add(
                0,
                Path { from: Step::first(configuration, self.stacks.mark()), token: None, rest: Box::default() },
            );
        }
        let Some(&Reverse((cost, index))) = self.open.peek() else { return Ok(false) };
        let Path { from, token, .. } = self.paths[index as usize];
        let mark = self.stacks.mark();
        let place = match token {
            None => Some(from),
            Some(token) => self.after(compiled, layout, from, token)?,
        };
        let place = place.filter(|place| !self.seen.contains(&place.configuration));
        if place.is_none() {
            self.stacks.rewind(mark);
        }
        if let Some(place) = place {
            let mut decided = self.decide(layout, place)?;
            if decided.known.is_none() {
                self.masks += 1;
                self.found = Some(place.configuration);
                decided = self.decide(layout, place)?;
            }
            if let Some(kept) = &decided.known {
                kept.write(&mut self.words);
            }
            decided.refused.into_iter().for_each(|token| token_set::clear(&mut self.words, token));
            let is_new = self.found == Some(place.configuration);
            // What lies after a mask that was known is likely known, too.
            let cost = if is_new { cost + STEP } else { cost + 3 * STEP };
            let rest = &self.paths[index as usize].rest;
            for (more, token, rest) in self.likely(compiled.vocabulary(), decided.known.as_deref(), rest) {
                self.add(cost + more, Path { from: place, token: Some(token), rest });
            }
            self.seen.insert(place.configuration);
        }
        // What was added costs more, so this one is still the first.
        self.open.pop();
        Ok(true)
    }

    /// The place after a token; `None` where it does not fit.
    fn after(
        &mut self,
        compiled: &CompiledGrammar,
        layout: &Layout,
        from: Step,
        token: u32,
    ) -> Result<Option<Step>, EngineError> {
        let input = match compiled.vocabulary().token_bytes(token) {
            Some(bytes) if !compiled.tokens().any() => Input::Token(token, bytes),
            bytes => Input::Named(token, bytes),
        };
        // What other places need lies after the mark of this one.
        let from = Step { mark: self.stacks.mark(), ..from };
        next_step(layout, &mut self.stacks, from, input)
    }

    fn decide(&mut self, layout: &Layout, place: Step) -> Result<DecidedMask, EngineError> {
        let mark = self.stacks.mark();
        let decided = layout.decide_mask(&mut self.stacks, place.configuration, &mut self.words, false);
        self.stacks.rewind(mark);
        decided
    }

    /// Takes note of what there is now.
    fn measure(&mut self, layout: &Layout) {
        self.visits += 1;
        if self.visits.is_multiple_of(VISITS_MEASURED) {
            self.layout_bytes = layout.memory_bytes().unwrap_or(self.layout_bytes);
        }
        let grown = (self.layout_bytes + layout.lexemes().held()).saturating_sub(self.held);
        self.largest = self.largest.max(grown.saturating_sub(self.grown));
        self.grown = self.grown.max(grown);
    }

    fn add(&mut self, cost: u32, path: Path) {
        if self.paths.len() < STEPS {
            self.open.push(Reverse((cost, self.paths.len() as u32)));
            self.paths.push(path);
        }
    }

    /// Tokens of the mask that a model may write, each with what it adds to the cost and what is left of the name that it
    /// begins.
    fn likely(&self, tokens: &Tokens, kept: Option<&KeptMask>, rest: &[u8]) -> Vec<(u32, u32, Box<[u8]>)> {
        let is_allowed = |token: u32| token_set::get(&self.words, token);
        let few = kept.and_then(|kept| kept.few_tokens(FEW)).map(|mut few| {
            few.retain(|&token| is_allowed(token));
            few.sort_unstable();
            few
        });
        let mut likely = Vec::new();
        if let Some(few) = few {
            for (rank, &token) in (0..).zip(&few) {
                // Words are written whole.
                let cost = if is_part_of_a_word(tokens, &few, token) { 2 * STEP } else { rank / 4 };
                likely.push((cost, token, Box::default()));
            }
            return likely;
        }
        let mut begin = |name: &[u8], cost| {
            if let Some((token, len)) = longest_token(tokens, name).filter(|&(token, _)| is_allowed(token)) {
                likely.push((cost, token, name[len..].into()));
            }
        };
        begin(rest, 0);
        if rest.is_empty() {
            self.names.iter().zip(0..).for_each(|(name, at)| begin(name, at / 8));
        }
        let mut beside = kept.map_or_else(Vec::new, |kept| kept.flipped().to_vec());
        beside.retain(|&token| is_allowed(token));
        beside.sort_unstable();
        likely.extend(by_beginning(tokens, beside).map(|(rank, token)| (1 + rank, token, Box::default())));
        let common = unwatched(|| tokens.common_words()).iter().copied().filter(|&token| is_allowed(token)).take(2);
        let before = likely.len();
        likely.extend(common.map(|token| (1, token, Box::default())));
        if likely.len() == before {
            // No words: digits, or another script.
            let spelled = |least: usize| {
                let mut allowed = token_set::iter(&self.words);
                allowed.find(|&token| tokens.token_bytes(token).is_some_and(|bytes| bytes.len() >= least))
            };
            likely.extend([1, 3].into_iter().filter_map(spelled).map(|token| (1, token, Box::default())));
        }
        likely
    }
}

/// Of ascending tokens the first ones with each beginning, with their rank there: what begins otherwise mostly leads
/// elsewhere.
fn by_beginning(tokens: &Tokens, ascending: Vec<u32>) -> impl Iterator<Item = (u32, u32)> + '_ {
    let mut by_beginning: FxHashMap<(bool, u8), u32> = FxHashMap::default();
    let ranked = ascending.into_iter().filter_map(move |token| {
        let bytes = tokens.token_bytes(token)?;
        let (has_space, bytes) = bytes.strip_prefix(b" ").map_or((false, bytes), |bytes| (true, bytes));
        let first = match bytes.first() {
            Some(byte) if byte.is_ascii_digit() => b'0',
            Some(byte) if byte.is_ascii_whitespace() => b' ',
            first => first.copied().unwrap_or(b' '),
        };
        let count = by_beginning.entry((has_space, first)).or_default();
        *count += 1;
        (*count <= MAX_SAME_BEGINNING).then_some((*count - 1, token))
    });
    ranked.take(FEW)
}

/// The longest token that a text begins with, and its length.
fn longest_token(tokens: &Tokens, text: &[u8]) -> Option<(u32, usize)> {
    let trie = tokens.trie();
    let token = |len: usize| trie.find(&text[..len]).and_then(|node| trie.entry_at(node)).map(|token| (token, len));
    (1..=text.len().min(trie.max_depth())).rev().find_map(token)
}

/// Whether a token is a word that another of these goes on with.
fn is_part_of_a_word(tokens: &Tokens, few: &[u32], token: u32) -> bool {
    let Some(bytes) = tokens.token_bytes(token) else { return false };
    let goes_on =
        |other: &[u8]| other.starts_with(bytes) && other.get(bytes.len()).is_some_and(u8::is_ascii_alphanumeric);
    bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && few.iter().any(|&other| tokens.token_bytes(other).is_some_and(goes_on))
}
