//! The questions that a mask of many tokens asks: which tokens are viable, by equivalence class and one by one.

use std::sync::Arc;

use stencilm_support::SEARCHED;

use super::context_independent::{ContextIndependent, IndependentTokens};
use super::crossing::{CrossingClasses, SuffixesAfter};
use super::pending::Pending;
use super::search::{Search, TokenEnd};
use crate::canonical::cursor::by_place::CursorId;
use crate::canonical::encoder::facts::Encoder;
use crate::canonical::viability::equivalence::Equivalence;
use crate::canonical::whitespace::cached::{WhitespaceAnswers, WhitespaceCache};
use crate::canonical::whitespace::runs::BeforeWhitespace;
use crate::error::EngineError;
use crate::lexeme::mask::{LexemeMask, LexemeMaskAt};
use crate::machine::expansion::{Expansion, IN_WHITESPACE};
use crate::machine::layout::ExpansionId;
use crate::mask::cache::KeptMask;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};
use crate::switches::Switch;

impl Run<'_> {
    /// Whether it makes a difference to what follows a lexeme which of its texts was read.
    fn remembers(&self, thread: Entry) -> bool {
        self.compares_elements() || thread == Entry::BOTTOM || offers_tokens(thread)
    }

    /// The configuration after a lexeme that a thread reads, where it has come to a state.
    fn after_state(&mut self, thread: Entry, expansion: &Expansion, state: u32) -> Result<SetId, EngineError> {
        let here = Entry { state, ..thread };
        let tags = expansion.accepts(self.lexeme_cache, state).to_vec();
        let mut threads = Vec::new();
        if tags.is_empty() || expansion.goes_on(self.lexeme_cache, state)? {
            threads.push(here);
        }
        for tag in tags {
            self.follow(expansion, tag, here, &mut threads)?;
        }
        self.stacks.configuration(&mut threads)
    }

    /// The configuration after a lexeme that a thread reads, where these residuals of its lexeme mask have matched.
    fn after_lexeme(
        &mut self,
        thread: Entry,
        expansion: &Expansion,
        here: &LexemeMaskAt,
        residuals: &[u32],
    ) -> Result<SetId, EngineError> {
        let mut threads = Vec::new();
        for tag in residuals.iter().flat_map(|&residual| here.tags_of(residual)) {
            self.follow(expansion, tag, thread, &mut threads)?;
        }
        self.stacks.configuration(&mut threads)
    }
}

/// What is cached of equivalent tokens.
pub(crate) struct EquivalenceCaches<'k> {
    pub context_independent: &'k ContextIndependent,
    pub crossing_classes: &'k mut CrossingClasses,
    pub after: &'k mut SuffixesAfter,
}

/// The questions that one mask asks.
pub(crate) struct Questions<'q, 'r> {
    pub run: &'q mut Run<'r>,
    pub encoding: &'q Encoder,
    pub search: Search<'q>,
    pub whitespace: Option<(BeforeWhitespace, WhitespaceAnswers)>,
    pub configuration: SetId,
    pub place: CursorId,
    pub threads: Vec<Entry>,
}

impl Questions<'_, '_> {
    /// Finds the tokens of which it is not known yet whether they are viable.
    pub fn begin(&self, dense: &[(Entry, IndependentTokens)], kept: Option<&KeptMask>, pending: &mut Pending<'_>) {
        // Nearly all masks begin with the lexeme mask of the only thread that has one.
        let beside = match dense {
            [(thread, only)] => kept.and_then(|kept| kept.beside(&only.here.mask)).map(|_| (thread, only)),
            _ => None,
        };
        // Groups after a lexeme have one of those that spell the same.
        let has_all = self.encoding.tokens().duplicates().is_empty() && Switch::CanonicalGroups.is_on();
        let Some((thread, only)) = beside.filter(|_| has_all) else {
            return pending.add_all(dense.iter().map(|(_, independent)| independent));
        };
        pending.by_groups = self.threads.len() == 1 && !self.run.remembers(self.threads[0]);
        only.known.rest.iter().for_each(|&token| pending.add(token));
        if thread.state & IN_WHITESPACE != 0 {
            pending.add_whitespace_tokens();
        }
        if !pending.by_groups {
            pending.add_inside(only);
            pending.add_outside(only, kept);
        }
    }

    /// Asks for the tokens of a lexeme mask by what follows the lexeme. Those after which the grammar stands at the same place
    /// are one question. Whether those that leave the lexeme were asked for, too.
    pub fn ask_equivalent(
        &mut self,
        thread: Entry,
        IndependentTokens { here, known, ending }: &IndependentTokens,
        EquivalenceCaches { context_independent, crossing_classes, after }: EquivalenceCaches<'_>,
        pending: &mut Pending<'_>,
    ) -> Result<bool, EngineError> {
        if self.run.remembers(thread) || !Switch::CanonicalGroups.is_on() {
            return Ok(false);
        }
        let expansion = self.run.machine.fork(ExpansionId(thread.head)).clone();
        for equivalence in known.inside.iter() {
            let answer = |token, place| context_independent.answer(&here.mask, token, place);
            if equivalence.groups.iter().all(|group| group.decided(answer).is_some()) {
                for group in &equivalence.groups {
                    let tokens = group.tokens.iter().map(|&(_, token)| token);
                    pending.decide(tokens, group.decided(answer) == Some(true));
                }
                continue;
            }
            let Some(&(_, one)) = equivalence.groups.first().and_then(|group| group.tokens.first()) else { continue };
            let mut state = thread.state;
            for &byte in self.encoding.tokens().token_bytes(one).unwrap_or_default() {
                state = expansion.step(self.run.lexeme_cache, state, byte)?.0;
            }
            let after = self.run.after_state(thread, &expansion, state)?;
            self.settle_equivalent(after, equivalence, answer, |_, _| true, pending)?;
        }
        let mask = &here.mask;
        let Some(crossing_tokens) = mask.only_crossing_tokens() else { return Ok(false) };
        let start = self.run.after_lexeme(thread, &expansion, here, &crossing_tokens.residuals)?;
        let alive = self.search.next_bytes(self.run, start)?.0;
        let vocabulary = self.encoding.tokens();
        if ending.is_none() && crossing_tokens.next_nodes(vocabulary.trie(), alive, 0).is_some() {
            return Ok(false);
        }
        let crossings = crossing_tokens.crossings(vocabulary);
        let mut classes = crossing_classes.here(mask, crossings, self.place);
        if let Some(ending) = ending {
            let equivalence = classes.with(self.encoding, self.search.places, None);
            self.settle_equivalent(start, equivalence, |_, _| None, |_, token| ending.set.contains(token), pending)?;
        }
        let read = after.read(self.run, start, (mask, crossings))?;
        for suffix in read.iter() {
            let equivalence = classes.with(self.encoding, self.search.places, Some(suffix.suffix));
            if equivalence.keep_ends_before(&suffix.certain) {
                if !pending.by_groups {
                    let tokens = equivalence.groups.iter().flat_map(|group| &group.tokens);
                    tokens
                        .filter(|&&(crossing, _)| crossings.has(crossing))
                        .for_each(|&(_, token)| pending.settle(token));
                }
                continue;
            }
            let Some(&(_, one)) = crossings.with_suffix(suffix.suffix).first() else { continue };
            let bytes = vocabulary.token_bytes(one).unwrap_or_default();
            let depth = crossings.suffixes().depth(suffix.node as usize);
            let after = self.search.run(self.run, start, &bytes[bytes.len() - depth..])?;
            self.settle_equivalent(after, equivalence, |_, _| None, |crossing, _| crossings.has(crossing), pending)?;
        }
        Ok(true)
    }

    /// Asks for equivalent tokens, as far as they are here, what the next characters decide after a configuration. Some are
    /// already decided to be viable.
    fn settle_equivalent(
        &mut self,
        after: SetId,
        equivalence: &Equivalence,
        answer: impl Fn(u32, CursorId) -> Option<bool>,
        is_here: impl Fn(u32, u32) -> bool,
        pending: &mut Pending<'_>,
    ) -> Result<(), EngineError> {
        let Questions { run, search, .. } = self;
        let settling = search.settling_bytes(run, after)?;
        let all = !settling.intersect(&equivalence.settling).is_empty()
            || search.may_come(run, after, &equivalence.settling)?;
        if all && pending.by_groups {
            return Ok(());
        }
        for group in &equivalence.groups {
            let here = group.tokens.iter().filter(|&&(number, token)| is_here(number, token)).map(|&(_, token)| token);
            let Some(&(_, one)) = group.tokens.first() else { continue };
            let decided = if all { Some(true) } else { group.decided(&answer) };
            let mut is_viable = decided == Some(true)
                || !settling.intersect(&group.settling).is_empty()
                || (decided.is_none() && search.may_come(run, after, &group.settling)?);
            if !is_viable && decided.is_none() && here.clone().any(|token| pending.asks(token)) {
                is_viable = true;
                for &place in group.after.iter().flatten() {
                    is_viable &=
                        search.decided(run, TokenEnd { configuration: after, token: one, place })? == Some(true);
                }
            }
            pending.decide(here, is_viable);
        }
        Ok(())
    }

    /// Whether a token is viable, where the dense threads decide that.
    pub fn known(
        &self,
        token: u32,
        after: CursorId,
        dense: &[(Entry, IndependentTokens)],
        context_independent: &ContextIndependent,
    ) -> Option<bool> {
        let mut known = dense.iter().map(|(_, thread)| context_independent.answer(&thread.here.mask, token, after));
        match self.threads.len() {
            1 => known.next()?,
            _ => known.any(|known| known == Some(true)).then_some(true),
        }
    }

    /// Whether a token has a continuation, at the place after it, where not all dense threads decide that.
    pub fn ask(
        &mut self,
        token: u32,
        after: CursorId,
        dense: &[(Entry, IndependentTokens)],
        (context_independent, whitespace_cache): (&mut ContextIndependent, &mut WhitespaceCache),
    ) -> Result<bool, EngineError> {
        let here = self.configuration;
        for (thread, IndependentTokens { here: LexemeMaskAt { mask, .. }, .. }) in dense {
            let is_only = self.threads.len() == 1;
            match context_independent.answer(mask, token, after) {
                Some(true) => return Ok(true),
                // Another thread may have a continuation where this one does not.
                Some(false) if is_only => return Ok(false),
                Some(false) => {}
                None if context_independent.keeps(mask, token) && self.search.looked_in_all <= SEARCHED => {
                    let alone = match is_only {
                        true => here,
                        false => self.run.stacks.configuration(&mut vec![*thread])?,
                    };
                    self.search.stay_with(Some(*thread));
                    let found = self.search_after(alone, token, after)?;
                    if self.holds_of_lexeme(*thread, found) {
                        context_independent.add(mask, token, after, found != Some(false));
                        if found != Some(false) {
                            self.ask_other_place(*thread, alone, (token, after), (mask, context_independent))?;
                        }
                    }
                    if is_only || found != Some(false) {
                        return Ok(found != Some(false));
                    }
                }
                None => {}
            }
        }
        self.search.stay_with(None);
        let bytes = self.encoding.tokens().token_bytes(token).unwrap_or_default();
        let is_far =
            |whitespace: &BeforeWhitespace| whitespace.are_far(bytes.len()) && self.encoding.is_whitespace(token);
        if let Some((_, answers)) = self.whitespace.as_mut().filter(|(whitespace, _)| is_far(whitespace)) {
            return answers.is_viable(self.run, self.encoding, &mut self.search, whitespace_cache, token, after);
        }
        Ok(self.search_after(here, token, after)? != Some(false))
    }

    /// Whether what the last search found from a thread is the same wherever its lexeme comes: if nothing else was looked at, or if
    /// nothing was found within the limit. There may be no continuation because a key is reserved, or an element not new.
    fn holds_of_lexeme(&self, thread: Entry, found: Option<bool>) -> bool {
        let reads_all = || !self.run.remembers(thread) && !self.run.machine.fork(ExpansionId(thread.head)).additional;
        match found {
            None => true,
            Some(true) => !self.search.has_left,
            Some(false) => !self.search.has_left && reads_all(),
        }
    }

    /// Asks for the other place after a token that stays within a dense lexeme and is viable at one place: what is viable
    /// at both is not asked for at this place again, whatever token stands before.
    fn ask_other_place(
        &mut self,
        thread: Entry,
        alone: SetId,
        (token, after): (u32, CursorId),
        (mask, context_independent): (&Arc<LexemeMask>, &mut ContextIndependent),
    ) -> Result<(), EngineError> {
        let after_both = self.search.places.advance_both(self.encoding, self.place, token);
        let other = after_both.into_iter().flatten().find(|&other_place| other_place != after);
        let is_asked = |&other: &CursorId| {
            self.search.looked_in_all <= SEARCHED && context_independent.answer(mask, token, other).is_none()
        };
        if let Some(other) = other.filter(is_asked) {
            let found = self.search_after(alone, token, other)?;
            if self.holds_of_lexeme(thread, found) {
                context_independent.add(mask, token, other, found != Some(false));
            }
        }
        Ok(())
    }

    /// Whether a token that follows a configuration is viable; `None` where the search was given up.
    fn search_after(&mut self, start: SetId, token: u32, after: CursorId) -> Result<Option<bool>, EngineError> {
        if self.search.looked_in_all > SEARCHED {
            return Ok(None);
        }
        let end = self.search.end_of(self.run, start, token, after)?;
        self.search.is_viable(self.run, end)
    }
}
