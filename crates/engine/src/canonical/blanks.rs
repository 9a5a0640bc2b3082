//! Tokens of nothing but blanks, of which vocabularies have hundreds: far from any bound on their number they lead on or not
//! by what may follow blanks, whatever the grammar.

use std::convert::Infallible;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use stencilm_regex::ByteSet;

use super::Encoding;
use super::places::{Place, Places};
use super::rows::Rows;
use super::search::Search;
use super::sure::SureRows;
use crate::error::EngineError;
use crate::fork::IN_BLANKS;
use crate::machine::ForkId;
use crate::run::{Run, offers_tokens};
use crate::stacks::{Entry, SetId};
use crate::tokenset;

/// What may stand between the tokens of JSON.
const JSON_BLANKS: [u8; 4] = *b" \t\n\r";
/// Tokens of so many blanks come near the bound that grammars of JSON have.
const LONG_BLANKS: usize = 40;
/// Where more of them than this are not told, they are not looked at.
const MANY_OPEN: usize = 24;
/// For all tokens of blanks at a place so many looks are taken at what follows some.
const MAX_LOOKS: usize = 24;
/// With so many blanks left their number makes no difference.
const FAR_BLANKS: usize = 8;

/// All threads are before blanks: the configuration as if none had come yet.
#[derive(Clone, Copy)]
pub(super) struct BeforeBlanks {
    same: SetId,
    pub left: usize,
}

impl BeforeBlanks {
    /// Whether so many blanks lead to the same configuration, but for how many may still come.
    pub fn are_far(self, blanks: usize) -> bool {
        blanks + FAR_BLANKS <= self.left
    }

    /// The bytes that may come.
    pub fn next_bytes(self, run: &mut Run<'_>, search: &mut Search<'_>) -> Result<ByteSet, EngineError> {
        let mut next = ByteSet::EMPTY;
        for byte in search.next_bytes(run, self.same)?.0.iter() {
            if search.step(run, self.same, byte)? != SetId::EMPTY {
                next.insert(byte);
            }
        }
        Ok(next)
    }
}

/// By place behind a token of blanks, and by what merges with the token: those of which no search tells.
pub(super) type Blanks = FxHashSet<(Place, u32)>;

/// A token of blanks that fits somewhere: its length, and the place behind it.
#[derive(Clone, Copy)]
pub(super) struct FittingBlank {
    /// Its number among the tokens of blanks.
    pub number: usize,
    pub token: u32,
    pub len: usize,
    pub behind: Place,
}

/// A token of blanks, and how many more must still be allowed behind it so that it surely leads on.
#[derive(Clone, Copy)]
pub(super) struct SureBlank {
    pub token: u32,
    len: usize,
    needs: Option<usize>,
    /// Whether nothing leads on behind it where no more than [`FAR_BLANKS`] may follow, where no merge joins it with the token
    /// before and where one does.
    dead: [Option<bool>; 2],
}

impl SureBlank {
    /// All of them at a place where these bytes, blanks among them, may follow; joined with the token before or not.
    pub fn all(
        encoding: &Encoding,
        (places, rows): (&mut Places, &mut Rows),
        next: &ByteSet,
        place: Place,
    ) -> Arc<[SureBlank]> {
        let len_of = |token| encoding.tokens().token_bytes(token).map_or(0, <[u8]>::len);
        let behind_of =
            |places: &mut Places, token| [true, false].map(|apart| places.advance(encoding, place, token, apart));
        let mut sure = |&token: &u32| {
            let behind = behind_of(places, token);
            let mut leads_on = |left: usize| {
                behind.iter().flatten().all(|&behind| blank_leads_on(encoding, places, next, token, behind, left))
            };
            let needs = match leads_on(FAR_BLANKS) {
                true => (0..FAR_BLANKS).find(|&left| leads_on(left)).or(Some(FAR_BLANKS)),
                false => None,
            };
            SureBlank { token, len: len_of(token), needs, dead: [None; 2] }
        };
        let mut all: Vec<SureBlank> = encoding.blank_tokens.iter().map(&mut sure).collect();
        let is_open = |blank: &SureBlank| blank.needs.is_none() && blank.len >= LONG_BLANKS;
        if all.iter().filter(|blank| is_open(blank)).count() <= MANY_OPEN {
            let mut looks = MAX_LOOKS;
            for blank in all.iter_mut().filter(|blank| is_open(blank)) {
                let token = blank.token;
                blank.dead = behind_of(places, token).map(|behind| {
                    Some(blanks_lead_nowhere(encoding, (places, rows), &mut looks, next, token, behind?))
                });
            }
        }
        all.into()
    }

    /// Whether it surely leads on where so many blanks may come, this one included.
    pub fn leads_on(&self, left: usize) -> bool {
        self.needs.is_some_and(|needs| self.len + needs <= left)
    }

    /// Whether nothing leads on, as [`Answer`](super::dead_ends::Answer) has it, where so many blanks may come, this one
    /// included; `None` where that is not known.
    pub fn is_dead(&self, left: usize) -> Option<[Option<bool>; 2]> {
        let is_near = self.len <= left && left <= self.len + FAR_BLANKS;
        let all = self.dead.iter().any(Option::is_some) && self.dead.iter().flatten().all(|&dead| dead);
        (is_near && all).then_some(self.dead)
    }
}

/// Whether a token of blanks surely leads on where these bytes, blanks among them, may follow: so many blanks at most.
fn blank_leads_on(
    encoding: &Encoding,
    places: &mut Places,
    next: &ByteSet,
    token: u32,
    place: Place,
    left: usize,
) -> bool {
    let merging = encoding.merging(token);
    let others = JSON_BLANKS.iter().fold(*next, |others, &byte| others.intersect(&ByteSet::of(byte).complement()));
    let first = if left > 0 { next } else { &others };
    if !encoding.sure_bytes(places.cursor(place), &merging, first).is_empty() {
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
    let Ok(keeps) = encoding.keeps_end(places, place, token, Some(left), &mut bytes, &mut step);
    keeps == Some(true)
}

/// Whether nothing leads on behind a token of blanks, whatever else comes behind at most [`FAR_BLANKS`] more of them. Tokens
/// that go on beyond the blanks are taken to lead on.
fn blanks_lead_nowhere(
    encoding: &Encoding,
    (places, rows): (&mut Places, &mut Rows),
    looks: &mut usize,
    next: &ByteSet,
    token: u32,
    behind: Place,
) -> bool {
    let mut seen = FxHashSet::default();
    let mut work = vec![(token, behind, FAR_BLANKS)];
    while let Some((token, place, left)) = work.pop() {
        if !seen.insert((token, place, left)) {
            continue;
        }
        match looks.checked_sub(1) {
            Some(left) => *looks = left,
            None => return false,
        }
        let cursor = places.cursor(place).clone();
        let row = rows.row(encoding, places, &cursor, Some(token));
        let mut beyond = encoding.beyond_blanks.iter();
        if beyond.any(|&(blanks, byte, next_token)| {
            usize::from(blanks) <= left && next.contains(byte) && tokenset::get(&row, next_token)
        }) {
            return false;
        }
        for &blank in encoding.blank_tokens.iter().filter(|&&blank| tokenset::get(&row, blank)) {
            let len = encoding.tokens().token_bytes(blank).map_or(0, <[u8]>::len);
            if len <= left
                && let Some(behind) = encoding.follow(places, place, Some(token), blank)
            {
                work.push((blank, behind, left - len));
            }
        }
    }
    true
}

impl Run<'_> {
    /// Where a thread is before blanks.
    pub(super) fn thread_before_blanks(&mut self, thread: Entry) -> Result<Option<BeforeBlanks>, EngineError> {
        let Some(left) = self.blanks_before(thread) else { return Ok(None) };
        let same = self.stacks.configuration(&mut vec![Entry { state: IN_BLANKS, ..thread }])?;
        Ok(Some(BeforeBlanks { same, left }))
    }

    /// Where all threads are before blanks.
    pub(super) fn before_blanks(&mut self, configuration: SetId) -> Result<Option<BeforeBlanks>, EngineError> {
        let (mut threads, mut left) = (self.stacks.entries(configuration).to_vec(), usize::MAX);
        for thread in &mut threads {
            match self.blanks_before(*thread) {
                Some(most) => left = left.min(most),
                None => return Ok(None),
            }
            thread.state = IN_BLANKS;
        }
        Ok(Some(BeforeBlanks { same: self.stacks.configuration(&mut threads)?, left }))
    }

    /// How many blanks a thread may still read before its lexeme, where it may read those of JSON.
    fn blanks_before(&mut self, thread: Entry) -> Option<usize> {
        if thread == Entry::BOTTOM || offers_tokens(thread) || thread.state & IN_BLANKS == 0 {
            return None;
        }
        let fork = self.machine.fork(ForkId(thread.head));
        let is_json =
            |set: &ByteSet| set.len() == JSON_BLANKS.len() && JSON_BLANKS.iter().all(|&byte| set.contains(byte));
        let all = fork.blanks.is_some_and(|blanks| is_json(&blanks.set));
        all.then(|| fork.blanks_left(thread.state).map_or(usize::MAX, |left| left as usize))
    }
}

/// Which tokens of blanks lead on, far from any bound of theirs.
pub(super) struct BlankAnswers<'s> {
    same: SetId,
    known: &'s mut Blanks,
}

impl<'s> BlankAnswers<'s> {
    pub fn new(
        run: &mut Run<'_>,
        search: &mut Search<'_>,
        sure: &'s mut SureRows,
        before: BeforeBlanks,
    ) -> Result<BlankAnswers<'s>, EngineError> {
        let BeforeBlanks { same, .. } = before;
        let next = before.next_bytes(run, search)?;
        Ok(BlankAnswers { same, known: sure.blanks(next) })
    }

    /// Whether a token leads on from the place behind it.
    pub fn leads_on(
        &mut self,
        run: &mut Run<'_>,
        encoding: &Encoding,
        search: &mut Search<'_>,
        token: u32,
        behind: Place,
    ) -> Result<bool, EngineError> {
        let key = (behind, encoding.merging_number(token));
        if self.known.contains(&key) {
            return Ok(true);
        }
        let found = search.leads_on(run, self.same, token, behind)?;
        if found.is_none() {
            // Nor would it be found the next time.
            self.known.insert(key);
        }
        Ok(found != Some(false))
    }
}
