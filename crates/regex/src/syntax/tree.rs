//! The pattern as a flat tree whose nodes know whether they depend on their neighbours.
//!
//! A node's facts follow from those of its children, and children come before their parents, so the tree is built in
//! one pass without recursion. Three facts matter for anchors: between which edges the node matches the empty text, and
//! whether what it matches depends on the text before it, or after it. Sequences are balanced binary trees, so
//! following one edge of a sequence of n parts takes log n steps.

use std::convert::Infallible;
use std::rc::Rc;

use regex_syntax::hir::{Look, LookSet};
use rustc_hash::FxHashMap;

use super::kinds::{Edge, Ranges};
use super::utf8::Alphabet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::ExprId;

/// A node of one [`Tree`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct NodeId(u32);

#[derive(Clone, Debug)]
pub(super) enum Node {
    Empty,
    /// A literal, with its first and last character.
    Literal {
        expr: ExprId,
        first: char,
        last: char,
    },
    Class {
        ranges: Ranges,
        expr: ExprId,
    },
    Look(Look),
    /// A look-around, by its number.
    Around(usize),
    Concat {
        head: NodeId,
        tail: NodeId,
    },
    Or(Rc<[NodeId]>),
    Repeat {
        body: NodeId,
        min: u32,
        max: Option<u32>,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// The pairs of edges between which the node matches the empty text.
    empty: EdgePairs,
    /// Whether what the node matches depends on the text before it.
    pub before: bool,
    /// Whether what the node matches depends on the text after it.
    pub after: bool,
    /// Whether there is an assertion inside.
    pub looks: bool,
    /// Whether there is look-around inside.
    pub arounds: bool,
    /// Whether there is an assertion inside that depends on the kind of a neighbouring character.
    pub looks_at_kind: bool,
    /// The expression, once it is known; only a node without assertions has one.
    expr: Option<ExprId>,
}

/// A set of (before, after) pairs as 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EdgePairs(u16);

impl EdgePairs {
    const NONE: EdgePairs = EdgePairs(0);
    const ALL: EdgePairs = EdgePairs(u16::MAX);

    fn of(holds: impl Fn(Edge, Edge) -> bool) -> EdgePairs {
        let mut bits = 0;
        for before in Edge::ALL {
            for after in Edge::ALL {
                bits |= u16::from(holds(before, after)) << EdgePairs::index(before, after);
            }
        }
        EdgePairs(bits)
    }

    fn index(before: Edge, after: Edge) -> u32 {
        before as u32 * 4 + after as u32
    }
}

pub(super) struct Tree<'a> {
    nodes: Vec<Node>,
    facts: Vec<Facts>,
    pub exprs: &'a mut ExprSet,
    /// The number of expressions before this pattern.
    pub first_expr: usize,
    /// For each look-around that depends on its other side, whether it looks ahead; `None` for all others.
    pub arounds: Vec<Option<bool>>,
    alphabet: &'a mut dyn Alphabet,
    classes: FxHashMap<Ranges, ExprId>,
    chars: FxHashMap<char, ExprId>,
}

impl<'a> Tree<'a> {
    pub fn new(exprs: &'a mut ExprSet, alphabet: &'a mut dyn Alphabet) -> Tree<'a> {
        let (classes, chars) = Default::default();
        let first_expr = exprs.len();
        Tree { nodes: Vec::new(), facts: Vec::new(), exprs, first_expr, arounds: Vec::new(), alphabet, classes, chars }
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub fn facts(&self, id: NodeId) -> Facts {
        self.facts[id.0 as usize]
    }

    /// Whether the node matches the empty text between these edges.
    pub fn matches_empty(&self, id: NodeId, before: Edge, after: Edge) -> bool {
        self.facts(id).empty.0 >> EdgePairs::index(before, after) & 1 != 0
    }

    /// The parts of a sequence in three lists: the first parts up to the last that depends on the text before the
    /// sequence, if `before`; the parts between; and the last parts from the first that depends on the text after it,
    /// if `after`.
    pub fn cut_at_borders(&self, sequence: NodeId, before: bool, after: bool) -> [Vec<NodeId>; 3] {
        let mut parts = Vec::new();
        let mut open = vec![sequence];
        while let Some(id) = open.pop() {
            match *self.node(id) {
                Node::Concat { head, tail } => open.extend([tail, head]),
                _ => parts.push(id),
            }
        }
        let may_be_empty = |id: NodeId| self.facts(id).empty != EdgePairs::NONE;
        let seen_through = parts.iter().position(|&id| !may_be_empty(id)).map_or(parts.len(), |first| first + 1);
        let looks_before = parts[..seen_through].iter().rposition(|&id| before && self.facts(id).before);
        let between = parts.split_off(looks_before.map_or(0, |last| last + 1));
        let seen_through = between.iter().rposition(|&id| !may_be_empty(id)).unwrap_or(0);
        let looks_after = between[seen_through..].iter().position(|&id| after && self.facts(id).after);
        let (between, last) = between.split_at(looks_after.map_or(between.len(), |first| seen_through + first));
        [parts, between.to_vec(), last.to_vec()]
    }

    /// Whether an assertion asks for word characters, and whether one asks for line terminators.
    pub fn kinds_asked_for(&self) -> (bool, bool) {
        let looks = self.nodes.iter().filter_map(|node| match node {
            Node::Look(look) => Some(*look),
            _ => None,
        });
        let all = looks.fold(LookSet::empty(), LookSet::insert);
        (all.contains_word(), all.contains_anchor_line())
    }

    /// One character of `ranges`.
    pub fn class(&mut self, ranges: Ranges) -> ExprId {
        if let Some(&known) = self.classes.get(&ranges) {
            return known;
        }
        let expr = self.alphabet.class(self.exprs, &ranges);
        self.classes.insert(ranges, expr);
        expr
    }

    /// The node that matches every text in which `pattern` matches somewhere.
    ///
    /// The alternatives of the pattern are searched for separately: `^a|b$` becomes `a.*|.*b`. An alternative that
    /// matches the empty text occurs in every text; the normal form would not discover that in `.*[^\n]*.*`.
    pub fn search(&mut self, pattern: NodeId) -> NodeId {
        let any: Ranges = Rc::new([('\0', char::MAX)]);
        let expr = self.class(any.clone());
        let any = self.push(Node::Class { ranges: any, expr });
        let anything = self.push(Node::Repeat { body: any, min: 0, max: None });
        let parts = match self.node(pattern) {
            Node::Or(parts) if self.facts(pattern).looks => parts.clone(),
            _ => Rc::new([pattern]),
        };
        let is_everywhere = |facts: Facts| !facts.looks && facts.empty == EdgePairs::ALL;
        if parts.iter().any(|&part| is_everywhere(self.facts(part))) {
            return anything;
        }
        let (looking, plain): (Vec<_>, Vec<_>) = parts.iter().partition(|&&part| self.facts(part).looks);
        let mut found: Vec<NodeId> = looking;
        if !plain.is_empty() {
            found.push(self.or(plain));
        }
        let found = found.into_iter().map(|part| self.concat(&[anything, part, anything])).collect();
        self.or(found)
    }

    /// The expression of a node without assertions.
    ///
    /// A sequence is concatenated from the right, which makes only the expressions that the result needs.
    pub fn plain(&mut self, id: NodeId) -> ExprId {
        if let Some(known) = self.facts(id).expr {
            return known;
        }
        debug_assert!(!self.facts(id).looks, "only nodes without assertions have one expression");
        let mut open = vec![id];
        let mut result = ExprId::EMPTY;
        while let Some(id) = open.pop() {
            match (self.facts(id).expr, self.node(id)) {
                (Some(part), _) => result = self.exprs.concat(part, result),
                (None, &Node::Concat { head, tail }) => open.extend([head, tail]),
                (None, node) => unreachable!("only a sequence waits for its expression, not {node:?}"),
            }
        }
        self.facts[id.0 as usize].expr = Some(result);
        result
    }

    pub fn or(&mut self, parts: Vec<NodeId>) -> NodeId {
        match parts[..] {
            [only] => only,
            _ => self.push(Node::Or(parts.into())),
        }
    }

    /// `parts` in sequence, as a balanced tree.
    pub fn concat(&mut self, parts: &[NodeId]) -> NodeId {
        let mut level = parts.to_vec();
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| match *pair {
                    [head, tail] => self.push(Node::Concat { head, tail }),
                    _ => pair[0],
                })
                .collect();
        }
        level.first().copied().unwrap_or_else(|| self.push(Node::Empty))
    }

    /// `body` repeated.
    ///
    /// Counters count identical rounds. If the body depends on the kinds of its neighbours, its rounds differ, so small
    /// counts of them are written out, by doubling. [`super::checks`] refuses large counts of them.
    pub fn repeat(&mut self, body: NodeId, min: u32, max: Option<u32>) -> NodeId {
        if max == Some(0) {
            return self.push(Node::Empty);
        }
        let written_out = self.facts(body).looks_at_kind && (min > 1 || max.is_some_and(|max| max > 1));
        if !written_out {
            return self.push(Node::Repeat { body, min, max });
        }
        let least = self.power(body, min);
        let more = match max {
            None => self.push(Node::Repeat { body, min: 0, max: None }),
            Some(max) => {
                let once = self.push(Node::Repeat { body, min: 0, max: Some(1) });
                self.power(once, max - min)
            }
        };
        self.concat(&[least, more])
    }

    fn power(&mut self, body: NodeId, count: u32) -> NodeId {
        match count {
            0 => self.push(Node::Empty),
            1 => body,
            _ => {
                let half = self.power(body, count / 2);
                let odd = (count % 2 == 1).then_some(body);
                let parts: Vec<NodeId> = [half, half].into_iter().chain(odd).collect();
                self.concat(&parts)
            }
        }
    }

    pub fn literal(&mut self, text: &str) -> NodeId {
        let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else {
            return self.push(Node::Empty);
        };
        let (chars, alphabet) = (&mut self.chars, &mut self.alphabet);
        let spelled = self.exprs.spelled(text, ExprId::EMPTY, |exprs, c| {
            Ok::<_, Infallible>(*chars.entry(c).or_insert_with(|| alphabet.class(exprs, &[(c, c)])))
        });
        let Ok(expr) = spelled;
        self.push(Node::Literal { expr, first, last })
    }

    pub fn push(&mut self, node: Node) -> NodeId {
        let facts = self.facts_of(&node);
        let id = u32::try_from(self.nodes.len()).expect("a pattern of limited length has fewer than 2^32 nodes");
        self.nodes.push(node);
        self.facts.push(facts);
        NodeId(id)
    }

    fn facts_of(&mut self, node: &Node) -> Facts {
        let plain = |empty, expr| Facts {
            empty,
            before: false,
            after: false,
            looks: false,
            arounds: false,
            looks_at_kind: false,
            expr,
        };
        match node {
            Node::Empty => plain(EdgePairs::ALL, Some(ExprId::EMPTY)),
            Node::Literal { expr, .. } | Node::Class { expr, .. } => plain(EdgePairs::NONE, Some(*expr)),
            &Node::Look(look) => {
                let kind = !matches!(look, Look::Start | Look::End);
                let only_before = matches!(look, Look::Start | Look::StartLF | Look::StartCRLF);
                let only_after = matches!(look, Look::End | Look::EndLF | Look::EndCRLF);
                Facts {
                    empty: EdgePairs::of(|before, after| Edge::satisfy(look, before, after)),
                    before: !only_after,
                    after: !only_before,
                    looks: true,
                    arounds: false,
                    looks_at_kind: kind,
                    expr: None,
                }
            }
            // It is converted to steps before finer facts are needed.
            &Node::Around(number) => {
                let (before, after) = (self.arounds[number] == Some(true), self.arounds[number] == Some(false));
                Facts { before, after, looks: true, arounds: true, ..plain(EdgePairs::ALL, None) }
            }
            &Node::Concat { head, tail } => {
                let (first, second) = (self.facts(head), self.facts(tail));
                Facts {
                    empty: EdgePairs(first.empty.0 & second.empty.0),
                    before: first.before || first.empty != EdgePairs::NONE && second.before,
                    after: second.after || second.empty != EdgePairs::NONE && first.after,
                    looks: first.looks || second.looks,
                    arounds: first.arounds || second.arounds,
                    looks_at_kind: first.looks_at_kind || second.looks_at_kind,
                    expr: None,
                }
            }
            Node::Or(parts) => {
                let mut all = plain(EdgePairs::NONE, None);
                for &part in parts.iter() {
                    let facts = self.facts(part);
                    all.empty.0 |= facts.empty.0;
                    all.before |= facts.before;
                    all.after |= facts.after;
                    all.looks |= facts.looks;
                    all.arounds |= facts.arounds;
                    all.looks_at_kind |= facts.looks_at_kind;
                }
                if !all.looks {
                    let parts: Vec<ExprId> = parts.iter().map(|&part| self.plain(part)).collect();
                    all.expr = Some(self.exprs.or(&parts));
                }
                all
            }
            &Node::Repeat { body, min, max } => {
                let mut facts = self.facts(body);
                if min == 0 {
                    facts.empty = EdgePairs::ALL;
                }
                facts.expr = None;
                if !facts.looks {
                    let body = self.plain(body);
                    facts.expr = Some(self.exprs.repeat(body, min, max));
                }
                facts
            }
        }
    }
}
