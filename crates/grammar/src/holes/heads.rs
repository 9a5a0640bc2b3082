//! The beginnings of an object that is cut off: the members before the text, given those within it.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::ExprId;

use super::cut::Quotient;
use super::goals::limit;
use super::lexemes::KeyHoles;
use super::members::{Gap, Group, Member, MemberList, Verdict, completed};

use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{AdditionalMembers, DeclaredMember, KeySpace, Members, MembersId, NodeId};

/// The greatest number of additional classes whose required value may still have to come before the holes or in them:
/// each doubles the number of objects.
const MAX_REQUIRED_LEFT: usize = 3;

/// What may come after the key of the last member before the text: by the members within the text and by that member.
#[derive(Default)]
pub(super) struct Heads {
    endings: FxHashMap<(MemberList, Member), Vec<NodeId>>,
}

impl Heads {
    /// Adds a continuation for all members of a group.
    pub fn add_group(&mut self, list: MemberList, group: &Group, ending: NodeId) {
        let known = group.known.iter().map(|&known| Member::Known(known));
        let additional = group.additional.iter().map(|&(class, meets)| Member::Additional { class, meets, key: None });
        for member in known.chain(additional) {
            self.endings.entry((list, member)).or_default().push(ending);
        }
    }

    /// All entries, in an order that is always the same.
    pub fn sorted(self) -> Vec<(MemberList, Member, Vec<NodeId>)> {
        let mut all: Vec<_> =
            self.endings.into_iter().map(|((list, member), endings)| (list, member, endings)).collect();
        all.sort_unstable();
        all
    }
}

impl Quotient<'_, '_> {
    /// The beginnings of an object that end before one more member and the listed ones: whole members only. They end
    /// with `open` if there is no member, and with `item` otherwise. `None` if there are none.
    pub(super) fn object_head(
        &mut self,
        id: MembersId,
        list: MemberList,
        last: Option<Member>,
        open: ExprId,
        item: ExprId,
    ) -> Result<Option<NodeId>, GrammarError> {
        let members = self.recogniser.grammar.members(id);
        let after = self.after(list, last);
        let count = after.len() as u32;
        // Without a whole member before, all members of the object are known.
        let opened = match completed(members, &after) {
            _ if open == ExprId::NOTHING => false,
            Verdict::Yes => true,
            Verdict::No => false,
            Verdict::Undecided => {
                self.refuse();
                false
            }
        };
        let has_others = item != ExprId::NOTHING && members.max.is_none_or(|max| count < max);
        let heads = if has_others { self.members_before(members, &after)? } else { Vec::new() };
        let mut readings = Vec::with_capacity(heads.len() + 1);
        for mut head in heads.into_iter().filter(|head| !head.declared.is_empty() || !head.additional.is_empty()) {
            head.min = head.min.max(1);
            head.surface.close = item;
            readings.push(self.builder.object(head));
        }
        readings.extend(opened.then(|| self.builder.lexeme(open)));
        Ok(match readings[..] {
            [] => None,
            [only] => Some(only),
            _ => Some(self.builder.choice(&readings)),
        })
    }

    /// As [`Quotient::object_head`], with the key of a last member and what follows the key.
    pub(super) fn with_last(
        &mut self,
        id: MembersId,
        list: MemberList,
        member: Member,
        ending: NodeId,
    ) -> Result<Option<NodeId>, GrammarError> {
        let members = self.recogniser.grammar.members(id);
        match member {
            Member::Known(index) => {
                let key = self.recogniser.key_of(&members.declared[index as usize]);
                let key = self.imported(key)?;
                let key = self.builder.lexeme(key);
                let rest = self.builder.sequence(&[key, ending]);
                self.with_key(id, list, member, rest)
            }
            Member::Additional { class, meets, .. } => {
                let key = members.additional[class as usize].key;
                self.cut_after_key(id, list, (class, meets), (key, ""), ending)
            }
            Member::Some(_) => unreachable!("the last member is one"),
        }
    }

    /// As [`Quotient::object_head`], with the rest of the key of a last member.
    pub(super) fn with_key(
        &mut self,
        id: MembersId,
        list: MemberList,
        member: Member,
        rest: NodeId,
    ) -> Result<Option<NodeId>, GrammarError> {
        let members = self.recogniser.grammar.members(id);
        if !self.recogniser.allows(members, list, member) {
            return Ok(None);
        }
        let surface = members.surface;
        let head = self.object_head(id, list, Some(member), surface.open, surface.item)?;
        Ok(head.map(|head| self.builder.sequence(&[head, rest])))
    }

    /// As [`Quotient::with_key`], for an additional member, whose key's other part ends at a place.
    pub(super) fn cut_key(
        &mut self,
        id: MembersId,
        list: MemberList,
        (class, meets): (u32, bool),
        place: u32,
    ) -> Result<Option<NodeId>, GrammarError> {
        let members = self.recogniser.grammar.members(id);
        let additional = &members.additional[class as usize];
        let key = self.cut_expr(additional.key, place)?;
        if key == ExprId::NOTHING {
            return Ok(None);
        }
        // Whatever was written of the key, infinitely many keys must be able to continue it: then one of them is new.
        if additional.space != KeySpace::Infinite || !self.goes_on_infinitely(additional.key, place)? {
            self.refuse();
            return Ok(None);
        }
        let template = self.recogniser.template;
        if template.has_hole(0, place) {
            match self.recogniser.lexemes.cut_key_holes(additional.key, template, place).map_err(limit)? {
                // The hole is only at the end of the key.
                KeyHoles::None => {}
                KeyHoles::Some => {
                    self.refuse();
                    return Ok(None);
                }
                // Whatever stands in this hole, a text in a later hole can make the key new.
                KeyHoles::Infinite => {
                    let key = self.builder.lexeme(key);
                    return self.with_key(id, list, Member::Additional { class, meets, key: None }, key);
                }
            }
        }
        let Ok(after) = str::from_utf8(template.between(0, place)) else {
            // The hole is within a character.
            self.refuse();
            return Ok(None);
        };
        let end = self.builder.sequence(&[]);
        self.cut_after_key(id, list, (class, meets), (key, after), end)
    }

    /// An object that ends after the key of a member of a class, where some bytes complete the object.
    fn cut_after_key(
        &mut self,
        id: MembersId,
        list: MemberList,
        (class, meets): (u32, bool),
        (key, after_key): (ExprId, &str),
        value: NodeId,
    ) -> Result<Option<NodeId>, GrammarError> {
        let members = self.recogniser.grammar.members(id);
        let member = Member::Additional { class, meets, key: None };
        if !self.recogniser.allows(members, list, member) {
            return Ok(None);
        }
        let after = self.after(list, Some(member));
        if members.max.is_some_and(|max| after.len() as u32 > max) {
            return Ok(None);
        }
        let additional = &members.additional[class as usize];
        if let KeySpace::Finite(_) = additional.space {
            // Whether a key is left for the last member would have to be known before that member comes.
            self.refuse();
            return Ok(None);
        }
        let mut readings = Vec::new();
        for mut head in self.members_before(members, &after)? {
            let Some(last) = self.others_before(additional, &after, None)? else { continue };
            head.additional.push(AdditionalMembers { key, value, last: Some(after_key.into()), ..last });
            readings.push(self.builder.object(head));
        }
        Ok(match readings[..] {
            [] => None,
            _ => Some(self.builder.choice(&readings)),
        })
    }

    /// Whether infinitely many texts of the rest of a key continue it, however the key was begun.
    fn goes_on_infinitely(&mut self, key: ExprId, place: u32) -> Result<bool, GrammarError> {
        let lexemes = &mut self.recogniser.lexemes;
        let Some(cut) = lexemes.cut(key, self.recogniser.template, place).map_err(limit)? else { return Ok(false) };
        lexemes.never_ends(cut).map_err(limit)
    }

    /// The members from the last one before the text onwards.
    fn after(&self, list: MemberList, last: Option<Member>) -> Vec<Member> {
        last.into_iter().chain(self.recogniser.lists.members(list)).collect()
    }

    /// The objects of the members that may come before others, as large as possible. There is only one, unless what a
    /// hole may hold depends on the last of these members.
    fn members_before(&mut self, members: &Members, after: &[Member]) -> Result<Vec<Members>, GrammarError> {
        let ordered = members.ordered as u32;
        let holes = (0..after.len()).filter(|&at| matches!(after[at], Member::Some(_)));
        let mut gaps: Vec<Gap> = holes.map(|at| Gap::of(members, after, at)).collect();
        let listed = listed(members, after);
        let unlisted = |index: &u32| !listed[*index as usize];
        // What a hole right after the members before may hold depends on the last of them.
        let leading = matches!(after.first(), Some(Member::Some(_))).then(|| gaps.remove(0));
        let all = || gaps.iter().chain(&leading);
        let is_supplied = |index: u32| index >= ordered && all().any(|gap| gap.allows(index));
        let mut has_ordered = gaps.iter().map(|gap| gap.ordered().filter(unlisted).count() as u32);
        let are_filled = gaps.iter().all(|gap| gap.takes_others() || has_ordered.next().is_some_and(|count| count > 0));
        let mut are_apart = gaps.windows(2).all(|pair| pair[0].takes_others() || !pair[0].is_same(&pair[1]));
        are_apart &=
            leading.as_ref().is_none_or(|gap| gap.takes_others() || gaps.first().is_none_or(|next| !gap.is_same(next)));
        let has_required = members.additional.iter().any(|additional| additional.some.is_some());
        let in_a_gap = |index: u32| unlisted(&index) && all().any(|gap| gap.allows(index));
        let needs = members.declared.iter().zip(0..).any(|(known, index)| known.required && in_a_gap(index));
        let is_bounded = members.max.is_some() && all().next().is_some() && (needs || has_required);
        let is_free = all().any(Gap::takes_others);
        let is_short = all().next().is_some() && !is_free && members.min > after.len() as u32;
        // If a hole can hold nothing, there are no members before it.
        let is_finite = members.whole_others().any(|additional| matches!(additional.space, KeySpace::Finite(_)));
        let mixed = (ordered..members.declared.len() as u32).any(|index| unlisted(&index));
        let is_impossible = |gap: &Gap| {
            !gap.takes_others()
                && !gap.ordered().any(|index| unlisted(&index))
                && !(gap.is_mixed() && (is_finite || mixed))
        };
        if all().any(is_impossible) {
            return Ok(Vec::new());
        }
        let is_closed = leading.as_ref().is_some_and(|gap| !gap.takes_others() && gap.is_mixed());
        if !are_filled || !are_apart || is_bounded || is_short || is_closed {
            self.refuse();
            if !is_closed || !are_filled || !are_apart || is_bounded || is_short {
                return Ok(Vec::new());
            }
        }
        let first = after.iter().find(|member| !matches!(member, Member::Some(_)));
        let before = match first {
            Some(Member::Known(index)) if *index < ordered => Some(*index),
            _ => None,
        };
        let are_mixed = all().any(Gap::is_mixed);
        let ends = ends_before(members, leading.as_ref(), unlisted);
        let mut heads = Vec::with_capacity(ends.len());
        for end in ends {
            let comes = |index: u32| unlisted(&index) && end.or(before).is_none_or(|before| index < before);
            let is_there = |index: u32| {
                comes(index)
                    || is_supplied(index)
                    || gaps.iter().any(|gap| gap.allows(index))
                    || end.is_some_and(|end| leading.as_ref().is_some_and(|gap| index >= end && gap.allows(index)))
            };
            let mut required =
                members.declared.iter().zip(0..).filter(|(known, index)| known.required && unlisted(index));
            if !required.all(|(_, index)| is_there(index)) {
                continue;
            }
            let known = (0..members.declared.len() as u32).filter(|&index| comes(index)).map(|index| {
                let known = &members.declared[index as usize];
                DeclaredMember { required: known.required && !is_supplied(index), ..known.clone() }
            });
            let mut head = Members { declared: known.collect(), additional: Vec::new(), ..members.clone() };
            head.ordered = (0..ordered).filter(|&index| comes(index)).count();
            head.min = if is_free { 0 } else { members.min.saturating_sub(after.len() as u32) };
            head.max = members.max.map(|max| max - after.len() as u32);
            let has_others = before.is_none() && end.is_none();
            heads.extend(self.with_others(members, after, are_mixed, &head, has_others)?);
        }
        Ok(heads)
    }

    /// The objects of the members before others, with members of the additional classes if there may be any. There is
    /// one object for each choice of the required values of classes that must come before, rather than in the holes.
    fn with_others(
        &mut self,
        members: &Members,
        after: &[Member],
        are_holes_mixed: bool,
        head: &Members,
        has_others: bool,
    ) -> Result<Vec<Members>, GrammarError> {
        let is_met = |class: usize| after.iter().any(|member| member.meets(class));
        let is_required_left = |class: &usize| members.additional[*class].some.is_some() && !is_met(*class);
        let (finite_left, mut met_in_holes): (Vec<usize>, Vec<usize>) = (0..members.additional.len())
            .filter(|class| is_required_left(class) && are_holes_mixed)
            .partition(|&class| matches!(members.additional[class].space, KeySpace::Finite(_)));
        if !finite_left.is_empty() || met_in_holes.len() > MAX_REQUIRED_LEFT {
            self.refuse();
            met_in_holes.truncate(MAX_REQUIRED_LEFT);
        }
        let mut heads = Vec::with_capacity(1 << met_in_holes.len());
        for in_holes in 0..1u32 << met_in_holes.len() {
            let mut head = head.clone();
            let mut is_possible = true;
            for (class, others) in members.additional.iter().enumerate() {
                let is_in_hole =
                    met_in_holes.iter().position(|&of| of == class).is_some_and(|at| in_holes >> at & 1 != 0);
                let required = others.some.filter(|_| is_required_left(&class) && !is_in_hole);
                let left = if has_others { self.others_before(others, after, required)? } else { None };
                is_possible &= left.is_some() || required.is_none();
                head.additional.extend(left);
            }
            heads.extend(is_possible.then_some(head));
        }
        Ok(heads)
    }

    /// The additional members of a class whose keys are none of those listed; `None` if there are none.
    fn others_before(
        &mut self,
        others: &AdditionalMembers,
        after: &[Member],
        required: Option<NodeId>,
    ) -> Result<Option<AdditionalMembers>, GrammarError> {
        let mut reserved = others.reserved.to_vec();
        for member in after {
            let Member::Additional { key: Some(key), .. } = *member else { continue };
            match str::from_utf8(self.recogniser.lists.key(key)) {
                Ok(key) => reserved.push(Arc::from(key)),
                // A reserved name must be valid UTF-8, which this key is not.
                Err(_) => {
                    self.refuse();
                    return Ok(None);
                }
            }
        }
        reserved.sort_unstable();
        reserved.dedup();
        let mut space = others.space;
        if matches!(space, KeySpace::Finite(_)) && reserved.len() > others.reserved.len() {
            let names: Vec<&str> = reserved.iter().map(|name| &**name).collect();
            space = match self.builder.key_space(others.key, &names) {
                Ok(space) => space,
                Err(error) if error.kind == ErrorKind::Unsatisfiable => return Ok(None),
                Err(error) => return Err(error),
            };
        }
        Ok(Some(AdditionalMembers { reserved: reserved.into(), space, some: required, ..others.clone() }))
    }

    /// An expression of the lexemes as one of the builder.
    fn imported(&mut self, expr: ExprId) -> Result<ExprId, GrammarError> {
        let exprs = &self.recogniser.lexemes.deriver.exprs;
        self.builder.exprs.import_in_time(exprs, expr).map_err(limit)
    }
}

/// The ordered members within the hole before which the members before it may end; `None` for anywhere.
fn ends_before(members: &Members, leading: Option<&Gap>, unlisted: impl Fn(&u32) -> bool) -> Vec<Option<u32>> {
    let mut ends = Vec::new();
    if let Some(gap) = leading {
        let is_end =
            |index: &u32| unlisted(index) && (!gap.takes_others() || members.declared[*index as usize].required);
        ends.extend(gap.ordered().filter(is_end).map(Some));
    }
    if leading.is_none_or(Gap::takes_others) {
        ends.push(None);
    }
    ends
}

/// For every declared member, whether it is among these.
fn listed(members: &Members, after: &[Member]) -> Vec<bool> {
    let mut listed = vec![false; members.declared.len()];
    for member in after {
        if let Member::Known(index) = member {
            listed[*index as usize] = true;
        }
    }
    listed
}
