//! The cost, in bytes or tokens, of completing the parts of a grammar and everything that waits on a stack.
//!
//! Parts are processed by Knuth's generalisation of Dijkstra's algorithm (1977): the cost of a part is final when
//! nothing cheaper can come, so recursion needs no special treatment. In bytes, the cost of lexemes is
//! [`stencilm_regex::ExprSet::shortest_at_least`], which is exact for lexemes without intersections and complements. In
//! tokens, it comes from `completion/token_counts.rs`; a token may span lexemes, so the sum of their costs is an upper
//! bound.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_grammar::{
    AdditionalMembers, DeclaredMember, Element, Grammar, Items, ItemsId, KeySpace, Mark, Members, MembersId, Node,
    NodeId,
};
use stencilm_regex::{ExprId, StateId};
use stencilm_support::{LimitExceeded, check_time, check_time_after};

use crate::completion::references::ReferenceCosts;
use crate::completion::token_counts::{NEVER, NEW_KEY, TokenCounts, count_of};
use crate::error::EngineError;
use crate::machine::layout::{Frame, FrameId, Phase, Register};
use crate::parse::registers::array::counts_of;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, ItemsState, SetId};
use crate::switches::Switch;

/// Upper bounds on the costs of new texts of the lexemes of a grammar.
pub(crate) type NewKeys = FxHashMap<ExprId, u64>;

/// The costs of the parts of one grammar.
pub(crate) struct Costs {
    nodes: Arc<[u64]>,
    /// The costs of lexemes in tokens; `None` where bytes are counted.
    tokens: Option<Arc<TokenCounts>>,
    /// As in [`Measured`].
    new_keys: Option<Arc<NewKeys>>,
    /// The costs of frames for paths up from a left corner.
    left: FxHashMap<FrameId, u64>,
    sets: FxHashMap<SetId, u64>,
    objects: FxHashMap<MembersId, Rc<ObjectCosts>>,
}

/// The costs of the declared members of an object, some of which are missing at each position.
struct ObjectCosts {
    known: Vec<u64>,
    /// For each position: the number of required members declared from there on, and their total cost. It is exact, so
    /// that single costs can be subtracted.
    required: Vec<(u32, u128)>,
    /// The optional members, the cheapest first.
    spare: Vec<u32>,
}

impl ObjectCosts {
    fn new(grammar: Measured<'_>, nodes: &[u64], members: &Members) -> ObjectCosts {
        let known: Vec<u64> = members.declared.iter().map(|known| known_cost(grammar, nodes, members, known)).collect();
        let mut required = vec![(0, 0); known.len() + 1];
        for (at, member) in members.declared.iter().enumerate().rev() {
            let (count, all) = required[at + 1];
            required[at] = if member.required { (count + 1, all + u128::from(known[at])) } else { (count, all) };
        }
        let is_spare = |&index: &u32| !members.declared[index as usize].required;
        let mut spare: Vec<u32> = (0..known.len() as u32).filter(is_spare).collect();
        spare.sort_by_key(|&index| known[index as usize]);
        ObjectCosts { known, required, spare }
    }
}

pub(crate) fn sum(costs: impl IntoIterator<Item = u64>) -> u64 {
    costs.into_iter().fold(0, u64::saturating_add)
}

pub(crate) fn times(count: u32, cost: u64) -> u64 {
    if count == 0 { 0 } else { cost.saturating_mul(u64::from(count)) }
}

/// A grammar, and the unit in which its costs are counted.
#[derive(Clone, Copy)]
pub(crate) struct Measured<'a> {
    pub grammar: &'a Grammar,
    pub tokens: Option<&'a TokenCounts>,
    /// The cost of references to declared names; in bytes, a lower bound.
    pub references: ReferenceCosts,
    /// The costs of new keys, for an upper bound whichever keys an object has; `None` as if there were always others.
    pub new_keys: Option<&'a NewKeys>,
}

impl<'a> Measured<'a> {
    /// Costs in bytes.
    pub fn in_bytes(grammar: &'a Grammar) -> Measured<'a> {
        Measured { grammar, tokens: None, references: ReferenceCosts::default(), new_keys: None }
    }
}

impl Deref for Measured<'_> {
    type Target = Grammar;

    fn deref(&self) -> &Grammar {
        self.grammar
    }
}

impl Costs {
    /// Lower bounds in bytes; a reference counts as at least `reference` bytes.
    ///
    /// # Errors
    pub fn in_bytes(grammar: &Grammar, reference: u64) -> Result<Costs, LimitExceeded> {
        let references = ReferenceCosts { whole: reference, rest: 0 };
        Ok(Costs::in_bytes_of(node_costs(Measured { references, ..Measured::in_bytes(grammar) })?.into()))
    }

    /// The same, given the costs of the nodes.
    pub fn in_bytes_of(nodes: Arc<[u64]>) -> Costs {
        Costs::of_nodes(nodes, None)
    }

    /// Costs in tokens, given the costs of lexemes and nodes.
    pub fn in_tokens(tokens: Arc<TokenCounts>, nodes: Arc<[u64]>) -> Costs {
        Costs::of_nodes(nodes, Some(tokens))
    }

    fn of_nodes(nodes: Arc<[u64]>, tokens: Option<Arc<TokenCounts>>) -> Costs {
        let (left, sets, objects) = Default::default();
        Costs { nodes, tokens, new_keys: None, left, sets, objects }
    }

    /// The same for an upper bound, given the costs of new keys and those of the nodes with them.
    pub fn with_new_keys(&self, new_keys: Arc<NewKeys>, nodes: Arc<[u64]>) -> Costs {
        Costs { new_keys: Some(new_keys), ..Costs::of_nodes(nodes, self.tokens.clone()) }
    }

    /// The costs of lexemes in tokens, if tokens are counted.
    pub fn tokens(&self) -> Option<&Arc<TokenCounts>> {
        self.tokens.as_ref()
    }

    /// The costs of the nodes.
    pub fn nodes(&self) -> &[u64] {
        &self.nodes
    }

    /// The cost of a text.
    pub fn of_text(&self, text: &[u8]) -> u64 {
        self.tokens.as_ref().map_or(text.len() as u64, |tokens| count_of(&tokens.vocabulary, text))
    }

    /// The cost of the end of an array.
    pub fn of_end(&self, grammar: &Grammar, items: ItemsId) -> u64 {
        let close = grammar.items(items).surface.close;
        match &self.tokens {
            Some(tokens) => tokens.of_lexeme(close),
            None => u64::from(grammar.exprs().shortest_at_least(close)),
        }
    }

    /// The cost of reaching the end of the text from a stack.
    pub fn of_stack(&mut self, run: &mut Run<'_>, stack: SetId) -> Result<u64, EngineError> {
        let mut work = vec![stack];
        while let Some(&set) = work.last() {
            if self.sets.contains_key(&set) {
                work.pop();
                continue;
            }
            let entries = run.stacks.entries(set).to_vec();
            let waiting = entries.iter().filter(|&&entry| entry != Entry::BOTTOM).map(|entry| entry.below);
            let before = work.len();
            work.extend(waiting.filter(|below| !self.sets.contains_key(below)));
            if work.len() > before {
                continue;
            }
            let mut least = NEVER;
            for entry in entries {
                check_time()?;
                let cost = match entry {
                    Entry::BOTTOM => 0,
                    _ => {
                        self.of_frame(run, FrameId(entry.head), entry.register)?.saturating_add(self.sets[&entry.below])
                    }
                };
                least = least.min(cost);
            }
            self.sets.insert(set, least);
        }
        Ok(self.sets[&stack])
    }

    fn of_frame(&mut self, run: &mut Run<'_>, frame: FrameId, register: u32) -> Result<u64, EngineError> {
        let grammar = run.machine.grammar().clone();
        let counts = self.tokens.clone();
        let (references, new_keys) = (ReferenceCosts::default(), self.new_keys.clone());
        let new_keys = new_keys.as_deref();
        let grammar = Measured { grammar: &grammar, tokens: counts.as_deref(), references, new_keys };
        let lexeme = |expr: ExprId| lexeme_cost(grammar, expr);
        Ok(match run.machine.frame(frame) {
            Frame::Node(node) => match *grammar.node(node) {
                Node::Repeat { body, min, .. } => times(min.saturating_sub(register), self.nodes[body.0 as usize]),
                _ => self.nodes[node.0 as usize],
            },
            Frame::Rest { node, from } => match grammar.node(node) {
                Node::Sequence(parts) => sum(parts[from as usize..].iter().map(|part| self.nodes[part.0 as usize])),
                _ => unreachable!("only a sequence has a rest"),
            },
            Frame::Lexeme(expr) => lexeme(expr),
            Frame::Member { members, value } => {
                lexeme(grammar.members(members).surface.colon).saturating_add(self.nodes[value.0 as usize])
            }
            Frame::AfterValue(id) => self.of_members(run, grammar, id, register, true)?,
            Frame::Key(id) => self.of_members(run, grammar, id, register, false)?,
            Frame::AfterItem(id) => self.of_items(run, grammar, id, register, true),
            Frame::Item(id) => self.of_items(run, grammar, id, register, grammar.items(id).is_bare()),
            Frame::Left { nullable: true, .. } => 0,
            Frame::Left { .. } => self.of_left(run, frame)?,
            Frame::Text | Frame::Names | Frame::End(_) => 0,
            Frame::Reference { node, .. } => self.nodes[node.0 as usize],
            Frame::WithWhitespace { .. } => unreachable!("the machine gives the frame after the whitespace"),
        })
    }

    /// The cost of the rest of an object, after a value or before a key.
    fn of_members(
        &mut self,
        run: &Run<'_>,
        grammar: Measured<'_>,
        id: MembersId,
        register: u32,
        after_value: bool,
    ) -> Result<u64, LimitExceeded> {
        let members = grammar.members(id);
        let object = self.object(grammar, id)?;
        let state = run.stacks.members(register);
        let (count, satisfied) = run.stacks.unpair(state.tally);
        let written = Written { next: state.next as usize, seen: run.machine.known_set(state.known), count, satisfied };
        rest_of_object(grammar, &self.nodes, members, &object, written, after_value)
    }

    /// The costs of the declared members of an object, computed at the first call.
    fn object(&mut self, grammar: Measured<'_>, id: MembersId) -> Result<Rc<ObjectCosts>, LimitExceeded> {
        if let Some(known) = self.objects.get(&id).filter(|_| Switch::CompletionObjects.is_on()) {
            return Ok(known.clone());
        }
        let members = grammar.members(id);
        check_time_after(members.declared.len() as u32)?;
        let object = Rc::new(ObjectCosts::new(grammar, &self.nodes, members));
        self.objects.insert(id, object.clone());
        Ok(object)
    }

    /// The cost of the rest of an array, after an element or before one. It is approximate if elements count for
    /// several counters.
    fn of_items(&self, run: &Run<'_>, grammar: Measured<'_>, id: ItemsId, register: u32, after_element: bool) -> u64 {
        let items = grammar.items(id);
        let state = run.stacks.items(register);
        let counts = counts_of(items, state, run.stacks);
        let to_come = |at_least: u32| elements_cost(grammar, &self.nodes, items, state.place, &counts, at_least);
        let mut elements = to_come(u32::from(!after_element).max(until_a_repeat(items, state)));
        // One of the earlier elements may be repeated, unless they have positions in a prefix.
        if items.prefix.is_empty()
            && let Some(shortest) = run.shortest_spelled(state)
        {
            let again = self.of_text(&shortest).saturating_add(lexeme_cost(grammar, items.surface.item));
            elements = elements.min(to_come(1).max(again));
        }
        let first = if after_element { 0 } else { lexeme_cost(grammar, items.surface.item) };
        sum([elements.saturating_sub(first), lexeme_cost(grammar, items.surface.close)])
    }

    /// The cost of a path up from a left corner. Such paths may be circular, so costs are relaxed until nothing
    /// changes.
    fn of_left(&mut self, run: &mut Run<'_>, frame: FrameId) -> Result<u64, EngineError> {
        if let Some(&known) = self.left.get(&frame) {
            return Ok(known);
        }
        let mut paths: Vec<(FrameId, u64, Vec<FrameId>)> = Vec::new();
        let (mut found, mut is_found) = (vec![frame], FxHashSet::from_iter([frame]));
        let mut done = 0;
        while let Some(&from) = found.get(done) {
            check_time()?;
            done += 1;
            self.left.insert(from, NEVER);
            let expansion = run.machine.fork_of(run.lexeme_cache, from, Phase::Plain)?;
            let expansion = run.machine.fork(expansion).clone();
            if expansion.nullable {
                paths.push((from, 0, Vec::new()));
            }
            for (body, continuation) in &expansion.opens {
                let mut cost = self.of_frame(run, *body, 0)?;
                let mut circles = Vec::new();
                for &(pushed, _) in continuation {
                    match run.machine.frame(pushed) {
                        Frame::Left { nullable: false, .. } => circles.push(pushed),
                        _ => cost = cost.saturating_add(self.of_frame(run, pushed, 0)?),
                    }
                }
                let is_new = |circle: &FrameId| !self.left.contains_key(circle) && is_found.insert(*circle);
                found.extend(circles.iter().copied().filter(is_new));
                paths.push((from, cost, circles));
            }
            let first =
                expansion.dfa().map_or_else(Vec::new, |dfa| run.lexeme_cache.residuals(dfa, StateId::START).to_vec());
            for (tag, lexeme) in first {
                let lexeme = u64::from(run.lexeme_cache.deriver().exprs.shortest_at_least(lexeme));
                for continuation in run.machine.continuations(&expansion, tag).iter() {
                    let (mut cost, mut circles) = (lexeme, Vec::new());
                    for &(pushed, register) in continuation {
                        if let Frame::Left { nullable: false, .. } = run.machine.frame(pushed) {
                            circles.push(pushed);
                            if !self.left.contains_key(&pushed) && is_found.insert(pushed) {
                                found.push(pushed);
                            }
                            continue;
                        }
                        let register = if let Register::Value(value) = register { value } else { 0 };
                        cost = cost.saturating_add(self.of_frame(run, pushed, register)?);
                    }
                    paths.push((from, cost, circles));
                }
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (from, cost, circles) in &paths {
                check_time()?;
                let cost = sum(circles.iter().map(|circle| self.left[circle]).chain([*cost]));
                if cost < self.left[from] {
                    self.left.insert(*from, cost);
                    changed = true;
                }
            }
        }
        Ok(self.left[&frame])
    }
}

/// The members that an object has so far.
#[derive(Clone, Copy)]
struct Written<'a> {
    /// Declared members before this one are no longer possible, and those whose bits are set were written.
    next: usize,
    seen: &'a [u64],
    /// The number of all members.
    count: u32,
    /// A bit for each pattern of which a key was required and came.
    satisfied: u32,
}

impl Written<'_> {
    const NOTHING: Written<'static> = Written { next: 0, seen: &[], count: 0, satisfied: 0 };
}

/// The cost of the rest of an object, after a value or before a key.
fn rest_of_object(
    grammar: Measured<'_>,
    nodes: &[u64],
    members: &Members,
    object: &ObjectCosts,
    Written { next, seen, count, satisfied }: Written<'_>,
    after_value: bool,
) -> Result<u64, LimitExceeded> {
    let is_seen =
        |index: usize| index < next || seen.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0);
    let (mut needed, mut all) = object.required[next.min(members.declared.len())];
    for (word, &bits) in seen.iter().enumerate().skip(next / 64) {
        let mut bits = bits;
        while bits != 0 {
            let index = 64 * word + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            if index >= next && members.declared[index].required {
                needed -= 1;
                all -= u128::from(object.known[index]);
            }
        }
    }
    check_time_after((seen.len() + members.additional.len()) as u32)?;
    let colon = lexeme_cost(grammar, members.surface.colon);
    let member =
        |one: &AdditionalMembers, value: NodeId| sum([new_key_cost(grammar, one), colon, nodes[value.0 as usize]]);
    let mut bit = 1u32;
    for additional in &members.additional {
        if let Some(some) = additional.some {
            if satisfied & bit == 0 {
                needed += 1;
                all += u128::from(member(additional, some));
            }
            bit = bit.wrapping_shl(1);
        }
    }
    // Before a key one member must come, whatever the bounds say; the last member of a cut-off object is counted
    // separately.
    let last = u32::from(members.is_cut());
    let at_least = members.min.saturating_sub(count).max(u32::from(!after_value).saturating_sub(last));
    let mut missing = at_least.saturating_sub(needed);
    let others = || members.whole_others().map(|one| (one, member(one, one.value)));
    let may_run_out = |space| grammar.new_keys.is_some() && matches!(space, KeySpace::Finite(_));
    let lasting = others().filter(|(one, _)| !may_run_out(one.space)).map(|(_, cost)| cost).min();
    // Of few keys, any may be the one that is left, and none need be: then only declared members are.
    let additional = lasting.or_else(|| others().map(|(_, cost)| cost).max()).unwrap_or(NEVER);
    let spare =
        object.spare.iter().filter(|&&index| !is_seen(index as usize)).map(|&index| object.known[index as usize]);
    let is_taken = |cost: &u64| *cost != NEVER && (lasting.is_none() || *cost < additional);
    for cost in spare.take(missing as usize).take_while(is_taken) {
        check_time()?;
        needed += 1;
        all += u128::from(cost);
        missing -= 1;
    }
    let all = u64::try_from(all).unwrap_or(NEVER);
    let separators = needed + missing + last - u32::from(!after_value);
    let item = lexeme_cost(grammar, members.surface.item);
    let end = end_cost(grammar, nodes, members);
    Ok(sum([all, times(missing, additional), times(separators, item), end]))
}

pub(crate) fn lexeme_cost(grammar: Measured<'_>, expr: ExprId) -> u64 {
    match grammar.tokens {
        Some(tokens) => tokens.of_lexeme(expr),
        None => u64::from(grammar.exprs().shortest_at_least(expr)),
    }
}

/// The cost of a declared member.
pub(crate) fn known_cost(grammar: Measured<'_>, nodes: &[u64], members: &Members, known: &DeclaredMember) -> u64 {
    match known.key {
        Some(key) => member_cost(grammar, nodes, members, key, known.value),
        None => {
            let key = grammar.tokens.map_or(known.plain_len() as u64, |tokens| tokens.of_name(&known.name));
            sum([key, lexeme_cost(grammar, members.surface.colon), nodes[known.value.0 as usize]])
        }
    }
}

pub(crate) fn member_cost(
    grammar: Measured<'_>,
    nodes: &[u64],
    members: &Members,
    key: ExprId,
    value: stencilm_grammar::NodeId,
) -> u64 {
    sum([lexeme_cost(grammar, key), lexeme_cost(grammar, members.surface.colon), nodes[value.0 as usize]])
}

/// The nodes on which a node's cost depends.
pub(crate) fn parts(grammar: Measured<'_>, node: &Node) -> Vec<u32> {
    match node {
        Node::Lexeme(_) | Node::Token(_) | Node::Repeat { min: 0, .. } => Vec::new(),
        Node::Sequence(parts) | Node::Choice(parts) => parts.iter().map(|part| part.0).collect(),
        Node::Repeat { body, .. } | Node::Marked { body, .. } => vec![body.0],
        Node::Rule(rule) => vec![grammar.rule(*rule).body.0],
        Node::Items(id) if is_optional(grammar.items(*id)) => Vec::new(),
        Node::Items(id) => grammar.items(*id).elements().map(|element| element.value.0).collect(),
        Node::Members(id) => {
            let members = grammar.members(*id);
            let some = members.additional.iter().filter_map(|additional| additional.some);
            let last = members
                .additional
                .iter()
                .filter(|additional| additional.last.is_some())
                .map(|additional| additional.value);
            let required = members.declared.iter().filter(|known| known.required).map(|known| known.value);
            let required = required.chain(some).chain(last);
            let required: Vec<u32> = required.map(|node| node.0).collect();
            if members.min as usize <= required.len() {
                return required;
            }
            let additional = members.additional.iter().map(|additional| additional.value);
            members
                .declared
                .iter()
                .map(|known| known.value)
                .chain(additional)
                .map(|node| node.0)
                .chain(required)
                .collect()
        }
    }
}

/// The costs of the nodes.
///
/// # Errors
/// As [`check_time`].
pub(crate) fn node_costs(grammar: Measured<'_>) -> Result<Vec<u64>, LimitExceeded> {
    let nodes = grammar.nodes();
    let mut costs = vec![NEVER; nodes.len()];
    let mut missing: Vec<usize> = Vec::with_capacity(nodes.len());
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    let mut queue: BinaryHeap<Reverse<(u64, Turn, u32)>> = BinaryHeap::new();
    for (index, node) in nodes.iter().enumerate() {
        let parts = parts(grammar, node);
        check_time_after(1 + parts.len() as u32)?;
        missing.push(parts.len());
        parts.iter().for_each(|&part| users[part as usize].push(index as u32));
        let never = (grammar.tokens.is_none() && matches!(node, Node::Token(_)))
            || matches!(node, Node::Choice(parts) if parts.is_empty());
        if parts.is_empty() && !never {
            queue.push(Reverse((cost_of(grammar, node, &costs)?, Turn::Settle, index as u32)));
        }
    }
    let mut is_weighed = vec![false; nodes.len()];
    while let Some(Reverse((cost, turn, index))) = queue.pop() {
        check_time()?;
        let node = &nodes[index as usize];
        if turn == Turn::Weigh {
            is_weighed[index as usize] = false;
            check_time_after(width(grammar, node))?;
            match cost_of(grammar, node, &costs)? {
                NEVER => {}
                cost => queue.push(Reverse((cost, Turn::Settle, index))),
            }
            continue;
        }
        if costs[index as usize] != NEVER {
            continue;
        }
        costs[index as usize] = cost;
        for &user in &users[index as usize] {
            let node = &nodes[user as usize];
            missing[user as usize] -= 1;
            let is_enough =
                missing[user as usize] == 0 || matches!(node, Node::Choice(_) | Node::Items(_) | Node::Members(_));
            // All parts with the same cost are handled at once, since there may be very many of them.
            if is_enough && costs[user as usize] == NEVER && !std::mem::replace(&mut is_weighed[user as usize], true) {
                queue.push(Reverse((cost, Turn::Weigh, user)));
            }
        }
    }
    Ok(costs)
}

/// What to do with a node when its turn comes. At equal cost, parts come before what contains them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// Its cost is final.
    Settle,
    /// Its cost has to be computed, since the costs of some of its parts are final.
    Weigh,
}

/// The approximate number of parts that determine a node's cost.
pub(crate) fn width(grammar: Measured<'_>, node: &Node) -> u32 {
    let width = match node {
        Node::Sequence(parts) | Node::Choice(parts) => parts.len(),
        Node::Items(id) => grammar.items(*id).prefix.len(),
        Node::Members(id) => grammar.members(*id).declared.len(),
        Node::Lexeme(_) | Node::Token(_) | Node::Repeat { .. } | Node::Marked { .. } | Node::Rule(_) => 1,
    };
    width as u32
}

/// The cost of a node, given the costs of its parts.
fn cost_of(grammar: Measured<'_>, node: &Node, costs: &[u64]) -> Result<u64, LimitExceeded> {
    let cost = |node: &stencilm_grammar::NodeId| costs[node.0 as usize];
    Ok(match node {
        Node::Lexeme(expr) => lexeme_cost(grammar, *expr),
        Node::Token(_) if grammar.tokens.is_some() => 1,
        Node::Token(_) => NEVER,
        Node::Sequence(parts) => sum(parts.iter().map(cost)),
        Node::Choice(parts) => parts.iter().map(cost).min().unwrap_or(NEVER),
        Node::Repeat { body, min, .. } => times(*min, cost(body)),
        Node::Marked { mark: Mark::Refers(_), body } => match grammar.tokens {
            Some(_) => grammar.references.whole,
            None => cost(body).max(grammar.references.whole),
        },
        Node::Marked { body, .. } => cost(body),
        Node::Rule(rule) => cost(&grammar.rule(*rule).body),
        Node::Items(id) => {
            let items = grammar.items(*id);
            if is_optional(items) {
                return Ok(lexeme_cost(grammar, items.surface.empty));
            }
            let at_least = until_a_repeat(items, ItemsState::default()).max(1);
            let elements = elements_cost(grammar, costs, items, 0, &vec![0; items.contains.len()], at_least);
            let [open, item, close] =
                [items.surface.open, items.surface.item, items.surface.close].map(|expr| lexeme_cost(grammar, expr));
            sum([open, elements.saturating_sub(item), close])
        }
        Node::Members(id) => {
            let members = grammar.members(*id);
            let surface = members.surface;
            let is_empty = members.min == 0
                && !members.is_cut()
                && members.declared.iter().all(|known| !known.required)
                && members.additional.iter().all(|additional| additional.some.is_none());
            if is_empty {
                return Ok(lexeme_cost(grammar, surface.empty));
            }
            let object = ObjectCosts::new(grammar, costs, members);
            let rest = rest_of_object(grammar, costs, members, &object, Written::NOTHING, false)?;
            lexeme_cost(grammar, surface.open).saturating_add(rest)
        }
    })
}

/// The cost of a key that must be new.
fn new_key_cost(grammar: Measured<'_>, one: &AdditionalMembers) -> u64 {
    let cost = lexeme_cost(grammar, one.key);
    match grammar.new_keys {
        Some(new) if one.space != KeySpace::Infinite => new[&one.key].max(cost),
        _ => cost.saturating_add(new_key(grammar)),
    }
}

/// By how much a key that must differ from others may be longer than the shortest one, in tokens. What takes the fewest
/// bytes is found by these costs, so none of them is more there.
fn new_key(grammar: Measured<'_>) -> u64 {
    if grammar.tokens.is_some() { NEW_KEY } else { 0 }
}

/// What ends an object: its sign, or the last member of one that is cut off.
fn end_cost(grammar: Measured<'_>, costs: &[u64], members: &Members) -> u64 {
    let last = members.additional.iter().filter(|additional| additional.last.is_some());
    let last =
        last.map(|additional| lexeme_cost(grammar, additional.key).saturating_add(costs[additional.value.0 as usize]));
    last.min().unwrap_or_else(|| lexeme_cost(grammar, members.surface.close))
}

/// Whether an array may be empty.
fn is_optional(items: &Items) -> bool {
    items.min == 0 && items.contains.iter().all(|&(min, _)| min == 0)
}

/// How many elements must still come for two to be equal, if none of the earlier ones is repeated: two after the
/// prefix. A lower bound would make every prefix of an element look as near to the end as any other.
fn until_a_repeat(items: &Items, state: ItemsState) -> u32 {
    if !items.must_repeat() || state.has_repeat {
        return 0;
    }
    (items.prefix.len() as u32).saturating_sub(state.place).saturating_add(2)
}

/// The cost of the elements that must still come, at least `at_least`, after `place` elements with these counts, each
/// with its separator: the cheapest ones for every position of which enough are counted. This is exact if one counter
/// needs elements; if several do, it is the cost of the one that needs most.
fn elements_cost(
    grammar: Measured<'_>,
    nodes: &[u64],
    items: &Items,
    place: u32,
    counts: &[u32],
    at_least: u32,
) -> u64 {
    let cheapest = |elements: &[Element], counter: Option<usize>| {
        let counting = elements.iter().filter(|element| counter.is_none_or(|bit| element.counts & (1 << bit) != 0));
        counting.map(|element| nodes[element.value.0 as usize]).min().unwrap_or(NEVER)
    };
    let item = lexeme_cost(grammar, items.surface.item);
    let count = items.min.saturating_sub(place).max(at_least);
    let leading = items.prefix.get(place as usize..).unwrap_or(&[]);
    let total = leading
        .iter()
        .take(count as usize)
        .fold(0, |all: u64, elements| all.saturating_add(cheapest(elements, None)).saturating_add(item));
    let later = count.saturating_sub(leading.len() as u32);
    let total = sum([total, times(later, cheapest(&items.rest, None).saturating_add(item))]);
    let missing = counts.iter().zip(&items.contains).map(|(&count, &(min, _))| min.saturating_sub(count));
    let counted = missing.enumerate().filter(|&(_, missing)| missing > 0).map(|(counter, missing)| {
        let cost = |elements: &[Element]| Counted {
            any: cheapest(elements, None).saturating_add(item),
            counting: cheapest(elements, Some(counter)).saturating_add(item),
        };
        let leading: Vec<Counted> = leading.iter().map(|elements| cost(elements)).collect();
        counted_cost(&leading, cost(&items.rest), count, missing)
    });
    counted.fold(total, u64::max)
}

/// The cost of an element at a position of an array, and of one that is counted there.
#[derive(Clone, Copy)]
struct Counted {
    any: u64,
    counting: u64,
}

impl Counted {
    /// How much more a counted one costs; `None` where there is none.
    fn extra(self) -> Option<u64> {
        (self.counting != NEVER).then(|| self.counting - self.any)
    }
}

/// The cost of at least `count` elements of which `missing` are counted, in the prefix and after it.
fn counted_cost(leading: &[Counted], rest: Counted, count: u32, missing: u32) -> u64 {
    let wanted = missing as usize;
    let mut best = NEVER;
    let mut total: u64 = 0;
    // The cheapest choices of counted elements up to here, at most `missing`.
    let (mut chosen, mut dearer) = (BinaryHeap::new(), 0u64);
    for (index, element) in leading.iter().enumerate() {
        total = total.saturating_add(element.any);
        if let Some(extra) = element.extra() {
            chosen.push(extra);
            dearer = dearer.saturating_add(extra);
            if chosen.len() > wanted {
                dearer -= chosen.pop().expect("one was just pushed");
            }
        }
        if index + 1 >= count as usize && chosen.len() == wanted {
            best = best.min(total.saturating_add(dearer));
        }
    }
    // The whole prefix, and some elements after it: each that is counted there is one fewer in the prefix.
    let mut before = chosen.into_sorted_vec();
    let mut dearer: u128 = before.iter().copied().map(u128::from).sum();
    loop {
        let after = missing - before.len() as u32;
        let more = count.saturating_sub(leading.len() as u32).max(after);
        let extra = if after == 0 { Some(0) } else { rest.extra() };
        if let Some(extra) = extra {
            let dearer = u64::try_from(dearer).unwrap_or(NEVER);
            best = best.min(sum([total, dearer, times(more, rest.any), times(after, extra)]));
        }
        match before.pop() {
            Some(extra) => dearer -= u128::from(extra),
            None => return best,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use stencilm_grammar::{JsonSchemaOptions, from_json_schema};
    use stencilm_support::Watch;

    use super::*;

    fn of_schema(schema: &str) -> Grammar {
        from_json_schema(schema, &JsonSchemaOptions::default()).unwrap_or_else(|error| panic!("{error}\n{schema}"))
    }

    /// The cost of the root in bytes, and how often the clock was read while computing it.
    fn cost_and_looks(grammar: &Grammar) -> (u64, usize) {
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = looks.clone();
        let count = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        let watch = Watch::new(u64::MAX, None).giving_way(Arc::new(count));
        let costs = watch.over(|| node_costs(Measured::in_bytes(grammar))).expect("nothing ends it");
        (costs[grammar.root().0 as usize], looks.load(Ordering::Relaxed))
    }

    /// Values of different lengths.
    fn value(at: usize) -> String {
        format!("\"{}\"", "x".repeat(at % 50))
    }

    #[test]
    fn what_a_grammar_takes_is_found_in_steps_that_grow_as_it_does() {
        let object = |count: usize, more: &str| {
            let members: Vec<String> =
                (0..count).map(|at| format!(r#""p{at}": {{"enum": [{}, {at}.5]}}"#, value(at))).collect();
            format!(r#"{{"type": "object", "properties": {{{}}}{more}}}"#, members.join(","))
        };
        let required = |count: usize| {
            let names: Vec<String> = (0..count).map(|at| format!("\"p{at}\"")).collect();
            object(count, &format!(r#", "required": [{}]"#, names.join(",")))
        };
        let some = |count: usize| object(count, &format!(r#", "minProperties": {}"#, count / 2));
        let choice = |count: usize| {
            let paths: Vec<String> = (0..count)
                .map(|at| {
                    format!(
                        r#"{{"type": "array", "minItems": 1, "items": {{"const": {}}}}}"#,
                        value(at).replace('x', &format!("{at}"))
                    )
                })
                .collect();
            format!(r#"{{"anyOf": [{}]}}"#, paths.join(","))
        };
        for schema in [&required as &dyn Fn(usize) -> String, &some, &choice] {
            let [few, many] = [500, 2_000].map(|count| cost_and_looks(&of_schema(&schema(count))));
            assert!(few.1 > 10 && few.0 < many.0 + 1, "{few:?} {many:?}");
            assert!(many.1 < 5 * few.1 + 20, "{few:?} {many:?}");
        }
    }

    #[test]
    fn what_counted_elements_take_is_the_least() {
        // At three positions of a prefix and after it, at least two elements are counted.
        let element = |any, counting| Counted { any, counting };
        let leading = [element(1, 9), element(2, 3), element(4, NEVER)];
        assert_eq!(counted_cost(&leading, element(1, 1), 0, 2), 1 + 3 + 4 + 1);
        assert_eq!(counted_cost(&leading, element(1, NEVER), 0, 2), 9 + 3);
        assert_eq!(counted_cost(&leading, element(5, 7), 5, 2), (1 + 3 + 4) + 5 + 7);
        assert_eq!(counted_cost(&[], element(5, 7), 1, 3), 21);
        assert_eq!(counted_cost(&leading[2..], element(1, NEVER), 1, 1), NEVER);
    }
}
