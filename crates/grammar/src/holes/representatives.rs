//! Lists of members that decide the same for all that may stand before them: one stands for the others.
//!
//! A key that is cut by a hole may be any of many, and several such keys any of all combinations. But before a member
//! that has its place in an order only those come that are before it in the order. So of the list after it nothing
//! matters but which of these it is, whether what is required after it is there or may be in a hole, and how the holes
//! there are filled: for each member of an order there are few lists, not one for each choice of those after it.

use rustc_hash::FxHashMap;

use super::members::{Gap, Member, MemberList, MemberLists, few_left};
use crate::ir::grammar::{KeySpace, Members, MembersId};

/// What a list that begins with an ordered member decides. All that is asked of lists with more members before is a
/// function of it and of those members ([`super::members::completed`], `members_before` in [`super::heads`]).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Decided {
    /// The member.
    first: u32,
    /// For each additional class, whether its required value is there.
    met: Box<[bool]>,
    holes: DecidedHoles,
    /// Whether a required declared member can only be in a hole.
    needs: bool,
    /// Whether a declared member that may stand anywhere isn't listed.
    is_mixed_left: bool,
    counts: Counts,
}

/// How the holes of a list may be filled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct DecidedHoles {
    any: bool,
    any_mixed: bool,
    any_others: bool,
    /// How many holes take only declared members; 2 means two or more.
    needy: u32,
    /// Whether each of these can hold an ordered member that isn't listed.
    needy_are_filled: bool,
    /// Whether no two consecutive ones of these take the same members.
    needy_are_apart: bool,
    /// Whether no two consecutive holes take the same members, the first no additional ones.
    are_apart: bool,
    /// Whether something may stand in each hole, given how many additional members are left.
    are_possible: bool,
    /// The same, without counting how many additional members are left.
    are_fillable: bool,
}

/// The counts, where the number of members has bounds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Counts {
    listed: u32,
    holes: u32,
    missing: u32,
    available: u32,
    few: u32,
}

/// The lists of one recogniser that stand for others.
#[derive(Default)]
pub(super) struct Representatives {
    /// By object and decision: the first list that decides it.
    lists: FxHashMap<(MembersId, Decided), MemberList>,
    /// By object and list: the list that stands for it, if that was asked for.
    stands_for: FxHashMap<(MembersId, MemberList), Option<MemberList>>,
}

impl Representatives {
    /// A list with one more member, or another list that decides the same; `None` if no object has these members,
    /// whatever comes before them.
    pub fn with(
        &mut self,
        lists: &mut MemberLists,
        (id, members): (MembersId, &Members),
        after: MemberList,
        member: Member,
    ) -> Option<MemberList> {
        let list = lists.with(after, member);
        match member {
            Member::Known(first) if (first as usize) < members.ordered => {
                if let Some(&known) = self.stands_for.get(&(id, list)) {
                    return known;
                }
                let listed: Vec<Member> = lists.members(list).collect();
                let decided = Decided::of(members, first, &listed);
                let found = decided.map(|decided| *self.lists.entry((id, decided)).or_insert(list));
                self.stands_for.insert((id, list), found);
                found
            }
            _ => Some(list),
        }
    }
}

impl Decided {
    /// What a list decides; `None` if a required member is neither there nor can be in a hole.
    fn of(members: &Members, first: u32, listed: &[Member]) -> Option<Decided> {
        let is_hole = |at: &usize| matches!(listed[*at], Member::Some(_));
        let gaps: Vec<Gap> = (0..listed.len()).filter(is_hole).map(|at| Gap::of(members, listed, at)).collect();
        let mut used = vec![false; members.declared.len()];
        for member in listed {
            if let Member::Known(index) = member {
                used[*index as usize] = true;
            }
        }
        let unused = |index: &u32| !used[*index as usize];
        let after = || (first + 1..members.declared.len() as u32).filter(unused);
        let may_come = |index: u32| gaps.iter().any(|gap| gap.allows(index));
        let is_required = |index: &u32| members.declared[*index as usize].required;
        if after().filter(is_required).any(|index| !may_come(index)) {
            return None;
        }
        let few =
            members.whole_others().zip(0..).map(|(additional, class)| few_left(additional, class, listed)).sum::<u32>();
        let mut counts = Counts::default();
        if members.min > 0 || members.max.is_some() {
            counts = Counts {
                listed: listed.len() as u32,
                holes: gaps.len() as u32,
                missing: after().filter(is_required).count() as u32,
                available: after().filter(|&index| may_come(index)).count() as u32,
                few,
            };
        }
        let met = |class: usize| listed.iter().any(|member| member.meets(class));
        let met = (0..members.additional.len()).map(|class| members.additional[class].some.is_some() && met(class));
        let needy: Vec<&Gap> = gaps.iter().filter(|gap| !gap.takes_others()).collect();
        let has_own = |gap: &Gap| gap.ordered().any(|index| unused(&index));
        let is_possible =
            |gap: &Gap| gap.takes_others() || after().any(|index| gap.allows(index)) || (gap.is_mixed() && few > 0);
        let is_mixed_left = after().any(|index| index as usize >= members.ordered);
        let has_finite = members.whole_others().any(|additional| matches!(additional.space, KeySpace::Finite(_)));
        let is_fillable =
            |gap: &Gap| gap.takes_others() || has_own(gap) || (gap.is_mixed() && (has_finite || is_mixed_left));
        let holes = DecidedHoles {
            any: !gaps.is_empty(),
            any_mixed: gaps.iter().any(Gap::is_mixed),
            any_others: gaps.iter().any(Gap::takes_others),
            needy: needy.len().min(2) as u32,
            needy_are_filled: needy.iter().all(|gap| has_own(gap)),
            needy_are_apart: needy.windows(2).all(|pair| !pair[0].is_same(pair[1])),
            are_apart: gaps.windows(2).all(|pair| pair[0].takes_others() || !pair[0].is_same(&pair[1])),
            are_possible: gaps.iter().all(is_possible),
            are_fillable: gaps.iter().all(is_fillable),
        };
        Some(Decided {
            first,
            met: met.collect(),
            holes,
            needs: after().any(|index| is_required(&index) && may_come(index)),
            is_mixed_left,
            counts,
        })
    }
}
