//! Categories of characters, and how an automaton reads a character of each: patterns seldom distinguish two of one
//! category.

use std::sync::LazyLock;

use regex_syntax::utf8::{Utf8Sequence, Utf8Sequences};
use stencilm_regex::StateId;
use stencilm_support::LimitExceeded;

use crate::vocabulary::automaton::Automaton;

/// How many categories there are.
pub(crate) const CATEGORIES: usize = 43;

/// Characters beyond ASCII that some regular expression takes for white space.
pub(crate) const WHITESPACE: u8 = 40;
/// The others beyond ASCII.
pub(crate) const OTHER: u8 = 41;
/// The first byte of any of them, whole or broken: no category of characters, but a step on the way to one.
pub(crate) const HIGH: u8 = 42;

/// The category of a character of ASCII: small letters, capital letters, digits, control characters but three, and each of the
/// others on its own.
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

/// White_Space of Unicode beyond ASCII, and what ECMAScript takes for white space beside it.
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
    // After the last character.
    (0x11_0000, 0x11_0000),
];

/// The category of a character beyond ASCII.
pub(crate) fn category_beyond_ascii(character: u32) -> u8 {
    if WHITESPACE_RANGES.iter().any(|&(first, last)| (first..=last).contains(&character)) { WHITESPACE } else { OTHER }
}

/// The bytes of the characters beyond ASCII, by category: whitespace, and the others.
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
    /// None of them goes on.
    Dead,
    /// Each of them to this state, where something may end.
    To(StateId, bool),
    /// Some elsewhere than others, or something ends within a character.
    Mixed,
}

/// Not looked up yet.
const UNKNOWN: u32 = u32::MAX;
/// See [`Read::Mixed`].
const MIXED: u32 = u32::MAX - 1;
/// Something ends within a character.
const WITHIN: u32 = u32::MAX - 2;
/// Set where something ends.
const ACCEPTS: u32 = 1 << 31;

/// The bytes of some characters, of the first byte, the second, and so on.
type Bytes = Vec<Vec<u8>>;

/// An automaton that is read by categories of characters.
pub(crate) struct Categories {
    /// By category, for those of ASCII, the bytes that stand for them in the automaton.
    bytes: Vec<Vec<u8>>,
    /// For the categories beyond ASCII the same of every byte of a character, once they are asked for.
    beyond: Option<[Vec<Bytes>; 2]>,
    /// By state and category where they lead.
    table: Vec<u32>,
}

impl Categories {
    /// For an automaton.
    pub fn new(automaton: &impl Automaton) -> Categories {
        let mut bytes: Vec<Vec<u8>> = vec![Vec::new(); CATEGORIES];
        for byte in 0..0x80 {
            add(automaton, &mut bytes[usize::from(category_of(byte))], byte);
        }
        Categories { bytes, beyond: None, table: Vec::new() }
    }

    /// Bytes of memory held, nearly all of them.
    pub fn memory_bytes(&self) -> usize {
        self.table.len() * 4
    }

    /// Where the characters of a category lead; after [`HIGH`] the automaton is where it was.
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
                    // Most first bytes are dead. Where one of the others is live, each of them is.
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

/// Where some characters lead that lead to one of these each.
fn joined(some: u32, others: u32) -> u32 {
    if some == UNKNOWN || some == others { others } else { MIXED }
}

fn step(automaton: &mut impl Automaton, state: StateId, byte: u8) -> Result<u32, LimitExceeded> {
    let (next, accepts) = automaton.step(state, byte)?;
    Ok(if accepts { next.0 | ACCEPTS } else { next.0 })
}

/// Adds the byte that stands for a byte, unless it is there.
#[inline]
fn add(automaton: &impl Automaton, bytes: &mut Vec<u8>, byte: u8) {
    let byte = automaton.representative(byte);
    if bytes.last() != Some(&byte) && !bytes.contains(&byte) {
        bytes.push(byte);
    }
}

/// The bytes of the characters beyond ASCII, by category, as far as an automaton distinguishes them.
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

/// Where the characters of these bytes lead.
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
