//! Lazy repetitions, where a pattern is a part of a longer text: the shortest match counts.
//!
//! An alternative with a lazy repetition matches the texts of which no shorter prefix is a match. Optional parts at its
//! end do not count in that: greedy repetitions from zero on take what they can after the shortest match.

use regex_syntax::hir::{self, Hir, HirKind};
use stencilm_support::LimitExceeded;

use crate::derivative::deriver::Deriver;
use crate::derivative::split::split;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::ExprId;
use crate::limits::Limits;

/// One alternative of a pattern.
pub(super) struct Alternative {
    pub head: Hir,
    /// What may follow the shortest match of a lazy head.
    pub tail: Option<Hir>,
    pub is_lazy: bool,
}

/// The alternatives of a pattern.
pub(super) fn alternatives(hir: &Hir) -> Vec<Alternative> {
    let parts = match hir.kind() {
        HirKind::Alternation(parts) => parts.clone(),
        _ => vec![hir.clone()],
    };
    parts.into_iter().map(alternative).collect()
}

fn alternative(hir: Hir) -> Alternative {
    if !is_lazy(&hir) {
        return Alternative { head: hir, tail: None, is_lazy: false };
    }
    let HirKind::Concat(parts) = hir.kind() else { return Alternative { head: hir, tail: None, is_lazy: true } };
    let may_be_left_out = |part: &Hir| match part.kind() {
        HirKind::Repetition(repetition) => repetition.greedy && repetition.min == 0 && !is_lazy(part),
        _ => false,
    };
    let count = parts.iter().rev().take_while(|part| may_be_left_out(part)).count();
    if count == 0 {
        return Alternative { head: hir, tail: None, is_lazy: true };
    }
    let (head, tail) = parts.split_at(parts.len() - count);
    Alternative { head: Hir::concat(head.to_vec()), tail: Some(Hir::concat(tail.to_vec())), is_lazy: true }
}

/// Whether there is a lazy repetition anywhere inside.
fn is_lazy(hir: &Hir) -> bool {
    struct Finder(bool);
    impl hir::Visitor for Finder {
        type Output = bool;
        type Err = std::convert::Infallible;

        fn finish(self) -> Result<bool, Self::Err> {
            Ok(self.0)
        }

        fn visit_pre(&mut self, hir: &Hir) -> Result<(), Self::Err> {
            if let HirKind::Repetition(repetition) = hir.kind() {
                self.0 |= !repetition.greedy;
            }
            Ok(())
        }
    }
    match hir::visit(hir, Finder(false)) {
        Ok(found) => found,
        Err(never) => match never {},
    }
}

/// Keeps the texts of which no shorter prefix is a match, whatever follows.
pub(super) fn shortest(exprs: &mut ExprSet, groups: &mut [(ExprId, ExprId)]) {
    let free = groups.iter().filter(|(_, after)| *after == ExprId::ANYTHING).map(|&(texts, _)| texts);
    let free: Vec<ExprId> = free.collect();
    let free = exprs.or(&free);
    let more = exprs.repeat(ExprId::ANY_BYTE, 1, None);
    let longer = exprs.concat(free, more);
    let not_longer = exprs.not(longer);
    for (texts, _) in groups {
        *texts = exprs.and(&[*texts, not_longer]);
    }
}

/// The texts of one part followed by another; the second must meet the conditions of the first on what follows.
pub(super) fn joined(
    exprs: &mut ExprSet,
    heads: &[(ExprId, ExprId)],
    tails: &[(ExprId, ExprId)],
) -> Result<Vec<(ExprId, ExprId)>, LimitExceeded> {
    let mut deriver = Deriver::over(std::mem::take(exprs), Limits::default());
    let mut found = Ok(Vec::new());
    'heads: for &(head, after) in heads {
        for &(tail, rest) in tails {
            let groups = match split(&mut deriver, tail, &[after]) {
                Ok(groups) => groups,
                Err(limit) => {
                    found = Err(limit);
                    break 'heads;
                }
            };
            for (tail, left) in groups {
                let whole = deriver.exprs.concat(head, tail);
                let rest = deriver.exprs.and(&[rest, left[0]]);
                if let Ok(found) = &mut found {
                    found.push((whole, rest));
                }
            }
        }
    }
    *exprs = deriver.exprs;
    found
}
