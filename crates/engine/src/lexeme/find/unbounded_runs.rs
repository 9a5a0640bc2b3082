//! Lexemes that read runs of characters and can be completed at every point, such as a text with a pattern somewhere in
//! it.
//!
//! From a state of such a lexeme every run of characters may come, so its mask is that of the characters alone, except
//! for the ends. Two conditions must hold, and both are read off the expression: every run of characters can be
//! completed ([`open_run`]), and nothing else can come ([`RunsOf`]).

use stencilm_regex::{ByteSet, Expr, ExprId, ExprSet, StateId};
use stencilm_support::{FEW, LimitExceeded, STEPS, memory};

use crate::lexeme::cache::{DfaId, LexemeCache};

/// A character of which any number may come, and every run can be completed, under the conditions below.
pub struct Open {
    /// The character.
    pub character: ExprId,
    /// Condition: each of these is a run of the character as well.
    pub counted: Vec<ExprId>,
    /// Condition: all of these match only runs of the character, followed by one byte if `ended`.
    pub completing: Vec<ExprId>,
    pub ended: bool,
}

/// The character of which any number may come, at least within `horizon` bytes, such that every run can be completed.
pub fn open_run(exprs: &ExprSet, residual: ExprId, horizon: usize) -> Option<Open> {
    // Alternatives for the first part. What follows each of them is not empty, for it has no intersections.
    let mut first = vec![residual];
    for _ in 0..STEPS {
        let expr = first.pop()?;
        let found = match exprs.get(expr) {
            Expr::Or(parts) => {
                first.extend_from_slice(parts);
                None
            }
            Expr::And(parts) => all_open(exprs, parts, true, horizon),
            &Expr::Concat { head, tail } if !exprs.has_boolean(tail) => match exprs.get(head) {
                &Expr::Repeat { body: character, max: None, .. } if plain(exprs, character) => {
                    Some(Open { character, counted: Vec::new(), completing: Vec::new(), ended: false })
                }
                Expr::And(parts) => all_open(exprs, parts, false, horizon),
                Expr::Or(_) => {
                    first.push(head);
                    None
                }
                _ => None,
            },
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Whether an expression can be read as one character after another: it matches at least one byte and has no
/// intersections or complements.
pub(crate) fn plain(exprs: &ExprSet, character: ExprId) -> bool {
    !exprs.is_nullable(character) && !exprs.has_boolean(character)
}

/// The parts of a concatenation, without the last byte where there must be one, and the set of bytes that this one may
/// be.
fn spine(exprs: &ExprSet, expr: ExprId, ended: bool) -> Option<(Vec<ExprId>, ByteSet)> {
    let mut spine = Vec::new();
    let mut rest = expr;
    while let Expr::Concat { head, tail } = *exprs.get(rest) {
        spine.push(head);
        rest = tail;
    }
    match (ended, exprs.get(rest)) {
        (true, &Expr::Bytes(end)) => Some((spine, end)),
        (true, _) => None,
        (false, _) => {
            spine.push(rest);
            Some((spine, ByteSet::EMPTY.complement()))
        }
    }
}

/// The character whose runs can be completed in all these parts at the same time; if `ended`, they end with one byte
/// that is allowed in each. In all parts but one, more characters may come after every match. So one can write what
/// completes the run in the first part, then what completes it in the second, and so on, and last what completes it in
/// the exceptional part, provided that each of these is a run itself.
fn all_open(exprs: &ExprSet, parts: &[ExprId], ended: bool, horizon: usize) -> Option<Open> {
    let mut character = None;
    let (mut counted, mut completing): (Vec<ExprId>, Vec<ExprId>) = Default::default();
    // The bounds: how many bytes may be needed, each of which may be a character, and how many characters are allowed.
    let (mut needed, mut least, mut most) = (horizon as u64, 0, u64::MAX);
    let (mut is_last_known, mut end) = (false, ByteSet::EMPTY.complement());
    for &part in parts {
        if let Some((spine, ends)) = spine(exprs, part, ended)
            && let [only] = *spine
            && let Expr::Repeat { body, min, max } = *exprs.get(only)
        {
            end = end.intersect(&ends);
            least = least.max(u64::from(min));
            most = most.min(max.map_or(u64::MAX, u64::from));
            counted.push(body);
            continue;
        }
        let alternatives = match exprs.get(part) {
            Expr::Or(parts) => parts,
            _ => std::slice::from_ref(&part),
        };
        let open = |goes_on: bool| {
            alternatives.iter().find_map(|&alternative| {
                let (spine, ends) = spine(exprs, alternative, ended)?;
                let ends = end.intersect(&ends);
                let Expr::Repeat { body, max: None, .. } = *exprs.get(*spine.first()?) else { return None };
                let last = exprs.get(*spine.last()?);
                let more = matches!(*last, Expr::Repeat { body: last, max: None, .. } if last == body);
                let open = (more || !goes_on)
                    && !exprs.has_boolean(alternative)
                    && !ends.is_empty()
                    && character.is_none_or(|known| known == body);
                open.then_some((body, alternative, ends))
            })
        };
        let (body, alternative, ends) = match open(true) {
            Some(open) => open,
            None if is_last_known => return None,
            None => {
                is_last_known = true;
                open(false)?
            }
        };
        (character, end) = (Some(body), ends);
        completing.push(alternative);
        needed = needed.saturating_add(u64::from(exprs.shortest_at_least(alternative)));
    }
    let character = character.or(counted.first().copied())?;
    counted.retain(|&other| other != character);
    // Reading one more character may increase a count by the bytes of one character.
    needed = needed.max(least).saturating_add(u64::from(exprs.shortest_at_least(character)));
    let plain = plain(exprs, character) && counted.iter().all(|&other| plain(exprs, other));
    // Otherwise a limit of length is so near that some run could not be completed.
    (plain && needed <= most && !end.is_empty()).then_some(Open { character, counted, completing, ended })
}

/// Decides which runs of one character an expression matches.
pub struct RunsOf<'a> {
    lexeme_cache: &'a mut LexemeCache,
    characters: DfaId,
    character: ExprId,
    steps: usize,
}

impl RunsOf<'_> {
    /// For a character and its automaton.
    pub fn new(lexeme_cache: &mut LexemeCache, characters: DfaId, character: ExprId) -> RunsOf<'_> {
        RunsOf { lexeme_cache, characters, character, steps: 0 }
    }

    /// Whether every match of an expression is a run of the character.
    pub fn hold(mut self, expr: ExprId) -> Result<bool, LimitExceeded> {
        Ok(self.after(expr, StateId::START, 0)?.is_some_and(|states| *states == [StateId::START]))
    }

    /// If every match of an expression consists of whole characters and one last byte that begins no character: the
    /// possible last bytes. `None` otherwise, and where it takes too long to find out.
    pub fn then_a_byte(mut self, expr: ExprId) -> Result<Option<ByteSet>, LimitExceeded> {
        let Some(ends) = self.last_bytes(expr, vec![StateId::START], 0)? else { return Ok(None) };
        for byte in ends.iter() {
            if self.lexeme_cache.step(self.characters, StateId::START, byte)?.0 != StateId::DEAD {
                return Ok(None);
            }
        }
        Ok((!ends.is_empty()).then_some(ends))
    }

    fn last_bytes(
        &mut self,
        expr: ExprId,
        mut states: Vec<StateId>,
        depth: usize,
    ) -> Result<Option<ByteSet>, LimitExceeded> {
        self.steps += 1;
        if depth > FEW || self.steps > STEPS {
            return Ok(None);
        }
        let mut rest = expr;
        while let Expr::Concat { head, tail } = *self.lexeme_cache.deriver.exprs.get(rest) {
            let Some(next) = self.behind_all(head, &states, 0)? else { return Ok(None) };
            states = next;
            rest = tail;
        }
        match self.lexeme_cache.deriver.exprs.get(rest).clone() {
            Expr::Bytes(set) => Ok((states == [StateId::START]).then_some(set)),
            Expr::Or(parts) => {
                let mut all = ByteSet::EMPTY;
                for part in parts {
                    let Some(ends) = self.last_bytes(part, states.clone(), depth + 1)? else { return Ok(None) };
                    all = all.union(&ends);
                }
                Ok(Some(all))
            }
            Expr::And(parts) => {
                // An intersection matches only what each part matches, so one part is enough.
                for part in parts {
                    let ends = self.last_bytes(part, states.clone(), depth + 1)?;
                    if ends.is_some() {
                        return Ok(ends);
                    }
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn behind_all(
        &mut self,
        expr: ExprId,
        states: &[StateId],
        depth: usize,
    ) -> Result<Option<Vec<StateId>>, LimitExceeded> {
        let mut all = Vec::new();
        for &state in states {
            let Some(after) = self.after(expr, state, depth)? else { return Ok(None) };
            all.extend_from_slice(&after);
        }
        all.sort_unstable();
        all.dedup();
        Ok(Some(all))
    }

    /// The states after all matches of an expression from a state; there may be others among them. `None` where some
    /// match is no run of characters.
    fn after(&mut self, expr: ExprId, state: StateId, depth: usize) -> Result<Option<Box<[StateId]>>, LimitExceeded> {
        self.steps += 1;
        if depth > FEW || self.steps > STEPS {
            return Ok(None);
        }
        if expr == self.character && state == StateId::START {
            return Ok(Some([state].into()));
        }
        if let Some(known) = self.lexeme_cache.after_runs.get(&(self.characters, expr, state)) {
            return Ok(known.clone());
        }
        let after = match self.lexeme_cache.deriver.exprs.get(expr).clone() {
            Expr::Nothing => Some(Vec::new()),
            Expr::Empty => Some(vec![state]),
            Expr::Bytes(set) => self.after_bytes(&set, state)?,
            Expr::Or(parts) => {
                let mut all = Some(Vec::new());
                for part in parts {
                    match (self.after(part, state, depth + 1)?, &mut all) {
                        (Some(after), Some(all)) => all.extend_from_slice(&after),
                        _ => {
                            all = None;
                            break;
                        }
                    }
                }
                all
            }
            Expr::And(parts) => {
                // An intersection matches only what each part matches, so one part is enough.
                let mut found = None;
                for part in parts {
                    found = self.after(part, state, depth + 1)?.map(Vec::from);
                    if found.is_some() {
                        break;
                    }
                }
                found
            }
            // As if it were any number of its bytes.
            Expr::Language(rest) => {
                let set = rest.bytes();
                self.after_rounds(state, |this, before| this.after_bytes(&set, before))?
            }
            Expr::Not(_) | Expr::Number(_) | Expr::Text(_) => None,
            Expr::Concat { head, mut tail } => {
                let mut states = self.after(head, state, depth + 1)?.map(Vec::from);
                while let (Some(before), &Expr::Concat { head, tail: rest }) =
                    (&states, self.lexeme_cache.deriver.exprs.get(tail))
                {
                    states = self.behind_all(head, before, depth + 1)?;
                    tail = rest;
                }
                match states {
                    Some(before) => self.behind_all(tail, &before, depth + 1)?,
                    None => None,
                }
            }
            Expr::Repeat { body, .. } => {
                self.after_rounds(state, |this, before| Ok(this.after(body, before, depth + 1)?.map(Vec::from)))?
            }
        };
        let after = after.map(|mut states| {
            states.sort_unstable();
            states.dedup();
            Box::from(states)
        });
        let owned = after.as_deref().map_or(0, |states: &[StateId]| memory::of_slice::<StateId>(states.len()));
        self.lexeme_cache.after_runs.insert((self.characters, expr, state), after.clone(), owned);
        Ok(after)
    }

    /// The states after any number of rounds.
    fn after_rounds(
        &mut self,
        state: StateId,
        mut round: impl FnMut(&mut Self, StateId) -> Result<Option<Vec<StateId>>, LimitExceeded>,
    ) -> Result<Option<Vec<StateId>>, LimitExceeded> {
        let mut all = vec![state];
        let mut at = 0;
        while let Some(&before) = all.get(at) {
            at += 1;
            let Some(after) = round(self, before)? else { return Ok(None) };
            for next in after {
                if !all.contains(&next) {
                    all.push(next);
                }
            }
        }
        Ok(Some(all))
    }

    /// The states after one byte of a set. After a whole character it is the start.
    fn after_bytes(&mut self, set: &ByteSet, state: StateId) -> Result<Option<Vec<StateId>>, LimitExceeded> {
        let mut all = Vec::new();
        for byte in set.iter() {
            let (next, complete) = self.lexeme_cache.step(self.characters, state, byte)?;
            if next == StateId::DEAD {
                return Ok(None);
            }
            let next = if complete { StateId::START } else { next };
            if !all.contains(&next) {
                all.push(next);
            }
        }
        Ok(Some(all))
    }
}
