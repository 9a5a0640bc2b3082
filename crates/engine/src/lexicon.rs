//! The lexemes of a tokenizer: automata and token rows, shared by all grammars compiled for it.
//!
//! Equal lexemes of different grammars are one automaton. A **row** belongs to a set of residual expressions: the
//! tokens that stay inside them to their last byte, and for the tokens that leave, the distinct **suffixes** with which
//! they go on behind the lexeme. Rows are worth their full walk of the vocabulary for wide states only (a string body
//! takes nearly every token); narrow states are walked directly, see `mask.rs`.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_grammar::common_exprs;
use stencilm_regex::{
    ByteSet, Deriver, Dfa, Expr, ExprId, ExprSet, LimitExceeded, Limits, Relaxation, Saturation, StateId, Tag,
};

use crate::blanks::BlankRuns;
use crate::classes::{ClassRuns, Found, Repeated};
use crate::fork::{Blanks, IN_BLANKS};
use crate::json_text;
use crate::tokens::Tokens;
use crate::tokenset::{self, TokenSet};
use crate::trie::Trie;

/// An automaton of one [`Lexicon`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DfaId(pub u32);

/// A state is wide when at least this many of the 256 bytes lead on: a class such as "any character" or "any letter",
/// not a choice between a few.
const WIDE_BYTES: u16 = 10;

/// A row with more leaving tokens than this does not keep them: the state is left almost everywhere (free text), and
/// where something can follow, a direct walk is cheaper than the suffixes are to store.
const MAX_EXITS: usize = 40_000;

/// The tokens of a row are listed where they are no more than these.
pub const MAX_LISTED: usize = 512;

/// A row of no more tokens than these is written from its list.
const FEW_TOKENS: usize = 100;

/// A repetition that may end sooner than this is walked on its own: it differs from an endless one nearly everywhere.
const MIN_AGREEMENT: u32 = 4;

/// More nodes than this are not looked through for leaving tokens.
const MAX_BELOW_ENDS: usize = 2 * MAX_EXITS;

/// Tokens from one wide lexeme state.
pub struct Row {
    /// Tokens read to their last byte inside the lexeme, possibly ending it; of tokens that spell the same bytes the
    /// one in the trie.
    inside: Option<TokenSet>,
    /// How many they are.
    pub count: usize,
    /// They one by one, where they are few. Where they are very few there is no set of them.
    pub listed: Option<Box<[u32]>>,
    /// Tokens that go on behind the lexeme, by which residuals have matched there; `None` where they are too many to
    /// keep. Rows of similar lexemes share them.
    pub exits: Option<Arc<Vec<Exits>>>,
    /// Tokens that do not leave this lexeme although the exits say so, each with the suffix that it would leave with. Not
    /// empty only where there is a single residual.
    pub stays: FxHashSet<(u32, u32)>,
    /// The least and the greatest number of characters before an exit.
    pub counts: (u32, u32),
    /// All sets of residuals that match together somewhere.
    pub endings: Box<[Box<[u32]>]>,
    /// Nodes of the vocabulary's trie at which some residual matches, perhaps also some where it does not; none where the
    /// exits are not kept.
    pub ends: Vec<u32>,
    /// Those of them on whose way a backslash is, each with the value of what a JSON string gains on the way.
    pub escaped_ends: Vec<(u32, Box<[u8]>)>,
}

/// A row as one state of one automaton uses it.
pub struct RowHere {
    /// The row.
    pub row: Arc<Row>,
    /// For every residual of the row the tags that it stands for in this automaton.
    pub tags: Vec<Vec<Tag>>,
}

/// Tokens that go on behind the lexeme after the same residuals have matched.
pub struct Exits {
    /// Which residuals matched, as positions in the sorted list of distinct residuals of the state.
    pub residuals: Box<[u32]>,
    /// The distinct suffixes behind the lexeme; an entry is a position in `tokens`.
    pub suffixes: Trie,
    /// For every suffix the tokens that leave the lexeme with it, each with the number of characters that it reads
    /// before, where the row counts them.
    pub tokens: Vec<Vec<(u32, u32)>>,
}

/// The distinct residuals of a state, ascending; and before them at most so many blanks of a set.
type RowKey = (Box<[ExprId]>, Option<(ByteSet, u32)>);

/// Nodes of a trie from one to before another, and the depth above them.
type Part = ((usize, usize), usize);

/// So many narrow states that were met once are remembered.
const MAX_MET: usize = 100_000;

/// Lexeme automata and rows of one vocabulary.
pub struct Lexicon {
    deriver: Deriver,
    dfas: Vec<Dfa>,
    dfa_index: FxHashMap<Box<[ExprId]>, DfaId>,
    rows: FxHashMap<RowKey, Arc<Row>>,
    /// Narrow states that were met once: a row pays where a state is met in more than one place.
    met: FxHashSet<RowKey>,
    classes: FxHashMap<(ExprId, ByteSet), Option<ClassRuns>>,
    rows_bytes: usize,
    saturation: Saturation,
    relaxation: Relaxation,
    blank_runs: FxHashMap<ByteSet, BlankRuns>,
    /// How many expressions there were when the memory was measured, and how many bytes it was.
    measured: (usize, usize),
    limits: Limits,
}

impl Lexicon {
    /// An empty lexicon for a vocabulary whose longest token has `longest_token` bytes.
    pub fn new(longest_token: usize, limits: Limits) -> Lexicon {
        Lexicon {
            deriver: Deriver::over(common_exprs(), limits),
            dfas: Vec::new(),
            dfa_index: FxHashMap::default(),
            rows: FxHashMap::default(),
            met: FxHashSet::default(),
            classes: FxHashMap::default(),
            rows_bytes: 0,
            saturation: Saturation::new(longest_token as u32),
            relaxation: Relaxation::default(),
            blank_runs: FxHashMap::default(),
            measured: (0, 0),
            limits,
        }
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let runs: usize = self.blank_runs.values().map(BlankRuns::memory_bytes).sum();
        self.deriver.memory_bytes() + self.dfas.iter().map(Dfa::memory_bytes).sum::<usize>() + self.rows_bytes + runs
    }

    /// Whether the lexicon holds more than this. Measuring takes a look at everything, so it is done only when there is
    /// an eighth more than at the last time.
    pub fn has_outgrown(&mut self, budget_bytes: usize) -> bool {
        let size = self.deriver.exprs.len();
        if size > self.measured.0 + self.measured.0 / 8 {
            self.measured = (size, self.memory_bytes());
        }
        self.measured.1 > budget_bytes
    }

    /// Begins an operation, which has limits of its own.
    pub fn begin(&mut self) {
        self.deriver.begin();
    }

    /// The expressions and their derivatives.
    pub(crate) fn deriver(&mut self) -> &mut Deriver {
        &mut self.deriver
    }

    /// Copies an expression of a grammar.
    pub fn import(&mut self, exprs: &ExprSet, expr: ExprId) -> ExprId {
        self.deriver.exprs.import(exprs, expr)
    }

    /// One expression after the other.
    pub fn concat(&mut self, head: ExprId, tail: ExprId) -> ExprId {
        self.deriver.exprs.concat(head, tail)
    }

    /// At most so many blanks.
    pub fn blanks(&mut self, set: ByteSet, max: Option<u32>) -> ExprId {
        let blank = self.deriver.exprs.bytes(set);
        self.deriver.exprs.repeat(blank, 0, max)
    }

    /// The runs of these bytes in the vocabulary.
    pub fn blank_runs(&mut self, vocabulary: &Tokens, set: ByteSet) -> &mut BlankRuns {
        self.blank_runs.entry(set).or_insert_with(|| BlankRuns::new(vocabulary, set))
    }

    /// An expression that ends in optional blanks as what comes before them, which is not empty, and the blanks.
    pub fn split_blanks(&mut self, expr: ExprId) -> Option<(ExprId, Blanks)> {
        let exprs = &mut self.deriver.exprs;
        let mut spine = Vec::new();
        let mut rest = expr;
        while let Expr::Concat { head, tail } = *exprs.get(rest) {
            spine.push(head);
            rest = tail;
        }
        let Expr::Repeat { body, min: 0, max } = *exprs.get(rest) else { return None };
        let Expr::Bytes(set) = *exprs.get(body) else { return None };
        if !set.iter().all(|byte| b" \t\r\n".contains(&byte)) || max.is_some_and(|max| max >= IN_BLANKS) {
            return None;
        }
        let head = exprs.concat_all(&spine);
        (!exprs.is_nullable(head)).then_some((head, Blanks { set, max }))
    }

    /// The automaton of these expressions; the tag of an expression is its position.
    pub fn dfa(&mut self, exprs: &[ExprId]) -> Result<DfaId, LimitExceeded> {
        if let Some(&known) = self.dfa_index.get(exprs) {
            return Ok(known);
        }
        let dfa = Dfa::new(&mut self.deriver, exprs, self.limits)?;
        let id = DfaId(self.dfas.len() as u32);
        self.dfas.push(dfa);
        self.dfa_index.insert(exprs.into(), id);
        Ok(id)
    }

    /// The state after one byte, and whether anything matches there.
    #[inline]
    pub fn step(&mut self, dfa: DfaId, state: StateId, byte: u8) -> Result<(StateId, bool), LimitExceeded> {
        self.dfas[dfa.0 as usize].step(&mut self.deriver, state, byte)
    }

    /// The expressions that match what was read.
    #[inline]
    pub fn accepts(&self, dfa: DfaId, state: StateId) -> &[Tag] {
        self.dfas[dfa.0 as usize].accepts(state)
    }

    /// A state with the same mask, common to all states that differ only in counts far from their bounds.
    pub fn saturated(&mut self, dfa: DfaId, state: StateId) -> Result<StateId, LimitExceeded> {
        self.dfas[dfa.0 as usize].saturated(&mut self.deriver, &mut self.saturation, state)
    }

    /// Whether any byte leads on.
    pub fn goes_on(&mut self, dfa: DfaId, state: StateId) -> Result<bool, LimitExceeded> {
        Ok(self.dfas[dfa.0 as usize].live_bytes(&mut self.deriver, state)? > 0)
    }

    /// Whether many bytes lead on.
    pub fn is_wide(&mut self, dfa: DfaId, state: StateId) -> Result<bool, LimitExceeded> {
        Ok(self.dfas[dfa.0 as usize].live_bytes(&mut self.deriver, state)? >= WIDE_BYTES)
    }

    /// The residual expressions of a state with their tags.
    pub fn residuals(&self, dfa: DfaId, state: StateId) -> &[(Tag, ExprId)] {
        self.dfas[dfa.0 as usize].residuals(state)
    }

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
        Ok(Some(Row { stays, counts: larger.counts, ends, escaped_ends, ..row }))
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
        Ok(Row { ends, escaped_ends, ..row })
    }
}

/// A suffix, the token that leaves with it, and the number of characters before it.
type Leaving<'a> = (&'a [u8], u32, u32);

impl Exits {
    /// Exits of tokens, each with its suffix and the number of characters before it.
    pub fn new(residuals: &[u32], mut leaving: Vec<Leaving<'_>>) -> Exits {
        leaving.sort_unstable();
        let mut suffixes: Vec<&[u8]> = Vec::new();
        let mut tokens: Vec<Vec<(u32, u32)>> = Vec::new();
        for (suffix, token, rounds) in leaving {
            if suffixes.last() != Some(&suffix) {
                suffixes.push(suffix);
                tokens.push(Vec::new());
            }
            tokens.last_mut().expect("a suffix was pushed before its tokens").push((token, rounds));
        }
        let entries = suffixes.iter().enumerate().map(|(entry, &suffix)| (suffix, entry as u32));
        Exits { residuals: residuals.into(), suffixes: Trie::from_sorted(entries), tokens }
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let tokens: usize = self.tokens.iter().map(|tokens| tokens.len() * 8 + 24).sum();
        self.suffixes.memory_bytes() + tokens
    }
}

/// Those nodes on whose way a backslash is, each with the value of what a JSON string gains on the way.
pub fn escaped(vocabulary: &Tokens, ends: &[u32]) -> Vec<(u32, Box<[u8]>)> {
    let trie = vocabulary.trie();
    let way = |node: u32| {
        let token = trie.entries_below(node as usize).next().expect("every node leads to a token");
        let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
        &bytes[..trie.depth(node as usize)]
    };
    let escaped = ends.iter().filter(|&&node| way(node).contains(&b'\\'));
    escaped.map(|&node| (node, json_text::value_of(&[b"\"", way(node)].concat()).into())).collect()
}

impl Row {
    pub fn memory_bytes(&self) -> usize {
        let exits: usize = self.exits.iter().flat_map(|exits| exits.iter()).map(Exits::memory_bytes).sum();
        let ends = self.ends.len() * 4 + self.escaped_ends.len() * 32;
        let inside = self.inside.as_ref().map_or(0, |inside| inside.words().len() * 4);
        inside + self.listed.as_ref().map_or(0, |listed| listed.len() * 4) + exits + ends + self.stays.len() * 16
    }

    /// A row of a set of tokens, without its ends.
    pub fn of_set(inside: TokenSet, exits: Option<Arc<Vec<Exits>>>, endings: Box<[Box<[u32]>]>) -> Row {
        let count = inside.len();
        let listed = (count <= MAX_LISTED).then(|| inside.iter().collect());
        let (ends, escaped_ends, counts) = (Vec::new(), Vec::new(), (0, u32::MAX));
        let (inside, stays) = (Some(inside), FxHashSet::default());
        Row { inside, count, listed, exits, stays, counts, endings, ends, escaped_ends }
    }

    /// A row of distinct tokens, without its ends.
    pub fn of_tokens(
        vocab_size: usize,
        tokens: Vec<u32>,
        exits: Option<Arc<Vec<Exits>>>,
        endings: Box<[Box<[u32]>]>,
    ) -> Row {
        let count = tokens.len();
        let inside = (count > FEW_TOKENS).then(|| {
            let mut inside = TokenSet::empty(vocab_size);
            tokens.iter().for_each(|&token| tokenset::set(inside.words_mut(), token));
            inside
        });
        let listed = (count <= MAX_LISTED).then(|| tokens.into());
        let (ends, escaped_ends, counts) = (Vec::new(), Vec::new(), (0, u32::MAX));
        Row { inside, count, listed, exits, stays: FxHashSet::default(), counts, endings, ends, escaped_ends }
    }

    /// A row of distinct tokens that never leave.
    pub fn without_exits(vocab_size: usize, tokens: Vec<u32>) -> Row {
        Row::of_tokens(vocab_size, tokens, Some(Arc::default()), Box::default())
    }

    /// The row with these ends.
    pub fn with_ends(self, counts: (u32, u32), ends: Vec<u32>, escaped_ends: Vec<(u32, Box<[u8]>)>) -> Row {
        Row { counts, ends, escaped_ends, ..self }
    }

    fn to_set(&self, vocab_size: usize) -> TokenSet {
        let mut set = TokenSet::empty(vocab_size);
        self.write(set.words_mut());
        set
    }

    /// Makes a mask of the tokens inside the lexeme.
    pub fn write(&self, mask: &mut [u32]) {
        match (&self.inside, &self.listed) {
            (Some(inside), _) => mask.copy_from_slice(inside.words()),
            (None, listed) => {
                mask.fill(0);
                listed.iter().flatten().for_each(|&token| tokenset::set(mask, token));
            }
        }
    }

    /// Whether a token leaves the lexeme with a suffix behind so many characters, as the exits say.
    #[inline]
    pub fn leaves(&self, suffix: u32, token: u32, rounds: u32) -> bool {
        let (least, most) = self.counts;
        (least..=most).contains(&rounds) && (self.stays.is_empty() || !self.stays.contains(&(suffix, token)))
    }

    /// Adds the tokens inside the lexeme to a mask.
    pub fn add_inside(&self, mask: &mut [u32]) {
        if let Some(inside) = &self.inside {
            mask.iter_mut().zip(inside.words()).for_each(|(word, row)| *word |= row);
        } else {
            self.listed.iter().flatten().for_each(|&token| tokenset::set(mask, token));
        }
    }
}
