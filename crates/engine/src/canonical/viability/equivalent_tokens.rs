//! The layer of equivalent tokens: the grammar is in the same configuration after them, so they are one question.

use super::context_independent::IndependentTokens;
use super::equivalence::Equivalence;
use super::layer::Layer;
use super::pending::Pending;
use super::question::Question;
use super::search::{Search, TokenEnd};
use crate::canonical::cursor::table::CursorId;
use crate::error::EngineError;
use crate::machine::expansion::Expansion;
use crate::machine::layout::ExpansionId;
use crate::mask::joined::Dense;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, SetId};

/// What the next few characters decide after one of several equivalent tokens of a dense thread, they decide for all.
/// Most such questions are one intersection of sets of bytes.
pub(crate) struct EquivalentTokens;

impl Layer for EquivalentTokens {
    fn decide(&self, question: &mut Question<'_, '_>) -> Result<(), EngineError> {
        question.list_pending();
        let dense = std::mem::take(&mut question.dense);
        for (thread, independent) in &dense {
            let crossing_decided = question.ask_equivalent(*thread, independent)?;
            if !crossing_decided && question.pending.by_groups {
                question.pending.add_outside(independent, question.kept);
            }
        }
        question.dense = dense;
        Ok(())
    }
}

impl Question<'_, '_> {
    /// Decides the tokens of a lexeme mask by what follows the lexeme. Tokens after which the grammar is in the same
    /// configuration are one question. Returns whether the crossing tokens were handled, too.
    fn ask_equivalent(
        &mut self,
        thread: Entry,
        IndependentTokens { dense, known, ending }: &IndependentTokens,
    ) -> Result<bool, EngineError> {
        let Question { search, cursor, pending, context_independent, crossing_classes, after, .. } = self;
        if search.run.remembers(thread) {
            return Ok(false);
        }
        let vocabulary = search.encoding.tokens();
        let mask = &dense.here.mask;
        let expansion = search.run.machine.fork(ExpansionId(thread.head)).clone();
        for equivalence in known.inside.iter() {
            let answer = |token, cursor| context_independent.answer(mask, token, cursor);
            if equivalence.groups.iter().all(|group| group.decided(answer).is_some()) {
                for group in &equivalence.groups {
                    let tokens = group.tokens.iter().map(|&(_, token)| token);
                    pending.decide(tokens, group.decided(answer) == Some(true));
                }
                continue;
            }
            let Some(&(_, one)) = equivalence.groups.first().and_then(|group| group.tokens.first()) else { continue };
            let bytes = vocabulary.token_bytes(one).unwrap_or_default();
            let after = match &dense.joined {
                Some(_) => {
                    let alone = search.run.alone(thread)?;
                    search.read(alone, bytes)?
                }
                None => search.run.after_bytes(thread, &expansion, bytes)?,
            };
            settle_equivalent(search, pending, after, equivalence, answer, |_, _| true)?;
        }
        if !mask.knows_crossing_tokens() {
            return Ok(false);
        }
        for crossing_tokens in mask.crossing_tokens() {
            let start = search.run.after_lexeme((thread, &expansion), dense, &crossing_tokens.residuals)?;
            let alive = search.next(start)?.bytes;
            if ending.is_none() && crossing_tokens.next_nodes(vocabulary.trie(), alive, 0).is_some() {
                return Ok(false);
            }
            let crossings = crossing_tokens.crossings(vocabulary);
            let mut classes = crossing_classes.here(mask, crossings, *cursor);
            if let Some(ending) = ending {
                let equivalence = classes.with(search.encoding, search.cursors, None);
                let is_here = |_, token| ending.set.contains(token);
                settle_equivalent(search, pending, start, equivalence, |_, _| None, is_here)?;
            }
            let is_here = |crossing, _| crossings.has(crossing);
            for suffix in after.read(search.run, start, (mask, crossings))?.iter() {
                let equivalence = classes.with(search.encoding, search.cursors, Some(suffix.suffix));
                if equivalence.keep_ends_before(&suffix.certain) {
                    if !pending.by_groups {
                        equivalence.groups.iter().for_each(|group| pending.decide(group.here(is_here), true));
                    }
                    continue;
                }
                let Some(&(_, one)) = crossings.with_suffix(suffix.suffix).first() else { continue };
                let bytes = vocabulary.token_bytes(one).unwrap_or_default();
                let depth = crossings.suffixes().depth(suffix.node as usize);
                let after = search.read(start, &bytes[bytes.len() - depth..])?;
                settle_equivalent(search, pending, after, equivalence, |_, _| None, is_here)?;
            }
        }
        Ok(true)
    }
}

/// Decides equivalent tokens for which `is_here` holds by the next characters after a configuration. `answer` tells
/// which tokens are already decided.
fn settle_equivalent(
    search: &mut Search<'_, '_>,
    pending: &mut Pending<'_>,
    configuration: SetId,
    equivalence: &Equivalence,
    answer: impl Fn(u32, CursorId) -> Option<bool>,
    is_here: impl Fn(u32, u32) -> bool,
) -> Result<(), EngineError> {
    let certain = search.next(configuration)?.certain;
    let all = search.may_come(configuration, &equivalence.settling)?;
    if all && pending.by_groups {
        return Ok(());
    }
    for group in &equivalence.groups {
        let here = group.here(&is_here);
        let Some(&(_, token)) = group.tokens.first() else { continue };
        let decided = if all { Some(true) } else { group.decided(&answer) };
        let mut is_viable = decided == Some(true)
            || !certain.intersect(&group.settling).is_empty()
            || (decided.is_none() && search.may_come(configuration, &group.settling)?);
        if !is_viable && decided.is_none() && here.clone().any(|token| pending.asks(token)) {
            is_viable = true;
            for &cursor in group.after.iter().flatten() {
                is_viable &= search.decided(TokenEnd { configuration, token, cursor })? == Some(true);
            }
        }
        pending.decide(here, is_viable);
    }
    Ok(())
}

impl Run<'_> {
    /// The configuration after a token that stays within the lexeme of a thread.
    fn after_bytes(&mut self, thread: Entry, expansion: &Expansion, bytes: &[u8]) -> Result<SetId, EngineError> {
        let mut state = thread.state;
        for &byte in bytes {
            state = expansion.step(self.lexeme_cache, state, byte)?.0;
        }
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

    /// The configuration after the lexeme of a thread, if these residuals of its lexeme mask have matched.
    fn after_lexeme(
        &mut self,
        (thread, expansion): (Entry, &Expansion),
        Dense { here, joined, .. }: &Dense,
        residuals: &[u32],
    ) -> Result<SetId, EngineError> {
        let mut threads = Vec::new();
        for tag in here.tags_of_all(residuals) {
            self.follow_lexeme((thread, expansion), joined.as_ref(), tag, &mut threads)?;
        }
        self.stacks.configuration(&mut threads)
    }
}
