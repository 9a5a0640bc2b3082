//! What a text takes that differs from others: for elements that must differ, and for keys of which there are few.
//!
//! Of every part of a grammar two bounds are worked out. Where it has very many texts within a few bytes of the shortest, a new
//! one is among them, however many came before. Where it has few, any of them may be the one that is left, so the longest
//! counts. Where neither is known there is no bound.

use std::collections::hash_map::Entry::Vacant;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_grammar::{Element, ItemsId, KeySpace, Mark, Members, MembersId, Node, NodeId};
use stencilm_regex::{ByteSet, ExprId};

use crate::bounded::{FEW, LOOKED_AT};
use crate::completion::costs::{Measured, known_cost, lexeme_cost, member_cost};
use crate::completion::token_counts::{NEVER, NEW_KEY};
use crate::completion::worst_cases::{has_many_everywhere, longest_at_most};
use crate::error::EngineError;
use crate::parse::stepper::Run;

/// With so many texts one is new, whatever came before: no text has as many elements.
const MANY: u64 = 1 << 16;

/// What a new text takes at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct New {
    /// If there are very many texts; [`NEVER`] where that is not known.
    of_many: u64,
    /// What the longest takes; [`NEVER`] where that is not known.
    longest: u64,
}

const UNKNOWN: New = New { of_many: NEVER, longest: NEVER };

impl New {
    fn least(self) -> u64 {
        self.of_many.min(self.longest)
    }
}

/// What new texts take, of the nodes of a grammar and of the lexemes that are keys.
pub(crate) struct Fresh {
    nodes: Vec<New>,
    lexemes: FxHashMap<ExprId, New>,
}

impl Fresh {
    pub fn new(run: &mut Run<'_>, measured: Measured<'_>, costs: &[u64]) -> Result<Fresh, EngineError> {
        let grammar = measured.grammar;
        let mut lexemes: FxHashMap<ExprId, New> = FxHashMap::default();
        let of_nodes = grammar.nodes().iter().filter_map(|node| match node {
            Node::Lexeme(lexeme) => Some(*lexeme),
            _ => None,
        });
        let of_keys = grammar.all_members().iter().flat_map(|members| members.free.iter().map(|free| free.key));
        for lexeme in of_nodes.chain(of_keys) {
            if let Vacant(unknown) = lexemes.entry(lexeme) {
                let imported = run.lexeme_cache.import(grammar.exprs(), lexeme)?;
                unknown.insert(of_lexeme(run, imported)?);
            }
        }
        let mut fresh = Fresh { nodes: vec![UNKNOWN; grammar.nodes().len()], lexemes };
        for _ in 0..FEW {
            let mut changed = false;
            for index in 0..fresh.nodes.len() {
                let new = fresh.of(measured, costs, NodeId(index as u32));
                changed |= fresh.nodes[index] != new;
                fresh.nodes[index] = new;
            }
            if !changed {
                break;
            }
        }
        Ok(fresh)
    }

    /// What a new text of a node takes at most.
    pub fn of_node(&self, node: NodeId) -> u64 {
        self.nodes[node.0 as usize].least()
    }

    /// What a new text of a lexeme takes at most.
    pub fn of_key(&self, lexeme: ExprId) -> u64 {
        self.lexemes[&lexeme].least()
    }

    fn of(&self, measured: Measured<'_>, costs: &[u64], id: NodeId) -> New {
        let new = |node: &NodeId| self.nodes[node.0 as usize];
        let cost = |node: &NodeId| costs[node.0 as usize];
        match measured.node(id) {
            Node::Lexeme(lexeme) => self.lexemes[lexeme],
            Node::Token(_) => New { of_many: NEVER, longest: 1 },
            Node::Sequence(parts) => {
                let all = sum(parts.iter().map(cost));
                let of_many = parts.iter().map(|part| instead(all, cost(part), new(part).of_many)).min();
                New { of_many: of_many.unwrap_or(NEVER), longest: sum(parts.iter().map(|part| new(part).longest)) }
            }
            Node::Choice(parts) => New {
                of_many: parts.iter().map(|part| new(part).of_many).min().unwrap_or(NEVER),
                longest: parts.iter().map(|part| new(part).longest).max().unwrap_or(NEVER),
            },
            Node::Repeat { max: Some(0), .. } => New { of_many: NEVER, longest: 0 },
            Node::Repeat { body, min, max } => New {
                of_many: times(min.saturating_sub(1), cost(body)).saturating_add(new(body).of_many),
                longest: max.map_or(NEVER, |max| times(max, new(body).longest)),
            },
            Node::Marked { mark: Mark::Refers(_), .. } => UNKNOWN,
            Node::Marked { body, .. } => new(body),
            Node::Rule(rule) => new(&measured.rule(*rule).body),
            Node::Items(items) => self.of_array(measured, costs, *items),
            Node::Members(members) => self.of_object(measured, costs, *members),
        }
    }

    fn of_array(&self, measured: Measured<'_>, costs: &[u64], id: ItemsId) -> New {
        let items = measured.items(id);
        let new = |element: &Element| self.nodes[element.value.0 as usize];
        let lexeme = |lexeme: ExprId| lexeme_cost(measured, lexeme);
        let surface = items.surface;
        let around = sum([surface.empty, surface.open, surface.close].map(lexeme));
        let item = lexeme(surface.item);
        let longest = items.elements().map(|element| new(element).longest).max().unwrap_or(0);
        let longest = items.max.map_or(NEVER, |max| times(max, longest.saturating_add(item)));
        let costs = items.elements().map(|element| costs[element.value.0 as usize]);
        let dearest = match items.is_unique() {
            // They differ from each other.
            true => items.elements().map(|element| new(element).of_many).max(),
            false => costs.filter(|&cost| cost != NEVER).max(),
        };
        // One element that is new makes the array new; those before it are any, but for two that must be equal.
        let equal = if items.must_repeat() { 2 } else { 0 };
        let before = (items.prefix.len() as u32).saturating_add(equal).max(items.min);
        let others = times(before, dearest.unwrap_or(0).saturating_add(item));
        let has_room = items.max.is_none_or(|max| max > before);
        let of_many = match items.contains.is_empty() && has_room {
            true => items.rest.iter().map(|element| new(element).of_many).min().unwrap_or(NEVER),
            false => NEVER,
        };
        New { of_many: sum([of_many, others, item, around]), longest: longest.saturating_add(around) }
    }

    fn of_object(&self, measured: Measured<'_>, costs: &[u64], id: MembersId) -> New {
        let members = measured.members(id);
        let surface = members.surface;
        let value = |node: NodeId| (costs[node.0 as usize], self.nodes[node.0 as usize]);
        let lexeme = |lexeme: ExprId| lexeme_cost(measured, lexeme);
        let item = lexeme(surface.item);
        let around = sum([surface.empty, surface.open, surface.close].map(lexeme));
        let known = |known: &stencilm_grammar::KnownMember| known_cost(measured, costs, members, known);
        // All that must be there, and one member whose value, or key, is new.
        let required =
            sum(members.known.iter().filter(|member| member.required).map(|one| known(one).saturating_add(item)));
        let some = members.free.iter().filter_map(|free| free.some.map(|some| (free.key, some)));
        let some = sum(some.map(|(key, some)| member_cost(measured, costs, members, key, some).saturating_add(item)));
        let has_room =
            members.max.is_none() && members.min as usize <= members.known.iter().filter(|one| one.required).count();
        let of_known = members.known.iter().filter(|one| one.required || has_room).map(|one| {
            let (cost, new) = value(one.value);
            instead(known(one), cost, new.of_many)
        });
        let of_free = members.free.iter().filter(|_| has_room).map(|free| {
            let key = self.lexemes[&free.key].of_many;
            sum([key, lexeme(surface.colon), costs[free.value.0 as usize]])
        });
        let of_many = of_known.chain(of_free).min().unwrap_or(NEVER);
        let longest = match members.free.is_empty() {
            true => sum(members.known.iter().map(|one| {
                let (cost, new) = value(one.value);
                instead(known(one), cost, new.longest).saturating_add(item)
            })),
            false => NEVER,
        };
        New { of_many: sum([of_many, required, some, item, around]), longest: longest.saturating_add(around) }
    }
}

fn sum(costs: impl IntoIterator<Item = u64>) -> u64 {
    costs.into_iter().fold(0, u64::saturating_add)
}

fn times(count: u32, cost: u64) -> u64 {
    if count == 0 { 0 } else { cost.saturating_mul(u64::from(count)) }
}

/// A sum with one part of it put in the place of another.
fn instead(all: u64, old: u64, new: u64) -> u64 {
    if all == NEVER || new == NEVER { NEVER } else { (all - old).saturating_add(new) }
}

/// What a new match of a lexeme takes, in bytes, which are no fewer than the tokens that spell it.
fn of_lexeme(run: &mut Run<'_>, lexeme: ExprId) -> Result<New, EngineError> {
    let shortest = run.lexeme_cache.deriver().exprs.shortest_at_least(lexeme);
    let within = u64::from(shortest).saturating_add(NEW_KEY);
    let of_many = match shortest as usize <= LOOKED_AT && has_many(run, lexeme, within)? {
        true => within,
        false => NEVER,
    };
    Ok(New { of_many, longest: longest(run, lexeme)? })
}

/// Whether keys of a class that never run out may always become new ones with few bytes more than the shortest takes, wherever in
/// one a text is. Under `^a+$` they may not: the hundredth takes a hundred.
pub(crate) fn are_new_keys_near(run: &mut Run<'_>, members: &Members) -> Result<bool, EngineError> {
    let grammar = run.machine.grammar().clone();
    for free in members.free.iter().filter(|free| free.space == KeySpace::Endless) {
        let key = run.lexeme_cache.import(grammar.exprs(), free.key)?;
        if !has_many_everywhere(run, key, MANY, NEW_KEY)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn live_derivatives(run: &mut Run<'_>, place: ExprId) -> Result<Vec<(ByteSet, ExprId)>, EngineError> {
    let deriver = run.lexeme_cache.deriver();
    let mut live = Vec::new();
    for (bytes, rest) in deriver.derivatives(place)?.iter() {
        if deriver.is_live(*rest)? {
            live.push((*bytes, *rest));
        }
    }
    Ok(live)
}

/// Whether a lexeme has very many matches with so many bytes, or fewer.
fn has_many(run: &mut Run<'_>, lexeme: ExprId, bytes: u64) -> Result<bool, EngineError> {
    let mut layer: FxHashMap<ExprId, u64> = FxHashMap::from_iter([(lexeme, 1)]);
    let mut found = 0u64;
    for length in 0..=bytes {
        let exprs = &run.lexeme_cache.deriver().exprs;
        let ending = layer.iter().filter(|&(&place, _)| exprs.is_nullable(place)).map(|(_, &count)| count);
        found = found.saturating_add(sum(ending));
        if found >= MANY {
            return Ok(true);
        }
        if length == bytes || layer.len() > LOOKED_AT {
            return Ok(false);
        }
        let mut next: FxHashMap<ExprId, u64> = FxHashMap::default();
        for (place, count) in layer {
            for (set, rest) in live_derivatives(run, place)? {
                let more = count.saturating_mul(set.len() as u64);
                let known = next.entry(rest).or_default();
                *known = known.saturating_add(more);
            }
        }
        layer = next;
    }
    Ok(false)
}

/// The bytes of the longest match, or some more; [`NEVER`] where there is none, or many places to look at.
fn longest(run: &mut Run<'_>, lexeme: ExprId) -> Result<u64, EngineError> {
    let plain = longest_at_most(run, lexeme, &mut FxHashMap::default());
    // What a program tells leaves a place for each of its texts.
    if plain != NEVER || run.lexeme_cache.deriver().exprs.has_language(lexeme) {
        return Ok(plain);
    }
    // Depth first: a place that is met again on the way down is one that matches go round.
    let mut known: FxHashMap<ExprId, u64> = FxHashMap::default();
    let mut under_way: FxHashSet<ExprId> = FxHashSet::default();
    let mut work = vec![lexeme];
    while let Some(&place) = work.last() {
        if known.contains_key(&place) {
            work.pop();
            continue;
        }
        if known.len() + under_way.len() > LOOKED_AT {
            return Ok(NEVER);
        }
        let next = live_derivatives(run, place)?;
        if under_way.insert(place) {
            for (_, rest) in &next {
                if under_way.contains(rest) && !known.contains_key(rest) {
                    return Ok(NEVER);
                }
            }
            work.extend(next.iter().map(|(_, rest)| *rest).filter(|rest| !known.contains_key(rest)));
            continue;
        }
        let behind = next.iter().map(|(_, rest)| known.get(rest).map_or(0, |longest| longest + 1));
        known.insert(place, behind.max().unwrap_or(0));
        under_way.remove(&place);
        work.pop();
    }
    Ok(known[&lexeme])
}
