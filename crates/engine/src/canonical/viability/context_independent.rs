//! The tokens of dense lexemes that are viable in any context, whatever follows the lexeme.
//!
//! They are the same for all grammars with such a lexeme, so they are stored with the vocabulary. Most lexemes read
//! runs of characters that may always continue, and lexemes with one class of characters have nearly all results in
//! common.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{ByteSet, ExprId, StateId};
use stencilm_support::{LARGE_BUDGET, LimitExceeded, MANY};

use super::in_lexeme::{Within, independent_within};
use crate::canonical::cursor::table::{CursorId, Cursors};
use crate::canonical::encoder::facts::Encoder;
use crate::canonical::viability::ends::Anywhere;
use crate::canonical::viability::equivalence::Equivalence;
use crate::canonical::viability::search::Search;
use crate::error::EngineError;
use crate::lexeme::cache::LexemeCache;
use crate::lexeme::mask::{CHARACTERS_AFTER, LexemeMask, RunsInside};
use crate::machine::expansion::IN_WHITESPACE;
use crate::machine::layout::ExpansionId;
use crate::machine::reader::Reader;
use crate::mask::joined::Dense;
use crate::parse::stepper::offers_tokens;
use crate::state::stacks::Entry;
use crate::switches::Switch;
use crate::vocabulary::token_set::{self, TokenSet};
use crate::vocabulary::tokens::Tokens;

/// Results about the tokens of dense lexemes, by lexeme mask.
#[derive(Default)]
pub(crate) struct ContextIndependent {
    lexemes: FxHashMap<usize, LexemeFacts>,
    /// By the character of their runs.
    classes: FxHashMap<usize, RunFacts>,
    /// Bytes held by lexemes and classes.
    bytes: usize,
}

struct LexemeFacts {
    /// Kept alive, since its address is the key.
    mask: Arc<LexemeMask>,
    /// A class of characters that shares the results for most tokens.
    class: Option<usize>,
    /// The tokens with shared results; without a class, those that are viable in any context.
    tokens: Arc<TokenSet>,
    /// The other tokens that the lexeme reads.
    others: Vec<u32>,
    /// Tokens that end the lexeme where a run of characters ends; they are not among `others`.
    ending: Option<Arc<Ending>>,
    /// Results for cursors.
    at: FxHashMap<CursorId, Arc<AtCursor>>,
    /// Results of searches, whatever follows the lexeme, by token and the cursor after it.
    answers: FxHashMap<(u32, CursorId), bool>,
}

/// Results about runs of characters that may always continue.
struct RunFacts {
    /// Kept alive, since its address is the key. Every lexeme cache with a mask of the class has the same character,
    /// but not the same automata.
    character: Arc<ExprId>,
    /// All tokens that such runs read.
    all: Arc<TokenSet>,
    /// Those that are viable in any context.
    anywhere: TokenSet,
    others: Vec<u32>,
    /// The tokens that are viable at a cursor, whatever the context.
    at: FxHashMap<CursorId, Arc<TokenSet>>,
    /// Tokens that a search found to be viable, as in [`LexemeFacts::answers`].
    searched: FxHashSet<(u32, CursorId)>,
}

/// Results about the tokens of a lexeme at a cursor, whatever follows the lexeme.
pub(crate) struct AtCursor {
    /// The tokens that are viable in any context: the intersection of the two sets, and `more`. The sets are shared
    /// with the lexeme mask and its class, since there are many masks and cursors.
    independent: (Arc<TokenSet>, Option<Arc<TokenSet>>),
    more: Vec<u32>,
    /// The other tokens, grouped by the state of the lexeme after them.
    pub inside: Vec<Equivalence>,
    /// Those without such a state, which end within the whitespace before the lexeme.
    pub rest: Vec<u32>,
}

impl AtCursor {
    /// Removes the context-independent tokens from a set.
    pub fn clear_independent(&self, tokens: &mut [u32]) {
        match &self.independent {
            (all, None) => token_set::take_out(tokens, all.words()),
            (all, Some(class)) => {
                let both = all.words().iter().zip(class.words());
                tokens.iter_mut().zip(both).for_each(|(word, (all, class))| *word &= !(all & class));
            }
        }
        self.more.iter().for_each(|&token| token_set::clear(tokens, token));
    }
}

/// The lexeme mask of a dense thread, and the tokens after which its lexeme certainly continues.
pub(crate) struct IndependentTokens {
    pub dense: Dense,
    pub known: Arc<AtCursor>,
    /// The tokens that end the lexeme where a run of characters ends.
    pub ending: Option<Arc<Ending>>,
}

/// Tokens that end a lexeme: as a list, and also as a set, since each mask asks of hundreds of tokens whether they are
/// among them.
pub(crate) struct Ending {
    pub tokens: Vec<u32>,
    pub set: TokenSet,
}

impl LexemeFacts {
    /// Whether any number of characters may come, and nothing else within the lexeme.
    fn is_unbounded(&self) -> bool {
        self.mask.runs.as_ref().is_some_and(|runs| runs.max.is_none())
    }

    /// Whether results about a token are stored.
    fn keeps(&self, token: u32) -> bool {
        (self.class.is_some() && self.tokens.contains(token)) || self.others.binary_search(&token).is_ok()
    }
}

impl ContextIndependent {
    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Computes the results about a lexeme mask, read from a state.
    fn lay_out(
        &mut self,
        lexeme_cache: &mut LexemeCache,
        encoding: &Encoder,
        anywhere: &mut Anywhere,
        reader: &Reader<'_>,
        state: u32,
        mask: &Arc<LexemeMask>,
    ) -> Result<(), LimitExceeded> {
        let runs = mask.runs.as_ref().filter(|_| state & IN_WHITESPACE == 0 && Switch::CanonicalClasses.is_on());
        let class = match runs {
            Some(runs) => as_in_class(lexeme_cache, encoding, anywhere, self, runs)?,
            None => None,
        };
        let near = class.map(|class| near_class(encoding.tokens(), mask.clone(), class));
        // Near the end of a bounded run, a class decides few tokens. Then all tokens of the mask are judged.
        let laid_out = match near.filter(|near| near.others.len() <= MANY) {
            Some(near) => near,
            None => independent_facts(lexeme_cache, encoding, anywhere, reader, state, mask.clone())?,
        };
        let sets = if laid_out.ending.is_some() { 3 } else { 2 };
        self.bytes += sets * encoding.tokens().mask_words() * 4 + laid_out.others.len() * 4;
        self.lexemes.insert(Arc::as_ptr(mask) as usize, laid_out);
        Ok(())
    }

    /// Whether results about a token of a lexeme mask are stored.
    pub fn keeps(&self, mask: &Arc<LexemeMask>, token: u32) -> bool {
        Switch::CanonicalAnswers.is_on()
            && self.lexemes.get(&(Arc::as_ptr(mask) as usize)).is_some_and(|facts| facts.keeps(token))
    }

    /// The result of a search for a token of a lexeme mask, given the cursor after it, whatever follows the lexeme.
    pub fn answer(&self, mask: &Arc<LexemeMask>, token: u32, after: CursorId) -> Option<bool> {
        let facts = self.lexemes.get(&(Arc::as_ptr(mask) as usize))?;
        let key = (token, after);
        if let Some(&known) = facts.answers.get(&key) {
            return Some(known);
        }
        // A token that is viable in one unbounded run of the class is viable in all of them.
        let class = facts.class.as_ref().filter(|_| facts.is_unbounded())?;
        let known = facts.tokens.contains(token) && self.classes.get(class)?.searched.contains(&key);
        known.then_some(true)
    }

    /// Stores the result of a search.
    pub fn add(&mut self, mask: &Arc<LexemeMask>, token: u32, after: CursorId, is_viable: bool) {
        let Some(facts) = self.lexemes.get_mut(&(Arc::as_ptr(mask) as usize)) else { return };
        let key = (token, after);
        self.bytes += 16;
        facts.answers.insert(key, is_viable);
        if is_viable
            && facts.is_unbounded()
            && facts.tokens.contains(token)
            && let Some(class) = facts.class.as_ref().and_then(|class| self.classes.get_mut(class))
        {
            class.searched.insert(key);
        }
    }
}

impl ContextIndependent {
    /// The tokens of a dense thread after which its lexeme certainly continues.
    pub fn of_thread(
        &mut self,
        search: &mut Search<'_, '_>,
        anywhere: &mut Anywhere,
        thread: Entry,
        cursor: CursorId,
    ) -> Result<Option<IndependentTokens>, EngineError> {
        let Search { run, encoding, cursors, .. } = search;
        if thread == Entry::BOTTOM || offers_tokens(thread) {
            return Ok(None);
        }
        let vocabulary = encoding.tokens();
        let expansion = run.machine.fork(ExpansionId(thread.head)).clone();
        let Some(dense) = run.dense(vocabulary, thread, &expansion)? else { return Ok(None) };
        let Some((reader, state)) = dense.reader(thread, &expansion) else { return Ok(None) };
        let here = &dense.here;
        if here.mask.count <= MANY && Switch::CanonicalFewTokens.is_on() {
            return Ok(None);
        }
        let set_bytes = vocabulary.mask_words() * 4;
        let name = Arc::as_ptr(&here.mask) as usize;
        let lexeme_cache = &mut *run.lexeme_cache;
        if self.bytes > LARGE_BUDGET {
            *self = ContextIndependent::default();
        }
        if !self.lexemes.contains_key(&name) {
            self.lay_out(lexeme_cache, encoding, anywhere, &reader, state, &here.mask)?;
        }
        let facts = self.lexemes.get_mut(&name).expect("it was there or is there now");
        if let Some(known) = facts.at.get(&cursor) {
            let (known, ending) = (known.clone(), facts.ending.clone());
            return Ok(Some(IndependentTokens { dense, known, ending }));
        }
        let mut independent = (facts.tokens.clone(), None);
        let mut open = Vec::new();
        if let Some(class) = &facts.class {
            let class = self.classes.get_mut(class).expect("classes go together with their lexemes");
            if !class.at.contains_key(&cursor) {
                self.bytes += set_bytes;
            }
            let known = class.at_cursor(lexeme_cache, encoding, cursors, cursor)?.clone();
            let mut others = TokenSet::clone(&facts.tokens);
            token_set::take_out(others.words_mut(), known.words());
            open.extend(others.iter());
            independent.1 = Some(known);
        }
        let mut more = Vec::new();
        let mut within = Within::new(encoding, cursors, lexeme_cache, &reader);
        // By state of the lexeme, in the order in which the states are met.
        let (mut left, mut rest): (Vec<Vec<(u32, u32)>>, Vec<u32>) = Default::default();
        let mut numbers: FxHashMap<u32, usize> = FxHashMap::default();
        for &token in facts.others.iter().chain(&open) {
            match within.is_viable(state, cursor, token)? {
                (_, true) => more.push(token),
                (Some(after), false) if after & IN_WHITESPACE == 0 => {
                    let at = *numbers.entry(after).or_insert(left.len());
                    if at == left.len() {
                        left.push(Vec::new());
                    }
                    left[at].push((0, token));
                }
                _ => rest.push(token),
            }
        }
        let inside = left.into_iter().map(|tokens| Equivalence::new(encoding, cursors, cursor, tokens.into_iter()));
        let inside: Vec<Equivalence> = inside.collect();
        let bytes = (more.len() + rest.len()) * 4 + inside.iter().map(Equivalence::memory_bytes).sum::<usize>();
        let at = AtCursor { independent, more, inside, rest };
        let (known, ending) = (Arc::new(at), facts.ending.clone());
        facts.at.insert(cursor, known.clone());
        self.bytes += bytes;
        Ok(Some(IndependentTokens { dense, known, ending }))
    }
}

impl RunFacts {
    /// The tokens that are viable at a cursor, whatever the context.
    fn at_cursor(
        &mut self,
        lexeme_cache: &mut LexemeCache,
        encoding: &Encoder,
        cursors: &mut Cursors,
        cursor: CursorId,
    ) -> Result<&Arc<TokenSet>, LimitExceeded> {
        if !self.at.contains_key(&cursor) {
            let mut tokens = self.anywhere.clone();
            let reader = unbounded(lexeme_cache, *self.character)?;
            let mut within = Within::new(encoding, cursors, lexeme_cache, &reader);
            for &token in &self.others {
                if within.is_viable(StateId::START.0, cursor, token)?.1 {
                    tokens.insert(token);
                }
            }
            self.at.insert(cursor, Arc::new(tokens));
        }
        Ok(&self.at[&cursor])
    }
}

/// The class of runs of characters, and the tokens after which a run continues as if it were unbounded.
fn as_in_class(
    lexeme_cache: &mut LexemeCache,
    encoding: &Encoder,
    anywhere: &mut Anywhere,
    context_independent: &mut ContextIndependent,
    RunsInside { character, max }: &RunsInside,
) -> Result<Option<(usize, Arc<TokenSet>)>, LimitExceeded> {
    let vocabulary = encoding.tokens();
    // That a token keeps its end is shown by at most this many characters after it; for tokens that keep their ends in
    // any context, by the next one.
    let Some(most) = max.map_or(Some(None), |max| max.checked_sub(CHARACTERS_AFTER).map(Some)) else {
        return Ok(None);
    };
    let most = most.filter(|&most| (most as usize) < vocabulary.trie().max_depth());
    let Some(runs) = lexeme_cache.runs(vocabulary, **character, ByteSet::EMPTY, most.is_some())? else {
        return Ok(None);
    };
    let within = most.map(|most| (runs.within(Some(most)), runs.within(Some(most + CHARACTERS_AFTER - 1))));
    let name = Arc::as_ptr(character) as usize;
    if !context_independent.classes.contains_key(&name) {
        let all = runs.within(None);
        let reader = unbounded(lexeme_cache, **character)?;
        let (known, others) =
            independent_within(lexeme_cache, encoding, anywhere, &reader, StateId::START.0, all.clone())?;
        context_independent.bytes += vocabulary.mask_words() * 8;
        let all = Arc::new(all);
        let (at, searched) = Default::default();
        let class = RunFacts { character: character.clone(), all, anywhere: known, others, at, searched };
        context_independent.classes.insert(name, class);
    }
    let RunFacts { all, anywhere, .. } = &context_independent.classes[&name];
    let tokens = match within {
        None => all.clone(),
        Some((mut tokens, mut near)) => {
            token_set::keep(near.words_mut(), anywhere.words());
            token_set::add(tokens.words_mut(), near.words());
            Arc::new(tokens)
        }
    };
    Ok(Some((name, tokens)))
}

/// The reader of unbounded runs of a character.
fn unbounded(lexeme_cache: &mut LexemeCache, character: ExprId) -> Result<Reader<'static>, LimitExceeded> {
    let unbounded = lexeme_cache.deriver().exprs.repeat(character, 0, None);
    Ok(Reader { expansion: None, dfa: lexeme_cache.dfa(&[unbounded])? })
}

/// The tokens of a lexeme mask, and those with equal bytes: an encoding from characters has tokens for bytes beside
/// them.
fn all_of(vocabulary: &Tokens, mask: &LexemeMask) -> TokenSet {
    let mut tokens = mask.to_set(vocabulary.vocab_size());
    for (first, others) in vocabulary.duplicates() {
        if tokens.contains(*first) {
            others.iter().for_each(|&other| tokens.insert(other));
        }
    }
    tokens
}

/// The results about a lexeme mask that shares nearly all of them with a class.
fn near_class(vocabulary: &Tokens, mask: Arc<LexemeMask>, (class, mut within): (usize, Arc<TokenSet>)) -> LexemeFacts {
    let mut others = all_of(vocabulary, &mask);
    // The mask nearly always contains everything that the class reads.
    if within.words().iter().zip(others.words()).any(|(within, other)| within & !other != 0) {
        token_set::keep(Arc::make_mut(&mut within).words_mut(), others.words());
    }
    token_set::take_out(others.words_mut(), within.words());
    let mut ending = None;
    if mask.only_crossing_tokens().is_some() {
        let mut end = Ending { tokens: Vec::new(), set: TokenSet::empty(vocabulary.vocab_size()) };
        for token in mask.ends.iter().filter_map(|&node| vocabulary.trie().entry_at(node as usize)) {
            if others.contains(token) {
                others.remove(token);
                end.set.insert(token);
                end.tokens.push(token);
            }
        }
        ending = Some(Arc::new(end));
    }
    let (at, answers) = Default::default();
    LexemeFacts { mask, class: Some(class), tokens: within, others: others.iter().collect(), ending, at, answers }
}

/// The results about a lexeme mask, whatever comes before it.
fn independent_facts(
    lexeme_cache: &mut LexemeCache,
    encoding: &Encoder,
    known: &mut Anywhere,
    reader: &Reader<'_>,
    state: u32,
    mask: Arc<LexemeMask>,
) -> Result<LexemeFacts, LimitExceeded> {
    let tokens = all_of(encoding.tokens(), &mask);
    let (anywhere, mut others) = independent_within(lexeme_cache, encoding, known, reader, state, tokens)?;
    others.retain(|&token| state & IN_WHITESPACE == 0 || !encoding.is_whitespace(token));
    let (at, answers) = Default::default();
    Ok(LexemeFacts { mask, class: None, tokens: Arc::new(anywhere), others, ending: None, at, answers })
}
