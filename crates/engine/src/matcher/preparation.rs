//! Masks computed before they are needed, by a walk through the grammar.
//!
//! The walk visits places in the order of how likely a model is to reach them and computes the mask of each. It goes on
//! with tokens that a model may write there: all of them if they are few; if they are many, the names of the grammar,
//! the tokens that end a lexeme, and two common ones for all that stay within it. The results are entries in the caches
//! of machine and lexemes, as if the masks had been asked for, so no mask changes.
//!
//! The walk yields to others: as soon as a thread waits for a lock that it holds, the unfinished mask is dropped and
//! started again later.

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

/// Of the tokens in which a mask differs from its row, at most this many with the same beginning are followed.
const MAX_SAME_BEGINNING: u32 = 6;

/// A layout is measured once per this many visits, since that takes as long as some masks.
const VISITS_MEASURED: usize = 8;

/// The cost that a step of the walk adds to a place; the lower the cost, the more likely the place.
const STEP: u32 = 4;

/// The limits of a preparation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PreparationBudget {
    /// Wall-clock time from the first step on.
    pub time: Duration,
    /// Bytes by which the grammar and the lexemes of its vocabulary may grow.
    pub bytes: usize,
}

/// Why a preparation has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreparationEnd {
    /// Every likely place was visited.
    Complete,
    /// Its time is up.
    Time,
    /// It has added as many bytes as it may.
    Bytes,
    /// It was cancelled.
    Cancelled,
    /// Nobody uses the grammar any more.
    Dropped,
}

/// The result of one step of a preparation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreparationStep {
    /// There is more to do.
    Done,
    /// Another thread needs what the step holds, or the host stopped it: try again a little later.
    Interrupted,
    /// There is nothing more to do.
    Ended(PreparationEnd),
}

/// How a place is reached. The place itself is computed when its turn comes, since most never have one.
struct Path {
    from: Step,
    /// The token that leads to the place; `None` for the start of the text.
    token: Option<u32>,
    /// The rest of a name of which the token is the beginning.
    rest: Box<[u8]>,
}

/// A walk through a grammar that computes the masks that will be asked for first. It does not keep the grammar alive:
/// when all others have dropped it, the walk ends.
pub struct Preparation {
    compiled: Weak<CompiledGrammar>,
    layout: Weak<Layout>,
    cancel: CancelToken,
    budget: PreparationBudget,
    begun: Option<Instant>,
    /// The time from the first step to the end, once it has ended.
    took: Option<Duration>,
    /// The bytes that the grammar and the lexemes held when the walk began.
    held: usize,
    grown: usize,
    layout_bytes: usize,
    visits: usize,
    /// The most bytes that one step has added.
    largest: usize,
    masks: usize,
    stacks: Stacks,
    paths: Vec<Path>,
    /// The places that were not visited yet, the cheapest first.
    open: BinaryHeap<Reverse<(u32, u32)>>,
    seen: FxHashSet<SetId>,
    /// The last place whose mask was new.
    found: Option<SetId>,
    words: Vec<u32>,
    /// The names of the grammar that may begin at a place with many tokens.
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

    /// The number of new masks so far.
    pub fn masks(&self) -> usize {
        self.masks
    }

    /// The bytes by which the grammar and the lexemes of its vocabulary have grown; other grammars may have added to
    /// the latter.
    pub fn bytes(&self) -> usize {
        self.grown
    }

    /// The time since the first step, up to the end of the walk.
    pub fn elapsed(&self) -> Duration {
        self.took.or_else(|| self.begun.map(|begun| begun.elapsed())).unwrap_or_default()
    }

    /// Why the walk has ended; `None` while it goes on.
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
                    // The memory of a finished walk is freed at once.
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
        // A time too large for the clock is no limit.
        let due = begun.checked_add(self.budget.time);
        let is_due = move || due.is_some_and(|due| Instant::now() >= due);
        if is_due() {
            return Err(PreparationEnd::Time);
        }
        let layout = match self.layout.upgrade() {
            Some(layout) => HeldLayout::new(layout),
            // The walk has no layout yet. If it had one that is gone, the lexeme cache was full.
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
            // Where a mask exceeds a limit, the walk goes on elsewhere.
            Err(_) => _ = self.open.pop(),
        }
        // The next step may add as much as the largest so far.
        if self.grown.saturating_add(self.largest) > self.budget.bytes || self.stacks.memory_bytes() > self.budget.bytes
        {
            return Err(PreparationEnd::Bytes);
        }
        Ok(PreparationStep::Done)
    }

    /// Takes the layout of the grammar and the names in it.
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

    /// Goes to the cheapest place, computes its mask, and adds its continuations; `false` where no place is left. On an
    /// error nothing has changed.
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
            // The masks after a cached one are likely cached too.
            let cost = if is_new { cost + STEP } else { cost + 3 * STEP };
            let rest = &self.paths[index as usize].rest;
            for (more, token, rest) in self.likely(compiled.vocabulary(), decided.known.as_deref(), rest) {
                self.add(cost + more, Path { from: place, token: Some(token), rest });
            }
            self.seen.insert(place.configuration);
        }
        // The added places cost more, so this one is still the first.
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
        // The memory of other places lies after the mark of this one.
        let from = Step { mark: self.stacks.mark(), ..from };
        next_step(layout, &mut self.stacks, from, input)
    }

    fn decide(&mut self, layout: &Layout, place: Step) -> Result<DecidedMask, EngineError> {
        let mark = self.stacks.mark();
        let decided = layout.decide_mask(&mut self.stacks, place.configuration, &mut self.words, false);
        self.stacks.rewind(mark);
        decided
    }

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

    /// Tokens of the mask that a model is likely to write, each with its cost and the rest of the name that it begins.
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
                // Models write words whole, so a token that only begins a word is unlikely.
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
            // The mask has no words: it allows digits, or another script.
            let spelled = |least: usize| {
                let mut allowed = token_set::iter(&self.words);
                allowed.find(|&token| tokens.token_bytes(token).is_some_and(|bytes| bytes.len() >= least))
            };
            likely.extend([1, 3].into_iter().filter_map(spelled).map(|token| (1, token, Box::default())));
        }
        likely
    }
}

/// The first few tokens with each beginning, out of ascending ones, with their rank: tokens with different beginnings
/// mostly lead to different places.
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

/// The longest token that is a prefix of a text, and its length.
fn longest_token(tokens: &Tokens, text: &[u8]) -> Option<(u32, usize)> {
    let trie = tokens.trie();
    let token = |len: usize| trie.find(&text[..len]).and_then(|node| trie.entry_at(node)).map(|token| (token, len));
    (1..=text.len().min(trie.max_depth())).rev().find_map(token)
}

/// Whether a token ends in a letter or digit that another of these tokens continues.
fn is_part_of_a_word(tokens: &Tokens, few: &[u32], token: u32) -> bool {
    let Some(bytes) = tokens.token_bytes(token) else { return false };
    let goes_on =
        |other: &[u8]| other.starts_with(bytes) && other.get(bytes.len()).is_some_and(u8::is_ascii_alphanumeric);
    bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && few.iter().any(|&other| tokens.token_bytes(other).is_some_and(goes_on))
}
