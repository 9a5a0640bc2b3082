//! The lexemes of a tokenizer: automata and token rows, shared by all grammars compiled for it.
//!
//! Equal lexemes of different grammars are one automaton. A **row** belongs to a set of residual expressions: the
//! tokens that stay inside them to their last byte, and for the tokens that leave, the distinct **suffixes** with which
//! they go on behind the lexeme. Rows are worth their full walk of the vocabulary for wide states only (a string body
//! takes nearly every token); narrow states are walked directly, see `mask.rs`.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_grammar::common_exprs;
use stencilm_regex::{Deriver, Dfa, Expr, ExprId, ExprSet, LimitExceeded, Limits, Saturation, StateId, Tag};

use crate::json_text;
use crate::tokens::Tokens;
use crate::tokenset::TokenSet;
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

/// Tokens from one wide lexeme state.
pub struct Row {
    /// Tokens read to their last byte inside the lexeme, possibly ending it; of tokens that spell the same bytes the
    /// one in the trie.
    pub inside: TokenSet,
    /// Tokens that go on behind the lexeme, by which residuals have matched there; `None` where they are too many to
    /// keep.
    pub exits: Option<Vec<Exits>>,
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

    /// An expression that ends in optional blanks as what comes before them, which is not empty, and the blanks.
    pub fn split_blanks(&mut self, expr: ExprId) -> Option<(ExprId, ExprId)> {
        let exprs = &mut self.deriver.exprs;
        let mut spine = Vec::new();
        let mut rest = expr;
        while let Expr::Concat { head, tail } = *exprs.get(rest) {
            spine.push(head);
            rest = tail;
        }
        let Expr::Repeat { body, min: 0, .. } = *exprs.get(rest) else { return None };
        let Expr::Bytes(set) = exprs.get(body) else { return None };
        if !set.iter().all(|byte| b" \t\r\n".contains(&byte)) {
            return None;
        }
        let head = exprs.concat_all(&spine);
        (!exprs.is_nullable(head)).then_some((head, rest))
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

    /// The state after one byte.
    #[inline]
    pub fn next(&mut self, dfa: DfaId, state: StateId, byte: u8) -> Result<StateId, LimitExceeded> {
        self.dfas[dfa.0 as usize].next(&mut self.deriver, state, byte)
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

    /// A lexeme of which this state is nearly the whole: a free key beside a few known ones is nearly a free key, and
    /// `text & ~words` is nearly `text`. Gives the automaton of the whole and the tag that it stands for.
    pub fn nearly(
        &mut self,
        dfa: DfaId,
        state: StateId,
        free: Option<Tag>,
    ) -> Result<Option<(DfaId, Tag)>, LimitExceeded> {
        let residuals = self.dfas[dfa.0 as usize].residuals(state);
        if let Some(&(tag, residual)) = residuals.iter().find(|&&(tag, _)| Some(tag) == free)
            && residuals.len() > 1
        {
            return Ok(Some((self.dfa(&[residual])?, tag)));
        }
        let exprs = &mut self.deriver.exprs;
        let mut found = None;
        for &(tag, residual) in self.dfas[dfa.0 as usize].residuals(state) {
            let Expr::And(parts) = exprs.get(residual) else { continue };
            let kept: Vec<ExprId> =
                parts.iter().copied().filter(|&part| !matches!(exprs.get(part), Expr::Not(_))).collect();
            if kept.len() < parts.len() && found.replace((tag, kept)).is_some() {
                return Ok(None);
            }
        }
        let Some((tag, kept)) = found else { return Ok(None) };
        let whole = exprs.and(&kept);
        Ok(Some((self.dfa(&[whole])?, tag)))
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
                let row = Arc::new(self.compute_row(vocabulary, &distinct)?);
                self.rows_bytes += row.memory_bytes();
                self.rows.insert(distinct.into(), row.clone());
                row
            }
        };
        Ok(RowHere { row, tags })
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
            exits
        });
        let way = |node: u32| {
            let token = trie.entries_below(node as usize).next().expect("every node leads to a token");
            let bytes = vocabulary.token_bytes(token).expect("a token in the trie spells bytes");
            &bytes[..trie.depth(node as usize)]
        };
        if exits.is_none() {
            return Ok(Row { inside, exits, endings, ends: Vec::new(), escaped_ends: Vec::new() });
        }
        let ends: Vec<u32> = ends.into_iter().map(|(node, _)| node).collect();
        let escaped_ends = ends
            .iter()
            .filter(|&&node| way(node).contains(&b'\\'))
            .map(|&node| (node, json_text::value_of(&[b"\"", way(node)].concat()).into()))
            .collect();
        Ok(Row { inside, exits, endings, ends, escaped_ends })
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
            .flatten()
            .map(|exits| {
                let tokens: usize = exits.tokens.iter().map(|tokens| tokens.len() * 4 + 24).sum();
                exits.suffixes.memory_bytes() + tokens
            })
            .sum();
        self.inside.words().len() * 4 + exits + self.ends.len() * 4 + self.escaped_ends.len() * 32
    }

    /// Adds the tokens inside the lexeme to a mask.
    pub fn add_inside(&self, mask: &mut [u32]) {
        for (word, row) in mask.iter_mut().zip(self.inside.words()) {
            *word |= row;
        }
    }
}
