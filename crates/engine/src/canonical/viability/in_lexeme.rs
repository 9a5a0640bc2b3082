//! Tokens within a lexeme: behind which of them it goes on in any case, by its automaton alone.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use stencilm_regex::{LimitExceeded, StateId};

use crate::canonical::Encoding;
use crate::canonical::cursor::table::{Place, Places};
use crate::canonical::pretokenizer::reader::Reader;
use crate::lexeme::cache::LexemeCache;
use crate::machine::expansion::IN_BLANKS;
use crate::switches::Switch;

/// A lexeme that tokens are read in.
pub(crate) struct Within<'a> {
    pub encoding: &'a Encoding,
    pub places: &'a mut Places,
    pub lexeme_cache: &'a mut LexemeCache,
    pub reader: &'a Reader<'a>,
    /// By state, place behind a token and what merges with the token.
    known: FxHashMap<(u32, Place, u32), bool>,
}

impl<'a> Within<'a> {
    pub fn new(
        encoding: &'a Encoding,
        places: &'a mut Places,
        lexeme_cache: &'a mut LexemeCache,
        reader: &'a Reader<'a>,
    ) -> Within<'a> {
        Within { encoding, places, lexeme_cache, reader, known: FxHashMap::default() }
    }

    /// The state behind a token from one before it, and whether the lexeme surely goes on there.
    pub fn leads_on(&mut self, state: u32, place: Place, token: u32) -> Result<(Option<u32>, bool), LimitExceeded> {
        // States are those of one automaton, rows belong to all that read the same.
        let mut state = state;
        for &byte in self.encoding.tokens().token_bytes(token).unwrap_or_default() {
            match self.reader.next(self.lexeme_cache, state, byte)? {
                Some(next) => state = next,
                None => return Ok((None, false)),
            }
        }
        if state & IN_BLANKS != 0 || !Switch::CanonicalAtCursor.is_on() {
            return Ok((Some(state), false));
        }
        let [apart, joined] = self.places.advance_both(self.encoding, place, token);
        for behind in apart.into_iter().chain(joined.filter(|_| joined != apart)) {
            if !self.goes_on(state, behind, token)? {
                return Ok((Some(state), false));
            }
        }
        Ok((Some(state), true))
    }

    /// Whether the lexeme surely goes on in a state, behind a token and the place there.
    fn goes_on(&mut self, state: u32, behind: Place, token: u32) -> Result<bool, LimitExceeded> {
        let key = (state, behind, self.encoding.merging_number(token));
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let next = self.lexeme_cache.live_bytes(self.reader.dfa, StateId(state))?;
        let sure = self.encoding.sure_bytes(self.places.cursor(behind), &self.encoding.merging(token), next);
        let goes_on = !sure.is_empty() || self.keeps_end(state, behind, token)?;
        self.known.insert(key, goes_on);
        Ok(goes_on)
    }

    fn keeps_end(&mut self, state: u32, behind: Place, token: u32) -> Result<bool, LimitExceeded> {
        let (lexeme_cache, dfa) = (RefCell::new(&mut *self.lexeme_cache), self.reader.dfa);
        let keeps = self.encoding.keeps_end(
            self.places,
            behind,
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
