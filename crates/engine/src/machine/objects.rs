//! What an object decides before a key and behind a value: which members may come, and whether it may close.
//!
//! Nothing is begun that cannot be completed: what is still required must have room below the greatest number of members,
//! and enough members must be left to reach the least one. Other members run out where their keys do.

use std::sync::Arc;

use stencilm_grammar::{KeySpace, Members, MembersId};
use stencilm_regex::memory;

use crate::machine::frame::Phase;
use crate::machine::layout::Machine;
use crate::machine::property_trie::{Filter, Names};

/// Whether the keys of some class run out in all, not only behind some beginning.
pub(crate) fn has_few(members: &Members) -> bool {
    members.whole_others().any(|free| matches!(free.space, KeySpace::Few(_)))
}

/// How many members there may be that nothing names; `None` without end.
pub(crate) fn most_free(members: &Members) -> Option<usize> {
    members.whole_others().try_fold(0usize, |sum, free| match free.space {
        KeySpace::Few(count) => Some(sum.saturating_add(count as usize)),
        KeySpace::Endless | KeySpace::Uneven => None,
    })
}

/// What is known of an object beforehand.
pub(crate) struct ObjectFacts {
    pub names: Arc<Names>,
    /// For every member in declared order the first required one from it on; their number where there is none.
    pub next_required: Box<[u32]>,
    /// How many of these are required, from each one on.
    required_from: Box<[u32]>,
    /// Bits of the required members that come in any order.
    required: Box<[u64]>,
    /// For every class of other members the bit of the value that one of them must have; 0 where there is none.
    pub owed: Box<[u32]>,
    /// How many members there may be that nothing names; `None` without end.
    most_free: Option<usize>,
}

impl ObjectFacts {
    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let numbers = self.next_required.len() + self.required_from.len() + self.owed.len();
        let lists = memory::of_slice::<u32>(numbers) + memory::of_slice::<u64>(self.required.len());
        memory::of_shared::<ObjectFacts>(1) + lists + self.names.memory_bytes()
    }
}

/// The members that an object has.
#[derive(Clone, Copy)]
pub struct Had {
    /// The first member in declared order that may still come.
    pub next: u32,
    /// Those in any order that were seen, as a set of the machine.
    pub known: u32,
    /// How many other members were seen, where these can run out; else 0.
    pub free: u32,
    /// How many there are in all, where they are counted; not above the least number where there is no greatest.
    pub count: u32,
    /// Bits of the values seen of which one must be there.
    pub met: u32,
}

/// What may still come, in numbers.
struct Left {
    /// The members that must.
    needed: usize,
    /// All that may, `None` without end.
    available: Option<usize>,
    /// The values that one of the other members must have.
    owed: u32,
}

impl ObjectFacts {
    pub(crate) fn new(names: Arc<Names>, members: &Members) -> ObjectFacts {
        let ordered = members.ordered;
        let mut next_required = vec![ordered as u32; ordered + 1];
        let mut required_from = vec![0; ordered + 1];
        let mut required = vec![0; members.known.len().div_ceil(64)];
        for (index, member) in members.known.iter().enumerate().rev() {
            if index >= ordered {
                required[index / 64] |= u64::from(member.required) << (index % 64);
            } else {
                next_required[index] = if member.required { index as u32 } else { next_required[index + 1] };
                required_from[index] = required_from[index + 1] + u32::from(member.required);
            }
        }
        let mut bit = 1u32;
        let mut owed = vec![0; members.free.len()];
        for (class, _) in members.free.iter().enumerate().filter(|(_, free)| free.some.is_some()) {
            owed[class] = bit;
            bit = bit.wrapping_shl(1);
        }
        ObjectFacts {
            names,
            next_required: next_required.into(),
            required_from: required_from.into(),
            required: required.into(),
            owed: owed.into(),
            most_free: most_free(members),
        }
    }

    fn left(&self, members: &Members, had: Had, seen: &[u64]) -> Left {
        let missing = |(at, word): (usize, &u64)| word & !seen.get(at).unwrap_or(&0);
        let required: u32 = self.required.iter().enumerate().map(|word| missing(word).count_ones()).sum();
        let owed = self.owed.iter().sum::<u32>() & !had.met;
        let mixed =
            members.known.len() - members.ordered - seen.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let left = self.most_free.map(|most| most.saturating_sub(had.free as usize));
        let available = left.map(|left| (members.ordered - had.next as usize + mixed).saturating_add(left));
        let needed = self.required_from[had.next as usize] + required + owed.count_ones();
        Left { needed: needed as usize, available, owed }
    }
}

impl Machine {
    /// What an object's register says before a key.
    pub(crate) fn key_phase(&mut self, id: MembersId, had: Had) -> Phase {
        let (next, known) = (had.next, had.known);
        if !self.grammar.members(id).is_counted() {
            return Phase::Key { next, known, owed: 0, tight: false, reach: u32::MAX, may_end: false };
        }
        let facts = self.object(id);
        let members = self.grammar.members(id);
        let left = facts.left(members, had, self.known_set(known));
        let tight = members.max.is_some_and(|max| max as usize - had.count as usize == left.needed);
        // Where members run out, only so many in declared order may be left out.
        let reach = match left.available {
            Some(available) => {
                let spare = available.saturating_sub(members.min.saturating_sub(had.count) as usize);
                (next as usize + spare).min(members.ordered)
            }
            None => members.ordered,
        };
        let may_end = members.is_cut() && left.needed == 0 && had.count >= members.min;
        Phase::Key { next, known, owed: left.owed, tight, reach: reach as u32, may_end }
    }

    /// What an object's register says behind a value.
    pub(crate) fn after_value_phase(&mut self, id: MembersId, had: Had) -> Phase {
        let facts = self.object(id);
        let members = self.grammar.members(id);
        let left = facts.left(members, had, self.known_set(had.known));
        let room = members.max.is_none_or(|max| had.count < max);
        let may_end = left.needed == 0 && had.count >= members.min;
        let more = room && left.available.is_none_or(|available| available > 0);
        // Behind a cut one its last member comes.
        let is_cut = members.is_cut();
        Phase::AfterValue { more: more || (is_cut && may_end), may_close: may_end && !is_cut }
    }

    /// Which known members may come, and whether other ones may.
    pub(crate) fn keys(&mut self, id: MembersId, (next, known, tight, reach): (u32, u32, bool, u32)) -> (Filter, bool) {
        let facts = self.object(id);
        let members = self.grammar.members(id);
        let (all, ordered) = (members.known.len() as u32, members.ordered as u32);
        let reach = reach.min(facts.next_required[next as usize]);
        let others = reach == ordered;
        let seen = self.known_set(known);
        let filter = if tight || (0 < ordered && ordered < all) {
            let is_seen =
                |index: u32| seen.get(index as usize / 64).is_some_and(|word| word & (1 << (index % 64)) != 0);
            let mut among = vec![0u64; all.div_ceil(64) as usize];
            for index in (next..all).filter(|&index| {
                let comes = if index < ordered { index <= reach } else { others && !is_seen(index) };
                comes && (!tight || members.known[index as usize].required)
            }) {
                among[index as usize / 64] |= 1 << (index % 64);
            }
            Filter::Among(among.into())
        } else if ordered == 0 {
            Filter::Unseen(seen.into())
        } else {
            Filter::Range { from: next, to: reach.min(ordered - 1) }
        };
        (filter, others)
    }

    /// The number of members after one more, where they are counted.
    pub(crate) fn one_more(members: &Members, count: u32) -> u32 {
        let count = count.saturating_add(1);
        if members.max.is_none() { count.min(members.min) } else { count }
    }

    /// Writes what of the number of members can make a difference to tokens of at most `horizon` bytes.
    pub(crate) fn describe_count(&self, id: MembersId, had: Had, horizon: u32, description: &mut Vec<u64>) {
        let members = self.grammar.members(id);
        let far = u64::from(horizon) + 1;
        let missing = u64::from(members.min.saturating_sub(had.count));
        let missing = if most_free(members).is_some() { missing } else { missing.min(far) };
        let most_needed = (members.known.len() + members.free.len()) as u64;
        let room = members.max.map_or(u64::MAX, |max| u64::from(max - had.count).min(far + most_needed));
        description.extend([missing << 32 | u64::from(had.met), room]);
    }
}
