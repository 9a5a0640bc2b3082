//! Members of an object that were read, from the last one on, and what those within holes may be.
//!
//! Members that stand wholly within a hole are not listed one by one: the list says that there are some, and what they
//! must be is decided when the rest of the object is known.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::Facts;
use crate::ir::grammar::{AdditionalMembers, KeySpace, Members, MembersId, NodeId};

/// The members of an object that were read, the last one first, as a number of [`MemberLists`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct MemberList(u32);

/// The hole within which something has begun and ended so far, as its place plus one; 0 for none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct Within(u32);

impl Within {
    pub fn hole(place: u32) -> Within {
        Within(place + 1)
    }

    /// The same hole, if a place is still at it.
    pub fn still_at(self, place: u32) -> Within {
        if self == Within::hole(place) { self } else { Within::default() }
    }
}

/// A member that was read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Member {
    /// A declared member.
    Known(u32),
    /// A member of an additional class.
    Additional {
        class: u32,
        /// Whether it has the required value of its class.
        meets: bool,
        /// Its key as a string value; `None` if a hole is in the key and it may be any key that is new.
        key: Option<u32>,
    },
    /// One or more members within the hole at this place.
    Some(u32),
}

impl Member {
    /// Whether it is of a class of additional members and has the required value of that class.
    pub fn meets(&self, class: usize) -> bool {
        matches!(self, Member::Additional { class: of, meets: true, .. } if *of as usize == class)
    }
}

#[derive(Clone, Copy)]
struct Link {
    after: MemberList,
    member: Member,
    count: u32,
}

/// The lists of one recogniser; equal lists have the same number.
#[derive(Default)]
pub(super) struct MemberLists {
    links: Vec<Link>,
    index: FxHashMap<(MemberList, Member), MemberList>,
    keys: Vec<Box<[u8]>>,
    key_index: FxHashMap<Box<[u8]>, u32>,
}

impl MemberLists {
    pub fn with(&mut self, after: MemberList, member: Member) -> MemberList {
        let count = self.count(after) + 1;
        let MemberLists { links, index, .. } = self;
        *index.entry((after, member)).or_insert_with(|| {
            links.push(Link { after, member, count });
            MemberList(links.len() as u32)
        })
    }

    fn link(&self, list: MemberList) -> Option<&Link> {
        self.links.get((list.0 as usize).checked_sub(1)?)
    }

    /// The number of members in a list.
    pub fn count(&self, list: MemberList) -> u32 {
        self.link(list).map_or(0, |link| link.count)
    }

    /// The first member in the order of the text.
    pub fn first(&self, list: MemberList) -> Option<Member> {
        self.link(list).map(|link| link.member)
    }

    /// The members in the order of the text.
    pub fn members(&self, list: MemberList) -> impl Iterator<Item = Member> {
        let mut next = list;
        std::iter::from_fn(move || {
            let link = self.link(next)?;
            next = link.after;
            Some(link.member)
        })
    }

    pub fn key(&self, key: u32) -> &[u8] {
        &self.keys[key as usize]
    }

    pub fn key_id(&mut self, key: &[u8]) -> u32 {
        if let Some(&known) = self.key_index.get(key) {
            return known;
        }
        let id = self.keys.len() as u32;
        self.keys.push(key.into());
        self.key_index.insert(key.into(), id);
        id
    }
}

/// Members whose values are read in the same way.
pub(super) struct Group {
    pub value: NodeId,
    /// Declared members.
    pub known: Vec<u32>,
    /// Additional classes, and whether the value is the required one of the class.
    pub additional: Vec<(u32, bool)>,
    /// The plain names of the declared members, and their lengths.
    pub plain: FxHashMap<Arc<str>, u32>,
    pub lengths: Vec<usize>,
}

/// The members of the objects of one grammar, grouped by their values.
#[derive(Default)]
pub(super) struct ObjectForms {
    forms: FxHashMap<MembersId, Arc<[Group]>>,
}

impl ObjectForms {
    pub fn of(&mut self, id: MembersId, members: &Members, facts: &Facts) -> Arc<[Group]> {
        self.forms.entry(id).or_insert_with(|| groups(members, facts)).clone()
    }
}

fn groups(members: &Members, facts: &Facts) -> Arc<[Group]> {
    let mut groups: Vec<Group> = Vec::new();
    let mut index: FxHashMap<(NodeId, Option<NodeId>), usize> = FxHashMap::default();
    let mut group = |value: NodeId, groups: &mut Vec<Group>| {
        *index.entry((facts.base(value), facts.mark(value))).or_insert_with(|| {
            let (known, additional, plain, lengths) = Default::default();
            groups.push(Group { value, known, additional, plain, lengths });
            groups.len() - 1
        })
    };
    for (at, known) in members.declared.iter().enumerate() {
        let at_group = group(known.value, &mut groups);
        let group = &mut groups[at_group];
        group.known.push(at as u32);
        if known.key.is_none() {
            group.plain.insert(known.name.clone(), at as u32);
            group.lengths.push(known.name.len());
        }
    }
    for (class, additional) in members.additional.iter().enumerate() {
        let at_group = group(additional.value, &mut groups);
        groups[at_group].additional.push((class as u32, false));
        if let Some(some) = additional.some {
            let at_group = group(some, &mut groups);
            groups[at_group].additional.push((class as u32, true));
        }
    }
    for group in &mut groups {
        group.lengths.sort_unstable();
        group.lengths.dedup();
    }
    groups.into()
}

/// Whether what was asked about an object holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Yes,
    No,
    /// It could not be decided.
    Undecided,
}

/// How many of the listed members count for the bounds of an object: the last member of a truncated object doesn't.
pub(super) fn counted(members: &Members, listed: u32) -> u32 {
    listed.saturating_sub(u32::from(members.is_cut()))
}

/// Whether an object may have exactly these members, none of which is within a hole.
pub(super) fn is_complete(members: &Members, listed: &[Member]) -> bool {
    let has = |index: usize| listed.contains(&Member::Known(index as u32));
    let count = counted(members, listed.len() as u32);
    let met = |class: usize| {
        listed
            .iter()
            .any(|member| matches!(member, Member::Additional { class: of, meets: true, .. } if *of as usize == class))
    };
    let is_met =
        members.additional.iter().enumerate().all(|(class, additional)| additional.some.is_none() || met(class));
    is_met
        && count >= members.min
        && members.max.is_none_or(|max| count <= max)
        && members.declared.iter().enumerate().all(|(index, known)| !known.required || has(index))
}

/// Whether an object may have these members, and others in the holes.
pub(super) fn completed(members: &Members, listed: &[Member]) -> Verdict {
    let is_hole = |member: &Member| matches!(member, Member::Some(_));
    if !listed.iter().any(is_hole) {
        return if is_complete(members, listed) { Verdict::Yes } else { Verdict::No };
    }
    let used: FxHashSet<u32> = listed
        .iter()
        .filter_map(|member| if let Member::Known(index) = member { Some(*index) } else { None })
        .collect();
    // Which members may stand in each hole.
    let gaps: Vec<Gap> =
        (0..listed.len()).filter(|&at| is_hole(&listed[at])).map(|at| Gap::of(members, listed, at)).collect();
    let unused =
        |gap: &Gap| (0..members.declared.len() as u32).any(|index| !used.contains(&index) && gap.allows(index));
    let is_missing = |index: &u32| members.declared[*index as usize].required && !used.contains(index);
    let mut missing = (0..members.declared.len() as u32).filter(is_missing);
    // The required values of the additional classes.
    let met = |class: u32| {
        listed.iter().any(|member| matches!(member, Member::Additional { class: of, meets: true, .. } if *of == class))
    };
    let required_left = members
        .additional
        .iter()
        .zip(0..)
        .filter(|(additional, class)| additional.some.is_some() && !met(*class))
        .count() as u32;
    if required_left > 0 && !gaps.iter().any(Gap::is_mixed) {
        return Verdict::No;
    }
    if required_left > 0 && has_finite(members) {
        return Verdict::Undecided;
    }
    if let Some(max) = members.max {
        let concrete = counted(members, (listed.len() - gaps.len()) as u32);
        let needed = missing.clone().count() as u32 + required_left;
        if concrete + needed.max(gaps.len() as u32) > max {
            return Verdict::No;
        }
        if concrete + needed + gaps.len() as u32 > max {
            return Verdict::Undecided;
        }
    }
    // The number of additional members whose keys can be exhausted that are left.
    let few: u32 = members.whole_others().zip(0..).map(|(additional, class)| few_left(additional, class, listed)).sum();
    let is_possible = |gap: &Gap| gap.takes_others() || unused(gap) || (gap.is_mixed() && few > 0);
    if !missing.all(|index| gaps.iter().any(|gap| gap.allows(index))) || !gaps.iter().all(is_possible) {
        return Verdict::No;
    }
    // Two holes that take only declared members must not need the same one.
    let needy: Vec<&Gap> = gaps.iter().filter(|gap| !gap.takes_others()).collect();
    let has_own = |gap: &&Gap| gap.ordered().any(|index| !used.contains(&index));
    let are_apart =
        needy.len() < 2 || (needy.iter().all(has_own) && needy.windows(2).all(|pair| !pair[0].is_same(pair[1])));
    if !are_apart {
        return Verdict::Undecided;
    }
    if needy.len() < gaps.len() {
        return Verdict::Yes;
    }
    let available = (0..members.declared.len() as u32)
        .filter(|index| !used.contains(index) && gaps.iter().any(|gap| gap.allows(*index)))
        .count();
    let others = if gaps.iter().any(Gap::is_mixed) { few } else { 0 };
    let count = listed.iter().filter(|member| !is_hole(member)).count() + available;
    if counted(members, count as u32).saturating_add(others) >= members.min { Verdict::Yes } else { Verdict::No }
}

/// Whether some class has finitely many keys.
fn has_finite(members: &Members) -> bool {
    members.additional.iter().any(|additional| matches!(additional.space, KeySpace::Finite(_)))
}

/// How many members of a class with finitely many keys may come beside the listed ones; 0 for any other class.
pub(super) fn few_left(additional: &AdditionalMembers, class: u32, listed: &[Member]) -> u32 {
    let KeySpace::Finite(count) = additional.space else { return 0 };
    let is_one = |member: &&Member| matches!(member, Member::Additional { class: of, .. } if *of == class);
    count.saturating_sub(listed.iter().filter(is_one).count() as u32)
}

/// Which members may stand within a hole.
pub(super) struct Gap {
    /// Ordered members between these two positions; the second is excluded.
    ordered: (u32, u32),
    /// Declared members in any order, from this position on.
    mixed: Option<u32>,
    /// Additional members, of which there are infinitely many.
    others: bool,
}

impl Gap {
    pub fn of(members: &Members, listed: &[Member], at: usize) -> Gap {
        let ordered = members.ordered as u32;
        let is_hole = |member: &&Member| matches!(member, Member::Some(_));
        let before = listed[..at].iter().rev().find(|member| !is_hole(member));
        let after = listed[at + 1..].iter().find(|member| !is_hole(member));
        let from = match before {
            None => 0,
            Some(Member::Known(index)) if *index < ordered => index + 1,
            Some(_) => ordered,
        };
        let (to, is_mixed) = match after {
            Some(Member::Known(index)) if *index < ordered => (*index, false),
            _ => (ordered, true),
        };
        let is_infinite = members.whole_others().any(|additional| !matches!(additional.space, KeySpace::Finite(_)));
        Gap { ordered: (from, to), mixed: is_mixed.then_some(ordered), others: is_mixed && is_infinite }
    }

    /// The ordered members that may stand in it.
    pub fn ordered(&self) -> impl Iterator<Item = u32> + use<> {
        self.ordered.0..self.ordered.1
    }

    /// Whether another gap takes the same declared members.
    pub fn is_same(&self, other: &Gap) -> bool {
        self.ordered == other.ordered && self.mixed == other.mixed
    }

    /// Whether unordered declared members may stand in it.
    pub fn is_mixed(&self) -> bool {
        self.mixed.is_some()
    }

    /// Whether it takes additional members, of which there are infinitely many.
    pub fn takes_others(&self) -> bool {
        self.others
    }

    /// Whether a declared member may stand in it.
    pub fn allows(&self, index: u32) -> bool {
        (self.ordered.0..self.ordered.1).contains(&index) || self.mixed.is_some_and(|from| index >= from)
    }
}
