//! A rule for every larger part that is used more than once, so that a grammar is a tree between its rules.
//!
//! Without this a grammar of shared nodes could print as a text of exponential length.

use rustc_hash::FxHashMap;
use stencilm_support::HashSet;

use super::rebuild::{children, rebuild};
use crate::ir::grammar::{Grammar, Node, NodeId, RuleId};

/// A part with fewer nodes than this gets no rule.
const MIN_SIZE: u32 = 6;

/// Gives nodes that are used more than once a rule of their own; if such a node is already the body of a rule, that
/// rule is used. Equal nodes of the grammar must be shared.
pub fn name_shared<E>(grammar: &Grammar, may_go_on: impl Fn() -> Result<(), E>) -> Result<Grammar, E> {
    let mut uses = vec![0u32; grammar.nodes.len()];
    uses[grammar.root.0 as usize] += 1;
    for node in &grammar.nodes {
        may_go_on()?;
        for child in children(grammar, node) {
            uses[child.0 as usize] += 1;
        }
    }
    let mut bodies: FxHashMap<NodeId, RuleId> = FxHashMap::default();
    for (index, rule) in grammar.rules.iter().enumerate() {
        bodies.entry(rule.body).or_insert(RuleId(index as u32));
    }
    // The nodes that get a name, children first: in what contains it, a named node counts as one node.
    let mut sizes = vec![1u32; grammar.nodes.len()];
    let mut named: Vec<NodeId> = Vec::new();
    for id in in_order(grammar) {
        may_go_on()?;
        let index = id.0 as usize;
        let parts = children(grammar, grammar.node(id));
        let size = parts.iter().fold(1, |sum: u32, child| sum.saturating_add(sizes[child.0 as usize]));
        let wanted = if bodies.contains_key(&id) { 1 } else { 2 };
        let is_named = size >= MIN_SIZE && uses[index] >= wanted;
        sizes[index] = if is_named { 1 } else { size };
        if is_named {
            named.push(id);
        }
    }
    if named.is_empty() {
        return Ok(grammar.clone());
    }
    let mut grammar = grammar.clone();
    let mut names: HashSet<String> = grammar.rules.iter().map(|rule| rule.name.clone()).collect();
    let mut number = 0;
    // The node that replaces a named node everywhere except as the body of rules.
    let mut stands_for: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for id in named {
        let rule = match bodies.get(&id) {
            Some(&rule) => rule,
            None => {
                let name = loop {
                    number += 1;
                    let name = format!("part_{number}");
                    if names.insert(name.clone()) {
                        break name;
                    }
                };
                grammar.rules.push(crate::ir::grammar::Rule { name, body: id });
                RuleId(grammar.rules.len() as u32 - 1)
            }
        };
        grammar.nodes.push(Node::Rule(rule));
        stands_for.insert(id, NodeId(grammar.nodes.len() as u32 - 1));
    }
    let other = |id: &mut NodeId| {
        if let Some(&rule) = stands_for.get(id) {
            *id = rule;
        }
    };
    for node in &mut grammar.nodes {
        may_go_on()?;
        match node {
            Node::Sequence(parts) | Node::Choice(parts) => parts.iter_mut().for_each(other),
            Node::Repeat { body, .. } | Node::Marked { body, .. } => other(body),
            Node::Lexeme(_) | Node::Token(_) | Node::Rule(_) | Node::Members(_) | Node::Items(_) => {}
        }
    }
    for members in &mut grammar.members {
        members.declared.iter_mut().for_each(|known| other(&mut known.value));
        for additional in &mut members.additional {
            other(&mut additional.value);
            additional.some.iter_mut().for_each(other);
        }
    }
    for items in &mut grammar.items {
        items.prefix.iter_mut().flatten().chain(&mut items.rest).for_each(|element| other(&mut element.value));
    }
    other(&mut grammar.root);
    rebuild(&grammar, true, may_go_on, |draft, node| draft.node(node))
}

/// All nodes, children first, otherwise in the order of the text.
fn in_order(grammar: &Grammar) -> Vec<NodeId> {
    // `rebuild` assigns ids in this order.
    (0..grammar.nodes.len() as u32).map(NodeId).collect()
}
