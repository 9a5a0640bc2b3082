//! Whether every reference of a grammar comes only after a declaration, whichever way the text takes.
//!
//! One idea: a walk from the root carries what may stand before a part: no declaration yet, some, or either. What comes
//! after it follows from whether the part can be passed without a declaration, and with one. Such a grammar needs no
//! copies of its parts. A grammar that was printed is one, so it is read as it stands, and prints as the same text.

use std::borrow::Cow;
use std::convert::Infallible;

use crate::ir::fixpoint::{Clause, least_fixed_point};
use crate::ir::grammar::{Grammar, Mark, NameSet, Node, NodeId, Repeats};

/// What may have been declared at a place, as bits.
type Before = u8;
const NOTHING: Before = 1;
const SOMETHING: Before = 2;

/// How a part can be passed.
#[derive(Clone, Copy)]
struct Passes {
    /// Without declaring a name.
    without: bool,
    /// Declaring a name.
    with: bool,
}

impl Passes {
    /// What is declared after the part, given what is before it.
    fn after(self, before: Before) -> Before {
        let mut after = 0;
        if before & NOTHING != 0 {
            after |= if self.without { NOTHING } else { 0 } | if self.with { SOMETHING } else { 0 };
        }
        if before & SOMETHING != 0 && (self.without || self.with) {
            after |= SOMETHING;
        }
        after
    }
}

/// Whether references to the set come only after declarations. `involved` and `declaring` say which nodes contain either
/// and which contain declarations. False where that isn't known: in objects and arrays that declare names, and in
/// arrays that compare their elements.
pub(super) fn is_settled(grammar: &Grammar, set: &NameSet, involved: &[bool], declaring: &[bool]) -> bool {
    let is_hard = |id: usize| match &grammar.nodes[id] {
        Node::Members(_) => declaring[id],
        Node::Items(items) => declaring[id] || grammar.items(*items).repeats != Repeats::Any,
        _ => false,
    };
    if (0..involved.len()).any(|id| involved[id] && is_hard(id)) {
        return false;
    }
    let passes = passes(grammar, set, involved);
    let mut before: Vec<Before> = vec![0; involved.len()];
    let mut work = vec![(grammar.root, NOTHING)];
    while let Some((id, more)) = work.pop() {
        let place = id.0 as usize;
        let all = before[place] | more;
        if !involved[place] || all == before[place] {
            continue;
        }
        before[place] = all;
        if matches!(&grammar.nodes[place], Node::Marked { mark: Mark::Refers(own), .. } if own == set)
            && all & NOTHING != 0
        {
            return false;
        }
        parts_before(grammar, id, all, &passes, |part, before| work.push((part, before)));
    }
    true
}

/// The parts of a node, each with what may be declared before it.
fn parts_before(
    grammar: &Grammar,
    id: NodeId,
    before: Before,
    passes: &[Passes],
    mut found: impl FnMut(NodeId, Before),
) {
    match &grammar.nodes[id.0 as usize] {
        Node::Lexeme(_) | Node::Token(_) => {}
        Node::Rule(rule) => found(grammar.rule(*rule).body, before),
        Node::Choice(parts) => parts.iter().for_each(|&part| found(part, before)),
        Node::Marked { body, .. } => found(*body, before),
        Node::Sequence(parts) => {
            let mut before = before;
            for &part in parts.iter() {
                found(part, before);
                before = passes[part.0 as usize].after(before);
            }
        }
        Node::Repeat { body, max, .. } => match max {
            Some(0) => {}
            Some(1) => found(*body, before),
            _ => found(*body, before | passes[body.0 as usize].after(before)),
        },
        Node::Members(members) => {
            let members = grammar.members(*members);
            members.declared.iter().for_each(|known| found(known.value, before));
            for additional in &members.additional {
                found(additional.value, before);
                additional.some.into_iter().for_each(|some| found(some, before));
            }
        }
        Node::Items(items) => grammar.items(*items).elements().for_each(|element| found(element.value, before)),
    }
}

/// How each node can be passed. A sequence with a part that no text passes may seem to be passed with a declaration; then
/// more is taken to be possible after it than is.
fn passes(grammar: &Grammar, set: &NameSet, involved: &[bool]) -> Vec<Passes> {
    let without = holding(
        grammar,
        involved,
        |node| match node {
            Node::Marked { mark: Mark::Declares(own), .. } if own == set => Clause::Never,
            Node::Marked { mark: Mark::Refers(own), .. } if own == set => Clause::always(),
            Node::Members(_) | Node::Items(_) | Node::Repeat { min: 0, .. } => Clause::always(),
            Node::Sequence(parts) => Clause::All(Cow::Borrowed(parts)),
            node => clause_of(grammar, node),
        },
        true,
    );
    let with = holding(
        grammar,
        involved,
        |node| match node {
            Node::Marked { mark: Mark::Declares(own), .. } if own == set => Clause::always(),
            Node::Marked { mark: Mark::Refers(own), .. } if own == set => Clause::Never,
            Node::Members(_) | Node::Items(_) | Node::Repeat { max: Some(0), .. } => Clause::Never,
            Node::Sequence(parts) => Clause::Any(parts),
            node => clause_of(grammar, node),
        },
        false,
    );
    without.into_iter().zip(with).map(|(without, with)| Passes { without, with }).collect()
}

/// The condition of a node that is passed as its parts are.
fn clause_of<'a>(grammar: &'a Grammar, node: &'a Node) -> Clause<'a> {
    match node {
        Node::Choice(parts) => Clause::Any(parts),
        Node::Repeat { body, .. } | Node::Marked { body, .. } => Clause::If(*body),
        Node::Rule(rule) => Clause::If(grammar.rule(*rule).body),
        _ => unreachable!("only what contains marks is involved, and has a condition"),
    }
}

/// For which nodes a fact holds: by their condition, or as it does for those that are not involved.
fn holding<'a>(
    grammar: &'a Grammar,
    involved: &[bool],
    clause: impl Fn(&'a Node) -> Clause<'a>,
    of_others: bool,
) -> Vec<bool> {
    let found = least_fixed_point::<Infallible>(involved.len(), |id| {
        Ok(match (involved[id], of_others) {
            (true, _) => clause(&grammar.nodes[id]),
            (false, true) => Clause::always(),
            (false, false) => Clause::Never,
        })
    });
    let Ok(found) = found;
    found
}
