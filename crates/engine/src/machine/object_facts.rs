//! Facts about an object that hold for all texts, and which members it has in one text.

use std::sync::Arc;

use stencilm_grammar::{KeySpace, Members};
use stencilm_support::memory;

use crate::machine::property_trie::Names;

/// Whether some class has finitely many keys, and not only after certain prefixes.
pub(crate) fn has_finite(members: &Members) -> bool {
    members.whole_others().any(|additional| matches!(additional.space, KeySpace::Finite(_)))
}

/// The greatest possible number of additional members; `None` where it is infinite.
pub(crate) fn most_additional(members: &Members) -> Option<usize> {
    members.whole_others().try_fold(0usize, |sum, additional| match additional.space {
        KeySpace::Finite(count) => Some(sum.saturating_add(count as usize)),
        KeySpace::Infinite | KeySpace::LocallyFinite => None,
    })
}

/// Facts about an object that hold for all texts.
pub(crate) struct ObjectFacts {
    pub names: Arc<Names>,
    /// For every ordered member, the first required one from it on; the number of ordered members where there is none.
    pub next_required: Box<[u32]>,
    /// For every ordered member, how many are required from it on.
    pub required_from: Box<[u32]>,
    /// Bits of the required unordered members.
    pub required: Box<[u64]>,
    /// For every class of additional keys, the bit of the value that some member of it must have; 0 where there is
    /// none.
    pub required_bits: Box<[u32]>,
    /// The greatest possible number of additional members; `None` where it is infinite.
    pub most_additional: Option<usize>,
}

impl ObjectFacts {
    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let numbers = self.next_required.len() + self.required_from.len() + self.required_bits.len();
        let lists = memory::of_slice::<u32>(numbers) + memory::of_slice::<u64>(self.required.len());
        memory::of_shared::<ObjectFacts>(1) + lists + self.names.memory_bytes()
    }
}

/// The members that an object has in one text.
#[derive(Clone, Copy)]
pub struct Had {
    /// The first ordered member that may still come.
    pub next: u32,
    /// The unordered declared members used, as a set of the machine.
    pub known: u32,
    /// The number of additional members, where they can run out; else 0.
    pub additional: u32,
    /// The number of all members, where it is counted; clamped to the minimum where there is no maximum.
    pub count: u32,
    /// Bits of the required values that some member has.
    pub satisfied: u32,
}

/// The numbers of members that are still to come.
pub(crate) struct Left {
    /// How many members must come.
    pub needed: usize,
    /// How many may come; `None` where there is no limit.
    pub available: Option<usize>,
    /// The values that some additional member must still have.
    pub required_left: u32,
}

impl ObjectFacts {
    pub(crate) fn new(names: Arc<Names>, members: &Members) -> ObjectFacts {
        let ordered = members.ordered;
        let mut next_required = vec![ordered as u32; ordered + 1];
        let mut required_from = vec![0; ordered + 1];
        let mut required = vec![0; members.declared.len().div_ceil(64)];
        for (index, member) in members.declared.iter().enumerate().rev() {
            if index >= ordered {
                required[index / 64] |= u64::from(member.required) << (index % 64);
            } else {
                next_required[index] = if member.required { index as u32 } else { next_required[index + 1] };
                required_from[index] = required_from[index + 1] + u32::from(member.required);
            }
        }
        let mut bit = 1u32;
        let mut required_bits = vec![0; members.additional.len()];
        for (class, _) in members.additional.iter().enumerate().filter(|(_, additional)| additional.some.is_some()) {
            required_bits[class] = bit;
            bit = bit.wrapping_shl(1);
        }
        ObjectFacts {
            names,
            next_required: next_required.into(),
            required_from: required_from.into(),
            required: required.into(),
            required_bits: required_bits.into(),
            most_additional: most_additional(members),
        }
    }

    pub fn left(&self, members: &Members, had: Had, seen: &[u64]) -> Left {
        let missing = |(at, word): (usize, &u64)| word & !seen.get(at).unwrap_or(&0);
        let required: u32 = self.required.iter().enumerate().map(|word| missing(word).count_ones()).sum();
        let required_left = self.required_bits.iter().sum::<u32>() & !had.satisfied;
        let mixed = members.declared.len()
            - members.ordered
            - seen.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let left = self.most_additional.map(|most| most.saturating_sub(had.additional as usize));
        let available = left.map(|left| (members.ordered - had.next as usize + mixed).saturating_add(left));
        let needed = self.required_from[had.next as usize] + required + required_left.count_ones();
        Left { needed: needed as usize, available, required_left }
    }
}
