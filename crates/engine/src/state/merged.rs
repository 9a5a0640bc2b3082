//! Stacks merged at every depth: frames that differ only in what lies below them become one frame above the union of
//! that.
//!
//! In a very ambiguous grammar the same frame may have been pushed at every position of the text. Then a set of stacks
//! has an entry for each position, every byte joins many such sets, and the work grows with the square of the text.
//! Such a set is a nondeterministic automaton over frames. Read from the top and determinised (Rabin & Scott 1959), it
//! has one entry for each frame. The same few unions are needed byte after byte, so the unions of two sets are cached.
//!
//! A deterministic automaton can be much larger than a nondeterministic one for the same stacks. So a join may visit
//! only a few times as many entries as the joined sets have. Beyond that, the result is a plain list of entries, and
//! the next few joins do not try to merge.

use stencilm_support::SEARCHED;

use crate::error::EngineError;
use crate::state::stacks::{Entry, SetId, Stacks};
use crate::state::unions::Pair;
use crate::switches::Switch;

/// Entries with distinct pairs of frame and register, or else the two sets whose union is needed first.
type Joined = Result<Vec<Entry>, Pair>;

impl Stacks {
    /// The set of these sorted entries with one entry for each frame and register. `None` where that takes too much
    /// work, or where no two entries can be merged.
    pub(super) fn merged(&mut self, entries: &[Entry]) -> Result<Option<SetId>, EngineError> {
        let is_same = |pair: &[Entry]| (pair[0].head, pair[0].register) == (pair[1].head, pair[1].register);
        if !Switch::StateMerged.is_on() || !entries.windows(2).any(is_same) || !self.unions.are_worth_it() {
            return Ok(None);
        }
        let (sets, known) = (self.num_sets(), self.unions.len());
        let mut left = SEARCHED + entries.len();
        loop {
            match self.joined(entries) {
                Ok(joined) => {
                    self.unions.succeeded();
                    return Ok(Some(self.intern(&joined)));
                }
                Err(pair) if self.unite(pair, &mut left)? => {}
                Err(_) => {
                    self.forget_sets(sets);
                    self.unions.truncate(known);
                    self.unions.failed();
                    return Ok(None);
                }
            }
        }
    }

    /// Unites two sets, after what lies below them. Returns `false` where it takes more work than is left.
    fn unite(&mut self, pair: Pair, left: &mut usize) -> Result<bool, EngineError> {
        let mut work = vec![pair];
        while let Some(&(a, b)) = work.last() {
            let mut entries = [self.entries(SetId(a)), self.entries(SetId(b))].concat();
            self.spend(entries.len())?;
            let Some(rest) = left.checked_sub(entries.len()) else { return Ok(false) };
            *left = rest;
            entries.sort_unstable();
            entries.dedup();
            match self.joined(&entries) {
                Ok(joined) => {
                    let union = self.intern(&joined);
                    self.unions.add((a, b), union.0);
                    work.pop();
                }
                // The sets below are less deep, so the loop ends.
                Err(first) => work.push(first),
            }
        }
        Ok(true)
    }

    /// Sorted entries merged to one for each frame and register.
    fn joined(&self, entries: &[Entry]) -> Joined {
        let mut joined: Vec<Entry> = Vec::with_capacity(entries.len());
        for &entry in entries {
            match joined.last_mut().filter(|last| (last.head, last.register) == (entry.head, entry.register)) {
                Some(last) => last.below = SetId(self.unions.of(last.below.0, entry.below.0)?),
                None => joined.push(entry),
            }
        }
        Ok(joined)
    }
}
