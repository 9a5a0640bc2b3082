//! An index as bytes: lists of little-endian numbers. The reader trusts nothing that could do harm.

use std::sync::Arc;

use crate::index::bytes::{ByteAutomaton, NOWHERE};
use crate::index::token_index::{MAX_RUN, MAX_TARGETS, Stretch, TokenIndex};
use crate::shared::Vocabulary;

/// Why bytes are not a valid index.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the bytes are no index of this vocabulary: {0}; write it again")]
pub struct SavedIndexError(&'static str);

impl TokenIndex {
    /// The index as bytes, without the vocabulary.
    pub fn to_bytes(&self) -> Vec<u8> {
        let automaton = &self.automaton;
        let mut out = Vec::new();
        let mut numbers = |list: &mut dyn Iterator<Item = u32>| {
            for number in list {
                out.extend_from_slice(&number.to_le_bytes());
            }
        };
        let sizes = [automaton.len(), automaton.width, self.at.len(), self.stretches.len()];
        numbers(&mut sizes.iter().map(|&size| size as u32));
        numbers(&mut automaton.columns.iter().map(|&column| u32::from(column)));
        numbers(&mut automaton.table.iter().copied());
        numbers(&mut automaton.finals.iter().map(|&is_final| u32::from(is_final)));
        numbers(&mut self.at.iter().copied());
        numbers(&mut self.starts.iter().copied());
        numbers(&mut self.stretches.iter().flat_map(|stretch| [stretch.start, stretch.end(), stretch.target()]));
        out
    }

    /// The index that [`TokenIndex::to_bytes`] wrote, for the same vocabulary.
    ///
    /// # Errors
    /// [`SavedIndexError`] for invalid numbers.
    pub fn from_bytes(bytes: &[u8], vocabulary: Arc<Vocabulary>) -> Result<TokenIndex, SavedIndexError> {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
        let available = words.len();
        let mut take = |count: usize| -> Result<Vec<u32>, SavedIndexError> {
            let list: Vec<u32> = words.by_ref().take(count.min(available)).collect();
            if list.len() == count { Ok(list) } else { Err(SavedIndexError("they are cut short")) }
        };
        let sizes = take(4)?;
        let [num_bytes, width, num_states, num_stretches] = [0, 1, 2, 3].map(|at| sizes[at] as usize);
        check(num_bytes > 0 && num_states > 0 && (1..=256).contains(&width), "a size is out of range")?;
        let mut columns = [0; 256];
        for (column, number) in columns.iter_mut().zip(take(256)?) {
            check((number as usize) < width, "a column is out of range")?;
            *column = number as u8;
        }
        let table = take(num_bytes.checked_mul(width).ok_or(SavedIndexError("a size is out of range"))?)?;
        check(table.iter().all(|&next| next == NOWHERE || (next as usize) < num_bytes), "a state is out of range")?;
        let finals = take(num_bytes)?;
        let at = take(num_states)?;
        check(at.iter().all(|&state| (state as usize) < num_bytes), "a state is out of range")?;
        let starts = take(num_states.checked_add(1).ok_or(SavedIndexError("a size is out of range"))?)?;
        let ends = (starts[0], starts[num_states]);
        check(ends == (0, num_stretches as u32) && starts.is_sorted(), "the transitions do not add up")?;
        let flat = take(num_stretches.checked_mul(3).ok_or(SavedIndexError("a size is out of range"))?)?;
        check(rest.is_empty() && words.next().is_none(), "something follows them")?;
        let (triples, _) = flat.as_chunks::<3>();
        let ranks = vocabulary.ranks();
        let mut stretches = Vec::with_capacity(triples.len());
        for &[start, end, target] in triples {
            let is_run = start < end && end - start <= MAX_RUN && end as usize <= ranks.tokens.len();
            check(is_run, "a token is out of range")?;
            check((target as usize) < num_states.min(MAX_TARGETS), "a state is out of range")?;
            stretches.push(Stretch::new(start, end, target));
        }
        for bounds in starts.windows(2) {
            let mut after = 0;
            for stretch in &stretches[bounds[0] as usize..bounds[1] as usize] {
                check(after <= stretch.start, "a token is out of range")?;
                after = stretch.end();
            }
        }
        check(reaches_all(&starts, &stretches), "a state is out of reach")?;
        let finals: Vec<bool> = finals.iter().map(|&number| number != 0).collect();
        let automaton = ByteAutomaton { columns, width, table, finals };
        check(has_no_forced_circle(&automaton), "a text has no end")?;
        Ok(TokenIndex { vocabulary, ranks, automaton, at, starts, stretches })
    }
}

fn check(holds: bool, why: &'static str) -> Result<(), SavedIndexError> {
    if holds { Ok(()) } else { Err(SavedIndexError(why)) }
}

/// Whether every state is reached by tokens.
fn reaches_all(starts: &[u32], stretches: &[Stretch]) -> bool {
    let mut is_reached = vec![false; starts.len() - 1];
    is_reached[0] = true;
    let mut waiting = vec![0];
    let mut left = is_reached.len() - 1;
    while let Some(state) = waiting.pop() {
        for stretch in &stretches[starts[state] as usize..starts[state + 1] as usize] {
            let target = stretch.target() as usize;
            if !std::mem::replace(&mut is_reached[target], true) {
                left -= 1;
                waiting.push(target);
            }
        }
    }
    left == 0
}

/// Whether every chain of states with only one continuation ends.
fn has_no_forced_circle(automaton: &ByteAutomaton) -> bool {
    // The first chain through each state.
    let mut chain = vec![NOWHERE; automaton.len()];
    for first in 0..automaton.len() as u32 {
        let mut here = first;
        while chain[here as usize] == NOWHERE {
            chain[here as usize] = first;
            match automaton.only(here) {
                Some((_, next)) if chain[next as usize] == first => return false,
                Some((_, next)) => here = next,
                None => break,
            }
        }
    }
    true
}
