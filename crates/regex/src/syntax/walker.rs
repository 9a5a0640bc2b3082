//! The texts of a step from each state in which it may begin, grouped by the state after them.
//!
//! A repetition is a graph of states whose edges are the texts of one round; elimination (Arden 1961) finds the texts
//! that lead through it. A count is written out, or is a separate condition if each text determines its number of
//! rounds.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use stencilm_support::LimitExceeded;

use super::steps::{LARGE_COUNT, State, Step, check_size};
use crate::derivative::deriver::Deriver;
use crate::derivative::split::{Group, split};
use crate::expr::byte_set::ByteSet;
use crate::expr::node::{Expr, ExprId};

/// The most states between the rounds of a repetition.
const MAX_STATES: usize = 64;
/// The most pairs of states that are visited for all paths through a pattern.
const MAX_WORK: usize = 100_000;
/// The most expressions for counted repetitions that are written out.
const MAX_WRITTEN_OUT: usize = 100_000;

/// Rounds whose texts determine how many they are.
struct Counted {
    /// The states between the rounds.
    states: Vec<State>,
    /// For each state, the texts of a round that lead to another state.
    edges: Vec<Vec<(usize, ExprId)>>,
    /// The texts of one round, without its conditions.
    round: ExprId,
    min: u32,
    max: Option<u32>,
}

/// Follows the steps of a path, and memoizes the results for steps and states.
pub(super) struct Walker<'d> {
    pub deriver: &'d mut Deriver,
    any_text: ExprId,
    /// The look-behinds before any text, in their order in a state.
    behinds: Vec<ExprId>,
    /// The memoized results. Steps are identified by address, so they must not move.
    known: FxHashMap<(*const Step, State), Rc<[Group]>>,
    /// The counted rounds, by their body and the state before them.
    counted: FxHashMap<(*const Step, State), Rc<Counted>>,
    written_out: usize,
    /// The most expressions, counting all parts.
    pub most_exprs: usize,
}

impl<'d> Walker<'d> {
    pub fn new(deriver: &'d mut Deriver, any_text: ExprId, behinds: Vec<ExprId>, most_exprs: usize) -> Walker<'d> {
        let (known, counted) = (FxHashMap::default(), FxHashMap::default());
        Walker { deriver, any_text, behinds, known, counted, written_out: 0, most_exprs }
    }

    /// The texts of a step from a state, grouped by the state after them.
    pub fn follow(&mut self, step: &Step, state: &State) -> Result<Rc<[Group]>, LimitExceeded> {
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

    /// The condition on the rest without the condition that it is a text, which always holds. So conditions that are
    /// already met lead to the same state.
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

    /// Adds texts that lead to a state.
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
        // Backward, so that each concatenation is made only once.
        let end = layers.pop().expect("there is a layer at least");
        let mut after: Vec<Vec<Group>> = end.iter().map(|state| vec![(ExprId::EMPTY, state.clone())]).collect();
        let mut reached = end;
        for part in parts.iter().rev() {
            let layer = layers.pop().expect("there is one before every part");
            let mut before = Vec::with_capacity(layer.len());
            for state in &layer {
                let after_state = |state: &State| {
                    reached.iter().position(|known| known == state).map(|place| after[place].as_slice())
                };
                if let Some(found) = self.counted_before(part, state, after_state)? {
                    before.push(found);
                    continue;
                }
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

    /// The texts of a repetition, grouped by the state after them.
    fn rounds(&mut self, body: &Step, min: u32, max: Option<u32>, state: &State) -> Result<Vec<Group>, LimitExceeded> {
        // The states between rounds, with the texts that lead from each state to others.
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
            && let Some(round) = self.counted_by_texts(&edges)?
        {
            let texts = self.deriver.exprs.repeat(round, min, max);
            let any_number = self.any_number(&edges)?.swap_remove(0);
            for (any_number, state) in any_number.into_iter().zip(&states) {
                let texts = self.deriver.exprs.and(&[any_number, texts]);
                if texts != ExprId::NOTHING {
                    found.push((texts, state.clone()));
                }
            }
            let key = (std::ptr::from_ref(body), state.clone());
            self.counted.insert(key, Counted { states, edges, round, min, max }.into());
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
            // From each state to this one: first the unbounded part, then the counted rounds in front of it.
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

    /// The texts of one round, without its conditions; `None` if a text may consist of different numbers of rounds. If
    /// no round is a proper prefix of another one, the text determines the number of rounds, so they need not be
    /// written out.
    fn counted_by_texts(&mut self, edges: &[Vec<(usize, ExprId)>]) -> Result<Option<ExprId>, LimitExceeded> {
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
        Ok(is_unique.then_some(round))
    }

    /// The texts of counted rounds and of what follows them, in groups by what the rest must match after both. `None`
    /// for any other step, or if the whole text does not determine the number of rounds.
    ///
    /// The conditions between the rounds, and the number of rounds, are then two expressions over the whole text, which
    /// are intersected. So states with the same continuation need not be distinguished for each number of rounds.
    pub fn counted_before<'a, K: Clone + PartialEq + 'a>(
        &mut self,
        step: &Step,
        state: &State,
        after: impl Fn(&State) -> Option<&'a [(ExprId, K)]>,
    ) -> Result<Option<Vec<(ExprId, K)>>, LimitExceeded> {
        let Step::Repeat { body, .. } = step else { return Ok(None) };
        let Some(counted) = self.counted.get(&(Rc::as_ptr(body), state.clone())).cloned() else { return Ok(None) };
        // For each group, the texts that follow each state.
        let mut groups: Vec<(Vec<ExprId>, K)> = Vec::new();
        for (at, state) in counted.states.iter().enumerate() {
            for &(rest, ref key) in after(state).unwrap_or_default() {
                let place = groups.iter().position(|(_, known)| known == key).unwrap_or(groups.len());
                if place == groups.len() {
                    groups.push((vec![ExprId::NOTHING; counted.states.len()], key.clone()));
                }
                groups[place].0[at] = rest;
            }
        }
        let mut found = Vec::new();
        for (rests, key) in groups {
            let Some(texts) = self.counted_with(&counted, &rests)? else { return Ok(None) };
            if texts != ExprId::NOTHING {
                found.push((texts, key));
            }
        }
        Ok(Some(found))
    }

    /// The texts of counted rounds with, after each of their states, the texts in `rests`.
    fn counted_with(&mut self, counted: &Counted, rests: &[ExprId]) -> Result<Option<ExprId>, LimitExceeded> {
        let &Counted { ref edges, min, max, .. } = counted;
        let any_number = self.solved(edges, rests.iter().map(|&rest| vec![rest]).collect())?;
        let rest = self.deriver.exprs.or(rests);
        // No text of a rest may also consist of further rounds, with their conditions, and a rest. Then the rounds end
        // at the first position where a rest can begin.
        for edges in edges {
            let exprs = &mut self.deriver.exprs;
            let more: Vec<ExprId> = edges.iter().map(|&(to, texts)| exprs.concat(texts, any_number[to][0])).collect();
            let more = exprs.or(&more);
            let both = exprs.and(&[rest, more]);
            if !self.deriver.is_soon_dead(both)? {
                return Ok(None);
            }
        }
        let mut parts = vec![any_number[0][0]];
        let later = self.rounds_before(counted, 1, None, rest);
        let again = self.deriver.exprs.and(&[rest, later]);
        if min == 0 || self.deriver.is_soon_dead(again)? {
            parts.push(self.rounds_before(counted, min, max, rest));
        } else {
            // Without the conditions, a rest might also begin later, after enough rounds. So require that none begins
            // after too few.
            if max.is_some() {
                parts.push(self.rounds_before(counted, 0, max, rest));
            }
            let too_few = self.rounds_before(counted, 0, Some(min - 1), rest);
            parts.push(self.deriver.exprs.not(too_few));
        }
        Ok(Some(self.deriver.exprs.and(&parts)))
    }

    /// From `min` to `max` rounds, without their conditions, and then a rest.
    fn rounds_before(&mut self, counted: &Counted, min: u32, max: Option<u32>, rest: ExprId) -> ExprId {
        let exprs = &mut self.deriver.exprs;
        let rounds = exprs.repeat(counted.round, min, max);
        exprs.concat(rounds, rest)
    }

    /// The texts of any number of rounds from each state to each other.
    fn any_number(&mut self, edges: &[Vec<(usize, ExprId)>]) -> Result<Vec<Vec<ExprId>>, LimitExceeded> {
        let here = |from: usize, to: usize| if from == to { ExprId::EMPTY } else { ExprId::NOTHING };
        let count = edges.len();
        self.solved(edges, (0..count).map(|from| (0..count).map(|to| here(from, to)).collect()).collect())
    }

    /// The texts of any number of rounds from each state on, followed by the texts of `ends` for the state after them.
    /// `ends` has several alternatives for each state, which are solved at the same time.
    ///
    /// The texts from each state are the solution of a system of linear equations. States are eliminated from the last
    /// one on, because most edges lead back to the first ones.
    fn solved(
        &mut self,
        edges: &[Vec<(usize, ExprId)>],
        mut ends: Vec<Vec<ExprId>>,
    ) -> Result<Vec<Vec<ExprId>>, LimitExceeded> {
        let count = edges.len();
        let mut moves = vec![vec![ExprId::NOTHING; count]; count];
        for (row, edges) in moves.iter_mut().zip(edges) {
            edges.iter().for_each(|&(to, texts)| row[to] = texts);
        }
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
        // Now each state depends only on earlier ones: substitute from the first one on.
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
