//! A short text that completes the grammar from where a matcher stands.
//!
//! One lexeme after the other, first the one with which the rest takes the fewest bytes (`query/costs.rs`). What is chosen is then
//! read for real, so that the result is right whatever the estimate; where a way comes out longer than it looked, the next
//! best one is tried. Where many are tried in vain, as the keys of a large object are in every order for one byte that the
//! estimate lacks, the way that looks nearest to the end goes first from then on: a short text instead of the shortest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry::Vacant;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{ExprId, LimitExceeded, Shortest};

use crate::error::{EngineError, MatcherError};
use crate::machine::layout::ExpansionId;
use crate::matcher::GrammarMatcher;
use crate::parse::stepper::{Run, offers_tokens};
use crate::query::costs::{Costs, NEVER};
use crate::state::stacks::{Entry, SetId};

/// The search for one lexeme's text takes at most so many steps.
const MAX_STEPS: usize = 200_000;

/// So many places off the way are looked at for the shortest text, and then one for each place on the way.
const PATIENCE: u32 = 1_000;

/// So often a text for the same lexeme is looked for, where the shortest ones are keys that the object has already.
const MAX_TEXTS: u32 = 1 << 12;

/// What stands in the way of a completion.
enum Completion {
    Text(Vec<u8>),
    TooLong(u64),
    Never,
}

impl GrammarMatcher {
    /// A text that completes the grammar behind what was accepted; empty where it is complete already. It is a shortest
    /// one, except that intersections and complements count with a lower bound of their length where alternatives are
    /// compared, that a key must be new, and that the search for a shorter one ends where it tries too many ways. The same
    /// state gives the same text. Nothing is changed.
    ///
    /// # Errors
    /// [`MatcherError::CompletionTooLong`] when it takes more than `max_bytes`, [`MatcherError::NoTextCompletes`] when only
    /// single tokens that spell no text lead on, and limits.
    pub fn shortest_completion(&mut self, max_bytes: usize) -> Result<Vec<u8>, MatcherError> {
        if self.is_terminated() {
            return Ok(Vec::new());
        }
        let compiled = self.compiled().clone();
        let completion =
            self.probe(|run, start| run.complete(Costs::new(compiled.grammar()), start, max_bytes as u64))?;
        match completion {
            Completion::Text(text) => Ok(text),
            Completion::TooLong(bytes) => Err(MatcherError::CompletionTooLong { bytes, max_bytes }),
            Completion::Never => Err(MatcherError::NoTextCompletes),
        }
    }
}

/// A place that the search for a completion has reached.
struct Reached {
    configuration: SetId,
    /// How many bytes lead there.
    bytes: u64,
    /// The last lexeme's text.
    text: Vec<u8>,
    /// The place before it; the first one's is itself.
    before: u32,
    /// How many lexemes lead there.
    depth: u32,
    /// Best first, with the bytes that the rest takes with each.
    ways: Vec<(u64, ExprId)>,
}

/// A lexeme to go on with: the one that makes the shortest text comes first, then the one furthest on.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    /// Of the whole text, at least; in a hurry, of the rest.
    order: u64,
    /// Of the whole text, at least.
    bytes: u64,
    /// The less the further on its place is: `u64::MAX` without the bytes that lead there.
    left: u64,
    place: u32,
    way: u32,
    /// Whether its shortest text has been tried in vain, as that of a key which the object has already.
    tried: bool,
}

impl Run<'_> {
    /// Best first (A*, Hart, Nilsson and Raphael 1968): what waits on a stack tells too little where the elements of an array
    /// count, so the way that looks shortest need not lead to an end.
    fn complete(&mut self, mut costs: Costs, start: SetId, max_bytes: u64) -> Result<Completion, EngineError> {
        let mut lexemes: FxHashMap<ExprId, Option<Vec<u8>>> = FxHashMap::default();
        let mut places: Vec<Reached> = Vec::new();
        let mut seen: FxHashSet<SetId> = FxHashSet::default();
        let mut queue: BinaryHeap<Reverse<Next>> = BinaryHeap::new();
        let mut reached = Some((start, Vec::new(), 0));
        let (mut deepest, mut hurries, mut too_long) = (0, false, NEVER);
        loop {
            if let Some((configuration, text, before)) = reached.take() {
                let place = places.len() as u32;
                let (bytes, depth) = places.get(before as usize).map_or((0, 0), |place| (place.bytes, place.depth + 1));
                let bytes = bytes + text.len() as u64;
                let ways = match self.stacks.has_bottom(configuration) {
                    true => Vec::new(),
                    false => self.ways(&mut costs, &mut lexemes, configuration)?,
                };
                places.push(Reached { configuration, bytes, text, before, depth, ways });
                if self.stacks.has_bottom(configuration) {
                    return Ok(Completion::Text(text_of(&places, place)));
                }
                let ways = (0..).zip(&places[place as usize].ways);
                queue.extend(ways.map(|(way, &(cost, _))| {
                    let (total, left) = (bytes.saturating_add(cost), u64::MAX - bytes);
                    let order = if hurries { cost } else { total };
                    Reverse(Next { order, bytes: total, left, place, way, tried: false })
                }));
                deepest = deepest.max(depth);
                if !hurries && place > PATIENCE.saturating_add(2 * deepest) {
                    hurries = true;
                    let rest = |next: &Next| next.bytes - places[next.place as usize].bytes;
                    queue =
                        queue.into_iter().map(|Reverse(next)| Reverse(Next { order: rest(&next), ..next })).collect();
                }
            }
            let Some(Reverse(next)) = queue.pop() else {
                return Ok(if too_long == NEVER { Completion::Never } else { Completion::TooLong(too_long) });
            };
            if next.bytes > max_bytes {
                too_long = too_long.min(next.bytes);
                if hurries {
                    continue;
                }
                return Ok(Completion::TooLong(too_long));
            }
            if places.len() > MAX_STEPS {
                return Err(EngineError::CompletionTooCostly(MAX_STEPS));
            }
            let place = &places[next.place as usize];
            let (configuration, lexeme) = (place.configuration, place.ways[next.way as usize].1);
            let found = match next.tried {
                true => self.other_text(configuration, lexeme)?,
                false => match &lexemes[&lexeme] {
                    None => None,
                    Some(text) => match self.run(configuration, text)? {
                        behind if self.has_ended(configuration, behind) => Some((behind, text.clone())),
                        _ => {
                            let (order, bytes) = (next.order + 1, next.bytes + 1);
                            queue.push(Reverse(Next { order, bytes, tried: true, ..next }));
                            None
                        }
                    },
                },
            };
            let found = found.filter(|&(behind, _)| seen.insert(behind));
            reached = found.map(|(behind, text)| (behind, text, next.place));
        }
    }

    /// The lexemes with which the text may go on, best first, and the bytes that the rest takes with each, at least.
    fn ways(
        &mut self,
        costs: &mut Costs,
        lexemes: &mut FxHashMap<ExprId, Option<Vec<u8>>>,
        configuration: SetId,
    ) -> Result<Vec<(u64, ExprId)>, EngineError> {
        let mut best: FxHashMap<ExprId, u64> = FxHashMap::default();
        // Only what waits is looked at: which keys an object has shows when the text is read.
        self.recording = false;
        for thread in self.stacks.entries(configuration).to_vec() {
            if thread == Entry::BOTTOM || offers_tokens(thread) {
                continue;
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            for (tag, lexeme) in self.lexemes(thread) {
                if let Vacant(unknown) = lexemes.entry(lexeme) {
                    let deriver = self.lexeme_cache.deriver();
                    // Longer ones than the budget are found to be too long by this bound, without being spelled.
                    let shortest = deriver.exprs.shortest_at_least(lexeme);
                    unknown.insert(match shortest as usize > MAX_STEPS {
                        true => Some(Vec::new()),
                        false => Shortest::new(deriver, lexeme, 1, MAX_STEPS).next(deriver)?,
                    });
                }
                let Some(text) = &lexemes[&lexeme] else { continue };
                let bound = self.lexeme_cache.deriver().exprs.shortest_at_least(lexeme);
                let length = u64::from(bound).max(text.len() as u64);
                for continuation in self.machine.continuations(&expansion, tag).iter() {
                    let Some(stack) = self.push(&expansion, continuation, thread)? else { continue };
                    let cost = costs.of_stack(self, stack)?.saturating_add(length);
                    let known = best.entry(lexeme).or_insert(NEVER);
                    *known = cost.min(*known);
                }
            }
        }
        self.recording = true;
        let mut ways: Vec<(u64, &[u8], ExprId)> = best
            .iter()
            .map(|(&lexeme, &cost)| (cost, lexemes[&lexeme].as_deref().unwrap_or_default(), lexeme))
            .collect();
        ways.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        Ok(ways.into_iter().filter(|&(cost, ..)| cost != NEVER).map(|(cost, _, lexeme)| (cost, lexeme)).collect())
    }

    /// Whether something can be read behind a lexeme that begins in one configuration and whose text leads to another one.
    /// Where elements must differ, `0` may be one that the array has; then only more of the number is left, and of all its
    /// spellings none may be new.
    fn has_ended(&self, before: SetId, behind: SetId) -> bool {
        if !self.machine.keeps_text() {
            return behind != SetId::EMPTY;
        }
        let place = |thread: &Entry| (thread.head, thread.register, thread.below);
        let threads = self.stacks.entries(behind).iter().filter(|&&thread| !self.machine.is_text(thread));
        threads.map(place).any(|place_of| !self.stacks.entries(before).iter().any(|thread| place(thread) == place_of))
    }

    /// A text of a lexeme that can really be read, and the configuration behind it, where the shortest one cannot: the key is
    /// one that the object has already. Others are found by going through equal places more often.
    fn other_text(&mut self, configuration: SetId, lexeme: ExprId) -> Result<Option<(SetId, Vec<u8>)>, EngineError> {
        let mut visits = 2;
        while visits <= MAX_TEXTS {
            let mut texts = Shortest::new(self.lexeme_cache.deriver(), lexeme, visits, MAX_STEPS);
            for _ in 0..visits {
                let text = match texts.next(self.lexeme_cache.deriver()) {
                    Err(LimitExceeded::Search(_)) | Ok(None) => break,
                    text => text?.unwrap_or_default(),
                };
                let next = self.run(configuration, &text)?;
                if self.has_ended(configuration, next) {
                    return Ok(Some((next, text)));
                }
            }
            visits *= 4;
        }
        Ok(None)
    }
}

/// The text that leads to a place.
fn text_of(places: &[Reached], mut at: u32) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    while at != 0 {
        parts.push(&places[at as usize].text);
        at = places[at as usize].before;
    }
    parts.reverse();
    parts.concat()
}
