//! What is known of tokens of blanks, kept for all grammars of a vocabulary.

use std::sync::Arc;

use stencilm_regex::ByteSet;
use stencilm_support::Bounded;

use super::runs::{
    BeforeWhitespace, DecidedAnyway, DecidedWhitespace, FittingWhitespace, KnownWays, KnownWhitespace, WhitespaceAt,
};
use crate::canonical::cursor::by_place::CursorId;
use crate::canonical::cursor::table::Cursors;
use crate::canonical::encoder::facts::Encoder;
use crate::canonical::viability::search::{Search, TokenEnd};
use crate::error::EngineError;
use crate::lexeme::mask::Row;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;
use crate::switches::Switch;

/// What may follow blanks, the place before them, the token there if it may merge with them, and what is known of how many may
/// come.
type WhitespaceAfter = (ByteSet, CursorId, Option<u32>, (usize, bool));

/// What is known of tokens of blanks, by what may follow them and by place.
#[derive(Default)]
pub(crate) struct WhitespaceCache {
    /// Those of which no search tells: by what may follow, the place after a token, and what merges with the token.
    untold: Bounded<(ByteSet, CursorId, u32), ()>,
    /// By the bytes that may follow and the place before.
    known: Bounded<(ByteSet, CursorId), Arc<KnownWhitespace>>,
    ways: KnownWays,
    /// By place and token before it, unless that merges with no blank.
    fitting: Bounded<(CursorId, Option<u32>), Arc<[FittingWhitespace]>>,
    at: Bounded<CursorId, Arc<WhitespaceAt>>,
    told: Bounded<WhitespaceAfter, Arc<DecidedWhitespace>>,
    anyway: Bounded<WhitespaceAfter, Arc<DecidedAnyway>>,
    /// By row of few tokens, which is kept so that no other gets its place in memory: those of its tokens that are not blanks.
    others: Bounded<usize, (Arc<Row>, Box<[u32]>)>,
}

impl WhitespaceCache {
    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        self.untold.memory_bytes()
            + self.known.memory_bytes()
            + self.ways.memory_bytes()
            + self.fitting.memory_bytes()
            + self.at.memory_bytes()
            + self.told.memory_bytes()
            + self.anyway.memory_bytes()
            + self.others.memory_bytes()
    }

    /// What is known of the tokens of blanks at a place where these bytes, blanks among them, may follow.
    pub fn known(
        &mut self,
        encoding: &Encoder,
        places: &mut Cursors,
        next: ByteSet,
        place: CursorId,
    ) -> Arc<KnownWhitespace> {
        if let Some(known) = self.known.get(&(next, place)).filter(|_| Switch::CanonicalWhitespaceKept.is_on()) {
            return known.clone();
        }
        let at = self.at(encoding, places, place);
        let found = Arc::new(KnownWhitespace::new(encoding, places, &mut self.ways, &next, at));
        self.known.insert((next, place), found.clone(), found.memory_bytes());
        found
    }

    /// The tokens of a row of few that are not blanks.
    pub fn listed_others(&mut self, encoding: &Encoder, row: &Arc<Row>) -> &[u32] {
        let name = Arc::as_ptr(row) as usize;
        let (known, _) = self.others.get_or_make(name, || {
            let listed = row.listed.iter().flatten().copied();
            let others: Box<[u32]> = listed.filter(|&token| !encoding.is_whitespace(token)).collect();
            let bytes = size_of_val(&*others);
            ((row.clone(), others), bytes)
        });
        &known.1
    }

    /// Where the tokens of blanks lead from a place.
    fn at(&mut self, encoding: &Encoder, places: &mut Cursors, place: CursorId) -> Arc<WhitespaceAt> {
        let (at, _) = self.at.get_or_make(place, || {
            let at = WhitespaceAt::new(encoding, places, place);
            let bytes = at.memory_bytes();
            (Arc::new(at), bytes)
        });
        at.clone()
    }

    /// The tokens of blanks that fit a place after a token, if that may merge with them.
    fn fitting(
        &mut self,
        encoding: &Encoder,
        places: &mut Cursors,
        place: CursorId,
        before: Option<u32>,
    ) -> Arc<[FittingWhitespace]> {
        let key = (place, before);
        if let Some(known) = self.fitting.get(&key).filter(|_| Switch::CanonicalWhitespaceKept.is_on()) {
            return known.clone();
        }
        let at = self.at(encoding, places, place);
        let found = FittingWhitespace::all(encoding, &at, before);
        self.fitting.insert(key, found.clone(), size_of_val(&*found));
        found
    }

    /// What is known of the tokens of blanks at a place, whatever token stands before it.
    pub fn told_anyway(
        &mut self,
        encoding: &Encoder,
        places: &mut Cursors,
        blanks: &BeforeWhitespace,
        place: CursorId,
    ) -> Arc<DecidedAnyway> {
        let longest = encoding.tokens().trie().max_depth();
        let key = (blanks.next, place, None, blanks.bounds(longest));
        if let Some(known) = self.anyway.get(&key).filter(|_| Switch::CanonicalWhitespaceKept.is_on()) {
            return known.clone();
        }
        let known = self.known(encoding, places, blanks.next, place);
        let found = Arc::new(DecidedAnyway::of(encoding, &known, blanks));
        self.anyway.insert(key, found.clone(), found.memory_bytes());
        found
    }

    /// What is known of the tokens of blanks that fit a place after a token.
    pub fn told(
        &mut self,
        encoding: &Encoder,
        places: &mut Cursors,
        blanks: &BeforeWhitespace,
        (place, before): (CursorId, Option<u32>),
    ) -> Arc<DecidedWhitespace> {
        let before = before.filter(|&before| encoding.may_merge_with_whitespace(before));
        let longest = encoding.tokens().trie().max_depth();
        let key = (blanks.next, place, before, blanks.bounds(longest));
        if let Some(known) = self.told.get(&key).filter(|_| Switch::CanonicalWhitespaceKept.is_on()) {
            return known.clone();
        }
        let fitting = self.fitting(encoding, places, place, before);
        let known = self.known(encoding, places, blanks.next, place);
        let found = Arc::new(DecidedWhitespace::of(&fitting, &known, blanks));
        self.told.insert(key, found.clone(), found.memory_bytes());
        found
    }
}

/// Which tokens of blanks lead on, far from any bound of theirs.
#[derive(Clone, Copy)]
pub(crate) struct WhitespaceAnswers {
    same: SetId,
    next: ByteSet,
}

impl WhitespaceAnswers {
    pub fn new(before: &BeforeWhitespace) -> WhitespaceAnswers {
        WhitespaceAnswers { same: before.same, next: before.next }
    }

    /// Whether a token leads on from the place after it.
    pub fn leads_on(
        self,
        run: &mut Run<'_>,
        encoding: &Encoder,
        search: &mut Search<'_>,
        kept: &mut WhitespaceCache,
        token: u32,
        after: CursorId,
    ) -> Result<bool, EngineError> {
        let key = (self.next, after, encoding.merging_number(token));
        if kept.untold.get(&key).is_some() {
            return Ok(true);
        }
        let found = search.leads_on(run, TokenEnd { configuration: self.same, token, place: after })?;
        if found.is_none() {
            // Nor would it be found the next time.
            kept.untold.insert(key, (), 0);
        }
        Ok(found != Some(false))
    }
}
