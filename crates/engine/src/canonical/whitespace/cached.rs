//! What is known of tokens of blanks, kept for all grammars of a vocabulary.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::ByteSet;

use super::runs::{BeforeBlanks, BlanksAt, FittingBlank, KnownBlanks, KnownWays, ToldAnyway, ToldBlanks};
use crate::canonical::cursor::by_place::MAX_KEPT;
use crate::canonical::cursor::by_place::Place;
use crate::canonical::cursor::table::Places;
use crate::canonical::encoder::facts::Encoder;
use crate::canonical::viability::search::Search;
use crate::error::EngineError;
use crate::lexeme::mask::Row;
use crate::parse::stepper::Run;
use crate::state::stacks::SetId;
use crate::switches::Switch;

/// By place behind a token of blanks, and by what merges with the token: those of which no search tells.
type Untold = FxHashSet<(Place, u32)>;

/// What may follow blanks, the place before them, the token there if it may merge with them, and what is known of how many may
/// come.
type BlanksBehind = (ByteSet, Place, Option<u32>, (usize, bool));

/// What is known of tokens of blanks, by what may follow them and by place.
#[derive(Default)]
pub(crate) struct KeptBlanks {
    untold: FxHashMap<ByteSet, Untold>,
    /// By the bytes that may follow and the place before.
    known: FxHashMap<(ByteSet, Place), Arc<KnownBlanks>>,
    ways: KnownWays,
    /// By place and token before it, unless that merges with no blank.
    fitting: FxHashMap<(Place, Option<u32>), Arc<[FittingBlank]>>,
    at: FxHashMap<Place, Arc<BlanksAt>>,
    told: FxHashMap<BlanksBehind, Arc<ToldBlanks>>,
    anyway: FxHashMap<BlanksBehind, Arc<ToldAnyway>>,
    /// By row of few tokens, which is kept so that no other gets its place in memory: those of its tokens that are not blanks.
    others: FxHashMap<usize, (Arc<Row>, Box<[u32]>)>,
}

impl KeptBlanks {
    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let untold = self.untold.values().map(|blanks| blanks.len() * 16);
        let known = self.known.values().map(|blanks| blanks.memory_bytes());
        let fitting = self.fitting.values().map(|blanks| blanks.len() * size_of::<FittingBlank>());
        let told = self.told.values().map(|told| told.leading.len() * 4 + 128);
        let anyway = self.anyway.values().map(|told| told.memory_bytes());
        let at = self.at.values().map(|at| at.memory_bytes());
        let others = self.others.values().map(|(_, others)| others.len() * 4 + 32);
        let all = untold.chain(known).chain(fitting).chain(told).chain(anyway).chain(at).chain(others);
        self.ways.len() * 80 + all.sum::<usize>()
    }

    /// The tokens of which no search tells where these bytes, blanks among them, may follow.
    fn untold(&mut self, next: ByteSet) -> &mut Untold {
        if self.untold.len() >= MAX_KEPT {
            self.untold.clear();
        }
        self.untold.entry(next).or_default()
    }

    /// What is known of the tokens of blanks at a place where these bytes, blanks among them, may follow.
    pub fn known(&mut self, encoding: &Encoder, places: &mut Places, next: ByteSet, place: Place) -> Arc<KnownBlanks> {
        if let Some(known) = self.known.get(&(next, place)).filter(|_| Switch::CanonicalWhitespaceKept.is_on()) {
            return known.clone();
        }
        if self.known.len() >= MAX_KEPT {
            self.known.clear();
        }
        let at = self.at(encoding, places, place);
        let found = Arc::new(KnownBlanks::new(encoding, places, &mut self.ways, &next, at));
        self.known.insert((next, place), found.clone());
        found
    }

    /// The tokens of a row of few that are not blanks.
    pub fn listed_others(&mut self, encoding: &Encoder, row: &Arc<Row>) -> &[u32] {
        let name = Arc::as_ptr(row) as usize;
        if self.others.len() >= MAX_KEPT && !self.others.contains_key(&name) {
            self.others.clear();
        }
        let (_, others) = self.others.entry(name).or_insert_with(|| {
            let listed = row.listed.iter().flatten().copied();
            (row.clone(), listed.filter(|&token| !encoding.is_blank(token)).collect())
        });
        others
    }

    /// Where the tokens of blanks lead from a place.
    fn at(&mut self, encoding: &Encoder, places: &mut Places, place: Place) -> Arc<BlanksAt> {
        if self.at.len() >= MAX_KEPT && !self.at.contains_key(&place) {
            self.at.clear();
        }
        let at = self.at.entry(place);
        at.or_insert_with(|| Arc::new(BlanksAt::new(encoding, places, place))).clone()
    }

    /// The tokens of blanks that fit a place behind a token, if that may merge with them.
    fn fitting(
        &mut self,
        encoding: &Encoder,
        places: &mut Places,
        place: Place,
        before: Option<u32>,
    ) -> Arc<[FittingBlank]> {
        let key = (place, before);
        if let Some(known) = self.fitting.get(&key).filter(|_| Switch::CanonicalWhitespaceKept.is_on()) {
            return known.clone();
        }
        if self.fitting.len() >= MAX_KEPT {
            self.fitting.clear();
        }
        let at = self.at(encoding, places, place);
        let found = FittingBlank::all(encoding, &at, before);
        self.fitting.insert(key, found.clone());
        found
    }

    /// What is known of the tokens of blanks at a place, whatever token stands before it.
    pub fn told_anyway(
        &mut self,
        encoding: &Encoder,
        places: &mut Places,
        blanks: &BeforeBlanks,
        place: Place,
    ) -> Arc<ToldAnyway> {
        let longest = encoding.tokens().trie().max_depth();
        let key = (blanks.next, place, None, blanks.bounds(longest));
        if let Some(known) = self.anyway.get(&key).filter(|_| Switch::CanonicalWhitespaceKept.is_on()) {
            return known.clone();
        }
        if self.anyway.len() >= MAX_KEPT {
            self.anyway.clear();
        }
        let known = self.known(encoding, places, blanks.next, place);
        let found = Arc::new(ToldAnyway::of(encoding, &known, blanks));
        self.anyway.insert(key, found.clone());
        found
    }

    /// What is known of the tokens of blanks that fit a place behind a token.
    pub fn told(
        &mut self,
        encoding: &Encoder,
        places: &mut Places,
        blanks: &BeforeBlanks,
        (place, before): (Place, Option<u32>),
    ) -> Arc<ToldBlanks> {
        let before = before.filter(|&before| encoding.may_merge_with_blanks(before));
        let longest = encoding.tokens().trie().max_depth();
        let key = (blanks.next, place, before, blanks.bounds(longest));
        if let Some(known) = self.told.get(&key).filter(|_| Switch::CanonicalWhitespaceKept.is_on()) {
            return known.clone();
        }
        if self.told.len() >= MAX_KEPT {
            self.told.clear();
        }
        let fitting = self.fitting(encoding, places, place, before);
        let known = self.known(encoding, places, blanks.next, place);
        let found = Arc::new(ToldBlanks::of(&fitting, &known, blanks));
        self.told.insert(key, found.clone());
        found
    }
}

/// Which tokens of blanks lead on, far from any bound of theirs.
#[derive(Clone, Copy)]
pub(crate) struct BlankAnswers {
    same: SetId,
    next: ByteSet,
}

impl BlankAnswers {
    pub fn new(before: &BeforeBlanks) -> BlankAnswers {
        BlankAnswers { same: before.same, next: before.next }
    }

    /// Whether a token leads on from the place behind it.
    pub fn leads_on(
        self,
        run: &mut Run<'_>,
        encoding: &Encoder,
        search: &mut Search<'_>,
        kept: &mut KeptBlanks,
        token: u32,
        behind: Place,
    ) -> Result<bool, EngineError> {
        let untold = kept.untold(self.next);
        let key = (behind, encoding.merging_number(token));
        if untold.contains(&key) {
            return Ok(true);
        }
        let found = search.leads_on(run, self.same, token, behind)?;
        if found.is_none() {
            // Nor would it be found the next time.
            untold.insert(key);
        }
        Ok(found != Some(false))
    }
}
