//! Categories of characters, and how an automaton reads a character of each: patterns seldom distinguish two of one
//! category.

use std::sync::LazyLock;

use regex_syntax::utf8::{Utf8Sequence, Utf8Sequences};
use stencilm_regex::StateId;
use stencilm_support::LimitExceeded;

use crate::vocabulary::automaton::Automaton;

/// The number of categories.
pub(crate) const CATEGORIES: usize = 43;

/// Characters beyond ASCII that some regular expression takes for whitespace.
pub(crate) const WHITESPACE: u8 = 40;
/// Other characters beyond ASCII.
pub(crate) const OTHER: u8 = 41;
/// The first byte of a character beyond ASCII, complete or not. This is no category of characters but a step on the way
/// to one.
pub(crate) const HIGH: u8 = 42;

/// The category of an ASCII character: small letters, capital letters and digits are one category each, control
/// characters except three are another, and every other character is its own.
pub(crate) const fn category_of(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        b'\t' => 3,
        b'\n' => 4,
        b'\r' => 5,
        b' '..=b'/' => 7 + byte - b' ',
        b':'..=b'@' => 23 + byte - b':',
        b'['..=b'`' => 30 + byte - b'[',
        b'{'..=b'~' => 36 + byte - b'{',
        0x00..=0x1F | 0x7F => 6,
        0x80.. => HIGH,
    }
}

/// Unicode's White_Space beyond ASCII, and what ECMAScript counts as whitespace in addition.
const WHITESPACE_RANGES: [(u32, u32); 10] = [
    (0x85, 0x85),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
    // A sentinel after the last character.
    (0x11_0000, 0x11_0000),
];

/// The category of a character beyond ASCII.
pub(crate) fn category_beyond_ascii(character: u32) -> u8 {
    if WHITESPACE_RANGES.iter().any(|&(first, last)| (first..=last).contains(&character)) { WHITESPACE } else { OTHER }
}

/// The byte sequences of characters beyond ASCII, by category: whitespace, and the others.
static BEYOND_ASCII: LazyLock<[Vec<Utf8Sequence>; 2]> = LazyLock::new(|| {
    let character = |code| char::from_u32(code).expect("no bound is a surrogate");
    let bytes = |first, last| Utf8Sequences::new(character(first), character(last));
    let mut others = Vec::new();
    let mut next = 0x80;
    for (first, last) in WHITESPACE_RANGES {
        if next < first {
            others.extend(bytes(next, first - 1));
        }
        next = last + 1;
    }
    let whitespace =
        WHITESPACE_RANGES[..WHITESPACE_RANGES.len() - 1].iter().flat_map(|&(first, last)| bytes(first, last));
    [whitespace.collect(), others]
});

/// Where the characters of a category lead from a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Read {
    /// None of them can be read.
    Dead,
    /// All of them lead to this state; the flag says whether a match ends there.
    To(StateId, bool),
    /// They lead to different states, or a match ends within a character.
    Mixed,
}

/// The entry is not computed yet.
const UNKNOWN: u32 = u32::MAX;
/// See [`Read::Mixed`].
const MIXED: u32 = u32::MAX - 1;
/// A match ends within a character.
const WITHIN: u32 = u32::MAX - 2;
/// Set where a match ends.
const ACCEPTS: u32 = 1 << 31;

/// Sets of characters, as the possible first bytes, second bytes, and so on.
type Bytes = Vec<Vec<u8>>;

/// An automaton read by categories of characters.
pub(crate) struct Categories {
    /// For each category of ASCII, the bytes that represent it in the automaton.
    bytes: Vec<Vec<u8>>,
    /// The same for every byte of the categories beyond ASCII, once it was needed.
    beyond: Option<[Vec<Bytes>; 2]>,
    /// By state and category, the state that they lead to.
    table: Vec<u32>,
}

impl Categories {
    /// The categories for an automaton.
    pub fn new(automaton: &impl Automaton) -> Categories {
        let mut bytes: Vec<Vec<u8>> = vec![Vec::new(); CATEGORIES];
        for byte in 0..0x80 {
            add(automaton, &mut bytes[usize::from(category_of(byte))], byte);
        }
        Categories { bytes, beyond: None, table: Vec::new() }
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.table.len() * 4
    }

    /// Where the characters of a category lead. [`HIGH`] leaves the automaton in its state.
    #[inline]
    pub fn read(
        &mut self,
        automaton: &mut impl Automaton,
        state: StateId,
        category: u8,
    ) -> Result<Read, LimitExceeded> {
        let next = self.known(automaton, state, category)?;
        Ok(match next {
            MIXED | WITHIN => Read::Mixed,
            0 => Read::Dead,
            _ => Read::To(StateId(next & !ACCEPTS), next & ACCEPTS != 0),
        })
    }

    #[inline]
    fn known(&mut self, automaton: &mut impl Automaton, state: StateId, category: u8) -> Result<u32, LimitExceeded> {
        let cell = state.0 as usize * CATEGORIES + usize::from(category);
        match self.table.get(cell) {
            Some(&next) if next != UNKNOWN => Ok(next),
            _ => self.look_up(automaton, state, category),
        }
    }

    #[cold]
    fn look_up(&mut self, automaton: &mut impl Automaton, state: StateId, category: u8) -> Result<u32, LimitExceeded> {
        let next = match category {
            HIGH => {
                let [other, whitespace] = [OTHER, WHITESPACE].map(|category| self.known(automaton, state, category));
                match (other?, whitespace?) {
                    (MIXED | WITHIN, _) | (_, WITHIN) => MIXED,
                    (0, 0) => 0,
                    // Most first bytes are dead, which decides for the whole category; where one is live, all of them
                    // are followed.
                    (0, _) => MIXED,
                    _ => state.0,
                }
            }
            WHITESPACE | OTHER => {
                let beyond = self.beyond.get_or_insert_with(|| bytes_beyond_ascii(automaton));
                beyond_ascii(automaton, state, &beyond[usize::from(category - WHITESPACE)])?
            }
            _ => {
                let mut next = UNKNOWN;
                for &byte in &self.bytes[usize::from(category)] {
                    next = joined(next, step(automaton, state, byte)?);
                    if next == MIXED {
                        break;
                    }
                }
                next
            }
        };
        let end = (state.0 as usize + 1) * CATEGORIES;
        if self.table.len() < end {
            self.table.resize(end, UNKNOWN);
        }
        self.table[state.0 as usize * CATEGORIES + usize::from(category)] = next;
        Ok(next)
    }
}

/// The result for characters of which some have one result and the others another.
fn joined(some: u32, others: u32) -> u32 {
    if some == UNKNOWN || some == others { others } else { MIXED }
}

fn step(automaton: &mut impl Automaton, state: StateId, byte: u8) -> Result<u32, LimitExceeded> {
    let (next, accepts) = automaton.step(state, byte)?;
    Ok(if accepts { next.0 | ACCEPTS } else { next.0 })
}

/// Adds the representative of a byte, if it is new.
#[inline]
fn add(automaton: &impl Automaton, bytes: &mut Vec<u8>, byte: u8) {
    let byte = automaton.representative(byte);
    if bytes.last() != Some(&byte) && !bytes.contains(&byte) {
        bytes.push(byte);
    }
}

/// The bytes of the characters beyond ASCII by category, as far as an automaton distinguishes them.
fn bytes_beyond_ascii(automaton: &impl Automaton) -> [Vec<Bytes>; 2] {
    [0, 1].map(|category| {
        let mut found: Vec<Bytes> = Vec::new();
        for sequence in &BEYOND_ASCII[category] {
            let bytes = sequence.as_slice().iter().map(|range| {
                let mut bytes = Vec::new();
                (range.start..=range.end).for_each(|byte| add(automaton, &mut bytes, byte));
                bytes
            });
            let bytes: Bytes = bytes.collect();
            if !found.contains(&bytes) {
                found.push(bytes);
            }
        }
        found
    })
}

/// Where the characters with these bytes lead.
fn beyond_ascii(automaton: &mut impl Automaton, state: StateId, characters: &[Bytes]) -> Result<u32, LimitExceeded> {
    let mut led = UNKNOWN;
    let (mut from, mut after) = (Vec::new(), Vec::new());
    for bytes in characters {
        from.clear();
        from.push(state);
        let (last, before) = bytes.split_last().expect("a character has bytes");
        for bytes in before {
            after.clear();
            for (&state, &byte) in from.iter().flat_map(|state| bytes.iter().map(move |byte| (state, byte))) {
                let next = step(automaton, state, byte)?;
                if next & ACCEPTS != 0 {
                    return Ok(WITHIN);
                }
                if next == 0 {
                    led = joined(led, 0);
                } else if !after.contains(&StateId(next)) {
                    after.push(StateId(next));
                }
            }
            std::mem::swap(&mut from, &mut after);
        }
        for (&state, &byte) in from.iter().flat_map(|state| last.iter().map(move |byte| (state, byte))) {
            led = joined(led, step(automaton, state, byte)?);
        }
    }
    Ok(led)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_category_and_every_category_a_byte() {
        let mut found = [0; CATEGORIES];
        (0..=u8::MAX).for_each(|byte| found[usize::from(category_of(byte))] += 1);
        assert_eq!((found[0], found[1], found[2], found[6], found[usize::from(HIGH)]), (26, 26, 10, 30, 128));
        let single = (3..40).filter(|&category| category != 6);
        assert!(single.into_iter().all(|category: usize| found[category] == 1), "{found:?}");
        assert_eq!(found[usize::from(WHITESPACE)] + found[usize::from(OTHER)], 0);
    }
}
