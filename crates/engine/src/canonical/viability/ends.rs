//! Whether a token keeps its end in any context: what the next bytes decide, without looking at the next tokens.
//!
//! A byte settles the end of a token if it begins another piece in any case, or if no merge joins the token with it.
//! The settling bytes are tabulated by state of the pre-tokenizer, and for whole vocabularies by the bytes that may
//! come.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;
use stencilm_support::{BUDGET, Bounded, MANY};

use crate::canonical::cursor::state::Cursor;
use crate::canonical::cursor::table::{CursorId, Cursors, MAX_CHARACTERS, Shown};
use crate::canonical::encoder::facts::Encoder;
use crate::canonical::pretokenizer::suffixes::{Behind, States};
use crate::switches::Switch;
use crate::vocabulary::token_set::{BITS, TokenSet};

/// By the bytes that may come, the tokens that keep their ends before them in any context.
#[derive(Default)]
pub(crate) struct Anywhere {
    sets: Bounded<ByteSet, Arc<TokenSet>>,
    after: Behind,
    /// One [`Ending`] for each number. Tokens with equal endings are in the same sets.
    examples: Vec<Ending>,
    /// The number of each token's ending, and the same in the order of category strings, in which they are asked for.
    endings: Vec<u32>,
    by_category_string: Vec<u32>,
    /// Sets of bytes, each with the endings that keep their ends before them; `None` where not computed yet.
    judged: Vec<(ByteSet, Vec<Option<bool>>)>,
    numbers: FxHashMap<ByteSet, usize>,
}

impl Anywhere {
    /// The tokens that keep their ends in any context before some of these bytes.
    pub fn before(&mut self, encoding: &Encoder, bytes: &ByteSet) -> Arc<TokenSet> {
        self.lay_out(encoding);
        if let Some(known) = self.sets.get(bytes).filter(|_| Switch::CanonicalJudgedKept.is_on()) {
            return known.clone();
        }
        let size = encoding.tokens().vocab_size();
        let Anywhere { examples, after, .. } = &*self;
        // As the top bits of words, so that a word of tokens can be gathered by shifts.
        let keeps_end: Vec<u32> = examples
            .iter()
            .map(|&ending| u32::from(encoding.always_keeps_end_before(after, ending, bytes)) << (BITS - 1))
            .collect();
        let mut tokens = TokenSet::empty(size);
        for (word, endings) in tokens.words_mut().iter_mut().zip(self.endings.chunks(BITS as usize)) {
            let mut gathered = 0;
            for &ending in endings {
                gathered = gathered >> 1 | keeps_end[ending as usize];
            }
            *word = gathered >> (BITS as usize - endings.len());
        }
        let tokens = Arc::new(tokens);
        self.sets.insert(*bytes, tokens.clone(), tokens.memory_bytes());
        tokens
    }

    /// Prepares for questions about single tokens.
    pub fn begin(&mut self, encoding: &Encoder) {
        self.lay_out(encoding);
        if self.judged.len() * self.examples.len() > BUDGET {
            (self.judged, self.numbers) = Default::default();
        }
    }

    /// The number of a set of bytes.
    pub fn number(&mut self, bytes: &ByteSet) -> usize {
        *self.numbers.entry(*bytes).or_insert_with(|| {
            self.judged.push((*bytes, vec![None; self.examples.len()]));
            self.judged.len() - 1
        })
    }

    /// Whether a token keeps its end in any context before the bytes with this number.
    #[inline]
    pub fn always_keeps_end(&mut self, encoding: &Encoder, number: usize, token: u32) -> bool {
        let ending = self.endings[token as usize] as usize;
        let (bytes, known) = &mut self.judged[number];
        let (after, examples) = (&self.after, &self.examples);
        *known[ending].get_or_insert_with(|| encoding.always_keeps_end_before(after, examples[ending], bytes))
    }

    /// The same for adjacent tokens in the order of their category strings, starting at an index: adds those that keep
    /// their ends to one set and the others to another one.
    pub fn sort_category_strings(
        &mut self,
        encoding: &Encoder,
        number: usize,
        (first, tokens): (usize, &[u32]),
        always: &mut TokenSet,
        perhaps: &mut TokenSet,
    ) {
        let Anywhere { by_category_string, judged, examples, after, .. } = self;
        let (bytes, known) = &mut judged[number];
        for (&token, &ending) in tokens.iter().zip(&by_category_string[first..]) {
            let ending = ending as usize;
            let keeps_end =
                *known[ending].get_or_insert_with(|| encoding.always_keeps_end_before(after, examples[ending], bytes));
            // The answers come in no predictable order, so no branch depends on them.
            let (word, bit) = ((token / BITS) as usize, token % BITS);
            always.words_mut()[word] |= u32::from(keeps_end) << bit;
            perhaps.words_mut()[word] |= u32::from(!keeps_end) << bit;
        }
    }

    /// Groups the tokens by their endings.
    pub fn lay_out(&mut self, encoding: &Encoder) {
        if !self.endings.is_empty() {
            return;
        }
        let size = encoding.tokens().vocab_size() as u32;
        let mut numbers = FxHashMap::default();
        for token in 0..size {
            let ending = encoding.ending(&mut self.after, token);
            let next = self.examples.len() as u32;
            self.endings.push(*numbers.entry(ending).or_insert_with(|| {
                self.examples.push(ending);
                next
            }));
        }
        let category_trie = encoding.tokens().category_trie();
        self.by_category_string =
            category_trie.all_tokens().iter().map(|&token| self.endings[token as usize]).collect();
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.sets.memory_bytes()
            + (self.endings.len() + self.by_category_string.len() + self.examples.len() * 3) * 4
            + self.judged.len() * self.examples.len()
            + self.after.memory_bytes()
    }
}

/// What decides whether a token keeps its end in any context: the possible states after it, and what it merges with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Ending {
    /// It has no bytes.
    Nothing,
    WithinCharacter {
        merging: u32,
    },
    Character {
        states: Option<States>,
        merging: u32,
    },
}

impl Encoder {
    /// Those of some bytes that settle the end of a token, whatever the rest of the text is.
    pub(crate) fn settling_bytes(&self, cursor: &Cursor, token: u32, bytes: &ByteSet) -> ByteSet {
        let free = bytes.intersect(&self.merges.merging(token).complement());
        if cursor.within_character() {
            // The bytes may belong to a character that has a token, and then no token continues there, so this has to
            // be searched. And where texts are cut into pieces, the character may begin one, within which no boundary
            // is known to be allowed.
            let is_open = self.splits() || self.by_characters() || cursor.waits_for_ends() || cursor.may_become_whole();
            return if is_open { ByteSet::EMPTY } else { free };
        }
        if !self.splits() {
            return free;
        }
        let Some(state) = cursor.settled() else { return ByteSet::EMPTY };
        let (new_piece, plain) = self.pretokenizer().after(state);
        let new_piece = bytes.intersect(new_piece);
        if cursor.may_become_whole() {
            return new_piece;
        }
        new_piece.union(&free.intersect(plain))
    }

    /// Whether a token certainly keeps its end after the next few characters of some text. `bytes` and `step` tell what
    /// may come from a state; characters beyond ASCII are left out. `None` where this does not decide.
    pub(crate) fn keeps_end<S: Copy, E>(
        &self,
        cursors: &mut Cursors,
        cursor: CursorId,
        token: u32,
        start: S,
        bytes: &mut impl FnMut(S) -> Result<ByteSet, E>,
        step: &mut impl FnMut(S, u8) -> Result<Option<S>, E>,
    ) -> Result<Option<bool>, E> {
        if !self.splits() || cursors.key(cursor).within_character() {
            return Ok(None);
        }
        // A text that showed it elsewhere often may come here, too.
        let key = (cursor, self.merges.merging_number(token));
        if let Some(&shown) = cursors.shown.get(&key).filter(|_| Switch::CanonicalShown.is_on()) {
            let mut here = Some(start);
            for &byte in shown.text() {
                let Some(state) = here else { break };
                here = if bytes(state)?.contains(byte) { step(state, byte)? } else { None };
            }
            if here.is_some() {
                return Ok(Some(true));
            }
        }
        let merging = self.merges.merging(token);
        let mut work: Vec<(S, Option<CursorId>, Shown)> = vec![(start, None, Shown::default())];
        let (mut tries, mut open) = (0, false);
        while let Some((state, probe, text)) = work.pop() {
            // One byte of each class is enough, separately for bytes that merge with the token and bytes that do not.
            let mut tried = [ByteSet::EMPTY; 2];
            let may_come = bytes(state)?;
            open |= may_come.intersect(&ByteSet::ASCII) != may_come;
            for byte in may_come.intersect(&ByteSet::ASCII).iter() {
                let class = self.pretokenizer().class(char::from(byte));
                let unmerged = probe.is_some() || !merging.contains(byte);
                if tried[usize::from(unmerged)].contains(class) {
                    continue;
                }
                let Some(next) = step(state, byte)? else { continue };
                tried[usize::from(unmerged)].insert(class);
                tries += 1;
                let mut read = |unmerged: bool| {
                    let from = probe.or_else(|| cursors.probe(self, cursor, unmerged))?;
                    cursors.reads(self, from, byte)
                };
                // A byte that merges with the token may also begin a token that does not.
                open |= !unmerged && read(true).is_some();
                match read(unmerged) {
                    Some((_, true)) => {
                        cursors.shown.insert(key, text.with(byte), 0);
                        return Ok(Some(true));
                    }
                    Some((read, false)) if text.text().len() < MAX_CHARACTERS && tries < MANY => {
                        work.push((next, Some(read), text.with(byte)))
                    }
                    Some(_) => open = true,
                    None => {}
                }
            }
        }
        Ok((!open).then_some(false))
    }

    /// Whether a token keeps its end in any context after some of these bytes.
    #[cfg(test)]
    pub(crate) fn keeps_end_anywhere(&self, token: u32, bytes: &ByteSet) -> bool {
        let mut after = Behind::default();
        let ending = self.ending(&mut after, token);
        self.always_keeps_end_before(&after, ending, bytes)
    }

    fn ending(&self, after: &mut Behind, token: u32) -> Ending {
        let Some(spelled) = self.tokens().token_bytes(token) else { return Ending::Nothing };
        let merging = self.merges.merging_number(token);
        if last_character(spelled).is_none() {
            return Ending::WithinCharacter { merging };
        }
        let states = self.pretokenizer.as_ref().map(|pretokenizer| after.of(pretokenizer, spelled));
        Ending::Character { states, merging }
    }

    fn always_keeps_end_before(&self, after: &Behind, ending: Ending, bytes: &ByteSet) -> bool {
        let free = |merging: u32| bytes.intersect(&self.merges.merging_of(merging).complement());
        match ending {
            Ending::Nothing => false,
            // There are hundreds of tokens that end within a character, and nearly all of them are viable; they are not
            // searched.
            Ending::WithinCharacter { merging } => !self.by_characters() && !free(merging).is_empty(),
            Ending::Character { states: None, merging } => !free(merging).is_empty(),
            Ending::Character { states: Some(states), merging } => {
                let (new_piece, plain) = after.after(states);
                !bytes.intersect(new_piece).is_empty() || !free(merging).intersect(plain).is_empty()
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
