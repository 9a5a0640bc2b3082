//! Which strings of a trie can be read from all threads together, in sets, in which equal tops are joined.
//!
//! The sets of stacks below them may grow with every byte, so the walk first uses thin stacks, where each top has only
//! one stack below it: whatever these can read can be read. Only the remaining strings are then walked with all stacks.

use crate::error::EngineError;
use crate::machine::layout::ExpansionId;
use crate::parse::assumptions::Assumptions;
use crate::parse::memo::{States, Step, Steps};
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, SetId};
use crate::switches::Switch;
use crate::vocabulary::trie::{Part, Trie};

/// The parts of a trie that a walk did not reach, for another walk in the same order.
struct Left {
    /// As ranges of nodes, ascending.
    ranges: Vec<(usize, usize)>,
    /// The node asked for last.
    at: usize,
    /// How many ranges end before it.
    before: usize,
}

impl Left {
    /// These nodes and what is below them.
    fn new(trie: &Trie, mut nodes: Vec<u32>) -> Left {
        // Where one part of the trie lies in another one, its nodes were met twice.
        nodes.sort_unstable();
        let mut ranges: Vec<(usize, usize)> = Vec::with_capacity(nodes.len());
        for node in nodes.into_iter().map(|node| node as usize) {
            if ranges.last().is_none_or(|&(_, end)| end <= node) {
                ranges.push((node, node + trie.size(node)));
            }
        }
        Left { ranges, at: 0, before: 0 }
    }

    /// Whether some of it is among these nodes.
    #[inline]
    fn is_among(&mut self, (node, end): (usize, usize)) -> bool {
        if node < self.at {
            self.before = self.ranges.partition_point(|&(_, end)| end <= node);
        }
        self.at = node;
        while self.ranges.get(self.before).is_some_and(|&(_, end)| end <= node) {
            self.before += 1;
        }
        self.ranges.get(self.before).is_some_and(|&(start, _)| start < end)
    }
}

impl Run<'_> {
    /// Calls `reached`, at least once, for the entry of every string that the threads can read in some parts of a trie,
    /// with the assumptions made on the path. One part may lie in another one. `assumed` is what was assumed before.
    pub(crate) fn walk_together(
        &mut self,
        trie: &Trie,
        parts: &[Part],
        threads: &[Entry],
        assumed: Assumptions,
        mut reached: impl FnMut(u32, Assumptions),
    ) -> Result<(), EngineError> {
        let mut left = match assumed.is_any() || self.machine.keeps_text() {
            true => None,
            false => {
                let nodes = self.over_thin_stacks(trie, parts, threads, &mut reached)?;
                if nodes.is_empty() {
                    return Ok(());
                }
                Some(Left::new(trie, nodes))
            }
        };
        let start = self.stacks.configuration(&mut threads.to_vec())?;
        self.with_memo(start, |run, memo, start| {
            let step = |run: &mut Self, from: Step, byte, node| {
                if left.as_mut().is_some_and(|left| !left.is_among((node, node + trie.size(node)))) {
                    return Ok(None);
                }
                let step = run.known_step(memo, from, byte)?;
                Ok((!step.is_empty()).then(|| step.after(from)))
            };
            run.walk_parts(trie, parts, start, step, |entry, step| reached(entry, step.assumed(assumed)))
        })
    }

    /// Walks with thin stacks, whose size does not depend on the text. Returns the nodes, without those below them,
    /// that were not reached but may be with all stacks.
    fn over_thin_stacks(
        &mut self,
        trie: &Trie,
        parts: &[Part],
        threads: &[Entry],
        reached: &mut impl FnMut(u32, Assumptions),
    ) -> Result<Vec<u32>, EngineError> {
        let no_assumption = Assumptions { later: true, ..Assumptions::default() };
        let readable = self.machine.readable_bytes()?;
        let (mut left, mut unverified) = (Vec::new(), Vec::new());
        self.stacks.thin = true;
        self.stacks.is_thinned = false;
        let walked = self.stacks.configuration(&mut threads.to_vec()).and_then(|start| {
            self.with_memo(start, |run, memo, start| {
                let step = |run: &mut Self, from: Step, byte, node| {
                    let step = run.known_step(memo, from, byte)?;
                    let is_reached = !step.is_empty() && !step.assumes();
                    if !is_reached && readable.contains(byte) {
                        left.push(node as u32);
                    }
                    // Strings that would be unverified are left to the walk with all stacks.
                    if !is_reached && !step.is_empty() {
                        unverified.push(node as u32);
                    }
                    Ok(is_reached.then_some(step))
                };
                run.walk_parts(trie, parts, start, step, |entry, _| reached(entry, no_assumption))?;
                memo.is_thinned |= run.stacks.is_thinned;
                Ok(if memo.is_thinned { left } else { unverified })
            })
        });
        self.stacks.thin = false;
        walked
    }

    #[inline(always)]
    fn walk_parts(
        &mut self,
        trie: &Trie,
        parts: &[Part],
        start: Step,
        mut step: impl FnMut(&mut Self, Step, u8, usize) -> Result<Option<Step>, EngineError>,
        mut entry: impl FnMut(u32, Step),
    ) -> Result<(), EngineError> {
        let mut states = vec![start; trie.max_depth() + 1];
        for &(nodes, depth) in parts {
            trie.walk_part(
                nodes,
                depth,
                start,
                &mut states,
                |from, byte, node, _| step(self, from, byte, node),
                &mut entry,
            )?;
        }
        Ok(())
    }

    /// Runs a part of a mask with the memo of its steps, where it starts in a configuration.
    pub(crate) fn with_memo<T>(
        &mut self,
        configuration: SetId,
        part: impl FnOnce(&mut Self, &mut Steps, Step) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        debug_assert!(!self.is_exact(), "only a mask takes every key for a new one");
        let thin = usize::from(self.stacks.thin);
        let mut memo = std::mem::take(&mut self.known.get_or_insert_default().steps[thin]);
        let start = memo.step(configuration, Assumptions::default());
        let found = part(self, &mut memo, start)?;
        self.known.get_or_insert_default().steps[thin] = memo;
        Ok(found)
    }

    /// [`Run::step`] by the memo of this mask.
    #[inline(always)]
    pub(crate) fn known_step(&mut self, memo: &mut Steps, from: Step, byte: u8) -> Result<Step, EngineError> {
        match memo.get(from.number(), byte) {
            Some(step) => Ok(step),
            None => self.new_step(memo, from.number(), byte),
        }
    }

    #[cold]
    fn new_step(&mut self, memo: &mut Steps, from: u32, byte: u8) -> Result<Step, EngineError> {
        let configuration = memo.configuration(from);
        // Where texts are compared, the result depends on the byte itself and not only on the states.
        let key = match self.machine.keeps_text() || !Switch::ParseStates.is_on() {
            true => None,
            false => Some((from, self.states_after(configuration, byte)?)),
        };
        let step = match key.as_ref().and_then(|key| memo.by_states.get(key)) {
            Some(&step) => step,
            None => {
                self.assumed = Assumptions::default();
                let next = self.step(configuration, byte)?;
                let step = memo.step(next, self.assumed);
                key.map(|key| memo.by_states.insert(key, step));
                step
            }
        };
        memo.set(from, byte, step);
        Ok(step)
    }

    /// The states of the threads of a configuration after a byte.
    fn states_after(&mut self, configuration: SetId, byte: u8) -> Result<States, EngineError> {
        let mut states = Vec::with_capacity(self.stacks.entries(configuration).len());
        for index in 0..self.stacks.entries(configuration).len() {
            let thread = self.stacks.entries(configuration)[index];
            if thread == Entry::BOTTOM || offers_tokens(thread) {
                continue;
            }
            let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
            states.push(expansion.step(self.lexeme_cache, thread.state, byte)?);
        }
        Ok(states.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Over the whole trie and over parts of it, some of which lie in others.
        #[test]
        fn what_is_left_is_the_nodes_not_reached_and_what_is_below(
            seed in 0usize..10_000,
            picked in proptest::collection::vec(0usize..10_000, 0..8),
        ) {
            let mut strings: Vec<Vec<u8>> = vec![Vec::new()];
            for _ in 0..4 {
                let longer = strings.iter().flat_map(|string| b"abc".map(|byte| [string, &[byte][..]].concat()));
                strings = longer.chain(strings.clone()).collect();
                strings.sort_unstable();
                strings.dedup();
            }
            let kept = strings.into_iter().filter(|string| !string.is_empty() && (string.len() * 7 + seed) % 3 > 0);
            let strings: Vec<Vec<u8>> = kept.collect();
            let trie = Trie::from_sorted(strings.iter().enumerate().map(|(i, s)| (s.as_slice(), i as u32)));
            let nodes: Vec<u32> = picked.iter().map(|&node| (node % trie.len()) as u32).collect();
            let is_left = |node: usize| nodes.iter().any(|&left| {
                let left = left as usize;
                (left..left + trie.size(left)).contains(&node)
            });
            let mut left = Left::new(&trie, nodes.clone());
            for (first, end) in [(0, trie.len()), trie.part(seed % trie.len()).0, trie.part(seed * 7 % trie.len()).0] {
                for node in first..end {
                    let nodes = trie.part(node).0;
                    let expected = (nodes.0..nodes.1).any(is_left);
                    proptest::prop_assert_eq!(left.is_among(nodes), expected, "{}", node);
                }
            }
        }
    }
}
