//! Tokens of nothing but blanks, of which vocabularies have hundreds: far from any bound on their number they lead on or not
//! by what may follow blanks, whatever the grammar.

use std::convert::Infallible;

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;

use super::Encoding;
use super::places::{Place, Places};
use super::search::Search;
use super::sure::SureRows;
use crate::error::EngineError;
use crate::fork::IN_BLANKS;
use crate::machine::ForkId;
use crate::run::{Run, offers_tokens};
use crate::stacks::{Entry, SetId};

/// What may stand between the tokens of JSON.
const JSON_BLANKS: [u8; 4] = *b" \t\n\r";
/// With so many blanks left their number makes no difference.
const FAR_BLANKS: usize = 8;

/// All threads are before blanks: the configuration as if none had come yet.
#[derive(Clone, Copy)]
pub(super) struct BeforeBlanks {
    same: SetId,
    left: usize,
}

impl BeforeBlanks {
    /// Whether so many blanks lead to the same configuration, but for how many may still come.
    pub fn are_far(self, blanks: usize) -> bool {
        blanks + FAR_BLANKS <= self.left
    }
}

/// By place behind a token of blanks, and by what merges with the token: whether it leads on, if that is told by the bytes
/// that follow, or nothing tells.
pub(super) type Blanks = FxHashMap<(Place, u32), bool>;

/// A token of blanks that fits somewhere: its length, and the place behind it.
#[derive(Clone, Copy)]
pub(super) struct FittingBlank {
    pub token: u32,
    pub len: usize,
    pub behind: Place,
}

/// Whether a token of blanks surely leads on where these bytes, blanks among them, may follow.
fn blank_leads_on(
    encoding: &Encoding,
    (blanks, places): (&mut Blanks, &mut Places),
    next: &ByteSet,
    token: u32,
    place: Place,
) -> bool {
    let key = (place, encoding.merging_number(token));
    if let Some(&known) = blanks.get(&key) {
        return known;
    }
    let merging = encoding.merging(token);
    let sure = !encoding.sure_bytes(places.cursor(place), &merging, next).is_empty();
    // Behind a blank the same may follow again; what follows anything else is not known here.
    let mut bytes = |known: bool| Ok::<_, Infallible>(if known { *next } else { ByteSet::EMPTY });
    let mut step = |_, byte: u8| Ok(Some(JSON_BLANKS.contains(&byte)));
    let leads_on = sure || {
        let Ok(keeps) = encoding.keeps_end(places, place, token, true, &mut bytes, &mut step);
        keeps == Some(true)
    };
    blanks.insert(key, leads_on);
    leads_on
}

impl Run<'_> {
    /// Where all threads are before blanks.
    pub(super) fn before_blanks(&mut self, configuration: SetId) -> Result<Option<BeforeBlanks>, EngineError> {
        let (mut threads, mut left) = (self.stacks.entries(configuration).to_vec(), usize::MAX);
        for thread in &mut threads {
            if *thread == Entry::BOTTOM || offers_tokens(*thread) || thread.state & IN_BLANKS == 0 {
                return Ok(None);
            }
            let fork = self.machine.fork(ForkId(thread.head));
            if !fork.blanks.is_some_and(|blanks| JSON_BLANKS.iter().all(|&byte| blanks.set.contains(byte))) {
                return Ok(None);
            }
            left = left.min(fork.blanks_left(thread.state).map_or(usize::MAX, |left| left as usize));
            thread.state = IN_BLANKS;
        }
        Ok(Some(BeforeBlanks { same: self.stacks.configuration(&mut threads)?, left }))
    }
}

/// Which tokens of blanks lead on, far from any bound of theirs.
pub(super) struct BlankAnswers<'s> {
    same: SetId,
    next: ByteSet,
    known: &'s mut Blanks,
}

impl<'s> BlankAnswers<'s> {
    pub fn new(
        run: &mut Run<'_>,
        search: &mut Search<'_>,
        sure: &'s mut SureRows,
        BeforeBlanks { same, .. }: BeforeBlanks,
    ) -> Result<BlankAnswers<'s>, EngineError> {
        let mut next = ByteSet::EMPTY;
        for byte in search.next_bytes(run, same)?.0.iter() {
            if search.step(run, same, byte)? != SetId::EMPTY {
                next.insert(byte);
            }
        }
        Ok(BlankAnswers { same, next, known: sure.blanks(next) })
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
        if blank_leads_on(encoding, (self.known, search.places), &self.next, token, behind) {
            return Ok(true);
        }
        let found = search.leads_on(run, self.same, token, behind)?;
        if found.is_none() {
            // Nor would it be found the next time.
            self.known.insert((behind, encoding.merging_number(token)), true);
        }
        Ok(found != Some(false))
    }
}
