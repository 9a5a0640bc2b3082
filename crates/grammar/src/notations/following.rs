//! With what the text may go on after each node of a grammar: a byte, its end, or a single token. The sets FIRST and
//! FOLLOW of the theory of parsing, over bytes. They may hold more than there is, never less.

use stencilm_regex::ByteSet;

use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::{Node, NodeId};
use crate::ir::syntax_error::SyntaxError;

/// The greatest number of parts of a lexeme that are examined for its first bytes; with more parts it may begin with
/// any.
const LOOKED_AT: usize = 256;

/// The ways in which a text may continue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Next {
    /// The bytes that may come next.
    pub bytes: ByteSet,
    /// Whether it may end. In the set of the beginnings of a node: whether the node may be empty.
    pub end: bool,
    /// Whether a single token may come next.
    pub token: bool,
}

impl Next {
    const NEVER: Next = Next { bytes: ByteSet::EMPTY, end: false, token: false };
    /// Nothing more follows.
    const END: Next = Next { bytes: ByteSet::EMPTY, end: true, token: false };

    fn or(self, other: Next) -> Next {
        Next { bytes: self.bytes.union(&other.bytes), end: self.end || other.end, token: self.token || other.token }
    }

    /// The continuations by this, followed by the other.
    fn then(self, other: Next) -> Next {
        if self.end { Next { end: false, ..self }.or(other) } else { self }
    }
}

/// How the text may continue after each node that is reachable from the root, indexed by node.
///
/// # Errors
/// At `place`, if the time is over.
pub(crate) fn following(builder: &GrammarBuilder, root: NodeId, place: usize) -> Result<Vec<Next>, SyntaxError> {
    let begins = begins(builder, place)?;
    let mut follows = vec![Next::NEVER; builder.node_count()];
    follows[root.0 as usize] = Next::END;
    let mut work = vec![root];
    let mut waits = vec![false; builder.node_count()];
    let add = |follows: &mut [Next], work: &mut Vec<NodeId>, waits: &mut [bool], node: NodeId, next: Next| {
        let index = node.0 as usize;
        let all = follows[index].or(next);
        if all != follows[index] {
            follows[index] = all;
            if !std::mem::replace(&mut waits[index], true) {
                work.push(node);
            }
        }
    };
    while let Some(node) = work.pop() {
        SyntaxError::check_time(place)?;
        waits[node.0 as usize] = false;
        let mut after = follows[node.0 as usize];
        match builder.get(node) {
            Node::Sequence(parts) => {
                for &part in parts.iter().rev() {
                    add(&mut follows, &mut work, &mut waits, part, after);
                    after = begins[part.0 as usize].then(after);
                }
            }
            Node::Choice(parts) => {
                parts.iter().for_each(|&part| add(&mut follows, &mut work, &mut waits, part, after));
            }
            Node::Repeat { body, max, .. } => {
                if *max != Some(1) {
                    after = after.or(begins[body.0 as usize].then(after));
                }
                add(&mut follows, &mut work, &mut waits, *body, after);
            }
            Node::Rule(rule) => add(&mut follows, &mut work, &mut waits, builder.body(*rule), after),
            Node::Marked { body, .. } => add(&mut follows, &mut work, &mut waits, *body, after),
            // Conditions don't reach into objects and arrays.
            Node::Lexeme(_) | Node::Token(_) | Node::Members(_) | Node::Items(_) => {}
        }
    }
    Ok(follows)
}

/// The beginnings of the texts of each node.
fn begins(builder: &GrammarBuilder, place: usize) -> Result<Vec<Next>, SyntaxError> {
    let mut begins = vec![Next::NEVER; builder.node_count()];
    // Most nodes come after their parts; recursion takes further rounds.
    loop {
        let mut grows = false;
        for index in 0..begins.len() {
            SyntaxError::check_time(place)?;
            let found = begin(builder, NodeId(index as u32), &begins);
            if found != begins[index] {
                begins[index] = found;
                grows = true;
            }
        }
        if !grows {
            return Ok(begins);
        }
    }
}

/// The beginnings of the texts of a node, given those of its parts.
fn begin(builder: &GrammarBuilder, node: NodeId, begins: &[Next]) -> Next {
    let of = |node: &NodeId| begins[node.0 as usize];
    let of_expr = |expr| Next {
        bytes: builder.exprs.may_begin_with(expr, LOOKED_AT).unwrap_or(ByteSet::ALL),
        end: builder.exprs.is_nullable(expr),
        token: false,
    };
    match builder.get(node) {
        Node::Lexeme(expr) => of_expr(*expr),
        Node::Sequence(parts) => parts.iter().rev().fold(Next::END, |rest, part| of(part).then(rest)),
        Node::Choice(parts) => parts.iter().map(of).fold(Next::NEVER, Next::or),
        Node::Repeat { body, min, .. } => {
            if *min == 0 {
                of(body).or(Next::END)
            } else {
                of(body)
            }
        }
        Node::Rule(rule) => of(&builder.body(*rule)),
        Node::Marked { body, .. } => of(body),
        Node::Members(id) => {
            let surface = builder.members(*id).surface;
            opened(of_expr(surface.open).or(of_expr(surface.empty)))
        }
        Node::Items(id) => {
            let surface = builder.items(*id).surface;
            opened(of_expr(surface.open).or(of_expr(surface.empty)))
        }
        Node::Token(_) => Next { token: true, ..Next::NEVER },
    }
}

/// The beginning of an object or an array with this opening. If the opening may be empty, anything may come first.
fn opened(surface: Next) -> Next {
    if surface.end { Next { bytes: ByteSet::ALL, end: true, token: true } } else { surface }
}
