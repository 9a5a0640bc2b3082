//! Least fixed points over the nodes of a grammar, by counting what each node still waits for: linear in the grammar.

use crate::grammar::{Grammar, Node, NodeId};

/// When a fact holds for a node.
pub(crate) enum Clause {
    /// It does not.
    Never,
    /// When it holds for all of these (so always, when there are none).
    All(Vec<NodeId>),
    /// When it holds for any of these.
    Any(Vec<NodeId>),
}

impl Clause {
    /// It holds.
    pub(crate) fn always() -> Clause {
        Clause::All(Vec::new())
    }
}

/// For every node whether the fact follows from the clauses. An error of `clause` ends the computation.
pub(crate) fn least_fixed_point<E>(
    count: usize,
    mut clause: impl FnMut(usize) -> Result<Clause, E>,
) -> Result<Vec<bool>, E> {
    // missing[n]: for how many more nodes the fact must hold before it holds for n; users[m]: nodes that wait for m.
    let mut missing = vec![0u32; count];
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); count];
    let mut holds = vec![false; count];
    let mut ready = Vec::new();
    for index in 0..count {
        let (needs, least) = match clause(index)? {
            Clause::Never => continue,
            Clause::All(needs) => {
                let all = needs.len() as u32;
                (needs, all)
            }
            Clause::Any(needs) => (needs, 1),
        };
        missing[index] = least;
        for need in needs {
            users[need.0 as usize].push(index as u32);
        }
        if least == 0 {
            holds[index] = true;
            ready.push(index);
        }
    }
    while let Some(index) = ready.pop() {
        for &user in &users[index] {
            let user = user as usize;
            if holds[user] {
                continue;
            }
            missing[user] -= 1;
            if missing[user] == 0 {
                holds[user] = true;
                ready.push(user);
            }
        }
    }
    Ok(holds)
}

impl Grammar {
    /// For every node, by position, whether it matches the empty string.
    pub fn nullable_nodes(&self) -> Vec<bool> {
        let Ok(nullable) = least_fixed_point::<std::convert::Infallible>(self.nodes.len(), |index| {
            Ok(match &self.nodes[index] {
                Node::Lexeme(expr) if self.exprs.is_nullable(*expr) => Clause::always(),
                Node::Lexeme(_) | Node::Members(_) | Node::Token(_) => Clause::Never,
                Node::Sequence(parts) => Clause::All(parts.to_vec()),
                Node::Choice(parts) => Clause::Any(parts.to_vec()),
                Node::Repeat { min: 0, .. } => Clause::always(),
                Node::Repeat { body, .. } | Node::Capture { body, .. } => Clause::All(vec![*body]),
                Node::Rule(rule) => Clause::All(vec![self.rule(*rule).body]),
            })
        });
        nullable
    }
}
