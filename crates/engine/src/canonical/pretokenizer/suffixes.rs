//! The possible states of the tokenizer's pattern after a token, whatever comes before it.
//!
//! The last few characters nearly always determine the state: after `l` a contraction such as `'ll` may be open, after
//! `al` it cannot. So sets of states are followed through the characters of a token, starting from the set of all
//! states.

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;
use stencilm_support::LOOKED_AT;

use crate::canonical::pretokenizer::pattern::{DEAD, PreTokenizer, START};
use crate::switches::Switch;

/// In place of the number of a set: not computed yet.
const UNKNOWN: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct States(u32);

/// The sets of states met so far.
#[derive(Default)]
pub(crate) struct Behind {
    /// The first set contains all states.
    sets: Vec<Vec<u16>>,
    numbers: FxHashMap<Vec<u16>, u32>,
    /// The next set by set and class of the next character.
    steps: Vec<u32>,
    /// For each set, as for a state in [`PreTokenizer::after`].
    after: Vec<(ByteSet, ByteSet)>,
}

impl Behind {
    /// The possible states after some bytes, whatever comes before them.
    pub fn of(&mut self, pretokenizer: &PreTokenizer, bytes: &[u8]) -> States {
        if self.sets.is_empty() {
            self.add(pretokenizer, (0..pretokenizer.num_states() as u16).collect());
        }
        let mut here = 0;
        if !Switch::CanonicalSuffixStates.is_on() {
            return States(here);
        }
        for chunk in bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                here = self.step(pretokenizer, here, pretokenizer.class(character));
            }
            // A character that begins before these bytes is unknown.
            if !chunk.invalid().is_empty() {
                here = 0;
            }
        }
        States(here)
    }

    fn step(&mut self, pretokenizer: &PreTokenizer, from: u32, class: u8) -> u32 {
        let at = from as usize * pretokenizer.num_classes() + usize::from(class);
        if self.steps[at] == UNKNOWN {
            // If there are more sets, only the last character of a token is used.
            let from = if self.sets.len() < LOOKED_AT { from } else { 0 };
            // The piece may have ended before the character.
            let before = self.sets[from as usize].iter().chain(&[START]);
            let mut next: Vec<u16> = before.map(|&state| pretokenizer.step(state, class).0).collect();
            next.retain(|&state| state != DEAD);
            next.sort_unstable();
            next.dedup();
            self.steps[at] = self.add(pretokenizer, next);
        }
        self.steps[at]
    }

    fn add(&mut self, pretokenizer: &PreTokenizer, states: Vec<u16>) -> u32 {
        if let Some(&known) = self.numbers.get(&states) {
            return known;
        }
        let number = self.sets.len() as u32;
        let mut all = (ByteSet::ALL, ByteSet::ALL);
        for (new_piece, plain) in states.iter().map(|&state| pretokenizer.after(state)) {
            all = (all.0.intersect(new_piece), all.1.intersect(plain));
        }
        self.after.push(all);
        self.steps.extend(std::iter::repeat_n(UNKNOWN, pretokenizer.num_classes()));
        self.numbers.insert(states.clone(), number);
        self.sets.push(states);
        number
    }

    /// The bytes that always begin another piece in all these states, and those that either do that or continue the
    /// piece.
    pub fn after(&self, states: States) -> &(ByteSet, ByteSet) {
        &self.after[states.0 as usize]
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let sets = self.sets.iter().map(|states| 2 * (states.len() * 2 + 24) + 2 * size_of::<ByteSet>());
        sets.sum::<usize>() + self.steps.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical::cursor::state::Cursor;
    use crate::canonical::cursor::table::Cursors;
    use crate::canonical::cursor::table::tests::encoding;
    use crate::canonical::encoding::Encoding;

    /// Checks that the state of a settled cursor is in the set, whatever was read before.
    fn check(encoding: &Encoding, before: &str, token: u32) -> Result<(), TestCaseError> {
        let (mut cursors, mut after) = (Cursors::default(), Behind::default());
        let mut ids = encoding.encode(before).expect("it is text");
        ids.push(token);
        let (mut cursor, mut last) = (cursors.of(&Cursor::start().into()), None);
        for &id in &ids {
            let Some(next) = encoding.follow(&mut cursors, cursor, last, id) else { return Ok(()) };
            (cursor, last) = (next, Some(id));
        }
        let bytes = encoding.tokens().token_bytes(token).expect("it is a token");
        let states = after.of(encoding.pretokenizer(), bytes);
        if let Some(state) = cursors.key(cursor).settled() {
            prop_assert!(after.sets[states.0 as usize].contains(&state), "{:?} {}", before, token);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn a_text_stands_in_a_state_of_the_set(
            before in prop::collection::vec(prop::sample::select(vec!["a", "b", " ", "1", "\n", "é", "?"]), 0..8),
            token in prop::sample::select(vec![32u32, 97, 98, 10, 49, 0xC3, 0xA9, 63, 256, 257, 258, 259, 260, 261, 262, 263]),
        ) {
            check(&encoding(), &before.concat(), token)?;
        }
    }
}
