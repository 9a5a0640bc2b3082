//! Rows of bits: which tokens fit a cursor, and which of them may follow a certain token.

use std::convert::Infallible;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::ByteSet;

use super::splitter::{DEAD, START, Splitter};
use super::{Cursor, Encoding};
use crate::tokenset::{self, TokenSet};

/// Bytes that rows may take.
const BUDGET: usize = 48 << 20;

/// So many cursors are remembered as met.
const MAX_MET: usize = 50_000;

/// So many characters behind a token are looked at, and so many ways to go on.
const MAX_CHARACTERS: usize = 3;
const MAX_TRIES: usize = 200;

/// Masks of fewer tokens are not worth a row.
const FEW_TOKENS: usize = 256;

/// The tokens that fit a cursor.
struct Fitting {
    /// Where no merge joins them with the token before.
    apart: TokenSet,
    /// Also where one does, because a piece ends between.
    anyway: TokenSet,
    /// By the token before.
    behind: FxHashMap<u32, Arc<[u32]>>,
}

/// How the splitter reads a token, once as a part of the piece before and once as the beginning of another one.
#[derive(Clone, Copy)]
struct Spot {
    /// Its state where the piece goes on; [`DEAD`] where it does not.
    same: u16,
    /// Its state where another piece begins.
    other: u16,
    /// Whether the piece before may not end before the token any more.
    moved: bool,
    /// Whether it has ended there.
    ended: bool,
    /// Whether a character was read.
    begun: bool,
    /// The bytes of a character that has begun, and how many there are.
    partial: [u8; 4],
    len: u8,
}

impl Spot {
    fn fits_apart(self) -> bool {
        self.same != DEAD || (self.ended && self.other != DEAD)
    }

    fn fits_anyway(self) -> bool {
        (self.same != DEAD && !self.moved) || (self.ended && self.other != DEAD)
    }

    #[inline]
    fn read(mut self, splitter: &Splitter, byte: u8) -> Option<Spot> {
        if byte < 128 {
            return if self.len == 0 { self.read_class(splitter, splitter.class(char::from(byte))) } else { None };
        }
        self.partial[usize::from(self.len)] = byte;
        self.len += 1;
        let needed = match self.partial[0] {
            0xC2..0xE0 => 2,
            0xE0..0xF0 => 3,
            0xF0..0xF5 => 4,
            _ => return None,
        };
        if self.len < needed {
            return Some(self);
        }
        let character = std::str::from_utf8(&self.partial[..usize::from(self.len)]).ok()?.chars().next()?;
        (self.partial, self.len) = ([0; 4], 0);
        self.read_class(splitter, splitter.class(character))
    }

    #[inline]
    fn read_class(mut self, splitter: &Splitter, class: u8) -> Option<Spot> {
        if self.same != DEAD {
            let (next, ends) = splitter.step(self.same, class);
            self.moved |= ends && self.begun;
            self.ended = next == DEAD && !self.moved;
            self.moved |= next != DEAD && splitter.may_end(next);
            self.same = next;
        }
        if self.other != DEAD {
            self.other = splitter.step(self.other, class).0;
        }
        self.begun = true;
        (self.same != DEAD || (self.ended && self.other != DEAD)).then_some(self)
    }
}

/// The rows made so far, within a budget.
#[derive(Default)]
pub(super) struct Rows {
    fitting: FxHashMap<Cursor, Fitting>,
    /// Cursors with the token before each, at which a mask had few tokens.
    met: FxHashSet<(Cursor, Option<u32>)>,
    bytes: usize,
}

impl Rows {
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

/// Bytes behind which it is known beforehand how a text goes on, by what stands before them.
pub(super) struct Probes {
    /// By state of the splitter: the bytes that surely begin another piece.
    apart: Vec<ByteSet>,
    /// By state: the bytes that either do so or go on with the piece.
    plain: Vec<ByteSet>,
    /// The same by class of the character before, for all states that there are behind it.
    apart_behind: Vec<ByteSet>,
    plain_behind: Vec<ByteSet>,
}

impl Probes {
    pub fn new(splitter: Option<&Splitter>) -> Probes {
        let mut probes =
            Probes { apart: Vec::new(), plain: Vec::new(), apart_behind: Vec::new(), plain_behind: Vec::new() };
        let Some(splitter) = splitter else { return probes };
        let mut of = |state: u16| {
            let (mut apart, mut plain) = (ByteSet::EMPTY, ByteSet::EMPTY);
            for byte in 0..128u8 {
                if splitter.may_end(state) {
                    plain.insert(byte);
                    if splitter.step(state, splitter.class(char::from(byte))).0 == DEAD {
                        apart.insert(byte);
                    }
                }
            }
            (apart, plain)
        };
        (probes.apart, probes.plain) = (0..splitter.num_states() as u16).map(&mut of).unzip();
        for states in splitter.states_behind() {
            let all = |sets: &[ByteSet]| {
                states.iter().fold(ByteSet::ALL, |all, &state| all.intersect(&sets[usize::from(state)]))
            };
            let (apart, plain) = (all(&probes.apart), all(&probes.plain));
            probes.apart_behind.push(apart);
            probes.plain_behind.push(plain);
        }
        probes
    }
}

/// Whether a mask has so few tokens that they are tried one by one.
fn few(mask: &[u32]) -> bool {
    let mut left = FEW_TOKENS;
    mask.iter().all(|word| {
        left = left.saturating_sub(word.count_ones() as usize);
        left > 0
    })
}

impl Encoding {
    /// Takes out of a mask the tokens that do not fit a cursor behind a token. Says how many are left.
    pub fn keep_fitting(&self, cursor: &Cursor, before: Option<u32>, mask: &mut [u32]) -> usize {
        let is_narrow = few(mask) || (self.splits() && cursor.settled().is_none());
        if is_narrow && !self.comes_again(cursor, before) {
            let tokens: Vec<u32> = tokenset::iter(mask).collect();
            let refused = tokens.iter().filter(|&&token| self.follow(cursor, before, token).is_none());
            return tokens.len() - refused.map(|&token| tokenset::clear(mask, token)).count();
        }
        let row = self.row(cursor, before);
        let mut left = 0;
        for (word, fits) in mask.iter_mut().zip(row.iter()) {
            *word &= fits;
            left += word.count_ones() as usize;
        }
        left
    }

    /// Whether a cursor and a token before it were met before: then a row pays.
    fn comes_again(&self, cursor: &Cursor, before: Option<u32>) -> bool {
        let mut rows = self.rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if rows.met.len() > MAX_MET {
            rows.met.clear();
        }
        !rows.met.insert((cursor.for_row(), before))
    }

    /// Whether a token fits a cursor behind a token, with the cursor behind it.
    pub fn follow(&self, cursor: &Cursor, before: Option<u32>, token: u32) -> Option<Cursor> {
        cursor.advance(self, token, self.stay_apart(before, token))
    }

    fn row(&self, cursor: &Cursor, before: Option<u32>) -> Arc<[u32]> {
        let mut rows = self.rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let cursor = cursor.for_row();
        let before = before.unwrap_or(u32::MAX);
        if let Some(row) = rows.fitting.get(&cursor).and_then(|fitting| fitting.behind.get(&before)) {
            return row.clone();
        }
        if rows.bytes > BUDGET {
            *rows = Rows::default();
        }
        let words = self.tokens().mask_words() * 4;
        if !rows.fitting.contains_key(&cursor) {
            rows.fitting.insert(cursor.clone(), self.fitting(&cursor));
            rows.bytes += 2 * words;
        }
        rows.bytes += words;
        let fitting = rows.fitting.get_mut(&cursor).expect("it was there or is there now");
        let mut row: Arc<[u32]> = fitting.apart.words().into();
        let words = Arc::get_mut(&mut row).expect("nobody else has the row yet");
        if before != u32::MAX {
            self.merges.clear_merging(before, words);
        }
        words.iter_mut().zip(fitting.anyway.words()).for_each(|(word, anyway)| *word |= anyway);
        fitting.behind.insert(before, row.clone());
        row
    }

    fn fitting(&self, cursor: &Cursor) -> Fitting {
        let size = self.tokens().vocab_size();
        let (mut apart, mut anyway) = (TokenSet::empty(size), TokenSet::empty(size));
        let mut note = |token: u32, spot: Spot| {
            let Some(kind) = self.kind(token) else { return };
            if !kind.is_whole && spot.fits_apart() {
                apart.insert(token);
            }
            if spot.fits_anyway() {
                anyway.insert(token);
            }
        };
        match (&self.splitter, cursor.settled()) {
            (Some(splitter), Some(state)) => {
                self.walk(splitter, state, &mut note);
                let bytes = self.by_characters().then_some(&self.merges.pairs.bytes);
                for &token in bytes.into_iter().flatten() {
                    tokenset::clear(apart.words_mut(), token);
                    tokenset::clear(anyway.words_mut(), token);
                    self.try_token(cursor, token, &mut apart, &mut anyway);
                }
            }
            _ => (0..size as u32).for_each(|token| self.try_token(cursor, token, &mut apart, &mut anyway)),
        }
        Fitting { apart, anyway, behind: FxHashMap::default() }
    }

    /// The slow twin of [`Encoding::walk`].
    fn try_token(&self, cursor: &Cursor, token: u32, apart: &mut TokenSet, anyway: &mut TokenSet) {
        let Some(kind) = self.kind(token) else { return };
        if !kind.is_whole && cursor.advance(self, token, true).is_some() {
            apart.insert(token);
        }
        if cursor.advance(self, token, false).is_some() {
            anyway.insert(token);
        }
    }

    /// Reads every token behind a place where the splitter is in a state and the piece may end.
    fn walk(&self, splitter: &Splitter, state: u16, note: &mut impl FnMut(u32, Spot)) {
        let tokens = self.tokens();
        let start =
            Spot { same: state, other: START, moved: false, ended: false, begun: false, partial: [0; 4], len: 0 };
        let mut found: Vec<(u32, Spot)> = Vec::new();
        let Ok(()) = tokens.trie().walk::<_, Infallible>(
            start,
            |spot, byte, _| Ok(spot.read(splitter, byte)),
            |token, spot| found.push((token, spot)),
        );
        let first: FxHashMap<u32, Spot> = found
            .iter()
            .filter(|(token, _)| !tokens.duplicates().is_empty() && !tokens.same_bytes(*token).is_empty())
            .copied()
            .collect();
        found.into_iter().for_each(|(token, spot)| note(token, spot));
        for (token, others) in tokens.duplicates() {
            if let Some(&spot) = first.get(token) {
                others.iter().for_each(|&other| note(other, spot));
            }
        }
    }

    /// Those of some bytes behind which a token surely keeps its end, whatever the rest of the text is.
    pub(super) fn sure_bytes(&self, cursor: &Cursor, token: u32, bytes: &ByteSet) -> ByteSet {
        let free = bytes.intersect(&self.merging(token).complement());
        if cursor.within_character() {
            // Bytes that spell a character which has a token lead to nothing, so that is searched.
            let is_open = self.by_characters() || cursor.waits_for_ends() || cursor.may_become_whole();
            return if is_open { ByteSet::EMPTY } else { free };
        }
        if !self.splits() {
            return free;
        }
        let Some(state) = cursor.settled().map(usize::from) else { return ByteSet::EMPTY };
        let apart = bytes.intersect(&self.probes.apart[state]);
        if cursor.may_become_whole() {
            return apart;
        }
        apart.union(&free.intersect(&self.probes.plain[state]))
    }

    /// Whether a token surely keeps its end behind the next few characters of some text. What may come is told by `bytes`
    /// and `step`, from a state; characters that are not ASCII are left out. `None` where that does not tell.
    pub(super) fn keeps_end<S: Copy, E>(
        &self,
        cursor: &Cursor,
        token: u32,
        start: S,
        bytes: &mut impl FnMut(S) -> Result<ByteSet, E>,
        step: &mut impl FnMut(S, u8) -> Result<Option<S>, E>,
    ) -> Result<Option<bool>, E> {
        if !self.splits() || cursor.within_character() {
            return Ok(None);
        }
        let mut work: Vec<(S, Option<Cursor>, usize)> = vec![(start, None, 0)];
        let (mut tries, mut open) = (0, false);
        while let Some((state, probe, depth)) = work.pop() {
            // One byte of each class is enough, of each that merges with the token and that does not.
            let mut tried = [[false; 256]; 2];
            let may_come = bytes(state)?;
            open |= may_come.iter().any(|byte| byte >= 128);
            for byte in may_come.intersect(&ByteSet::range(0, 127)).iter() {
                let class = self.splitter().class(char::from(byte));
                let apart = probe.is_some() || !self.merging(token).contains(byte);
                if tried[usize::from(apart)][usize::from(class)] {
                    continue;
                }
                let Some(next) = step(state, byte)? else { continue };
                tried[usize::from(apart)][usize::from(class)] = true;
                tries += 1;
                // A byte that merges with the token may also begin one that does not.
                open |= !apart && cursor.probe(true).reads(self, char::from(byte)).is_some();
                let mut probe = probe.clone().unwrap_or_else(|| cursor.probe(apart));
                match probe.reads(self, char::from(byte)) {
                    Some(true) => return Ok(Some(true)),
                    Some(false) if depth < MAX_CHARACTERS && tries < MAX_TRIES => {
                        work.push((next, Some(probe), depth + 1))
                    }
                    Some(false) => open = true,
                    None => {}
                }
            }
        }
        Ok((!open).then_some(false))
    }

    /// Whether behind some of these bytes a token surely keeps its end, wherever it stands.
    pub(super) fn surely_goes_on_anywhere(&self, token: u32, bytes: &ByteSet) -> bool {
        let Some(spelled) = self.tokens().token_bytes(token) else { return false };
        let free = self.merging(token).complement();
        let start = spelled.len().saturating_sub(4);
        let ends = (start..spelled.len()).rev().find(|&at| spelled[at] & 0xC0 != 0x80);
        let last = ends.and_then(|at| std::str::from_utf8(&spelled[at..]).ok()?.chars().next());
        let Some(last) = last else { return !self.by_characters() && !bytes.intersect(&free).is_empty() };
        if !self.splits() {
            return !bytes.intersect(&free).is_empty();
        }
        let class = usize::from(self.splitter().class(last));
        !bytes.intersect(&self.probes.apart_behind[class]).is_empty()
            || !bytes.intersect(&self.probes.plain_behind[class]).intersect(&free).is_empty()
    }
}
