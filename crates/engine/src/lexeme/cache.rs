//! The lexemes of a tokenizer: automata and lexeme masks, shared by all grammars compiled for it.
//!
//! Equal lexemes of different grammars are one automaton, and equal states of lexemes have one mask (`lexeme/mask.rs`),
//! which is found in `lexeme/find/order.rs`.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_grammar::common_exprs;
use stencilm_regex::{ByteSet, Completions, Deriver, Dfa, Expr, ExprId, ExprSet, Limits, Saturation, StateId, Tag};
use stencilm_support::{BUDGET, Extensions, LimitExceeded, Map, Recent, SEARCHED, memory};

use crate::lexeme::crossing::Suffixes;
use crate::lexeme::find::char_runs::{CharactersLeft, ClassRuns, Run};
use crate::lexeme::ids::Behind;
pub use crate::lexeme::ids::DfaId;
use crate::lexeme::mask::LexemeMask;
use crate::lexeme::whitespace::{IN_WHITESPACE, OptionalWhitespace, WhitespaceRuns};
use crate::switches::Switch;
use crate::vocabulary::categories::Categories;
use crate::vocabulary::tokens::Tokens;

/// A state is dense if at least this many of the 256 bytes are live: a class such as "any character" or "any letter" is
/// dense, a choice between a few names is not.
pub(crate) const DENSE_BYTES: usize = 10;

/// The distinct residuals of a state, ascending, and the set and the greatest number of the whitespace bytes before
/// them.
pub type LexemeMaskKey = (Box<[ExprId]>, Option<(ByteSet, u32)>);

/// The lexeme automata and lexeme masks of one vocabulary.
pub struct LexemeCache {
    pub(crate) deriver: Deriver,
    pub(crate) dfas: Vec<Dfa>,
    dfa_index: FxHashMap<Box<[ExprId]>, DfaId>,
    pub(crate) masks: FxHashMap<LexemeMaskKey, Arc<LexemeMask>>,
    pub(crate) classes: FxHashMap<ExprId, Option<ClassRuns>>,
    pub(crate) after_runs: Behind,
    /// See [`LexemeCache::without_limits`].
    pub(crate) unlimited: Recent<DfaId>,
    pub(crate) masks_bytes: usize,
    saturation: Saturation,
    pub(crate) completions: Completions,
    /// See [`bounded_patterns`](super::find::bounded_patterns): by expression and automaton of one character.
    pub(crate) characters_left: FxHashMap<(ExprId, DfaId), Option<CharactersLeft>>,
    whitespace_runs: FxHashMap<ByteSet, WhitespaceRuns>,
    /// The suffixes after a byte; `None` where there are too many.
    pub(crate) suffixes: FxHashMap<u8, Option<Arc<Suffixes>>>,
    /// The table of categories of the automaton that was walked last.
    pub(crate) categories: Option<(DfaId, Categories)>,
    /// Bytes of the keys of automata and masks.
    pub(crate) in_keys: usize,
    /// When memory was last measured: the bytes that are counted at once, and the bytes of the rest.
    measured: (usize, usize),
    /// See [`LexemeCache::memory_bytes_if_grown`].
    progress: ([usize; 3], usize),
    longest_token: usize,
    limits: Limits,
    /// Data that other parts of the engine keep for all grammars, and lists that operations reuse.
    pub(crate) extensions: Extensions,
}

impl LexemeCache {
    /// An empty lexeme cache for a vocabulary whose longest token has `longest_token` bytes.
    pub fn new(longest_token: usize, limits: Limits) -> LexemeCache {
        LexemeCache {
            deriver: Deriver::over(common_exprs(), limits),
            dfas: Vec::new(),
            dfa_index: FxHashMap::default(),
            masks: FxHashMap::default(),
            classes: FxHashMap::default(),
            after_runs: Behind::default(),
            unlimited: Recent::default(),
            masks_bytes: 0,
            saturation: Saturation::new(longest_token as u32),
            completions: Completions::default(),
            characters_left: FxHashMap::default(),
            whitespace_runs: FxHashMap::default(),
            suffixes: FxHashMap::default(),
            categories: None,
            in_keys: 0,
            measured: (0, 0),
            progress: ([0; 3], 0),
            longest_token,
            limits,
            extensions: Extensions::default(),
        }
    }

    /// A new lexeme cache in place of this one. It keeps what the first grammars would spend most time on and what
    /// takes little memory: the suffixes after bytes, and, for expressions that every lexeme cache shares, such as the
    /// body of a string, the masks and the numbers of characters in tokens.
    pub fn renewed(&self) -> LexemeCache {
        let exprs = &self.deriver.exprs;
        let common = self.masks.iter().filter_map(|(key, mask)| match (&*key.0, key.1) {
            (&[residual], None) if exprs.is_shared(residual) => Some((residual, key, mask)),
            _ => None,
        });
        // The character that a mask refers to must have the same number in the new lexeme cache.
        let common = common.filter(|(.., mask)| mask.runs.as_ref().is_none_or(|runs| exprs.is_shared(*runs.character)));
        let mut common: Vec<_> = common.collect();
        common.sort_unstable_by_key(|&(residual, ..)| residual);
        let mut masks: FxHashMap<LexemeMaskKey, Arc<LexemeMask>> = FxHashMap::default();
        let mut in_masks = 0;
        for (_, key, mask) in common {
            in_masks += mask.memory_bytes();
            if in_masks > BUDGET {
                in_masks -= mask.memory_bytes();
                break;
            }
            masks.insert(key.clone(), mask.clone());
        }
        let counted = self.classes.iter().filter(|(character, _)| exprs.is_shared(**character));
        let counted = counted.filter_map(|(&character, runs)| Some((character, runs.as_ref()?)));
        let counted =
            counted.filter(|(_, runs)| runs.is_counted()).map(|(character, runs)| (character, Some(runs.renewed())));
        let classes: FxHashMap<ExprId, Option<ClassRuns>> = counted.collect();
        let in_classes: usize = classes.values().flatten().map(ClassRuns::memory_bytes).sum();
        let in_suffixes: usize = self.suffixes.values().flatten().map(|suffixes| suffixes.memory_bytes()).sum();
        LexemeCache {
            masks,
            classes,
            suffixes: self.suffixes.clone(),
            masks_bytes: in_masks + in_classes + in_suffixes,
            ..LexemeCache::new(self.longest_token, self.limits)
        }
    }

    /// Bytes of memory held, if this may have changed since the last call.
    #[inline]
    pub fn memory_bytes_if_grown(&mut self) -> Option<usize> {
        let progress = (self.deriver.progress(), self.masks_bytes);
        if progress == self.progress {
            return None;
        }
        self.progress = progress;
        Some(self.memory_bytes())
    }

    /// Bytes of memory held. What grows with the work is counted at every call; the rest is measured when the former
    /// has grown by an eighth.
    pub fn memory_bytes(&mut self) -> usize {
        let measured_at_once = self.deriver.memory_bytes()
            + self.completions.memory_bytes()
            + self.saturation.memory_bytes()
            + self.masks_bytes
            + self.in_keys
            + memory::of_list(&self.dfas)
            + memory::of_table::<(Box<[ExprId]>, DfaId)>(self.dfa_index.capacity())
            + memory::of_table::<(LexemeMaskKey, Arc<LexemeMask>)>(self.masks.capacity())
            + memory::of_table::<(ExprId, Option<ClassRuns>)>(self.classes.capacity())
            + memory::of_table::<((ExprId, DfaId), Option<CharactersLeft>)>(self.characters_left.capacity())
            + self.after_runs.memory_bytes();
        if measured_at_once > self.measured.0 + self.measured.0 / 8 {
            self.measured = (measured_at_once, self.memory_bytes_apart());
        }
        measured_at_once + self.measured.1
    }

    /// Bytes of the parts that grow little.
    fn memory_bytes_apart(&self) -> usize {
        let runs: usize = self.whitespace_runs.values().map(WhitespaceRuns::memory_bytes).sum();
        let categories = self.categories.as_ref().map_or(0, |(_, categories)| categories.memory_bytes());
        self.extensions.memory_bytes() + runs + categories
    }

    /// Begins an operation, which gets fresh limits.
    pub fn begin(&mut self) {
        self.deriver.begin();
    }

    /// The deriver, which owns the expressions.
    pub(crate) fn deriver(&mut self) -> &mut Deriver {
        &mut self.deriver
    }

    /// A number of bytes within which every prefix of a match can be completed; `u32::MAX` where none is known.
    ///
    /// # Errors
    /// Where it takes too long.
    pub fn most_to_complete(&mut self, expr: ExprId) -> Result<u32, LimitExceeded> {
        self.completions.most(&self.deriver.exprs, expr)
    }

    /// Copies an expression of a grammar.
    ///
    /// # Errors
    /// Where it takes too long.
    pub fn import(&mut self, exprs: &ExprSet, expr: ExprId) -> Result<ExprId, LimitExceeded> {
        self.deriver.exprs.import_in_time(exprs, expr)
    }

    /// Copies one of many expressions of a grammar; `known` are those copied before.
    ///
    /// # Errors
    /// Where it takes too long.
    pub fn import_once(
        &mut self,
        exprs: &ExprSet,
        expr: ExprId,
        known: &mut Map<ExprId, ExprId>,
    ) -> Result<ExprId, LimitExceeded> {
        self.deriver.exprs.import_once(exprs, expr, known)
    }

    pub fn concat(&mut self, head: ExprId, tail: ExprId) -> ExprId {
        self.deriver.exprs.concat(head, tail)
    }

    /// The expression of at most `max` whitespace bytes.
    pub fn whitespace(&mut self, set: ByteSet, max: Option<u32>) -> ExprId {
        let whitespace = self.deriver.exprs.bytes(set);
        self.deriver.exprs.repeat(whitespace, 0, max)
    }

    /// The runs of these bytes in the vocabulary.
    pub fn whitespace_runs(&mut self, vocabulary: &Tokens, set: ByteSet) -> &mut WhitespaceRuns {
        self.whitespace_runs.entry(set).or_insert_with(|| WhitespaceRuns::new(vocabulary, set))
    }

    /// The suffixes after a byte; `None` where there are too many to store.
    pub fn suffixes_after(&mut self, vocabulary: &Tokens, byte: u8) -> Option<Arc<Suffixes>> {
        let suffixes = self.suffixes.entry(byte).or_insert_with(|| {
            // A state with more crossing tokens can end almost everywhere, and then walking what follows is cheaper
            // than the suffixes.
            let suffixes = Suffixes::after_byte(vocabulary, byte, SEARCHED).map(Arc::new);
            self.masks_bytes += suffixes.as_ref().map_or(0, |suffixes| suffixes.memory_bytes());
            suffixes
        });
        suffixes.clone()
    }

    /// Splits an expression that ends in optional whitespace: the part before it, which is not empty, and the
    /// whitespace.
    pub fn split_whitespace(&mut self, expr: ExprId) -> Option<(ExprId, OptionalWhitespace)> {
        let exprs = &mut self.deriver.exprs;
        let mut spine = Vec::new();
        let mut rest = expr;
        while let Expr::Concat { head, tail } = *exprs.get(rest) {
            spine.push(head);
            rest = tail;
        }
        let whitespace = optional_whitespace(exprs, rest)?;
        let head = exprs.concat_all(&spine);
        (!exprs.is_nullable(head)).then_some((head, whitespace))
    }

    /// Splits an expression that begins with optional whitespace: the whitespace, and the part after it, which is not
    /// empty.
    pub fn split_first_whitespace(&self, expr: ExprId) -> Option<(OptionalWhitespace, ExprId)> {
        let exprs = &self.deriver.exprs;
        let Expr::Concat { head, tail } = *exprs.get(expr) else { return None };
        let whitespace = optional_whitespace(exprs, head)?;
        (!exprs.is_nullable(tail)).then_some((whitespace, tail))
    }

    /// The automaton of these expressions. The tag of an expression is its position.
    pub fn dfa(&mut self, exprs: &[ExprId]) -> Result<DfaId, LimitExceeded> {
        if let Some(&known) = self.dfa_index.get(exprs) {
            return Ok(known);
        }
        let dfa = Dfa::new(&mut self.deriver, exprs, self.limits)?;
        let id = DfaId(self.dfas.len() as u32);
        self.dfas.push(dfa);
        self.in_keys += memory::of_slice::<ExprId>(exprs.len());
        self.dfa_index.insert(exprs.into(), id);
        Ok(id)
    }

    /// An existing automaton whose start is a state of another one, with the same tags.
    pub fn known_dfa_from(&self, dfa: DfaId, state: StateId) -> Option<DfaId> {
        let residuals = self.residuals(dfa, state);
        let are_positions = residuals.iter().zip(0..).all(|(&(tag, _), position)| tag == position);
        let exprs: Vec<ExprId> = residuals.iter().map(|&(_, residual)| residual).collect();
        self.dfa_index.get(&exprs[..]).copied().filter(|_| are_positions)
    }

    /// The state after one byte, and whether any expression matches there.
    #[inline]
    pub fn step(&mut self, dfa: DfaId, state: StateId, byte: u8) -> Result<(StateId, bool), LimitExceeded> {
        self.dfas[dfa.0 as usize].step(&mut self.deriver, state, byte)
    }

    /// The tags of the expressions that match in this state.
    #[inline]
    pub fn accepts(&self, dfa: DfaId, state: StateId) -> &[Tag] {
        self.dfas[dfa.0 as usize].accepts(state)
    }

    /// The clamped state: the same for all states that differ only in counts far from their bounds, and with the same
    /// mask.
    pub fn saturated(&mut self, dfa: DfaId, state: StateId) -> Result<StateId, LimitExceeded> {
        if !Switch::LexemeClamped.is_on() {
            return Ok(state);
        }
        self.dfas[dfa.0 as usize].saturated(&mut self.deriver, &mut self.saturation, state)
    }

    /// Whether a state is the [clamped](LexemeCache::saturated) start of its automaton; `false` also if that was never
    /// computed.
    pub fn is_saturated_start(&self, dfa: DfaId, state: StateId) -> bool {
        self.dfas[dfa.0 as usize].known_saturated(StateId::START) == Some(state)
    }

    /// For a state that reads a bounded number of characters: the clamped state that reads any number, and the tokens
    /// that only that one reads. `None` where these are not known to be few and to be the only difference.
    pub fn nearly_unbounded(&mut self, dfa: DfaId, state: StateId) -> Result<Option<(StateId, &[u32])>, LimitExceeded> {
        // A bound that clamping removes is further away than the longest token.
        if self.dfas[dfa.0 as usize].known_saturated(state).is_some_and(|saturated| saturated != state) {
            return Ok(None);
        }
        let &[(_, residual)] = self.residuals(dfa, state) else { return Ok(None) };
        if self.deriver.exprs.greatest_count(residual) == 0 {
            return Ok(None);
        }
        let Some(Run { character, max: Some(max), tail, .. }) = Run::of(&self.deriver.exprs, residual) else {
            return Ok(None);
        };
        if max > self.saturation.horizon() {
            return Ok(None);
        }
        let &Expr::Bytes(end) = self.deriver.exprs.get(tail) else { return Ok(None) };
        let Some(Some(runs)) = self.classes.get(&character) else { return Ok(None) };
        let Some(longer) = runs.few_longer(max, end) else { return Ok(None) };
        let unbounded = self.dfas[dfa.0 as usize].unbounded(&mut self.deriver, &mut self.saturation, state)?;
        Ok(unbounded.map(|unbounded| (unbounded, longer)))
    }

    /// The live bytes of a state.
    pub fn live_bytes(&mut self, dfa: DfaId, state: StateId) -> Result<&ByteSet, LimitExceeded> {
        self.dfas[dfa.0 as usize].live_bytes(&mut self.deriver, state)
    }

    /// Whether any byte is live in a state.
    pub fn goes_on(&mut self, dfa: DfaId, state: StateId) -> Result<bool, LimitExceeded> {
        Ok(!self.live_bytes(dfa, state)?.is_empty())
    }

    /// Whether many bytes are live and do not each lead to a different state, as they would where one of many names may
    /// come; or whether this is so after a byte with which many tokens begin, which is nearly always a space.
    pub fn is_dense(&mut self, vocabulary: &Tokens, dfa: DfaId, state: StateId) -> Result<bool, LimitExceeded> {
        // A language decided by a program reads any letters, and finding its bytes one by one takes long.
        let begins = |&(_, residual): &(Tag, ExprId)| self.deriver.exprs.begins_with_language(residual);
        if self.residuals(dfa, state).iter().any(begins) {
            return Ok(true);
        }
        let live = *self.live_bytes(dfa, state)?;
        if live.len() >= DENSE_BYTES {
            return Ok(!self.is_decided_by_first_byte(dfa, state));
        }
        if vocabulary.trie().nodes_after(live) <= SEARCHED {
            return Ok(false);
        }
        for byte in live.iter() {
            let (next, _) = self.step(dfa, state, byte)?;
            if self.live_bytes(dfa, next)?.len() >= DENSE_BYTES && !self.is_decided_by_first_byte(dfa, next) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_decided_by_first_byte(&self, dfa: DfaId, state: StateId) -> bool {
        let exprs = &self.deriver.exprs;
        self.residuals(dfa, state).iter().all(|&(_, residual)| exprs.is_decided_by_first_byte(residual))
    }

    /// The residual expressions of a state, with their tags.
    pub fn residuals(&self, dfa: DfaId, state: StateId) -> &[(Tag, ExprId)] {
        self.dfas[dfa.0 as usize].residuals(state)
    }
}

/// The whitespace, if the expression is optional whitespace.
fn optional_whitespace(exprs: &ExprSet, expr: ExprId) -> Option<OptionalWhitespace> {
    let Expr::Repeat { body, min: 0, max } = *exprs.get(expr) else { return None };
    let Expr::Bytes(set) = *exprs.get(body) else { return None };
    let is_json_whitespace =
        set.iter().all(|byte| b" \t\r\n".contains(&byte)) && max.is_none_or(|max| max < IN_WHITESPACE);
    is_json_whitespace.then_some(OptionalWhitespace { set, max })
}
