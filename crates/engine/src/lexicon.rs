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
const WIDE_BYTES: u16 = 40;

/// A row with more leaving tokens than this does not keep them: the state is left almost everywhere (free text), and
/// where something can follow, a direct walk is cheaper than the suffixes are to store.
const MAX_EXITS: usize = 40_000;

/// A repetition that may end sooner than this is walked on its own: it differs from an endless one nearly everywhere.
const MIN_AGREEMENT: u32 = 4;

/// Tokens from one wide lexeme state.
pub struct Row {
    /// Tokens read to their last byte inside the lexeme, possibly ending it; of tokens that spell the same bytes the
    /// one in the trie.
    pub inside: TokenSet,
    /// How many they are.
    pub count: usize,
    /// Tokens that go on behind the lexeme, by which residuals have matched there; `None` where they are too many to
    /// keep. Rows of similar lexemes share them.
    pub exits: Option<Arc<Vec<Exits>>>,
    /// Tokens that do not leave this lexeme although the exits say so, each with the suffix that it would leave with. Not
    /// empty only where there is a single residual.
    stays: FxHashSet<(u32, u32)>,
    /// All sets of residuals that match together somewhere.
    pub endings: Vec<Box<[u32]>>,
    /// Nodes of the vocabulary's trie at which some residual matches; none where the exits are not kept.
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
    /// For every suffix the tokens that leave the lexeme with it.
    pub tokens: Vec<Vec<u32>>,
}

/// Lexeme automata and rows of one vocabulary.
pub struct Lexicon {
    deriver: Deriver,
    dfas: Vec<Dfa>,
    dfa_index: FxHashMap<Box<[ExprId]>, DfaId>,
    rows: FxHashMap<Box<[ExprId]>, Arc<Row>>,
    rows_bytes: usize,
    saturation: Saturation,
    relaxation: Relaxation,
    /// How many expressions there were when the memory was measured, and how many bytes it was.
    measured: (usize, usize),
    limits: Limits,
}

impl Lexicon {
    /// An empty lexicon for a vocabulary whose longest token has `longest_token` bytes.
    pub fn new(longest_token: usize) -> Lexicon {
        let limits = Limits::default();
        Lexicon {
            deriver: Deriver::over(common_exprs(), limits),
            dfas: Vec::new(),
            dfa_index: FxHashMap::default(),
            rows: FxHashMap::default(),
            rows_bytes: 0,
            saturation: Saturation::new(longest_token as u32),
            relaxation: Relaxation::default(),
            measured: (0, 0),
            limits,
        }
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        self.deriver.memory_bytes() + self.dfas.iter().map(Dfa::memory_bytes).sum::<usize>() + self.rows_bytes
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
        let residuals = self.residuals(dfa, state);
        let mut distinct: Vec<ExprId> = residuals.iter().map(|&(_, expr)| expr).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut tags: Vec<Vec<Tag>> = vec![Vec::new(); distinct.len()];
        for &(tag, expr) in residuals {
            let position = distinct.binary_search(&expr).expect("distinct holds every residual");
            tags[position].push(tag);
        }
        let row = match self.rows.get(&distinct[..]) {
            Some(known) => known.clone(),
            None => {
                let row = match (&distinct[..], self.base_of(distinct[0])) {
                    (&[residual], Some(base)) => self.row_near(vocabulary, residual, base)?,
                    _ => None,
                };
                let row = match row {
                    Some(row) => Arc::new(row),
                    None => Arc::new(self.compute_row(vocabulary, &distinct)?),
                };
                self.rows_bytes += row.memory_bytes();
                self.rows.insert(distinct.into(), row.clone());
                row
            }
        };
        Ok(RowHere { row, tags })
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
        let Some(exits) = &larger.exits else { return Ok(None) };
        let trie = vocabulary.trie();
        let mut inside = larger.inside.clone();
        let mut count = larger.count;
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
                if state != StateId::DEAD && self.agree(own, state, whole, other, trie.height(node)) {
                    return Ok(None);
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
            count -= 1;
        }
        let mut stays: FxHashSet<(u32, u32)> = larger.stays.clone();
        let mut ends = larger.ends.clone();
        let mut escaped_ends = larger.escaped_ends.clone();
        for &node in &not_here {
            let node = node as usize;
            let depth = trie.depth(node);
            let own = trie.entry_at(node);
            for token in trie.entries_below(node).filter(|&token| Some(token) != own) {
                let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
                let suffixes = exits.first().map(|exits| &exits.suffixes);
                let entry = suffixes.and_then(|trie| trie.entry_at(trie.find(&bytes[depth..])?));
                stays.extend(entry.map(|entry| (entry, token)));
            }
        }
        if !not_here.is_empty() {
            ends.retain(|node| not_here.binary_search(node).is_err());
            escaped_ends.retain(|(node, _)| not_here.binary_search(node).is_err());
        }
        let (exits, endings) = (larger.exits.clone(), larger.endings.clone());
        Ok(Some(Row { inside, count, exits, stays, endings, ends, escaped_ends }))
    }

    /// Whether a state and one of a larger language read the same strings of at most `height` bytes.
    fn agree(&mut self, own: DfaId, state: StateId, whole: DfaId, other: StateId, height: u8) -> bool {
        let (&[(_, residual)], &[(_, larger)]) = (self.residuals(own, state), self.residuals(whole, other)) else {
            return false;
        };
        residual == larger
            || (self.relaxation.apply(&mut self.deriver.exprs, residual) == larger
                && self.relaxation.agreement(&self.deriver.exprs, residual) >= u32::from(height)
                && height < u8::MAX)
    }

    fn compute_row(&mut self, vocabulary: &Tokens, exprs: &[ExprId]) -> Result<Row, LimitExceeded> {
        let dfa = self.dfa(exprs)?;
        let trie = vocabulary.trie();
        let mut inside = TokenSet::empty(vocabulary.vocab_size());
        let mut ends: Vec<(u32, StateId)> = Vec::new();
        let (automaton, deriver) = (&mut self.dfas[dfa.0 as usize], &mut self.deriver);
        trie.walk_mask(
            StateId::START,
            |state, byte, node| {
                let (next, accepts) = automaton.step(deriver, state, byte)?;
                if accepts {
                    ends.push((node as u32, next));
                }
                Ok((next != StateId::DEAD).then_some(next))
            },
            inside.words_mut(),
        )?;
        let automaton = &self.dfas[dfa.0 as usize];
        let states: FxHashSet<StateId> = ends.iter().map(|&(_, state)| state).collect();
        let mut endings: Vec<Box<[u32]>> = states.into_iter().map(|state| automaton.accepts(state).into()).collect();
        endings.sort_unstable();
        endings.dedup();
        let mut leaving: FxHashMap<&[u32], Vec<(&[u8], u32)>> = FxHashMap::default();
        let mut count = 0;
        for &(node, state) in &ends {
            let depth = trie.depth(node as usize);
            let own = trie.entry_at(node as usize);
            for token in trie.entries_below(node as usize).filter(|&token| Some(token) != own) {
                let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
                leaving.entry(automaton.accepts(state)).or_default().push((&bytes[depth..], token));
                count += 1;
            }
            if count > MAX_EXITS {
                break;
            }
        }
        let exits = (count <= MAX_EXITS).then(|| {
            let mut exits: Vec<Exits> =
                leaving.into_iter().map(|(residuals, leaving)| Exits::new(residuals, leaving)).collect();
            exits.sort_unstable_by(|a, b| a.residuals.cmp(&b.residuals));
            Arc::new(exits)
        });
        let count = inside.len();
        let stays = FxHashSet::default();
        let way = |node: u32| {
            let token = trie.entries_below(node as usize).next().expect("every node leads to a token");
            let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
            &bytes[..trie.depth(node as usize)]
        };
        if exits.is_none() {
            return Ok(Row { inside, count, exits, stays, endings, ends: Vec::new(), escaped_ends: Vec::new() });
        }
        let ends: Vec<u32> = ends.into_iter().map(|(node, _)| node).collect();
        let escaped_ends = ends
            .iter()
            .filter(|&&node| way(node).contains(&b'\\'))
            .map(|&node| (node, json_text::value_of(&[b"\"", way(node)].concat()).into()))
            .collect();
        Ok(Row { inside, count, exits, stays, endings, ends, escaped_ends })
    }
}

impl Exits {
    fn new(residuals: &[u32], mut leaving: Vec<(&[u8], u32)>) -> Exits {
        leaving.sort_unstable();
        let mut suffixes: Vec<&[u8]> = Vec::new();
        let mut tokens: Vec<Vec<u32>> = Vec::new();
        for (suffix, token) in leaving {
            if suffixes.last() != Some(&suffix) {
                suffixes.push(suffix);
                tokens.push(Vec::new());
            }
            tokens.last_mut().expect("a suffix was pushed before its tokens").push(token);
        }
        let entries = suffixes.iter().enumerate().map(|(entry, &suffix)| (suffix, entry as u32));
        Exits { residuals: residuals.into(), suffixes: Trie::from_sorted(entries), tokens }
    }
}

impl Row {
    fn memory_bytes(&self) -> usize {
        let exits: usize = self
            .exits
            .iter()
            .flat_map(|exits| exits.iter())
            .map(|exits| {
                let tokens: usize = exits.tokens.iter().map(|tokens| tokens.len() * 4 + 24).sum();
                exits.suffixes.memory_bytes() + tokens
            })
            .sum();
        let ends = self.ends.len() * 4 + self.escaped_ends.len() * 32;
        self.inside.words().len() * 4 + exits + ends + self.stays.len() * 16
    }

    /// Whether a token leaves the lexeme with a suffix, as the exits say.
    pub fn leaves(&self, suffix: u32, token: u32) -> bool {
        self.stays.is_empty() || !self.stays.contains(&(suffix, token))
    }

    /// Adds the tokens inside the lexeme to a mask.
    pub fn add_inside(&self, mask: &mut [u32]) {
        for (word, row) in mask.iter_mut().zip(self.inside.words()) {
            *word |= row;
        }
    }
}
