//! What an EBNF text says, as a flat tree: parts stand before what is made of them, so that passes are loops.

use stencilm_regex::ExprId;

use crate::ir::grammar::{Mark, NodeId, Repeats, TokenPattern};

/// A part of a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PartId(pub u32);

impl PartId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
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
    /// The shortest matches of a body and an ending, distinguished where the ending first begins.
    Divided(Box<Divided>),
    Token(TokenPattern),
    /// `(= a)`: what follows begins with `a`.
    Lookahead(PartId),
    /// What follows, up to the end of the text, matches the expression.
    Ahead(ExprId),
    /// `name@(a)`, `%max_tokens(5: a)`, `%temperature(0.7: a)`
    Marked {
        mark: Mark,
        body: PartId,
    },
    Object(Box<Object>),
    Array(Box<Array>),
    /// A node that is there already.
    Node(NodeId),
}

/// The entries of `%object { ... }`, in their order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Object {
    pub empty: Option<PartId>,
    pub open: Option<PartId>,
    pub colon: Option<PartId>,
    pub item: Option<PartId>,
    pub close: Option<PartId>,
    /// How many of the members come in declared order; all, where it is not given.
    pub ordered: Option<usize>,
    pub members: Vec<Member>,
    pub others: Vec<Others>,
    /// Names that the other keys to be described next must not have, where they are given.
    pub taken: Option<Vec<String>>,
    pub count: Option<(u32, Option<u32>)>,
}

/// A class of other members.
#[derive(Clone, Debug)]
pub(crate) struct Others {
    pub key: Option<PartId>,
    /// Names that the keys must not have, where they are given.
    pub taken: Option<Vec<String>>,
    pub value: PartId,
    pub some: Option<PartId>,
    /// Of the last member of an object that is cut off, what completes its key.
    pub last: Option<String>,
}

/// The entries of `%array { ... }`, in their order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Array {
    pub empty: Option<PartId>,
    pub open: Option<PartId>,
    pub item: Option<PartId>,
    pub close: Option<PartId>,
    /// The alternatives at each leading place: counters and value.
    pub prefix: Vec<Vec<(u32, PartId)>>,
    pub rest: Vec<(u32, PartId)>,
    pub count: Option<(u32, Option<u32>)>,
    /// Counters by name, with their bounds.
    pub contains: indexmap::IndexMap<String, (u32, Option<u32>)>,
    pub repeats: Repeats,
}

/// An object or an array under way.
pub(crate) enum Container {
    Object(Object),
    Array(Array),
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub name: String,
    pub required: bool,
    pub key: Option<PartId>,
    pub value: PartId,
}

/// A text that has been read.
#[derive(Default, Debug)]
pub(crate) struct Text {
    pub parts: Vec<Part>,
    /// Where each part starts.
    pub places: Vec<usize>,
    /// The rules by their names: the body, and where the name was first seen.
    pub names: indexmap::IndexMap<String, (Option<PartId>, usize)>,
    /// What stands before every text.
    pub begun: Vec<u8>,
}

impl Text {
    pub(crate) fn add(&mut self, place: usize, part: Part) -> PartId {
        self.parts.push(part);
        self.places.push(place);
        PartId(self.parts.len() as u32 - 1)
    }

    pub(crate) fn part(&self, id: PartId) -> &Part {
        &self.parts[id.index()]
    }
}

/// A body and what ends it, each a terminal of its own.
#[derive(Clone, Debug)]
pub(crate) struct Divided {
    pub body: PartId,
    pub ending: PartId,
    /// What both together also match.
    pub whole: Option<PartId>,
    /// What is said of the body, the innermost first.
    pub marks: Vec<Mark>,
    /// What is said of the ending.
    pub ending_mark: Option<Mark>,
}
