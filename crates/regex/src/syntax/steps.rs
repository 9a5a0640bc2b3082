//! Steps through a pattern with look-around: plain texts, conditions on what comes before and after a place, and repetitions
//! of both.

use std::cell::Cell;
use std::rc::Rc;

use rustc_hash::FxHashSet;
use stencilm_support::{LimitExceeded, check_time};

use crate::derivative::deriver::Deriver;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};
use crate::limits::Limits;

/// Most expressions, with all their parts, that the steps of a pattern make.
const MAX_NEW_EXPRS: usize = 120_000;
/// So many states of what the steps make are tried.
const MAX_TRIED: usize = 1_000;
/// With a count from here on there may be more, if all that were tried took no more than so many expressions; and rounds are
/// counted by their texts where these say how many they are.
pub(super) const LARGE_COUNT: u32 = 8;
const MAX_EXPRS_OF_TRIED: usize = 60_000;

/// A step through a pattern.
#[derive(Clone)]
pub(super) enum Step {
    Texts(ExprId),
    /// A condition on what comes before this place, or from it on.
    Around {
        ahead: bool,
        negative: bool,
        expr: ExprId,
    },
    Sequence(Rc<[Step]>),
    Any(Rc<[Step]>),
    Repeat {
        body: Rc<Step>,
        min: u32,
        max: Option<u32>,
    },
}

/// What the look-around of a pattern may cost: one budget for all paths through it, and for look-around in look-around.
#[derive(Default)]
pub(super) struct Budget {
    /// The expressions that were made.
    exprs: Cell<usize>,
    /// The pairs of states that were looked at.
    pairs: Cell<usize>,
}

impl Budget {
    /// Runs a part of the work over a set of expressions.
    pub fn over<T>(
        &self,
        exprs: &mut ExprSet,
        work: impl FnOnce(&mut Deriver, usize) -> Result<T, LimitExceeded>,
    ) -> Result<T, LimitExceeded> {
        let left = MAX_NEW_EXPRS.saturating_sub(self.exprs.get());
        let before = exprs.size();
        let limits = Limits { max_exprs: left, ..Limits::default() };
        let mut deriver = Deriver::over(std::mem::take(exprs), limits);
        deriver.begin();
        deriver.split_work = self.pairs.get();
        let done = work(&mut deriver, before + left);
        self.pairs.set(deriver.split_work);
        *exprs = std::mem::take(&mut deriver.exprs);
        self.exprs.set(self.exprs.get() + exprs.size() - before);
        // The bound is that of all the work, and not what was left of it.
        done.map_err(|limit| match limit {
            LimitExceeded::Expressions(most) if most == left => LimitExceeded::Expressions(MAX_NEW_EXPRS),
            limit => limit,
        })
    }
}

/// Tries whether the states of an expression are few, or made at little cost: what the steps put together by elimination may
/// be small, and yet leave something else after every text. An intersection is tried by its parts first.
pub(super) fn try_out(deriver: &mut Deriver, expr: ExprId, most_exprs: usize) -> Result<(), LimitExceeded> {
    let mut tried = match deriver.exprs.get(expr) {
        Expr::And(parts) => parts.to_vec(),
        _ => Vec::new(),
    };
    tried.push(expr);
    let greatest_count = greatest_count(&deriver.exprs, expr);
    for expr in tried {
        let before = deriver.exprs.size();
        let mut seen = FxHashSet::from_iter([expr]);
        let mut states = vec![expr];
        let mut at = 0;
        while at < states.len() && states.len() < MAX_TRIED {
            check_size(deriver, most_exprs)?;
            for &(_, rest) in deriver.derivatives(states[at])?.iter() {
                if seen.insert(rest) {
                    states.push(rest);
                }
            }
            at += 1;
        }
        let is_large = greatest_count < LARGE_COUNT || deriver.exprs.size() - before > MAX_EXPRS_OF_TRIED;
        if at < states.len() && is_large {
            return Err(LimitExceeded::States(MAX_TRIED));
        }
    }
    Ok(())
}

/// The greatest count of any repetition, those below intersections included.
fn greatest_count(exprs: &ExprSet, expr: ExprId) -> u32 {
    let mut greatest = 0;
    let mut seen = FxHashSet::from_iter([expr]);
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        greatest = greatest.max(exprs.greatest_count(expr));
        exprs.for_each_child(expr, |child| open.extend(seen.insert(child).then_some(child)));
    }
    greatest
}

pub(super) fn check_size(deriver: &Deriver, most_exprs: usize) -> Result<(), LimitExceeded> {
    check_time()?;
    if deriver.exprs.size() > most_exprs { Err(LimitExceeded::Expressions(MAX_NEW_EXPRS)) } else { Ok(()) }
}

impl Step {
    /// The look-behinds in it.
    pub fn behinds(&self, into: &mut Vec<ExprId>) {
        match self {
            Step::Around { ahead: false, expr, .. } if !into.contains(expr) => into.push(*expr),
            Step::Texts(_) | Step::Around { .. } => {}
            Step::Sequence(parts) | Step::Any(parts) => parts.iter().for_each(|part| part.behinds(into)),
            Step::Repeat { body, .. } => body.behinds(into),
        }
    }
}

/// Takes the look-behinds away after which nothing stands but other look-arounds: with the text they ask about all of it,
/// so what they ask, and whether it must not hold, is a condition on the whole and nothing need be split.
pub(super) fn conditions_at_the_end(steps: &mut Vec<Step>) -> Vec<(ExprId, bool)> {
    let is_text = |step: &Step| !matches!(*step, Step::Texts(ExprId::EMPTY) | Step::Around { .. });
    let end = steps.iter().rposition(is_text).map_or(0, |last| last + 1);
    let mut conditions = Vec::new();
    let mut at = end;
    while let Some(step) = steps.get(at) {
        match *step {
            Step::Around { ahead: false, negative, expr } => {
                conditions.push((expr, negative));
                steps.remove(at);
            }
            _ => at += 1,
        }
    }
    conditions
}

/// The same paths, without the look-behinds before which nothing stands but texts: all that such a one asks about are these
/// texts, so it is a condition on them and nothing need be split. At most about so many paths.
pub(super) fn conditions_at_the_start(exprs: &mut ExprSet, mut begin: Vec<Step>, most: usize) -> Vec<Vec<Step>> {
    // What is asked of the whole text stays in front.
    let is_first = |step: &Step| matches!(step, Step::Around { ahead: true, .. } | Step::Texts(ExprId::EMPTY));
    let steps = begin.split_off(begin.iter().take_while(|&step| is_first(step)).count());
    let texts = steps.iter().take_while(|step| matches!(step, Step::Texts(_))).count();
    if !asks_before(&steps[texts..]) {
        return vec![[begin, steps].concat()];
    }
    let mut done = Vec::new();
    // Of each the texts, the look-aheads at their end, and the other steps from the last one to the first.
    let mut open = vec![(ExprId::EMPTY, Vec::new(), steps.into_iter().rev().collect::<Vec<Step>>())];
    while let Some((texts, mut aheads, mut rest)) = open.pop() {
        match rest.pop() {
            Some(Step::Texts(more)) if aheads.is_empty() => open.push((exprs.concat(texts, more), aheads, rest)),
            Some(Step::Around { ahead: false, negative, expr }) => {
                let expr = if negative { exprs.not(expr) } else { expr };
                open.push((exprs.and(&[texts, expr]), aheads, rest));
            }
            Some(step @ Step::Around { .. }) => {
                aheads.push(step);
                open.push((texts, aheads, rest));
            }
            Some(Step::Sequence(parts)) => {
                rest.extend(parts.iter().rev().cloned());
                open.push((texts, aheads, rest));
            }
            Some(Step::Any(parts)) if one_asks_before(&parts) && open.len() + done.len() < most => {
                let path = |part: &Step| (texts, aheads.clone(), [&rest[..], std::slice::from_ref(part)].concat());
                open.extend(parts.iter().rev().map(path));
            }
            other => {
                rest.extend(other);
                rest.extend(aheads.into_iter().rev());
                rest.push(Step::Texts(texts));
                done.push(rest);
            }
        }
    }
    let is_possible = |steps: &Vec<Step>| !matches!(steps.last(), Some(Step::Texts(ExprId::NOTHING)));
    let path = |steps: Vec<Step>| begin.iter().cloned().chain(steps.into_iter().rev()).collect();
    done.into_iter().filter(is_possible).map(path).collect()
}

fn one_asks_before(alternatives: &[Step]) -> bool {
    alternatives.iter().any(|step| asks_before(std::slice::from_ref(step)))
}

/// Whether a look-behind stands in these steps before any text.
fn asks_before(steps: &[Step]) -> bool {
    let mut open = vec![steps];
    while let Some(steps) = open.pop() {
        for step in steps {
            match step {
                Step::Around { ahead: true, .. } => continue,
                Step::Around { .. } => return true,
                Step::Sequence(parts) => open.push(parts),
                Step::Any(parts) => open.extend(parts.iter().map(std::slice::from_ref)),
                Step::Texts(_) | Step::Repeat { .. } => {}
            }
            break;
        }
    }
    false
}

/// What is left of every look-behind, and after them what the rest must match.
pub(super) type State = Vec<ExprId>;
