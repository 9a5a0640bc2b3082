//! The bytes with which a frame may begin, from the grammar alone.
//!
//! A walk through a vocabulary meets many ends of lexemes at which no token goes on with what may follow: after the
//! name `id` the tokens go on with letters, the text with a comma. Nothing needs to be built to see that.

use rustc_hash::FxHashSet;
use stencilm_grammar::{Mark, Node, NodeId};
use stencilm_regex::{ByteSet, ExprId};
use stencilm_support::LOOKED_AT;

use crate::machine::frame::{Begins, Continuation, Frame, FrameId};
use crate::machine::layout::Machine;

impl Machine {
    /// With what the frames of a continuation begin, `None` where only laying them out shows it.
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

    /// With what a frame begins, `None` where only laying it out shows it.
    pub(crate) fn begins(&mut self, frame: FrameId) -> Option<Begins> {
        if let Some(&known) = self.begins.get(&frame) {
            return known;
        }
        let found = self.find_begins(frame);
        self.begins.insert(frame, found);
        found
    }

    fn find_begins(&self, whole: FrameId) -> Option<Begins> {
        // The marks that are open and the names that there are say more than the frames.
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
        // A repetition may end after enough rounds, which its register counts.
        let is_repetition =
            matches!(frame, Frame::Node(node) if matches!(self.grammar.node(node), Node::Repeat { .. }));
        Some(Begins { bytes: bytes.union(&before), nullable: is_repetition || self.is_nullable(frame) })
    }

    /// The bytes with which some nodes may begin, perhaps some more.
    fn first_of_nodes(&self, mut work: Vec<NodeId>) -> Option<ByteSet> {
        let exprs = self.grammar.exprs();
        let (mut first, mut seen) = (ByteSet::EMPTY, FxHashSet::default());
        while let Some(node) = work.pop() {
            let node = self.left.resolve(node);
            if !seen.insert(node) {
                continue;
            }
            // To lay out what begins in so many ways takes long, but it is done once, and this might be in vain.
            if seen.len() > LOOKED_AT {
                return None;
            }
            let mut add = |expr: ExprId| exprs.may_begin_with(expr, LOOKED_AT).map(|bytes| first = first.union(&bytes));
            match self.grammar.node(node) {
                Node::Lexeme(expr) => add(*expr)?,
                // A single token is no way to go on with bytes.
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
                // A rule that is only another name for itself matches nothing.
                Node::Rule(_) => {}
            }
        }
        Some(first)
    }
}
