//! The last layer of a mask: the tokens that are left are searched one by one.

use std::sync::Arc;

use super::context_independent::IndependentTokens;
use super::layer::Layer;
use super::question::Question;
use crate::canonical::cursor::table::CursorId;
use crate::canonical::viability::ends::last_character;
use crate::error::EngineError;
use crate::lexeme::mask::{LexemeMask, LexemeMaskAt};
use crate::machine::layout::ExpansionId;
use crate::state::stacks::{Entry, SetId};

/// Asks the layers of single tokens for each token that is left. What they say is kept with the lexeme masks as far as
/// it holds wherever the lexeme comes.
pub(crate) struct OneByOne;

/// A token to be asked for.
struct Asked {
    token: u32,
    /// Whether no merge joins it with the token before.
    unmerged: bool,
    /// The cursor after it.
    after: CursorId,
    /// The longest searches come last: those of whitespace, and of tokens that end within a character.
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
        // Those with a common beginning come together, so that the grammar reads what they have in common once.
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
    /// Whether a token is viable, where the dense threads decide that.
    fn known(&self, token: u32, after: CursorId) -> Option<bool> {
        let mut known =
            self.dense.iter().map(|(_, thread)| self.context_independent.answer(&thread.here.mask, token, after));
        match self.threads.len() {
            1 => known.next()?,
            _ => known.any(|known| known == Some(true)).then_some(true),
        }
    }

    /// Whether a token has a continuation, at the cursor after it, where not all dense threads decide that.
    fn ask(&mut self, token: u32, after: CursorId, dense: &[(Entry, IndependentTokens)]) -> Result<bool, EngineError> {
        let is_only = self.threads.len() == 1;
        for (thread, IndependentTokens { here: LexemeMaskAt { mask, .. }, .. }) in dense {
            match self.context_independent.answer(mask, token, after) {
                Some(true) => return Ok(true),
                // Another thread may have a continuation where this one does not.
                Some(false) if is_only => return Ok(false),
                None if self.context_independent.keeps(mask, token) && !self.search.is_over() => {
                    let alone = match is_only {
                        true => self.configuration,
                        false => self.search.run.stacks.configuration(&mut vec![*thread])?,
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

    /// Searches from a thread alone, and keeps what is the same wherever its lexeme comes: if nothing else was looked
    /// at, or if nothing was found within the limit. There may be no continuation because a key is reserved, or an
    /// element not new.
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

    /// Asks for the other cursor after a token that stays within a dense lexeme and is viable at one cursor: what is
    /// viable at both is not asked for at this cursor again, whatever token stands before.
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

/// What was found of a token within a lexeme, and whether it holds wherever the lexeme comes.
struct FoundWithin {
    is_viable: bool,
    holds: bool,
}
