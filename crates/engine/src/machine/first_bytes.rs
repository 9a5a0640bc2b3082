//! The bytes that a frame may begin with, computed from the grammar alone.
//!
//! A walk through a vocabulary passes many ends of lexemes after which no token fits what follows: after the name `id`,
//! tokens go on with letters and the text with a comma. The first bytes show that without expanding any frame.

use rustc_hash::FxHashSet;
use stencilm_grammar::{Mark, Node, NodeId};
use stencilm_regex::{ByteSet, ExprId};
use stencilm_support::LOOKED_AT;

use crate::machine::frame::{Begins, Continuation, Frame, FrameId};
use crate::machine::layout::Machine;

impl Machine {
    /// What the frames of a continuation begin with; `None` where only expanding them would tell.
    pub(crate) fn begins_after(&mut self, continuation: &Continuation) -> Option<Begins> {
        let mut begins = Begins::NOTHING;
        for &(frame, _) in continuation.iter().rev() {
            let next = self.begins(frame)?;
            begins = Begins { bytes: begins.bytes.union(&next.bytes), nullable: next.nullable };
            if !next.nullable {
                break;
            }
        }
        Some(begins)
    }

    /// What a frame begins with; `None` where only expanding it would tell.
    pub(crate) fn begins(&mut self, frame: FrameId) -> Option<Begins> {
        if let Some(&known) = self.begins.get(&frame) {
            return known;
        }
        let found = self.find_begins(frame);
        self.begins.insert(frame, found);
        found
    }

    fn find_begins(&self, whole: FrameId) -> Option<Begins> {
        // What may come also depends on the open marks and the declared names, which the frame does not hold.
        if self.marks.any() || self.has_names() {
            return None;
        }
        let (before, frame) = match self.frames[whole.0 as usize] {
            Frame::WithWhitespace { whitespace, then } => (whitespace.set, self.frames[then.0 as usize]),
            frame => (ByteSet::EMPTY, frame),
        };
        let exprs = self.grammar.exprs();
        let of_lexeme = |expr: ExprId| exprs.may_begin_with(expr, LOOKED_AT);
        let of_punctuation = |one: ExprId, other: ExprId| Some(of_lexeme(one)?.union(&of_lexeme(other)?));
        let bytes = match frame {
            Frame::Node(node) => self.first_of_nodes(vec![node])?,
            Frame::Rest { node, from } => {
                let Node::Sequence(parts) = self.grammar.node(node) else {
                    unreachable!("only a sequence has a rest");
                };
                let parts = &parts[from as usize..];
                let nullable = parts.iter().take_while(|&&part| self.left.is_nullable(part)).count();
                self.first_of_nodes(parts[..parts.len().min(nullable + 1)].to_vec())?
            }
            Frame::Lexeme(expr) => of_lexeme(expr)?,
            Frame::Member { members, .. } => of_lexeme(self.grammar.members(members).surface.colon)?,
            Frame::AfterValue(id) => {
                let surface = self.grammar.members(id).surface;
                of_punctuation(surface.item, surface.close)?
            }
            Frame::AfterItem(id) => {
                let surface = self.grammar.items(id).surface;
                of_punctuation(surface.item, surface.close)?
            }
            Frame::Key(_)
            | Frame::Item(_)
            | Frame::End(_)
            | Frame::Text
            | Frame::Names
            | Frame::Reference { .. }
            | Frame::Left { .. }
            | Frame::WithWhitespace { .. } => return None,
        };
        // A repetition may end after enough rounds, and only its register knows how many there were.
        let is_repetition =
            matches!(frame, Frame::Node(node) if matches!(self.grammar.node(node), Node::Repeat { .. }));
        Some(Begins { bytes: bytes.union(&before), nullable: is_repetition || self.is_nullable(frame) })
    }

    /// The bytes that some nodes may begin with; the set may be too large. `None` where there are too many nodes.
    fn first_of_nodes(&self, mut work: Vec<NodeId>) -> Option<ByteSet> {
        let exprs = self.grammar.exprs();
        let (mut first, mut seen) = (ByteSet::EMPTY, FxHashSet::default());
        while let Some(node) = work.pop() {
            let node = self.left.resolve(node);
            if !seen.insert(node) {
                continue;
            }
            // Expanding a frame with so many alternatives is slow too, but its result is kept; this search might be for
            // nothing.
            if seen.len() > LOOKED_AT {
                return None;
            }
            let mut add = |expr: ExprId| exprs.may_begin_with(expr, LOOKED_AT).map(|bytes| first = first.union(&bytes));
            match self.grammar.node(node) {
                Node::Lexeme(expr) => add(*expr)?,
                // A single token is not read byte by byte.
                Node::Token(_) => {}
                Node::Members(id) => {
                    let surface = self.grammar.members(*id).surface;
                    add(surface.open).and(add(surface.empty))?;
                }
                Node::Items(id) => {
                    let items = self.grammar.items(*id);
                    if items.is_bare() {
                        return None;
                    }
                    add(items.surface.open).and(add(items.surface.empty))?;
                }
                Node::Marked { mark: Mark::Refers(_) | Mark::Declares(_), .. } => return None,
                Node::Choice(_) | Node::Sequence(_) | Node::Repeat { .. } | Node::Marked { .. } => {
                    work.extend(self.left.children(node).map(|(child, _)| child));
                }
                // A rule that stands only for itself matches nothing.
                Node::Rule(_) => {}
            }
        }
        Some(first)
    }
}
