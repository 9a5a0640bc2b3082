//! Rows without a walk of the vocabulary: from runs of characters, and from similar rows.

use std::sync::Arc;

use stencilm_regex::{ByteSet, Expr, ExprId, LimitExceeded, StateId};

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::find::char_runs::{ClassRuns, Run};
use crate::lexeme::find::order::{Ends, Inside, MAX_BELOW_ENDS, Start};
use crate::lexeme::find::unbounded_runs::{Open, RunsOf, open_run};
use crate::lexeme::mask::{CHARACTERS_BEHIND, Row};
use crate::vocabulary::token_set;
use crate::vocabulary::tokens::Tokens;

/// A repetition that may end sooner than this is walked on its own: it differs from an endless one nearly everywhere.
const MIN_AGREEMENT: u32 = 4;

/// With more nodes behind the places where a run stops than this part of the shapes, a walk of these is cheaper.
const FEW_OF_SHAPES: usize = 4;

/// So many bytes may come behind the longest token, for those who look on behind tokens.
const BYTES_BEHIND: usize = 4 * CHARACTERS_BEHIND as usize;

impl LexemeCache {
    /// A larger and simpler language from which a residual differs in few tokens: `text & ~words` is nearly `text`, and a
    /// repetition with a greatest count nearly the same without.
    pub(crate) fn base_of(&mut self, residual: ExprId) -> Option<ExprId> {
        let exprs = &mut self.deriver.exprs;
        let base = if (MIN_AGREEMENT..u32::MAX).contains(&exprs.agreement(residual)) {
            let relaxed = self.relaxation.apply(exprs, residual);
            (relaxed.agreement >= MIN_AGREEMENT).then_some(relaxed.expr)
        } else if let Expr::And(parts) = exprs.get(residual) {
            let kept: Vec<ExprId> =
                parts.iter().copied().filter(|&part| !matches!(exprs.get(part), Expr::Not(_))).collect();
            (kept.len() < parts.len() && !kept.is_empty()).then(|| exprs.and(&kept))
        } else {
            None
        };
        base.filter(|&base| self.is_simpler(base, residual))
    }

    /// The runs of a character, with the places where they stop before some bytes, and with their lengths where they are
    /// `counted`; `None` where it is not plain to see where a character ends.
    pub(crate) fn runs(
        &mut self,
        vocabulary: &Tokens,
        character: ExprId,
        stops: ByteSet,
        counted: bool,
    ) -> Result<Option<&mut ClassRuns>, LimitExceeded> {
        let known = self.classes.get(&character);
        if known.is_none_or(|known| known.as_ref().is_some_and(|runs| !runs.tells(stops, counted))) {
            let before = known.and_then(Option::as_ref);
            // Nearly all strings end with a quote.
            let stops = before.map_or(ByteSet::of(b'"'), |runs| *runs.known_stops()).union(&stops);
            let counted = counted || before.is_some_and(ClassRuns::is_counted);
            let name = before.map_or_else(|| Arc::new(character), |runs| runs.character.clone());
            self.rows_bytes -= before.map_or(0, ClassRuns::memory_bytes);
            let dfa = self.dfa(&[character])?;
            let (automaton, deriver) = (&mut self.dfas[dfa.0 as usize], &mut self.deriver);
            let runs = ClassRuns::find(vocabulary, name, automaton, deriver, stops, counted)?;
            self.rows_bytes += runs.as_ref().map_or(0, ClassRuns::memory_bytes);
            self.classes.insert(character, runs);
        }
        Ok(self.classes.get_mut(&character).and_then(Option::as_mut))
    }

    /// The row of `C{a,b}X`, where `X` begins with no byte that begins a character: of the tokens with so many
    /// characters, and what reads `X` where a run of them stops.
    pub(crate) fn row_of_run(&mut self, vocabulary: &Tokens, residual: ExprId) -> Result<Option<Row>, LimitExceeded> {
        let Some(Run { character, min, max, tail }) = Run::of(&self.deriver.exprs, residual) else {
            return Ok(None);
        };
        let characters = self.dfa(&[character])?;
        let mut first = ByteSet::EMPTY;
        for &(bytes, rest) in self.deriver.derivatives(tail)?.iter() {
            if self.deriver.is_live(rest)? {
                first = first.union(&bytes);
            }
        }
        if first.is_empty() || !first.intersect(self.live_bytes(characters, StateId::START)?).is_empty() {
            return Ok(None);
        }
        let one_byte = matches!(self.deriver.exprs.get(tail), Expr::Bytes(_));
        let trie = vocabulary.trie();
        let known = first.single().filter(|_| one_byte);
        let known = known.and_then(|byte| self.ways_behind(vocabulary, byte));
        let (most, max) = (max, max.filter(|&max| (max as usize) < trie.max_depth()));
        let Some(runs) = self.runs(vocabulary, character, first, max.is_some())? else { return Ok(None) };
        let stops = runs.stops().iter().filter(|stops| first.contains(stops.byte));
        if one_byte && stops.clone().map(|stops| stops.below).sum::<usize>() <= MAX_BELOW_ENDS {
            let before = runs.memory_bytes();
            let row = runs.row(vocabulary, min, max, first, known).with_runs(runs.character.clone(), most);
            let grown = runs.memory_bytes() - before;
            self.rows_bytes += grown;
            return Ok(Some(row));
        }
        let counts = min..=max.unwrap_or(u32::MAX);
        let stops = stops.flat_map(|stops| &stops.nodes).filter(|(_, rounds)| counts.contains(rounds));
        let mut stops: Vec<u32> = stops.map(|&(node, _)| node).collect();
        let behind_stops: usize = stops.iter().map(|&node| trie.size(node as usize)).sum();
        if !one_byte && behind_stops > vocabulary.shapes().len() / FEW_OF_SHAPES {
            return Ok(None);
        }
        stops.sort_unstable();
        let mut inside = runs.within(max);
        let name = runs.character.clone();
        let mut ends = Ends::default();
        let behind = self.dfa(&[tail])?;
        let (automaton, deriver) = (&mut self.dfas[behind.0 as usize], &mut self.deriver);
        let mut states = vec![0; trie.max_depth() + 1];
        for node in stops {
            let node = node as usize;
            trie.walk_part(
                (node, node + trie.size(node)),
                trie.depth(node) - 1,
                StateId::START.0,
                &mut states,
                |state, byte, node, _| {
                    let (next, accepts) = automaton.step(deriver, StateId(state), byte)?;
                    if accepts {
                        ends.push(vocabulary, node, next);
                    }
                    Ok::<_, LimitExceeded>((next != StateId::DEAD).then_some(next.0))
                },
                |token| token_set::set(inside.words_mut(), token),
            )?;
        }
        let from = Start { dfa: behind, state: StateId::START, one: true };
        let row = self.row_with(vocabulary, from, Inside::Set(inside), ends);
        Ok(Some(if one_byte { row.with_runs(name, most) } else { row }))
    }

    /// The row of a text of characters before a byte that begins none, which can always still become one: a text with
    /// a pattern somewhere in it. Every run of characters may come, so only the ends are to be found.
    pub(crate) fn row_of_open_run(
        &mut self,
        vocabulary: &Tokens,
        residual: ExprId,
        from: Start,
    ) -> Result<Option<Row>, LimitExceeded> {
        let horizon = vocabulary.trie().max_depth() + BYTES_BEHIND;
        let Some(Open { character, counted }) = open_run(&self.deriver.exprs, residual, horizon) else {
            return Ok(None);
        };
        for counted in counted {
            let dfa = self.dfa(&[counted])?;
            if self.runs(vocabulary, counted, ByteSet::EMPTY, false)?.is_none()
                || !RunsOf::new(self, dfa, counted).hold(character)?
            {
                return Ok(None);
            }
        }
        let characters = self.dfa(&[character])?;
        let Some(end) = RunsOf::new(self, characters, character).then_a_byte(residual)? else { return Ok(None) };
        let trie = vocabulary.trie();
        let Some(runs) = self.runs(vocabulary, character, end, false)? else { return Ok(None) };
        let mut inside = runs.within(None);
        let name = runs.character.clone();
        let mut ends = Ends::default();
        let before = runs.memory_bytes();
        let groups: Vec<usize> = (0..runs.stops().len()).filter(|&at| end.contains(runs.stops()[at].byte)).collect();
        let mut found: Vec<(u32, StateId)> = Vec::new();
        for group in groups {
            let runs = self.classes.get_mut(&character).and_then(Option::as_mut).expect("the runs were just found");
            let (paths, nodes) = runs.paths(vocabulary, group);
            let (automaton, deriver) = (&mut self.dfas[from.dfa.0 as usize], &mut self.deriver);
            paths.walk(
                from.state,
                |state, byte, _| {
                    let next = automaton.next(deriver, state, byte)?;
                    Ok::<_, LimitExceeded>((next != StateId::DEAD).then_some(next))
                },
                |entry, state| found.push((nodes[entry as usize].0, state)),
            )?;
        }
        let runs = self.classes[&character].as_ref().expect("the runs were just found");
        self.rows_bytes += runs.memory_bytes() - before;
        found.sort_unstable_by_key(|&(node, _)| node);
        for (node, state) in found {
            if !self.accepts(from.dfa, state).is_empty() {
                ends.push(vocabulary, node as usize, state);
                if let Some(token) = trie.entry_at(node as usize) {
                    token_set::set(inside.words_mut(), token);
                }
            }
        }
        // At least so many, for no token has more characters than bytes.
        let most = trie.max_depth() as u32 + CHARACTERS_BEHIND;
        Ok(Some(self.row_with(vocabulary, from, Inside::Set(inside), ends).with_runs(name, Some(most))))
    }

    /// The row of a residual from that of a larger language: both are walked together, and no further than they may
    /// differ.
    pub(crate) fn row_near(
        &mut self,
        vocabulary: &Tokens,
        from: Start,
        base: ExprId,
        larger: &Row,
    ) -> Result<Row, LimitExceeded> {
        let (own, whole) = (from.dfa, self.dfa(&[base])?);
        let trie = vocabulary.trie();
        let mut inside = larger.to_set(vocabulary.vocab_size());
        // By state: the last one of the larger language that it was seen with, and for how long they agree.
        let mut agreements: Vec<(StateId, u32)> = Vec::new();
        // Nodes at which only the larger one ends.
        let mut not_here: Vec<u32> = Vec::new();
        let mut dead: Vec<u32> = Vec::new();
        trie.walk(
            (from.state, StateId::START),
            |(state, other), byte, node| {
                let (other, other_ends) = self.step(whole, other, byte)?;
                if other == StateId::DEAD {
                    return Ok(None);
                }
                let (state, ends) =
                    if state == StateId::DEAD { (StateId::DEAD, false) } else { self.step(own, state, byte)? };
                if other_ends && !ends {
                    not_here.push(node as u32);
                }
                if state != StateId::DEAD {
                    let known = state.0 as usize;
                    if known >= agreements.len() {
                        agreements.resize(known + 1, (StateId::DEAD, 0));
                    }
                    if agreements[known].0 != other {
                        agreements[known] = (other, self.agreement(own, state, whole, other));
                    }
                    let height = trie.height(node);
                    let agreement = agreements[known].1;
                    if agreement == u32::MAX || (height < u8::MAX && agreement >= u32::from(height)) {
                        return Ok(None);
                    }
                }
                Ok::<_, LimitExceeded>(Some((state, other)))
            },
            |token, (state, _)| {
                if state == StateId::DEAD {
                    dead.push(token);
                }
            },
        )?;
        for token in dead {
            token_set::clear(inside.words_mut(), token);
        }
        let ends = match not_here.is_empty() {
            true => larger.ends.clone(),
            false => larger.ends.iter().copied().filter(|node| not_here.binary_search(node).is_err()).collect(),
        };
        // Without crossing tokens a row is used only where nothing follows.
        let crossings = larger.crossings.as_ref().map(|crossings| match not_here.is_empty() {
            true => crossings.clone(),
            false => Arc::new(crossings.iter().map(|crossings| crossings.without(vocabulary, &not_here)).collect()),
        });
        Ok(Row::of_set(inside, crossings, larger.unkept.clone()).with_ends(ends))
    }

    /// For how many bytes a state and one of a larger language read the same; 0 where nothing is known.
    pub(crate) fn agreement(&mut self, own: DfaId, state: StateId, whole: DfaId, other: StateId) -> u32 {
        let (&[(_, residual)], &[(_, larger)]) = (self.residuals(own, state), self.residuals(whole, other)) else {
            return 0;
        };
        if residual == larger {
            return u32::MAX;
        }
        let relaxed = self.relaxation.apply(&mut self.deriver.exprs, residual);
        if relaxed.expr == larger { relaxed.agreement } else { 0 }
    }
}
