//! The guards of an object, before a key and after a value: which members may come, and whether the object may close.
//!
//! A member may begin only if the object can still be completed: the required members must fit below the maximum, and
//! enough members must be left to reach the minimum. Additional members can run out, if only finitely many keys are
//! allowed.

use stencilm_grammar::MembersId;

use crate::machine::frame::Phase;
use crate::machine::layout::Machine;
use crate::machine::object_facts::Had;
use crate::machine::property_trie::Filter;

/// Which keys may come next in an object, according to its register (see [`Phase::Key`]).
pub(crate) struct KeysToCome {
    /// The first ordered member that may still come.
    pub next: u32,
    /// The unordered declared members used so far, as a set.
    pub known: u32,
    /// Whether only required members may still come.
    pub tight: bool,
    /// The last ordered member that may come, unless a required one stops earlier; the number of ordered members where
    /// others may come.
    pub reach: u32,
}

impl Machine {
    /// The guard before a key.
    pub(crate) fn key_phase(&mut self, id: MembersId, had: Had) -> Phase {
        let (next, known) = (had.next, had.known);
        if !self.grammar.members(id).is_counted() {
            return Phase::Key { next, known, required_left: 0, tight: false, reach: u32::MAX, may_end: false };
        }
        let facts = self.object(id);
        let members = self.grammar.members(id);
        let left = facts.left(members, had, self.known_set(known));
        let tight = members.max.is_some_and(|max| max as usize - had.count as usize == left.needed);
        // Where members can run out, only a limited number of ordered members may be skipped.
        let reach = match left.available {
            Some(available) => {
                let spare = available.saturating_sub(members.min.saturating_sub(had.count) as usize);
                (next as usize + spare).min(members.ordered)
            }
            None => members.ordered,
        };
        let may_end = members.is_cut() && left.needed == 0 && had.count >= members.min;
        Phase::Key { next, known, required_left: left.required_left, tight, reach: reach as u32, may_end }
    }

    /// The guard after a value.
    pub(crate) fn after_value_phase(&mut self, id: MembersId, had: Had) -> Phase {
        let facts = self.object(id);
        let members = self.grammar.members(id);
        let left = facts.left(members, had, self.known_set(had.known));
        let room = members.max.is_none_or(|max| had.count < max);
        let may_end = left.needed == 0 && had.count >= members.min;
        let more = room && left.available.is_none_or(|available| available > 0);
        // A cut-off object ends with its last member and has no closing brace.
        let is_cut = members.is_cut();
        Phase::AfterValue { more: more || (is_cut && may_end), may_close: may_end && !is_cut }
    }

    /// Which declared members may come, and whether additional ones may.
    pub(crate) fn keys(&mut self, id: MembersId, to_come: KeysToCome) -> (Filter, bool) {
        let KeysToCome { next, known, tight, reach } = to_come;
        let facts = self.object(id);
        let members = self.grammar.members(id);
        let (all, ordered) = (members.declared.len() as u32, members.ordered as u32);
        let reach = reach.min(facts.next_required[next as usize]);
        let others = reach == ordered;
        let seen = self.known_set(known);
        let filter = if tight || (0 < ordered && ordered < all) {
            let is_seen =
                |index: u32| seen.get(index as usize / 64).is_some_and(|word| word & (1 << (index % 64)) != 0);
            let mut among = vec![0u64; all.div_ceil(64) as usize];
            for index in (next..all).filter(|&index| {
                let comes = if index < ordered { index <= reach } else { others && !is_seen(index) };
                comes && (!tight || members.declared[index as usize].required)
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
}
