//! Masks of many tokens: those that are not viable are found, whatever token came before.

use super::context_independent::{ContextIndependent, IndependentTokens, Kept};
use super::crossing::SuffixesAfter;
use super::pending::Pending;
use super::queries::{EquivalenceCaches, Questions};
use super::search::Search;
use crate::canonical::cursor::by_place::CursorId;
use crate::canonical::cursor::state::CursorKey;
use crate::canonical::encoding::Encoding;
use crate::canonical::encoding::Known;
use crate::canonical::viability::ends::last_character;
use crate::canonical::whitespace::cached::{WhitespaceAnswers, WhitespaceCache};
use crate::canonical::whitespace::runs::{WhitespaceInLexemes, numbered};
use crate::error::EngineError;
use crate::mask::cache::KeptMask;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, SetId};
use crate::vocabulary::token_set;

/// Tokens of a mask that are not viable.
#[derive(Clone, Default)]
pub(crate) struct DeadEnds {
    /// Where no merge joins them with the token before, and where one does; ascending.
    tokens: [Vec<u32>; 2],
    /// Whether both are the same, as for whitespace; known once they are sorted.
    same: bool,
    /// Tokens that were not asked for, each with whether it is unmerged: they did not fit after the token before.
    open: Vec<(u32, bool)>,
}

impl DeadEnds {
    /// Takes them out of a mask after a token.
    pub fn clear(&self, encoding: &Encoding, before: Option<u32>, mask: &mut [u32]) {
        if self.same {
            return self.tokens[0].iter().for_each(|&token| token_set::clear(mask, token));
        }
        for (tokens, unmerged) in self.tokens.iter().zip([true, false]) {
            for &token in tokens {
                if token_set::get(mask, token) && encoding.stay_unmerged(before, token) == unmerged {
                    token_set::clear(mask, token);
                }
            }
        }
    }

    pub(crate) fn add(&mut self, token: u32, unmerged: bool) {
        self.tokens[usize::from(!unmerged)].push(token);
    }

    /// Notes cases of a token that were not asked for.
    pub(crate) fn leave_open<const N: usize>(&mut self, token: u32, cases: [bool; N]) {
        self.open.extend(cases.map(|unmerged| (token, unmerged)));
    }

    pub(crate) fn sort(&mut self) {
        self.tokens.iter_mut().for_each(|tokens| tokens.sort_unstable());
        self.same = self.tokens[0] == self.tokens[1];
    }

    /// Without what is decided about some tokens, which ascend.
    pub(crate) fn but_for(&self, tokens: &[u32]) -> DeadEnds {
        let is_other = |token: &u32| tokens.binary_search(token).is_err();
        DeadEnds {
            tokens: self.tokens.each_ref().map(|tokens| tokens.iter().copied().filter(is_other).collect()),
            same: self.same,
            open: self.open.iter().copied().filter(|(token, _)| is_other(token)).collect(),
        }
    }

    /// Whether a token is one. `unmerged` says that no merge joins it with the token before.
    pub fn has(&self, token: u32, unmerged: bool) -> bool {
        self.tokens[usize::from(!unmerged)].binary_search(&token).is_ok()
    }

    /// Whether others are the same among the tokens of a mask that fit after a token, but for those that end within a character:
    /// where a lexeme shows that it goes on after them, they are not searched.
    pub fn answers_the_same(
        &self,
        others: &DeadEnds,
        encoding: &Encoding,
        before: Option<u32>,
        fitting: &[u32],
        mask: &[u32],
    ) -> bool {
        let of = |dead_ends: &DeadEnds| -> std::collections::BTreeSet<u32> {
            let ends_whole = |token: u32| encoding.tokens().token_bytes(token).and_then(last_character).is_some();
            let comes =
                |&&token: &&u32| token_set::get(mask, token) && token_set::get(fitting, token) && ends_whole(token);
            let all = dead_ends.tokens.iter().flatten().filter(comes).copied();
            all.filter(|&token| dead_ends.has(token, encoding.stay_unmerged(before, token))).collect()
        };
        of(self) == of(others)
    }

    /// Whether one of those that were not asked for fits after a token.
    pub fn is_open(&self, encoding: &Encoding, before: Option<u32>, fitting: &[u32]) -> bool {
        let fits = |&(token, unmerged): &(u32, bool)| {
            token_set::get(fitting, token) && encoding.stay_unmerged(before, token) == unmerged
        };
        self.open.iter().any(fits)
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        (self.tokens[0].len() + self.tokens[1].len()) * 4 + self.open.len() * 8 + size_of::<DeadEnds>()
    }
}

/// A mask whose dead ends are asked for.
#[derive(Clone, Copy)]
pub(crate) struct AskedMask<'m> {
    /// The tokens that fit after the token before.
    pub fitting: &'m [u32],
    pub mask: &'m [u32],
    /// How it is kept, where that is all of it.
    pub kept: Option<&'m KeptMask>,
}

/// A token to be asked for.
struct Asked {
    token: u32,
    /// Whether no merge joins it with the token before.
    unmerged: bool,
    /// The place after it.
    after: CursorId,
    /// The longest searches come last: those of whitespace, and of tokens that end within a character.
    how_long: u8,
}

impl Run<'_> {
    /// The dead ends among the tokens of a mask, at a cursor. Those that do not fit after the token before are not asked for
    /// where that takes a search.
    pub(crate) fn dead_ends(
        &mut self,
        encoding: &Encoding,
        configuration: SetId,
        (cursor, before): (&CursorKey, Option<u32>),
        (in_lexemes, after): (&mut WhitespaceInLexemes, &mut SuffixesAfter),
        AskedMask { fitting, mask, kept }: AskedMask<'_>,
    ) -> Result<DeadEnds, EngineError> {
        let mut known = encoding.known();
        let place = known.places.of(cursor);
        let mut dense: Vec<(Entry, IndependentTokens)> = Vec::new();
        let threads = self.stacks.entries(configuration).to_vec();
        for &thread in &threads {
            let Known { places, context_independent, anywhere, .. } = &mut *known;
            if let Some(found) = self.context_independent_tokens(
                encoding,
                Kept { places, context_independent, anywhere },
                thread,
                place,
            )? {
                dense.push((thread, found));
            }
        }
        let mut found = DeadEnds::default();
        let Known {
            places,
            cursor_masks,
            context_independent,
            whitespace: whitespace_cache,
            crossing_classes,
            search,
            pending_tokens,
            ..
        } = &mut *known;
        let mut search = Search::new(encoding, places, cursor_masks, search);
        let whitespace = self.before_whitespace(&mut search, in_lexemes, &threads)?;
        let mut pending = Pending::new(encoding, (mask, fitting), pending_tokens, whitespace.is_some());
        if let Some(whitespace) = &whitespace {
            let decided = whitespace_cache.decided_anyway(encoding, search.places, whitespace, place);
            found.tokens.clone_from(&decided.dead);
            decided.open.iter().for_each(|&token| pending.add_whitespace(token));
        }
        let mut questions = Questions { run: self, encoding, search, whitespace: None, configuration, place, threads };
        questions.begin(&dense, kept, &mut pending);
        if whitespace.is_none() && questions.threads.len() > 1 {
            questions.settle_whitespace(in_lexemes, whitespace_cache, &mut pending)?;
        }
        for (thread, here) in &dense {
            let crossing_decided = questions.ask_equivalent(
                *thread,
                here,
                EquivalenceCaches { context_independent, crossing_classes, after },
                &mut pending,
            )?;
            if !crossing_decided && pending.by_groups {
                pending.add_outside(here, kept);
            }
        }
        if let Some(whitespace) = whitespace {
            questions.whitespace = Some((whitespace, WhitespaceAnswers::new(&whitespace)));
        }
        questions.ask_pending(&pending, before, &dense, (context_independent, whitespace_cache), &mut found)?;
        found.sort();
        Ok(found)
    }
}

impl Questions<'_, '_> {
    /// Settles the whitespace tokens after which one of several threads has a continuation in any case.
    fn settle_whitespace(
        &mut self,
        in_lexemes: &mut WhitespaceInLexemes,
        whitespace_cache: &mut WhitespaceCache,
        pending: &mut Pending<'_>,
    ) -> Result<(), EngineError> {
        for thread in self.threads.clone() {
            let Questions { run, search, encoding, place, .. } = &mut *self;
            let Some(whitespace) = run.before_whitespace(search, in_lexemes, &[thread])? else { continue };
            let known = whitespace_cache.known(encoding, search.places, whitespace.next, *place);
            for (token, numbered_token) in numbered(encoding) {
                let answers = known.is_viable_anyway(numbered_token, &whitespace);
                if answers.is_some_and(|answers| answers.iter().all(|&is_viable| is_viable != Some(false))) {
                    pending.settle(token);
                }
            }
        }
        Ok(())
    }

    /// Asks for the pending tokens that fit after the token before, and adds those that are not viable.
    fn ask_pending(
        &mut self,
        pending: &Pending<'_>,
        before: Option<u32>,
        dense: &[(Entry, IndependentTokens)],
        (context_independent, whitespace_cache): (&mut ContextIndependent, &mut WhitespaceCache),
        found: &mut DeadEnds,
    ) -> Result<(), EngineError> {
        let encoding = self.encoding;
        let vocabulary = encoding.tokens();
        let mut asked: Vec<Asked> = Vec::new();
        for token in pending.iter() {
            if !pending.fits(token) {
                found.leave_open(token, [true, false]);
                continue;
            }
            let unmerged = encoding.stay_unmerged(before, token);
            let after_both = self.search.places.advance_both(encoding, self.place, token);
            if after_both[usize::from(unmerged)].is_some() {
                found.leave_open(token, [!unmerged]);
            }
            let Some(after) = after_both[usize::from(!unmerged)] else { continue };
            match self.known(token, after, dense, context_independent) {
                Some(true) => {}
                Some(false) => found.add(token, unmerged),
                None => {
                    let bytes = vocabulary.token_bytes(token).unwrap_or_default();
                    let is_within = last_character(bytes).is_none();
                    let how_long = u8::from(encoding.is_whitespace(token)) + 2 * u8::from(is_within);
                    asked.push(Asked { token, unmerged, after, how_long });
                }
            }
        }
        // Those with a common beginning come together, so that the grammar reads what they have in common once.
        asked.sort_by_key(|asked| (asked.how_long, vocabulary.token_bytes(asked.token)));
        for Asked { token, unmerged, after, .. } in asked {
            if !self.ask(token, after, dense, (context_independent, whitespace_cache))? {
                found.add(token, unmerged);
            }
        }
        Ok(())
    }
}
