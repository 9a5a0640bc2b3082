//! The tokens of wide lexemes that surely lead on, whatever follows the lexeme.
//!
//! They are the same for all grammars that have such a lexeme, so they are kept with the vocabulary.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, LimitExceeded, StateId};

use super::blanks::{Blanks, FittingBlank};
use super::dead_ends::{Answer, DeadEnds};
use super::places::{Place, Places};
use super::probes::Anywhere;
use super::{Encoding, Known};
use crate::error::EngineError;
use crate::exits::Exits;
use crate::fork::{Automaton, Fork, IN_BLANKS};
use crate::lexicon::{DfaId, Lexicon};
use crate::machine::ForkId;
use crate::row::{MAX_LISTED, Row};
use crate::run::{Run, offers_tokens};
use crate::stacks::Entry;
use crate::tokenset::TokenSet;
use crate::trie::groups_within;

/// Rows of more tokens are not walked where all that follows leads to the same state.
const MANY_TOKENS: usize = 5_000;
/// So much is kept of each kind.
const MAX_KEPT: usize = 256;

/// What is known of the tokens of wide lexemes, by their rows, and of blanks.
#[derive(Default)]
pub(super) struct SureRows {
    rows: FxHashMap<usize, SureRow>,
    blanks: FxHashMap<ByteSet, Blanks>,
    /// By the suffixes with which tokens leave.
    leaving: FxHashMap<usize, LeavingAt>,
    /// By place and token before it.
    fitting_blanks: FxHashMap<(Place, Option<u32>), Arc<[FittingBlank]>>,
}

struct SureRow {
    /// Kept, so that no other row gets its place in memory.
    _row: Arc<Row>,
    /// Those that do wherever they come.
    anywhere: TokenSet,
    /// The others that the lexeme reads.
    others: Vec<u32>,
    /// What is known at a place.
    at: FxHashMap<Place, Arc<AtPlace>>,
}

/// What is known of the tokens of a lexeme at a place, whatever follows the lexeme.
#[derive(Clone)]
pub(super) struct AtPlace {
    /// Those that surely lead on.
    pub sure: TokenSet,
    /// Those that do not in some way.
    pub dead: DeadEnds,
}

/// The row of a wide thread, and the tokens behind which its lexeme surely leads on.
pub(super) struct SureTokens {
    pub row: Arc<Row>,
    pub known: Arc<AtPlace>,
}

/// Tokens that leave a lexeme with the same bytes behind it, and that are alike to the tokenizer behind them.
pub(super) struct Leaving {
    /// See [`Exits::all_ways`].
    pub ways: Vec<(u32, u32)>,
}

/// By place, of the lexemes that end with the same byte.
struct LeavingAt {
    /// Kept, so that no other suffixes get their place in memory.
    _row: Arc<Row>,
    at: FxHashMap<Place, Arc<Vec<Leaving>>>,
}

impl SureRows {
    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let set = |tokens: &TokenSet| tokens.words().len() * 4;
        let row = |row: &SureRow| set(&row.anywhere) * (1 + row.at.len()) + row.others.len() * 4;
        let blanks = self.blanks.values().map(|blanks| blanks.len() * 24);
        let leaving = self.leaving.values().flat_map(|leaving| leaving.at.values());
        let leaving = leaving.flat_map(|all| all.iter()).map(|alike| alike.ways.len() * 8 + size_of::<Leaving>());
        let fitting = self.fitting_blanks.values().map(|blanks| blanks.len() * size_of::<FittingBlank>());
        self.rows.values().map(row).sum::<usize>()
            + blanks.sum::<usize>()
            + fitting.sum::<usize>()
            + leaving.sum::<usize>()
    }

    /// What is known of blanks where these bytes, blanks among them, may follow.
    pub fn blanks(&mut self, next: ByteSet) -> &mut Blanks {
        if self.blanks.len() >= MAX_KEPT {
            self.blanks.clear();
        }
        self.blanks.entry(next).or_default()
    }

    /// The tokens of blanks that fit a place behind a token.
    pub fn fitting_blanks(
        &mut self,
        encoding: &Encoding,
        places: &mut Places,
        place: Place,
        before: Option<u32>,
    ) -> Arc<[FittingBlank]> {
        if let Some(known) = self.fitting_blanks.get(&(place, before)) {
            return known.clone();
        }
        if self.fitting_blanks.len() >= MAX_KEPT {
            self.fitting_blanks.clear();
        }
        let fitting = |&token: &u32| {
            let len = encoding.tokens().token_bytes(token)?.len();
            Some(FittingBlank { token, len, behind: encoding.follow(places, place, before, token)? })
        };
        let found: Arc<[FittingBlank]> = encoding.blank_tokens.iter().filter_map(fitting).collect();
        self.fitting_blanks.insert((place, before), found.clone());
        found
    }

    /// The tokens that leave through exits of a row, perhaps some more, but for those that may do so at several places.
    pub fn leaving(
        &mut self,
        encoding: &Encoding,
        places: &mut Places,
        (row, exits): (&Arc<Row>, &Exits),
        place: Place,
    ) -> Arc<Vec<Leaving>> {
        let suffixes = exits.suffixes();
        let name = std::ptr::from_ref(suffixes) as usize;
        if self.leaving.len() >= MAX_KEPT && !self.leaving.contains_key(&name) {
            self.leaving.clear();
        }
        let kept = self.leaving.entry(name);
        let kept = kept.or_insert_with(|| LeavingAt { _row: row.clone(), at: FxHashMap::default() });
        if kept.at.len() >= MAX_KEPT {
            kept.at.clear();
        }
        let leaving = kept.at.entry(place).or_insert_with(|| {
            let numbers = || (0..suffixes.len()).filter_map(|node| suffixes.entry_at(node));
            let mut times: FxHashMap<u32, usize> = FxHashMap::default();
            for &(_, token) in numbers().flat_map(|suffix| exits.all_ways(suffix)) {
                *times.entry(token).or_default() += 1;
            }
            let mut all: Vec<Leaving> = Vec::new();
            for suffix in numbers() {
                let mut alike: FxHashMap<([Option<Place>; 2], u32), usize> = FxHashMap::default();
                for &(way, token) in exits.all_ways(suffix).iter().filter(|(_, token)| times[token] == 1) {
                    let behind = [true, false].map(|apart| places.advance(encoding, place, token, apart));
                    let key = (behind, encoding.merging_number(token));
                    let group = *alike.entry(key).or_insert_with(|| {
                        all.push(Leaving { ways: Vec::new() });
                        all.len() - 1
                    });
                    all[group].ways.push((way, token));
                }
            }
            Arc::new(all)
        });
        leaving.clone()
    }

    /// Keeps what was found of a token within a lexeme at a place.
    pub fn add(&mut self, row: &Arc<Row>, place: Place, token: u32, answer: &Answer) {
        let Some(row) = self.rows.get_mut(&(Arc::as_ptr(row) as usize)) else { return };
        if row.others.binary_search(&token).is_ok()
            && let Some(known) = row.at.get_mut(&place)
        {
            let known = Arc::make_mut(known);
            known.dead.add(token, answer);
            // It is not asked again.
            known.sure.insert(token);
        }
    }
}

impl Run<'_> {
    /// The tokens of a wide thread behind which its lexeme surely leads on.
    pub(super) fn sure_tokens(
        &mut self,
        encoding: &Encoding,
        known: &mut Known,
        thread: Entry,
        place: Place,
    ) -> Result<Option<SureTokens>, EngineError> {
        if thread == Entry::BOTTOM || offers_tokens(thread) {
            return Ok(None);
        }
        let vocabulary = encoding.tokens();
        let fork = self.machine.fork(ForkId(thread.head)).clone();
        let Automaton::Dfa(dfa) = fork.automaton else { return Ok(None) };
        let Some(here) = self.row_of(vocabulary, thread, &fork)? else { return Ok(None) };
        if here.row.count <= MAX_LISTED {
            return Ok(None);
        }
        let name = Arc::as_ptr(&here.row) as usize;
        if !known.sure.rows.contains_key(&name) {
            if known.sure.rows.len() >= MAX_KEPT {
                known.sure.rows.clear();
            }
            let row =
                sure_row(self.lexicon, encoding, &mut known.anywhere, &fork, (dfa, thread.state), here.row.clone())?;
            known.sure.rows.insert(name, row);
        }
        let row = known.sure.rows.get_mut(&name).expect("it was there or is there now");
        if let Some(known) = row.at.get(&place) {
            return Ok(Some(SureTokens { row: here.row, known: known.clone() }));
        }
        let mut tokens = row.anywhere.clone();
        let mut within = Within { encoding, places: &mut known.places, lexicon: self.lexicon, fork: &fork, dfa };
        for &token in &row.others {
            if within.leads_on(thread.state, place, token)? {
                tokens.insert(token);
            }
        }
        if row.at.len() >= MAX_KEPT {
            row.at.clear();
        }
        let known = Arc::new(AtPlace { sure: tokens, dead: DeadEnds::default() });
        row.at.insert(place, known.clone());
        Ok(Some(SureTokens { row: here.row, known }))
    }
}

/// A lexeme that tokens are read in.
struct Within<'a> {
    encoding: &'a Encoding,
    places: &'a mut Places,
    lexicon: &'a mut Lexicon,
    fork: &'a Fork,
    dfa: DfaId,
}

impl Within<'_> {
    /// Whether the lexeme surely goes on behind a token, from a state before it.
    fn leads_on(&mut self, mut state: u32, place: Place, token: u32) -> Result<bool, LimitExceeded> {
        // States are those of one automaton, rows belong to all that read the same.
        for &byte in self.encoding.tokens().token_bytes(token).unwrap_or_default() {
            state = self.fork.step(self.lexicon, state, byte)?.0;
            if state == StateId::DEAD.0 {
                return Ok(false);
            }
        }
        if state & IN_BLANKS != 0 {
            return Ok(false);
        }
        let merging = self.encoding.merging(token);
        let next = *self.lexicon.live_bytes(self.dfa, StateId(state))?;
        let mut before = None;
        for apart in [true, false] {
            let Some(behind) = self.places.advance(self.encoding, place, token, apart) else { continue };
            if before.replace(behind) == Some(behind) {
                continue;
            }
            let is_sure = !self.encoding.sure_bytes(self.places.cursor(behind), &merging, &next).is_empty();
            if !is_sure && !self.keeps_end(state, behind, token)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn keeps_end(&mut self, state: u32, behind: Place, token: u32) -> Result<bool, LimitExceeded> {
        let lexicon = RefCell::new(&mut *self.lexicon);
        let keeps = self.encoding.keeps_end(
            self.places,
            behind,
            token,
            state,
            &mut |state| lexicon.borrow_mut().live_bytes(self.dfa, StateId(state)).copied(),
            &mut |state, byte| {
                let next = lexicon.borrow_mut().step(self.dfa, StateId(state), byte)?.0;
                Ok((next != StateId::DEAD).then_some(next.0))
            },
        )?;
        Ok(keeps == Some(true))
    }
}

/// What is known of a row wherever it comes.
fn sure_row(
    lexicon: &mut Lexicon,
    encoding: &Encoding,
    known: &mut Anywhere,
    fork: &Fork,
    (dfa, state): (DfaId, u32),
    row: Arc<Row>,
) -> Result<SureRow, LimitExceeded> {
    let vocabulary = encoding.tokens();
    let trie = vocabulary.trie();
    let is_wide = state & IN_BLANKS == 0 && row.count > MANY_TOKENS;
    let mut anywhere = TokenSet::empty(vocabulary.vocab_size());
    let mut reached: Vec<(u32, ByteSet)> = Vec::new();
    if is_wide {
        // Nearly all tokens end where the same bytes may come as here; the others are looked at.
        let common = *lexicon.live_bytes(dfa, StateId(state))?;
        anywhere = TokenSet::clone(&known.before(encoding, &common));
        // By state: whether other bytes may come there, and the groups of bytes that lead back.
        let mut states: Vec<Option<(Option<ByteSet>, u32)>> = Vec::new();
        trie.walk_mask(
            state,
            true,
            |state, byte, node| {
                let next = fork.step(lexicon, state, byte)?.0;
                if next == StateId::DEAD.0 {
                    return Ok::<_, LimitExceeded>(None);
                }
                let at = next as usize;
                if at >= states.len() {
                    states.resize(at + 1, None);
                }
                let (other, same) = match states[at] {
                    Some(known) => known,
                    None => {
                        let live = *lexicon.live_bytes(dfa, StateId(next))?;
                        let same = if live == common { loops_of(lexicon, fork, next, &live)? } else { 0 };
                        *states[at].insert(((live != common).then_some(live), same))
                    }
                };
                if let Some(live) = other {
                    reached.extend(trie.entry_at(node).map(|token| (token, live)));
                }
                Ok(Some((next, same)))
            },
            anywhere.words_mut(),
        )?;
        reached.iter().for_each(|&(token, _)| anywhere.remove(token));
    } else {
        let mut states: Vec<(u32, u32)> = Vec::new();
        trie.walk::<_, LimitExceeded>(
            state,
            |state, byte, _| {
                let next = fork.step(lexicon, state, byte)?.0;
                Ok((next != StateId::DEAD.0).then_some(next))
            },
            |token, state| states.push((token, state)),
        )?;
        for (token, state) in states.into_iter().filter(|&(_, state)| state & IN_BLANKS == 0) {
            reached.push((token, *lexicon.live_bytes(dfa, StateId(state))?));
        }
    }
    for (token, live) in reached {
        if encoding.surely_goes_on_anywhere(token, &live) {
            anywhere.insert(token);
        }
    }
    let mut others = row.to_set(vocabulary.vocab_size());
    for (sure, other) in anywhere.words_mut().iter_mut().zip(others.words_mut()) {
        *sure &= *other;
        *other &= !*sure;
    }
    let is_blank = |token: &u32| state & IN_BLANKS != 0 && encoding.is_blank(*token);
    let others = others.iter().filter(|token| !is_blank(token)).collect();
    Ok(SureRow { _row: row, anywhere, others, at: FxHashMap::default() })
}

/// The groups of bytes that lead from a state to itself.
fn loops_of(lexicon: &mut Lexicon, fork: &Fork, state: u32, live: &ByteSet) -> Result<u32, LimitExceeded> {
    let mut same = ByteSet::EMPTY;
    for byte in live.iter() {
        if fork.step(lexicon, state, byte)?.0 == state {
            same.insert(byte);
        }
    }
    Ok(groups_within(same))
}
