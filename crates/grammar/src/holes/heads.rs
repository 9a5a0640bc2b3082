//! The beginnings of an object that is cut off: the members before the text, given those within it.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::ExprId;

use super::objects::{Gap, Group, Member, MemberList, Verdict, completed};
use super::quotient::Quotient;
use crate::ir::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{FreeMembers, KeySpace, Members, MembersId, NodeId};

/// What may come behind the key of the last member before the text, by the members within the text and that member.
#[derive(Default)]
pub(super) struct Heads {
    endings: FxHashMap<(MemberList, Member), Vec<NodeId>>,
}

impl Heads {
    /// The same for all members of a group.
    pub fn add_group(&mut self, list: MemberList, group: &Group, ending: NodeId) {
        let known = group.known.iter().map(|&known| Member::Known(known));
        let free = group.free.iter().map(|&(class, meets)| Member::Free { class, meets, key: None });
        for member in known.chain(free) {
            self.endings.entry((list, member)).or_default().push(ending);
        }
    }

    /// All of it, in an order that is the same every time.
    pub fn sorted(self) -> Vec<(MemberList, Member, Vec<NodeId>)> {
        let mut all: Vec<_> = self.endings.into_iter().map(|((list, member), endings)| (list, member, endings)).collect();
        all.sort_unstable();
        all
    }
}

impl Quotient<'_, '_> {
    /// An object with whole members only, up to before one more and the listed ones: `open` where it has none, and else `item` at
    /// its end. `None` where there is none.
    pub(super) fn object_head(
        &mut self,
        id: MembersId,
        list: MemberList,
        last: Option<Member>,
        open: ExprId,
        item: ExprId,
    ) -> Result<Option<NodeId>, GrammarError> {
        let Some(head) = self.members_before(id, list, last, open, item)? else { return Ok(None) };
        Ok(match head {
            Head::Opened(open) => Some(self.builder.lexeme(open)),
            Head::Members(members) => Some(self.builder.object(*members)),
        })
    }

    /// The same with the key and what follows it of a last member.
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
                let key = self.recogniser.key_of(&members.known[index as usize]);
                let key = self.imported(key)?;
                let key = self.builder.lexeme(key);
                let rest = self.builder.sequence(&[key, ending]);
                self.with_key(id, list, member, rest)
            }
            _ => {
                self.is_doubtful = true;
                Ok(None)
            }
        }
    }

    /// The same with what is left of the key of a last member.
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

    pub(super) fn cut_key(
        &mut self,
        _id: MembersId,
        _list: MemberList,
        _class: (u32, bool),
        _place: u32,
    ) -> Result<Option<NodeId>, GrammarError> {
        self.is_doubtful = true;
        Ok(None)
    }

    fn members_before(
        &mut self,
        id: MembersId,
        list: MemberList,
        last: Option<Member>,
        open: ExprId,
        item: ExprId,
    ) -> Result<Option<Head>, GrammarError> {
        let members = self.recogniser.grammar.members(id);
        let behind: Vec<Member> = last.into_iter().chain(self.recogniser.lists.members(list)).collect();
        let count = behind.len() as u32;
        if members.max.is_some_and(|max| count > max) {
            return Ok(None);
        }
        // With no whole member before, it is known what there is.
        let opened = match completed(members, &behind) {
            Verdict::Yes => open,
            Verdict::No => ExprId::NOTHING,
            Verdict::Doubt => {
                self.is_doubtful = true;
                ExprId::NOTHING
            }
        };
        let only_opened = (opened != ExprId::NOTHING).then_some(Head::Opened(opened));
        if item == ExprId::NOTHING || members.max == Some(count) {
            return Ok(only_opened);
        }
        let ordered = members.ordered as u32;
        let mut head = members.clone();
        let mut supplied = vec![false; members.known.len()];
        if behind.iter().any(|member| matches!(member, Member::Some(_))) {
            let gaps: Vec<Gap> = (0..behind.len())
                .filter(|&at| matches!(behind[at], Member::Some(_)))
                .map(|at| Gap::of(members, &behind, at))
                .collect();
            // Where any member that is missing may stand in any of the holes, and any other one, the members before decide nothing.
            let is_free = ordered == 0
                && members.max.is_none()
                && members.free.iter().all(|free| free.some.is_none())
                && gaps.iter().all(Gap::takes_others);
            if !is_free {
                self.is_doubtful = true;
                return Ok(only_opened);
            }
            supplied.fill(true);
            head.min = 0;
        }
        let first = behind.iter().find(|member| !matches!(member, Member::Some(_)));
        let before = match first {
            Some(Member::Known(index)) if *index < ordered => Some(*index),
            _ => None,
        };
        let is_listed = |index: u32| behind.contains(&Member::Known(index));
        let comes = |index: u32| !is_listed(index) && before.is_none_or(|before| index < before);
        for (index, known) in members.known.iter().enumerate() {
            let index = index as u32;
            if known.required && !is_listed(index) && !comes(index) && !supplied[index as usize] {
                return Ok(only_opened);
            }
        }
        let kept = |index: &u32| comes(*index);
        head.ordered = (0..ordered).filter(kept).count();
        let known = (0..members.known.len() as u32).filter(kept).map(|index| {
            let mut known = members.known[index as usize].clone();
            known.required &= !supplied[index as usize];
            known
        });
        head.known = known.collect();
        let mut free = Vec::new();
        for (class, others) in members.free.iter().enumerate() {
            let class = class as u32;
            let is_met = behind.iter().any(|member| matches!(member, Member::Free { class: of, meets: true, .. } if *of == class));
            let owed = others.some.filter(|_| !is_met);
            let left = if before.is_some() { None } else { self.others_before(others, &behind, owed)? };
            match left {
                Some(left) => free.push(left),
                None if owed.is_some() => return Ok(only_opened),
                None => {}
            }
        }
        head.free = free;
        head.min = head.min.saturating_sub(count).max(1);
        head.max = members.max.map(|max| max - count);
        if head.known.is_empty() && head.free.is_empty() {
            return Ok(only_opened);
        }
        if opened != ExprId::NOTHING {
            // At least one member, or none.
            head.min -= u32::from(head.min == 1);
        }
        head.surface.empty = opened;
        head.surface.close = item;
        Ok(Some(Head::Members(Box::new(head))))
    }

    /// The members of a class of others whose keys are none of those listed; `None` where there are none.
    fn others_before(
        &mut self,
        others: &FreeMembers,
        behind: &[Member],
        owed: Option<NodeId>,
    ) -> Result<Option<FreeMembers>, GrammarError> {
        let mut taken = others.taken.to_vec();
        for member in behind {
            let Member::Free { key: Some(key), .. } = *member else { continue };
            match str::from_utf8(self.recogniser.lists.key(key)) {
                Ok(key) => taken.push(Arc::from(key)),
                // Names are characters.
                Err(_) => {
                    self.is_doubtful = true;
                    return Ok(None);
                }
            }
        }
        taken.sort_unstable();
        taken.dedup();
        let mut space = others.space;
        if matches!(space, KeySpace::Few(_)) && taken.len() > others.taken.len() {
            let names: Vec<&str> = taken.iter().map(|name| &**name).collect();
            space = match self.builder.key_space(others.key, &names) {
                Ok(space) => space,
                Err(error) if error.kind == ErrorKind::Unsatisfiable => return Ok(None),
                Err(error) => return Err(error),
            };
        }
        Ok(Some(FreeMembers { taken: taken.into(), space, some: owed, ..others.clone() }))
    }

    /// An expression of the lexemes as one of the builder.
    fn imported(&mut self, expr: ExprId) -> Result<ExprId, GrammarError> {
        let exprs = &self.recogniser.lexemes.deriver.exprs;
        self.builder.exprs.import_in_time(exprs, expr).map_err(super::recogniser::limit)
    }
}

/// The beginning of an object.
enum Head {
    /// Its first sign alone.
    Opened(ExprId),
    /// Members behind it, or none.
    Members(Box<Members>),
}
