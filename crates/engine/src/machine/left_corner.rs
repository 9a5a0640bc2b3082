//! Which nodes of a grammar may begin with which: left recursion, and the paths up out of it.
//!
//! A node's *left children* are what it may begin with; after a child comes the *rest* of the node. A node that is its
//! own left descendant is left-recursive: following its first places downwards never ends. The machine reads such nodes
//! from the left corner up instead (Rosenkrantz & Lewis 1970): it begins with anything outside the cycle, and when some
//! node, the **corner**, is complete, asks which of its parents it began, up to the wanted node, the **goal**. What is
//! above a corner is the same wherever it occurs, so no stack grows while a list grows to the right.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_grammar::{Grammar, Mark, Node, NodeId};
use stencilm_support::{Bounded, memory};

/// What comes after a left child.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Rest {
    /// Nothing: the node is complete with this child.
    Nothing,
    /// The parts of a sequence from this one on.
    Parts(u32),
    /// Further rounds of a repetition, after the first.
    Rounds,
}

/// A parent: a node that may begin with another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Up {
    /// The node that begins so.
    pub parent: NodeId,
    /// What it needs after that child.
    pub rest: Rest,
}

/// The nodes that are read together from the left corner up, with their parents among them.
pub(crate) struct Region {
    nodes: Vec<NodeId>,
    ups: FxHashMap<NodeId, Vec<Up>>,
    /// The nodes from which some path up reads something.
    going_on: FxHashSet<NodeId>,
}

/// The left children of all nodes of a grammar.
pub(crate) struct LeftGraph {
    grammar: Arc<Grammar>,
    nullable: Vec<bool>,
    /// For every node, the node that it is an alias of, or itself.
    resolved: Vec<NodeId>,
    /// For every node, the number of its cycle; empty where the grammar has no cycles.
    cycles: Vec<Option<u32>>,
    members: Vec<Vec<NodeId>>,
    regions: Bounded<(u32, bool), Arc<Region>>,
}

impl LeftGraph {
    /// Computes what each node may begin with.
    pub fn new(grammar: Arc<Grammar>) -> LeftGraph {
        let nullable = grammar.nullable_nodes();
        let resolved = resolve(&grammar);
        let mut graph = LeftGraph {
            grammar,
            nullable,
            resolved,
            cycles: Vec::new(),
            members: Vec::new(),
            regions: Bounded::default(),
        };
        // Recursion goes only through rules, and every cycle has an edge to the node itself or a later one. Grammars of
        // JSON rarely have either.
        if !graph.grammar.rules().is_empty() && graph.leads_forwards() {
            graph.find_cycles();
        }
        graph
    }

    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// Whether a part with a budget or a temperature may begin with itself.
    pub fn has_mark_in_cycle(&self) -> bool {
        self.cycles.iter().zip(self.grammar.nodes()).any(|(cycle, node)| cycle.is_some() && is_opened(node))
    }

    /// The node that this one is an alias of: the body of a rule or a capture, or the only alternative of a choice.
    pub fn resolve(&self, node: NodeId) -> NodeId {
        self.resolved[node.0 as usize]
    }

    /// Whether a node matches the empty string.
    pub fn is_nullable(&self, node: NodeId) -> bool {
        self.nullable[node.0 as usize]
    }

    /// Whether a node may begin with itself.
    pub fn is_left_recursive(&self, node: NodeId) -> bool {
        self.cycles.get(node.0 as usize).is_some_and(Option::is_some)
    }

    /// Whether two nodes may begin with each other.
    pub fn in_same_cycle(&self, a: NodeId, b: NodeId) -> bool {
        let cycle = |node: NodeId| self.cycles.get(self.resolve(node).0 as usize).copied().flatten();
        cycle(a).is_some() && cycle(a) == cycle(b)
    }

    /// Whether a single token, or a part with a budget or a temperature, may come first in a node.
    pub fn begins_with_token(&self, node: NodeId) -> bool {
        let is_token = |node: NodeId| {
            let node = self.grammar.node(node);
            matches!(node, Node::Token(_)) || is_opened(node) || self.is_bare_array(node)
        };
        let node = self.resolve(node);
        is_token(node) || self.reachable(node).iter().any(|&node| self.children(node).any(|(child, _)| is_token(child)))
    }

    /// Whether a node is an array without brackets, whose elements may begin with anything.
    fn is_bare_array(&self, node: &Node) -> bool {
        matches!(node, Node::Items(id) if self.grammar.items(*id).is_bare())
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        memory::of_list(&self.nullable)
            + memory::of_list(&self.resolved)
            + memory::of_list(&self.cycles)
            + self.regions.memory_bytes()
    }

    /// Whether the rest of a node may be empty.
    pub fn is_rest_nullable(&self, node: NodeId, rest: Rest) -> bool {
        match (rest, self.grammar.node(node)) {
            (Rest::Nothing, _) => true,
            (Rest::Parts(from), Node::Sequence(parts)) => {
                parts[from as usize..].iter().all(|&part| self.is_nullable(part))
            }
            (Rest::Rounds, Node::Repeat { body, min, .. }) => *min <= 1 || self.is_nullable(*body),
            _ => unreachable!("only sequences have parts, and only repetitions rounds"),
        }
    }

    /// The left children of a node, each with what comes after it.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = (NodeId, Rest)> + '_ {
        let mut index = 0;
        let mut nullable_so_far = true;
        std::iter::from_fn(move || {
            let (child, rest) = match self.grammar.node(node) {
                Node::Choice(parts) => (*parts.get(index)?, Rest::Nothing),
                Node::Sequence(parts) if nullable_so_far => {
                    let child = *parts.get(index)?;
                    nullable_so_far = self.is_nullable(child);
                    let more = index + 1 < parts.len();
                    (child, if more { Rest::Parts(index as u32 + 1) } else { Rest::Nothing })
                }
                Node::Repeat { max: Some(0), .. } => return None,
                Node::Repeat { body, max, .. } if index == 0 => {
                    (*body, if *max == Some(1) { Rest::Nothing } else { Rest::Rounds })
                }
                Node::Marked { body, .. } if index == 0 => (*body, Rest::Nothing),
                _ => return None,
            };
            index += 1;
            Some((self.resolve(child), rest))
        })
    }

    /// Whether a node has no left children.
    fn is_leaf(&self, node: NodeId) -> bool {
        let node = self.grammar.node(node);
        matches!(node, Node::Lexeme(_) | Node::Token(_) | Node::Members(_) | Node::Items(_)) || is_opened(node)
    }

    /// The same, but a part with a budget or a temperature counts as having its body for a child.
    fn is_end(&self, node: NodeId) -> bool {
        self.is_leaf(node) && !is_opened(self.grammar.node(node))
    }

    /// Whether some node may begin with itself or with a node of a higher number.
    fn leads_forwards(&self) -> bool {
        let mut nodes = (0..self.grammar.nodes().len() as u32).map(NodeId);
        nodes.any(|node| self.resolve(node) == node && self.children(node).any(|(child, _)| child >= node))
    }

    /// Finds the cycles of the graph by Tarjan's algorithm (1972), with an explicit stack.
    fn find_cycles(&mut self) {
        let count = self.grammar.nodes().len();
        let mut cycles = vec![None; count];
        let mut members = Vec::new();
        // order[n]: when the node was first seen, from 1; low[n]: the earliest node on the stack that it reaches.
        let (mut order, mut low) = (vec![0u32; count], vec![0u32; count]);
        let mut on_stack = vec![false; count];
        let (mut stack, mut next) = (Vec::new(), 1);
        for start in 0..count as u32 {
            let start = NodeId(start);
            if order[start.0 as usize] != 0 || self.resolve(start) != start || self.is_end(start) {
                continue;
            }
            let mut work = Vec::new();
            let mut enter = Some(start);
            loop {
                if let Some(node) = enter.take() {
                    let index = node.0 as usize;
                    (order[index], low[index]) = (next, next);
                    next += 1;
                    on_stack[index] = true;
                    stack.push(node);
                    work.push((node, self.children(node), false));
                }
                let Some((node, children, loops)) = work.last_mut() else { break };
                let (node, index) = (*node, node.0 as usize);
                if let Some((child, _)) = children.next() {
                    let below = child.0 as usize;
                    *loops |= child == node;
                    if order[below] == 0 {
                        enter = (!self.is_end(child)).then_some(child);
                    } else if on_stack[below] {
                        low[index] = low[index].min(order[below]);
                    }
                    continue;
                }
                let loops = *loops;
                work.pop();
                if let Some((parent, ..)) = work.last() {
                    let parent = parent.0 as usize;
                    low[parent] = low[parent].min(low[index]);
                }
                if low[index] == order[index] {
                    let from = stack.iter().rposition(|&other| other == node).expect("a node leaves the stack once");
                    let cycle: Vec<NodeId> = stack.drain(from..).collect();
                    cycle.iter().for_each(|member| on_stack[member.0 as usize] = false);
                    if loops || cycle.len() > 1 {
                        cycle.iter().for_each(|member| cycles[member.0 as usize] = Some(members.len() as u32));
                        members.push(cycle);
                    }
                }
            }
        }
        (self.cycles, self.members) = (cycles, members);
    }

    /// The nodes to read from the left corner up in order to complete this one: its cycle or, if `whole` is set,
    /// everything that it may begin with.
    pub fn region(&mut self, goal: NodeId, whole: bool) -> Arc<Region> {
        let key = match self.cycles.get(goal.0 as usize) {
            Some(&Some(cycle)) if !whole => (cycle, false),
            _ => (goal.0, true),
        };
        if let Some(known) = self.regions.get(&key) {
            return known.clone();
        }
        let nodes = if key.1 { self.reachable(goal) } else { self.members[key.0 as usize].clone() };
        let inside: FxHashSet<NodeId> = nodes.iter().copied().collect();
        let mut ups: FxHashMap<NodeId, Vec<Up>> = FxHashMap::default();
        for &parent in &nodes {
            for (child, rest) in self.children(parent).filter(|(child, _)| inside.contains(child)) {
                let (ups, up) = (ups.entry(child).or_default(), Up { parent, rest });
                if ups.last() != Some(&up) {
                    ups.push(up);
                }
            }
        }
        let mut region = Region { nodes, ups, going_on: FxHashSet::default() };
        let reads = |node: &NodeId| region.ups(*node).iter().any(|up| up.rest != Rest::Nothing);
        let reading: Vec<NodeId> = region.nodes.iter().copied().filter(reads).collect();
        region.going_on = region.below(reading, self, |_, _| true);
        let region = Arc::new(region);
        self.regions.insert(key, region.clone(), region.nodes.len() * 80);
        region
    }

    /// Everything that a node may begin with, except leaves.
    fn reachable(&self, goal: NodeId) -> Vec<NodeId> {
        let mut nodes = vec![goal];
        let mut seen: FxHashSet<NodeId> = nodes.iter().copied().collect();
        let mut done = 0;
        while done < nodes.len() {
            let node = nodes[done];
            done += 1;
            nodes.extend(
                self.children(node).map(|(child, _)| child).filter(|&child| !self.is_leaf(child) && seen.insert(child)),
            );
        }
        nodes
    }
}

impl Region {
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// Whether a node belongs to the region.
    pub fn contains(&self, node: NodeId) -> bool {
        self.ups.contains_key(&node) || self.nodes.first() == Some(&node)
    }

    /// Whether anything can be read between a complete corner and a complete goal.
    pub fn goes_on(&self, corner: NodeId) -> bool {
        self.going_on.contains(&corner)
    }

    /// The corners that complete a goal if all rests on the path up are empty.
    pub fn completing(&self, goal: NodeId, graph: &LeftGraph) -> FxHashSet<NodeId> {
        self.below(vec![goal], graph, |parent, rest| graph.is_rest_nullable(parent, rest))
    }

    /// These nodes, and all descendants that are reached by such steps alone.
    fn below(
        &self,
        mut nodes: Vec<NodeId>,
        graph: &LeftGraph,
        step: impl Fn(NodeId, Rest) -> bool,
    ) -> FxHashSet<NodeId> {
        let mut seen: FxHashSet<NodeId> = nodes.iter().copied().collect();
        while let Some(node) = nodes.pop() {
            for (child, rest) in graph.children(node) {
                if self.contains(child) && step(node, rest) && seen.insert(child) {
                    nodes.push(child);
                }
            }
        }
        seen
    }

    /// The parents of a node within the region.
    pub fn ups(&self, node: NodeId) -> &[Up] {
        self.ups.get(&node).map_or(&[], Vec::as_slice)
    }

    /// The highest corner with the same paths up as this one. A node that is complete with its only child has the same
    /// paths as that child.
    pub fn highest(&self, goal: NodeId, corner: NodeId) -> NodeId {
        let mut highest = corner;
        // A chain longer than the region would be a cycle without the goal, from which the goal cannot be reached.
        for _ in 0..self.nodes.len() {
            match self.ups(highest) {
                [Up { parent, rest: Rest::Nothing }] if highest != goal => highest = *parent,
                _ => break,
            }
        }
        highest
    }

    /// The nodes that are complete when the corner is, if their rests are empty: the corner and nodes above it.
    pub fn complete_with(&self, corner: NodeId, graph: &LeftGraph) -> Vec<NodeId> {
        let mut nodes = vec![corner];
        let mut seen: FxHashSet<NodeId> = nodes.iter().copied().collect();
        let mut done = 0;
        while done < nodes.len() {
            let node = nodes[done];
            done += 1;
            for up in self.ups(node) {
                if graph.is_rest_nullable(up.parent, up.rest) && seen.insert(up.parent) {
                    nodes.push(up.parent);
                }
            }
        }
        nodes
    }
}

/// Whether a node is entered by a frame of its own, which holds what the grammar says about its tokens.
fn is_opened(node: &Node) -> bool {
    matches!(
        node,
        Node::Marked { mark: Mark::MaxTokens(_) | Mark::Temperature(_) | Mark::Declares(_) | Mark::Refers(_), .. }
    )
}

/// For every node, the node that it is an alias of. An alias that leads back to itself matches nothing and is never
/// used; it stands for itself.
fn resolve(grammar: &Grammar) -> Vec<NodeId> {
    let mut resolved: Vec<Option<NodeId>> = vec![None; grammar.nodes().len()];
    let mut path = Vec::new();
    for start in 0..grammar.nodes().len() as u32 {
        let mut node = NodeId(start);
        let end = loop {
            if let Some(known) = resolved[node.0 as usize] {
                break known;
            }
            // Preliminary, so that a circle ends; corrected below.
            resolved[node.0 as usize] = Some(node);
            path.push(node);
            node = match grammar.node(node) {
                Node::Rule(rule) => grammar.rule(*rule).body,
                Node::Marked { mark: Mark::Capture(_), body } => *body,
                Node::Choice(parts) | Node::Sequence(parts) if parts.len() == 1 => parts[0],
                _ => break node,
            };
        };
        path.drain(..).for_each(|name| resolved[name.0 as usize] = Some(end));
    }
    resolved.into_iter().enumerate().map(|(index, end)| end.unwrap_or(NodeId(index as u32))).collect()
}
