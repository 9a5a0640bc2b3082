//! Computing a property of an expression from those of its parts, without recursion.

use rustc_hash::FxHashMap;
use stencilm_support::{LimitExceeded, check_time};

use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

impl ExprSet {
    /// A property of an expression that follows from those of its parts: `of` is called once for each part, after the
    /// parts below it. `known` is a memo.
    ///
    /// # Errors
    /// As [`stencilm_support::check_time`].
    pub fn fold<T: Copy>(
        &self,
        root: ExprId,
        known: &mut FxHashMap<ExprId, T>,
        mut of: impl FnMut(&Expr, &FxHashMap<ExprId, T>) -> T,
    ) -> Result<T, LimitExceeded> {
        let mut work = vec![root];
        while let Some(&id) = work.last() {
            check_time()?;
            let before = work.len();
            if !known.contains_key(&id) {
                self.for_each_child(id, |child| {
                    if !known.contains_key(&child) {
                        work.push(child);
                    }
                });
                if work.len() > before {
                    continue;
                }
                let found = of(self.get(id), known);
                known.insert(id, found);
            }
            work.pop();
        }
        Ok(known[&root])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_asked_once() {
        let mut exprs = ExprSet::new();
        let part = exprs.literal(b"ab");
        let twice = exprs.concat(part, part);
        let root = exprs.repeat(twice, 2, Some(3));
        let (mut known, mut asked) = (FxHashMap::default(), 0);
        let mut longest = |root| {
            exprs.fold(root, &mut known, |expr, known: &FxHashMap<ExprId, u32>| {
                asked += 1;
                match expr {
                    Expr::Bytes(_) => 1,
                    Expr::Concat { head, tail } => known[head] + known[tail],
                    Expr::Repeat { body, max, .. } => known[body] * max.unwrap_or(1),
                    _ => 0,
                }
            })
        };
        assert_eq!((longest(root), longest(twice)), (Ok(12), Ok(4)));
        assert!(asked <= exprs.len(), "{asked} questions");
    }
}
