//! A short path to the end of a text.
//!
//! The search adds one lexeme after another, first the one with which the rest costs the fewest bytes or tokens
//! (`completion/costs.rs`). The choice is then read by the engine, so the result is correct whatever the estimate; if a
//! path becomes longer than estimated, the next best one is tried. The shortest text of a lexeme is taken first; others
//! follow if that one leads nowhere, or if elements must differ, as in `[1, 1]` and `[1, 22]`. If many paths fail, such
//! as the keys of a large object in every order because the estimate is one byte too low, the path nearest to the end
//! goes first from then on. After an end is found in this way, shorter ones are searched for as long again (branch and
//! bound).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry::Vacant;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{Deriver, ExprId, Shortest};
use stencilm_support::{Bounded, FEW, LOOKED_AT, LimitExceeded, MANY, STEPS, memory};

use crate::completion::costs::Costs;
use crate::completion::token_counts::{NEVER, count_in_time, fewest_tokens, shortest_text};
use crate::distinct::elements::{Repeat, Spelled};
use crate::error::EngineError;
use crate::machine::layout::{ExpansionId, FrameId, Machine};
use crate::parse::stepper::{Mode, Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};
use crate::switches::Switch;
use crate::vocabulary::tokens::Tokens;

/// A part of a path to the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    Text(Vec<u8>),
    /// A token that the grammar names.
    Token(u32),
}

/// The result of a search for a path to the end.
pub(crate) enum Completion {
    Found(Vec<Piece>),
    /// Every path costs at least this much.
    TooLong(u64),
    Never,
}

impl Completion {
    /// The path, if one was found.
    pub fn found(self) -> Option<Vec<Piece>> {
        match self {
            Completion::Found(pieces) => Some(pieces),
            Completion::TooLong(_) | Completion::Never => None,
        }
    }
}

/// The fewest tokens that spell a path; `None` where some byte has no token.
///
/// # Errors
/// A limit, where it takes too long.
pub(crate) fn tokens_of(vocabulary: &Tokens, pieces: &[Piece]) -> Result<Option<Vec<u32>>, LimitExceeded> {
    let (mut tokens, mut text) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Text(more) => text.extend_from_slice(more),
            Piece::Token(token) => {
                let Some(before) = fewest_tokens(vocabulary, &text)? else { return Ok(None) };
                tokens.extend(before);
                text.clear();
                tokens.push(*token);
            }
        }
    }
    let Some(last) = fewest_tokens(vocabulary, &text)? else { return Ok(None) };
    tokens.extend(last);
    Ok(Some(tokens))
}

/// Texts of lexemes, computed once for all searches.
#[derive(Default)]
pub(crate) struct Texts {
    /// The shortest ones, with their costs in tokens if these are counted.
    shortest: ShortestTexts,
    /// Further texts of lexemes.
    others: Bounded<ExprId, OtherTexts>,
}

type ShortestTexts = FxHashMap<ExprId, Option<(Vec<u8>, u64)>>;

impl Texts {
    /// The shortest text of a lexeme that occurs in a path.
    pub fn shortest(&self, lexeme: ExprId) -> Option<&[u8]> {
        self.shortest[&lexeme].as_ref().map(|(text, _)| &text[..])
    }

    /// One of the texts of a lexeme, the shortest first.
    fn other(&mut self, deriver: &mut Deriver, lexeme: ExprId, at: usize) -> Result<Option<Vec<u8>>, EngineError> {
        let (others, owned) = self.others.get_or_make(lexeme, || {
            let others = OtherTexts::new(deriver, lexeme);
            let bytes = others.memory_bytes();
            (others, bytes)
        });
        let before = others.memory_bytes();
        let text = others.get(deriver, lexeme, at)?.map(<[u8]>::to_vec);
        *owned = (*owned + others.memory_bytes()).saturating_sub(before);
        Ok(text)
    }
}

/// What may come next in a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Path {
    Lexeme(ExprId),
    Token(u32),
    /// The rest, after some bytes, of an element that the array already has, where two must be equal.
    Repeat {
        spelled: Spelled,
        written: u32,
    },
}

/// What can be read after a text of a lexeme.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    New,
    /// Only what could already be read before the text, since the lexeme was complete there; for example another
    /// spelling of a number.
    Known,
    /// Only more of the lexeme. Where elements must differ, the array may already have `0`, and then no spelling of it
    /// is new.
    Nothing,
}

/// A text that is an element of an array whose elements must differ.
#[derive(Clone, Copy)]
struct ElementText {
    /// The array, by its frame and the set below.
    array: (FrameId, SetId),
    lexeme: ExprId,
    /// The index of the text among those of the lexeme.
    at: u32,
}

/// A step of a path to the end.
struct Step {
    to: SetId,
    piece: Piece,
    /// Set if the step is an element of an array in which the order makes no difference.
    element: Option<ElementText>,
}

/// A place that the search has reached.
struct Reached {
    configuration: SetId,
    /// The cost of getting there.
    cost: u64,
    /// The last part of the path there.
    piece: Piece,
    element: Option<ElementText>,
    /// The place before it; the first place refers to itself.
    before: u32,
    /// The number of lexemes on the path there.
    depth: u32,
    /// The best first, each with the cost of the rest.
    paths: Vec<(u64, Path)>,
}

/// A candidate for the next lexeme. The one with the shortest text comes first, and among equals the one furthest
/// along.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    /// The sort key: a lower bound on the cost of the whole text, or in a hurry of the rest.
    order: u64,
    /// A lower bound on the cost of the whole text.
    total: u64,
    /// `u64::MAX` minus the cost of its place, so that places further along come first.
    left: u64,
    place: u32,
    path: u32,
    /// How many texts of the lexeme were tried, if another one is needed: the shortest was a used or a declared key, or
    /// an element must differ from others.
    tried: u32,
    /// Whether the sort key is still that of the previous text, since the cost of this one is not known yet.
    is_unweighed: bool,
}

/// The places reached so far, and the candidates for the next lexeme.
#[derive(Default)]
struct Frontier {
    /// The greatest cost of the whole text.
    most: u64,
    /// The greatest number of places to visit.
    max_places: usize,
    places: Vec<Reached>,
    queue: BinaryHeap<Reverse<Next>>,
    /// The greatest number of lexemes on the path to a place.
    deepest: u32,
    /// Whether the search has taken so long that the candidate nearest to an end goes first.
    hurries: bool,
    /// The end with the shortest path so far, among those found in a hurry.
    best: Option<u32>,
}

impl Frontier {
    /// Adds a place that was reached by a step from `before`, with what may come next there.
    fn add(&mut self, step: Step, cost: u64, before: u32, paths: Vec<(u64, Path)>) -> u32 {
        let place = self.places.len() as u32;
        let depth = self.places.get(before as usize).map_or(0, |place| place.depth + 1);
        let hurries = self.hurries;
        self.queue.extend((0..).zip(&paths).map(|(path, &(rest, _))| {
            let (total, left) = (cost.saturating_add(rest), u64::MAX - cost);
            let order = if hurries { rest } else { total };
            Reverse(Next { order, total, left, place, path, tried: 0, is_unweighed: false })
        }));
        let Step { to: configuration, piece, element } = step;
        self.places.push(Reached { configuration, cost, piece, element, before, depth, paths });
        self.deepest = self.deepest.max(depth);
        if !self.hurries && place > (MANY as u32).saturating_add(2 * self.deepest) && Switch::CompletionHurry.is_on() {
            self.hurries = true;
            let rest = |next: &Next| next.total.saturating_sub(self.places[next.place as usize].cost);
            let queue = std::mem::take(&mut self.queue).into_iter();
            let in_a_hurry = |Reverse(next): Reverse<Next>| Reverse(Next { order: rest(&next), ..next });
            self.queue = queue.map(in_a_hurry).collect();
        }
        place
    }

    /// The index of the text of a lexeme that the last element of an array has on the path to a place. All orders of
    /// elements are equally good, so later elements only use later texts.
    fn element_before(&self, place: u32, array: (FrameId, SetId), lexeme: ExprId) -> Option<u32> {
        let mut at = place;
        loop {
            let place = &self.places[at as usize];
            match place.element {
                Some(element) if (element.array, element.lexeme) == (array, lexeme) => return Some(element.at),
                _ if at == 0 => return None,
                _ => at = place.before,
            }
        }
    }

    /// Adds a candidate for another text of a lexeme, with its additional cost.
    fn go_on(&mut self, costs: &Costs, next: &Next, tried: u32, [before, text]: [&[u8]; 2]) {
        let more = costs.of_text(text).saturating_sub(costs.of_text(before));
        let (order, total) = (next.order.saturating_add(more), next.total.saturating_add(more));
        self.queue.push(Reverse(Next { order, total, tried, is_unweighed: false, ..*next }));
    }

    /// Records an end that was found in a hurry. Shorter paths are searched for as long again.
    fn end(&mut self, place: u32) {
        if self.best.is_none() {
            self.max_places = self.max_places.min(2 * self.places.len());
        }
        self.best = Some(place);
        self.most = self.places[place as usize].cost.saturating_sub(1);
    }
}

impl Run<'_> {
    /// A best-first search (A*, Hart, Nilsson and Raphael 1968). The stack alone does not give the exact cost if
    /// elements are counted, so the path that looks shortest need not lead to an end.
    pub fn complete(&mut self, costs: &mut Costs, start: SetId, most: u64) -> Result<Completion, EngineError> {
        self.complete_with(costs, &mut Texts::default(), start, most, STEPS)
    }

    /// The same with known texts of lexemes, visiting at most `max_places` places.
    pub fn complete_with(
        &mut self,
        costs: &mut Costs,
        lexemes: &mut Texts,
        start: SetId,
        most: u64,
        max_places: usize,
    ) -> Result<Completion, EngineError> {
        let mut frontier = Frontier { most, max_places, ..Frontier::default() };
        let found = self.search_paths(&mut frontier, costs, lexemes, start);
        let stopped =
            |limit| matches!(limit, LimitExceeded::Interrupted | LimitExceeded::Cancelled | LimitExceeded::Time(_));
        match (found, frontier.best) {
            (Err(EngineError::Limit(limit)), _) if stopped(limit) => Err(EngineError::Limit(limit)),
            (_, Some(best)) => Ok(Completion::Found(path_to(&mut frontier.places, best))),
            (found, None) => found,
        }
    }

    /// A path that a short search finds.
    pub fn complete_near(
        &mut self,
        costs: &mut Costs,
        lexemes: &mut Texts,
        start: SetId,
        most: u64,
    ) -> Result<Option<Vec<Piece>>, EngineError> {
        match self.complete_with(costs, lexemes, start, most, LOOKED_AT) {
            Err(EngineError::CompletionTooCostly(_)) => Ok(None),
            found => Ok(found?.found()),
        }
    }

    /// Continues until the shortest end is found, or no shorter path is possible.
    fn search_paths(
        &mut self,
        frontier: &mut Frontier,
        costs: &mut Costs,
        lexemes: &mut Texts,
        start: SetId,
    ) -> Result<Completion, EngineError> {
        // The least cost of getting to each place so far: in a hurry, the first path to a place need not be the
        // shortest.
        let mut seen: FxHashMap<SetId, u64> = FxHashMap::default();
        let mut reached = Some((Step { to: start, piece: Piece::Text(Vec::new()), element: None }, 0, 0));
        let mut too_long = NEVER;
        loop {
            if let Some((step, before, cost)) = reached.take() {
                let is_end = self.stacks.has_bottom(step.to);
                let paths = if is_end { Vec::new() } else { self.paths(costs, lexemes, step.to)? };
                let place = frontier.add(step, cost, before, paths);
                if is_end && cost > frontier.most {
                    too_long = too_long.min(cost);
                } else if is_end && !frontier.hurries {
                    return Ok(Completion::Found(path_to(&mut frontier.places, place)));
                } else if is_end {
                    frontier.end(place);
                }
            }
            let Some(Reverse(next)) = frontier.queue.pop() else {
                return Ok(if too_long == NEVER { Completion::Never } else { Completion::TooLong(too_long) });
            };
            if next.total > frontier.most {
                too_long = too_long.min(next.total);
                if frontier.hurries {
                    continue;
                }
                return Ok(Completion::TooLong(too_long));
            }
            if frontier.places.len() > frontier.max_places {
                return Err(EngineError::CompletionTooCostly(frontier.max_places));
            }
            if next.is_unweighed {
                self.weigh(frontier, costs, lexemes, next)?;
                continue;
            }
            let found = self.step_along(frontier, costs, lexemes, &next)?;
            let place = &frontier.places[next.place as usize];
            reached = found.and_then(|step| {
                let cost = place.cost.saturating_add(match &step.piece {
                    Piece::Token(_) => 1,
                    Piece::Text(text) => costs.of_text(text),
                });
                let known = seen.entry(step.to).or_insert(NEVER);
                (cost < *known).then(|| {
                    *known = cost;
                    (step, next.place, cost)
                })
            });
        }
    }

    /// Reads the next part of a path: the place after it, or none where it leads nowhere.
    fn step_along(
        &mut self,
        frontier: &mut Frontier,
        costs: &Costs,
        lexemes: &mut Texts,
        next: &Next,
    ) -> Result<Option<Step>, EngineError> {
        let place = &frontier.places[next.place as usize];
        let (configuration, lexeme) = (place.configuration, place.paths[next.path as usize].1);
        let (to, piece) = match lexeme {
            Path::Token(token) => (self.step_token(configuration, token, None)?, Piece::Token(token)),
            Path::Repeat { spelled, written } => {
                let rest = spelled.text(self.stacks).split_off(written as usize);
                (self.run(configuration, &rest)?, Piece::Text(rest))
            }
            Path::Lexeme(lexeme) if self.may_end_towards_repeat(configuration, lexeme)? => return Ok(None),
            Path::Lexeme(lexeme) => return self.read_lexeme(frontier, costs, lexemes, next, lexeme),
        };
        Ok((to != SetId::EMPTY).then_some(Step { to, piece, element: None }))
    }

    /// The lexemes and tokens that may come next, best first, each with the cost of the rest: a lower bound in bytes,
    /// an upper bound in tokens if keys and elements are new.
    pub fn paths(
        &mut self,
        costs: &mut Costs,
        lexemes: &mut Texts,
        configuration: SetId,
    ) -> Result<Vec<(u64, Path)>, EngineError> {
        // Only the stacks are read: whether an object has a key is checked when the text is read.
        self.in_mode(Mode::Optimistic, |run| run.paths_if_new(costs, lexemes, configuration))
    }

    fn paths_if_new(
        &mut self,
        costs: &mut Costs,
        lexemes: &mut Texts,
        configuration: SetId,
    ) -> Result<Vec<(u64, Path)>, EngineError> {
        let mut best: FxHashMap<Path, u64> = FxHashMap::default();
        let mut note = |path: Path, cost: u64| {
            let known = best.entry(path).or_insert(NEVER);
            *known = cost.min(*known);
        };
        let threads = self.stacks.entries(configuration).to_vec();
        let text = threads.iter().find(|&&thread| self.machine.is_text(thread)).map(|thread| thread.register);
        for thread in threads {
            if thread == Entry::BOTTOM {
                continue;
            }
            for repeat in text.map_or_else(Vec::new, |text| self.repeats_to_come(thread, text)) {
                let Repeat { spelled, written, items, below } = repeat;
                let after = costs.of_stack(self, below)?.saturating_add(costs.of_end(self.machine.grammar(), items));
                let length = costs.of_text(&spelled.text(self.stacks)[written as usize..]);
                note(Path::Repeat { spelled, written }, after.saturating_add(length));
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            if offers_tokens(thread) {
                if costs.tokens().is_none() {
                    continue;
                }
                for (node, continuation) in &expansion.tokens {
                    let Some(token) = self.machine.tokens.ids(*node).iter().next() else { continue };
                    let Some(stack) = self.push(&expansion, continuation, thread)? else { continue };
                    note(Path::Token(token), costs.of_stack(self, stack)?.saturating_add(1));
                }
                continue;
            }
            for (tag, lexeme) in self.lexemes(thread) {
                self.find_shortest_text(costs, lexemes, lexeme)?;
                let Some((text, count)) = &lexemes.shortest[&lexeme] else { continue };
                let length = match costs.tokens() {
                    Some(_) => *count,
                    None => {
                        let bound = self.lexeme_cache.deriver().exprs.shortest_at_least(lexeme);
                        u64::from(bound).max(text.len() as u64)
                    }
                };
                for continuation in self.machine.continuations(&expansion, tag).iter() {
                    let Some(stack) = self.push(&expansion, continuation, thread)? else { continue };
                    note(Path::Lexeme(lexeme), costs.of_stack(self, stack)?.saturating_add(length));
                }
            }
        }
        let text = |path: &Path| match path {
            Path::Lexeme(lexeme) => lexemes.shortest(*lexeme).unwrap_or_default(),
            Path::Token(_) | Path::Repeat { .. } => &[][..],
        };
        let mut paths: Vec<(u64, Path)> = best.into_iter().map(|(path, cost)| (cost, path)).collect();
        paths.retain(|&(cost, _)| cost != NEVER);
        paths.sort_unstable_by(|a, b| (a.0, text(&a.1), a.1).cmp(&(b.0, text(&b.1), b.1)));
        Ok(paths)
    }

    /// Computes a shortest text of a lexeme, if none is known yet.
    pub fn find_shortest_text(
        &mut self,
        costs: &Costs,
        lexemes: &mut Texts,
        lexeme: ExprId,
    ) -> Result<(), EngineError> {
        if let Vacant(unknown) = lexemes.shortest.entry(lexeme) {
            // A text longer than the budget is recognised by this bound without being spelled.
            let too_long = self.lexeme_cache.deriver().exprs.shortest_at_least(lexeme) as usize > STEPS;
            let text = match too_long {
                true if costs.tokens().is_none() => Some(Vec::new()),
                _ => shortest_text(self, lexeme)?,
            };
            let count = match (&text, costs.tokens()) {
                (Some(text), Some(tokens)) => count_in_time(&tokens.vocabulary, text)?,
                _ => 0,
            };
            unknown.insert(text.map(|text| (text, count)));
        }
        Ok(())
    }

    /// Whether a lexeme is complete at a configuration and what follows it can be read, within an array that needs two
    /// equal elements. More of the lexeme is no shorter path then, and a number can always be continued, each time as
    /// near to the end as before.
    fn may_end_towards_repeat(&mut self, configuration: SetId, lexeme: ExprId) -> Result<bool, EngineError> {
        if !self.machine.keeps_text() || !Switch::CompletionRepeat.is_on() {
            return Ok(false);
        }
        let mut threads = self.stacks.entries(configuration).to_vec();
        self.take_text(&mut threads);
        let mut after = Vec::new();
        for thread in threads {
            if thread == Entry::BOTTOM || offers_tokens(thread) || !self.is_towards_repeat(thread) {
                continue;
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            for tag in expansion.accepts(self.lexeme_cache, thread.state).to_vec() {
                if self.lexemes(thread).contains(&(tag, lexeme)) {
                    self.follow(&expansion, tag, thread, &mut after)?;
                }
            }
        }
        Ok(!after.is_empty())
    }

    /// What can be read after a text of a lexeme, which leads from one configuration to another.
    fn found_after(&mut self, before: SetId, lexeme: ExprId, after: SetId) -> Behind {
        if !self.machine.keeps_text() {
            return if after == SetId::EMPTY { Behind::Nothing } else { Behind::New };
        }
        let place = |thread: &Entry| (thread.head, thread.register, thread.below);
        let before = self.stacks.entries(before).to_vec();
        let mut within = Vec::new();
        for &thread in before.iter().filter(|&&thread| thread != Entry::BOTTOM && !offers_tokens(thread)) {
            if self.lexemes(thread).iter().any(|own| own.1 == lexeme) {
                within.push(place(&thread));
            }
        }
        let begins = |thread: &Entry| {
            *thread != Entry::BOTTOM && thread.state == self.machine.fork(ExpansionId(thread.head)).start()
        };
        let mut found = Behind::Nothing;
        for thread in self.stacks.entries(after).iter().filter(|&&thread| !self.machine.is_text(thread)) {
            let mut same = before.iter().filter(|other| place(other) == place(thread)).peekable();
            if same.peek().is_none() || (begins(thread) && !same.any(begins)) {
                return Behind::New;
            }
            if !within.contains(&place(thread)) {
                found = Behind::Known;
            }
        }
        found
    }

    /// Reads one text of a lexeme. Another one is tried later if this one cannot be read because the object already has
    /// the key, if it belongs to another path, or if elements must differ, since each text leaves other ones to the
    /// elements after it.
    fn read_lexeme(
        &mut self,
        frontier: &mut Frontier,
        costs: &Costs,
        lexemes: &mut Texts,
        next: &Next,
        lexeme: ExprId,
    ) -> Result<Option<Step>, EngineError> {
        let Some(shortest) = lexemes.shortest(lexeme).map(<[u8]>::to_vec) else { return Ok(None) };
        let array = self.array_of_element(frontier.places[next.place as usize].configuration, lexeme);
        if next.tried == 0
            && let Some(array) = array
            && Switch::CompletionOrder.is_on()
            && let Some(before) = frontier.element_before(next.place, array, lexeme)
        {
            let deriver = self.lexeme_cache.deriver();
            let Some(text) = lexemes.other(deriver, lexeme, before as usize)? else { return Ok(None) };
            frontier.go_on(costs, next, before + 1, [&shortest, &text]);
            return Ok(None);
        }
        let text = match next.tried.checked_sub(1) {
            None => Some(shortest.clone()),
            Some(at) => lexemes.other(self.lexeme_cache.deriver(), lexeme, at as usize)?,
        };
        let Some(text) = text else { return Ok(None) };
        let place = &frontier.places[next.place as usize];
        let is_known = is_of_another(lexemes, &place.paths, lexeme, &text) || (next.tried > 0 && text == shortest);
        let (mut after, mut found) = (SetId::EMPTY, Behind::Nothing);
        if !is_known || next.tried == 0 {
            after = self.run(place.configuration, &text)?;
            found = self.found_after(place.configuration, lexeme, after);
        }
        let is_tried = match found {
            Behind::New => is_known || self.must_differ(place.configuration),
            Behind::Known => false,
            Behind::Nothing => true,
        };
        if is_tried && next.tried < LOOKED_AT as u32 {
            let other = Next { tried: next.tried + 1, is_unweighed: true, ..*next };
            match Switch::CompletionLazy.is_on() {
                true => frontier.queue.push(Reverse(other)),
                false => self.weigh(frontier, costs, lexemes, other)?,
            }
        }
        let element = array.map(|array| ElementText { array, lexeme, at: next.tried });
        Ok((found == Behind::New).then_some(Step { to: after, piece: Piece::Text(text), element }))
    }

    /// Computes how much longer the next text of a lexeme is than the previous one. This happens only when its turn
    /// comes, since the first text is mostly enough.
    fn weigh(
        &mut self,
        frontier: &mut Frontier,
        costs: &Costs,
        lexemes: &mut Texts,
        next: Next,
    ) -> Result<(), EngineError> {
        let Path::Lexeme(lexeme) = frontier.places[next.place as usize].paths[next.path as usize].1 else {
            return Ok(());
        };
        let deriver = self.lexeme_cache.deriver();
        let at = next.tried as usize - 1;
        let before = match at.checked_sub(1) {
            None => lexemes.shortest(lexeme).map(<[u8]>::to_vec),
            Some(before) => lexemes.other(deriver, lexeme, before)?,
        };
        if let (Some(before), Some(other)) = (before, lexemes.other(deriver, lexeme, at)?) {
            frontier.go_on(costs, &next, next.tried, [&before, &other]);
        }
        Ok(())
    }

    /// Whether the text is within an element that must differ from others.
    fn must_differ(&mut self, configuration: SetId) -> bool {
        if !self.machine.keeps_text() {
            return false;
        }
        let mut arrays = Vec::new();
        for thread in self.stacks.entries(configuration).to_vec() {
            if !self.machine.is_text(thread) {
                self.arrays_around(thread, Machine::unique_items, &mut arrays);
            }
        }
        !arrays.is_empty()
    }
}

/// Texts of a lexeme, the shortest first, computed when needed by a search that passes equal places more often each
/// time.
struct OtherTexts {
    search: Shortest,
    visits: u32,
    texts: Vec<Arc<[u8]>>,
    known: FxHashSet<Arc<[u8]>>,
    /// Whether there are no more texts, or none are searched for: a search that was given up would find a few more each
    /// time.
    are_all: bool,
    /// The bytes of the texts.
    bytes: usize,
}

impl OtherTexts {
    fn new(deriver: &Deriver, lexeme: ExprId) -> OtherTexts {
        let visits = FEW as u32;
        let search = Shortest::new(deriver, lexeme, visits, STEPS);
        OtherTexts { search, visits, texts: Vec::new(), known: FxHashSet::default(), are_all: false, bytes: 0 }
    }

    /// Approximate bytes of memory held.
    fn memory_bytes(&self) -> usize {
        self.search.memory_bytes()
            + memory::of_list(&self.texts)
            + memory::of_table::<Arc<[u8]>>(self.known.capacity())
            + self.bytes
    }

    fn get(&mut self, deriver: &mut Deriver, lexeme: ExprId, at: usize) -> Result<Option<&[u8]>, EngineError> {
        while self.texts.len() <= at && !self.are_all {
            match self.search.next(deriver) {
                Ok(Some(text)) => {
                    let text: Arc<[u8]> = text.into();
                    if self.known.insert(text.clone()) {
                        self.bytes += memory::of_shared::<u8>(text.len());
                        self.texts.push(text);
                    }
                }
                Err(LimitExceeded::Search(_)) | Ok(None) if self.visits < LOOKED_AT as u32 => {
                    self.visits *= 4;
                    self.search = Shortest::new(deriver, lexeme, self.visits, STEPS);
                }
                Err(LimitExceeded::Search(_)) | Ok(None) => self.are_all = true,
                Err(limit) => {
                    // A search that was interrupted is incomplete and starts again.
                    *self = OtherTexts::new(deriver, lexeme);
                    return Err(limit.into());
                }
            }
        }
        Ok(self.texts.get(at).map(|text| &text[..]))
    }
}

/// Whether a text of a lexeme is also the first text of another path from the same place. It leads where that path
/// leads, whatever the lexeme is: a declared key is not an additional one.
fn is_of_another(texts: &Texts, paths: &[(u64, Path)], lexeme: ExprId, text: &[u8]) -> bool {
    paths.iter().any(|&(_, path)| match path {
        Path::Lexeme(other) if other != lexeme => texts.shortest(other) == Some(text),
        _ => false,
    })
}

/// The path that leads to a place.
fn path_to(places: &mut [Reached], mut at: u32) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    while at != 0 {
        let place = &mut places[at as usize];
        pieces.push(std::mem::replace(&mut place.piece, Piece::Token(0)));
        at = place.before;
    }
    pieces.reverse();
    pieces
}
