//! Steps through a pattern with look-around: plain texts, conditions on what comes before and after a place, and repetitions
//! of both.
//!
//! What is left of every look-behind, and what a look-ahead asks of the rest, is a state; the texts of a step lead from a
//! state to others. A repetition is a graph of states with the texts of its rounds as edges, and what leads through it is
//! found by elimination (Arden 1961).

use std::cell::Cell;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_support::{LimitExceeded, check_time};

use crate::derivative::deriver::Deriver;
use crate::derivative::split::{Group, split};
use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};
use crate::limits::Limits;

/// Most states between the rounds of a repetition.
const MAX_STATES: usize = 64;
/// Most pairs of states that are looked at to follow the steps of all paths through a pattern.
const MAX_WORK: usize = 100_000;
/// Most expressions, with all their parts, that the steps of a pattern make.
const MAX_NEW_EXPRS: usize = 120_000;
/// So many states of what the steps make are tried.
const MAX_TRIED: usize = 1_000;
/// With a count from here on there may be more, if all that were tried took no more than so many expressions; and rounds are
/// counted by their texts where these say how many they are.
const LARGE_COUNT: u32 = 8;
const MAX_EXPRS_OF_TRIED: usize = 60_000;
/// Most expressions for the rounds of counted repetitions, which are written out.
const MAX_WRITTEN_OUT: usize = 100_000;

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
    let counts: Vec<u32> = tried.iter().map(|&part| deriver.exprs.greatest_count(part)).collect();
    let greatest_count = counts.into_iter().max().unwrap_or(0);
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

fn check_size(deriver: &Deriver, most_exprs: usize) -> Result<(), LimitExceeded> {
    check_time()?;
    if deriver.exprs.size() > most_exprs { Err(LimitExceeded::Expressions(MAX_NEW_EXPRS)) } else { Ok(()) }
}

impl Step {
    /// The look-behinds in it.
    fn behinds(&self, into: &mut Vec<ExprId>) {
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
type State = Vec<ExprId>;

/// The texts of the steps, in groups by what the rest of the text must match. Where the end is not open nothing follows.
/// `any_text` is what every text matches; there are at most `most_exprs` expressions with their parts.
pub(super) fn run(
    deriver: &mut Deriver,
    steps: &[Step],
    open: bool,
    any_text: ExprId,
    most_exprs: usize,
) -> Result<Vec<(ExprId, ExprId)>, LimitExceeded> {
    let mut behinds = Vec::new();
    steps.iter().for_each(|step| step.behinds(&mut behinds));
    // After the last step that asks for it, a look-behind is of no interest any more.
    let last_asked: Vec<usize> = behinds
        .iter()
        .map(|after| {
            let asks = |step: &Step| {
                let mut asked = Vec::new();
                step.behinds(&mut asked);
                asked.contains(after)
            };
            steps.iter().rposition(asks).expect("a step asks for it")
        })
        .collect();
    let mut start: State = behinds.clone();
    start.push(ExprId::ANYTHING);
    let mut walker = Walker { deriver, any_text, behinds, known: FxHashMap::default(), written_out: 0, most_exprs };
    // Forward: every state that is reached before every step.
    let mut layers: Vec<Vec<State>> = vec![vec![start.clone()]];
    let mut moves: FxHashMap<(usize, State), Vec<Group>> = FxHashMap::default();
    for (at, step) in steps.iter().enumerate() {
        let mut next: Vec<State> = Vec::new();
        for state in layers[at].clone() {
            let mut groups = match step {
                // Where nothing follows, it is asked of the whole rest, below.
                Step::Around { ahead: true, .. } if !open => vec![(ExprId::EMPTY, state.clone())],
                // The last texts are all of what the rest must match, so they need not be split by what they leave of it.
                &Step::Texts(texts) if !open && at + 1 == steps.len() => {
                    let rest = *state.last().expect("the rest is always there");
                    let texts = walker.deriver.exprs.and(&[texts, rest]);
                    vec![(texts, vec![ExprId::ANYTHING; state.len()])]
                }
                step => walker.follow(step, &state)?.to_vec(),
            };
            for (_, state) in &mut groups {
                for (left, &last) in state.iter_mut().zip(&last_asked) {
                    if last == at {
                        *left = ExprId::NOTHING;
                    }
                }
                if !next.contains(state) {
                    next.push(state.clone());
                }
            }
            moves.insert((at, state), groups);
        }
        layers.push(next);
    }
    let mut whole = texts_backward(walker.deriver, steps, &Reached { layers, moves }, open, most_exprs)?;
    Ok(whole.remove(&start).unwrap_or_default())
}

/// The states that the steps of a pattern lead through.
struct Reached {
    /// Those before every step, and after the last.
    layers: Vec<Vec<State>>,
    /// The texts from each of them to others, by the step.
    moves: FxHashMap<(usize, State), Vec<Group>>,
}

/// The texts from each state before the first step to the end, in groups by what the rest must match.
fn texts_backward(
    deriver: &mut Deriver,
    steps: &[Step],
    Reached { layers, moves }: &Reached,
    open: bool,
    most_exprs: usize,
) -> Result<FxHashMap<State, Vec<(ExprId, ExprId)>>, LimitExceeded> {
    let mut after_here: FxHashMap<State, Vec<(ExprId, ExprId)>> = FxHashMap::default();
    for state in &layers[steps.len()] {
        let rest = *state.last().expect("the rest is always there");
        let end = match open {
            true if deriver.is_live(rest)? => vec![(ExprId::EMPTY, rest)],
            false if deriver.exprs.is_nullable(rest) => vec![(ExprId::EMPTY, ExprId::ANYTHING)],
            _ => Vec::new(),
        };
        after_here.insert(state.clone(), end);
    }
    for at in (0..steps.len()).rev() {
        let mut here: FxHashMap<State, Vec<(ExprId, ExprId)>> = FxHashMap::default();
        for state in &layers[at] {
            check_size(deriver, most_exprs)?;
            let mut found: Vec<(ExprId, ExprId)> = Vec::new();
            for (texts, next) in &moves[&(at, state.clone())] {
                for &(rest, after) in &after_here[next] {
                    let mut whole = deriver.exprs.concat(*texts, rest);
                    if let (&Step::Around { ahead: true, negative, expr }, false) = (&steps[at], open) {
                        let expr = if negative { deriver.exprs.not(expr) } else { expr };
                        whole = deriver.exprs.and(&[whole, expr]);
                    }
                    match found.iter_mut().find(|(_, known)| *known == after) {
                        Some((known, _)) => *known = deriver.exprs.or(&[*known, whole]),
                        None => found.push((whole, after)),
                    }
                }
            }
            here.insert(state.clone(), found);
        }
        after_here = here;
    }
    Ok(after_here)
}

struct Walker<'d> {
    deriver: &'d mut Deriver,
    any_text: ExprId,
    /// The look-behinds as they are at the start, by their places in a state.
    behinds: Vec<ExprId>,
    /// What is known of steps within others, which stay where they are.
    known: FxHashMap<(*const Step, State), Rc<[Group]>>,
    written_out: usize,
    /// Most expressions there may be.
    most_exprs: usize,
}

impl Walker<'_> {
    /// The texts of a step from a state on, by the state that they lead to.
    fn follow(&mut self, step: &Step, state: &State) -> Result<Rc<[Group]>, LimitExceeded> {
        let key = (std::ptr::from_ref(step), state.clone());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        self.deriver.split_work += 1;
        self.check()?;
        let groups = match step {
            Step::Texts(texts) => {
                let mut found = Vec::new();
                for (texts, mut state) in split(self.deriver, *texts, state)? {
                    let rest = state.last_mut().expect("the rest is always there");
                    *rest = self.without_any_text(*rest);
                    if *rest != ExprId::NOTHING {
                        self.put(&mut found, texts, &state);
                    }
                }
                found
            }
            &Step::Around { ahead: true, negative, expr } => {
                let mut state = state.clone();
                let exprs = &mut self.deriver.exprs;
                let expr = if negative { exprs.not(expr) } else { expr };
                let rest = state.last_mut().expect("the rest is always there");
                *rest = exprs.and(&[*rest, expr]);
                if self.deriver.is_live(*rest)? { vec![(ExprId::EMPTY, state)] } else { Vec::new() }
            }
            Step::Around { negative, expr, .. } => {
                let place = self.behinds.iter().position(|after| after == expr).expect("it is listed");
                let holds = self.deriver.exprs.is_nullable(state[place]) != *negative;
                if holds { vec![(ExprId::EMPTY, state.clone())] } else { Vec::new() }
            }
            Step::Sequence(parts) => self.sequence(parts, state)?,
            Step::Any(parts) => {
                let mut found = Vec::new();
                for part in parts.iter() {
                    for (texts, state) in self.follow(part, state)?.iter() {
                        self.put(&mut found, *texts, state);
                    }
                }
                found
            }
            Step::Repeat { body, min, max } => self.rounds(body, *min, *max, state)?,
        };
        let groups: Rc<[Group]> = groups.into();
        self.known.insert(key, groups.clone());
        Ok(groups)
    }

    fn check(&self) -> Result<(), LimitExceeded> {
        if self.deriver.split_work > MAX_WORK {
            return Err(LimitExceeded::States(MAX_WORK));
        }
        check_size(self.deriver, self.most_exprs)
    }

    /// What the rest must match, without the condition that it is a text, which holds everywhere: so that conditions that are
    /// met leave the same state after.
    fn without_any_text(&mut self, rest: ExprId) -> ExprId {
        let exprs = &mut self.deriver.exprs;
        let no_text = exprs.not(self.any_text);
        let parts = match exprs.get(rest) {
            Expr::And(parts) => parts.to_vec(),
            _ => vec![rest],
        };
        if parts.contains(&no_text) {
            return ExprId::NOTHING;
        }
        let asked: Vec<ExprId> = parts.iter().copied().filter(|&part| part != self.any_text).collect();
        if asked.len() == parts.len() { rest } else { exprs.and(&asked) }
    }

    /// Notes texts that lead to a state.
    fn put(&mut self, found: &mut Vec<Group>, texts: ExprId, state: &State) {
        match found.iter_mut().find(|(_, known)| known == state) {
            Some((known, _)) => *known = self.deriver.exprs.or(&[*known, texts]),
            None => found.push((texts, state.clone())),
        }
    }

    fn sequence(&mut self, parts: &[Step], state: &State) -> Result<Vec<Group>, LimitExceeded> {
        let mut layers: Vec<Vec<State>> = vec![vec![state.clone()]];
        for (at, part) in parts.iter().enumerate() {
            let mut next: Vec<State> = Vec::new();
            for state in layers[at].clone() {
                for (_, state) in self.follow(part, &state)?.iter() {
                    if !next.contains(state) {
                        next.push(state.clone());
                    }
                }
            }
            layers.push(next);
        }
        // From the end, so that no sequence is put together anew.
        let end = layers.pop().expect("there is a layer at least");
        let mut after: Vec<Vec<Group>> = end.iter().map(|state| vec![(ExprId::EMPTY, state.clone())]).collect();
        let mut reached = end;
        for part in parts.iter().rev() {
            let layer = layers.pop().expect("there is one before every part");
            let mut before = Vec::with_capacity(layer.len());
            for state in &layer {
                let mut found = Vec::new();
                for (texts, next) in self.follow(part, state)?.iter() {
                    let place = reached.iter().position(|state| state == next).expect("it was reached");
                    for (rest, last) in &after[place] {
                        let whole = self.deriver.exprs.concat(*texts, *rest);
                        self.put(&mut found, whole, last);
                    }
                }
                before.push(found);
            }
            (after, reached) = (before, layer);
        }
        Ok(after.pop().expect("one state is at the beginning"))
    }

    /// A body repeated.
    fn rounds(&mut self, body: &Step, min: u32, max: Option<u32>, state: &State) -> Result<Vec<Group>, LimitExceeded> {
        // The states between rounds, with the texts that lead from each to each.
        let mut states = vec![state.clone()];
        let mut edges: Vec<Vec<(usize, ExprId)>> = Vec::new();
        while edges.len() < states.len() {
            let state = states[edges.len()].clone();
            let mut row = Vec::new();
            for (texts, next) in self.follow(body, &state)?.iter() {
                let to = states.iter().position(|known| known == next).unwrap_or(states.len());
                if to == states.len() {
                    states.push(next.clone());
                }
                row.push((to, *texts));
            }
            if states.len() > MAX_STATES {
                return Err(LimitExceeded::States(MAX_STATES));
            }
            edges.push(row);
        }
        let mut found = Vec::new();
        if let ([(0, only)], 1) = (&edges[0][..], states.len()) {
            let texts = self.deriver.exprs.repeat(*only, min, max);
            return Ok(vec![(texts, state.clone())]);
        }
        if max.unwrap_or(min) >= LARGE_COUNT
            && let Some(counted) = self.counted_by_texts(&edges, min, max)?
        {
            let any_number = self.any_number(&edges)?.swap_remove(0);
            for (texts, state) in any_number.into_iter().zip(states) {
                let texts = self.deriver.exprs.and(&[texts, counted]);
                if texts != ExprId::NOTHING {
                    found.push((texts, state));
                }
            }
            return Ok(found);
        }
        let count = max.unwrap_or(min) as usize;
        let all: usize = edges.iter().map(Vec::len).sum();
        self.written_out = self.written_out.saturating_add(count.saturating_mul(all).saturating_mul(states.len()));
        if self.written_out > MAX_WRITTEN_OUT {
            return Err(LimitExceeded::Expressions(MAX_WRITTEN_OUT));
        }
        let any_number = if max.is_none() { Some(self.any_number(&edges)?) } else { None };
        for (to, state) in states.iter().enumerate() {
            self.check()?;
            // From every state on to this one: first what is left open, then what must be.
            let here = |from: usize| if from == to { ExprId::EMPTY } else { ExprId::NOTHING };
            let mut alternatives: Vec<ExprId> = match &any_number {
                Some(alternatives) => alternatives.iter().map(|row| row[to]).collect(),
                None => (0..states.len()).map(here).collect(),
            };
            for round in (0..count).rev() {
                let may_end = round >= min as usize;
                let exprs = &mut self.deriver.exprs;
                alternatives = edges
                    .iter()
                    .enumerate()
                    .map(|(from, row)| {
                        let onward: Vec<ExprId> =
                            row.iter().map(|&(next, texts)| exprs.concat(texts, alternatives[next])).collect();
                        let end = if may_end { here(from) } else { ExprId::NOTHING };
                        exprs.or(&[&onward[..], &[end]].concat())
                    })
                    .collect();
            }
            if alternatives[0] != ExprId::NOTHING {
                found.push((alternatives[0], state.clone()));
            }
        }
        Ok(found)
    }

    /// The texts of so many rounds, whatever their conditions are; `None` where a text may be of one number of rounds and of
    /// another. If no round begins another one, a text says itself of how many it is, so that rounds need not be written out.
    fn counted_by_texts(
        &mut self,
        edges: &[Vec<(usize, ExprId)>],
        min: u32,
        max: Option<u32>,
    ) -> Result<Option<ExprId>, LimitExceeded> {
        let exprs = &mut self.deriver.exprs;
        let all: Vec<ExprId> = edges.iter().flatten().map(|&(_, texts)| texts).collect();
        let round = exprs.or(&all);
        if exprs.is_nullable(round) {
            return Ok(None);
        }
        let byte = exprs.bytes(ByteSet::EMPTY.complement());
        let more = exprs.repeat(byte, 1, None);
        let longer = exprs.concat(round, more);
        let begins_another = exprs.and(&[round, longer]);
        let is_unique = self.deriver.is_soon_dead(begins_another)?;
        Ok(is_unique.then(|| self.deriver.exprs.repeat(round, min, max)))
    }

    /// The texts of any number of rounds from each state to each.
    ///
    /// What leads from a state to the others is a system of linear equations. States are eliminated from the last one on, as
    /// the first ones are those that most lead back to.
    fn any_number(&mut self, edges: &[Vec<(usize, ExprId)>]) -> Result<Vec<Vec<ExprId>>, LimitExceeded> {
        let count = edges.len();
        let mut moves = vec![vec![ExprId::NOTHING; count]; count];
        for (row, edges) in moves.iter_mut().zip(edges) {
            edges.iter().for_each(|&(to, texts)| row[to] = texts);
        }
        let mut ends: Vec<Vec<ExprId>> = (0..count)
            .map(|from| (0..count).map(|to| if from == to { ExprId::EMPTY } else { ExprId::NOTHING }).collect())
            .collect();
        for through in (0..count).rev() {
            self.check()?;
            let exprs = &mut self.deriver.exprs;
            let again = exprs.repeat(moves[through][through], 0, None);
            let onward: Vec<ExprId> =
                moves[through][..through].iter().map(|&texts| exprs.concat(again, texts)).collect();
            let ending: Vec<ExprId> = ends[through].iter().map(|&texts| exprs.concat(again, texts)).collect();
            for from in 0..through {
                let enter = moves[from][through];
                if enter == ExprId::NOTHING {
                    continue;
                }
                for (row, added) in [(&mut moves[from][..through], &onward), (&mut ends[from][..], &ending)] {
                    for (alternative, &added) in row.iter_mut().zip(added) {
                        let path = exprs.concat(enter, added);
                        *alternative = exprs.or(&[*alternative, path]);
                    }
                }
            }
            (moves[through], ends[through]) = (onward, ending);
        }
        // Now every state needs only those before it: filled in from the first on.
        let exprs = &mut self.deriver.exprs;
        for (from, row) in moves.iter().enumerate() {
            for (through, &enter) in row.iter().enumerate() {
                let (before, rest) = ends.split_at_mut(from);
                for (alternative, &onward) in rest[0].iter_mut().zip(&before[through]) {
                    let path = exprs.concat(enter, onward);
                    *alternative = exprs.or(&[*alternative, path]);
                }
            }
        }
        Ok(ends)
    }
}
