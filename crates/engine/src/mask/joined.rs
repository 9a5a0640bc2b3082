//! Lexemes joined with those that follow them.
//!
//! One idea: where whitespace stands before a name, or operators behind one, nearly every token is read across the end
//! of a lexeme, and each mask would read the vocabulary again. A lexeme and those that may follow it are a lexeme as
//! well, and its mask is stored like any other.

use std::sync::Arc;

use stencilm_regex::{ExprId, StateId, Tag};
use stencilm_support::{FEW, SEARCHED};

use crate::error::EngineError;
use crate::lexeme::cache::DfaId;
use crate::lexeme::mask::LexemeMaskAt;
use crate::machine::expansion::{Continuations, Expansion, IN_WHITESPACE};
use crate::machine::layout::ExpansionId;
use crate::machine::reader::Reader;
use crate::mask::leaving::find_leaving;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};
use crate::switches::Switch;
use crate::vocabulary::tokens::Tokens;

/// The greatest number of lexemes that are joined one behind the other.
const MOST_JOINED: usize = 3;

/// The lexeme mask of a thread.
pub(crate) struct Dense {
    pub here: LexemeMaskAt,
    /// The lexemes to which it belongs, if these are not the thread's own.
    pub joined: Option<Joined>,
    /// Whether all crossing tokens are known that can be read after the lexemes.
    pub is_complete: bool,
}

/// A dense thread, with its lexeme mask.
pub(crate) struct DenseThread {
    pub thread: Entry,
    pub expansion: Arc<Expansion>,
    pub dense: Dense,
}

/// The lexemes of a thread, joined with those that follow.
pub(crate) struct Joined {
    pub dfa: DfaId,
    /// By tag.
    lexemes: Vec<Lexeme>,
}

/// A lexeme that is joined with others: its last part, and the thread that reads this part.
struct Lexeme {
    expr: ExprId,
    thread: Entry,
    expansion: Arc<Expansion>,
    tag: Tag,
}

impl Dense {
    /// Reads the lexemes, and the state in which they begin.
    pub fn reader<'f>(&self, thread: Entry, expansion: &'f Expansion) -> Option<(Reader<'f>, u32)> {
        match &self.joined {
            Some(joined) => Some((Reader { expansion: None, dfa: joined.dfa }, StateId::START.0)),
            None => Some((Reader { expansion: Some(expansion), dfa: expansion.dfa()? }, thread.state)),
        }
    }
}

impl Run<'_> {
    /// The lexeme mask of a thread, if it is dense, or if it is after joining its lexemes with others. Where many tokens
    /// cross the end of the lexeme, those that do not stay within it are found, if they are few and something may
    /// follow.
    pub(crate) fn dense(
        &mut self,
        vocabulary: &Tokens,
        thread: Entry,
        expansion: &Arc<Expansion>,
    ) -> Result<Option<Dense>, EngineError> {
        let own = self.lexeme_mask(vocabulary, thread, expansion)?;
        if let Some(here) = &own
            && self.finds_crossing_tokens(vocabulary, (thread, expansion), here)?
        {
            return Ok(own.map(|here| Dense { here, joined: None, is_complete: true }));
        }
        let joined = self.join(vocabulary, (thread, expansion), own.as_ref())?;
        Ok(joined.or(own.map(|here| Dense { here, joined: None, is_complete: false })))
    }

    /// Whether all crossing tokens are known that can be read after the lexemes of a thread.
    fn finds_crossing_tokens(
        &mut self,
        vocabulary: &Tokens,
        (thread, expansion): (Entry, &Expansion),
        here: &LexemeMaskAt,
    ) -> Result<bool, EngineError> {
        // Which additional keys are unverified is only known of crossing tokens that are stored.
        let is_known = here.mask.knows_crossing_tokens() && !expansion.additional;
        if here.mask.unkept.is_empty() || is_known || !self.anything_follows(thread, expansion, here)? {
            return Ok(true);
        }
        if expansion.additional || !Switch::MaskLeaving.is_on() {
            return Ok(false);
        }
        let Some(dfa) = expansion.dfa() else { return Ok(false) };
        let reader = Reader { expansion: Some(expansion), dfa };
        find_leaving(self.lexeme_cache, vocabulary, (&reader, thread.state), here)?;
        Ok(here.mask.knows_crossing_tokens())
    }

    /// Adds the threads that follow the lexemes of a thread, perhaps joined, that match with a tag.
    pub(crate) fn follow_lexeme(
        &mut self,
        (thread, expansion): (Entry, &Expansion),
        joined: Option<&Joined>,
        tag: Tag,
        threads: &mut Vec<Entry>,
    ) -> Result<(), EngineError> {
        match joined {
            None => self.follow(expansion, tag, thread, threads),
            Some(joined) => {
                let Lexeme { thread, expansion, tag, .. } = &joined.lexemes[tag as usize];
                self.follow(expansion, *tag, *thread, threads)
            }
        }
    }

    /// Joins the lexemes of a thread with those that follow, until all crossing tokens are known. `own` is the thread's
    /// own lexeme mask, if it is dense. `None` where that takes too many lexemes or does not help.
    fn join(
        &mut self,
        vocabulary: &Tokens,
        (thread, expansion): (Entry, &Arc<Expansion>),
        own: Option<&LexemeMaskAt>,
    ) -> Result<Option<Dense>, EngineError> {
        if !Switch::MaskJoined.is_on() || !self.can_be_joined(thread, expansion) {
            return Ok(None);
        }
        if own.is_none() && Switch::MaskJoinedOfMany.is_on() {
            // A walk does not take long where few tokens begin with what the thread reads.
            let state = if thread.state & IN_WHITESPACE == 0 { thread.state } else { StateId::START.0 };
            let first = expansion.live_bytes(self.lexeme_cache, state)?;
            if vocabulary.trie().nodes_after(first) <= SEARCHED {
                return Ok(None);
            }
        }
        let Some(mut lexemes) = self.lexemes_of(thread, expansion, StateId::START) else { return Ok(None) };
        let mut continued = match own {
            Some(own) => are_open(own, lexemes.iter().map(|lexeme| lexeme.tag)),
            None => vec![true; lexemes.len()],
        };
        let mut any_dense = own.is_some();
        for _ in 1..MOST_JOINED {
            let mut longer = Vec::new();
            let mut any_continued = false;
            for (lexeme, continued) in lexemes.into_iter().zip(continued) {
                let following = match continued {
                    true => self.following_lexemes(vocabulary, &lexeme, &mut any_dense)?,
                    false => Some(Vec::new()),
                };
                let Some(following) = following else { return Ok(None) };
                any_continued |= !following.is_empty();
                match following.is_empty() {
                    true => longer.push(lexeme),
                    false => longer.extend(following),
                }
                if longer.len() > FEW {
                    return Ok(None);
                }
            }
            if !any_dense && Switch::MaskJoinedOfMany.is_on() {
                return Ok(None);
            }
            lexemes = longer;
            let exprs: Vec<ExprId> = lexemes.iter().map(|lexeme| lexeme.expr).collect();
            let dfa = self.lexeme_cache.dfa(&exprs)?;
            let here = self.lexeme_cache.mask(vocabulary, dfa, StateId::START)?;
            if !here.mask.unkept.is_empty() {
                find_leaving(
                    self.lexeme_cache,
                    vocabulary,
                    (&Reader { expansion: None, dfa }, StateId::START.0),
                    &here,
                )?;
            }
            if here.mask.knows_crossing_tokens() || !any_continued {
                return Ok(Some(Dense { here, joined: Some(Joined { dfa, lexemes }), is_complete: true }));
            }
            continued = are_open(&here, 0..lexemes.len() as Tag);
        }
        Ok(None)
    }

    /// Whether nothing but its lexemes decides what may come in a thread and after it.
    pub(crate) fn can_be_joined(&self, thread: Entry, expansion: &Expansion) -> bool {
        thread != Entry::BOTTOM
            && !offers_tokens(thread)
            && matches!(expansion.continuations, Continuations::Listed(_))
            && expansion.members.is_none()
            && expansion.opens.is_empty()
            && !expansion.additional
            && !expansion.locally_finite
            && !self.machine.keeps_text()
            && !self.machine.has_names()
            && !self.machine.marks.budgets
    }

    /// The lexemes of a thread, with the whitespace before them; those of an expansion begin in `start`. `None` where
    /// there are many.
    fn lexemes_of(&mut self, thread: Entry, expansion: &Arc<Expansion>, start: StateId) -> Option<Vec<Lexeme>> {
        let whitespace = expansion.whitespace.filter(|_| thread.state & IN_WHITESPACE != 0);
        let whitespace = whitespace
            .map(|whitespace| self.lexeme_cache.whitespace(whitespace.set, expansion.whitespace_left(thread.state)));
        let state =
            if whitespace.is_some() || thread.state == StateId::START.0 { start } else { StateId(thread.state) };
        if !expansion.has_few_lexemes(self.lexeme_cache, state) {
            return None;
        }
        let lexemes = expansion.lexemes(self.lexeme_cache, state).into_iter();
        let lexemes = lexemes.map(|(tag, lexeme)| {
            let expr = whitespace.map_or(lexeme, |whitespace| self.lexeme_cache.concat(whitespace, lexeme));
            Lexeme { expr, thread, expansion: expansion.clone(), tag }
        });
        Some(lexemes.collect())
    }

    /// A lexeme, joined with each of those that follow it; empty where none does. `None` where these cannot be joined.
    /// Records whether one of them begins with many bytes.
    fn following_lexemes(
        &mut self,
        vocabulary: &Tokens,
        lexeme: &Lexeme,
        any_dense: &mut bool,
    ) -> Result<Option<Vec<Lexeme>>, EngineError> {
        let mut threads = Vec::new();
        self.follow(&lexeme.expansion, lexeme.tag, lexeme.thread, &mut threads)?;
        self.stacks.join(&mut threads)?;
        let mut joined = Vec::new();
        for thread in threads {
            if thread == Entry::BOTTOM || offers_tokens(thread) {
                continue;
            }
            let (expansion, start) = self.machine.fork_of_tokens(self.lexeme_cache, ExpansionId(thread.head))?;
            if !self.can_be_joined(thread, &expansion) {
                return Ok(None);
            }
            if let Some(dfa) = expansion.dfa() {
                *any_dense |= self.lexeme_cache.is_dense(vocabulary, dfa, start)?;
            }
            let Some(lexemes) = self.lexemes_of(thread, &expansion, start) else { return Ok(None) };
            for next in lexemes {
                joined.push(Lexeme { expr: self.lexeme_cache.concat(lexeme.expr, next.expr), ..next });
            }
        }
        Ok(Some(joined))
    }

    /// The configuration of a thread alone.
    pub(crate) fn alone(&mut self, thread: Entry) -> Result<SetId, EngineError> {
        self.stacks.configuration(&mut vec![thread])
    }
}

/// Of lexemes with these tags, which have crossing tokens that a lexeme mask does not store.
fn are_open(here: &LexemeMaskAt, tags: impl Iterator<Item = Tag>) -> Vec<bool> {
    let open: Vec<Tag> = here.mask.unkept.iter().flat_map(|residuals| here.tags_of_all(residuals)).collect();
    tags.map(|tag| open.contains(&tag)).collect()
}
