//! Cardinality: parts of a text with infinitely many values, which therefore always allow a new one.

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

/// Bytes whose repetition need not give new values: those of numbers, whitespace, escapes and whole containers.
const NEUTRAL_BYTES: &[u8] = b"0123456789+-.eE \t\r\n\\{}[],:";

/// Where the residual of a lexeme begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stands {
    /// Anywhere in a value, since a grammar may build strings and numbers from several lexemes.
    Anywhere,
    /// Outside strings, and before any exponent.
    Outside,
    /// Within a string.
    InString,
}

/// Memo: which lexemes and nodes have infinitely many values.
#[derive(Default)]
pub(crate) struct KnownInfinite {
    lexemes: FxHashMap<(ExprId, Stands), bool>,
    /// By node, and by whether it is a whole value.
    nodes: FxHashMap<(NodeId, bool), bool>,
}

impl Extension for KnownInfinite {
    fn memory_bytes(&self) -> usize {
        memory::of_table::<((ExprId, Stands), bool)>(self.lexemes.capacity())
            + memory::of_table::<((NodeId, bool), bool)>(self.nodes.capacity())
    }
}

impl Run<'_> {
    /// Whether every element around a thread can certainly still be completed to infinitely many values; `string` tells
    /// whether the text is within a string.
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
        // An array without elements has nothing to compare the next one with.
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
                    // The further elements of an array with unique elements are no part of the element that ends.
                    let is_infinite_here = is_infinite || self.is_frame_infinite(id, frame.register)?;
                    work.push((frame.below, is_infinite_here));
                }
            }
        }
        Ok(false)
    }

    /// Whether a thread is within the separator of an array with unique elements, so that another element must come.
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

    /// Whether counting guarantees a new value: wherever an element of the array may begin, one is left.
    fn are_values_counted(&self, frame: FrameId) -> bool {
        let counted = Repeats::Never { counted: true };
        self.machine.unique_items(frame).is_some_and(|id| self.machine.grammar().items(id).repeats == counted)
    }

    pub(crate) fn is_pending(&self, frame: FrameId, register: u32) -> bool {
        self.machine.unique_items(frame).is_some() && self.stacks.items(register).seen != NIL
    }

    /// Whether what waits at a frame can contain something with infinitely many values.
    pub(crate) fn is_frame_infinite(&mut self, frame: FrameId, register: u32) -> Result<bool, EngineError> {
        let grammar = self.machine.grammar().clone();
        // Members and elements are whole values.
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
                // If enough members must be left for the minimum, which ones may be left out is not examined.
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

    /// The declared members of an object that may still come, by index and value.
    pub(crate) fn values_left(&self, members: &Members, state: MembersState) -> impl Iterator<Item = (usize, NodeId)> {
        let seen = self.machine.known_set(state.known);
        let comes = move |index: usize| {
            let is_seen = seen.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0);
            if index < members.ordered { index >= state.next as usize } else { !is_seen }
        };
        let known = members.declared.iter().enumerate().map(|(index, known)| (index, known.value));
        known.filter(move |&(index, _)| comes(index))
    }

    /// Whether a node can contain something infinite; `whole` says that it is a whole value.
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
                    // If elements are not counted, the first one may be any that its position allows.
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

    /// Whether a text ends in the exponent of a number, where further digits need not give another value.
    pub(crate) fn is_in_exponent(&self, text: Option<u32>) -> bool {
        let bytes = text.into_iter().flat_map(|text| self.stacks.list(text));
        let number = bytes.map_while(|byte| u8::try_from(byte).ok().filter(|byte| b"0123456789+-.eE".contains(byte)));
        number.into_iter().any(|byte| byte.eq_ignore_ascii_case(&b'e'))
    }

    /// Whether infinitely many texts with different values continue a lexeme: whether something can be repeated that
    /// gives new values each time.
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

    /// Whether a node has infinitely many values, including numbers; `false` where that is not obvious.
    pub(crate) fn is_element_infinite(&mut self, element: NodeId) -> Result<bool, EngineError> {
        let resolved = self.machine.left.resolve(element);
        Ok(self.is_node_infinite(element, true)? || self.is_node_infinite(resolved, true)?)
    }
}

/// Whether the number in which a residual begins, or a later one, can have arbitrarily many digits before its exponent.
fn is_number_infinite(deriver: &mut Deriver, residual: ExprId) -> Result<bool, LimitExceeded> {
    let neutral = ByteSet::range(b'1', b'9').complement();
    repeats(deriver, residual, &neutral, &ByteSet::from_iter(*b"eE"))
}

/// Whether the string within which a residual begins can be arbitrarily long: longer strings are different values. If
/// the lexeme may end before the string does, the grammar builds strings from several lexemes, and the result is
/// `false`.
fn is_string_infinite(deriver: &mut Deriver, residual: ExprId) -> Result<bool, LimitExceeded> {
    repeats(deriver, residual, &ByteSet::EMPTY, &ByteSet::of(b'"'))
}

/// Whether some bytes of a residual that are not neutral can be read repeatedly. What follows one of the bytes `ends`
/// is not examined; if that is the quote, the lexeme must not end before it.
fn repeats(deriver: &mut Deriver, residual: ExprId, neutral: &ByteSet, ends: &ByteSet) -> Result<bool, LimitExceeded> {
    let mut index: FxHashMap<ExprId, usize> = FxHashMap::from_iter([(residual, 0)]);
    let mut residuals = vec![residual];
    let mut users: Vec<Vec<usize>> = vec![Vec::new()];
    let mut waits: Vec<usize> = vec![0];
    // Depth first, so that a cycle is found soon however many residuals lie beside the path.
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
    // Removing residuals without a continuation again and again leaves those on cycles and those that lead to one.
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
