//! A short way to the end of a text.
//!
//! One lexeme after the other, first the one with which the rest takes the fewest bytes or tokens (`completion/costs.rs`). What is
//! chosen is then read for real, so that the result is right whatever the estimate; where a way comes out longer than it looked,
//! the next best one is tried. Where many are tried in vain, as the keys of a large object are in every order for one byte that
//! the estimate lacks, the way that looks nearest to the end goes first from then on: a short way instead of the shortest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry::Vacant;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{ExprId, LimitExceeded, Shortest};

use crate::bounded::{LOOKED_AT, STEPS};
use crate::completion::costs::Costs;
use crate::completion::token_counts::{NEVER, count_of, fewest_tokens, shortest_text};
use crate::distinct::elements::{Repeat, Spelled};
use crate::error::EngineError;
use crate::machine::layout::ExpansionId;
use crate::parse::stepper::{Mode, Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};
use crate::vocabulary::tokens::Tokens;

/// A part of a way to the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    Text(Vec<u8>),
    /// A token that the grammar asks for by its name or id.
    Token(u32),
}

/// What a search for a way to the end has found.
pub(crate) enum Completion {
    Found(Vec<Piece>),
    /// Every way takes so much at least.
    TooLong(u64),
    Never,
}

/// The fewest tokens for a way; `None` where some byte has no token.
pub(crate) fn tokens_of(vocabulary: &Tokens, pieces: &[Piece]) -> Option<Vec<u32>> {
    let (mut tokens, mut text) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Text(more) => text.extend_from_slice(more),
            Piece::Token(token) => {
                tokens.extend(fewest_tokens(vocabulary, &text)?);
                text.clear();
                tokens.push(*token);
            }
        }
    }
    tokens.extend(fewest_tokens(vocabulary, &text)?);
    Some(tokens)
}

/// Shortest texts of lexemes, with what they take in tokens where these are counted.
pub(crate) type Texts = FxHashMap<ExprId, Option<(Vec<u8>, u64)>>;

/// With what a text may go on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Way {
    Lexeme(ExprId),
    Token(u32),
    /// What is left behind so many bytes of an element that the array has already, where two must be equal.
    Repeat {
        spelled: Spelled,
        written: u32,
    },
}

/// What goes on behind a text of a lexeme.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    New,
    /// What goes on where the lexeme stands, too, for it is complete there: of a number, another spelling.
    Known,
    /// Only more of the lexeme. Where elements must differ, `0` may be one that the array has, and of all its spellings none may
    /// be new.
    Nothing,
}

/// A place that the search for a completion has reached.
struct Reached {
    configuration: SetId,
    /// What it takes to get there.
    cost: u64,
    /// The last part of the way there.
    piece: Piece,
    /// The place before it; the first one's is itself.
    before: u32,
    /// How many lexemes lead there.
    depth: u32,
    /// Best first, with what the rest takes with each.
    ways: Vec<(u64, Way)>,
}

/// A lexeme to go on with: the one that makes the shortest text comes first, then the one furthest on.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    /// Of the whole text, at least; in a hurry, of the rest.
    order: u64,
    /// Of the whole text, at least.
    total: u64,
    /// The less the further on its place is: `u64::MAX` without what leads there.
    left: u64,
    place: u32,
    way: u32,
    /// Whether its shortest text has been tried and another one is wanted: that was a key which the object has already, or one that it
    /// declares.
    tried: bool,
}

/// The places reached so far, and the lexemes to go on with.
#[derive(Default)]
struct Frontier {
    places: Vec<Reached>,
    queue: BinaryHeap<Reverse<Next>>,
    /// How many lexemes lead to the place that is furthest on.
    deepest: u32,
    /// Whether it has taken so long that any end will do.
    hurries: bool,
}

impl Frontier {
    /// Adds a place that was reached by a piece of text from the one `before`, and what it goes on with.
    fn add(&mut self, costs: &Costs, configuration: SetId, piece: Piece, before: u32, ways: Vec<(u64, Way)>) -> u32 {
        let place = self.places.len() as u32;
        let (cost, depth) = self.places.get(before as usize).map_or((0, 0), |place| (place.cost, place.depth + 1));
        let cost = cost.saturating_add(match &piece {
            Piece::Token(_) => 1,
            Piece::Text(text) => costs.of_text(text),
        });
        let hurries = self.hurries;
        self.queue.extend((0..).zip(&ways).map(|(way, &(rest, _))| {
            let (total, left) = (cost.saturating_add(rest), u64::MAX - cost);
            let order = if hurries { rest } else { total };
            Reverse(Next { order, total, left, place, way, tried: false })
        }));
        self.places.push(Reached { configuration, cost, piece, before, depth, ways });
        self.deepest = self.deepest.max(depth);
        if !self.hurries && place > (LOOKED_AT as u32).saturating_add(2 * self.deepest) {
            self.hurries = true;
            let rest = |next: &Next| next.total.saturating_sub(self.places[next.place as usize].cost);
            let queue = std::mem::take(&mut self.queue).into_iter();
            self.queue = queue.map(|Reverse(next)| Reverse(Next { order: rest(&next), ..next })).collect();
        }
        place
    }
}

impl Run<'_> {
    /// Best first (A*, Hart, Nilsson and Raphael 1968): what waits on a stack tells too little where the elements of an array
    /// count, so the way that looks shortest need not lead to an end.
    pub fn complete(&mut self, costs: &mut Costs, start: SetId, most: u64) -> Result<Completion, EngineError> {
        self.complete_with(costs, &mut Texts::default(), start, most, STEPS)
    }

    /// The same with texts of lexemes that are known already, and a look at so many places at most.
    pub fn complete_with(
        &mut self,
        costs: &mut Costs,
        lexemes: &mut Texts,
        start: SetId,
        most: u64,
        max_places: usize,
    ) -> Result<Completion, EngineError> {
        let mut frontier = Frontier::default();
        let mut seen: FxHashSet<SetId> = FxHashSet::default();
        let mut reached = Some((start, Piece::Text(Vec::new()), 0));
        let mut too_long = NEVER;
        loop {
            if let Some((configuration, piece, before)) = reached.take() {
                let is_end = self.stacks.has_bottom(configuration);
                let ways = if is_end { Vec::new() } else { self.ways(costs, lexemes, configuration)? };
                let place = frontier.add(costs, configuration, piece, before, ways);
                if is_end {
                    return Ok(Completion::Found(way_to(&mut frontier.places, place)));
                }
            }
            let Some(Reverse(next)) = frontier.queue.pop() else {
                return Ok(if too_long == NEVER { Completion::Never } else { Completion::TooLong(too_long) });
            };
            if next.total > most {
                too_long = too_long.min(next.total);
                if frontier.hurries {
                    continue;
                }
                return Ok(Completion::TooLong(too_long));
            }
            if frontier.places.len() > max_places {
                return Err(EngineError::CompletionTooCostly(max_places));
            }
            let place = &frontier.places[next.place as usize];
            let (configuration, lexeme) = (place.configuration, place.ways[next.way as usize].1);
            let found = match lexeme {
                Way::Token(token) => match self.step_token(configuration, token, None)? {
                    SetId::EMPTY => None,
                    behind => Some((behind, Piece::Token(token))),
                },
                Way::Repeat { spelled, written } => {
                    let rest = spelled.text(self.stacks).split_off(written as usize);
                    let behind = self.run(configuration, &rest)?;
                    (behind != SetId::EMPTY).then_some((behind, Piece::Text(rest)))
                }
                Way::Lexeme(lexeme) if self.may_end_towards_repeat(configuration, lexeme)? => None,
                Way::Lexeme(lexeme) if next.tried => {
                    let is_new = |text: &[u8]| !is_of_another(lexemes, &place.ways, lexeme, text);
                    self.other_text(configuration, lexeme, is_new)?
                }
                Way::Lexeme(lexeme) => match &lexemes[&lexeme] {
                    None => None,
                    Some((text, _)) => {
                        let behind = self.run(configuration, text)?;
                        let found = self.found_behind(configuration, lexeme, behind);
                        let is_tried = match found {
                            Behind::New => is_of_another(lexemes, &place.ways, lexeme, text),
                            Behind::Known => false,
                            Behind::Nothing => true,
                        };
                        if is_tried {
                            let (order, total) = (next.order + 1, next.total + 1);
                            frontier.queue.push(Reverse(Next { order, total, tried: true, ..next }));
                        }
                        (found == Behind::New).then(|| (behind, Piece::Text(text.clone())))
                    }
                },
            };
            let found = found.filter(|&(behind, _)| seen.insert(behind));
            reached = found.map(|(behind, piece)| (behind, piece, next.place));
        }
    }

    /// The lexemes and tokens with which the text may go on, best first, and what the rest takes with each: where bytes are
    /// counted at least, where tokens are counted at most, as far as keys and elements are new.
    pub fn ways(
        &mut self,
        costs: &mut Costs,
        lexemes: &mut Texts,
        configuration: SetId,
    ) -> Result<Vec<(u64, Way)>, EngineError> {
        // Only what waits is looked at: which keys an object has shows when the text is read.
        self.in_mode(Mode::Optimistic, |run| run.ways_if_new(costs, lexemes, configuration))
    }

    fn ways_if_new(
        &mut self,
        costs: &mut Costs,
        lexemes: &mut Texts,
        configuration: SetId,
    ) -> Result<Vec<(u64, Way)>, EngineError> {
        let mut best: FxHashMap<Way, u64> = FxHashMap::default();
        let mut note = |way: Way, cost: u64| {
            let known = best.entry(way).or_insert(NEVER);
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
                let behind = costs.of_stack(self, below)?.saturating_add(costs.of_end(self.machine.grammar(), items));
                let length = costs.of_text(&spelled.text(self.stacks)[written as usize..]);
                note(Way::Repeat { spelled, written }, behind.saturating_add(length));
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            if offers_tokens(thread) {
                if costs.tokens().is_none() {
                    continue;
                }
                for (node, continuation) in &expansion.tokens {
                    let Some(token) = self.machine.tokens.ids(*node).iter().next() else { continue };
                    let Some(stack) = self.push(&expansion, continuation, thread)? else { continue };
                    note(Way::Token(token), costs.of_stack(self, stack)?.saturating_add(1));
                }
                continue;
            }
            for (tag, lexeme) in self.lexemes(thread) {
                if let Vacant(unknown) = lexemes.entry(lexeme) {
                    // Longer ones than the budget are found to be too long by this bound, without being spelled.
                    let too_long = self.lexeme_cache.deriver().exprs.shortest_at_least(lexeme) as usize > STEPS;
                    let text = match too_long {
                        true if costs.tokens().is_none() => Some(Vec::new()),
                        _ => shortest_text(self, lexeme)?,
                    };
                    let counted = text.map(|text| {
                        let count = costs.tokens().map_or(0, |tokens| count_of(&tokens.vocabulary, &text));
                        (text, count)
                    });
                    unknown.insert(counted);
                }
                let Some((text, count)) = &lexemes[&lexeme] else { continue };
                let length = match costs.tokens() {
                    Some(_) => *count,
                    None => {
                        let bound = self.lexeme_cache.deriver().exprs.shortest_at_least(lexeme);
                        u64::from(bound).max(text.len() as u64)
                    }
                };
                for continuation in self.machine.continuations(&expansion, tag).iter() {
                    let Some(stack) = self.push(&expansion, continuation, thread)? else { continue };
                    note(Way::Lexeme(lexeme), costs.of_stack(self, stack)?.saturating_add(length));
                }
            }
        }
        let text = |way: &Way| match way {
            Way::Lexeme(lexeme) => lexemes[lexeme].as_ref().map_or(&[][..], |(text, _)| text),
            Way::Token(_) | Way::Repeat { .. } => &[][..],
        };
        let mut ways: Vec<(u64, Way)> = best.into_iter().map(|(way, cost)| (cost, way)).collect();
        ways.retain(|&(cost, _)| cost != NEVER);
        ways.sort_unstable_by(|a, b| (a.0, text(&a.1), a.1).cmp(&(b.0, text(&b.1), b.1)));
        Ok(ways)
    }

    /// Whether a lexeme is complete at a configuration, so that what is behind it goes on there, within an array of which two
    /// elements must be equal. More of it is no shorter way then, and of a number there is ever more, each as near to the end as
    /// the one before.
    fn may_end_towards_repeat(&mut self, configuration: SetId, lexeme: ExprId) -> Result<bool, EngineError> {
        if !self.machine.keeps_text() {
            return Ok(false);
        }
        let mut threads = self.stacks.entries(configuration).to_vec();
        self.take_text(&mut threads);
        let mut behind = Vec::new();
        for thread in threads {
            if thread == Entry::BOTTOM || offers_tokens(thread) || !self.is_towards_repeat(thread) {
                continue;
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            for tag in expansion.accepts(self.lexeme_cache, thread.state).to_vec() {
                if self.lexemes(thread).contains(&(tag, lexeme)) {
                    self.follow(&expansion, tag, thread, &mut behind)?;
                }
            }
        }
        Ok(!behind.is_empty())
    }

    /// What can be read behind a lexeme that begins in one configuration and whose text leads to another one.
    fn found_behind(&mut self, before: SetId, lexeme: ExprId, behind: SetId) -> Behind {
        if !self.machine.keeps_text() {
            return if behind == SetId::EMPTY { Behind::Nothing } else { Behind::New };
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
        for thread in self.stacks.entries(behind).iter().filter(|&&thread| !self.machine.is_text(thread)) {
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

    /// A new text of a lexeme that can really be read, and the configuration behind it, where the shortest one cannot: the key is
    /// one that the object has already. Others are found by going through equal places more often.
    fn other_text(
        &mut self,
        configuration: SetId,
        lexeme: ExprId,
        is_new: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<(SetId, Piece)>, EngineError> {
        let mut visits = 2;
        while visits <= LOOKED_AT as u32 {
            let mut texts = Shortest::new(self.lexeme_cache.deriver(), lexeme, visits, STEPS);
            for _ in 0..visits {
                let text = match texts.next(self.lexeme_cache.deriver()) {
                    Err(LimitExceeded::Search(_)) | Ok(None) => break,
                    text => text?.unwrap_or_default(),
                };
                if !is_new(&text) {
                    continue;
                }
                let next = self.run(configuration, &text)?;
                if self.found_behind(configuration, lexeme, next) == Behind::New {
                    return Ok(Some((next, Piece::Text(text))));
                }
            }
            visits *= 4;
        }
        Ok(None)
    }
}

/// Whether a text of a lexeme is the one that another way from the same place begins with. It leads where that way leads,
/// whatever the lexeme: a key that an object declares is none of its additional ones.
fn is_of_another(texts: &Texts, ways: &[(u64, Way)], lexeme: ExprId, text: &[u8]) -> bool {
    ways.iter().any(|&(_, way)| match way {
        Way::Lexeme(other) if other != lexeme => texts[&other].as_ref().is_some_and(|(other, _)| other == text),
        _ => false,
    })
}

/// The way that leads to a place.
fn way_to(places: &mut [Reached], mut at: u32) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    while at != 0 {
        let place = &mut places[at as usize];
        pieces.push(std::mem::replace(&mut place.piece, Piece::Token(0)));
        at = place.before;
    }
    pieces.reverse();
    pieces
}
