//! Whether a token surely keeps its end: what the next bytes tell of it, without a look at the tokens that come.
//!
//! A byte that begins another piece in any case, or with which no merge joins the token, settles its end. Which bytes do so is
//! laid out by state of the pre-tokenizer, and for whole vocabularies by the bytes that may come.

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;

use super::splitter::{DEAD, PreTokenizer};
use crate::canonical::cursor::table::{Place, Places};
use crate::canonical::viability::suffixes::{Behind, States};
use crate::canonical::{Cursor, Encoding};
use crate::switches::Switch;
use crate::vocabulary::token_set::{BITS, TokenSet};

/// So many characters behind a token are looked at, and so many ways to go on.
const MAX_CHARACTERS: usize = 3;
const MAX_TRIES: usize = 200;
/// So many sets of tokens are kept.
const MAX_ANYWHERE: usize = 100;

/// Bytes behind which it is known beforehand how a text goes on, by what stands before them.
pub(crate) struct Probes {
    /// By state of the pre-tokenizer: the bytes that surely begin another piece.
    pub apart: Vec<ByteSet>,
    /// By state: the bytes that either do so or go on with the piece.
    pub plain: Vec<ByteSet>,
}

/// A text behind a token that shows that it keeps its end.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shown {
    bytes: [u8; MAX_CHARACTERS + 1],
    len: u8,
}

impl Shown {
    fn text(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    fn with(mut self, byte: u8) -> Shown {
        self.bytes[usize::from(self.len)] = byte;
        self.len += 1;
        self
    }
}

/// Which tokens surely keep their ends wherever they stand, by the bytes that may come.
#[derive(Default)]
pub(crate) struct Anywhere {
    behind: Behind,
    /// What decides of the tokens of each kind.
    examples: Vec<Ending>,
    /// By token the number of its kind; the same in the order of shapes, in which they are asked for.
    kinds: Vec<u32>,
    in_shapes: Vec<u32>,
    /// The sets of bytes, and by their numbers which kinds of tokens surely keep their ends, as far as it was asked for.
    numbers: FxHashMap<ByteSet, usize>,
    judged: Vec<(ByteSet, Box<[Option<bool>]>)>,
}

impl Anywhere {
    /// Begins to judge tokens. Numbers of sets of bytes are good until this is done again.
    pub fn begin(&mut self, encoding: &Encoding) {
        if self.kinds.is_empty() {
            self.sort_by_kinds(encoding);
        }
        if self.judged.len() >= MAX_ANYWHERE {
            (self.judged, self.numbers) = Default::default();
        }
    }

    fn sort_by_kinds(&mut self, encoding: &Encoding) {
        let mut numbers = FxHashMap::default();
        for token in 0..encoding.tokens().vocab_size() as u32 {
            let ending = encoding.ending(&mut self.behind, token);
            let next = self.examples.len() as u32;
            self.kinds.push(*numbers.entry(ending).or_insert_with(|| {
                self.examples.push(ending);
                next
            }));
        }
        let shapes = encoding.tokens().shapes();
        self.in_shapes = shapes.all_tokens().iter().map(|&token| self.kinds[token as usize]).collect();
    }

    /// The number of a set of bytes.
    pub fn number(&mut self, bytes: &ByteSet) -> usize {
        *self.numbers.entry(*bytes).or_insert_with(|| {
            self.judged.push((*bytes, vec![None; self.examples.len()].into()));
            self.judged.len() - 1
        })
    }

    /// Adds those of some tokens to a set that surely keep their ends before the bytes of a number. Tokens may be told with the
    /// position of the first one in the order of shapes.
    #[inline]
    pub fn add_sure(
        &mut self,
        encoding: &Encoding,
        number: usize,
        (tokens, first): (&[u32], Option<usize>),
        set: &mut TokenSet,
    ) {
        let Anywhere { kinds, in_shapes, judged, examples, behind, .. } = self;
        let (bytes, known) = &mut judged[number];
        let words = set.words_mut();
        let mut judge = |token: u32, kind: u32| {
            let kind = kind as usize;
            let is_sure =
                *known[kind].get_or_insert_with(|| encoding.surely_goes_on_behind(behind, examples[kind], bytes));
            // There is no order in what is sure, so no branch is taken by it.
            words[(token / BITS) as usize] |= u32::from(is_sure) << (token % BITS);
        };
        match first {
            Some(first) => tokens.iter().zip(&in_shapes[first..]).for_each(|(&token, &kind)| judge(token, kind)),
            None => tokens.iter().for_each(|&token| judge(token, kinds[token as usize])),
        }
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        (self.kinds.len() + self.in_shapes.len() + self.examples.len() * 3) * 4
            + self.judged.len() * (self.examples.len() + 80)
            + self.behind.memory_bytes()
    }
}

/// What decides whether a token keeps its end wherever it stands: the states behind it, and what it merges with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Ending {
    /// It spells nothing.
    Nothing,
    WithinCharacter {
        merging: u32,
    },
    Character {
        states: Option<States>,
        merging: u32,
    },
}

impl Probes {
    pub fn new(pretokenizer: Option<&PreTokenizer>) -> Probes {
        let Some(pretokenizer) = pretokenizer else { return Probes { apart: Vec::new(), plain: Vec::new() } };
        let of = |state: u16| {
            let (mut apart, mut plain) = (ByteSet::EMPTY, ByteSet::EMPTY);
            for byte in 0..128u8 {
                if pretokenizer.may_end(state) {
                    plain.insert(byte);
                    if pretokenizer.step(state, pretokenizer.class(char::from(byte))).0 == DEAD {
                        apart.insert(byte);
                    }
                }
            }
            (apart, plain)
        };
        let (apart, plain) = (0..pretokenizer.num_states() as u16).map(of).unzip();
        Probes { apart, plain }
    }
}

impl Encoding {
    /// Those of some bytes behind which a token surely keeps its end, whatever the rest of the text is. `merging` are the
    /// first bytes of what merges join with the token.
    pub(crate) fn sure_bytes(&self, cursor: &Cursor, merging: &ByteSet, bytes: &ByteSet) -> ByteSet {
        let free = bytes.intersect(&merging.complement());
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
    pub(crate) fn keeps_end<S: Copy, E>(
        &self,
        places: &mut Places,
        place: Place,
        token: u32,
        start: S,
        bytes: &mut impl FnMut(S) -> Result<ByteSet, E>,
        step: &mut impl FnMut(S, u8) -> Result<Option<S>, E>,
    ) -> Result<Option<bool>, E> {
        if !self.splits() || places.cursor(place).within_character() {
            return Ok(None);
        }
        // What showed it elsewhere often comes here too.
        let key = (place, self.merging_number(token));
        if let Some(&shown) = places.shown.get(&key).filter(|_| Switch::CanonicalShown.is_on()) {
            let mut here = Some(start);
            for &byte in shown.text() {
                let Some(state) = here else { break };
                here = if bytes(state)?.contains(byte) { step(state, byte)? } else { None };
            }
            if here.is_some() {
                return Ok(Some(true));
            }
        }
        let merging = self.merging(token);
        let mut work: Vec<(S, Option<Place>, Shown)> = vec![(start, None, Shown::default())];
        let (mut tries, mut open) = (0, false);
        while let Some((state, probe, text)) = work.pop() {
            // One byte of each class is enough, of each that merges with the token and that does not.
            let mut tried = [ByteSet::EMPTY; 2];
            let may_come = bytes(state)?;
            open |= may_come.intersect(&ByteSet::ASCII) != may_come;
            for byte in may_come.intersect(&ByteSet::ASCII).iter() {
                let class = self.pretokenizer().class(char::from(byte));
                let apart = probe.is_some() || !merging.contains(byte);
                if tried[usize::from(apart)].contains(class) {
                    continue;
                }
                let Some(next) = step(state, byte)? else { continue };
                tried[usize::from(apart)].insert(class);
                tries += 1;
                let mut read = |apart: bool| {
                    let from = probe.or_else(|| places.probe(self, place, apart))?;
                    places.reads(self, from, byte)
                };
                // A byte that merges with the token may also begin one that does not.
                open |= !apart && read(true).is_some();
                match read(apart) {
                    Some((_, true)) => {
                        places.shown.insert(key, text.with(byte));
                        return Ok(Some(true));
                    }
                    Some((read, false)) if text.text().len() < MAX_CHARACTERS && tries < MAX_TRIES => {
                        work.push((next, Some(read), text.with(byte)))
                    }
                    Some(_) => open = true,
                    None => {}
                }
            }
        }
        Ok((!open).then_some(false))
    }

    /// Whether behind some of these bytes a token surely keeps its end, wherever it stands.
    #[cfg(test)]
    pub(crate) fn surely_goes_on_anywhere(&self, token: u32, bytes: &ByteSet) -> bool {
        let mut behind = Behind::default();
        let ending = self.ending(&mut behind, token);
        self.surely_goes_on_behind(&behind, ending, bytes)
    }

    fn ending(&self, behind: &mut Behind, token: u32) -> Ending {
        let Some(spelled) = self.tokens().token_bytes(token) else { return Ending::Nothing };
        let merging = self.merging_number(token);
        if last_character(spelled).is_none() {
            return Ending::WithinCharacter { merging };
        }
        let states = self.pretokenizer.as_ref().map(|pretokenizer| behind.of(pretokenizer, &self.probes, spelled));
        Ending::Character { states, merging }
    }

    fn surely_goes_on_behind(&self, behind: &Behind, ending: Ending, bytes: &ByteSet) -> bool {
        let free = |merging: u32| bytes.intersect(&self.merging_of(merging).complement());
        match ending {
            Ending::Nothing => false,
            // Tokens that end within a character are hundreds, of which nearly all go on; they are not searched.
            Ending::WithinCharacter { merging } => !self.by_characters() && !free(merging).is_empty(),
            Ending::Character { states: None, merging } => !free(merging).is_empty(),
            Ending::Character { states: Some(states), merging } => {
                !bytes.intersect(behind.apart(states)).is_empty()
                    || !free(merging).intersect(behind.plain(states)).is_empty()
            }
        }
    }
}

/// The character that some bytes end with; `None` where they end within one.
pub(crate) fn last_character(bytes: &[u8]) -> Option<char> {
    let start = bytes.len().saturating_sub(4);
    let at = (start..bytes.len()).rev().find(|&at| bytes[at] & 0xC0 != 0x80)?;
    std::str::from_utf8(&bytes[at..]).ok()?.chars().next()
}
