//! The viability question of one mask: what the layers share, and what they have found.

use super::context_independent::{ContextIndependent, IndependentTokens};
use super::crossing::{CrossingClasses, SuffixesAfter};
use super::dead_ends::DeadEnds;
use super::ends::Anywhere;
use super::pending::Pending;
use super::search::Search;
use crate::canonical::cursor::state::CursorKey;
use crate::canonical::cursor::table::CursorId;
use crate::canonical::encoding::{Encoding, Known};
use crate::canonical::whitespace::cached::WhitespaceCache;
use crate::canonical::whitespace::runs::{BeforeWhitespace, WhitespaceInLexemes};
use crate::machine::expansion::IN_WHITESPACE;
use crate::mask::cache::KeptMask;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};
use crate::switches::Switch;

/// A mask whose dead ends are to be found.
#[derive(Clone, Copy)]
pub(crate) struct AskedMask<'m> {
    /// The tokens that fit after the token before.
    pub fitting: &'m [u32],
    pub mask: &'m [u32],
    /// Its cached form, if that is exactly the mask.
    pub kept: Option<&'m KeptMask>,
}

/// The question of a mask, as far as it is decided.
pub(crate) struct Question<'q, 'r> {
    pub search: Search<'q, 'r>,
    pub configuration: SetId,
    pub threads: Vec<Entry>,
    pub cursor: CursorId,
    pub before: Option<u32>,
    pub kept: Option<&'q KeptMask>,
    /// The dense threads, each with its lexeme mask and the results about it.
    pub dense: Vec<(Entry, IndependentTokens)>,
    /// Set if all threads are before whitespace.
    pub whitespace: Option<BeforeWhitespace>,
    /// The undecided tokens.
    pub pending: Pending<'q>,
    /// The tokens that are not viable.
    pub found: DeadEnds,
    pub context_independent: &'q mut ContextIndependent,
    pub anywhere: &'q mut Anywhere,
    pub whitespace_cache: &'q mut WhitespaceCache,
    pub crossing_classes: &'q mut CrossingClasses,
    pub in_lexemes: &'q mut WhitespaceInLexemes,
    pub after: &'q mut SuffixesAfter,
}

impl<'q, 'r> Question<'q, 'r> {
    /// A question of which nothing is decided.
    pub fn new(
        run: &'q mut Run<'r>,
        (encoding, known): (&'q Encoding, &'q mut Known),
        configuration: SetId,
        (key, before): (&CursorKey, Option<u32>),
        (in_lexemes, after): (&'q mut WhitespaceInLexemes, &'q mut SuffixesAfter),
        AskedMask { fitting, mask, kept }: AskedMask<'q>,
    ) -> Question<'q, 'r> {
        let Known {
            cursors,
            cursor_masks,
            context_independent,
            whitespace: whitespace_cache,
            crossing_classes,
            anywhere,
            search,
            pending_tokens,
        } = known;
        let cursor = cursors.of(key);
        let threads = run.stacks.entries(configuration).to_vec();
        Question {
            search: Search::new(run, encoding, cursors, cursor_masks, search),
            configuration,
            threads,
            cursor,
            before,
            kept,
            dense: Vec::new(),
            whitespace: None,
            pending: Pending::new(encoding, (mask, fitting), pending_tokens),
            found: DeadEnds::default(),
            context_independent,
            anywhere,
            whitespace_cache,
            crossing_classes,
            in_lexemes,
            after,
        }
    }

    /// Lists the pending tokens, which are few by now. A layer calls this before it looks at single tokens.
    pub fn list_pending(&mut self) {
        let Question { search, threads, kept, dense, pending, .. } = self;
        if std::mem::replace(&mut pending.is_listed, true) {
            return;
        }
        // Nearly all masks start from the lexeme mask of the only thread that has one.
        let beside = match &dense[..] {
            [(thread, only)] => kept.and_then(|kept| kept.beside(&only.dense.here.mask)).map(|_| (thread, only)),
            _ => None,
        };
        // The classes of crossing tokens contain only one of several tokens with equal bytes.
        let has_all = search.encoding.tokens().duplicates().is_empty() && Switch::CanonicalGroups.is_on();
        let Some((thread, only)) = beside.filter(|_| has_all) else {
            return pending.add_all(dense.iter().map(|(_, independent)| independent));
        };
        pending.by_groups = threads.len() == 1 && !search.run.remembers(threads[0]);
        only.known.rest.iter().for_each(|&token| pending.add(token));
        if thread.state & IN_WHITESPACE != 0 {
            pending.add_whitespace_tokens();
        }
        if !pending.by_groups {
            pending.add_inside(only);
            pending.add_outside(only, *kept);
        }
    }
}

impl Run<'_> {
    /// Whether what follows a lexeme depends on which of its texts was read.
    pub(super) fn remembers(&self, thread: Entry) -> bool {
        self.compares_elements() || thread == Entry::BOTTOM || offers_tokens(thread)
    }
}
