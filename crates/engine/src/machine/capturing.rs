//! Which parts of a grammar hold captures.

use stencilm_grammar::{Grammar, Mark, Node, NodeId};

/// For every node, whether it contains a capture; empty where the grammar has none. The members of objects are not
/// searched, since no notation can name parts of them.
pub(crate) fn capturing(grammar: &Grammar) -> Vec<bool> {
    let is_capture = |node: &Node| matches!(node, Node::Marked { mark: Mark::Capture(_), .. });
    if !grammar.nodes().iter().any(is_capture) {
        return Vec::new();
    }
    let mut capturing = vec![false; grammar.nodes().len()];
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); capturing.len()];
    let mut work = Vec::new();
    for (index, node) in grammar.nodes().iter().enumerate() {
        parts(grammar, node).for_each(|part| users[part.0 as usize].push(index as u32));
        if is_capture(node) {
            capturing[index] = true;
            work.push(index);
        }
    }
    while let Some(index) = work.pop() {
        for &user in &users[index] {
            if !std::mem::replace(&mut capturing[user as usize], true) {
                work.push(user as usize);
            }
        }
    }
    capturing
}

/// The parts of a node, without the members of an object and the elements of an array.
pub(crate) fn parts<'a>(grammar: &'a Grammar, node: &'a Node) -> impl Iterator<Item = NodeId> + 'a {
    let (many, one) = match node {
        Node::Sequence(parts) | Node::Choice(parts) => (&parts[..], None),
        Node::Repeat { body, .. } | Node::Marked { body, .. } => (&[][..], Some(*body)),
        Node::Rule(rule) => (&[][..], Some(grammar.rule(*rule).body)),
        Node::Lexeme(_) | Node::Members(_) | Node::Items(_) | Node::Token(_) => (&[][..], None),
    };
    many.iter().copied().chain(one)
}
