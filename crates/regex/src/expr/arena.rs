//! The storage of expressions: a frozen part that many sets share, and what one set adds to it.
//!
//! The ids of the shared part come first, so they are the same in every set with that part: moving such an expression
//! from one set to another costs nothing.

use std::sync::{Arc, LazyLock};

use hashbrown::HashTable;
use stencilm_support::{hash_of, memory};

use crate::expr::byte_set::ByteSet;
use crate::expr::node::{Expr, ExprId};
use crate::numbers::Number;

/// A language decided by a program, see [`Facts::leaves`].
pub(crate) const LANGUAGE: u8 = 1;
/// A piece of a long text.
pub(crate) const TEXT: u8 = 2;

/// Properties of an expression that are computed once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Facts {
    pub(crate) nullable: bool,
    /// The number of intersections and complements in it, counted at each occurrence; `u16::MAX` stands for more.
    pub(crate) booleans: u16,
    /// Which rare leaves it contains: [`LANGUAGE`], [`TEXT`].
    pub(crate) leaves: u8,
    pub(crate) shortest: u32,
    /// See [`crate::ExprSet::greatest_count`].
    pub(crate) greatest_count: u32,
    /// See [`crate::ExprSet::agreement`].
    pub(crate) agreement: u32,
}

#[derive(Clone, Default)]
struct Part {
    nodes: Vec<Expr>,
    facts: Vec<Facts>,
    /// Hashes and ids of the nodes. With the hash, a table can grow without visiting the nodes, of which there may be
    /// many.
    index: HashTable<(u32, u32)>,
    /// The total number of children in the lists of all nodes.
    children: usize,
    /// Bytes of memory of the nodes.
    in_nodes: usize,
    /// In a shared part, the ids of the expressions of single bytes; [`NO_ID`] for one that is missing.
    singles: Vec<u32>,
}

/// No expression.
const NO_ID: u32 = u32::MAX;

/// Hash-consed nodes with their properties.
#[derive(Clone)]
pub(crate) struct Arena {
    shared: Arc<Part>,
    /// The id of the first node of `own`.
    first: usize,
    own: Part,
}

/// Frozen expressions that many sets have in common.
#[derive(Clone)]
pub struct SharedExprs(Arc<Part>);

/// The four constants of [`ExprId`], with their ids.
static CONSTANTS: LazyLock<Arc<Part>> = LazyLock::new(|| {
    let mut arena = Arena { shared: Arc::default(), first: 0, own: Part::default() };
    for constant in [
        Expr::Nothing,
        Expr::Empty,
        Expr::Bytes(ByteSet::ALL),
        Expr::Repeat { body: ExprId::ANY_BYTE, min: 0, max: None },
    ] {
        arena.intern(constant);
    }
    Arc::new(arena.own)
});

/// The half of a node's hash that is stored.
fn half_hash(expr: &Expr) -> u32 {
    (hash_of(expr) >> 32) as u32
}

/// The hash that places a node in an index, from the stored half (Fibonacci hashing: Knuth 1998, 6.4).
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Whether all children have ids below `first`.
fn may_be_shared(expr: &Expr, first: usize) -> bool {
    match expr {
        Expr::Nothing | Expr::Empty | Expr::Bytes(_) | Expr::Number(_) | Expr::Text(_) | Expr::Language(_) => true,
        Expr::Concat { head, tail } => head.index() < first && tail.index() < first,
        // The list is sorted.
        Expr::Or(parts) | Expr::And(parts) => parts.last().is_none_or(|part| part.index() < first),
        Expr::Not(inner) => inner.index() < first,
        Expr::Repeat { body, .. } => body.index() < first,
    }
}

impl Arena {
    /// An arena with only the constants.
    pub(crate) fn new() -> Arena {
        Arena::extending(&SharedExprs(CONSTANTS.clone()))
    }

    pub(crate) fn extending(shared: &SharedExprs) -> Arena {
        Arena { first: shared.0.nodes.len(), shared: shared.0.clone(), own: Part::default() }
    }

    /// Makes all nodes of both parts one shared part.
    pub(crate) fn freeze(mut self) -> SharedExprs {
        let mut all = Part::clone(&self.shared);
        all.index.reserve(self.own.nodes.len(), |&(hash, _)| spread(hash));
        for (own, expr) in self.own.nodes.iter().enumerate() {
            let (hash, id) = (half_hash(expr), (self.first + own) as u32);
            all.index.insert_unique(spread(hash), (hash, id), |&(hash, _)| spread(hash));
        }
        all.nodes.append(&mut self.own.nodes);
        all.facts.append(&mut self.own.facts);
        all.children += self.own.children;
        all.in_nodes += self.own.in_nodes;
        all.nodes.shrink_to_fit();
        all.facts.shrink_to_fit();
        all.singles = vec![NO_ID; 256];
        for (id, expr) in all.nodes.iter().enumerate() {
            if let Expr::Bytes(set) = expr
                && let Some(byte) = set.single()
            {
                all.singles[usize::from(byte)] = id as u32;
            }
        }
        SharedExprs(Arc::new(all))
    }

    pub(crate) fn len(&self) -> usize {
        self.first + self.own.nodes.len()
    }

    /// Reserves memory for further nodes.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        let Part { nodes: all, facts, index, .. } = &mut self.own;
        all.reserve(nodes);
        facts.reserve(nodes);
        index.reserve(nodes, |&(hash, _)| spread(hash));
    }

    /// The number of nodes that are not shared.
    pub(crate) fn own_len(&self) -> usize {
        self.own.nodes.len()
    }

    /// The number of ids, from the first on, that mean the same in both.
    pub(crate) fn common_with(&self, other: &Arena) -> usize {
        if Arc::ptr_eq(&self.shared, &other.shared) { self.first } else { CONSTANTS.nodes.len() }
    }

    /// Approximate bytes of memory of the part that is not shared.
    pub(crate) fn memory_bytes(&self) -> usize {
        memory::of_list(&self.own.nodes)
            + memory::of_list(&self.own.facts)
            + memory::of_table::<(u32, u32)>(self.own.index.capacity())
            + self.own.in_nodes
    }

    /// The number of children in the lists of nodes that are not shared.
    pub(crate) fn children(&self) -> usize {
        self.own.children
    }

    /// The number of nodes plus the number of children in their lists.
    pub(crate) fn size(&self) -> usize {
        self.own.nodes.len() + self.own.children
    }

    /// Releases memory that was reserved and not used.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.own.nodes.shrink_to_fit();
        self.own.facts.shrink_to_fit();
    }

    #[inline]
    pub(crate) fn get(&self, id: ExprId) -> &Expr {
        match id.index().checked_sub(self.first) {
            Some(own) => &self.own.nodes[own],
            None => &self.shared.nodes[id.index()],
        }
    }

    #[inline]
    pub(crate) fn facts(&self, id: ExprId) -> Facts {
        match id.index().checked_sub(self.first) {
            Some(own) => self.own.facts[own],
            None => self.shared.facts[id.index()],
        }
    }

    /// The expression of one byte.
    pub(crate) fn byte(&mut self, byte: u8) -> ExprId {
        match self.shared.singles.get(usize::from(byte)) {
            Some(&id) if id != NO_ID => ExprId(id),
            _ => self.intern(Expr::Bytes(ByteSet::of(byte))),
        }
    }

    pub(crate) fn intern(&mut self, expr: Expr) -> ExprId {
        self.intern_with(expr, None)
    }

    /// One byte of a set followed by something.
    pub(crate) fn intern_byte_then(&mut self, head: ExprId, tail: ExprId) -> ExprId {
        let after = self.facts(tail);
        let facts = Facts {
            nullable: false,
            shortest: after.shortest.saturating_add(1),
            agreement: after.agreement.saturating_add(1),
            ..after
        };
        self.intern_with(Expr::Concat { head, tail }, Some(facts))
    }

    /// The id of an expression, whose properties may be given.
    fn intern_with(&mut self, expr: Expr, facts: Option<Facts>) -> ExprId {
        let hash = half_hash(&expr);
        let Arena { shared, first, own } = self;
        // Shared expressions have shared children, so most new expressions need not be looked up there.
        if may_be_shared(&expr, *first)
            && let Some(&(_, found)) =
                shared.index.find(spread(hash), |&(other, id)| other == hash && shared.nodes[id as usize] == expr)
        {
            return ExprId(found);
        }
        let here = |&(other, id): &(u32, u32)| other == hash && own.nodes[id as usize - *first] == expr;
        if let Some(&(_, found)) = own.index.find(spread(hash), here) {
            return ExprId(found);
        }
        let id = u32::try_from(*first + own.nodes.len()).expect("limits keep an expression set below 2^32 nodes");
        let facts = facts.unwrap_or_else(|| self.facts_of(&expr));
        let own = &mut self.own;
        own.facts.push(facts);
        if let Expr::Or(parts) | Expr::And(parts) = &expr {
            own.children += parts.len();
        }
        own.in_nodes += match &expr {
            Expr::Or(parts) | Expr::And(parts) => memory::of_slice::<ExprId>(parts.len()),
            Expr::Number(_) => memory::allocated(size_of::<Number>()),
            Expr::Text(text) => memory::allocated(text.len()),
            Expr::Language(rest) => rest.memory_bytes(),
            _ => 0,
        };
        own.nodes.push(expr);
        own.index.insert_unique(spread(hash), (hash, id), |&(hash, _)| spread(hash));
        ExprId(id)
    }

    fn facts_of(&self, expr: &Expr) -> Facts {
        // For leaves, which differ in few properties.
        let leaf = |nullable, shortest| Facts {
            nullable,
            booleans: 0,
            leaves: 0,
            shortest: if nullable { 0 } else { shortest },
            greatest_count: 0,
            agreement: u32::MAX,
        };
        match expr {
            Expr::Nothing | Expr::Bytes(_) => leaf(false, 1),
            Expr::Empty => leaf(true, 0),
            Expr::Number(number) => leaf(number.accepts(), number.shortest()),
            Expr::Text(text) => Facts { leaves: TEXT, ..leaf(false, text.len() as u32) },
            Expr::Language(rest) => Facts { leaves: LANGUAGE, ..leaf(rest.is_nullable(), rest.shortest()) },
            Expr::Concat { head, tail } => {
                let swallowed = self.facts(*head).agreement != u32::MAX && self.swallows(*head, *tail);
                let (head, tail) = (self.facts(*head), self.facts(*tail));
                // A maximum count makes no difference if what follows reads the same and more.
                let head_agreement = if swallowed { u32::MAX } else { head.agreement };
                Facts {
                    nullable: head.nullable && tail.nullable,
                    booleans: head.booleans.saturating_add(tail.booleans),
                    leaves: head.leaves | tail.leaves,
                    shortest: head.shortest.saturating_add(tail.shortest),
                    greatest_count: head.greatest_count.max(tail.greatest_count),
                    agreement: head_agreement.min(tail.agreement.saturating_add(head.shortest)),
                }
            }
            Expr::Or(parts) => {
                let none = Facts { shortest: u32::MAX, ..leaf(false, 0) };
                let all = parts.iter().map(|&part| self.facts(part)).fold(none, |all, part| Facts {
                    nullable: all.nullable || part.nullable,
                    booleans: all.booleans.saturating_add(part.booleans),
                    leaves: all.leaves | part.leaves,
                    shortest: all.shortest.min(part.shortest),
                    greatest_count: all.greatest_count.max(part.greatest_count),
                    agreement: all.agreement.min(part.agreement),
                });
                Facts { shortest: if parts.is_empty() { 0 } else { all.shortest }, ..all }
            }
            Expr::And(parts) => {
                let of = |part: &ExprId| self.facts(*part);
                let below = parts.iter().fold(0, |sum: u16, part| sum.saturating_add(of(part).booleans));
                Facts {
                    booleans: below.saturating_add(1),
                    leaves: parts.iter().fold(0, |all, part| all | of(part).leaves),
                    ..leaf(
                        parts.iter().all(|part| of(part).nullable),
                        parts.iter().map(|part| of(part).shortest).max().unwrap_or(0),
                    )
                }
            }
            Expr::Not(inner) => {
                let inner = self.facts(*inner);
                let nullable = !inner.nullable;
                Facts {
                    booleans: inner.booleans.saturating_add(1),
                    leaves: inner.leaves,
                    ..leaf(nullable, u32::from(!nullable))
                }
            }
            Expr::Repeat { body, min, max } => {
                let body = self.facts(*body);
                let agreement = match max {
                    None | Some(0 | 1) => body.agreement,
                    Some(max) => body.agreement.min(body.shortest.saturating_mul(*max)),
                };
                Facts {
                    nullable: *min == 0,
                    booleans: body.booleans,
                    leaves: body.leaves,
                    shortest: body.shortest.saturating_mul(*min),
                    greatest_count: body.greatest_count.max(*min).max(max.unwrap_or(0)),
                    agreement,
                }
            }
        }
    }
}
