//! Steps through a pattern with look-around: plain texts, conditions on the text before or after a position, and
//! sequences, alternatives and repetitions of these.

use std::cell::Cell;
use std::rc::Rc;

use rustc_hash::FxHashSet;
use stencilm_support::{LimitExceeded, check_time};

use crate::derivative::deriver::Deriver;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};
use crate::limits::Limits;

/// The most expressions, counting all parts, that the steps of a pattern may make.
const MAX_NEW_EXPRS: usize = 120_000;
/// The most states that are tried of the resulting expression.
const MAX_TRIED: usize = 1_000;
/// From this count on, more states are allowed, as long as those that were tried made at most `MAX_EXPRS_OF_TRIED`
/// expressions. Also from this count on, rounds are counted by their texts if these determine the number of rounds.
pub(super) const LARGE_COUNT: u32 = 8;
const MAX_EXPRS_OF_TRIED: usize = 60_000;

/// A step through a pattern.
#[derive(Clone)]
pub(super) enum Step {
    Texts(ExprId),
    /// A condition on the text before this position, or from it on.
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

/// The cost of the look-around of a pattern: one budget for all paths through it, including nested look-around.
#[derive(Default)]
pub(super) struct Budget {
    /// The number of expressions that were made.
    exprs: Cell<usize>,
    /// The number of pairs of states that were visited.
    pairs: Cell<usize>,
}

impl Budget {
    /// Runs a part of the work on a set of expressions.
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
        // Report the bound of all the work, not the remaining part of it.
        done.map_err(|limit| match limit {
            LimitExceeded::Expressions(most) if most == left => LimitExceeded::Expressions(MAX_NEW_EXPRS),
            limit => limit,
        })
    }
}

/// Tries whether an expression has few states, or states that are cheap to make. An expression that elimination has
/// produced may be small, and yet have a different derivative after every text. Of an intersection, the parts are tried
/// first.
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

/// The greatest count of any repetition, including those inside of intersections.
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
    /// Collects the look-behinds in this step.
    pub fn behinds(&self, into: &mut Vec<ExprId>) {
        match self {
            Step::Around { ahead: false, expr, .. } if !into.contains(expr) => into.push(*expr),
            Step::Texts(_) | Step::Around { .. } => {}
            Step::Sequence(parts) | Step::Any(parts) => parts.iter().for_each(|part| part.behinds(into)),
            Step::Repeat { body, .. } => body.behinds(into),
        }
    }
}

/// Removes the look-behinds that are only followed by other look-arounds. If the text ends with the pattern, these ask
/// about the whole text. So each is a condition on the whole text, negated if it is negative, and no text needs to be
/// split for it.
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

/// The same paths without the look-behinds that are only preceded by texts. Such a look-behind asks only about these
/// texts, so it is a condition on them, and no text needs to be split for it. Returns at most about `most` paths.
pub(super) fn conditions_at_the_start(exprs: &mut ExprSet, mut begin: Vec<Step>, most: usize) -> Vec<Vec<Step>> {
    // Conditions on the whole text stay in front.
    let is_first = |step: &Step| matches!(step, Step::Around { ahead: true, .. } | Step::Texts(ExprId::EMPTY));
    let steps = begin.split_off(begin.iter().take_while(|&step| is_first(step)).count());
    let texts = steps.iter().take_while(|step| matches!(step, Step::Texts(_))).count();
    if !asks_before(&steps[texts..]) {
        return vec![[begin, steps].concat()];
    }
    let mut done = Vec::new();
    // For each open path: its texts, the look-aheads at their end, and the remaining steps in reverse order.
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

/// Whether a look-behind comes before any text in these steps.
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

/// The derivative of every look-behind by the text so far, and last what the rest of the text must match.
pub(super) type State = Vec<ExprId>;
