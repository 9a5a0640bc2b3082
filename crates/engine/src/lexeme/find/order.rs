//! How rows are found: counted where characters repeat, from a similar row, or by a walk through the vocabulary.
//!
//! Rows are worth a walk for dense states (a string body takes nearly every token), and for lexemes after
//! whitespace. Other states are walked in their place, see `mask/optimistic.rs`.

use std::sync::Arc;

use stencilm_regex::{ByteSet, ExprId, StateId, Tag};
use stencilm_support::{LOOKED_AT, LimitExceeded, SEARCHED, memory};

use crate::lexeme::cache::{DfaId, LexemeCache, RowKey};
use crate::lexeme::crossing::{CrossingTokens, Crossings};
use crate::lexeme::find::bounded_patterns::Bounded;
use crate::lexeme::find::limits::Limited;
use crate::lexeme::mask::{Row, RowHere};
use crate::switches::Switch;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::Trie;

/// With more nodes to look at than this part of all, a walk that takes characters together is cheaper.
pub(crate) const FEW_OF: usize = 8;

/// More nodes than this are not looked through for crossing tokens.
pub(crate) const MAX_BELOW_ENDS: usize = 2 * SEARCHED;

impl LexemeCache {
    /// The row of a state.
    ///
    /// A row may be made from the row of a larger language, and that one from a still larger one. The languages get
    /// simpler on the way by [`ExprSet::complexity`](stencilm_regex::ExprSet::complexity), which is checked, or are at least as simple and
    /// lead to themselves, after which they do get simpler. So this ends; and they are a list here, so that no input makes it
    /// recurse.
    pub fn row(&mut self, vocabulary: &Tokens, dfa: DfaId, state: StateId) -> Result<RowHere, LimitExceeded> {
        let (distinct, tags) = self.distinct(dfa, state);
        let key = (distinct, None);
        if let Some(row) = self.rows.get(&key) {
            return Ok(RowHere { row: row.clone(), tags });
        }
        let from = self.start_of(&key.0, dfa, state)?;
        let [residual] = *key.0 else {
            let row = self.row_by_walk(vocabulary, from, usize::MAX)?.expect("a walk without a limit ends");
            return Ok(RowHere { row: self.keep(key, row), tags });
        };
        let mut waiting: Vec<(Unfinished, Larger)> = Vec::new();
        let mut current = Unfinished { residual, from, is_pruned: false };
        let mut next = self.row_of_one(vocabulary, current)?;
        loop {
            let row = match next {
                Next::Found(row) => {
                    if Arc::strong_count(&row) == 1 {
                        self.rows_bytes += row.memory_bytes();
                    }
                    self.in_keys += memory::of_slice::<ExprId>(1);
                    self.rows.insert((Box::new([current.residual]), None), row.clone());
                    row
                }
                Next::After(larger) => {
                    let expr = larger.expr();
                    let is_limited = matches!(larger, Larger::Limited(_));
                    let is_same = matches!(larger, Larger::Same(_));
                    waiting.push((current, larger));
                    match self.rows.get(&(Box::from([expr]), None)) {
                        Some(known) => known.clone(),
                        None => {
                            let (dfa, state) = match is_limited {
                                true => self.start_unlimited(expr)?,
                                false => (self.dfa(&[expr])?, StateId::START),
                            };
                            current = Unfinished {
                                residual: expr,
                                from: Start { dfa, state, one: true },
                                is_pruned: current.is_pruned || is_same,
                            };
                            next = self.row_of_one(vocabulary, current)?;
                            continue;
                        }
                    }
                }
            };
            let Some((unfinished, larger)) = waiting.pop() else { return Ok(RowHere { row, tags }) };
            current = unfinished;
            next = match larger {
                Larger::Same(_) => Next::Found(row),
                Larger::Bounded(bounded) => match self.finish_bounded(vocabulary, &bounded, &row)? {
                    Some(row) => Next::Found(row),
                    None => self.row_of_unbounded(vocabulary, current)?,
                },
                Larger::Limited(limited) => match self.finish_limited(vocabulary, &limited, &row)? {
                    Some(row) => Next::Found(row),
                    None => self.row_of_unbounded(vocabulary, current)?,
                },
                Larger::Near(base) => match self.row_near(vocabulary, current.from, base, &row)? {
                    Some(row) => Next::Found(Arc::new(row)),
                    None => self.row_walked(vocabulary, current.from)?,
                },
                Larger::Apart(base) => match self.row_by_difference(vocabulary, current.from, base, &row)? {
                    Some(row) => Next::Found(Arc::new(row)),
                    None => self.row_walked(vocabulary, current.from)?,
                },
            };
        }
    }

    /// The row of a single residual, or a larger language whose row it is made from.
    fn row_of_one(&mut self, vocabulary: &Tokens, this: Unfinished) -> Result<Next, LimitExceeded> {
        match self.row_of_bounded(vocabulary, this.residual)? {
            Some(bounded) if self.is_simpler(bounded.other, this.residual) => Ok(Next::After(Larger::Bounded(bounded))),
            _ => match self.limited_row(this.residual)? {
                Some(limited) => Ok(Next::After(Larger::Limited(limited))),
                None => self.row_of_unbounded(vocabulary, this),
            },
        }
    }

    /// The same, by the finders that do not ask for a greatest length; the cheapest one first.
    fn row_of_unbounded(&mut self, vocabulary: &Tokens, this: Unfinished) -> Result<Next, LimitExceeded> {
        let Unfinished { residual, from, is_pruned } = this;
        let found = |row| Ok(Next::Found(Arc::new(row)));
        if let Some(row) = self.row_of_language(vocabulary, residual)? {
            return found(row);
        }
        if let Some(row) = self.row_of_run(vocabulary, residual)? {
            return found(row);
        }
        if let Some(row) = self.row_of_open_run(vocabulary, residual, from)? {
            return found(row);
        }
        let trie = vocabulary.trie();
        let is_dense = Switch::LexemeAlternatives.is_on()
            && trie.nodes_after(*self.live_bytes(from.dfa, from.state)?) > trie.len() / FEW_OF;
        if is_dense && !is_pruned {
            let same = self.without_redundant(residual)?;
            if same != residual {
                return Ok(Next::After(Larger::Same(same)));
            }
        }
        if is_dense && let Some(row) = self.row_of_alternatives(vocabulary, residual)? {
            return found(row);
        }
        if !Switch::LexemeNear.is_on() {
            return self.row_walked(vocabulary, from);
        }
        let Some(base) = self.base_of(residual) else { return self.row_walked(vocabulary, from) };
        let dfa = self.dfa(&[base])?;
        if self.dfas[dfa.0 as usize].is_dead_at_start() {
            return self.row_walked(vocabulary, from);
        }
        let exprs = &self.deriver.exprs;
        if exprs.complexity(base).0 == exprs.complexity(residual).0 {
            // What reads any number of the same comes no nearer to one without counts.
            if self.returns(residual)? {
                return self.row_walked(vocabulary, from);
            }
        } else {
            match self.usual_of(residual)? {
                Some(usual) if usual == residual => return Ok(Next::After(Larger::Apart(base))),
                // It leads to itself, so it is the last one of its complexity.
                Some(usual) if !self.is_simpler(residual, usual) => return Ok(Next::After(Larger::Near(usual))),
                _ => {}
            }
        }
        match self.row_by_walk(vocabulary, from, SEARCHED)? {
            Some(row) => found(row),
            None => Ok(Next::After(Larger::Near(base))),
        }
    }

    /// Whether some byte leads from a residual back to it.
    fn returns(&mut self, residual: ExprId) -> Result<bool, LimitExceeded> {
        Ok(self.deriver.derivatives(residual)?.iter().any(|&(_, rest)| rest == residual))
    }

    fn row_walked(&mut self, vocabulary: &Tokens, from: Start) -> Result<Next, LimitExceeded> {
        let row = self.row_by_walk(vocabulary, from, usize::MAX)?.expect("a walk without a limit ends");
        Ok(Next::Found(Arc::new(row)))
    }

    /// Whether the row of one expression may be made from that of another.
    pub(crate) fn is_simpler(&self, larger: ExprId, residual: ExprId) -> bool {
        let exprs = &self.deriver.exprs;
        exprs.complexity(larger) < exprs.complexity(residual)
    }

    /// Where to start reading these residuals, which are those of a state: there, if it is no matter how the automaton
    /// calls them.
    fn start_of(&mut self, exprs: &[ExprId], dfa: DfaId, state: StateId) -> Result<Start, LimitExceeded> {
        match (exprs, self.residuals(dfa, state)) {
            ([_], [_]) => Ok(Start { dfa, state, one: true }),
            _ => Ok(Start { dfa: self.dfa(exprs)?, state: StateId::START, one: false }),
        }
    }

    /// The row of the start of an automaton after at most so many whitespace bytes.
    pub fn row_after_whitespace(
        &mut self,
        vocabulary: &Tokens,
        dfa: DfaId,
        whitespace: ByteSet,
        most: Option<u32>,
    ) -> Result<RowHere, LimitExceeded> {
        let most = self.whitespace_runs(vocabulary, whitespace).clamped(most);
        // Lexemes that differ in counts too large to matter have the same row.
        let start = self.saturated(dfa, StateId::START)?;
        let (distinct, tags) = self.distinct(dfa, start);
        let key = (distinct, Some((whitespace, most)));
        if let Some(row) = self.rows.get(&key) {
            return Ok(RowHere { row: row.clone(), tags });
        }
        let mut parts = Vec::new();
        for byte in self.live_bytes(dfa, start)?.intersect(&whitespace.complement()).iter() {
            let runs = self.whitespace_runs(vocabulary, whitespace);
            let after = runs.after(byte, Some(most)).iter();
            parts.extend(after.map(|&(run, node)| {
                let node = node as usize;
                ((node, node + vocabulary.trie().size(node)), run as usize)
            }));
        }
        let runs = self.whitespace_runs(vocabulary, whitespace).tokens(Some(most)).collect();
        let from = self.start_of(&key.0, dfa, start)?;
        let row = self.row_of_parts(vocabulary, from, parts, runs)?;
        Ok(RowHere { row: self.keep(key, row), tags })
    }

    /// The distinct residuals of a state, ascending, and the tags of each, by its position among them.
    fn distinct(&self, dfa: DfaId, state: StateId) -> (Box<[ExprId]>, Vec<(u32, Tag)>) {
        let residuals = self.residuals(dfa, state);
        if let &[(tag, expr)] = residuals {
            return (Box::new([expr]), vec![(0, tag)]);
        }
        let mut distinct: Vec<ExprId> = residuals.iter().map(|&(_, expr)| expr).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let position = |expr| distinct.binary_search(&expr).expect("distinct holds every residual") as u32;
        let mut tags: Vec<(u32, Tag)> = residuals.iter().map(|&(tag, expr)| (position(expr), tag)).collect();
        tags.sort_unstable();
        (distinct.into(), tags)
    }

    pub(crate) fn keep(&mut self, key: RowKey, row: Row) -> Arc<Row> {
        let row = Arc::new(row);
        self.rows_bytes += row.memory_bytes();
        self.in_keys += memory::of_slice::<ExprId>(key.0.len());
        self.rows.insert(key, row.clone());
        row
    }

    /// The row of these tokens inside of what an automaton reads, and these ends.
    pub(crate) fn row_with(&mut self, vocabulary: &Tokens, from: Start, inside: Inside, ends: Ends) -> Row {
        let Ends { nodes: mut ends, below } = ends;
        // A walk may meet a node twice, where a token without a shape goes on from it.
        ends.sort_unstable_by_key(|&(node, _)| node);
        ends.dedup();
        let total: usize = below.iter().flatten().sum();
        let byte = only_byte_before(vocabulary.trie(), &ends);
        // To sort the suffixes after a byte takes as long as some hundred small rows.
        let byte = byte.filter(|byte| total >= LOOKED_AT || self.suffixes.contains_key(byte));
        let shared = byte.and_then(|byte| self.suffixes_after(vocabulary, byte));
        let automaton = &self.dfas[from.dfa.0 as usize];
        let accepts = |state| if from.one { &[0] } else { automaton.accepts(state) };
        let states = (0..below.len() as u32).filter(|&state| below[state as usize].is_some());
        let mut endings: Vec<Box<[u32]>> = states.map(|state| accepts(StateId(state)).into()).collect();
        endings.sort_unstable();
        endings.dedup();
        // The ends by what has matched there; by state that is found at once.
        let group_of = |state| {
            let known = endings.binary_search_by(|known| (**known).cmp(accepts(state)));
            known.expect("all sets that match together are listed")
        };
        let groups: Vec<usize> = (0..below.len() as u32)
            .map(|state| if below[state as usize].is_some() { group_of(StateId(state)) } else { 0 })
            .collect();
        let mut nodes: Vec<Vec<u32>> = vec![Vec::new(); endings.len()];
        let mut below_group = vec![0; endings.len()];
        ends.iter().for_each(|&(node, state)| nodes[groups[state.0 as usize]].push(node));
        below.iter().zip(&groups).for_each(|(below, &group)| below_group[group] += below.unwrap_or(0));
        let trie = vocabulary.trie();
        // Where text is left nearly everywhere, there may be few places at which what ends it has matched.
        let mut kept = Vec::with_capacity(endings.len());
        let mut unkept = Vec::new();
        for (group, residuals) in endings.into_iter().enumerate() {
            let tokens_below = || nodes[group].iter().flat_map(|&node| trie.entries_below(node as usize));
            let few =
                below_group[group] <= MAX_BELOW_ENDS && (shared.is_some() || tokens_below().nth(SEARCHED).is_none());
            if !few {
                unkept.push(residuals);
                continue;
            }
            let nodes = nodes[group].iter().copied();
            kept.push(match &shared {
                Some(shared) => CrossingTokens::known(Crossings::through(&residuals, shared.clone(), nodes)),
                None => CrossingTokens::through(vocabulary, &residuals, nodes),
            });
        }
        let all = unkept.is_empty();
        let crossings = (all || !kept.is_empty()).then(|| Arc::new(kept));
        let row = match inside {
            Inside::Set(inside) => Row::of_set(inside, crossings, unkept.into()),
            Inside::Listed(tokens) => Row::of_tokens(vocabulary.vocab_size(), tokens, crossings, unkept.into()),
        };
        if all { row.with_ends(ends.into_iter().map(|(node, _)| node).collect::<Vec<_>>()) } else { row }
    }
}

/// The byte that leads into all these nodes.
fn only_byte_before(trie: &Trie, ends: &[(u32, StateId)]) -> Option<u8> {
    let mut bytes = ends.iter().map(|&(node, _)| trie.byte(node as usize));
    let first = bytes.next()?;
    bytes.all(|byte| byte == first).then_some(first)
}

/// A residual whose row is being made.
#[derive(Clone, Copy)]
struct Unfinished {
    residual: ExprId,
    /// The state that it is what is left of.
    from: Start,
    /// Whether what says nothing was left out already.
    is_pruned: bool,
}

/// The larger language whose row another row is made from.
enum Larger {
    /// The same, said with less.
    Same(ExprId),
    /// The same without a greatest length.
    Bounded(Bounded),
    /// The same without limits of length.
    Limited(Limited),
    /// One that differs in few tokens.
    Near(ExprId),
    /// One from which it differs after few characters, whatever came before.
    Apart(ExprId),
}

impl Larger {
    fn expr(&self) -> ExprId {
        match *self {
            Larger::Bounded(ref bounded) => bounded.other,
            Larger::Limited(ref limited) => limited.without,
            Larger::Same(expr) | Larger::Near(expr) | Larger::Apart(expr) => expr,
        }
    }
}

/// What is next in making a row.
enum Next {
    Found(Arc<Row>),
    After(Larger),
}

/// A state to read a lexeme from.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    pub dfa: DfaId,
    pub state: StateId,
    /// Whether there is a single residual, so that it goes without saying which one matches.
    pub one: bool,
}

/// The tokens inside a lexeme, as they were found.
pub(crate) enum Inside {
    Set(TokenSet),
    Listed(Vec<u32>),
}

/// The nodes at which a lexeme matches, and the states that it is in there.
#[derive(Default)]
pub(crate) struct Ends {
    nodes: Vec<(u32, StateId)>,
    /// How many nodes lie below those of each state; `None` where it matches nothing.
    below: Vec<Option<usize>>,
}

impl Ends {
    /// Whether so much lies below the ends in a state that no more of them are listed.
    pub(crate) fn is_full(&self, state: u32) -> bool {
        self.below.get(state as usize).is_some_and(|below| below.is_some_and(|below| below > MAX_BELOW_ENDS))
    }

    /// The nodes, each with the state that matches there, some perhaps twice.
    #[cfg(test)]
    pub(crate) fn nodes(&self) -> &[(u32, StateId)] {
        &self.nodes
    }

    #[inline]
    pub(crate) fn push(&mut self, vocabulary: &Tokens, node: usize, state: StateId) {
        let index = state.0 as usize;
        if index >= self.below.len() {
            self.below.resize(index + 1, None);
        }
        let below = self.below[index].get_or_insert(0);
        if *below <= MAX_BELOW_ENDS {
            *below += vocabulary.trie().size(node) - 1;
            self.nodes.push((node as u32, state));
        }
    }
}

#[cfg(test)]
mod tests;
