//! An upper bound on the cost of completing a text after any one token, without looking at the tokens: this is enough
//! far from the end.
//!
//! For every part of a grammar, the cost of completing its worst prefix is computed. If a part contains itself and each
//! level needs an opening bracket within the token, the parts are processed once for every bracket that a token may
//! open. If a part contains itself after other bytes, they are processed once for every byte of a token; if nothing at
//! all needs to come before, there is no bound.
//!
//! Keys with infinitely many continuations can be made different from the used ones with a few more bytes. The cost of
//! other keys, and of elements that must be new, is in `completion/fresh.rs`; if it is unknown, there is no bound, and
//! a mask is decided by real paths however far away the end is.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_grammar::{Grammar, Items, ItemsId, KeySpace, Mark, Members, MembersId, Node, NodeId};
use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet};
use stencilm_support::{LimitExceeded, check_time};

use crate::completion::costs::{Costs, Measured, NewKeys, lexeme_cost, node_costs};
use crate::completion::fresh::{Fresh, NewLexemes};
use crate::completion::references::ReferenceCosts;
use crate::completion::token_counts::{NEVER, NEW_KEY, lexemes_of};
use crate::completion::worst_cases::WorstCases;
use crate::error::EngineError;
use crate::machine::frame::NamesId;
use crate::machine::layout::{ExpansionId, Frame, FrameId};
use crate::parse::stepper::{Mode, Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};
use crate::switches::Switch;
use crate::vocabulary::tokens::Tokens;

/// The cost of completing the worst prefix of an array.
#[derive(Clone, Debug)]
struct ArrayBound {
    /// The least number of elements.
    min: u64,
    /// The number of elements that must still come at every position: those that a counter needs, and two that are
    /// equal.
    to_come: u64,
    /// The cost of the separator before an element.
    item: u64,
    /// The cost of an element.
    each: u64,
    /// If elements must differ and there are few values: their costs, the greatest first, with the number of values at
    /// each cost.
    values: Vec<(u64, u64)>,
    /// The cost of completing an element that has begun, with everything around the elements.
    rest: u64,
}

impl ArrayBound {
    const NEVER: ArrayBound = ArrayBound { min: 0, to_come: 0, item: 0, each: 0, values: Vec::new(), rest: NEVER };

    /// That cost after `elements` elements.
    fn after(&self, elements: u32) -> u64 {
        let missing = self.min.saturating_sub(u64::from(elements)).saturating_add(self.to_come);
        let (mut others, mut all) = (missing, self.rest.saturating_add(self.item.saturating_mul(missing)));
        for &(cost, count) in &self.values {
            let count = count.min(others);
            others -= count;
            all = all.saturating_add(cost.saturating_mul(count));
        }
        all.saturating_add(self.each.saturating_mul(others))
    }
}

/// Costs whichever keys the objects of a text have, where there may be few.
#[derive(Clone)]
struct FewKeys {
    new: Arc<NewKeys>,
    nodes: Arc<[u64]>,
}

impl FewKeys {
    fn of(measured: Measured<'_>, new: &NewLexemes) -> Result<FewKeys, LimitExceeded> {
        let new = new.costs();
        let nodes = node_costs(Measured { new_keys: Some(&new), ..measured })?.into();
        Ok(FewKeys { new: Arc::new(new), nodes })
    }
}

/// The costs of completing worst prefixes.
pub(crate) struct Bounds {
    /// By node, for what one token may leave open.
    nodes: Vec<u64>,
    members: Vec<u64>,
    items: Vec<ArrayBound>,
    /// The lexemes of the grammar.
    lexemes: FxHashMap<ExprId, u64>,
    /// For rests of lexemes.
    worst_cases: WorstCases,
    /// The greatest amount, over all parts, by which one token may put off the end.
    pub step: u64,
    /// By node, whether each of its texts contains one of the bytes that are counted.
    opens: Vec<bool>,
    /// Whether the tokens that complete a part can be found without reading elements and keys.
    pub is_exact: bool,
    /// The cost of new elements and keys, where some must be new and there may be few.
    pub fresh: Option<Fresh>,
    few_keys: Option<FewKeys>,
    /// The cost of references.
    references: ReferenceCosts,
}

/// The greatest number of these bytes in one token.
fn most_in_a_token(vocabulary: &Tokens, bytes: &ByteSet) -> usize {
    let tokens = (0..vocabulary.vocab_size() as u32).filter_map(|token| vocabulary.token_bytes(token));
    let counts = tokens.map(|token| token.iter().filter(|&&byte| bytes.contains(byte)).count());
    counts.max().unwrap_or(0)
}

/// Whether every match of an expression contains one of these bytes, as far as is easy to see; `known` is a memo.
fn must_have(
    exprs: &ExprSet,
    root: ExprId,
    bytes: &ByteSet,
    known: &mut FxHashMap<ExprId, bool>,
) -> Result<bool, LimitExceeded> {
    exprs.fold(root, known, |expr, known: &FxHashMap<ExprId, bool>| match expr {
        Expr::Bytes(set) => set.union(bytes) == *bytes,
        Expr::Concat { head, tail } => known[head] || known[tail],
        Expr::Or(parts) => parts.iter().all(|part| known[part]),
        Expr::And(parts) => parts.iter().any(|part| known[part]),
        Expr::Repeat { body, min, .. } => *min > 0 && known[body],
        Expr::Number(_) | Expr::Language(_) => bytes.len() == 256,
        Expr::Text(text) => text.bytes().any(|byte| bytes.contains(byte)),
        Expr::Nothing | Expr::Empty | Expr::Not(_) => false,
    })
}

/// Whether the keys of every class can continue in infinitely many ways from every prefix.
fn are_keys_infinite(members: &Members) -> bool {
    members.additional.iter().all(|additional| additional.space == KeySpace::Infinite)
}

/// Whether the cost of completing an array depends on what its elements are.
fn is_about(items: &Items) -> bool {
    items.compares() || !items.contains.is_empty()
}

impl Bounds {
    /// Computes the bounds of a grammar.
    pub fn new(
        run: &mut Run<'_>,
        vocabulary: &Tokens,
        measured: Measured<'_>,
        costs: &[u64],
    ) -> Result<Bounds, EngineError> {
        let grammar = measured.grammar;
        let are_infinite = grammar.all_members().iter().all(are_keys_infinite);
        let new = match are_infinite && !grammar.all_items().iter().any(Items::is_unique) {
            true => None,
            false => Some(Arc::new(NewLexemes::new(run, grammar)?)),
        };
        let few_keys = match new.as_deref().filter(|_| !are_infinite) {
            Some(new) => Some(FewKeys::of(measured, new)?),
            None => None,
        };
        let measured = Measured { new_keys: few_keys.as_ref().map(|few| &*few.new), ..measured };
        let costs = few_keys.as_ref().map_or(costs, |few| &few.nodes);
        let mut bounds = Bounds {
            nodes: costs.to_vec(),
            members: vec![NEVER; grammar.all_members().len()],
            items: vec![ArrayBound::NEVER; grammar.all_items().len()],
            lexemes: FxHashMap::default(),
            worst_cases: WorstCases::default(),
            step: 0,
            opens: Vec::new(),
            is_exact: !run.machine.has_names()
                && grammar.all_items().iter().all(|items| !is_about(items))
                && are_infinite,
            fresh: None,
            few_keys: few_keys.clone(),
            references: measured.references,
        };
        if let Some(new) = &new {
            bounds.fresh = Some(Fresh::new(run, measured, costs, new.clone())?);
        }
        for lexeme in lexemes_of(grammar) {
            check_time()?;
            if bounds.lexemes.contains_key(&lexeme) {
                continue;
            }
            let imported = run.lexeme_cache.import(grammar.exprs(), lexeme)?;
            let most = bounds.worst_cases.of(run, imported)?;
            bounds.lexemes.insert(lexeme, most);
        }
        let brackets = b"{[(".iter().fold(ByteSet::EMPTY, |set, &byte| set.union(&ByteSet::of(byte)));
        let mut order = None;
        for bytes in [brackets, ByteSet::range(0, 255)] {
            let mut known = FxHashMap::default();
            let opens = |node| opens(grammar, node, &bytes, &mut known);
            bounds.opens = grammar.nodes().iter().map(opens).collect::<Result<_, LimitExceeded>>()?;
            order = inner_first(grammar.nodes().len(), |node| within(measured, node, &bounds.opens))?;
            if bytes == brackets && !Switch::CompletionBrackets.is_on() {
                order = None;
            }
            let Some(order) = &order else { continue };
            let mut before: Option<Vec<u64>> = None;
            for _ in 0..=most_in_a_token(vocabulary, &bytes) {
                for &node in order {
                    check_time()?;
                    bounds.nodes[node] = bounds.of_node(measured, costs, NodeId(node as u32), before.as_deref());
                }
                if before.as_ref() == Some(&bounds.nodes) {
                    break;
                }
                before = Some(bounds.nodes.clone());
            }
            break;
        }
        if order.is_none() {
            bounds.nodes.fill(NEVER);
        }
        bounds.find_containers(measured, costs)?;
        let all = bounds.nodes.iter().chain(&bounds.members).chain(bounds.lexemes.values()).copied();
        let all = all.chain(bounds.items.iter().map(|items| items.after(0)));
        bounds.step = all.max().unwrap_or(0).saturating_add(NEW_KEY);
        Ok(bounds)
    }

    /// Computes the bounds of the objects and arrays from those of the nodes.
    fn find_containers(&mut self, measured: Measured<'_>, costs: &[u64]) -> Result<(), LimitExceeded> {
        let nodes = self.nodes.clone();
        for id in 0..self.members.len() {
            check_time()?;
            self.members[id] = self.of_object(measured, costs, MembersId(id as u32), &nodes);
        }
        for id in 0..self.items.len() {
            check_time()?;
            self.items[id] = self.of_array(measured, costs, ItemsId(id as u32), &nodes);
        }
        Ok(())
    }

    /// The cost of completing the worst prefix of a node. Objects and arrays within it may have been opened if the
    /// bounds of their values are given.
    fn of_node(&self, measured: Measured<'_>, costs: &[u64], id: NodeId, values: Option<&[u64]>) -> u64 {
        let cost = |node: &NodeId| costs[node.0 as usize];
        let most = |node: &NodeId| self.nodes[node.0 as usize];
        let own = match measured.node(id) {
            Node::Lexeme(lexeme) => self.lexemes[lexeme],
            Node::Token(_) => 1,
            Node::Sequence(parts) => self.of_sequence(costs, parts, values),
            Node::Choice(parts) => parts.iter().map(most).max().unwrap_or(0),
            Node::Repeat { body, min, .. } => {
                let others = if *min > 1 { cost(body).saturating_mul(u64::from(min - 1)) } else { 0 };
                most(body).saturating_add(others)
            }
            Node::Marked { mark: Mark::Refers(_), .. } => self.references.rest,
            Node::Marked { body, .. } => most(body),
            Node::Rule(rule) => most(&measured.rule(*rule).body),
            Node::Items(items) if measured.items(*items).is_bare() => {
                self.of_array(measured, costs, *items, &self.nodes).after(0)
            }
            Node::Items(items) => match values {
                Some(values) => self.of_array(measured, costs, *items, values).after(0),
                None => cost(&id).saturating_add(self.lexemes[&measured.items(*items).surface.open]),
            },
            Node::Members(members) => match values {
                Some(values) => self.of_object(measured, costs, *members, values),
                None => cost(&id).saturating_add(self.lexemes[&measured.members(*members).surface.open]),
            },
        };
        own.max(cost(&id))
    }

    /// The cost of completing the worst prefix of a sequence; for the parts after one that contains an opening byte,
    /// with the given bounds of values.
    fn of_sequence(&self, costs: &[u64], parts: &[NodeId], values: Option<&[u64]>) -> u64 {
        let index = |part: &NodeId| part.0 as usize;
        let plain = parts.iter().position(|part| self.opens[index(part)]).map_or(parts.len(), |at| at + 1);
        let (mut after, mut worst) = (0u64, 0);
        for (at, part) in parts.iter().enumerate().rev() {
            let within = match values {
                _ if at < plain => self.nodes[index(part)],
                Some(values) => values[index(part)],
                None => costs[index(part)],
            };
            worst = worst.max(within.saturating_add(after));
            after = after.saturating_add(costs[index(part)]);
        }
        worst
    }

    /// The cost of completing an object from its worst position.
    fn of_object(&self, measured: Measured<'_>, costs: &[u64], id: MembersId, values: &[u64]) -> u64 {
        let members = measured.members(id);
        let surface = members.surface;
        let lexeme = |lexeme: ExprId| self.lexemes[&lexeme];
        let cost = |lexeme: ExprId| lexeme_cost(measured, lexeme);
        let worst = |node: NodeId| costs[node.0 as usize].max(values[node.0 as usize]);
        let count = |known: &stencilm_grammar::DeclaredMember| match known.key {
            Some(key) => cost(key),
            None => measured.tokens.map_or(known.plain_len() as u64, |tokens| tokens.of_name(&known.name)),
        };
        let member = |key: u64, value: NodeId| {
            let parts = [key, cost(surface.colon), costs[value.0 as usize], cost(surface.item)];
            parts.into_iter().fold(0, u64::saturating_add)
        };
        // Everything that may be missing, and one more member in addition.
        let mut missing = 0u64;
        let mut needed = 0u32;
        let mut dearest = 0;
        let (mut cheapest_additional, mut dearest_additional) = (NEVER, 0);
        let mut one = 0;
        for known in &members.declared {
            let key = count(known);
            let all = member(key, known.value);
            if known.required {
                missing = missing.saturating_add(all);
                needed += 1;
            } else {
                dearest = dearest.max(all);
            }
            let key = known.key.map_or(known.plain_len() as u64, lexeme);
            one = one.max(key.saturating_add(lexeme(surface.colon)).saturating_add(worst(known.value)));
        }
        for additional in &members.additional {
            let new = match &self.fresh {
                Some(fresh) if additional.space != KeySpace::Infinite => fresh.lexemes.of_key(additional.key),
                _ => cost(additional.key).saturating_add(NEW_KEY),
            };
            let key = new.max(cost(additional.key));
            let all = member(key, additional.value);
            dearest_additional = dearest_additional.max(all);
            if additional.space == KeySpace::Infinite && additional.last.is_none() {
                cheapest_additional = cheapest_additional.min(all);
            }
            if let Some(some) = additional.some {
                missing = missing.saturating_add(member(key, some));
            }
            if additional.last.is_some() {
                missing = missing.saturating_add(all);
            }
            let key = lexeme(additional.key).saturating_add(NEW_KEY).max(new);
            for value in [Some(additional.value), additional.some].into_iter().flatten() {
                one = one.max(key.saturating_add(lexeme(surface.colon)).saturating_add(worst(value)));
            }
        }
        if members.min > needed {
            // The cheaper declared members may already be used; if there are infinitely many keys, they never all are.
            let is_infinite = members.whole_others().any(|additional| additional.space == KeySpace::Infinite);
            let cheapest = match is_infinite {
                true => cheapest_additional,
                false => dearest.max(dearest_additional),
            };
            missing = missing.saturating_add(cheapest.saturating_mul(u64::from(members.min - needed)));
        }
        let around = [surface.empty, surface.open, surface.item, surface.close].map(lexeme);
        around.into_iter().fold(missing.saturating_add(one), u64::saturating_add)
    }

    /// The cost of completing an array from its worst position.
    fn of_array(&self, measured: Measured<'_>, costs: &[u64], id: ItemsId, values: &[u64]) -> ArrayBound {
        let items = measured.items(id);
        let surface = items.surface;
        let worst = |node: NodeId| costs[node.0 as usize].max(values[node.0 as usize]);
        let mut one = items.elements().map(|element| worst(element.value)).max().unwrap_or(0);
        let mut most =
            items.elements().map(|element| costs[element.value.0 as usize]).filter(|&cost| cost != NEVER).max();
        let mut of_values: &[(u64, u64)] = &[];
        if let Some(fresh) = self.fresh.as_ref().filter(|_| items.is_unique()) {
            of_values = if Switch::CompletionValues.is_on() { fresh.of_values(id) } else { &[] };
            let new = items.elements().map(|element| fresh.of_node(element.value)).max().unwrap_or(0);
            one = one.saturating_add(NEW_KEY).max(new);
            most = most.map(|most| most.max(new));
        }
        let counted = items.contains.iter().map(|&(min, _)| u64::from(min)).sum::<u64>();
        let item = lexeme_cost(measured, surface.item);
        // Elements that a counter needs, and two equal ones, may have to come after the whole prefix.
        let equal = if items.must_repeat() { 2 } else { 0 };
        let leading = if counted + equal > 0 { items.prefix.len() as u64 } else { 0 };
        let around = [surface.empty, surface.open, surface.item, surface.close].map(|lexeme| self.lexemes[&lexeme]);
        ArrayBound {
            min: u64::from(items.min).max(leading),
            to_come: counted.saturating_add(equal),
            item,
            each: most.unwrap_or(0),
            values: of_values.to_vec(),
            rest: around.into_iter().fold(one, u64::saturating_add),
        }
    }

    /// The cost of completing the worst that a token may make of a stack.
    fn of_stack(
        &self,
        run: &mut Run<'_>,
        costs: &mut Costs,
        stack: SetId,
        known: &mut FxHashMap<SetId, u64>,
    ) -> Result<u64, EngineError> {
        let mut work = vec![stack];
        while let Some(&set) = work.last() {
            if known.contains_key(&set) {
                work.pop();
                continue;
            }
            let entries = run.stacks.entries(set).to_vec();
            let before = work.len();
            let below = entries.iter().filter(|&&entry| entry != Entry::BOTTOM).map(|entry| entry.below);
            work.extend(below.filter(|below| !known.contains_key(below)));
            if work.len() > before {
                continue;
            }
            let mut worst = 0;
            for entry in entries.into_iter().filter(|&entry| entry != Entry::BOTTOM) {
                let within = self.of_frame(run, costs, FrameId(entry.head), entry.register);
                let after = costs.of_stack(run, entry.below)?;
                worst = worst.max(within.saturating_add(after)).max(known[&entry.below]);
            }
            known.insert(set, worst);
        }
        Ok(known[&stack])
    }

    fn of_frame(&self, run: &Run<'_>, costs: &Costs, frame: FrameId, register: u32) -> u64 {
        let grammar = run.machine.grammar();
        match run.machine.frame(frame) {
            Frame::Node(node) => self.nodes[node.0 as usize],
            Frame::Rest { node, from } => match grammar.node(node) {
                Node::Sequence(parts) => self.of_sequence(costs.nodes(), &parts[from as usize..], Some(&self.nodes)),
                _ => unreachable!("only a sequence has a rest"),
            },
            Frame::Lexeme(lexeme) => self.lexemes[&lexeme],
            Frame::Member { members, value } => {
                let colon = self.lexemes[&grammar.members(members).surface.colon];
                colon.saturating_add(self.nodes[value.0 as usize])
            }
            Frame::AfterValue(id) | Frame::Key(id) => self.members[id.0 as usize],
            Frame::AfterItem(id) | Frame::Item(id) => self.items[id.0 as usize].after(run.stacks.items(register).place),
            Frame::Left { .. } => NEVER,
            Frame::Text | Frame::Names | Frame::End(_) => 0,
            Frame::Reference { node, .. } => self.nodes[node.0 as usize],
            Frame::WithWhitespace { .. } => unreachable!("the machine gives the frame after the whitespace"),
        }
    }

    /// The costs to give to [`Bounds::after_a_token`], where others than those of a search are needed.
    pub fn costs_apart(&self, costs: &Costs) -> Option<Costs> {
        let FewKeys { new, nodes } = self.few_keys.clone()?;
        Some(costs.with_new_keys(new, nodes))
    }

    /// An upper bound on the cost of completing the text after any one token that may come at a configuration.
    pub fn after_a_token(
        &mut self,
        run: &mut Run<'_>,
        costs: &mut Costs,
        configuration: SetId,
    ) -> Result<u64, EngineError> {
        run.in_mode(Mode::Optimistic, |run| self.after_any(run, costs, configuration))
    }

    fn after_any(&mut self, run: &mut Run<'_>, costs: &mut Costs, configuration: SetId) -> Result<u64, EngineError> {
        let mut worst = 0u64;
        let mut known = FxHashMap::default();
        for thread in run.stacks.entries(configuration).to_vec() {
            if thread == Entry::BOTTOM {
                continue;
            }
            let expansion = run.machine.fork(ExpansionId(thread.head)).clone();
            if offers_tokens(thread) {
                for (_, continuation) in &expansion.tokens {
                    let Some(stack) = run.push(&expansion, continuation, thread)? else { continue };
                    let cost = costs.of_stack(run, stack)?;
                    worst = worst.max(cost).max(self.of_stack(run, costs, stack, &mut known)?);
                }
                continue;
            }
            let spare = if expansion.additional { NEW_KEY } else { 0 };
            for (tag, lexeme) in run.lexemes(thread) {
                let mut within = self.worst_cases.of(run, lexeme)?.saturating_add(spare);
                if let Frame::Reference { names: NamesId::ANY, .. } = run.machine.frame(expansion.frame) {
                    // The reference may be to a name that the token itself completes.
                    within = within.max(self.references.rest);
                }
                for continuation in run.machine.continuations(&expansion, tag).iter() {
                    let Some(stack) = run.push(&expansion, continuation, thread)? else { continue };
                    let cost = costs.of_stack(run, stack)?.saturating_add(within);
                    worst = worst.max(cost).max(self.of_stack(run, costs, stack, &mut known)?);
                }
            }
        }
        Ok(worst)
    }
}

/// The nodes of which a prefix may be read in the same token as this node, before anything is opened.
fn within(measured: Measured<'_>, node: usize, opens: &[bool]) -> Vec<usize> {
    let index = |part: &NodeId| part.0 as usize;
    match measured.node(NodeId(node as u32)) {
        Node::Items(items) if measured.items(*items).is_bare() => {
            measured.items(*items).elements().map(|element| element.value.0 as usize).collect()
        }
        Node::Lexeme(_) | Node::Token(_) | Node::Items(_) | Node::Members(_) => Vec::new(),
        Node::Sequence(parts) => {
            let plain = parts.iter().position(|part| opens[index(part)]).map_or(parts.len(), |at| at + 1);
            parts[..plain].iter().map(index).collect()
        }
        Node::Choice(parts) => parts.iter().map(index).collect(),
        Node::Repeat { body, .. } | Node::Marked { body, .. } => vec![index(body)],
        Node::Rule(rule) => vec![index(&measured.rule(*rule).body)],
    }
}

/// Whether every text of a node contains one of these bytes, as far as is easy to see; `known` is a memo for
/// expressions.
fn opens(
    grammar: &Grammar,
    node: &Node,
    bytes: &ByteSet,
    known: &mut FxHashMap<ExprId, bool>,
) -> Result<bool, LimitExceeded> {
    check_time()?;
    Ok(match node {
        Node::Lexeme(lexeme) => must_have(grammar.exprs(), *lexeme, bytes, known)?,
        Node::Items(items) => !grammar.items(*items).is_bare(),
        Node::Members(_) => true,
        _ => false,
    })
}

/// All nodes, each after those within it; `None` where a node is within itself.
fn inner_first(count: usize, within: impl Fn(usize) -> Vec<usize>) -> Result<Option<Vec<usize>>, LimitExceeded> {
    let mut order = Vec::with_capacity(count);
    // 0: not visited, 1: on the path, 2: finished.
    let mut states = vec![0u8; count];
    for root in 0..count {
        let mut work = vec![(root, false)];
        while let Some((node, is_done)) = work.pop() {
            check_time()?;
            if is_done {
                states[node] = 2;
                order.push(node);
                continue;
            }
            match states[node] {
                2 => continue,
                1 => return Ok(None),
                _ => states[node] = 1,
            }
            work.push((node, true));
            for inner in within(node) {
                match states[inner] {
                    0 => work.push((inner, false)),
                    1 => return Ok(None),
                    _ => {}
                }
            }
        }
    }
    Ok(Some(order))
}
