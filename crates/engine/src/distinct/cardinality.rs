//! Cardinality: parts of a text with infinitely many values, so that they always allow a new one.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_grammar::{Members, Node, NodeId, Repeats};
use stencilm_regex::{ByteSet, Deriver, ExprId, StateId};
use stencilm_support::{Extension, LimitExceeded, MANY, memory};

use crate::distinct::quoting::Quoting;
use crate::error::EngineError;
use crate::machine::expansion::{Expansion, IN_WHITESPACE};
use crate::machine::layout::{ExpansionId, Frame, FrameId};
use crate::machine::object_facts::most_additional;
use crate::parse::stepper::{Run, offers_tokens};
use crate::state::stacks::{Entry, MembersState, NIL};

/// Bytes whose repetition need not give ever new values: of numbers, of whitespace, of escapes, and of whole
/// containers.
const NEUTRAL_BYTES: &[u8] = b"0123456789+-.eE \t\r\n\\{}[],:";

/// Where what is left of a lexeme stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stands {
    /// Anywhere in a value: a grammar may make strings and numbers of several lexemes.
    Anywhere,
    /// Outside of strings, and in front of any exponent.
    Outside,
    /// Within a string.
    InString,
}

/// Which lexemes and nodes have infinitely many values, as far as is known.
#[derive(Default)]
pub(crate) struct KnownInfinite {
    lexemes: FxHashMap<(ExprId, Stands), bool>,
    /// By node, and whether it is known to be a whole value.
    nodes: FxHashMap<(NodeId, bool), bool>,
}

impl Extension for KnownInfinite {
    fn memory_bytes(&self) -> usize {
        memory::of_table::<((ExprId, Stands), bool)>(self.lexemes.capacity())
            + memory::of_table::<((NodeId, bool), bool)>(self.nodes.capacity())
    }
}

impl Run<'_> {
    /// Whether infinitely many values of every element that a thread is within can certainly still be completed, where
    /// the text is within a string or not.
    pub(crate) fn is_safe(&mut self, thread: Entry, string: Quoting) -> Result<bool, EngineError> {
        if thread == Entry::BOTTOM {
            return Ok(true);
        }
        if self.machine.is_remark(thread) {
            return Ok(true);
        }
        if offers_tokens(thread) {
            return Ok(false);
        }
        let expansion = self.machine.fork(ExpansionId(thread.head)).clone();
        let begins = thread.state & IN_WHITESPACE != 0 || thread.state == StateId::START.0;
        let comma = !begins && self.is_within_comma(&expansion, thread)?;
        let mut is_infinite = (begins || comma) && self.is_frame_infinite(expansion.frame, thread.register)?;
        match expansion.dfa() {
            Some(dfa) if !is_infinite && !comma => {
                let state = if begins { StateId::START } else { StateId(thread.state) };
                let stands = match string {
                    Quoting::Outside if self.is_in_exponent(self.text) => Stands::Anywhere,
                    Quoting::Outside => Stands::Outside,
                    Quoting::Within | Quoting::Escape => Stands::InString,
                };
                for (_, residual) in self.lexeme_cache.residuals(dfa, state).to_vec() {
                    is_infinite |= self.is_lexeme_infinite(residual, stands)?;
                }
            }
            None if !begins => is_infinite = self.infinite_members_left(expansion.frame, thread.register)? > 0,
            _ => {}
        }
        // Before its first element nothing is seen, so what is to come is new.
        if !is_infinite
            && !((begins || comma) && self.are_values_counted(expansion.frame))
            && self.is_pending(expansion.frame, thread.register)
            && (comma || matches!(self.machine.frame(expansion.frame), Frame::Item(_)))
        {
            return Ok(false);
        }
        let mut work = vec![(thread.below, is_infinite)];
        let mut seen = FxHashSet::default();
        while let Some((set, is_infinite)) = work.pop() {
            if !seen.insert((set, is_infinite)) {
                continue;
            }
            for index in 0..self.stacks.entries(set).len() {
                let frame = self.stacks.entries(set)[index];
                if frame == Entry::BOTTOM {
                    return Ok(true);
                }
                let id = FrameId(frame.head);
                let pending = self.is_pending(id, frame.register);
                if is_infinite || !pending {
                    // What an array with unique elements may have next is no part of the element that ends.
                    let is_infinite_here = is_infinite || self.is_frame_infinite(id, frame.register)?;
                    work.push((frame.below, is_infinite_here));
                }
            }
        }
        Ok(false)
    }

    /// Whether a thread is within the separator of an array with unique elements, so that one more must come.
    fn is_within_comma(&mut self, expansion: &Expansion, thread: Entry) -> Result<bool, EngineError> {
        let behind = matches!(self.machine.frame(expansion.frame), Frame::AfterItem(_));
        let Some(dfa) = expansion.dfa().filter(|_| behind && self.is_pending(expansion.frame, thread.register)) else {
            return Ok(false);
        };
        for (tag, _) in self.lexeme_cache.residuals(dfa, StateId(thread.state)).to_vec() {
            if self.machine.continuations(expansion, tag).iter().any(|frames| frames.is_empty()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether counters show that an element may come which the array does not have: wherever one may begin, one is
    /// left.
    fn are_values_counted(&self, frame: FrameId) -> bool {
        let counted = Repeats::Never { counted: true };
        self.machine.unique_items(frame).is_some_and(|id| self.machine.grammar().items(id).repeats == counted)
    }

    pub(crate) fn is_pending(&self, frame: FrameId, register: u32) -> bool {
        self.machine.unique_items(frame).is_some() && self.stacks.items(register).seen != NIL
    }

    /// Whether what waits at a frame can be made to hold something of infinite cardinality.
    pub(crate) fn is_frame_infinite(&mut self, frame: FrameId, register: u32) -> Result<bool, EngineError> {
        let grammar = self.machine.grammar().clone();
        // Those of members and elements are whole values.
        let whole = !matches!(self.machine.frame(frame), Frame::Node(_) | Frame::Rest { .. });
        let nodes: Vec<NodeId> = match self.machine.frame(frame) {
            Frame::Node(node) => match *grammar.node(node) {
                Node::Repeat { max: Some(max), .. } if register >= max => Vec::new(),
                _ => vec![node],
            },
            Frame::Rest { node, from } => match grammar.node(node) {
                Node::Sequence(parts) => parts[from as usize..].to_vec(),
                _ => Vec::new(),
            },
            Frame::Member { value, .. } => vec![value],
            Frame::Lexeme(expr) => {
                let lexeme = self.machine.lexeme(self.lexeme_cache, expr)?;
                return self.is_lexeme_infinite(lexeme, Stands::Anywhere);
            }
            Frame::Key(id) | Frame::AfterValue(id) => {
                let members = grammar.members(id);
                let state = self.stacks.members(register);
                if members.max.is_some() {
                    return Ok(false);
                }
                if !members.additional.is_empty() && most_additional(members).is_none() {
                    return Ok(true);
                }
                // Where enough members must be left, which of them may be left out is not looked at.
                if members.min > 0 {
                    Vec::new()
                } else {
                    self.values_left(members, state).map(|(_, value)| value).collect()
                }
            }
            Frame::Item(id) | Frame::AfterItem(id) => {
                let items = grammar.items(id);
                let place = self.stacks.items(register).place;
                if !items.contains.is_empty() || items.max.is_some_and(|max| place >= max) {
                    return Ok(false);
                }
                items.at(place as usize).iter().map(|element| element.value).collect()
            }
            Frame::Left { .. }
            | Frame::End(_)
            | Frame::Text
            | Frame::Names
            | Frame::Reference { .. }
            | Frame::WithWhitespace { .. } => Vec::new(),
        };
        for node in nodes {
            if self.is_node_infinite(node, whole)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The declared members of an object that may still come, by place and value.
    pub(crate) fn values_left(&self, members: &Members, state: MembersState) -> impl Iterator<Item = (usize, NodeId)> {
        let seen = self.machine.known_set(state.known);
        let comes = move |index: usize| {
            let is_seen = seen.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0);
            if index < members.ordered { index >= state.next as usize } else { !is_seen }
        };
        let known = members.declared.iter().enumerate().map(|(index, known)| (index, known.value));
        known.filter(move |&(index, _)| comes(index))
    }

    /// Whether something infinite can be part of a node, which may be known to be a whole value.
    pub(crate) fn is_node_infinite(&mut self, root: NodeId, whole: bool) -> Result<bool, EngineError> {
        if let Some(&known) = self.machine.extensions.get::<KnownInfinite>().nodes.get(&(root, whole)) {
            return Ok(known);
        }
        let grammar = self.machine.grammar().clone();
        let (mut work, mut seen) = (vec![(root, whole)], FxHashSet::default());
        let mut is_infinite = false;
        while let Some((id, whole)) = work.pop() {
            if is_infinite || !seen.insert((id, whole)) {
                continue;
            }
            match self.machine.extensions.get::<KnownInfinite>().nodes.get(&(id, whole)) {
                Some(true) => is_infinite = true,
                Some(false) => continue,
                None => {}
            }
            match grammar.node(id) {
                Node::Lexeme(expr) => {
                    let lexeme = self.machine.lexeme(self.lexeme_cache, *expr)?;
                    is_infinite |=
                        self.is_lexeme_infinite(lexeme, if whole { Stands::Outside } else { Stands::Anywhere })?;
                }
                Node::Choice(parts) => work.extend(parts.iter().map(|&part| (part, whole))),
                Node::Sequence(parts) => work.extend(parts.iter().map(|&part| (part, false))),
                Node::Repeat { max: Some(0), .. } | Node::Token(_) => {}
                Node::Repeat { body, .. } => work.push((*body, false)),
                Node::Marked { body, .. } => work.push((*body, whole)),
                Node::Rule(rule) => work.push((grammar.rule(*rule).body, whole)),
                Node::Members(id) => {
                    let members = grammar.members(*id);
                    is_infinite |=
                        members.max.is_none() && !members.additional.is_empty() && most_additional(members).is_none();
                    let any = members.min == 0 && members.max.is_none();
                    let known = members.declared.iter().filter(|known| any || known.required);
                    work.extend(known.map(|known| (known.value, true)));
                }
                Node::Items(id) => {
                    let items = grammar.items(*id);
                    // The first element may be any of its place, unless elements are counted.
                    if items.contains.is_empty() && items.max != Some(0) {
                        work.extend(items.at(0).iter().map(|element| (element.value, true)));
                    }
                }
            }
        }
        if !is_infinite {
            self.machine.extensions.get::<KnownInfinite>().nodes.extend(seen.into_iter().map(|node| (node, false)));
        }
        self.machine.extensions.get::<KnownInfinite>().nodes.insert((root, whole), is_infinite);
        Ok(is_infinite)
    }

    /// Whether a text ends in the exponent of a number: what goes on there need not give another value.
    pub(crate) fn is_in_exponent(&self, text: Option<u32>) -> bool {
        let bytes = text.into_iter().flat_map(|text| self.stacks.list(text));
        let number = bytes.map_while(|byte| u8::try_from(byte).ok().filter(|byte| b"0123456789+-.eE".contains(byte)));
        number.into_iter().any(|byte| byte.eq_ignore_ascii_case(&b'e'))
    }

    /// Whether infinitely many texts go on, each with another value: whether something can be repeated that gives ever
    /// new ones where it stands.
    pub(crate) fn is_lexeme_infinite(&mut self, residual: ExprId, stands: Stands) -> Result<bool, EngineError> {
        if let Some(&known) = self.machine.extensions.get::<KnownInfinite>().lexemes.get(&(residual, stands)) {
            return Ok(known);
        }
        let deriver = self.lexeme_cache.deriver();
        let neutral: ByteSet = NEUTRAL_BYTES.iter().copied().collect();
        let is_infinite = match stands {
            Stands::InString => is_string_infinite(deriver, residual)?,
            Stands::Anywhere => repeats(deriver, residual, &neutral, &ByteSet::EMPTY)?,
            Stands::Outside => {
                repeats(deriver, residual, &neutral, &ByteSet::EMPTY)? || is_number_infinite(deriver, residual)? || {
                    let string = deriver.after(residual, b'"')?;
                    is_string_infinite(deriver, string)?
                }
            }
        };
        self.machine.extensions.get::<KnownInfinite>().lexemes.insert((residual, stands), is_infinite);
        Ok(is_infinite)
    }

    /// Whether a node has infinitely many values, numbers included; `false` where that is not plain to see.
    pub(crate) fn is_element_infinite(&mut self, element: NodeId) -> Result<bool, EngineError> {
        let resolved = self.machine.left.resolve(element);
        Ok(self.is_node_infinite(element, true)? || self.is_node_infinite(resolved, true)?)
    }
}

/// Whether the number in which a residual begins, or one after it, can have ever more digits before its exponent.
fn is_number_infinite(deriver: &mut Deriver, residual: ExprId) -> Result<bool, LimitExceeded> {
    let neutral = ByteSet::range(b'1', b'9').complement();
    repeats(deriver, residual, &neutral, &ByteSet::from_iter(*b"eE"))
}

/// Whether the string within which a residual begins can be ever longer: longer strings are other values, whatever they
/// consist of. A lexeme that may end before the string does belongs to a grammar that makes strings of several lexemes,
/// and decides nothing.
fn is_string_infinite(deriver: &mut Deriver, residual: ExprId) -> Result<bool, LimitExceeded> {
    repeats(deriver, residual, &ByteSet::EMPTY, &ByteSet::of(b'"'))
}

/// Whether some bytes of a residual can be read again and again that are not neutral. What may follow one of the bytes
/// that end it is not looked at, and where that is a quote, nothing may end without one.
fn repeats(deriver: &mut Deriver, residual: ExprId, neutral: &ByteSet, ends: &ByteSet) -> Result<bool, LimitExceeded> {
    let mut index: FxHashMap<ExprId, usize> = FxHashMap::from_iter([(residual, 0)]);
    let mut residuals = vec![residual];
    let mut users: Vec<Vec<usize>> = vec![Vec::new()];
    let mut waits: Vec<usize> = vec![0];
    // In depth, so that a circle is found soon, however many places lie beside the path there.
    let mut work = vec![0];
    while let Some(at) = work.pop().filter(|_| residuals.len() <= MANY) {
        if ends.contains(b'"') && deriver.exprs.is_nullable(residuals[at]) {
            return Ok(false);
        }
        let derivatives = deriver.derivatives(residuals[at])?;
        for &(set, rest) in derivatives.iter() {
            let set = set.intersect(&ends.complement());
            if set.is_empty() || !deriver.is_live(rest)? {
                continue;
            }
            let next = *index.entry(rest).or_insert_with(|| {
                residuals.push(rest);
                users.push(Vec::new());
                waits.push(0);
                work.push(residuals.len() - 1);
                residuals.len() - 1
            });
            if set.iter().any(|byte| !neutral.contains(byte)) {
                users[next].push(at);
                waits[at] += 1;
            }
        }
    }
    // What is left when those without a continuation are taken away, and so on, is on a circle or leads to one.
    let mut ready: Vec<usize> = (0..residuals.len()).filter(|&state| waits[state] == 0).collect();
    let mut gone = ready.len();
    while let Some(state) = ready.pop() {
        for &user in &users[state] {
            waits[user] -= 1;
            if waits[user] == 0 {
                gone += 1;
                ready.push(user);
            }
        }
    }
    Ok(gone < residuals.len())
}
