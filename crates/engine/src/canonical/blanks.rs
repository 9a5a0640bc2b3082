//! Tokens of nothing but blanks, of which vocabularies have hundreds: they lead on or not by what may follow blanks and by how
//! many may still come, whatever the grammar.

use std::convert::Infallible;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::{ByteSet, StateId};

use super::places::{Place, Places};
use super::search::Search;
use super::sure::SureRows;
use super::{Encoding, Kind};
use crate::error::EngineError;
use crate::fork::{Automaton, Fork, IN_BLANKS};
use crate::machine::ForkId;
use crate::run::{Run, offers_tokens};
use crate::stacks::{Entry, SetId};

/// What may stand between the tokens of JSON.
const JSON_BLANKS: [u8; 4] = *b" \t\n\r";
/// With so many blanks left their number makes no difference.
const FAR_BLANKS: usize = 8;
/// A lexeme that begins with more blanks than this, or goes on behind them with more bytes, is taken for any other.
const MAX_BLANKS: usize = 100;
const MAX_BYTES_BEHIND: usize = 16;

/// All that lives behind a blank lives behind others, too, and goes on in the same way: how many may come, and where the
/// grammar stands before them.
#[derive(Clone, Copy)]
pub(super) struct BeforeBlanks {
    same: SetId,
    /// The bytes that may come, blanks among them.
    pub next: ByteSet,
    left: usize,
    /// Whether so many may come in all ways.
    is_exact: bool,
}

impl BeforeBlanks {
    /// What [`KnownBlank::leads_on`] asks of it, where no token has more bytes than `longest`.
    pub fn bounds(self, longest: usize) -> (usize, bool) {
        (self.left.min(longest + FAR_BLANKS), self.is_exact)
    }

    /// Whether so many blanks lead to the same configuration, but for how many may still come.
    pub fn are_far(self, blanks: usize) -> bool {
        blanks + FAR_BLANKS <= self.left
    }
}

/// By place behind a token of blanks, and by what merges with the token: those of which no search tells.
pub(super) type Blanks = FxHashSet<(Place, u32)>;

/// By the bytes that may follow, the place behind a token of blanks, and what merges with the token.
pub(super) type KnownWays = FxHashMap<(ByteSet, Place, u32), KnownWay>;

/// Where the tokens of blanks lead from a place. Those behind which the tokenizer stands at the same place, and which merge
/// with the same, are one kind.
pub(super) struct BlanksAt {
    /// By token, where no merge joins it with the token before, and where one does; `None` where it does not fit.
    kinds: Vec<[Option<usize>; 2]>,
    /// Of each kind a token, and the place behind it.
    examples: Vec<(u32, Place)>,
}

impl BlanksAt {
    pub fn new(encoding: &Encoding, places: &mut Places, place: Place) -> BlanksAt {
        let mut numbers: FxHashMap<(Place, u32), usize> = FxHashMap::default();
        let mut examples = Vec::new();
        let mut kinds = |&token: &u32| {
            [true, false].map(|apart| {
                let behind = places.advance(encoding, place, token, apart)?;
                Some(*numbers.entry((behind, encoding.merging_number(token))).or_insert_with(|| {
                    examples.push((token, behind));
                    examples.len() - 1
                }))
            })
        };
        let kinds = encoding.blank_tokens.iter().map(&mut kinds).collect();
        BlanksAt { kinds, examples }
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        self.kinds.len() * size_of::<[Option<usize>; 2]>() + self.examples.len() * 8
    }
}

/// By fork and state: how many blanks a lexeme may go on with, see [`Run::blanks_in_lexeme`].
pub(crate) type BlanksInLexemes = FxHashMap<(u32, u32), Option<usize>>;

/// So many of both are kept.
const MAX_KNOWN: usize = 20_000;

/// Tokens of blanks that fit somewhere, by whether they lead on.
pub(super) struct ToldBlanks {
    /// Those that do, ascending.
    pub leading: Vec<u32>,
    /// Those of which it is not known.
    pub open: Vec<FittingBlank>,
}

/// A token of blanks that fits somewhere.
#[derive(Clone, Copy)]
pub(super) struct FittingBlank {
    /// Its number among the tokens of blanks.
    number: usize,
    pub token: u32,
    pub len: usize,
    /// Whether no merge joins it with the token before, and the place behind it.
    apart: bool,
    pub behind: Place,
}

impl FittingBlank {
    /// All of them at a place behind a token.
    pub fn all(encoding: &Encoding, at: &BlanksAt, before: Option<u32>) -> Arc<[FittingBlank]> {
        let fitting = |(number, (&token, kinds)): (usize, (&u32, &[Option<usize>; 2]))| {
            let len = encoding.tokens().token_bytes(token)?.len();
            let apart = encoding.stay_apart(before, token);
            let (_, behind) = at.examples[kinds[usize::from(!apart)]?];
            Some(FittingBlank { number, token, len, apart, behind })
        };
        encoding.blank_tokens.iter().zip(&at.kinds).enumerate().filter_map(fitting).collect()
    }
}

impl ToldBlanks {
    /// What is known of fitting tokens.
    pub fn of(fitting: &[FittingBlank], known: &[KnownBlank], before: &BeforeBlanks) -> ToldBlanks {
        let mut told = ToldBlanks { leading: Vec::new(), open: Vec::new() };
        for &blank in fitting {
            match known[blank.number].leads_on(before, blank.apart) {
                Some(true) => told.leading.push(blank.token),
                Some(false) => {}
                None => told.open.push(blank),
            }
        }
        told
    }
}

/// What is known of a token of blanks at a place, by what may follow blanks.
#[derive(Clone, Copy)]
pub(super) struct KnownBlank {
    pub token: u32,
    len: usize,
    /// Where no merge joins it with the token before, and where one does; `None` where it does not fit.
    ways: [Option<KnownWay>; 2],
}

/// What is known of tokens of blanks that are alike.
#[derive(Clone, Copy)]
pub(super) struct KnownWay {
    /// How many blanks must still be allowed behind it so that it surely leads on.
    needs: Option<usize>,
    /// Whether nothing leads on where no more may come.
    is_dead_at_last: bool,
}

impl KnownBlank {
    /// All of them at a place where these bytes, blanks among them, may follow.
    pub fn all(
        encoding: &Encoding,
        places: &mut Places,
        known_ways: &mut KnownWays,
        next: &ByteSet,
        at: &BlanksAt,
    ) -> Arc<[KnownBlank]> {
        if known_ways.len() >= MAX_KNOWN {
            known_ways.clear();
        }
        let mut way_of = |&(token, behind): &(u32, Place)| {
            let key = (*next, behind, encoding.merging_number(token));
            *known_ways.entry(key).or_insert_with(|| KnownWay::new(encoding, places, next, token, behind))
        };
        let ways: Vec<KnownWay> = at.examples.iter().map(&mut way_of).collect();
        let known = |(&token, kinds): (&u32, &[Option<usize>; 2])| KnownBlank {
            token,
            len: encoding.tokens().token_bytes(token).map_or(0, <[u8]>::len),
            ways: kinds.map(|kind| kind.map(|kind| ways[kind])),
        };
        encoding.blank_tokens.iter().zip(&at.kinds).map(known).collect()
    }

    /// Whether something leads on behind it, joined with the token before or not; `None` where that is not known.
    pub fn leads_on(&self, before: &BeforeBlanks, apart: bool) -> Option<bool> {
        let way = self.ways[usize::from(!apart)]?;
        let left = before.left.checked_sub(self.len)?;
        if way.needs.is_some_and(|needs| needs <= left) {
            return Some(true);
        }
        (left == 0 && way.is_dead_at_last && before.is_exact).then_some(false)
    }

    /// The same for both ways, where it is known of all in which it fits.
    pub fn leads_on_anyway(&self, before: &BeforeBlanks) -> Option<[Option<bool>; 2]> {
        let mut answers = [None; 2];
        for (way, answer) in answers.iter_mut().enumerate().filter(|&(way, _)| self.ways[way].is_some()) {
            *answer = Some(self.leads_on(before, way == 0)?);
        }
        Some(answers)
    }
}

impl KnownWay {
    fn new(encoding: &Encoding, places: &mut Places, next: &ByteSet, token: u32, behind: Place) -> KnownWay {
        let is_dead_at_last = nothing_follows(encoding, places, &without_blanks(next), behind);
        let mut leads_on = |left: usize| surely_leads_on(encoding, places, next, token, behind, left);
        // Nearly always one more blank is needed, because the last one goes with what follows.
        let needs = match leads_on(1) {
            true if !is_dead_at_last && leads_on(0) => Some(0),
            true => Some(1),
            false if leads_on(FAR_BLANKS) => (2..FAR_BLANKS).find(|&left| leads_on(left)).or(Some(FAR_BLANKS)),
            false => None,
        };
        KnownWay { needs, is_dead_at_last }
    }
}

fn without_blanks(bytes: &ByteSet) -> ByteSet {
    JSON_BLANKS.iter().fold(*bytes, |others, &byte| others.intersect(&ByteSet::of(byte).complement()))
}

/// Whether a token of blanks surely leads on where these bytes, blanks among them, may follow: so many blanks at most.
fn surely_leads_on(
    encoding: &Encoding,
    places: &mut Places,
    next: &ByteSet,
    token: u32,
    behind: Place,
    left: usize,
) -> bool {
    let merging = encoding.merging(token);
    let others = without_blanks(next);
    let first = if left > 0 { next } else { &others };
    if !encoding.sure_bytes(places.cursor(behind), &merging, first).is_empty() {
        return true;
    }
    // Behind a blank the same may follow again; what follows anything else is not known here.
    let mut bytes = |left: Option<usize>| {
        Ok::<_, Infallible>(match left {
            Some(0) => others,
            Some(_) => *next,
            None => ByteSet::EMPTY,
        })
    };
    let mut step =
        |left: Option<usize>, byte: u8| Ok(Some(left.filter(|_| JSON_BLANKS.contains(&byte)).map(|left| left - 1)));
    let Ok(keeps) = encoding.keeps_end(places, behind, token, Some(left), &mut bytes, &mut step);
    keeps == Some(true)
}

/// Whether no token that begins with one of these bytes fits a place, whatever stands before it.
fn nothing_follows(encoding: &Encoding, places: &mut Places, bytes: &ByteSet, place: Place) -> bool {
    let ascii = bytes.intersect(&ByteSet::range(0, 127));
    if ascii != *bytes {
        return false;
    }
    let kinds = (0..4).map(|what| Kind { is_byte: what & 1 > 0, is_whole: what & 2 > 0 });
    let has = |kind: &Kind| {
        (!kind.is_byte || encoding.by_characters()) && (!kind.is_whole || encoding.whole_pieces.is_some())
    };
    for (kind, apart) in kinds.filter(has).flat_map(|kind| [(kind, true), (kind, false)]) {
        let Some(begun) = places.begin(encoding, place, kind, apart) else { continue };
        if ascii.iter().any(|byte| places.read(encoding, begun, byte).is_some()) {
            return false;
        }
    }
    true
}

impl Run<'_> {
    /// Where a thread is before blanks.
    pub(super) fn thread_before_blanks(
        &mut self,
        search: &mut Search<'_>,
        in_lexemes: &mut BlanksInLexemes,
        thread: Entry,
    ) -> Result<Option<BeforeBlanks>, EngineError> {
        self.before_these_blanks(search, in_lexemes, &[thread])
    }

    /// Where all threads that blanks do not end are before blanks.
    pub(super) fn before_blanks(
        &mut self,
        search: &mut Search<'_>,
        in_lexemes: &mut BlanksInLexemes,
        configuration: SetId,
    ) -> Result<Option<BeforeBlanks>, EngineError> {
        let threads = self.stacks.entries(configuration).to_vec();
        self.before_these_blanks(search, in_lexemes, &threads)
    }

    fn before_these_blanks(
        &mut self,
        search: &mut Search<'_>,
        in_lexemes: &mut BlanksInLexemes,
        threads: &[Entry],
    ) -> Result<Option<BeforeBlanks>, EngineError> {
        let (mut starts, mut least, mut most) = (Vec::new(), usize::MAX, 0);
        for &thread in threads.iter().filter(|&&thread| thread != Entry::BOTTOM && !offers_tokens(thread)) {
            let fork = self.machine.fork(ForkId(thread.head)).clone();
            let (state, left) = match thread.state & IN_BLANKS {
                0 => {
                    if in_lexemes.len() >= MAX_KNOWN {
                        in_lexemes.clear();
                    }
                    let left = match in_lexemes.get(&(thread.head, thread.state)) {
                        Some(&known) => known,
                        None => {
                            let found = self.blanks_in_lexeme(&fork, thread.state)?;
                            in_lexemes.insert((thread.head, thread.state), found);
                            found
                        }
                    };
                    match left {
                        Some(left) => (thread.state, left),
                        None => return Ok(None),
                    }
                }
                _ => {
                    let is_json = fork.blanks.is_some_and(|blanks| blanks.set == json_blanks());
                    if !is_json {
                        return Ok(None);
                    }
                    (IN_BLANKS, fork.blanks_left(thread.state).map_or(usize::MAX, |left| left as usize))
                }
            };
            if left == 0 {
                continue;
            }
            starts.push(Entry { state, ..thread });
            (least, most) = (least.min(left), most.max(left));
        }
        if starts.is_empty() {
            return Ok(None);
        }
        let same = self.stacks.configuration(&mut starts)?;
        // Of the others it is not sure that they may come.
        let mut next = json_blanks();
        for byte in without_blanks(&search.next_bytes(self, same)?.0).iter() {
            if search.step(self, same, byte)? != SetId::EMPTY {
                next.insert(byte);
            }
        }
        Ok(Some(BeforeBlanks { same, next, left: least, is_exact: least == most }))
    }

    /// How many blanks a lexeme may go on with before anything else: 0 where it ends or dies with them, `None` where blanks
    /// make a difference to it.
    fn blanks_in_lexeme(&mut self, fork: &Fork, state: u32) -> Result<Option<usize>, EngineError> {
        let first = JSON_BLANKS.map(|byte| fork.step(self.lexicon, state, byte));
        let mut reached = Vec::with_capacity(JSON_BLANKS.len());
        for step in first {
            reached.push(step?);
        }
        if reached.iter().all(|&(next, _)| next == StateId::DEAD.0) {
            return Ok(Some(0));
        }
        if matches!(fork.automaton, Automaton::Names(..)) || fork.free {
            return Ok(None);
        }
        let others = without_blanks(&fork.live_bytes(self.lexicon, state)?);
        if others.len() > MAX_BYTES_BEHIND {
            return Ok(None);
        }
        let mut here = state;
        for left in 0..MAX_BLANKS {
            let (next, accepts) = fork.step(self.lexicon, here, JSON_BLANKS[0])?;
            for &byte in &JSON_BLANKS[1..] {
                if fork.step(self.lexicon, here, byte)? != (next, accepts) {
                    return Ok(None);
                }
            }
            if next == StateId::DEAD.0 {
                return Ok(Some(left));
            }
            if accepts || without_blanks(&fork.live_bytes(self.lexicon, next)?) != others {
                return Ok(None);
            }
            for byte in others.iter() {
                if fork.step(self.lexicon, next, byte)? != fork.step(self.lexicon, state, byte)? {
                    return Ok(None);
                }
            }
            if next == here {
                return Ok(Some(usize::MAX));
            }
            here = next;
        }
        Ok(None)
    }
}

pub(super) fn json_blanks() -> ByteSet {
    JSON_BLANKS.iter().fold(ByteSet::EMPTY, |set, &byte| set.union(&ByteSet::of(byte)))
}

/// Which tokens of blanks lead on, far from any bound of theirs.
#[derive(Clone, Copy)]
pub(super) struct BlankAnswers {
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
        encoding: &Encoding,
        search: &mut Search<'_>,
        sure: &mut SureRows,
        token: u32,
        behind: Place,
    ) -> Result<bool, EngineError> {
        let known = sure.blanks(self.next);
        let key = (behind, encoding.merging_number(token));
        if known.contains(&key) {
            return Ok(true);
        }
        let found = search.leads_on(run, self.same, token, behind)?;
        if found.is_none() {
            // Nor would it be found the next time.
            known.insert(key);
        }
        Ok(found != Some(false))
    }
}
