//! What is known of a grammar before there is a text: which nodes read the same, and which bytes their texts may end
//! with.

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;

use super::lexemes::Lexemes;
use crate::ir::grammar::{Grammar, Mark, Node, NodeId};

/// What is known of the nodes of a grammar, whatever the text.
pub(super) struct Facts {
    /// For every node, the node that reads the same texts, without the rules and marks around it.
    base: Vec<NodeId>,
    /// The first mark on the path from each node to its base.
    marked: Vec<Option<NodeId>>,
    /// Whether a mark on that path is a reference to a declared name.
    refers: Vec<bool>,
    /// The bytes that its texts may end with.
    last: Vec<ByteSet>,
    nullable: Vec<bool>,
}

impl Facts {
    pub fn new(grammar: &Grammar, lexemes: &mut Lexemes) -> Facts {
        let Bases { base, marked, refers } = bases(grammar);
        let nullable = grammar.nullable_nodes();
        let mut last = vec![ByteSet::EMPTY; grammar.nodes.len()];
        // Computes each node from the nodes before it until nothing changes: cycles go through rules.
        loop {
            let mut grows = false;
            for index in 0..last.len() {
                if base[index].0 as usize != index {
                    continue;
                }
                let found = last_from(grammar, lexemes, &base, &nullable, &last, index);
                grows |= found != last[index];
                last[index] = found;
            }
            if !grows {
                break;
            }
        }
        Facts { base, marked, refers, last, nullable }
    }

    /// The approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.base.len() * (3 * size_of::<NodeId>() + size_of::<ByteSet>() + 2)
    }

    /// The node that reads the same texts, without rules and marks around it.
    pub fn base(&self, node: NodeId) -> NodeId {
        self.base[node.0 as usize]
    }

    /// The first mark between a node and its base. Nodes with the same base and mark are equivalent.
    pub fn mark(&self, node: NodeId) -> Option<NodeId> {
        self.marked[node.0 as usize]
    }

    /// Whether a node refers to a declared name. A text with holes is read from its end, so which names are declared
    /// isn't known.
    pub fn refers(&self, node: NodeId) -> bool {
        self.refers[node.0 as usize]
    }

    /// Whether no text of a node ends with a byte.
    pub fn never_ends_with(&self, node: NodeId, byte: Option<u8>) -> bool {
        let base = self.base(node).0 as usize;
        !byte.is_some_and(|byte| self.last[base].contains(byte)) && !self.nullable[base]
    }

    /// Whether no nonempty text of a node ends with this byte.
    pub fn is_never_cut_after(&self, node: NodeId, byte: Option<u8>) -> bool {
        !byte.is_some_and(|byte| self.last[self.base(node).0 as usize].contains(byte))
    }
}

/// The bases of all nodes: what they read, without the rules and marks around them.
struct Bases {
    base: Vec<NodeId>,
    marked: Vec<Option<NodeId>>,
    refers: Vec<bool>,
}

/// Replaces equal nodes by the first of them, and nodes that only name another node by that node.
fn bases(grammar: &Grammar) -> Bases {
    let mut same: Vec<NodeId> = (0..grammar.nodes.len() as u32).map(NodeId).collect();
    let mut first: FxHashMap<Node, NodeId> = FxHashMap::default();
    for index in 0..same.len() {
        // Parts mostly come before what contains them; a part that comes after it stays as it is.
        let part = |part: &NodeId| same[part.0 as usize];
        let node = match &grammar.nodes[index] {
            Node::Sequence(parts) => Node::Sequence(parts.iter().map(part).collect()),
            Node::Choice(parts) => Node::Choice(parts.iter().map(part).collect()),
            Node::Repeat { body, min, max } => Node::Repeat { body: part(body), min: *min, max: *max },
            Node::Marked { mark, body } => Node::Marked { mark: mark.clone(), body: part(body) },
            node => node.clone(),
        };
        same[index] = *first.entry(node).or_insert(NodeId(index as u32));
    }
    let named = |node: NodeId| match &grammar.nodes[node.0 as usize] {
        Node::Rule(rule) => Some(grammar.rule(*rule).body),
        Node::Marked { body, .. } => Some(*body),
        Node::Sequence(parts) | Node::Choice(parts) if parts.len() == 1 => Some(parts[0]),
        _ => None,
    };
    let mut bases = Bases { base: Vec::with_capacity(same.len()), marked: Vec::new(), refers: Vec::new() };
    for &first in &same {
        let (mut node, mut mark, mut refers) = (first, None, false);
        // Rules that only name each other match nothing, and a grammar contains none.
        for _ in 0..same.len() {
            if let Node::Marked { mark: own, .. } = &grammar.nodes[node.0 as usize] {
                mark = mark.or(Some(node));
                refers |= matches!(own, Mark::Refers(_));
            }
            let Some(next) = named(node) else { break };
            node = same[next.0 as usize];
        }
        bases.base.push(node);
        bases.marked.push(mark);
        bases.refers.push(refers);
    }
    bases
}

fn last_from(
    grammar: &Grammar,
    lexemes: &mut Lexemes,
    base: &[NodeId],
    nullable: &[bool],
    last: &[ByteSet],
    index: usize,
) -> ByteSet {
    let of = |node: &NodeId| last[base[node.0 as usize].0 as usize];
    match &grammar.nodes[index] {
        Node::Lexeme(expr) => lexemes.last(*expr),
        Node::Token(_) => ByteSet::EMPTY,
        Node::Sequence(parts) => {
            let mut found = ByteSet::EMPTY;
            for part in parts.iter().rev() {
                found = found.union(&of(part));
                if !nullable[part.0 as usize] {
                    break;
                }
            }
            found
        }
        Node::Choice(parts) => parts.iter().fold(ByteSet::EMPTY, |all, part| all.union(&of(part))),
        Node::Repeat { body, .. } | Node::Marked { body, .. } => of(body),
        Node::Rule(rule) => of(&grammar.rule(*rule).body),
        Node::Members(id) if grammar.members(*id).is_cut() => {
            let mut found = ByteSet::EMPTY;
            for additional in grammar.members(*id).additional.iter().filter(|additional| additional.last.is_some()) {
                found = found.union(&of(&additional.value));
                if nullable[additional.value.0 as usize] {
                    found = found.union(&lexemes.last(additional.key));
                }
            }
            found
        }
        Node::Members(id) => {
            let surface = grammar.members(*id).surface;
            lexemes.last(surface.close).union(&lexemes.last(surface.empty))
        }
        Node::Items(id) => {
            let items = grammar.items(*id);
            let signs = lexemes.last(items.surface.close).union(&lexemes.last(items.surface.empty));
            match items.is_bare() {
                true => items.elements().fold(signs, |all, element| all.union(&of(&element.value))),
                false => signs,
            }
        }
    }
}
