//! The texts of a path through a pattern, given as consecutive steps.
//!
//! A state holds the derivatives of all look-behinds, and the condition of the look-aheads on the rest. The texts of a
//! step lead from a state to others. States are followed forward, and texts are concatenated backward.

use rustc_hash::FxHashMap;
use stencilm_support::LimitExceeded;

use super::steps::{State, Step, check_size};
use super::walker::Walker;
use crate::derivative::deriver::Deriver;
use crate::derivative::split::Group;
use crate::expr::node::ExprId;

/// The texts of the steps, in groups by what the rest of the text must match. If `open` is false, the text ends with
/// the pattern. `any_text` is an expression that every text matches. There may be at most `most_exprs` expressions,
/// counting all parts.
pub(super) fn run(
    deriver: &mut Deriver,
    steps: &[Step],
    open: bool,
    any_text: ExprId,
    most_exprs: usize,
) -> Result<Vec<(ExprId, ExprId)>, LimitExceeded> {
    let mut behinds = Vec::new();
    steps.iter().for_each(|step| step.behinds(&mut behinds));
    // After the last step that uses a look-behind, its derivative no longer matters.
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
    let mut walker = Walker::new(deriver, any_text, behinds, most_exprs);
    // Forward: all states that are reached before each step.
    let mut layers: Vec<Vec<State>> = vec![vec![start.clone()]];
    let mut moves: FxHashMap<(usize, State), Vec<Group>> = FxHashMap::default();
    for (at, step) in steps.iter().enumerate() {
        let mut next: Vec<State> = Vec::new();
        for state in layers[at].clone() {
            let mut groups = match step {
                // If the text ends with the pattern, this is a condition on the rest of the path; it is applied
                // backward.
                Step::Around { ahead: true, .. } if !open => vec![(ExprId::EMPTY, state.clone())],
                // Only the last texts remain for the rest, so they need not be split by its derivatives.
                &Step::Texts(texts) if !open && at + 1 == steps.len() => {
                    let rest = *state.last().expect("the rest is always there");
                    let texts = walker.deriver.exprs.and(&[texts, rest]);
                    vec![(texts, vec![ExprId::ANYTHING; state.len()])]
                }
                step => walker.follow(step, &state)?.to_vec(),
            };
            for (_, state) in &mut groups {
                forget(state, &last_asked, at);
                if !next.contains(state) {
                    next.push(state.clone());
                }
            }
            moves.insert((at, state), groups);
        }
        layers.push(next);
    }
    let mut whole = texts_backward(&mut walker, steps, &Reached { layers, moves, last_asked }, open)?;
    Ok(whole.remove(&start).unwrap_or_default())
}

/// Drops the derivatives of look-behinds that no later step uses.
fn forget(state: &mut State, last_asked: &[usize], at: usize) {
    for (left, &last) in state.iter_mut().zip(last_asked) {
        if last == at {
            *left = ExprId::NOTHING;
        }
    }
}

/// The states that the steps of a pattern lead through.
struct Reached {
    /// Those before each step, and after the last.
    layers: Vec<Vec<State>>,
    /// The texts from each of them to others, by step.
    moves: FxHashMap<(usize, State), Vec<Group>>,
    /// For each look-behind, the last step that uses it.
    last_asked: Vec<usize>,
}

/// The texts from each state before the first step to the end, in groups by what the rest must match.
fn texts_backward(
    walker: &mut Walker<'_>,
    steps: &[Step],
    Reached { layers, moves, last_asked }: &Reached,
    open: bool,
) -> Result<FxHashMap<State, Vec<(ExprId, ExprId)>>, LimitExceeded> {
    let mut after_here: FxHashMap<State, Vec<(ExprId, ExprId)>> = FxHashMap::default();
    for state in &layers[steps.len()] {
        let rest = *state.last().expect("the rest is always there");
        let end = match open {
            true if walker.deriver.is_live(rest)? => vec![(ExprId::EMPTY, rest)],
            false if walker.deriver.exprs.is_nullable(rest) => vec![(ExprId::EMPTY, ExprId::ANYTHING)],
            _ => Vec::new(),
        };
        after_here.insert(state.clone(), end);
    }
    for at in (0..steps.len()).rev() {
        let mut here: FxHashMap<State, Vec<(ExprId, ExprId)>> = FxHashMap::default();
        for state in &layers[at] {
            check_size(walker.deriver, walker.most_exprs)?;
            let after = |state: &State| {
                let mut state = state.clone();
                forget(&mut state, last_asked, at);
                after_here.get(&state).map(Vec::as_slice)
            };
            if let Some(found) = walker.counted_before(&steps[at], state, after)? {
                here.insert(state.clone(), found);
                continue;
            }
            let exprs = &mut walker.deriver.exprs;
            let mut found: Vec<(ExprId, ExprId)> = Vec::new();
            for (texts, next) in &moves[&(at, state.clone())] {
                for &(rest, after) in &after_here[next] {
                    let mut whole = exprs.concat(*texts, rest);
                    if let (&Step::Around { ahead: true, negative, expr }, false) = (&steps[at], open) {
                        let expr = if negative { exprs.not(expr) } else { expr };
                        whole = exprs.and(&[whole, expr]);
                    }
                    match found.iter_mut().find(|(_, known)| *known == after) {
                        Some((known, _)) => *known = exprs.or(&[*known, whole]),
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
