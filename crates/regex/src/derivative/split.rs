//! Splitting texts by the residuals of other expressions after them: this is how a condition on what follows is carried
//! past a lexeme.
//!
//! The observed expressions are run side by side as one automaton. If which of them a text matches already determines
//! the state that it leads to, the texts of each state are an intersection; otherwise they are found by elimination
//! (Kleene 1956). The automata of conditions that people write are tiny.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_support::{LimitExceeded, check_time};

use crate::derivative::deriver::Deriver;
use crate::expr::byte_set::ByteSet;
use crate::expr::node::ExprId;

/// The greatest number of states of the observed expressions together.
const MAX_STATES: usize = 128;

/// After this many pairs of a residual of the texts and a state, the groups are examined one by one.
const MAX_PAIRS: usize = 4_096;

/// The greatest number of positions in a few short texts that are followed one by one.
const MAX_PLACES: usize = 256;

/// The greatest number of expressions that one elimination makes.
const MAX_NEW_EXPRS: usize = 20_000;

/// The texts after which every observed expression has the same residual, and these residuals.
pub type Group = (ExprId, Vec<ExprId>);

/// The texts of `texts` in groups by the residuals of the observed expressions. Groups without texts are left out.
///
/// # Errors
/// [`LimitExceeded`] where the observed expressions have too many states, or where deciding whether a group has texts
/// takes too long.
pub fn split(deriver: &mut Deriver, texts: ExprId, observed: &[ExprId]) -> Result<Vec<Group>, LimitExceeded> {
    if texts == ExprId::NOTHING {
        return Ok(Vec::new());
    }
    let settled = |id: &ExprId| matches!(*id, ExprId::ANYTHING | ExprId::NOTHING);
    if texts == ExprId::EMPTY || observed.iter().all(settled) {
        return Ok(vec![(texts, observed.to_vec())]);
    }
    if let Some(mut groups) = walked(deriver, texts, observed)? {
        if let [(group, _)] = &mut groups[..] {
            *group = texts;
        }
        return Ok(groups);
    }
    let Automaton { states, moves } = automaton(deriver, observed)?;
    deriver.split_work += states.len() * states.len();
    let reached = reached(deriver, texts, &moves)?;
    if let Some(groups) = by_what_they_match(deriver, texts, observed, &states, &reached) {
        return Ok(groups);
    }
    let mut alternatives = vec![vec![ExprId::NOTHING; states.len()]; states.len()];
    for (from, row) in moves.into_iter().enumerate() {
        for (to, set) in row {
            alternatives[from][to] = deriver.exprs.bytes(set);
        }
    }
    eliminate(deriver, &mut alternatives)?;
    let mut groups = Vec::new();
    for (index, state) in states.into_iter().enumerate() {
        if reached[index] == Some(false) {
            continue;
        }
        let exprs = &mut deriver.exprs;
        let mut leading = alternatives[0][index];
        if index == 0 {
            leading = exprs.or(&[ExprId::EMPTY, leading]);
        }
        let group = exprs.and(&[texts, leading]);
        if reached[index] == Some(true) || deriver.is_live(group)? {
            groups.push((group, state));
        }
    }
    if let [(group, _)] = &mut groups[..] {
        // One group has all texts, so the expression stays as it was.
        *group = texts;
    }
    Ok(groups)
}

/// The groups as intersections, if which of the observed expressions a text matches tells their residuals: for example,
/// texts that end with a letter, and those that do not. Elimination would give much larger expressions. `None` where it
/// does not tell, or where it is not known to which states the texts lead.
fn by_what_they_match(
    deriver: &mut Deriver,
    texts: ExprId,
    observed: &[ExprId],
    states: &[Vec<ExprId>],
    reached: &[Option<bool>],
) -> Option<Vec<Group>> {
    let mut groups: Vec<(Vec<bool>, &Vec<ExprId>)> = Vec::new();
    for (state, &is_reached) in states.iter().zip(reached) {
        if is_reached? {
            let matched: Vec<bool> = state.iter().map(|&rest| deriver.exprs.is_nullable(rest)).collect();
            if groups.iter().any(|(known, _)| *known == matched) {
                return None;
            }
            groups.push((matched, state));
        }
    }
    // An expression that all groups match, or none, distinguishes nothing.
    let tells = |at: usize| groups.iter().any(|(matched, _)| matched[at] != groups[0].0[at]);
    let telling: Vec<usize> = (0..observed.len()).filter(|&at| tells(at)).collect();
    let exprs = &mut deriver.exprs;
    let group = |(matched, state): &(Vec<bool>, &Vec<ExprId>)| {
        let mut parts = vec![texts];
        parts.extend(telling.iter().map(|&at| if matched[at] { observed[at] } else { exprs.not(observed[at]) }));
        (exprs.and(&parts), (*state).clone())
    };
    Some(groups.iter().map(group).collect())
}

/// The groups of a few texts of bounded length, such as one character. They are read byte by byte beside the observed
/// expressions, whose automaton need not be built. `None` for other texts.
fn walked(deriver: &mut Deriver, texts: ExprId, observed: &[ExprId]) -> Result<Option<Vec<Group>>, LimitExceeded> {
    let start = [&[texts], observed].concat();
    let mut places = vec![start.clone()];
    let mut numbers: FxHashMap<Vec<ExprId>, usize> = FxHashMap::from_iter([(start, 0)]);
    let mut moves: Vec<Vec<(ByteSet, usize)>> = Vec::new();
    let mut entered = vec![0_usize];
    while moves.len() < places.len() {
        let mut row = Vec::new();
        for (set, rests) in cases(deriver, &places[moves.len()])? {
            if rests[0] == ExprId::NOTHING {
                continue;
            }
            let to = *numbers.entry(rests).or_insert_with_key(|rests| {
                places.push(rests.clone());
                entered.push(0);
                places.len() - 1
            });
            entered[to] += 1;
            row.push((set, to));
        }
        moves.push(row);
        deriver.split_work += 1;
        if places.len() > MAX_PLACES {
            return Ok(None);
        }
    }
    // Each position comes after those that lead to it; if some are left over, the texts have a cycle.
    let mut order = Vec::with_capacity(places.len());
    let mut ready = if entered[0] == 0 { vec![0] } else { Vec::new() };
    while let Some(place) = ready.pop() {
        order.push(place);
        for &(_, to) in &moves[place] {
            entered[to] -= 1;
            if entered[to] == 0 {
                ready.push(to);
            }
        }
    }
    if order.len() < places.len() {
        return Ok(None);
    }
    let mut groups: Vec<Vec<(ExprId, usize)>> = vec![Vec::new(); places.len()];
    for place in order.into_iter().rev() {
        let exprs = &mut deriver.exprs;
        let mut found: Vec<(usize, Vec<ExprId>)> = Vec::new();
        if exprs.is_nullable(places[place][0]) {
            found.push((place, vec![ExprId::EMPTY]));
        }
        for &(set, to) in &moves[place] {
            let byte = exprs.bytes(set);
            for &(rest, end) in &groups[to] {
                let text = exprs.concat(byte, rest);
                let same = found.iter_mut().find(|(known, _)| places[*known][1..] == places[end][1..]);
                match same {
                    Some((_, texts)) => texts.push(text),
                    None => found.push((end, vec![text])),
                }
            }
        }
        groups[place] = found.into_iter().map(|(end, texts)| (exprs.or(&texts), end)).collect();
    }
    Ok(Some(groups.swap_remove(0).into_iter().map(|(texts, end)| (texts, places[end][1..].to_vec())).collect()))
}

/// The residuals of each expression, side by side, by byte.
fn cases(deriver: &mut Deriver, ids: &[ExprId]) -> Result<Vec<(ByteSet, Vec<ExprId>)>, LimitExceeded> {
    let mut cases: Vec<(ByteSet, Vec<ExprId>)> = vec![(ByteSet::EMPTY.complement(), Vec::new())];
    for &id in ids {
        let derivatives = deriver.derivatives(id)?;
        let mut finer = Vec::new();
        for (set, rests) in cases {
            let mut left = set;
            for (bytes, rest) in derivatives.iter() {
                let both = set.intersect(bytes);
                if !both.is_empty() {
                    left = left.intersect(&bytes.complement());
                    finer.push((both, [&rests[..], &[*rest]].concat()));
                }
            }
            if !left.is_empty() {
                finer.push((left, [&rests[..], &[ExprId::NOTHING]].concat()));
            }
        }
        cases = finer;
    }
    Ok(cases)
}

/// The automaton of the observed expressions, side by side.
struct Automaton {
    /// The residuals of all expressions in every state; the first state is the start.
    states: Vec<Vec<ExprId>>,
    /// For every state, the other states that bytes lead to.
    moves: Vec<Vec<(usize, ByteSet)>>,
}

/// For every state, whether one of the texts leads to it; `None` where that was not found out. The residuals of the
/// texts are run beside the states; the expressions of the groups would tell the same, but are much larger.
fn reached(
    deriver: &mut Deriver,
    texts: ExprId,
    moves: &[Vec<(usize, ByteSet)>],
) -> Result<Vec<Option<bool>>, LimitExceeded> {
    let mut reached = vec![None; moves.len()];
    let mut seen: FxHashSet<(ExprId, usize)> = FxHashSet::from_iter([(texts, 0)]);
    let mut work = vec![(texts, 0)];
    while let Some((rest, state)) = work.pop() {
        if deriver.exprs.is_nullable(rest) {
            reached[state] = Some(true);
        }
        for &(bytes, left) in deriver.derivatives(rest)?.iter() {
            for (to, set) in &moves[state] {
                if left != ExprId::NOTHING && !bytes.intersect(set).is_empty() && seen.insert((left, *to)) {
                    work.push((left, *to));
                }
            }
        }
        if seen.len() > MAX_PAIRS {
            return Ok(reached);
        }
    }
    Ok(reached.into_iter().map(|found| found.or(Some(false))).collect())
}

/// Builds the automaton, with the bytes that lead from each state to each.
fn automaton(deriver: &mut Deriver, observed: &[ExprId]) -> Result<Automaton, LimitExceeded> {
    let mut states = vec![observed.to_vec()];
    let mut numbers: FxHashMap<Vec<ExprId>, usize> = FxHashMap::from_iter([(observed.to_vec(), 0)]);
    let mut moves: Vec<Vec<(usize, ByteSet)>> = Vec::new();
    while moves.len() < states.len() {
        let state = states[moves.len()].clone();
        let mut row: Vec<(usize, ByteSet)> = Vec::new();
        for (set, rests) in cases(deriver, &state)? {
            let next = match numbers.get(&rests) {
                Some(&known) => known,
                None if states.len() >= MAX_STATES => return Err(LimitExceeded::States(MAX_STATES)),
                None => {
                    numbers.insert(rests.clone(), states.len());
                    states.push(rests);
                    states.len() - 1
                }
            };
            match row.iter_mut().find(|(known, _)| *known == next) {
                Some((_, bytes)) => *bytes = bytes.union(&set),
                None => row.push((next, set)),
            }
        }
        moves.push(row);
    }
    Ok(Automaton { states, moves })
}

/// Turns single steps between states into all texts of at least one byte between them.
fn eliminate(deriver: &mut Deriver, alternatives: &mut [Vec<ExprId>]) -> Result<(), LimitExceeded> {
    let exprs = &mut deriver.exprs;
    let most = exprs.len() + MAX_NEW_EXPRS;
    for through in 0..alternatives.len() {
        check_time()?;
        if exprs.len() > most {
            return Err(LimitExceeded::Expressions(MAX_NEW_EXPRS));
        }
        let again = exprs.repeat(alternatives[through][through], 0, None);
        let onward: Vec<ExprId> =
            alternatives[through].iter().map(|&alternative| exprs.concat(again, alternative)).collect();
        for (from, row) in alternatives.iter_mut().enumerate() {
            if from == through || row[through] == ExprId::NOTHING {
                continue;
            }
            let enter = row[through];
            for (alternative, &onward) in row.iter_mut().zip(&onward) {
                let path = exprs.concat(enter, onward);
                *alternative = exprs.or(&[*alternative, path]);
            }
        }
        alternatives[through] = onward;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::{PatternOptions, Utf8, parse_pattern};
    use proptest::prelude::*;

    #[test]
    fn texts_fall_into_the_group_of_what_they_leave() {
        let mut deriver = Deriver::new(Limits::default());
        let mut read = |pattern: &str| {
            parse_pattern(&mut deriver.exprs, pattern, &PatternOptions::default(), &mut Utf8).expect(pattern)
        };
        let texts = read("[abc]{0,3}");
        let observed = [read("(?s:.*)ab"), read("a(?s:.*)"), read("c*")];
        let groups = split(&mut deriver, texts, &observed).expect("small");
        let mut text = vec![Vec::new()];
        for length in 0..4 {
            for letters in &text {
                let mut found = 0;
                for (group, rests) in groups.clone() {
                    if deriver.matches(group, letters).expect("small") {
                        found += 1;
                        for (&whole, &rest) in observed.iter().zip(&rests) {
                            let mut left = whole;
                            letters.iter().for_each(|&byte| left = deriver.after(left, byte).expect("small"));
                            assert_eq!(left, rest);
                        }
                    }
                }
                assert_eq!(found, 1, "{letters:?} of length {length}");
            }
            text = text.iter().flat_map(|start| b"abc".iter().map(|&c| [&start[..], &[c]].concat())).collect();
        }
    }

    #[test]
    fn texts_of_many_lengths_are_distinguished_too() {
        let mut deriver = Deriver::new(Limits::default());
        let mut read = |pattern: &str| {
            parse_pattern(&mut deriver.exprs, pattern, &PatternOptions::default(), &mut Utf8).expect(pattern)
        };
        // There are more residuals than the limit of pairs; no text leads to what follows a `c`.
        let (texts, observed) = (read("[ab]{0,100000}"), read("[ab]*(c|b)"));
        let groups = split(&mut deriver, texts, &[observed]).expect("large, but simple");
        let mut left: Vec<ExprId> = groups.iter().flat_map(|(_, left)| left.clone()).collect();
        left.sort();
        let mut expected = vec![observed, deriver.after(observed, b'b').expect("small")];
        expected.sort();
        assert_eq!(left, expected);
    }

    proptest! {
        #[test]
        fn groups_are_a_partition(
            texts in "[ab]{0,2}([ab]\\*){0,2}",
            observed in "([ab.]\\*?){1,4}",
            text in "[ab]{0,5}",
        ) {
            let mut deriver = Deriver::new(Limits::default());
            let options = PatternOptions::default();
            let texts = parse_pattern(&mut deriver.exprs, &texts, &options, &mut Utf8).expect("plain");
            let observed = parse_pattern(&mut deriver.exprs, &observed, &options, &mut Utf8).expect("plain");
            let groups = split(&mut deriver, texts, &[observed]).expect("small");
            let mut left = observed;
            for byte in text.bytes() {
                left = deriver.after(left, byte).expect("small");
            }
            let mut found = Vec::new();
            for (group, rests) in groups {
                if deriver.matches(group, text.as_bytes()).expect("small") {
                    found.push(rests);
                }
            }
            let expected = if deriver.matches(texts, text.as_bytes()).expect("small") { vec![vec![left]] } else { vec![] };
            prop_assert_eq!(found, expected);
        }
    }
}
