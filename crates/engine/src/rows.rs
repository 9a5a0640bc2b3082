//! How rows are found: counted where characters repeat, from a similar row, or by a walk through the vocabulary.
//!
//! Rows are worth a walk for wide states (a string body takes nearly every token), and for lexemes behind blanks that are
//! met more than once. Other states are walked in their place, see `mask.rs`.

use std::sync::Arc;

use stencilm_regex::{ByteSet, Deriver, Dfa, Expr, ExprId, LimitExceeded, StateId, Tag};

use crate::classes::{ClassRuns, Run};
use crate::exits::{Exits, Suffixes};
use crate::lexicon::{DfaId, Lexicon, RowKey};
use crate::open_runs::{Open, RunsOf, open_run};
use crate::row::{Row, RowHere};
use crate::tokens::Tokens;
use crate::tokenset::{self, TokenSet};
use crate::trie::{Trie, groups_within};

/// A row with more leaving tokens than this does not keep them: the state is left almost everywhere (free text), and
/// where something can follow, a direct walk is cheaper than the suffixes are to store.
pub(crate) const MAX_EXITS: usize = 40_000;

/// With so many nodes below its ends a row looks for the ways that all rows share.
const MANY_BELOW_ENDS: usize = 128;

/// A state with fewer bytes that lead on is not asked which of them lead back to it.
const MANY_LOOPS: usize = 16;

/// A repetition that may end sooner than this is walked on its own: it differs from an endless one nearly everywhere.
const MIN_AGREEMENT: u32 = 4;

/// More nodes than this are not looked through for leaving tokens.
const MAX_BELOW_ENDS: usize = 2 * MAX_EXITS;

/// Nodes of a trie from one to before another, and the depth above them.
type Part = ((usize, usize), usize);

/// So many nodes are looked at before a row is made from a similar one.
const FEW_NODES: usize = 10_000;

/// So many narrow states that were met once are remembered.
const MAX_MET: usize = 100_000;

impl Lexicon {
    /// A larger language from which a residual differs in few tokens: `text & ~words` is nearly `text`, and a repetition
    /// with a greatest count nearly the same without.
    fn base_of(&mut self, residual: ExprId) -> Option<ExprId> {
        let exprs = &mut self.deriver.exprs;
        let relaxed = self.relaxation.apply(exprs, residual);
        if relaxed != residual {
            return Some(relaxed);
        }
        let Expr::And(parts) = exprs.get(residual) else { return None };
        let kept: Vec<ExprId> =
            parts.iter().copied().filter(|&part| !matches!(exprs.get(part), Expr::Not(_))).collect();
        (kept.len() < parts.len() && !kept.is_empty()).then(|| exprs.and(&kept))
    }

    /// The row of a state.
    pub fn row(&mut self, vocabulary: &Tokens, dfa: DfaId, state: StateId) -> Result<RowHere, LimitExceeded> {
        let (distinct, tags) = self.distinct(dfa, state);
        let key = (distinct, None);
        if let Some(row) = self.rows.get(&key) {
            return Ok(RowHere { row: row.clone(), tags });
        }
        let from = self.start_of(&key.0, dfa, state)?;
        let row = match *key.0 {
            [residual] => self.row_of_one(vocabulary, residual, from)?,
            _ => self.row_by_walk(vocabulary, from, None, usize::MAX)?.expect("a walk without a limit ends"),
        };
        Ok(RowHere { row: self.keep(key, row), tags })
    }

    /// The row of a single residual, which is what `from` is in, found in the cheapest way.
    fn row_of_one(&mut self, vocabulary: &Tokens, residual: ExprId, from: Start) -> Result<Row, LimitExceeded> {
        if let Some(row) = self.row_of_run(vocabulary, residual)? {
            return Ok(row);
        }
        if let Some(row) = self.row_of_open_run(vocabulary, residual, from)? {
            return Ok(row);
        }
        let base = self.base_of(residual);
        let enough = if base.is_some() { FEW_NODES } else { usize::MAX };
        if let Some(row) = self.row_by_walk(vocabulary, from, None, enough)? {
            return Ok(row);
        }
        if let Some(base) = base
            && let Some(row) = self.row_near(vocabulary, residual, from, base)?
        {
            return Ok(row);
        }
        Ok(self.row_by_walk(vocabulary, from, None, usize::MAX)?.expect("a walk without a limit ends"))
    }

    /// Where to start reading these residuals, which are those of a state: there, if it is no matter how the automaton
    /// calls them.
    fn start_of(&mut self, exprs: &[ExprId], dfa: DfaId, state: StateId) -> Result<Start, LimitExceeded> {
        match (exprs, self.residuals(dfa, state)) {
            ([_], [_]) => Ok(Start { dfa, state, one: true }),
            _ => Ok(Start { dfa: self.dfa(exprs)?, state: StateId::START, one: false }),
        }
    }

    /// The row of the start of an automaton behind at most so many blanks, if it has been asked for before: a lexeme that
    /// is met once only is walked on its own.
    pub fn row_behind_blanks(
        &mut self,
        vocabulary: &Tokens,
        dfa: DfaId,
        blanks: ByteSet,
        most: Option<u32>,
    ) -> Result<Option<RowHere>, LimitExceeded> {
        let most = self.blank_runs(vocabulary, blanks).clamped(most);
        let (distinct, tags) = self.distinct(dfa, StateId::START);
        let key = (distinct, Some((blanks, most)));
        if let Some(row) = self.rows.get(&key) {
            return Ok(Some(RowHere { row: row.clone(), tags }));
        }
        if self.met.len() > MAX_MET {
            self.met.clear();
        }
        if !self.met.remove(&key) {
            self.met.insert(key);
            return Ok(None);
        }
        let mut parts = Vec::new();
        for byte in self.live_bytes(dfa, StateId::START)?.intersect(&blanks.complement()).iter() {
            let runs = self.blank_runs(vocabulary, blanks);
            let behind = runs.behind(byte, Some(most)).iter();
            parts.extend(behind.map(|&(run, node)| {
                let node = node as usize;
                ((node, node + vocabulary.trie().size(node)), run as usize)
            }));
        }
        let runs = self.blank_runs(vocabulary, blanks).tokens(Some(most)).collect();
        let from = self.start_of(&key.0, dfa, StateId::START)?;
        let row = self.row_by_walk(vocabulary, from, Some((parts, runs)), usize::MAX)?;
        let row = row.expect("a walk without a limit ends");
        Ok(Some(RowHere { row: self.keep(key, row), tags }))
    }

    /// The distinct residuals of a state, ascending, and the tags of each.
    fn distinct(&self, dfa: DfaId, state: StateId) -> (Box<[ExprId]>, Vec<Vec<Tag>>) {
        let residuals = self.residuals(dfa, state);
        let mut distinct: Vec<ExprId> = residuals.iter().map(|&(_, expr)| expr).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut tags: Vec<Vec<Tag>> = vec![Vec::new(); distinct.len()];
        for &(tag, expr) in residuals {
            let position = distinct.binary_search(&expr).expect("distinct holds every residual");
            tags[position].push(tag);
        }
        (distinct.into(), tags)
    }

    fn keep(&mut self, key: RowKey, row: Row) -> Arc<Row> {
        let row = Arc::new(row);
        self.rows_bytes += row.memory_bytes();
        self.rows.insert(key, row.clone());
        row
    }

    /// The runs of a character, with the places where they stop before some bytes, and with their lengths where they are
    /// `counted`; `None` where it is not plain to see where a character ends.
    fn runs(
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
            self.rows_bytes -= before.map_or(0, ClassRuns::memory_bytes);
            let dfa = self.dfa(&[character])?;
            let (automaton, deriver) = (&mut self.dfas[dfa.0 as usize], &mut self.deriver);
            let runs = ClassRuns::find(vocabulary, automaton, deriver, stops, counted)?;
            self.rows_bytes += runs.as_ref().map_or(0, ClassRuns::memory_bytes);
            self.classes.insert(character, runs);
        }
        Ok(self.classes.get_mut(&character).and_then(Option::as_mut))
    }

    /// The row of `C{a,b}X`, where `X` begins with no byte that begins a character: of the tokens with so many
    /// characters, and what reads `X` where a run of them stops.
    fn row_of_run(&mut self, vocabulary: &Tokens, residual: ExprId) -> Result<Option<Row>, LimitExceeded> {
        let Some(Run { character, min, max, tail }) = Run::of(&self.deriver.exprs, residual) else {
            return Ok(None);
        };
        let (characters, behind) = (self.dfa(&[character])?, self.dfa(&[tail])?);
        let first = *self.live_bytes(behind, StateId::START)?;
        if first.is_empty() || !first.intersect(self.live_bytes(characters, StateId::START)?).is_empty() {
            return Ok(None);
        }
        let one_byte = matches!(self.deriver.exprs.get(tail), Expr::Bytes(_));
        let trie = vocabulary.trie();
        let known = first.single().filter(|_| one_byte);
        let known = known.and_then(|byte| self.ways_behind(vocabulary, byte));
        let max = max.filter(|&max| (max as usize) < trie.max_depth());
        let Some(runs) = self.runs(vocabulary, character, first, max.is_some())? else { return Ok(None) };
        let counts = (min, max.unwrap_or(u32::MAX));
        let stops = runs.stops().iter().filter(|stops| first.contains(stops.byte)).flat_map(|stops| &stops.nodes);
        let mut stops: Vec<u32> =
            stops.filter(|(_, rounds)| (counts.0..=counts.1).contains(rounds)).map(|&(node, _)| node).collect();
        if one_byte && stops.iter().map(|&node| trie.size(node as usize)).sum::<usize>() <= MAX_BELOW_ENDS {
            let before = runs.memory_bytes();
            let row = runs.row(vocabulary, min, max, first, known);
            let grown = runs.memory_bytes() - before;
            self.rows_bytes += grown;
            return Ok(Some(row));
        }
        stops.sort_unstable();
        let mut inside = runs.within(max);
        let mut ends = Ends::default();
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
                |token| tokenset::set(inside.words_mut(), token),
            )?;
        }
        let from = Start { dfa: behind, state: StateId::START, one: true };
        Ok(Some(self.row_with(vocabulary, from, Inside::Set(inside), ends)))
    }

    /// The row of a text of characters before a byte that begins none, which can always still become one: a text with
    /// a pattern somewhere in it. Every run of characters may come, so only the ends are to be found.
    fn row_of_open_run(
        &mut self,
        vocabulary: &Tokens,
        residual: ExprId,
        from: Start,
    ) -> Result<Option<Row>, LimitExceeded> {
        let horizon = vocabulary.trie().max_depth();
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
                    tokenset::set(inside.words_mut(), token);
                }
            }
        }
        Ok(Some(self.row_with(vocabulary, from, Inside::Set(inside), ends)))
    }

    /// The row of a residual from that of a larger language: both are walked together, and no further than they may
    /// differ. `None` where the larger one keeps no exits, or nothing is gained.
    fn row_near(
        &mut self,
        vocabulary: &Tokens,
        residual: ExprId,
        from: Start,
        base: ExprId,
    ) -> Result<Option<Row>, LimitExceeded> {
        let agreement = self.relaxation.agreement(&self.deriver.exprs, residual);
        if agreement < MIN_AGREEMENT && self.relaxation.apply(&mut self.deriver.exprs, residual) == base {
            return Ok(None);
        }
        let (own, whole) = (from.dfa, self.dfa(&[base])?);
        if self.dfas[whole.0 as usize].is_dead_at_start() {
            return Ok(None);
        }
        let RowHere { row: larger, .. } = self.row(vocabulary, whole, StateId::START)?;
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
            tokenset::clear(inside.words_mut(), token);
        }
        let mut ends = larger.ends.clone();
        ends.retain(|node| not_here.binary_search(node).is_err());
        // Without exits a row is used only where nothing follows.
        let exits = larger.exits.as_ref().map(|exits| match not_here.is_empty() {
            true => exits.clone(),
            false => Arc::new(exits.iter().map(|exits| exits.without(&not_here)).collect()),
        });
        Ok(Some(Row::of_set(inside, exits, larger.endings.clone()).with_ends(ends)))
    }

    /// For how many bytes a state and one of a larger language read the same; 0 where nothing is known.
    fn agreement(&mut self, own: DfaId, state: StateId, whole: DfaId, other: StateId) -> u32 {
        let (&[(_, residual)], &[(_, larger)]) = (self.residuals(own, state), self.residuals(whole, other)) else {
            return 0;
        };
        if residual == larger {
            return u32::MAX;
        }
        match self.relaxation.apply(&mut self.deriver.exprs, residual) == larger {
            true => self.relaxation.agreement(&self.deriver.exprs, residual),
            false => 0,
        }
    }

    /// The row of what is read from a state: the trie is walked as a whole, or in some parts, each with the depth above
    /// it, with these tokens beside what is found. `None` where more nodes than these would have to be looked at.
    fn row_by_walk(
        &mut self,
        vocabulary: &Tokens,
        from: Start,
        parts: Option<(Vec<Part>, Vec<u32>)>,
        enough: usize,
    ) -> Result<Option<Row>, LimitExceeded> {
        let trie = vocabulary.trie();
        let mut ends = Ends::default();
        let (automaton, deriver) = (&mut self.dfas[from.dfa.0 as usize], &mut self.deriver);
        // Where most tokens begin as the lexeme may go on, those are told that leave it.
        let wide = 2 * trie.nodes_behind(*automaton.live_bytes(deriver, from.state)?) > trie.len();
        let mut left = enough;
        let mut step = |automaton: &mut Dfa, deriver: &mut Deriver, state, byte, node| {
            if left == 0 {
                return Err(Stopped::Enough);
            }
            left -= 1;
            let (next, accepts) = automaton.step(deriver, StateId(state), byte).map_err(Stopped::Limit)?;
            if accepts {
                ends.push(vocabulary, node, next);
            }
            Ok((next != StateId::DEAD).then_some(next.0))
        };
        let (inside, walked) = match parts {
            None if wide => {
                let mut loops: Vec<Option<u32>> = Vec::new();
                let mut inside = vocabulary.spelled().clone();
                let walked = trie.walk_rest(
                    from.state.0,
                    |state, byte, node| {
                        let Some(next) = step(automaton, deriver, state, byte, node)? else { return Ok(None) };
                        let place = next as usize;
                        if place >= loops.len() {
                            loops.resize(place + 1, None);
                        }
                        let same = match loops[place] {
                            Some(same) => same,
                            None => {
                                let same = loops_of(automaton, deriver, StateId(next)).map_err(Stopped::Limit)?;
                                *loops[place].insert(same)
                            }
                        };
                        Ok(Some((next, same)))
                    },
                    inside.words_mut(),
                );
                (Inside::Set(inside), walked)
            }
            None => {
                let mut inside = TokenSet::empty(vocabulary.vocab_size());
                let step = |state, byte, node| step(automaton, deriver, state, byte, node);
                let walked = trie.walk_mask(from.state.0, step, inside.words_mut());
                (Inside::Set(inside), walked)
            }
            Some((parts, mut tokens)) => {
                let mut states = vec![0; trie.max_depth() + 1];
                let walked = parts.into_iter().try_for_each(|(nodes, depth)| {
                    let step = |state, byte, node, _| step(automaton, deriver, state, byte, node);
                    trie.walk_part(nodes, depth, from.state.0, &mut states, step, |token| tokens.push(token))
                });
                (Inside::Listed(tokens), walked)
            }
        };
        match walked {
            Ok(()) => Ok(Some(self.row_with(vocabulary, from, inside, ends))),
            Err(Stopped::Enough) => Ok(None),
            Err(Stopped::Limit(limit)) => Err(limit),
        }
    }

    /// The row of these tokens inside of what an automaton reads, and these ends.
    fn row_with(&mut self, vocabulary: &Tokens, from: Start, inside: Inside, ends: Ends) -> Row {
        let Ends { nodes: mut ends, accepting, below } = ends;
        ends.sort_unstable_by_key(|&(node, _)| node);
        let byte = only_byte_before(vocabulary.trie(), &ends).filter(|_| below >= MANY_BELOW_ENDS);
        let shared = byte.and_then(|byte| self.ways_behind(vocabulary, byte));
        let automaton = &self.dfas[from.dfa.0 as usize];
        let accepts = |state| if from.one { &[0] } else { automaton.accepts(state) };
        let states = (0..accepting.len() as u32).filter(|&state| accepting[state as usize]);
        let mut endings: Vec<Box<[u32]>> = states.map(|state| accepts(StateId(state)).into()).collect();
        endings.sort_unstable();
        endings.dedup();
        // The ends by what has matched there; by state that is found at once.
        let group_of = |state| {
            let known = endings.binary_search_by(|known| (**known).cmp(accepts(state)));
            known.expect("all sets that match together are listed")
        };
        let groups: Vec<usize> = (0..accepting.len() as u32)
            .map(|state| if accepting[state as usize] { group_of(StateId(state)) } else { 0 })
            .collect();
        let mut nodes: Vec<Vec<u32>> = vec![Vec::new(); endings.len()];
        ends.iter().for_each(|&(node, state)| nodes[groups[state.0 as usize]].push(node));
        let trie = vocabulary.trie();
        let leaving = || ends.iter().flat_map(|&(node, _)| trie.entries_below(node as usize));
        let few = below <= MAX_BELOW_ENDS && (shared.is_some() || leaving().nth(MAX_EXITS).is_none());
        let exits = few.then(|| {
            let groups = endings.iter().zip(&nodes);
            let exits = groups.map(|(residuals, nodes)| {
                let nodes = nodes.iter().copied();
                match &shared {
                    Some(shared) => Exits::through(residuals, shared.clone(), nodes),
                    None => Exits::through_all(residuals, Suffixes::behind(vocabulary, nodes)),
                }
            });
            Arc::new(exits.collect())
        });
        let row = match inside {
            Inside::Set(inside) => Row::of_set(inside, exits, endings.into()),
            Inside::Listed(tokens) => Row::of_tokens(vocabulary.vocab_size(), tokens, exits, endings.into()),
        };
        match row.exits {
            None => row,
            Some(_) => row.with_ends(ends.into_iter().map(|(node, _)| node).collect()),
        }
    }
}

/// The groups of bytes that lead from a state to itself, where nothing has matched.
fn loops_of(automaton: &mut Dfa, deriver: &mut Deriver, state: StateId) -> Result<u32, LimitExceeded> {
    let live = *automaton.live_bytes(deriver, state)?;
    if live.len() < MANY_LOOPS {
        return Ok(0);
    }
    let mut same = ByteSet::EMPTY;
    for byte in live.iter() {
        if automaton.step(deriver, state, byte)? == (state, false) {
            same.insert(byte);
        }
    }
    Ok(groups_within(same))
}

/// The byte that leads into all these nodes.
fn only_byte_before(trie: &Trie, ends: &[(u32, StateId)]) -> Option<u8> {
    let mut bytes = ends.iter().map(|&(node, _)| trie.byte(node as usize));
    let first = bytes.next()?;
    bytes.all(|byte| byte == first).then_some(first)
}

/// A state to read a lexeme from.
#[derive(Clone, Copy)]
struct Start {
    dfa: DfaId,
    state: StateId,
    /// Whether there is a single residual, so that it goes without saying which one matches.
    one: bool,
}

/// Why a walk ended early.
enum Stopped {
    Enough,
    Limit(LimitExceeded),
}

/// The tokens inside a lexeme, as they were found.
enum Inside {
    Set(TokenSet),
    Listed(Vec<u32>),
}

/// The nodes at which a lexeme matches, and the states that it is in there.
#[derive(Default)]
struct Ends {
    nodes: Vec<(u32, StateId)>,
    /// By state.
    accepting: Vec<bool>,
    /// How many nodes lie below them.
    below: usize,
}

impl Ends {
    #[inline]
    fn push(&mut self, vocabulary: &Tokens, node: usize, state: StateId) {
        let index = state.0 as usize;
        if index >= self.accepting.len() {
            self.accepting.resize(index + 1, false);
        }
        self.accepting[index] = true;
        if self.below <= MAX_BELOW_ENDS {
            self.below += vocabulary.trie().size(node) - 1;
            self.nodes.push((node as u32, state));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use stencilm_grammar::{Grammar, JsonSchemaOptions, Node, from_json_schema};
    use stencilm_regex::Limits;

    use super::*;

    /// The bytes and every run of up to three of some pieces that matter to the patterns below.
    fn vocabulary() -> Tokens {
        let pieces = ["a", "b", "1", "-", " ", "\"", "\",", "\\\"", "\\u00", "61", "é", "\n", "xyz", "日本", "\\"];
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        let mut runs: Vec<String> = vec![String::new()];
        for _ in 0..3 {
            runs = runs.iter().flat_map(|run| pieces.map(|piece| format!("{run}{piece}"))).collect();
            tokens.extend(runs.iter().map(|run| run.clone().into_bytes()));
        }
        tokens.sort_unstable();
        tokens.dedup();
        let tokens: Vec<Option<Vec<u8>>> = tokens.into_iter().map(Some).collect();
        Tokens::new(&tokens, tokens.len(), &[], &[]).unwrap()
    }

    /// A row as what it says: the tokens inside, and those that leave, each with its suffix.
    fn said(row: &Row, vocab_size: usize) -> (TokenSet, BTreeSet<(Vec<u8>, u32)>) {
        let mut leaving = BTreeSet::new();
        for exits in row.exits.iter().flat_map(|exits| exits.iter()) {
            let suffixes = exits.suffixes().clone();
            let mut found: Vec<(u32, Vec<u8>)> = Vec::new();
            let Ok(()) = suffixes.walk::<usize, Infallible>(
                0,
                |_, _, node| Ok(Some(node)),
                |entry, node| {
                    let mut bytes = Vec::new();
                    let mut above = suffixes.depth(node);
                    for at in (0..=node).rev() {
                        if suffixes.depth(at) == above {
                            bytes.push(suffixes.byte(at));
                            above -= 1;
                        }
                    }
                    bytes.reverse();
                    found.push((entry, bytes));
                },
            );
            for (suffix, bytes) in found {
                leaving.extend(exits.tokens(suffix).map(|token| (bytes.clone(), token)));
            }
        }
        (row.to_set(vocab_size), leaving)
    }

    fn string_lexeme(keywords: &str) -> (Grammar, ExprId) {
        let schema = format!(r#"{{"type": "string", {keywords}}}"#);
        let grammar = from_json_schema(&schema, &JsonSchemaOptions::default()).unwrap();
        let Node::Lexeme(expr) = *grammar.node(grammar.root()) else { panic!("a string is one lexeme") };
        (grammar, expr)
    }

    #[test]
    fn every_way_to_find_a_row_finds_the_row_of_a_walk() {
        let vocabulary = vocabulary();
        let size = vocabulary.vocab_size();
        let open = [
            r#""pattern": "a1""#,
            r#""pattern": "\\d{4}-a""#,
            r#""pattern": "a.*b|1-1$""#,
            r#""pattern": ".+a", "minLength": 6"#,
            r#""pattern": "-1", "minLength": 3, "maxLength": 90"#,
            r#""pattern": "^.*-[^1\n\r\u2028\u2029]+a$""#,
            r#""pattern": "é|日""#,
        ];
        let others = [
            r#""maxLength": 4"#,
            r#""pattern": "^[a-z]{2,3}-[a-z1]{3}$""#,
            r#""pattern": "^[a-z1]{2}-.*$""#,
            r#""pattern": "^[^a\\\\]+$""#,
            r#""pattern": "a1", "maxLength": 5"#,
            r#""pattern": "^\\S+( \\S+){0,2}$""#,
        ];
        for (index, keywords) in open.iter().chain(&others).enumerate() {
            let mut lexicon = Lexicon::new(12, Limits::default());
            let (grammar, expr) = string_lexeme(keywords);
            let expr = lexicon.import(grammar.exprs(), expr);
            let dfa = lexicon.dfa(&[expr]).unwrap();
            for text in
                ["\"", "\"a", "\"a-", "\"1", "\"a1", "\"11111-a", "\" xyz", "\"ab-1xy", "\"\u{E9}\\u00e9", "\"aba "]
            {
                let mut state = StateId::START;
                for &byte in text.as_bytes() {
                    state = lexicon.step(dfa, state, byte).unwrap().0;
                }
                let &[(_, residual)] = lexicon.residuals(dfa, state) else { continue };
                let from = Start { dfa, state, one: true };
                let walked = lexicon.row_by_walk(&vocabulary, from, None, usize::MAX).unwrap().unwrap();
                let run = lexicon.row_of_run(&vocabulary, residual).unwrap();
                let open_run = lexicon.row_of_open_run(&vocabulary, residual, from).unwrap();
                if index < open.len() && text == "\"" {
                    assert!(run.is_some() || open_run.is_some(), "{keywords}: no walk is needed");
                }
                let near = match lexicon.base_of(residual) {
                    Some(base) => lexicon.row_near(&vocabulary, residual, from, base).unwrap(),
                    None => None,
                };
                for row in [run, open_run, near].into_iter().flatten() {
                    assert!(said(&row, size) == said(&walked, size), "{keywords} behind {text}");
                    assert_eq!(row.endings.is_empty(), walked.endings.is_empty(), "{keywords} behind {text}");
                }
            }
        }
    }
}
