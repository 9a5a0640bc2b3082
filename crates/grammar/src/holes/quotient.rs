//! The quotient of a grammar by what follows a hole, as a grammar: the texts that may stand before it.
//!
//! A node that reads on from the hole up to a place is cut there: of a sequence that is some parts, one that is cut,
//! and the rest of them read within the text. Which those are has been found by reading the text.

use stencilm_regex::ExprId;
use stencilm_support::check_time;

use super::cut::Quotient;
use super::elements::{Elements, Slot, alternatives};
use super::goals::{Step, limit};
use super::heads::Heads;
use super::members::{Member, MemberList, is_complete};
use super::objects::plainly_written;
use super::place::Place;
use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::{ArraySurface, Items, MembersId, Node, NodeId};

/// The greatest number of nodes that are made.
const MAX_NODES: usize = 2_000_000;

impl Quotient<'_, '_> {
    /// The root of the quotient, given the places where the root of the grammar may begin.
    pub fn root(&mut self, starts: &[Place]) -> Result<NodeId, GrammarError> {
        let mut readings = Vec::new();
        for start in starts.iter().filter(|start| start.position() == 0) {
            if start.is_undecided() {
                self.is_undecided = true;
            } else {
                readings.push(self.builder.sequence(&[]));
            }
        }
        let (root, end) = (self.recogniser.grammar.root(), self.recogniser.template.end());
        readings.extend(self.cut(root, end)?);
        while let Some((node, end, rule)) = self.work.pop() {
            check_time().map_err(limit)?;
            let body = self.cut_body(node, end)?;
            self.builder.define_rule(rule, body);
            if self.builder.node_count() > MAX_NODES {
                let message = format!(
                    "the grammar of the hole has more than {MAX_NODES} parts; shorten the text behind the hole, or use a \
                     simpler grammar"
                );
                return Err(GrammarError::new(ErrorKind::Limit, "", message));
            }
        }
        Ok(self.builder.choice(&readings))
    }

    fn cut_body(&mut self, node: NodeId, end: u32) -> Result<NodeId, GrammarError> {
        self.current = node;
        let grammar = self.recogniser.grammar;
        let mut readings = Vec::new();
        match grammar.node(node) {
            Node::Choice(parts) => {
                for &part in parts {
                    readings.extend(self.cut(part, end)?);
                }
            }
            Node::Sequence(parts) => {
                for (step, at) in self.states(node, end) {
                    let Step::Parts(left @ 1..) = step else { continue };
                    let left = left as usize;
                    let mut whole = parts[..left].to_vec();
                    if at.position() > 0 {
                        let Some(cut) = self.cut(parts[left - 1], at.position())? else { continue };
                        whole[left - 1] = cut;
                    }
                    readings.push(self.joined(&whole));
                }
            }
            &Node::Repeat { body, min, max } => {
                for (step, at) in self.states(node, end) {
                    let Step::Rounds(mut count) = step else { continue };
                    if max.is_some_and(|max| count >= max) {
                        continue;
                    }
                    let mut cut = None;
                    if at.position() > 0 {
                        cut = self.cut(body, at.position())?;
                        if cut.is_none() {
                            continue;
                        }
                        count += 1;
                    }
                    let max = max.map(|max| max - count);
                    let rounds = (max != Some(0)).then(|| self.builder.repeat(body, min.saturating_sub(count), max));
                    readings.push(self.joined(&[rounds, cut].into_iter().flatten().collect::<Vec<_>>()));
                }
            }
            Node::Members(id) => self.cut_object(*id, node, end, &mut readings)?,
            Node::Items(id) => self.cut_array(grammar.items(*id), node, end, &mut readings)?,
            _ => unreachable!("lexemes and tokens are cut at once, and bases are no names"),
        }
        Ok(self.builder.choice(&readings))
    }

    fn cut_object(
        &mut self,
        id: MembersId,
        node: NodeId,
        end: u32,
        readings: &mut Vec<NodeId>,
    ) -> Result<(), GrammarError> {
        let members = self.recogniser.grammar.members(id);
        let surface = members.surface;
        // Cuts after whole members only: within the text of an empty object, or within its end.
        if is_complete(members, &[]) {
            readings.extend(self.cut_lexeme(surface.empty, end)?);
        }
        let close = self.cut_expr(surface.close, end)?;
        readings.extend(self.object_head(id, MemberList::default(), None, ExprId::NOTHING, close)?);
        let groups = {
            let recogniser = &mut *self.recogniser;
            recogniser.objects.of(id, members, recogniser.facts)
        };
        // What comes after the key of the last member before the text, by that member.
        let mut heads = Heads::default();
        for (step, at) in self.states(node, end) {
            let place = at.position();
            match step {
                Step::Key(list) => {
                    let [open, item] = match place {
                        0 => [surface.open, surface.item],
                        _ => [self.cut_expr(surface.open, place)?, self.cut_expr(surface.item, place)?],
                    };
                    readings.extend(self.object_head(id, list, None, open, item)?);
                }
                Step::AfterValue(list) => {
                    for group in groups.iter() {
                        let value = if place == 0 { Some(group.value) } else { self.cut(group.value, place)? };
                        let Some(value) = value else { continue };
                        let colon = self.builder.lexeme(surface.colon);
                        let ending = self.builder.sequence(&[colon, value]);
                        heads.add_group(list, group, ending);
                    }
                }
                Step::Value(list, index, _) => {
                    let colon = match place {
                        0 => Some(self.builder.lexeme(surface.colon)),
                        _ => self.cut_lexeme(surface.colon, place)?,
                    };
                    let Some(ending) = colon else { continue };
                    heads.add_group(list, &groups[index as usize], ending);
                }
                Step::Colon(list, index, _) if place == 0 => {
                    let ending = self.builder.sequence(&[]);
                    heads.add_group(list, &groups[index as usize], ending);
                }
                Step::Colon(list, index, _) => {
                    let group = &groups[index as usize];
                    for &known in &group.known {
                        readings.extend(self.cut_known_key(id, list, known, place)?);
                    }
                    for &(class, meets) in &group.additional {
                        readings.extend(self.cut_key(id, list, (class, meets), place)?);
                    }
                }
                _ => {}
            }
        }
        for (list, member, endings) in heads.sorted() {
            let ending = match endings[..] {
                [only] => only,
                _ => self.builder.choice(&endings),
            };
            readings.extend(self.with_last(id, list, member, ending)?);
        }
        Ok(())
    }

    /// An object that ends with the rest of a declared key whose other part ends at a place.
    fn cut_known_key(
        &mut self,
        id: MembersId,
        list: MemberList,
        known: u32,
        place: u32,
    ) -> Result<Option<NodeId>, GrammarError> {
        let member = &self.recogniser.grammar.members(id).declared[known as usize];
        let template = self.recogniser.template;
        if member.key.is_none() && !template.is_begun_before(plainly_written(member).as_bytes(), place) {
            return Ok(None);
        }
        let key = self.recogniser.key_of(member);
        match self.cut_lexeme(key, place)? {
            Some(key) => self.with_key(id, list, Member::Known(known), key),
            None => Ok(None),
        }
    }

    fn cut_array(
        &mut self,
        items: &Items,
        node: NodeId,
        end: u32,
        readings: &mut Vec<NodeId>,
    ) -> Result<(), GrammarError> {
        let surface = items.surface;
        if items.may_be_empty() {
            readings.extend(self.cut_lexeme(surface.empty, end)?);
        }
        let close = self.cut_expr(surface.close, end)?;
        if close != ExprId::NOTHING {
            let (min, max) = (items.min.max(1), items.max);
            let surface = ArraySurface { empty: surface.open, close, ..surface };
            let head = Items { min, surface, ..items.clone() };
            let is_possible = max.is_none_or(|max| max >= min);
            readings.extend(is_possible.then(|| self.builder.array(head)));
        }
        for (step, at) in self.states(node, end) {
            let place = at.position();
            match step {
                Step::Element(state) => {
                    let elements = self.recogniser.arrays.get(state).clone();
                    let [open, item] = match place {
                        0 => [surface.open, surface.item],
                        _ => [self.cut_expr(surface.open, place)?, self.cut_expr(surface.item, place)?],
                    };
                    for slot in elements.slots_before(items).into_iter().map(Some).chain([None]) {
                        readings.extend(self.array_head(items, &elements, slot, open, item)?);
                    }
                }
                Step::AfterElement(state) => {
                    let elements = self.recogniser.arrays.get(state).clone();
                    for slot in elements.slots_before(items) {
                        for element in alternatives(items, slot) {
                            let Some(with) = elements.with(items, slot, element) else { continue };
                            let cut = if place == 0 { Some(element.value) } else { self.cut(element.value, place)? };
                            let Some(cut) = cut else { continue };
                            for before in with.slots_before(items).into_iter().map(Some).chain([None]) {
                                if items.compares() && (before.is_some() || !elements.is_empty()) {
                                    // The values before and after would have to be compared.
                                    self.refuse();
                                    continue;
                                }
                                let head = self.array_head(items, &with, before, surface.open, surface.item)?;
                                let reading = head.map(|head| self.builder.sequence(&[head, cut]));
                                readings.extend(reading);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The beginnings of an array before some elements, where the last element of the beginning has a position (`None`
    /// if there is no element). They end with `open` if there is none, and with `item` otherwise.
    fn array_head(
        &mut self,
        items: &Items,
        after: &Elements,
        last: Option<Slot>,
        open: ExprId,
        item: ExprId,
    ) -> Result<Option<NodeId>, GrammarError> {
        let Some(last) = last else {
            let is_whole = after.is_complete(items) && (open != ExprId::NOTHING);
            return Ok(is_whole.then(|| self.builder.lexeme(open)));
        };
        if item == ExprId::NOTHING {
            return Ok(None);
        }
        if items.compares() {
            self.refuse();
            return Ok(None);
        }
        let leading = items.prefix.len() as u32;
        let contains = items.contains.iter().enumerate().map(|(index, &(min, max))| {
            let count = after.counts.get(index).copied().unwrap_or(0);
            (min.saturating_sub(count), max.map(|max| max - count))
        });
        let mut head = items.clone();
        head.contains = contains.collect();
        head.min = items.min.saturating_sub(after.count).max(1);
        head.max = items.max.map(|max| max - after.count);
        match last {
            Slot::At(at) => {
                if head.min > at + 1 || head.max.is_some_and(|max| max < at + 1) {
                    return Ok(None);
                }
                head.prefix.truncate(at as usize + 1);
                head.rest = Box::default();
                (head.min, head.max) = (at + 1, Some(at + 1));
            }
            Slot::Rest => head.min = head.min.max(leading + 1),
        }
        if head.max.is_some_and(|max| max < head.min) {
            return Ok(None);
        }
        head.surface.close = item;
        head.surface.empty = items.surface.open;
        Ok(Some(self.builder.array(head)))
    }
}
