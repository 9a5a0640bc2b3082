//! Tokens within a lexeme: those after which the lexeme certainly continues, decided by its automaton alone.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, StateId};
use stencilm_support::{LOOKED_AT, LimitExceeded, RECENT};

use super::judging::Judging;
use crate::canonical::cursor::table::{CursorId, Cursors};
use crate::canonical::encoder::facts::Encoder;
use crate::canonical::viability::ends::Anywhere;
use crate::lexeme::cache::{DENSE_BYTES, LexemeCache};
use crate::machine::expansion::IN_WHITESPACE;
use crate::machine::reader::Reader;
use crate::switches::Switch;
use crate::vocabulary::token_set::{self, TokenSet};

/// Lexeme masks with at least this many tokens are judged by the bytes that may come in most states; only the remaining
/// tokens are taken one by one.
const MANY_TOKENS: usize = if cfg!(test) { 20 } else { LOOKED_AT };

/// A lexeme within which tokens are read.
pub(crate) struct Within<'a> {
    pub encoding: &'a Encoder,
    pub cursors: &'a mut Cursors,
    pub lexeme_cache: &'a mut LexemeCache,
    pub reader: &'a Reader<'a>,
    /// By state, cursor after a token, and what merges with the token.
    known: FxHashMap<(u32, CursorId, u32), bool>,
}

impl<'a> Within<'a> {
    pub fn new(
        encoding: &'a Encoder,
        cursors: &'a mut Cursors,
        lexeme_cache: &'a mut LexemeCache,
        reader: &'a Reader<'a>,
    ) -> Within<'a> {
        Within { encoding, cursors, lexeme_cache, reader, known: FxHashMap::default() }
    }

    /// The state after a token, and whether the lexeme certainly continues there.
    pub fn is_viable(
        &mut self,
        state: u32,
        cursor: CursorId,
        token: u32,
    ) -> Result<(Option<u32>, bool), LimitExceeded> {
        // The results are kept by state of one automaton, since lexeme masks belong to every automaton with the same
        // residuals.
        let mut state = state;
        for &byte in self.encoding.tokens().token_bytes(token).unwrap_or_default() {
            match self.reader.next(self.lexeme_cache, state, byte)? {
                Some(next) => state = next,
                None => return Ok((None, false)),
            }
        }
        if state & IN_WHITESPACE != 0 || !Switch::CanonicalAtCursor.is_on() {
            return Ok((Some(state), false));
        }
        let [unmerged, joined] = self.cursors.advance_both(self.encoding, cursor, token);
        for after in unmerged.into_iter().chain(joined.filter(|_| joined != unmerged)) {
            if !self.goes_on(state, after, token)? {
                return Ok((Some(state), false));
            }
        }
        Ok((Some(state), true))
    }

    /// Whether the lexeme certainly continues in a state, after a token and the cursor there.
    fn goes_on(&mut self, state: u32, after: CursorId, token: u32) -> Result<bool, LimitExceeded> {
        let key = (state, after, self.encoding.merges.merging_number(token));
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let next = self.lexeme_cache.live_bytes(self.reader.dfa, StateId(state))?;
        let settling = self.encoding.settling_bytes(self.cursors.key(after), token, next);
        let goes_on = !settling.is_empty() || self.keeps_end(state, after, token)?;
        self.known.insert(key, goes_on);
        Ok(goes_on)
    }

    fn keeps_end(&mut self, state: u32, after: CursorId, token: u32) -> Result<bool, LimitExceeded> {
        let (lexeme_cache, dfa) = (RefCell::new(&mut *self.lexeme_cache), self.reader.dfa);
        let keeps = self.encoding.keeps_end(
            self.cursors,
            after,
            token,
            state,
            &mut |state| lexeme_cache.borrow_mut().live_bytes(dfa, StateId(state)).copied(),
            &mut |state, byte| {
                let next = lexeme_cache.borrow_mut().step(dfa, StateId(state), byte)?.0;
                Ok((next != StateId::DEAD).then_some(next.0))
            },
        )?;
        Ok(keeps == Some(true))
    }
}

/// Splits some tokens, which a lexeme reads from a state, into those that are viable in any context and the others.
pub(crate) fn independent_within(
    lexeme_cache: &mut LexemeCache,
    encoding: &Encoder,
    known: &mut Anywhere,
    reader: &Reader<'_>,
    state: u32,
    mut tokens: TokenSet,
) -> Result<(TokenSet, Vec<u32>), LimitExceeded> {
    let vocabulary = encoding.tokens();
    let is_dense = state & IN_WHITESPACE == 0 && (tokens.len() > MANY_TOKENS || !Switch::CanonicalFewTokens.is_on());
    // If most bytes lead back to one state, the tokens are nearly all those that keep their ends before the bytes of
    // that state.
    let common = if is_dense && Switch::CanonicalCommon.is_on() { looping(lexeme_cache, reader, state)? } else { None };
    let mut anywhere = match &common {
        Some(common) => TokenSet::clone(&known.before(encoding, common)),
        None => TokenSet::empty(vocabulary.vocab_size()),
    };
    known.begin(encoding);
    let (always, perhaps) = (TokenSet::empty(vocabulary.vocab_size()), TokenSet::empty(vocabulary.vocab_size()));
    let (numbers, states) = Default::default();
    let mut judging =
        Judging { lexeme_cache, encoding, reader, anywhere: known, common, always, perhaps, numbers, states };
    match state & IN_WHITESPACE == 0 && Switch::CanonicalCategoryWalk.is_on() {
        true => judging.by_categories(StateId(state), &mut anywhere)?,
        false => judging.by_bytes(state)?,
    }
    let Judging { always, mut perhaps, .. } = judging;
    // Of tokens with equal bytes, a walk reaches only one.
    let same = vocabulary.duplicates().iter().flat_map(|(_, others)| others);
    same.for_each(|&other| perhaps.insert(other));
    let independent = anywhere.words_mut();
    token_set::add(independent, always.words());
    token_set::take_out(independent, perhaps.words());
    token_set::keep(independent, tokens.words());
    token_set::take_out(tokens.words_mut(), independent);
    let others = tokens.iter().collect();
    Ok((anywhere, others))
}

/// The bytes that may come in a state to which most bytes return: this one, or one after it. If there is none, the
/// bytes that may come after most of the live bytes.
fn looping(lexeme_cache: &mut LexemeCache, reader: &Reader<'_>, state: u32) -> Result<Option<ByteSet>, LimitExceeded> {
    // Each with the number of bytes that lead there.
    let mut states = vec![(state, 0)];
    for byte in lexeme_cache.live_bytes(reader.dfa, StateId(state))?.iter().collect::<Vec<u8>>() {
        let Some(next) = reader.next(lexeme_cache, state, byte)? else { continue };
        match states.iter().position(|&(known, _)| known == next) {
            Some(at) => states[at].1 += 1,
            None if states.len() <= RECENT => states.push((next, 1)),
            None => {}
        }
    }
    let mut best = (0, None);
    let mut lives: Vec<(ByteSet, usize)> = Vec::with_capacity(states.len());
    for (state, bytes) in states {
        let live = *lexeme_cache.live_bytes(reader.dfa, StateId(state))?;
        let loops = reader.loops(lexeme_cache, state, &live)?;
        if loops > best.0 {
            best = (loops, Some(live));
        }
        lives.push((live, bytes));
    }
    let after = |common: &ByteSet| {
        let has_all = lives.iter().filter(|(live, _)| live.intersect(common) == *common);
        (has_all.map(|(_, bytes)| bytes).sum::<usize>(), common.len())
    };
    // Few tokens keep their ends before all bytes of a state in which few may come.
    let dense = || lives.iter().map(|&(live, _)| live).filter(|live| live.len() >= DENSE_BYTES).max_by_key(after);
    Ok(best.1.or_else(dense))
}
