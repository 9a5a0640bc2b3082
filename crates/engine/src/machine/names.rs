//! References to declared names. For each set of names, a reference is a lexeme of its own: the spellings of these
//! names.

use stencilm_grammar::{Mark, NameSet, Node, NodeId, json_strings_of};
use stencilm_regex::ExprId;

use crate::error::EngineError;
use crate::lexeme::cache::LexemeCache;
use crate::machine::frame::NamesId;
use crate::machine::layout::{Frame, FrameId, Machine};
use crate::vocabulary::json_text;

impl Machine {
    /// Finds the sets of names of the grammar; returns whether there are any.
    pub(crate) fn find_names(&mut self) -> bool {
        let grammar = self.grammar().clone();
        for node in grammar.nodes() {
            if let Node::Marked { mark: Mark::Declares(set) | Mark::Refers(set), .. } = node
                && !self.names.sets.contains(set)
            {
                self.names.sets.push(set.clone());
            }
        }
        if self.names.sets.is_empty() {
            return false;
        }
        self.names.frame = Some(self.frame_id(Frame::Names));
        true
    }

    /// Whether the grammar declares names.
    #[inline]
    pub(crate) fn has_names(&self) -> bool {
        self.names.frame.is_some()
    }

    /// Whether a frame holds the names on top of a stack.
    pub(crate) fn is_names(&self, frame: FrameId) -> bool {
        self.names.frame == Some(frame)
    }

    /// The set to which a name is added where this frame ends.
    pub(crate) fn declares(&self, frame: FrameId) -> Option<&NameSet> {
        let Frame::End(node) = self.frame(frame) else { return None };
        match self.grammar().node(node) {
            Node::Marked { mark: Mark::Declares(set), .. } => Some(set),
            _ => None,
        }
    }

    /// The node of the reference, if the frame is one.
    pub(crate) fn reference(&self, frame: FrameId) -> Option<NodeId> {
        let Frame::Node(node) = self.frame(frame) else { return None };
        matches!(self.grammar().node(node), Node::Marked { mark: Mark::Refers(_), .. }).then_some(node)
    }

    /// The set of names of a declaration or a reference, and its number.
    pub(crate) fn set_of(&self, node: NodeId) -> (usize, &NameSet) {
        let Node::Marked { mark: Mark::Declares(set) | Mark::Refers(set), .. } = self.grammar().node(node) else {
            unreachable!("only what declares names or refers to them has a set of them")
        };
        let at = self.names.sets.iter().position(|known| known == set).expect("all sets were found beforehand");
        (at, set)
    }

    /// What a reference matches, given these names.
    pub(crate) fn reference_lexeme(
        &mut self,
        lexeme_cache: &mut LexemeCache,
        node: NodeId,
        names: NamesId,
    ) -> Result<ExprId, EngineError> {
        let Node::Marked { body, .. } = *self.grammar().node(node) else {
            unreachable!("a reference is a marked part")
        };
        let body = match *self.grammar().node(self.left.resolve(body)) {
            Node::Lexeme(expr) => Some(self.lexeme(lexeme_cache, expr)?),
            _ => None,
        };
        if names == NamesId::ANY {
            // A part of a long literal is no lexeme of its own. Then the lexeme accepts anything, and the text that was
            // read is compared with the names.
            return Ok(body.unwrap_or(ExprId::ANYTHING));
        }
        let names = self.names.known[names.0 as usize].clone();
        let quoted = self.set_of(node).1.quoted;
        let exprs = &mut lexeme_cache.deriver().exprs;
        if !quoted {
            let names: Vec<ExprId> = names.iter().map(|name| exprs.literal(name)).collect();
            return Ok(exprs.or(&names));
        }
        let (mut spelled, mut values) = (Vec::new(), Vec::new());
        for name in names.iter() {
            match String::from_utf8(json_text::value_of(name.trim_ascii())) {
                Ok(value) => values.push(value),
                // A lone surrogate has only one spelling.
                Err(_) => spelled.push(exprs.literal(name.trim_ascii())),
            }
        }
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        if !values.is_empty() {
            spelled.push(json_strings_of(exprs, &values));
        }
        let spelled = exprs.or(&spelled);
        Ok(match body {
            Some(body) => exprs.and(&[spelled, body]),
            None => spelled,
        })
    }
}
