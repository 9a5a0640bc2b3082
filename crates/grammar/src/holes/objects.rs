//! Objects against a text with holes: their members from the last one on.
//!
//! Which members there are decides whether an object is complete, so a state holds the list of those that were read, or
//! another one that decides the same ([`super::representatives`]).

use std::rc::Rc;

use stencilm_regex::ExprId;

use super::goals::{GoalId, Recogniser, Step, limit};
use super::lexemes::KeyHoles;
use super::members::{Member, MemberList, Verdict, Within, completed, counted, is_complete};
use super::place::Place;
use crate::error::GrammarError;
use crate::ir::grammar::{DeclaredMember, KeySpace, Members, MembersId};
use crate::json::string_value::string_value;

impl Recogniser<'_> {
    pub(super) fn begin_object(&mut self, goal: GoalId, id: MembersId, end: Place) -> Result<(), GrammarError> {
        let members = self.grammar.members(id);
        if members.is_cut() {
            for (class, additional) in
                members.additional.iter().enumerate().filter(|(_, additional)| additional.last.is_some())
            {
                self.call(goal, Step::Last(class as u32), additional.value, end)?;
            }
            return Ok(());
        }
        self.read_lexeme(goal, Step::AfterValue(MemberList::default()), members.surface.close, end)?;
        if is_complete(members, &[]) {
            self.read_lexeme(goal, Step::Done, members.surface.empty, end)?;
        }
        Ok(())
    }

    pub(super) fn enter_object(
        &mut self,
        goal: GoalId,
        id: MembersId,
        step: Step,
        at: Place,
    ) -> Result<(), GrammarError> {
        let members = self.grammar.members(id);
        let place = at.position();
        match step {
            Step::Last(class) => {
                let mut found = Vec::new();
                self.additional_keys(members, (class, false), place, &mut found)?;
                for (member, start) in found {
                    let list = self.lists.with(MemberList::default(), member);
                    self.go_on(goal, Step::Key(list), start.after(at));
                }
            }
            Step::AfterValue(list) => {
                if members.max.is_some_and(|max| counted(members, self.lists.count(list)) >= max) {
                    return Ok(());
                }
                let is_hole = self.template.is_hole(place);
                let within = if is_hole { Within::hole(place) } else { Within::default() };
                let groups = self.objects.of(id, members, self.facts);
                for (index, group) in groups.iter().enumerate() {
                    self.call(goal, Step::Value(list, index as u32, within), group.value, at)?;
                }
                let some = Member::Some(place);
                if is_hole && self.lists.first(list) != Some(some) {
                    let list = self.lists.with(list, some);
                    self.go_on(goal, Step::Key(list), at);
                }
            }
            Step::Value(list, group, within) => {
                let within = within.still_at(place);
                self.read_lexeme(goal, Step::Colon(list, group, within), members.surface.colon, at)?;
            }
            Step::Colon(list, group, within) => {
                let within = within.still_at(place);
                for (list, start) in self.keys(id, members, list, group, within, at)? {
                    self.go_on(goal, Step::Key(list), start);
                }
            }
            Step::Key(list) => {
                self.read_lexeme(goal, Step::AfterValue(list), members.surface.item, at)?;
                let listed: Vec<Member> = self.lists.members(list).collect();
                let verdict = completed(members, &listed);
                if verdict == Verdict::No {
                    return Ok(());
                }
                for start in self.lexeme_starts(members.surface.open, place)?.iter() {
                    let start = start.after(at);
                    self.complete(goal, if verdict == Verdict::Undecided { start.undecided() } else { start })?;
                }
            }
            _ => unreachable!("an object has no other steps"),
        }
        Ok(())
    }

    /// Every reading of a key that ends at a place: the list with its member added, and where the key begins.
    fn keys(
        &mut self,
        id: MembersId,
        members: &Members,
        list: MemberList,
        group: u32,
        within: Within,
        at: Place,
    ) -> Result<Vec<(MemberList, Place)>, GrammarError> {
        let end = at.position();
        let found = match self.key_readings.get(&(id, group, end)) {
            Some(known) => known.clone(),
            None => {
                let found: Rc<[(Member, Place)]> = self.find_keys(id, members, group, end)?.into();
                self.key_readings.insert((id, group, end), found.clone());
                found
            }
        };
        // Members that stand wholly within a hole are listed as one.
        let is_outside = |start: Place| within == Within::default() || start.position() != end;
        let mut with = Vec::new();
        for &(member, start) in found.iter() {
            if is_outside(start)
                && self.allows(members, list, member)
                && let Some(list) = self.representatives.with(&mut self.lists, (id, members), list, member)
            {
                with.push((list, start.after(at)));
            }
        }
        Ok(with)
    }

    /// Every reading of a key of a group that ends at a place, whatever members come after it.
    fn find_keys(
        &mut self,
        id: MembersId,
        members: &Members,
        group: u32,
        end: u32,
    ) -> Result<Vec<(Member, Place)>, GrammarError> {
        let groups = self.objects.of(id, members, self.facts);
        let group = &groups[group as usize];
        let mut found: Vec<(Member, Place)> = Vec::new();
        let longest = group.lengths.last().map_or(0, |length| length + 2) as u32;
        let looks_up = !self.template.has_hole(end.saturating_sub(longest), end);
        if looks_up {
            for &length in &group.lengths {
                let Some(start) = end.checked_sub(length as u32 + 2) else { continue };
                let written = self.template.between(start, end);
                let name = written.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
                let name = name.and_then(|name| str::from_utf8(name).ok());
                if let Some(&index) = name.and_then(|name| group.plain.get(name)) {
                    found.push((Member::Known(index), Place::new(start)));
                }
            }
        }
        for &index in &group.known {
            let known = &members.declared[index as usize];
            match known.key {
                Some(key) => {
                    let starts = self.lexeme_starts(key, end)?;
                    found.extend(starts.iter().map(|&start| (Member::Known(index), start)));
                }
                None if looks_up => {}
                None => {
                    let starts = self.template.starts_of(plainly_written(known).as_bytes(), end);
                    found.extend(starts.into_iter().map(|start| (Member::Known(index), Place::new(start))));
                }
            }
        }
        for &(class, meets) in
            group.additional.iter().filter(|(class, _)| members.additional[*class as usize].last.is_none())
        {
            self.additional_keys(members, (class, meets), end, &mut found)?;
        }
        Ok(found)
    }

    /// Every reading of a key of an additional class that ends at a place.
    fn additional_keys(
        &mut self,
        members: &Members,
        (class, meets): (u32, bool),
        end: u32,
        found: &mut Vec<(Member, Place)>,
    ) -> Result<(), GrammarError> {
        let additional = &members.additional[class as usize];
        for (start, holes) in self.lexemes.key_starts(additional.key, self.template, end).map_err(limit)? {
            if holes != KeyHoles::None {
                let is_certain = holes == KeyHoles::Infinite && additional.space == KeySpace::Infinite;
                let start = if is_certain { start } else { start.undecided() };
                found.push((Member::Additional { class, meets, key: None }, start));
                continue;
            }
            let written = self.template.between(start.position(), end);
            let key = string_value(&[written, additional.last.as_deref().unwrap_or_default().as_bytes()].concat());
            if !additional.reserved.iter().any(|name| name.as_bytes() == key) {
                let key = Some(self.lists.key_id(&key));
                found.push((Member::Additional { class, meets, key }, start));
            }
        }
        Ok(())
    }

    /// The spellings of a declared key, as an expression of the lexemes.
    pub(super) fn key_of(&mut self, known: &DeclaredMember) -> ExprId {
        known.key.unwrap_or_else(|| self.lexemes.deriver.exprs.literal(plainly_written(known).as_bytes()))
    }

    /// Whether a member may stand before the listed ones.
    pub(super) fn allows(&self, members: &Members, list: MemberList, member: Member) -> bool {
        let is_ordered = |index: u32| (index as usize) < members.ordered;
        // Between two consecutive members of the order nothing can stand.
        if let (Member::Known(index), Some(Member::Some(_))) = (member, self.lists.first(list)) {
            let next = self.lists.members(list).find(|member| !matches!(member, Member::Some(_)));
            if matches!(next, Some(Member::Known(next)) if is_ordered(next) && index + 1 >= next) {
                return false;
            }
        }
        let before = self.lists.members(list).find(|member| !matches!(member, Member::Some(_)));
        match (member, before) {
            (Member::Known(index), Some(Member::Known(next))) if is_ordered(next) && index >= next => return false,
            (Member::Additional { .. }, Some(Member::Known(next))) if is_ordered(next) => return false,
            _ => {}
        }
        // The required value of a class is read only while it is still missing.
        !self.lists.members(list).any(|listed| match (listed, member) {
            (Member::Known(one), Member::Known(other)) => one == other,
            (
                Member::Additional { class: one, meets: true, .. },
                Member::Additional { class: other, meets: true, .. },
            ) if one == other => true,
            (Member::Additional { key: Some(one), .. }, Member::Additional { key: Some(other), .. }) => one == other,
            _ => false,
        })
    }
}

/// The spelling of a declared key that has only its plain one.
pub(super) fn plainly_written(known: &DeclaredMember) -> String {
    ["\"", &known.name, "\""].concat()
}
