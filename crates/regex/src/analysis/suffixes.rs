//! The suffixes of an expression's texts, as one expression.
//!
//! The suffixes of a concatenation are those of the first part followed by the other parts, those of the second part
//! followed by the rest, and so on: as many as the expression has positions, whatever its counts are. Only
//! intersections, complements and sets of numbers are followed through their derivatives.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_support::{LimitExceeded, check_time};

use crate::derivative::deriver::Deriver;
use crate::expr::node::{Expr, ExprId};

/// The greatest number of residuals of one expression.
const MAX_REACHED: usize = 500_000;
/// The greatest number of parts of residuals that are combined for one expression.
const MAX_WORK: usize = 10_000_000;

/// A memo of suffixes, for the expressions of one deriver.
#[derive(Clone, Default)]
pub struct Suffixes {
    /// The suffixes of each expression. The empty suffix need not be among them.
    known: FxHashMap<ExprId, ExprId>,
    after: FxHashMap<(ExprId, u8), ExprId>,
}

impl Suffixes {
    /// The approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        stencilm_support::memory::of_table::<(ExprId, ExprId)>(self.known.capacity())
            + stencilm_support::memory::of_table::<((ExprId, u8), ExprId)>(self.after.capacity())
    }

    /// All suffixes of all texts of an expression, including the texts themselves, and the empty suffix if there is any
    /// text.
    ///
    /// # Errors
    /// As [`Deriver::derivatives`]; [`LimitExceeded::States`] where there are too many.
    pub fn of(&mut self, deriver: &mut Deriver, id: ExprId) -> Result<ExprId, LimitExceeded> {
        if !deriver.is_live(id)? {
            return Ok(ExprId::NOTHING);
        }
        let mut work = vec![id];
        while let Some(&id) = work.last() {
            check_time()?;
            let before = work.len();
            if !self.known.contains_key(&id) && deriver.is_live(id)? {
                for_each_needed(deriver, id, |child| {
                    if !self.known.contains_key(&child) {
                        work.push(child);
                    }
                });
            }
            if work.len() == before {
                work.pop();
                if !self.known.contains_key(&id) {
                    let found = self.of_parts(deriver, id)?;
                    self.known.insert(id, found);
                }
            }
        }
        let suffixes = deriver.exprs.or(&[self.known[&id], ExprId::EMPTY]);
        // Suffixes of suffixes are suffixes.
        self.known.insert(suffixes, suffixes);
        Ok(suffixes)
    }

    /// The same for a node whose children are already done.
    fn of_parts(&self, deriver: &mut Deriver, id: ExprId) -> Result<ExprId, LimitExceeded> {
        if !deriver.is_live(id)? {
            return Ok(ExprId::NOTHING);
        }
        match deriver.exprs.get(id).clone() {
            Expr::Nothing | Expr::Empty => Ok(ExprId::NOTHING),
            Expr::Bytes(_) => Ok(id),
            Expr::Concat { .. } => {
                let mut parts = Vec::new();
                let mut rest = id;
                while let Expr::Concat { head, tail } = *deriver.exprs.get(rest) {
                    check_time()?;
                    parts.push(match deriver.exprs.get(head) {
                        Expr::Bytes(_) => rest,
                        _ => deriver.exprs.concat(self.known[&head], tail),
                    });
                    if parts.len() > MAX_REACHED {
                        return Err(LimitExceeded::States(MAX_REACHED));
                    }
                    rest = tail;
                }
                parts.push(self.known[&rest]);
                Ok(deriver.exprs.or(&parts))
            }
            Expr::Or(parts) => {
                let parts: Vec<ExprId> = parts.iter().map(|part| self.known[part]).collect();
                Ok(deriver.exprs.or(&parts))
            }
            Expr::Repeat { body, max, .. } => {
                let rounds = deriver.exprs.repeat(body, 0, max.map(|max| max - 1));
                Ok(deriver.exprs.concat(self.known[&body], rounds))
            }
            Expr::And(_) | Expr::Not(_) | Expr::Number(_) | Expr::Text(_) => residuals(deriver, id),
            // Each text has a different residual.
            Expr::Language(_) => Err(LimitExceeded::States(MAX_REACHED)),
        }
    }

    /// The residual of an expression after one byte. Suffixes have many parts; only those that can begin with the byte
    /// are derived, and only by that byte.
    ///
    /// # Errors
    /// As [`Deriver::derivatives`].
    pub fn after(&mut self, deriver: &mut Deriver, id: ExprId, byte: u8) -> Result<ExprId, LimitExceeded> {
        let mut work = vec![id];
        while let Some(&id) = work.last() {
            let before = work.len();
            if !self.after.contains_key(&(id, byte)) {
                for_each_derived(deriver, id, |child| {
                    if !self.after.contains_key(&(child, byte)) {
                        work.push(child);
                    }
                });
            }
            if work.len() == before {
                work.pop();
                if !self.after.contains_key(&(id, byte)) {
                    check_time()?;
                    let found = self.after_parts(deriver, id, byte)?;
                    self.after.insert((id, byte), found);
                }
            }
        }
        Ok(self.after[&(id, byte)])
    }

    fn after_parts(&self, deriver: &mut Deriver, id: ExprId, byte: u8) -> Result<ExprId, LimitExceeded> {
        let known = |part: &ExprId| self.after[&(*part, byte)];
        match deriver.exprs.get(id).clone() {
            Expr::Concat { head, tail } => {
                let behind = match *deriver.exprs.get(head) {
                    Expr::Bytes(set) if set.contains(byte) => return Ok(tail),
                    Expr::Bytes(_) => return Ok(ExprId::NOTHING),
                    _ => deriver.exprs.concat(known(&head), tail),
                };
                match deriver.exprs.is_nullable(head) {
                    true => Ok(deriver.exprs.or(&[behind, known(&tail)])),
                    false => Ok(behind),
                }
            }
            Expr::Or(parts) => {
                let parts: Vec<ExprId> = parts.iter().map(known).collect();
                Ok(deriver.exprs.or(&parts))
            }
            Expr::Repeat { body, min, max } => {
                let rounds = deriver.exprs.repeat(body, min.saturating_sub(1), max.map(|max| max - 1));
                Ok(deriver.exprs.concat(known(&body), rounds))
            }
            _ => deriver.after(id, byte),
        }
    }
}

/// Visits the parts whose suffixes are needed for those of an expression.
fn for_each_needed(deriver: &Deriver, id: ExprId, mut visit: impl FnMut(ExprId)) {
    match deriver.exprs.get(id) {
        Expr::Concat { .. } => {
            let mut rest = id;
            while let Expr::Concat { head, tail } = *deriver.exprs.get(rest) {
                if !matches!(deriver.exprs.get(head), Expr::Bytes(_)) {
                    visit(head);
                }
                rest = tail;
            }
            visit(rest);
        }
        Expr::Or(parts) => parts.iter().copied().for_each(visit),
        &Expr::Repeat { body, .. } => visit(body),
        _ => {}
    }
}

/// Visits the parts that must be derived by a byte to derive an expression.
fn for_each_derived(deriver: &Deriver, id: ExprId, mut visit: impl FnMut(ExprId)) {
    match deriver.exprs.get(id) {
        &Expr::Concat { head, .. } if matches!(deriver.exprs.get(head), Expr::Bytes(_)) => {}
        &Expr::Concat { head, tail } => {
            visit(head);
            if deriver.exprs.is_nullable(head) {
                visit(tail);
            }
        }
        Expr::Or(parts) => parts.iter().copied().for_each(visit),
        &Expr::Repeat { body, .. } => visit(body),
        _ => {}
    }
}

/// All residuals of an expression, itself included, as one expression, found by its derivatives.
fn residuals(deriver: &mut Deriver, id: ExprId) -> Result<ExprId, LimitExceeded> {
    let mut all = id;
    let mut new = parts(deriver, id);
    let mut derived: FxHashSet<ExprId> = FxHashSet::default();
    let mut work = 0;
    while !new.is_empty() {
        let mut left = vec![all];
        // Each time as many as there are already, since combining them visits all of them.
        let most = derived.len().max(1);
        while let Some(part) = new.pop() {
            check_time()?;
            if !derived.insert(part) {
                continue;
            }
            for &(_, after) in deriver.derivatives(part)?.iter() {
                if deriver.is_live(after)? {
                    left.push(after);
                }
            }
            if left.len() > most {
                break;
            }
        }
        left.sort_unstable();
        left.dedup();
        all = deriver.exprs.or(&left);
        // Parts that were joined to larger counts are new, and parts included in others are gone.
        new = parts(deriver, all);
        work += new.len();
        if derived.len() > MAX_REACHED || work > MAX_WORK {
            return Err(LimitExceeded::States(MAX_REACHED));
        }
        new.retain(|part| !derived.contains(part));
    }
    Ok(all)
}

/// The alternatives of an expression, or the expression itself.
fn parts(deriver: &Deriver, expr: ExprId) -> Vec<ExprId> {
    match deriver.exprs.get(expr) {
        Expr::Or(parts) => parts.to_vec(),
        _ => vec![expr],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, PatternOptions, Utf8, parse_pattern};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn suffixes_are_what_some_bytes_leave(
            one in "([abé]|\\(a\\|[bc]{1,2}\\|\\)[*]?|[ab]\\*|\\((a|bc)\\)\\{1,3\\}|\\((a|\\[\\^a\\]b)\\)\\{2\\}|\\[\\^a\\]\\?|\\((a|bc|ab\\*c\\?)\\)\\*){1,5}",
            other in "([abc]|\\.\\*|\\.\\{2,4\\}){1,4}",
            text in "[abcé]{0,5}",
        ) {
            let mut deriver = Deriver::new(Limits::default());
            let options = PatternOptions::default();
            let [one, other] = [one, other]
                .map(|pattern| parse_pattern(&mut deriver.exprs, &pattern, &options, &mut Utf8).expect("plain"));
            let both = deriver.exprs.and(&[one, other]);
            let not = deriver.exprs.not(one);
            let around = deriver.exprs.concat(one, both);
            let either = deriver.exprs.or(&[both, other]);
            let many = deriver.exprs.repeat(both, 1, Some(2));
            let mut suffixes = Suffixes::default();
            for expr in [one, both, not, around, either, many] {
                let found = suffixes.of(&mut deriver, expr).unwrap();
                let twice = suffixes.of(&mut deriver, found).unwrap();
                // The slow reference: every residual, and every part of one, by itself. There may be as many whole
                // residuals as sets of parts.
                let mut seen = FxHashSet::from_iter([expr]);
                let mut work = vec![expr];
                let mut is_suffix = false;
                while let Some(rest) = work.pop() {
                    is_suffix |= deriver.matches(rest, text.as_bytes()).unwrap();
                    for &(_, after) in deriver.derivatives(rest).unwrap().iter() {
                        work.extend(parts(&deriver, after).into_iter().filter(|&part| seen.insert(part)));
                    }
                }
                let mut left = found;
                for &byte in text.as_bytes() {
                    left = suffixes.after(&mut deriver, left, byte).unwrap();
                }
                prop_assert_eq!(deriver.exprs.is_nullable(left), is_suffix);
                prop_assert_eq!(deriver.matches(found, text.as_bytes()).unwrap(), is_suffix);
                prop_assert_eq!(deriver.matches(twice, text.as_bytes()).unwrap(), is_suffix);
            }
        }
    }
}
