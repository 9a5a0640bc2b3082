//! Copying expressions from one set to another.
//!
//! Shared expressions have the same id in both sets and are not copied. Nothing recurses, since users choose the depth
//! of expressions.

use std::convert::Infallible;

use rustc_hash::FxHashMap;
use stencilm_support::{LimitExceeded, Map, check_time};

use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

impl ExprSet {
    /// The number of ids, from the first on, that mean the same in both sets.
    pub fn common_with(&self, other: &ExprSet) -> usize {
        self.arena.common_with(&other.arena)
    }

    /// Copies an expression of another set into this one. Shared expressions keep their ids.
    pub fn import(&mut self, other: &ExprSet, root: ExprId) -> ExprId {
        let Ok(copy) = self.import_while(other, root, &mut Map::default(), || Ok::<_, Infallible>(()));
        copy
    }

    /// As [`ExprSet::import`], for expressions that may be large.
    ///
    /// # Errors
    /// As [`stencilm_support::check_time`].
    pub fn import_in_time(&mut self, other: &ExprSet, root: ExprId) -> Result<ExprId, LimitExceeded> {
        self.import_while(other, root, &mut Map::default(), check_time)
    }

    /// As [`ExprSet::import_in_time`], for one of many expressions of a set. `known` maps expressions to copies: the
    /// root is added, and also alternatives and repetitions, since other expressions are likely to contain these.
    ///
    /// # Errors
    /// As [`stencilm_support::check_time`].
    pub fn import_once(
        &mut self,
        other: &ExprSet,
        root: ExprId,
        known: &mut Map<ExprId, ExprId>,
    ) -> Result<ExprId, LimitExceeded> {
        if let Some(&copy) = known.get(&root) {
            return Ok(copy);
        }
        let copy = self.import_while(other, root, known, check_time)?;
        known.insert(root, copy);
        Ok(copy)
    }

    fn import_while<E>(
        &mut self,
        other: &ExprSet,
        root: ExprId,
        known: &mut Map<ExprId, ExprId>,
        may_go_on: impl Fn() -> Result<(), E>,
    ) -> Result<ExprId, E> {
        let common = self.arena.common_with(&other.arena);
        if root.index() < common {
            return Ok(root);
        }
        let mut done: FxHashMap<ExprId, ExprId> = FxHashMap::default();
        let mut work = vec![root];
        // A chain of bytes, each with what follows it.
        let mut chain: Vec<ExprId> = Vec::new();
        while let Some(&id) = work.last() {
            may_go_on()?;
            if done.contains_key(&id) {
                work.pop();
                continue;
            }
            let mut rest = id;
            while let &Expr::Concat { head, tail } = other.get(rest)
                && rest.index() >= common
                && matches!(other.get(head), Expr::Bytes(_))
                && (rest == id || !done.contains_key(&rest))
            {
                chain.push(rest);
                rest = tail;
            }
            if rest != id {
                let after = if rest.index() < common { Some(rest) } else { done.get(&rest).copied() };
                match after {
                    Some(mut copy) => {
                        work.pop();
                        for &id in chain.iter().rev() {
                            copy = self.import_byte_then(other, id, copy, common);
                            done.insert(id, copy);
                        }
                    }
                    None => work.push(rest),
                }
                chain.clear();
                continue;
            }
            let branches = matches!(other.get(id), Expr::Or(_) | Expr::And(_) | Expr::Repeat { .. });
            if branches && let Some(&copy) = known.get(&id) {
                done.insert(id, copy);
                work.pop();
                continue;
            }
            let before = work.len();
            other.for_each_child(id, |child| {
                if child.index() >= common && !done.contains_key(&child) {
                    work.push(child);
                }
            });
            if work.len() > before {
                continue;
            }
            work.pop();
            let map = |child: &ExprId| if child.index() < common { *child } else { done[child] };
            let copy = self.import_node(other.get(id), map);
            done.insert(id, copy);
            if branches {
                known.insert(id, copy);
            }
        }
        Ok(done[&root])
    }

    /// The copy of a node, given the copies of its children.
    fn import_node(&mut self, node: &Expr, map: impl Fn(&ExprId) -> ExprId) -> ExprId {
        match node {
            Expr::Concat { head, tail } => self.concat(map(head), map(tail)),
            Expr::Or(parts) => self.or(&parts.iter().map(map).collect::<Vec<_>>()),
            Expr::And(parts) => self.and(&parts.iter().map(map).collect::<Vec<_>>()),
            Expr::Not(inner) => self.not(map(inner)),
            Expr::Repeat { body, min, max } => self.repeat(map(body), *min, *max),
            // Single copied expressions are examined byte by byte.
            Expr::Text(text) => self.literal_by_bytes(text.as_bytes()),
            leaf => self.intern(leaf.clone()),
        }
    }

    /// The copy of a byte followed by a copy of what follows it. The original was in normal form, so nothing need be
    /// joined.
    fn import_byte_then(&mut self, other: &ExprSet, id: ExprId, tail: ExprId, common: usize) -> ExprId {
        let &Expr::Concat { head, .. } = other.get(id) else { unreachable!("bytes with something behind them") };
        let head = match other.get(head) {
            _ if head.index() < common => head,
            Expr::Bytes(set) => match set.single() {
                Some(byte) => self.arena.byte(byte),
                None => self.bytes(*set),
            },
            _ => unreachable!("bytes with something behind them"),
        };
        self.byte_then(head, tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_keeps_the_language_and_the_id() {
        let mut from = ExprSet::new();
        let a = from.literal(b"abc");
        let b = from.repeat(a, 2, Some(4));
        let c = from.not(b);
        let d = from.and(&[c, ExprId::ANY_BYTE]);
        let e = from.or(&[d, a]);
        let mut into = ExprSet::new();
        into.literal(b"zzz");
        let copy = into.import(&from, e);
        assert_eq!(copy, into.import(&from, e));
        let mut back = from.clone();
        assert_eq!(back.import(&into, copy), e);
    }
}
