//! What is rich: parts of a text with endlessly many values, so that a new one can always be made of them.

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_grammar::{Node, NodeId};
use stencilm_regex::{ByteSet, Deriver, ExprId, LimitExceeded, StateId};

use crate::error::EngineError;
use crate::fork::IN_BLANKS;
use crate::fresh_keys::most_free;
use crate::machine::{ForkId, Frame, FrameId};
use crate::run::{Run, offers_tokens};
use crate::stacks::{Entry, NIL};

/// Most residuals of a lexeme that are looked at to tell whether it is rich.
const MAX_RESIDUALS: usize = 400;

/// Bytes whose repetition need not give ever new values: of numbers, of blanks, of escapes, and of whole containers.
const POOR_BYTES: &[u8] = b"0123456789+-.eE \t\r\n\\{}[],:";

/// Which lexemes and nodes are rich, as far as is known.
#[derive(Default)]
pub(crate) struct Richness {
    lexemes: FxHashMap<ExprId, bool>,
    nodes: FxHashMap<NodeId, bool>,
}

impl Run<'_> {
    /// Whether endlessly many values of every element that a thread is within can surely still be completed.
    pub(crate) fn is_safe(&mut self, thread: Entry) -> Result<bool, EngineError> {
        if thread == Entry::BOTTOM {
            return Ok(true);
        }
        if self.machine.is_remark(thread) {
            return Ok(true);
        }
        if offers_tokens(thread) {
            return Ok(false);
        }
        let fork = self.machine.fork(ForkId(thread.head)).clone();
        let begins = thread.state & IN_BLANKS != 0 || thread.state == StateId::START.0;
        let mut rich = begins && self.is_frame_rich(fork.frame, thread.register)?;
        if let (Some(dfa), false) = (fork.dfa(), rich) {
            let state = if begins { StateId::START } else { StateId(thread.state) };
            for (_, residual) in self.lexicon.residuals(dfa, state).to_vec() {
                rich |= self.is_lexeme_rich(residual)?;
            }
        }
        // Before its first element nothing is seen, so what is to come is new.
        if !rich
            && self.is_pending(fork.frame, thread.register)
            && matches!(self.machine.frame(fork.frame), Frame::Item(_))
        {
            return Ok(false);
        }
        let mut work = vec![(thread.below, rich)];
        let mut seen = FxHashSet::default();
        while let Some((set, rich)) = work.pop() {
            if !seen.insert((set, rich)) {
                continue;
            }
            for index in 0..self.stacks.entries(set).len() {
                let frame = self.stacks.entries(set)[index];
                if frame == Entry::BOTTOM {
                    return Ok(true);
                }
                let id = FrameId(frame.head);
                let pending = self.is_pending(id, frame.register);
                if rich || !pending {
                    // What an array with unique elements may have next is no part of the element that ends.
                    let richer = rich || self.is_frame_rich(id, frame.register)?;
                    work.push((frame.below, richer));
                }
            }
        }
        Ok(false)
    }

    pub(crate) fn is_pending(&self, frame: FrameId, register: u32) -> bool {
        self.machine.unique_items(frame).is_some() && self.stacks.items(register).seen != NIL
    }

    /// Whether what waits at a frame surely holds something rich, if one wants it to.
    pub(crate) fn is_frame_rich(&mut self, frame: FrameId, register: u32) -> Result<bool, EngineError> {
        let grammar = self.machine.grammar().clone();
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
                let lexeme = self.machine.lexeme(self.lexicon, expr);
                return self.is_lexeme_rich(lexeme);
            }
            Frame::Key(id) | Frame::AfterValue(id) => {
                let members = grammar.members(id);
                let state = self.stacks.members(register);
                if members.max.is_some() {
                    return Ok(false);
                }
                if !members.free.is_empty() && most_free(members).is_none() {
                    return Ok(true);
                }
                let seen = self.machine.known_set(state.known);
                let comes = |index: usize| {
                    let is_seen = seen.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0);
                    if index < members.ordered { index >= state.next as usize } else { !is_seen }
                };
                let left = members.known.iter().enumerate().filter(|&(index, _)| comes(index));
                // Where enough members must be left, which of them may be left out is not looked at.
                if members.min > 0 { Vec::new() } else { left.map(|(_, known)| known.value).collect() }
            }
            Frame::Item(id) | Frame::AfterItem(id) => {
                let items = grammar.items(id);
                let place = self.stacks.items(register).place;
                if !items.contains.is_empty() || items.max.is_some_and(|max| place >= max) {
                    return Ok(false);
                }
                items.at(place as usize).iter().map(|element| element.value).collect()
            }
            Frame::Left { .. } | Frame::End(_) | Frame::Text | Frame::Spaced { .. } => Vec::new(),
        };
        for node in nodes {
            if self.is_node_rich(node)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether something rich can be part of a node.
    pub(crate) fn is_node_rich(&mut self, root: NodeId) -> Result<bool, EngineError> {
        if let Some(&known) = self.machine.richness.nodes.get(&root) {
            return Ok(known);
        }
        let grammar = self.machine.grammar().clone();
        let (mut work, mut seen) = (vec![root], FxHashSet::default());
        let mut rich = false;
        while let Some(id) = work.pop() {
            if rich || !seen.insert(id) {
                continue;
            }
            match self.machine.richness.nodes.get(&id) {
                Some(true) => rich = true,
                Some(false) => continue,
                None => {}
            }
            match grammar.node(id) {
                Node::Lexeme(expr) => {
                    let lexeme = self.machine.lexeme(self.lexicon, *expr);
                    rich |= self.is_lexeme_rich(lexeme)?;
                }
                Node::Sequence(parts) | Node::Choice(parts) => work.extend(parts),
                Node::Repeat { max: Some(0), .. } | Node::Token(_) => {}
                Node::Repeat { body, .. } | Node::Marked { body, .. } => work.push(*body),
                Node::Rule(rule) => work.push(grammar.rule(*rule).body),
                Node::Members(id) => {
                    let members = grammar.members(*id);
                    rich |= members.max.is_none() && !members.free.is_empty() && most_free(members).is_none();
                    if members.min == 0 && members.max.is_none() {
                        work.extend(members.known.iter().map(|known| known.value));
                    } else {
                        work.extend(members.known.iter().filter(|known| known.required).map(|known| known.value));
                    }
                }
                Node::Items(id) => {
                    let items = grammar.items(*id);
                    // The first element may be any of its place, unless elements are counted.
                    if items.contains.is_empty() && items.max != Some(0) {
                        work.extend(items.at(0).iter().map(|element| element.value));
                    }
                }
            }
        }
        if !rich {
            self.machine.richness.nodes.extend(seen.into_iter().map(|node| (node, false)));
        }
        self.machine.richness.nodes.insert(root, rich);
        Ok(rich)
    }

    /// Whether endlessly many texts go on, each with another value: whether some bytes can be repeated that are part of
    /// neither numbers, blanks nor escapes.
    pub(crate) fn is_lexeme_rich(&mut self, residual: ExprId) -> Result<bool, EngineError> {
        if let Some(&known) = self.machine.richness.lexemes.get(&residual) {
            return Ok(known);
        }
        let poor: ByteSet = POOR_BYTES.iter().copied().collect();
        let rich = repeats(self.lexicon.deriver(), residual, &poor)?;
        self.machine.richness.lexemes.insert(residual, rich);
        Ok(rich)
    }

    /// Whether a node has endlessly many values, numbers included; `false` where that is not plain to see.
    pub(crate) fn is_endless(&mut self, node: NodeId) -> Result<bool, EngineError> {
        if self.is_node_rich(node)? {
            return Ok(true);
        }
        let node = self.machine.left.resolve(node);
        let grammar = self.machine.grammar().clone();
        match grammar.node(node) {
            Node::Lexeme(expr) => {
                let lexeme = self.machine.lexeme(self.lexicon, *expr);
                let poor: ByteSet = POOR_BYTES.iter().copied().filter(|byte| !(b'1'..=b'9').contains(byte)).collect();
                Ok(repeats(self.lexicon.deriver(), lexeme, &poor)?)
            }
            Node::Choice(parts) => {
                for part in parts {
                    if let Node::Lexeme(_) = grammar.node(self.machine.left.resolve(*part))
                        && self.is_endless(*part)?
                    {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }
}

/// Whether some bytes of a residual can be read again and again that are not poor.
fn repeats(deriver: &mut Deriver, residual: ExprId, poor: &ByteSet) -> Result<bool, LimitExceeded> {
    let mut index: FxHashMap<ExprId, usize> = FxHashMap::from_iter([(residual, 0)]);
    let mut residuals = vec![residual];
    let mut users: Vec<Vec<usize>> = vec![Vec::new()];
    let mut waits: Vec<usize> = vec![0];
    let mut at = 0;
    while at < residuals.len() && residuals.len() <= MAX_RESIDUALS {
        let derivatives = deriver.derivatives(residuals[at])?;
        for &(set, rest) in derivatives.iter() {
            if !deriver.is_live(rest)? {
                continue;
            }
            let next = *index.entry(rest).or_insert_with(|| {
                residuals.push(rest);
                users.push(Vec::new());
                waits.push(0);
                residuals.len() - 1
            });
            if set.iter().any(|byte| !poor.contains(byte)) {
                users[next].push(at);
                waits[at] += 1;
            }
        }
        at += 1;
    }
    // What is left when those without a way on are taken away, and so on, is on a circle or leads to one.
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
