//! Least fixed points over the nodes of a grammar, by counting what each node still waits for: linear in the grammar.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::ir::grammar::{Grammar, ItemsId, Node, NodeId};

/// The condition under which a fact holds for a node.
pub(crate) enum Clause<'a> {
    /// Never.
    Never,
    /// If it holds for this node.
    If(NodeId),
    /// If it holds for all of these; always, if there are none.
    All(Cow<'a, [NodeId]>),
    /// If it holds for any of these.
    Any(&'a [NodeId]),
    /// If the test returns true. The test gets the set of nodes for which the fact holds so far, and is repeated
    /// whenever the fact becomes true for one more of the listed nodes. It must be monotone.
    Test(Vec<NodeId>, Test<'a>),
}

/// Decides whether a fact holds, given for which nodes it holds so far.
pub(crate) type Test<'a> = Box<dyn Fn(&[bool]) -> bool + 'a>;

impl Clause<'_> {
    /// A clause that always holds.
    pub(crate) fn always() -> Clause<'static> {
        Clause::All(Cow::Borrowed(&[]))
    }
}

/// The end of a list of users.
const END: u32 = u32::MAX;

/// For every node, whether the fact follows from the clauses. An error of `clause` ends the computation.
pub(crate) fn least_fixed_point<'a, E>(
    count: usize,
    mut clause: impl FnMut(usize) -> Result<Clause<'a>, E>,
) -> Result<Vec<bool>, E> {
    // `missing[n]`: for how many more nodes the fact must hold before it holds for `n`. `users[m]`: the first entry in
    // `waiting` of a node that waits for `m`; each entry has the index of the next one. Most nodes come after those
    // that they need.
    let mut missing = vec![0u32; count];
    let mut users = vec![END; count];
    let mut waiting: Vec<(u32, u32)> = Vec::new();
    let mut holds = vec![false; count];
    let mut ready = Vec::new();
    let mut tests: FxHashMap<usize, Test<'a>> = FxHashMap::default();
    for index in 0..count {
        let clause = clause(index)?;
        let missing_of = |needs: &[NodeId]| needs.iter().filter(|need| !holds[need.0 as usize]).count();
        let (needs, least): (&[NodeId], usize) = match &clause {
            Clause::Never => continue,
            Clause::If(need) => (std::slice::from_ref(need), missing_of(std::slice::from_ref(need))),
            Clause::All(needs) => (needs, missing_of(needs)),
            Clause::Any(needs) => (needs, usize::from(missing_of(needs) == needs.len())),
            Clause::Test(needs, test) => (needs, usize::from(!test(&holds))),
        };
        if least == 0 {
            holds[index] = true;
            ready.push(index);
        } else {
            missing[index] = least as u32;
            for need in needs.iter().filter(|need| !holds[need.0 as usize]) {
                let first = &mut users[need.0 as usize];
                waiting.push((index as u32, *first));
                *first = waiting.len() as u32 - 1;
            }
            if let Clause::Test(_, test) = clause {
                tests.insert(index, test);
            }
        }
        while let Some(known) = ready.pop() {
            let mut next = users[known];
            while let Some(&(user, following)) = waiting.get(next as usize) {
                next = following;
                let user = user as usize;
                if holds[user] {
                    continue;
                }
                match tests.get(&user) {
                    Some(test) => missing[user] = u32::from(!test(&holds)),
                    None => missing[user] -= 1,
                }
                if missing[user] == 0 {
                    holds[user] = true;
                    ready.push(user);
                }
            }
        }
    }
    Ok(holds)
}

impl Grammar {
    /// For every node, by index, whether it matches the empty string.
    pub fn nullable_nodes(&self) -> Vec<bool> {
        // Two passes, each in node order: if the second changes nothing, the result is complete.
        let mut holds = vec![false; self.nodes.len()];
        for _ in 0..2 {
            let mut more = false;
            for (index, node) in self.nodes.iter().enumerate() {
                if !holds[index] && self.is_nullable_from(node, &holds) {
                    holds[index] = true;
                    more = true;
                }
            }
            if !more {
                return holds;
            }
        }
        self.nullable_by_counting()
    }

    /// Whether a node matches the empty string, if exactly these nodes do.
    fn is_nullable_from(&self, node: &Node, holds: &[bool]) -> bool {
        let is_nullable = |part: &NodeId| holds[part.0 as usize];
        match node {
            Node::Lexeme(expr) => self.exprs.is_nullable(*expr),
            Node::Members(_) | Node::Token(_) => false,
            Node::Items(id) => self.is_empty_array(*id),
            Node::Sequence(parts) => parts.iter().all(is_nullable),
            Node::Choice(parts) => parts.iter().any(is_nullable),
            Node::Repeat { body, min, .. } => *min == 0 || is_nullable(body),
            Node::Marked { body, .. } => is_nullable(body),
            Node::Rule(rule) => is_nullable(&self.rule(*rule).body),
        }
    }

    /// Whether an array may be the empty text: it has no brackets or commas, and no element is required.
    fn is_empty_array(&self, id: ItemsId) -> bool {
        let items = self.items(id);
        items.is_bare() && items.may_be_empty()
    }

    fn nullable_by_counting(&self) -> Vec<bool> {
        let Ok(nullable) = least_fixed_point::<std::convert::Infallible>(self.nodes.len(), |index| {
            Ok(match &self.nodes[index] {
                Node::Lexeme(expr) if self.exprs.is_nullable(*expr) => Clause::always(),
                Node::Items(id) if self.is_empty_array(*id) => Clause::always(),
                Node::Lexeme(_) | Node::Members(_) | Node::Items(_) | Node::Token(_) => Clause::Never,
                Node::Sequence(parts) => Clause::All(Cow::Borrowed(parts)),
                Node::Choice(parts) => Clause::Any(parts),
                Node::Repeat { min: 0, .. } => Clause::always(),
                Node::Repeat { body, .. } | Node::Marked { body, .. } => Clause::If(*body),
                Node::Rule(rule) => Clause::If(self.rule(*rule).body),
            })
        });
        nullable
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::ir::builder::GrammarBuilder;
    use crate::ir::grammar::{Node, RuleId};
    use crate::ir::report::Report;

    const RULES: u32 = 4;

    proptest! {
        /// Bodies of rules that refer to earlier and later rules.
        #[test]
        fn two_rounds_find_what_counting_finds(
            bodies in prop::collection::vec((0..5u8, prop::collection::vec(0..2 * RULES, 1..4)), RULES as usize)
        ) {
            let mut builder = GrammarBuilder::default();
            let rules: Vec<RuleId> = (0..RULES).map(|index| builder.declare_rule(format!("r{index}"))).collect();
            for (&rule, (kind, parts)) in rules.iter().zip(&bodies) {
                let a = builder.exprs.literal(b"a");
                let parts: Vec<_> = parts.iter().map(|&part| match rules.get(part as usize) {
                    Some(&rule) => builder.node(Node::Rule(rule)),
                    None => builder.lexeme(a),
                }).collect();
                let body = match kind {
                    0 => builder.sequence(&parts),
                    1 => builder.choice(&parts),
                    2 => builder.repeat(parts[0], 0, Some(2)),
                    3 => builder.repeat(parts[0], 1, None),
                    _ => builder.sequence(&[]),
                };
                builder.define_rule(rule, body);
            }
            let roots: Vec<_> = rules.iter().map(|&rule| builder.node(Node::Rule(rule))).collect();
            let (root, a) = (builder.choice(&roots), builder.exprs.literal(b"a"));
            let end = builder.lexeme(a);
            let root = builder.choice(&[root, end]);
            let grammar = builder.finish(root, Report::default()).expect("`a` matches");
            prop_assert_eq!(grammar.nullable_nodes(), grammar.nullable_by_counting());
        }
    }
}
