//! The cost of a text that must differ from others: for elements that must be new, and for keys of which there are few.
//!
//! For every part of a grammar, two bounds are computed. If it has very many texts within a few bytes of the shortest,
//! a new one is among them, however many came before. If it has few, any of them may be the only one left, so the
//! longest counts. If neither is known, there is no bound.

use std::collections::hash_map::Entry::Vacant;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_grammar::{Element, Grammar, Items, ItemsId, KeySpace, Mark, Members, MembersId, Node, NodeId};
use stencilm_regex::{ByteSet, Deriver, ExprId};
use stencilm_support::{FEW, LOOKED_AT, SEARCHED, check_time, check_time_after};

use crate::completion::costs::{Measured, NewKeys, known_cost, lexeme_cost, member_cost, sum, times, width};
use crate::completion::token_counts::{NEVER, NEW_KEY, count_of};
use crate::completion::worst_cases::{has_many_everywhere, longest_at_most};
use crate::distinct::number_counts::{NumberSteps, Part};
use crate::error::EngineError;
use crate::parse::stepper::Run;

/// Among this many texts, one is always new, because no text has that many elements.
const MANY: u64 = 1 << 16;

/// Upper bounds on the cost of a new text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct New {
    /// If there are very many texts; [`NEVER`] where that is not known.
    of_many: u64,
    /// The cost of the longest text; [`NEVER`] where that is not known.
    longest: u64,
}

const UNKNOWN: New = New { of_many: NEVER, longest: NEVER };

impl New {
    fn least(self) -> u64 {
        self.of_many.min(self.longest)
    }
}

/// The costs of new texts of the lexemes of a grammar.
pub(crate) struct NewLexemes(FxHashMap<ExprId, New>);

impl NewLexemes {
    pub fn new(run: &mut Run<'_>, grammar: &Grammar) -> Result<NewLexemes, EngineError> {
        let mut lexemes: FxHashMap<ExprId, New> = FxHashMap::default();
        let of_nodes = grammar.nodes().iter().filter_map(|node| match node {
            Node::Lexeme(lexeme) => Some(*lexeme),
            _ => None,
        });
        let of_keys =
            grammar.all_members().iter().flat_map(|members| members.additional.iter().map(|additional| additional.key));
        for lexeme in of_nodes.chain(of_keys) {
            check_time()?;
            if let Vacant(unknown) = lexemes.entry(lexeme) {
                let imported = run.lexeme_cache.import(grammar.exprs(), lexeme)?;
                unknown.insert(of_lexeme(run, imported)?);
            }
        }
        Ok(NewLexemes(lexemes))
    }

    /// An upper bound on the cost of a new text of a lexeme.
    pub fn of_key(&self, lexeme: ExprId) -> u64 {
        self.0[&lexeme].least()
    }

    /// The same for all lexemes.
    pub fn costs(&self) -> NewKeys {
        self.0.keys().map(|&lexeme| (lexeme, self.of_key(lexeme))).collect()
    }
}

/// The costs of new texts, for the nodes of a grammar and for the lexemes that are keys.
pub(crate) struct Fresh {
    nodes: Vec<New>,
    pub lexemes: Arc<NewLexemes>,
    /// For arrays whose elements must differ: the costs of the possible values, the greatest first, with the number of
    /// values at each cost; empty unless all values are known.
    values: Vec<Vec<(u64, u64)>>,
}

impl Fresh {
    pub fn new(
        run: &mut Run<'_>,
        measured: Measured<'_>,
        costs: &[u64],
        lexemes: Arc<NewLexemes>,
    ) -> Result<Fresh, EngineError> {
        let grammar = measured.grammar;
        let values =
            grammar.all_items().iter().map(|items| values_of(run, measured, items)).collect::<Result<_, _>>()?;
        let mut fresh = Fresh { nodes: vec![UNKNOWN; grammar.nodes().len()], lexemes, values };
        for _ in 0..FEW {
            let mut changed = false;
            for index in 0..fresh.nodes.len() {
                check_time_after(width(measured, measured.node(NodeId(index as u32))))?;
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

    /// An upper bound on the cost of a new text of a node.
    pub fn of_node(&self, node: NodeId) -> u64 {
        self.nodes[node.0 as usize].least()
    }

    /// The costs of the possible values of an array's elements, the greatest first, with the number of values at each
    /// cost; empty where these are not known.
    pub fn of_values(&self, id: ItemsId) -> &[(u64, u64)] {
        &self.values[id.0 as usize]
    }

    fn of(&self, measured: Measured<'_>, costs: &[u64], id: NodeId) -> New {
        let new = |node: &NodeId| self.nodes[node.0 as usize];
        let cost = |node: &NodeId| costs[node.0 as usize];
        match measured.node(id) {
            Node::Lexeme(lexeme) => self.lexemes.0[lexeme],
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
        // One new element makes the array new. The elements before it are arbitrary, except that two must be equal if
        // the array requires that.
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
        let known = |known: &stencilm_grammar::DeclaredMember| known_cost(measured, costs, members, known);
        // All required members, and one member with a new value or key.
        let required =
            sum(members.declared.iter().filter(|member| member.required).map(|one| known(one).saturating_add(item)));
        let some =
            members.additional.iter().filter_map(|additional| additional.some.map(|some| (additional.key, some)));
        let some = sum(some.map(|(key, some)| member_cost(measured, costs, members, key, some).saturating_add(item)));
        let has_room =
            members.max.is_none() && members.min as usize <= members.declared.iter().filter(|one| one.required).count();
        let of_known = members.declared.iter().filter(|one| one.required || has_room).map(|one| {
            let (cost, new) = value(one.value);
            instead(known(one), cost, new.of_many)
        });
        let of_additional = members.additional.iter().filter(|_| has_room).map(|additional| {
            let key = self.lexemes.0[&additional.key].of_many;
            sum([key, lexeme(surface.colon), costs[additional.value.0 as usize]])
        });
        let of_many = of_known.chain(of_additional).min().unwrap_or(NEVER);
        let longest = match members.additional.is_empty() {
            true => sum(members.declared.iter().map(|one| {
                let (cost, new) = value(one.value);
                instead(known(one), cost, new.longest).saturating_add(item)
            })),
            false => NEVER,
        };
        New { of_many: sum([of_many, required, some, item, around]), longest: longest.saturating_add(around) }
    }
}

/// The costs of the possible values of an array's elements, as in [`Fresh::of_values`].
fn values_of(run: &mut Run<'_>, measured: Measured<'_>, items: &Items) -> Result<Vec<(u64, u64)>, EngineError> {
    if !items.is_unique() {
        return Ok(Vec::new());
    }
    let mut lexemes = Vec::new();
    for element in items.elements() {
        let Some(more) = lexemes_of_value(measured, element.value) else { return Ok(Vec::new()) };
        lexemes.extend(more);
    }
    lexemes.sort_unstable();
    lexemes.dedup();
    let mut counts: FxHashMap<u64, u64> = FxHashMap::default();
    for lexeme in lexemes {
        let lexeme = run.lexeme_cache.import(measured.grammar.exprs(), lexeme)?;
        let Some(texts) = texts(run.lexeme_cache.deriver(), lexeme)? else { return Ok(Vec::new()) };
        for text in texts {
            let cost = measured.tokens.map_or(text.len() as u64, |tokens| count_of(&tokens.vocabulary, &text));
            *counts.entry(cost).or_default() += 1;
        }
    }
    let mut all: Vec<(u64, u64)> = counts.into_iter().collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    Ok(all)
}

/// The lexemes that a value may be; `None` where it may be more than a single lexeme.
fn lexemes_of_value(measured: Measured<'_>, value: NodeId) -> Option<Vec<ExprId>> {
    let (mut lexemes, mut work, mut seen) = (Vec::new(), vec![value], Vec::new());
    while let Some(node) = work.pop() {
        if seen.contains(&node) {
            continue;
        }
        if seen.len() > FEW {
            return None;
        }
        seen.push(node);
        match measured.node(node) {
            Node::Lexeme(lexeme) => lexemes.push(*lexeme),
            Node::Choice(parts) => work.extend(parts),
            Node::Rule(rule) => work.push(measured.rule(*rule).body),
            _ => return None,
        }
    }
    Some(lexemes)
}

/// A sum in which one part is replaced.
fn instead(all: u64, old: u64, new: u64) -> u64 {
    if all == NEVER || new == NEVER { NEVER } else { (all - old).saturating_add(new) }
}

/// The cost of a new match of a lexeme in bytes, which is no less than the number of tokens that spell it.
fn of_lexeme(run: &mut Run<'_>, lexeme: ExprId) -> Result<New, EngineError> {
    let shortest = run.lexeme_cache.deriver().exprs.shortest_at_least(lexeme);
    let within = u64::from(shortest).saturating_add(NEW_KEY);
    let of_many = match shortest as usize <= LOOKED_AT && has_many(run, lexeme, within)? {
        true => within,
        false => NEVER,
    };
    Ok(New { of_many, longest: longest(run.lexeme_cache.deriver(), lexeme)? })
}

/// Whether additional keys that never run out can be made new with a few bytes more than the shortest completion, from
/// every prefix. With `^a+$` they cannot: the hundredth key needs a hundred bytes.
pub(crate) fn are_new_keys_near(run: &mut Run<'_>, members: &Members) -> Result<bool, EngineError> {
    let grammar = run.machine.grammar().clone();
    for additional in members.additional.iter().filter(|additional| additional.space == KeySpace::Infinite) {
        let key = run.lexeme_cache.import(grammar.exprs(), additional.key)?;
        if !has_many_everywhere(run, key, MANY, NEW_KEY)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn live_derivatives(deriver: &mut Deriver, place: ExprId) -> Result<Vec<(ByteSet, ExprId)>, EngineError> {
    let mut live = Vec::new();
    for (bytes, rest) in deriver.derivatives(place)?.iter() {
        if deriver.is_live(*rest)? {
            live.push((*bytes, *rest));
        }
    }
    Ok(live)
}

/// Whether a lexeme has very many matches of at most `bytes` bytes.
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
            for (set, rest) in live_derivatives(run.lexeme_cache.deriver(), place)? {
                let more = count.saturating_mul(set.len() as u64);
                let known = next.entry(rest).or_default();
                *known = known.saturating_add(more);
            }
        }
        layer = next;
    }
    Ok(false)
}

/// An upper bound on the bytes of the longest match; for numbers, of the longest among the shortest texts of the
/// values. [`NEVER`] where there is no longest one, or where too many states would have to be visited.
fn longest(deriver: &mut Deriver, lexeme: ExprId) -> Result<u64, EngineError> {
    let plain = longest_at_most(&deriver.exprs, lexeme, &mut FxHashMap::default())?;
    // A language decided by a program has a different residual for each of its texts.
    if plain != NEVER || deriver.exprs.has_language(lexeme) {
        return Ok(plain);
    }
    let of_texts = longest_path(lexeme, |place| {
        let live = live_derivatives(deriver, place)?;
        Ok(Some((0, live.into_iter().map(|(_, rest)| rest).collect())))
    })?;
    if let Some(longest) = of_texts {
        return Ok(longest);
    }
    // A number may have any number of zeros after its point.
    let of_values = longest_path((lexeme, Part::Sign), |place| {
        let steps = NumberSteps::of(deriver, place)?;
        Ok(steps.map(|steps| (steps.zeros.unwrap_or(0), steps.digits.into_iter().map(|(_, to)| to).collect())))
    })?;
    Ok(of_values.unwrap_or(NEVER))
}

/// The greatest number of steps from a place, including those that end it; `None` where paths are circular or there are
/// too many places. `next` returns the number of steps that end a place, and the places one step away.
fn longest_path<P: Copy + Eq + Hash>(
    from: P,
    mut next: impl FnMut(P) -> Result<Option<(u64, Vec<P>)>, EngineError>,
) -> Result<Option<u64>, EngineError> {
    // In a depth-first search, a place that is reached again on its own path is on a cycle.
    let mut known: FxHashMap<P, u64> = FxHashMap::default();
    let mut under_way: FxHashMap<P, (u64, Vec<P>)> = FxHashMap::default();
    let mut work = vec![from];
    while let Some(&place) = work.last() {
        if known.contains_key(&place) {
            work.pop();
            continue;
        }
        if let Some((end, behind)) = under_way.remove(&place) {
            let behind = behind.iter().filter_map(|rest| known.get(rest)).map(|longest| longest + 1);
            known.insert(place, behind.max().unwrap_or(0).max(end));
            work.pop();
            continue;
        }
        if known.len() + under_way.len() > LOOKED_AT {
            return Ok(None);
        }
        let Some((end, behind)) = next(place)? else { return Ok(None) };
        if behind.iter().any(|rest| *rest == place || under_way.contains_key(rest)) {
            return Ok(None);
        }
        work.extend(behind.iter().copied().filter(|rest| !known.contains_key(rest)));
        under_way.insert(place, (end, behind));
    }
    Ok(known.get(&from).copied())
}

/// At least one text for each value of a lexeme; `None` where there are, or may be, many.
fn texts(deriver: &mut Deriver, lexeme: ExprId) -> Result<Option<Vec<Vec<u8>>>, EngineError> {
    if deriver.exprs.has_language(lexeme) {
        return Ok(None);
    }
    let of_values = all_paths((lexeme, Part::Sign), |(text, place)| {
        let Some(steps) = NumberSteps::of(deriver, place)? else { return Ok(None) };
        let rest = steps.end(text, place.1).map(|whole| whole[text.len()..].to_vec());
        Ok(Some((rest, steps.digits)))
    })?;
    if of_values.is_some() || longest_at_most(&deriver.exprs, lexeme, &mut FxHashMap::default())? == NEVER {
        return Ok(of_values);
    }
    all_paths(lexeme, |(_, place)| {
        let live = live_derivatives(deriver, place)?;
        let is_end = deriver.exprs.is_nullable(place);
        let steps = live.iter().flat_map(|(bytes, rest)| bytes.iter().map(|byte| (byte, *rest))).collect();
        Ok(Some((is_end.then(Vec::new), steps)))
    })
}

/// What follows a place: the rest of the text if it ends there, and the bytes with which it continues.
type Paths<P> = Option<(Option<Vec<u8>>, Vec<(u8, P)>)>;

/// All texts on paths from a place to an end; `None` where there are many, or where one is not known.
fn all_paths<P: Copy>(
    from: P,
    mut next: impl FnMut((&[u8], P)) -> Result<Paths<P>, EngineError>,
) -> Result<Option<Vec<Vec<u8>>>, EngineError> {
    let (mut texts, mut steps) = (Vec::new(), 0);
    let mut work = vec![(Vec::new(), from)];
    while let Some((text, place)) = work.pop() {
        let Some((end, paths)) = next((&text, place))? else { return Ok(None) };
        steps += paths.len();
        if texts.len() > LOOKED_AT || steps > SEARCHED {
            return Ok(None);
        }
        texts.extend(end.map(|end| [&text[..], &end].concat()));
        work.extend(paths.into_iter().map(|(byte, to)| ([&text[..], &[byte]].concat(), to)));
    }
    Ok(Some(texts))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use stencilm_grammar::canonical_json;
    use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};
    use stencilm_regex::{ExprSet, Limits};

    use super::*;

    /// Each has finitely many values, most of them with infinitely many texts.
    const NUMBERS: [&str; 7] = [
        r"-?(0|[1-9][0-9]?)(\.0+)?",
        r"(0|1|12)(\.[05]0*)?",
        r"1\.25|1\.5|-0|0|10|1",
        r"[1-3][0-9]{0,2}(\.0+)?",
        r"-(0|5)(\.0{1,2})?|7\.0+",
        r"0\.(0[1-3]|1|100|2)0*",
        r"(1|2)\.(00)+5?",
    ];

    /// All texts of at most `most` bytes.
    fn short_texts(deriver: &mut Deriver, expr: ExprId, most: usize) -> Vec<Vec<u8>> {
        let (mut found, mut work) = (Vec::new(), vec![(Vec::new(), expr)]);
        while let Some((text, expr)) = work.pop() {
            if deriver.exprs.is_nullable(expr) {
                found.push(text.clone());
            }
            for byte in b"-.0123456789".iter().filter(|_| text.len() < most) {
                let rest = deriver.after(expr, *byte).unwrap();
                if rest != ExprId::NOTHING {
                    work.push(([&text[..], &[*byte]].concat(), rest));
                }
            }
        }
        found
    }

    #[test]
    fn every_value_has_a_text_that_is_known_and_no_longer_than_the_bound() {
        for pattern in NUMBERS {
            let mut exprs = ExprSet::new();
            let options = PatternOptions { dialect: Dialect::Standard, anchoring: Anchoring::Whole };
            let expr = parse_pattern(&mut exprs, pattern, &options, &mut Utf8).unwrap();
            let mut deriver = Deriver::over(exprs, Limits::default());
            let all = short_texts(&mut deriver, expr, 7);
            let values: BTreeSet<Vec<u8>> = all.iter().map(|text| canonical_json(text)).collect();
            let longest = longest(&mut deriver, expr).unwrap();
            let known = texts(&mut deriver, expr).unwrap();
            let Some(known) = known else {
                assert!(pattern.contains("(00)"), "{pattern}");
                continue;
            };
            assert!(
                known.iter().all(|text| all.contains(text) && text.len() as u64 <= longest),
                "{pattern}: {longest}"
            );
            assert_eq!(known.iter().map(|text| canonical_json(text)).collect::<BTreeSet<_>>(), values, "{pattern}");
        }
    }
}
