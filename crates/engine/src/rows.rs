//! How rows are found: counted where characters repeat, from a similar row, or by a walk through the vocabulary.
//!
//! Rows are worth a walk for wide states (a string body takes nearly every token), and for lexemes behind blanks that are
//! met more than once. Other states are walked in their place, see `mask.rs`.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{ByteSet, Expr, ExprId, LimitExceeded, StateId, Tag};

use crate::classes::{ClassRuns, Found, Repeated};
use crate::lexicon::{DfaId, Lexicon, RowKey};
use crate::row::{Exits, Leaving, Row, RowHere, escaped};
use crate::tokens::Tokens;
use crate::tokenset::{self, TokenSet};

/// A row with more leaving tokens than this does not keep them: the state is left almost everywhere (free text), and
/// where something can follow, a direct walk is cheaper than the suffixes are to store.
const MAX_EXITS: usize = 40_000;

/// A repetition that may end sooner than this is walked on its own: it differs from an endless one nearly everywhere.
const MIN_AGREEMENT: u32 = 4;

/// More nodes than this are not looked through for leaving tokens.
const MAX_BELOW_ENDS: usize = 2 * MAX_EXITS;

/// Nodes of a trie from one to before another, and the depth above them.
type Part = ((usize, usize), usize);

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
        let mut row = None;
        if let [residual] = *key.0 {
            row = self.row_of_class(vocabulary, residual)?;
            if row.is_none()
                && let Some(base) = self.base_of(residual)
            {
                row = self.row_near(vocabulary, residual, base)?;
            }
        }
        let row = match row {
            Some(row) => row,
            None => self.compute_row(vocabulary, &key.0, None)?,
        };
        Ok(RowHere { row: self.keep(key, row), tags })
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
        for byte in blanks.complement().iter() {
            if self.step(dfa, StateId::START, byte)?.0 != StateId::DEAD {
                let runs = self.blank_runs(vocabulary, blanks);
                let behind = runs.behind(byte, Some(most)).iter();
                parts.extend(behind.map(|&(run, node)| {
                    let node = node as usize;
                    ((node, node + vocabulary.trie().size(node)), run as usize)
                }));
            }
        }
        let runs = self.blank_runs(vocabulary, blanks).tokens(Some(most)).collect();
        let row = self.compute_row(vocabulary, &key.0, Some((parts, runs)))?;
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

    /// The row of repeated characters of a class and the byte that ends them.
    fn row_of_class(&mut self, vocabulary: &Tokens, residual: ExprId) -> Result<Option<Row>, LimitExceeded> {
        let Some(Repeated { character, end, min, max }) = Repeated::of(&self.deriver.exprs, residual) else {
            return Ok(None);
        };
        if !self.classes.contains_key(&(character, end)) {
            let found = self.characters(vocabulary, character, end)?;
            let runs = found.map(|found| ClassRuns::new(vocabulary, found));
            self.rows_bytes += runs.as_ref().map_or(0, ClassRuns::memory_bytes);
            self.classes.insert((character, end), runs);
        }
        Ok(self.classes[&(character, end)].as_ref().map(|runs| runs.row(min, max)))
    }

    /// Counts the characters of every token; `None` where it is not plain to see where a character ends.
    fn characters(
        &mut self,
        vocabulary: &Tokens,
        character: ExprId,
        end: ByteSet,
    ) -> Result<Option<Found>, LimitExceeded> {
        let dfa = self.dfa(&[character])?;
        for byte in end.iter() {
            if self.step(dfa, StateId::START, byte)?.0 != StateId::DEAD {
                return Ok(None);
            }
        }
        let trie = vocabulary.trie();
        let mut found = Found::default();
        let mut plain = true;
        trie.walk(
            (StateId::START, 0),
            |(state, rounds), byte, node| {
                if state == StateId::START && end.contains(byte) {
                    found.ends.push((node as u32, rounds));
                    return Ok(None);
                }
                let begun = rounds + u32::from(state == StateId::START);
                let (next, complete) = self.step(dfa, state, byte)?;
                if !complete {
                    // Back at the start without being complete would be taken for a boundary.
                    plain &= next != StateId::START;
                    return Ok::<_, LimitExceeded>((next != StateId::DEAD).then_some((next, begun)));
                }
                plain &= !self.goes_on(dfa, next)?;
                Ok(plain.then_some((StateId::START, begun)))
            },
            |token, (_, rounds)| found.within.push((rounds, token)),
        )?;
        Ok(plain.then_some(found))
    }

    /// The row of a residual from that of a larger language: both are walked together, and no further than they may
    /// differ. `None` where the larger one keeps no exits, or nothing is gained.
    fn row_near(&mut self, vocabulary: &Tokens, residual: ExprId, base: ExprId) -> Result<Option<Row>, LimitExceeded> {
        let agreement = self.relaxation.agreement(&self.deriver.exprs, residual);
        if agreement < MIN_AGREEMENT && self.relaxation.apply(&mut self.deriver.exprs, residual) == base {
            return Ok(None);
        }
        let (own, whole) = (self.dfa(&[residual])?, self.dfa(&[base])?);
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
            (StateId::START, StateId::START),
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
        let mut stays: FxHashSet<(u32, u32)> = larger.stays.clone();
        let mut ends = larger.ends.clone();
        let mut escaped_ends = larger.escaped_ends.clone();
        // Without exits a row is used only where nothing follows.
        for &node in larger.exits.iter().flat_map(|_| &not_here) {
            let node = node as usize;
            let depth = trie.depth(node);
            let own = trie.entry_at(node);
            for token in trie.entries_below(node).filter(|&token| Some(token) != own) {
                let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
                let suffixes = larger.exits.as_ref().and_then(|exits| Some(&exits.first()?.suffixes));
                let entry = suffixes.and_then(|trie| trie.entry_at(trie.find(&bytes[depth..])?));
                stays.extend(entry.map(|entry| (entry, token)));
            }
        }
        if !not_here.is_empty() {
            ends.retain(|node| not_here.binary_search(node).is_err());
            escaped_ends.retain(|(node, _)| not_here.binary_search(node).is_err());
        }
        let row = Row::of_set(inside, larger.exits.clone(), larger.endings.clone());
        Ok(Some(row.staying(stays).with_ends(larger.counts, ends, escaped_ends)))
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

    /// The row of some residuals: the trie is walked as a whole, or in some parts, each with the depth above it, with
    /// these tokens beside what is found.
    fn compute_row(
        &mut self,
        vocabulary: &Tokens,
        exprs: &[ExprId],
        parts: Option<(Vec<Part>, Vec<u32>)>,
    ) -> Result<Row, LimitExceeded> {
        let dfa = self.dfa(exprs)?;
        let trie = vocabulary.trie();
        let mut ends: Vec<(u32, StateId)> = Vec::new();
        // The states in which the lexeme may end, and how many nodes lie below the places where it does.
        let mut accepting: Vec<bool> = Vec::new();
        let mut below = 0;
        let (automaton, deriver) = (&mut self.dfas[dfa.0 as usize], &mut self.deriver);
        let mut step = |state, byte, node| {
            let (next, accepts) = automaton.step(deriver, StateId(state), byte)?;
            if accepts {
                let state = next.0 as usize;
                if state >= accepting.len() {
                    accepting.resize(state + 1, false);
                }
                accepting[state] = true;
                if below <= MAX_BELOW_ENDS {
                    below += trie.size(node) - 1;
                    ends.push((node as u32, next));
                }
            }
            Ok::<_, LimitExceeded>((next != StateId::DEAD).then_some(next.0))
        };
        let mut set = None;
        let mut tokens = Vec::new();
        match parts {
            None => {
                let inside = set.insert(TokenSet::empty(vocabulary.vocab_size()));
                trie.walk_mask(StateId::START.0, step, inside.words_mut())?;
            }
            Some((parts, others)) => {
                tokens = others;
                let mut states = vec![0; trie.max_depth() + 1];
                for (nodes, depth) in parts {
                    let step = |state, byte, node, _| step(state, byte, node);
                    trie.walk_part(nodes, depth, StateId::START.0, &mut states, step, |token| tokens.push(token))?;
                }
            }
        }
        let automaton = &self.dfas[dfa.0 as usize];
        let states = (0..accepting.len() as u32).filter(|&state| accepting[state as usize]);
        let mut endings: Vec<Box<[u32]>> = states.map(|state| automaton.accepts(StateId(state)).into()).collect();
        endings.sort_unstable();
        endings.dedup();
        let mut leaving: FxHashMap<&[u32], Vec<Leaving<'_>>> = FxHashMap::default();
        let mut count = if below > MAX_BELOW_ENDS { MAX_EXITS + 1 } else { 0 };
        for &(node, state) in &ends {
            if count > MAX_EXITS {
                break;
            }
            let depth = trie.depth(node as usize);
            let own = trie.entry_at(node as usize);
            for token in trie.entries_below(node as usize).filter(|&token| Some(token) != own) {
                let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
                leaving.entry(automaton.accepts(state)).or_default().push((&bytes[depth..], token, 0));
                count += 1;
            }
        }
        let exits = (count <= MAX_EXITS).then(|| {
            let mut exits: Vec<Exits> =
                leaving.into_iter().map(|(residuals, leaving)| Exits::new(residuals, leaving)).collect();
            exits.sort_unstable_by(|a, b| a.residuals.cmp(&b.residuals));
            Arc::new(exits)
        });
        let row = match set {
            Some(inside) => Row::of_set(inside, exits, endings.into()),
            None => Row::of_tokens(vocabulary.vocab_size(), tokens, exits, endings.into()),
        };
        if row.exits.is_none() {
            return Ok(row);
        }
        let ends: Vec<u32> = ends.into_iter().map(|(node, _)| node).collect();
        let escaped_ends = escaped(vocabulary, &ends);
        let counts = row.counts;
        Ok(row.with_ends(counts, ends, escaped_ends))
    }
}
