//! The viability query: its layers in the order in which they are asked, the cheapest first, and the code that asks
//! them.

use stencilm_support::{FEW, LOOKED_AT};

use super::by_lexeme::ByLexeme;
use super::by_whitespace::ByWhitespace;
use super::dead_ends::DeadEnds;
use super::equivalent_tokens::EquivalentTokens;
use super::forced::ForcedText;
use super::layer::{EndLayer, Layer};
use super::next_characters::{NextByte, NextCharacters};
use super::one_by_one::OneByOne;
use super::question::{AskedMask, Question};
use super::search::{EndQuestion, Search, TokenEnd};
use super::successors::{EveryToken, FollowingTokens, ReadTokens};
use crate::canonical::cursor::state::CursorKey;
use crate::canonical::cursor::table::CursorId;
use crate::canonical::encoding::Encoding;
use crate::canonical::viability::crossing::SuffixesAfter;
use crate::canonical::whitespace::runs::WhitespaceInLexemes;
use crate::error::EngineError;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;
use crate::switches::Switch;

/// The layers that decide many tokens of a mask at once, each with its switch. Results of the first two are cached for
/// all grammars, so they cost a look-up. The third one costs a step of the grammar for each class of tokens. The last
/// one asks of each remaining token whether there is a continuation after it.
const LAYERS: [(Option<Switch>, &dyn Layer); 4] = [
    (Some(Switch::CanonicalIndependent), &ByLexeme),
    (Some(Switch::CanonicalWhitespace), &ByWhitespace),
    (Some(Switch::CanonicalGroups), &EquivalentTokens),
    (None, &OneByOne),
];

/// An [`EndLayer`] with its switch.
type Switched = (Option<Switch>, &'static dyn EndLayer);

const BY_NEXT_BYTE: Switched = (Some(Switch::CanonicalNextByte), &NextByte);
const BY_NEXT_CHARACTERS: Switched = (Some(Switch::CanonicalNextCharacters), &NextCharacters);

/// The layers that look at what comes after one token: at sets of bytes, at a text whose result is cached, and at a few
/// steps of the grammar.
const END_LAYERS: [Switched; 3] = [BY_NEXT_BYTE, (Some(Switch::CanonicalForced), &ForcedText), BY_NEXT_CHARACTERS];

/// The layers that follow the possible next tokens, for each of which the same question is asked: the search. One of
/// them always decides.
const SUCCESSOR_LAYERS: [Switched; 3] = [
    (Some(Switch::CanonicalListed), &ReadTokens),
    (Some(Switch::CanonicalFollowers), &FollowingTokens),
    (None, &EveryToken),
];

impl Run<'_> {
    /// The dead ends among the tokens of a mask at a cursor. Tokens that do not fit after the token before are left
    /// open if they would need a search.
    pub(crate) fn dead_ends(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        before: (&CursorKey, Option<u32>),
        lexemes: (&mut WhitespaceInLexemes, &mut SuffixesAfter),
        asked: AskedMask<'_>,
    ) -> Result<DeadEnds, EngineError> {
        let mut known = encoding.known();
        let mut question = Question::new(self, (encoding, &mut known), configuration, before, lexemes, asked);
        for (_, layer) in LAYERS.iter().filter(|(switch, _)| switch.is_none_or(Switch::is_on)) {
            layer.decide(&mut question)?;
        }
        question.found.sort();
        Ok(question.found)
    }
}

impl Search<'_, '_> {
    /// Whether there is a continuation after a token; `None` where the search was given up.
    pub fn is_viable(&mut self, end: TokenEnd) -> Result<Option<bool>, EngineError> {
        (self.looked, self.circular, self.given_up, self.has_left) = (0, false, false, false);
        let found = self.search(end, 0)?;
        self.looked_in_all += self.looked;
        Ok(if self.given_up { None } else { Some(found) })
    }

    /// The same for a token that follows a configuration, given the cursor after it.
    pub fn follows_viably(&mut self, start: SetId, token: u32, cursor: CursorId) -> Result<Option<bool>, EngineError> {
        if self.is_over() {
            return Ok(None);
        }
        let bytes = self.encoding.tokens().token_bytes(token).unwrap_or_default();
        let end = TokenEnd { configuration: self.read(start, bytes)?, token, cursor };
        self.is_viable(end)
    }

    /// The same for a token at a depth of the search.
    pub fn search(&mut self, end: TokenEnd, depth: usize) -> Result<bool, EngineError> {
        if end.configuration == SetId::EMPTY {
            return Ok(false);
        }
        // A found continuation depends only on its own path; that there is none depends on all paths.
        let is_beyond = self.is_beyond(end.configuration);
        let before = std::mem::replace(&mut self.has_left, is_beyond);
        let found = self.search_here(end, depth)?;
        self.has_left |= is_beyond || (!found && before);
        Ok(found)
    }

    fn search_here(&mut self, end: TokenEnd, depth: usize) -> Result<bool, EngineError> {
        let question = self.question(end, depth)?;
        if let Some(decided) = self.ask(&END_LAYERS, &question)? {
            return Ok(decided);
        }
        // A search that becomes too long is given up, and the token is taken to be viable.
        if depth >= FEW || self.looked > LOOKED_AT {
            self.given_up = true;
            return Ok(true);
        }
        match self.found.known.get(&end) {
            Some(&Some((known, left))) if Switch::CanonicalSearched.is_on() => {
                self.has_left |= left;
                return Ok(known);
            }
            Some(None) => {
                self.circular = true;
                return Ok(false);
            }
            _ => {}
        }
        self.found.known.insert(end, None);
        let circular = std::mem::replace(&mut self.circular, false);
        let found = self.some_successor_is_viable(&question)?;
        if found || !self.circular {
            self.found.known.insert(end, Some((found, self.has_left)));
        } else {
            self.found.known.remove(&end);
        }
        self.circular |= circular;
        Ok(found)
    }

    /// What the next few characters decide, for all tokens that merge with the same.
    pub fn decided(&mut self, end: TokenEnd) -> Result<Option<bool>, EngineError> {
        let question = self.question(end, 0)?;
        self.ask(&[BY_NEXT_BYTE, BY_NEXT_CHARACTERS], &question)
    }

    pub fn some_successor_is_viable(&mut self, question: &EndQuestion) -> Result<bool, EngineError> {
        Ok(self.ask(&SUCCESSOR_LAYERS, question)?.expect("one of the layers decides"))
    }

    fn question(&mut self, end: TokenEnd, depth: usize) -> Result<EndQuestion, EngineError> {
        Ok(EndQuestion { end, next: self.next(end.configuration)?, depth })
    }

    /// The answer of the first layer that knows one.
    fn ask(&mut self, layers: &[Switched], question: &EndQuestion) -> Result<Option<bool>, EngineError> {
        if question.next.may_end && self.cursors.may_end(self.encoding, question.end.cursor) {
            return Ok(Some(true));
        }
        for (_, layer) in layers.iter().filter(|(switch, _)| switch.is_none_or(Switch::is_on)) {
            if let Some(decided) = layer.is_viable(self, question)? {
                return Ok(Some(decided));
            }
        }
        Ok(None)
    }
}
