//! The last layer of a mask: the remaining tokens are searched one by one.

use std::sync::Arc;

use super::context_independent::IndependentTokens;
use super::layer::Layer;
use super::question::Question;
use crate::canonical::cursor::table::CursorId;
use crate::canonical::viability::ends::last_character;
use crate::error::EngineError;
use crate::lexeme::mask::LexemeMask;
use crate::machine::layout::ExpansionId;
use crate::state::stacks::{Entry, SetId};

/// Asks the layers for single tokens about each remaining token. Results that hold wherever the lexeme occurs are
/// stored with its lexeme mask.
pub(crate) struct OneByOne;

/// A token that is searched.
struct Asked {
    token: u32,
    /// Whether no merge joins it with the token before.
    unmerged: bool,
    /// The cursor after it.
    after: CursorId,
    /// Rank of its search; the longest searches, for whitespace and for tokens that end within a character, come last.
    how_long: u8,
}

impl Layer for OneByOne {
    fn decide(&self, question: &mut Question<'_, '_>) -> Result<(), EngineError> {
        question.list_pending();
        let vocabulary = question.search.encoding.tokens();
        let mut asked: Vec<Asked> = Vec::new();
        let pending: Vec<u32> = question.pending.iter().collect();
        for token in pending {
            let Question { search, cursor, before, pending, found, .. } = question;
            let Some((unmerged, after)) = found.case(search, (*cursor, *before), token, pending.fits(token)) else {
                continue;
            };
            match question.known(token, after) {
                Some(true) => {}
                Some(false) => question.found.add(token, unmerged),
                None => {
                    let is_within = vocabulary.token_bytes(token).and_then(last_character).is_none();
                    let how_long = u8::from(question.search.encoding.is_whitespace(token)) + 2 * u8::from(is_within);
                    asked.push(Asked { token, unmerged, after, how_long });
                }
            }
        }
        // Tokens with a common prefix come together, so that the grammar reads the prefix once.
        asked.sort_by_key(|asked| (asked.how_long, vocabulary.token_bytes(asked.token)));
        let dense = std::mem::take(&mut question.dense);
        for Asked { token, unmerged, after, .. } in asked {
            if !question.ask(token, after, &dense)? {
                question.found.add(token, unmerged);
            }
        }
        Ok(())
    }
}

impl Question<'_, '_> {
    /// Whether a token is viable, if the dense threads decide that.
    fn known(&self, token: u32, after: CursorId) -> Option<bool> {
        let mut known =
            self.dense.iter().map(|(_, thread)| self.context_independent.answer(&thread.dense.here.mask, token, after));
        match self.threads.len() {
            1 => known.next()?,
            _ => known.any(|known| known == Some(true)).then_some(true),
        }
    }

    /// Whether a token has a continuation, given the cursor after it, if not all dense threads decide that.
    fn ask(&mut self, token: u32, after: CursorId, dense: &[(Entry, IndependentTokens)]) -> Result<bool, EngineError> {
        let is_only = self.threads.len() == 1;
        for (thread, IndependentTokens { dense, .. }) in dense {
            let mask = &dense.here.mask;
            match self.context_independent.answer(mask, token, after) {
                Some(true) => return Ok(true),
                // Another thread may have a continuation where this one has none.
                Some(false) if is_only => return Ok(false),
                None if self.context_independent.keeps(mask, token) && !self.search.is_over() => {
                    let alone = match is_only {
                        true => self.configuration,
                        false => self.search.run.alone(*thread)?,
                    };
                    self.search.stay_with(Some(*thread));
                    let found = self.search_within(*thread, alone, (token, after), mask)?;
                    if found.holds && found.is_viable {
                        self.ask_other_cursor(*thread, alone, (token, after), mask)?;
                    }
                    if is_only || found.is_viable {
                        return Ok(found.is_viable);
                    }
                }
                _ => {}
            }
        }
        self.search.stay_with(None);
        let is_whitespace = self.search.encoding.is_whitespace(token);
        if let Some(whitespace) = self.whitespace.as_ref().filter(|_| is_whitespace) {
            let candidate = (token, after);
            return self.whitespace_cache.is_viable(&mut self.search, self.configuration, whitespace, candidate);
        }
        Ok(self.search.follows_viably(self.configuration, token, after)? != Some(false))
    }

    /// Searches from one thread alone, and stores the result if it holds wherever its lexeme occurs: if nothing else
    /// was read, or if nothing was found within the limit. A result is not stored if keys or elements matter, since a
    /// reserved key or a repeated element may be the reason.
    fn search_within(
        &mut self,
        thread: Entry,
        alone: SetId,
        (token, after): (u32, CursorId),
        mask: &Arc<LexemeMask>,
    ) -> Result<FoundWithin, EngineError> {
        let found = self.search.follows_viably(alone, token, after)?;
        let run = &self.search.run;
        let reads_all = || !run.remembers(thread) && !run.machine.fork(ExpansionId(thread.head)).additional;
        let holds = match found {
            None => true,
            Some(true) => !self.search.has_left,
            Some(false) => !self.search.has_left && reads_all(),
        };
        let is_viable = found != Some(false);
        if holds {
            self.context_independent.add(mask, token, after, is_viable);
        }
        Ok(FoundWithin { is_viable, holds })
    }

    /// For a token that stays within a dense lexeme and is viable at one cursor, also decides the other possible cursor
    /// after it. If it is viable at both, it need not be asked about again, whatever token comes before.
    fn ask_other_cursor(
        &mut self,
        thread: Entry,
        alone: SetId,
        (token, after): (u32, CursorId),
        mask: &Arc<LexemeMask>,
    ) -> Result<(), EngineError> {
        let after_both = self.search.cursors.advance_both(self.search.encoding, self.cursor, token);
        let other = after_both.into_iter().flatten().find(|&other_cursor| other_cursor != after);
        if let Some(other) = other.filter(|_| !self.search.is_over())
            && self.context_independent.answer(mask, token, other).is_none()
        {
            self.search_within(thread, alone, (token, other), mask)?;
        }
        Ok(())
    }
}

/// The result for a token within a lexeme, and whether it holds wherever the lexeme occurs.
struct FoundWithin {
    is_viable: bool,
    holds: bool,
}
