//! What an EBNF text says, as a flat tree: parts stand before what is made of them, so that passes are loops.

use stencilm_regex::ExprId;

use crate::grammar::TokenPattern;

/// A part of a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct PartId(pub u32);

impl PartId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug)]
pub(super) enum Part {
    /// A literal, a class, a set of bytes or a pattern.
    Terminal(ExprId),
    /// A rule, by its place in [`Text::names`].
    Call(u32),
    Sequence(Vec<PartId>),
    Choice(Vec<PartId>),
    Repeat {
        body: PartId,
        min: u32,
        max: Option<u32>,
    },
    /// `a & b`: all at once.
    And(Vec<PartId>),
    /// `~a`: every text that `a` does not match.
    Complement(PartId),
    /// `%not(a)`: every string of bytes that `a` does not match.
    Not(PartId),
    /// `%lexeme(a)`: `a` as one lexeme.
    Lexeme(PartId),
    /// `%lazy(a)`: the shortest match.
    Lazy(PartId),
    Token(TokenPattern),
    Capture {
        name: String,
        body: PartId,
    },
    Object(Box<Object>),
}

/// The entries of `%object { ... }`, in their order.
#[derive(Default, Debug)]
pub(super) struct Object {
    pub empty: Option<PartId>,
    pub open: Option<PartId>,
    pub colon: Option<PartId>,
    pub item: Option<PartId>,
    pub close: Option<PartId>,
    pub any_order: bool,
    pub members: Vec<Member>,
    /// The key, where it is given, and the value.
    pub others: Option<(Option<PartId>, PartId)>,
    /// Names that other keys must not have, and how they are written where that is given.
    pub taken: Option<Vec<String>>,
}

#[derive(Debug)]
pub(super) struct Member {
    pub name: String,
    pub required: bool,
    pub key: Option<PartId>,
    pub value: PartId,
}

/// A text that has been read.
#[derive(Default, Debug)]
pub(super) struct Text {
    pub parts: Vec<Part>,
    /// Where each part starts.
    pub places: Vec<usize>,
    /// The rules by their names: the body, and where the name was first seen.
    pub names: indexmap::IndexMap<String, (Option<PartId>, usize)>,
}

impl Text {
    pub(super) fn add(&mut self, place: usize, part: Part) -> PartId {
        self.parts.push(part);
        self.places.push(place);
        PartId(self.parts.len() as u32 - 1)
    }

    pub(super) fn part(&self, id: PartId) -> &Part {
        &self.parts[id.index()]
    }
}
