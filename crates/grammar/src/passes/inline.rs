//! Rules that only rename: their uses become what they stand for.

use super::rebuild::{Draft, drop_unreachable, rebuild};
use crate::ir::grammar::{Grammar, Node, NodeId, RuleId};

/// Replaces uses of a rule whose body is only another rule, a lexeme, a token or nothing by that body. If the root is a
/// rule that is used nowhere else, the body of that rule becomes the root.
pub fn inline_renames<E>(grammar: &Grammar, may_go_on: impl Fn() -> Result<(), E>) -> Result<Grammar, E> {
    let stands_for = renames(grammar);
    let mut grammar = grammar.clone();
    for node in &mut grammar.nodes {
        if let Node::Rule(rule) = node {
            *rule = stands_for[rule.0 as usize];
        }
    }
    let mut grammar = drop_unreachable(&rebuild(&grammar, false, &may_go_on, inlined)?, &may_go_on)?;
    if let Node::Rule(rule) = *grammar.node(grammar.root) {
        let uses = |(at, node): (usize, &Node)| at != grammar.root.0 as usize && *node == Node::Rule(rule);
        // The root may share its node for the rule with other nodes.
        let shared = grammar.nodes.iter().enumerate().any(uses) || holds(&grammar, grammar.root);
        if !shared {
            grammar.root = grammar.rule(rule).body;
            return drop_unreachable(&grammar, may_go_on);
        }
    }
    Ok(grammar)
}

/// For every rule, the rule at the end of its chain of renames. Rules that rename each other in a cycle keep their
/// names.
fn renames(grammar: &Grammar) -> Vec<RuleId> {
    let mut ends: Vec<Option<RuleId>> = vec![None; grammar.rules.len()];
    for start in 0..grammar.rules.len() as u32 {
        let mut path = Vec::new();
        let mut at = RuleId(start);
        let end = loop {
            if let Some(end) = ends[at.0 as usize] {
                break end;
            }
            // Until its end is known, a rule on the path ends at itself, which breaks cycles.
            ends[at.0 as usize] = Some(at);
            path.push(at);
            match *grammar.node(grammar.rule(at).body) {
                Node::Rule(next) => at = next,
                _ => break at,
            }
        };
        for rule in path {
            ends[rule.0 as usize] = Some(end);
        }
    }
    ends.into_iter().map(|end| end.expect("every rule has been visited")).collect()
}

fn holds(grammar: &Grammar, child: NodeId) -> bool {
    grammar.nodes.iter().any(|node| super::rebuild::children(grammar, node).contains(&child))
        || grammar.rules.iter().any(|rule| rule.body == child)
}

/// A node, or the node that it renames.
pub(super) fn inlined(draft: &mut Draft, node: Node) -> NodeId {
    match node {
        Node::Rule(rule) => draft.renamed(rule).unwrap_or_else(|| draft.node(node)),
        _ => draft.node(node),
    }
}
