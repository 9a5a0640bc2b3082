//! Free text: up to the triggers, patterns and ends that are found in it, and with a budget of tokens.

use std::rc::Rc;

use indexmap::IndexMap;
use stencilm_regex::ExprId;
use stencilm_support::{HashMap, check_time_now};

use super::fields::error;
use super::lower::Lowering;
use super::tree::{Format, FormatId, Marker, Rounds, Slot, Tree};
use crate::error::{ErrorKind, GrammarError};
use crate::ir::free_text::{FEW_STRINGS, FreeText, Within};
use crate::ir::grammar::{Mark, NodeId};
use crate::ir::markers;

/// The greatest length of a string that ends free text or must not occur in it. A string that overlaps with itself is
/// searched for at all places at once, which takes quadratic time.
const MAX_STOP_BYTES: usize = 256;

impl<'a> Lowering<'a> {
    pub(super) fn triggered(
        &mut self,
        tree: &Tree<'a>,
        slot: &Slot<'a>,
        triggers: &[&'a str],
        tags: &[FormatId],
        excludes: &[&'a str],
        rounds: Rounds,
    ) -> Result<NodeId, GrammarError> {
        let mut indices: HashMap<&str, Vec<usize>> = HashMap::default();
        triggers.iter().enumerate().for_each(|(index, trigger)| indices.entry(trigger).or_default().push(index));
        let mut lengths: Vec<usize> = triggers.iter().map(|trigger| trigger.len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let mut by_trigger: Vec<Vec<(&str, NodeId)>> = vec![Vec::new(); triggers.len()];
        let mut first: Vec<(&str, NodeId)> = Vec::new();
        for &tag in tags {
            let Format::Tag { begin, .. } = &tree.slot(tag).format else { continue };
            let at = tree.slot(tag).at;
            let Marker::Text(begin) = begin else {
                let message = "the tag begins with a token or a pattern, but text triggers need text; use token_triggered_tags, or `or` and `star`";
                return Err(error(self.document, at, message));
            };
            let beginnings = lengths.iter().filter_map(|&length| indices.get(begin.get(..length)?));
            let matching: Vec<usize> = beginnings.flatten().copied().collect();
            let [index] = matching[..] else {
                let message = format!(
                    "{} of the triggers begin {begin:?}, the beginning of this tag; it must be exactly one, so change \
                     the triggers",
                    matching.len()
                );
                return Err(error(self.document, at, message));
            };
            let tail = self.node(tag);
            by_trigger[index].push((&begin[triggers[index].len()..], tail));
            first.push((begin, tail));
        }
        let mut alternatives = Vec::with_capacity(triggers.len());
        for (trigger, tags) in triggers.iter().zip(by_trigger) {
            if tags.is_empty() {
                let message = format!("no tag begins with the trigger {trigger:?}; leave it out");
                return Err(error(self.document, slot.at, message));
            }
            alternatives.push((*trigger, markers::branches(&mut self.builder, &tags)));
        }
        let first = rounds.at_least_one.then(|| markers::branches(&mut self.builder, &first));
        self.free_text(slot, alternatives, first, excludes, None, rounds.stop_after_first)
    }

    /// Free text up to one of the strings of `alternatives`, followed by its alternative, repeated until the end.
    ///
    /// If `first` is given, it comes before everything else. Also reads the ends of the enclosing tag if they follow.
    pub(super) fn free_text(
        &mut self,
        slot: &Slot<'a>,
        alternatives: Vec<(&'a str, NodeId)>,
        first: Option<NodeId>,
        excludes: &[&'a str],
        max_chars: Option<u32>,
        stop_after_first: bool,
    ) -> Result<NodeId, GrammarError> {
        let triggers = alternatives.iter().map(|(trigger, _)| *trigger).collect();
        let (stops, excludes) = self.stops_and_excludes(slot, triggers, excludes)?;
        let free = FreeText::new(&mut self.builder.exprs, &stops, &excludes, max_chars);
        let text = free.unended(&mut self.builder.exprs);
        let unended = self.builder.lexeme(text);
        let ends: Rc<Vec<Marker<'a>>> = if slot.is_last { slot.ends.clone() } else { Rc::default() };
        let until = |lowering: &mut Self, stop: &'a str| {
            let builder = &mut lowering.builder;
            let whole = free.until(&mut builder.exprs, stop);
            let before = free.before(&mut builder.exprs, stop);
            // The text is nearly always the same, and then it is one shared node.
            let before = if before == text { unended } else { builder.lexeme(before) };
            markers::until(builder, whole, before, stop)
        };
        let mut tails = Vec::new();
        for end in ends.iter() {
            self.check_time(slot)?;
            match end {
                Marker::Text("") => tails.push(unended),
                Marker::Text(end) => tails.extend(until(self, end)),
                Marker::Token(_) | Marker::Pattern(..) => {
                    let end = self.marker(end);
                    tails.push(self.builder.sequence(&[unended, end]));
                }
            }
        }
        if tails.is_empty() {
            tails.push(unended);
        }
        let mut rounds = Vec::new();
        if alternatives.len() > FEW_STRINGS {
            let triggers: Vec<&str> = alternatives.iter().map(|&(trigger, _)| trigger).collect();
            for (before, positions) in free.groups(&mut self.builder.exprs, &triggers) {
                let before = self.builder.lexeme(before);
                let group: Vec<(&str, NodeId)> = positions.into_iter().map(|position| alternatives[position]).collect();
                let mut group_alternatives = vec![markers::spelled(&mut self.builder, &group)];
                group_alternatives.extend(markers::by_tokens(&mut self.builder, &group));
                let alternative = self.builder.choice(&group_alternatives);
                rounds.push(self.builder.sequence(&[before, alternative]));
            }
        } else {
            for (trigger, alternative) in alternatives {
                self.check_time(slot)?;
                for before in until(self, trigger) {
                    rounds.push(self.builder.sequence(&[before, alternative]));
                }
            }
        }
        let tail = self.builder.choice(&tails);
        if rounds.is_empty() {
            return Ok(tail);
        }
        if stop_after_first {
            let after = match first {
                Some(first) => first,
                None => self.builder.choice(&rounds),
            };
            let after = self.with_ends(slot, after);
            return Ok(if first.is_some() { after } else { self.builder.choice(&[after, tail]) });
        }
        let round = self.builder.choice(&rounds);
        let rounds = self.builder.repeat(round, 0, None);
        let parts: Vec<NodeId> = first.into_iter().chain([rounds, tail]).collect();
        Ok(self.builder.sequence(&parts))
    }

    /// Fails if it takes too long; called between two strings that end a text.
    fn check_time(&self, slot: &Slot<'a>) -> Result<(), GrammarError> {
        check_time_now().map_err(|limit| GrammarError::limit(self.document.pointer(slot.at), limit))
    }

    /// The strings that end a text (triggers and the ends of the enclosing tag), and those that must not occur in it.
    fn stops_and_excludes(
        &self,
        slot: &Slot<'a>,
        mut stops: Vec<&'a str>,
        excludes: &[&'a str],
    ) -> Result<(Vec<&'a str>, Vec<&'a str>), GrammarError> {
        let mut excludes = excludes.to_vec();
        let texts = slot.ends.iter().filter_map(|end| match end {
            Marker::Text(text) if !text.is_empty() => Some(*text),
            _ => None,
        });
        let texts: Vec<&str> = texts.collect();
        if slot.is_last {
            // Strings that end the text need not be excluded as well.
            excludes.retain(|exclude| !texts.contains(exclude));
            stops.extend(&texts);
        } else {
            excludes.extend(texts);
        }
        self.check_reachable(slot, &stops, &excludes)?;
        Ok((stops, excludes))
    }

    /// Free text with a budget of tokens. Unlike in [`Lowering::free_text`], its end is a separate part, which doesn't
    /// count towards the budget.
    pub(super) fn limited_text(
        &mut self,
        slot: &Slot<'a>,
        excludes: &[&'a str],
        max_chars: Option<u32>,
        max_tokens: u32,
    ) -> Result<NodeId, GrammarError> {
        let (stops, excludes) = self.stops_and_excludes(slot, Vec::new(), excludes)?;
        let free = FreeText::new(&mut self.builder.exprs, &stops, &excludes, max_chars);
        let unended = free.unended(&mut self.builder.exprs);
        let ends: Rc<Vec<Marker<'a>>> = if slot.is_last { slot.ends.clone() } else { Rc::default() };
        // The ends by the text before them, which is nearly always the same.
        let mut by_text: IndexMap<ExprId, Vec<NodeId>> = IndexMap::new();
        for end in ends.iter() {
            let text = match end {
                Marker::Text(end) if !end.is_empty() => free.before(&mut self.builder.exprs, end),
                _ => unended,
            };
            by_text.entry(text).or_default().push(self.marker(end));
        }
        if by_text.is_empty() {
            by_text.insert(unended, vec![self.builder.sequence(&[])]);
        }
        let mut alternatives = Vec::with_capacity(by_text.len());
        for (text, ends) in by_text {
            let text = if max_tokens == 0 { ExprId::EMPTY } else { text };
            let mut text = self.builder.lexeme(text);
            if max_tokens > 0 {
                text = self.builder.marked(Mark::MaxTokens(max_tokens), text);
            }
            let end = self.builder.choice(&ends);
            alternatives.push(self.builder.sequence(&[text, end]));
        }
        Ok(self.builder.choice(&alternatives))
    }

    /// Refuses strings that can never be completed, because another one within them is complete first.
    fn check_reachable(&self, slot: &Slot<'a>, stops: &[&'a str], excludes: &[&'a str]) -> Result<(), GrammarError> {
        if let Some(long) = stops.iter().chain(excludes).find(|text| text.len() > MAX_STOP_BYTES) {
            let shown: String = long.chars().take(40).collect();
            let message = format!(
                "{shown:?}… has {} bytes and free text looks for at most {MAX_STOP_BYTES}; shorten it",
                long.len()
            );
            return Err(GrammarError::new(ErrorKind::Limit, self.document.pointer(slot.at), message));
        }
        let (ending, excluded) = (Within::new(stops), Within::new(excludes));
        // The text may exclude the beginning of the end of its tag, so that nothing else can begin like it.
        let is_end = |stop: &str| slot.ends.iter().any(|end| matches!(end, Marker::Text(text) if *text == stop));
        for trigger in stops.iter().filter(|trigger| !trigger.is_empty()) {
            let earlier = ending.find(trigger, trigger.len() - 1);
            let never = || if is_end(trigger) { None } else { excluded.find(trigger, trigger.len()) };
            if let Some(other) = earlier.or_else(never) {
                let message = format!(
                    "{trigger:?} can never come, because {other:?} within it triggers something else, ends the text or \
                     is excluded; change one of them"
                );
                return Err(error(self.document, slot.at, message));
            }
        }
        Ok(())
    }
}
