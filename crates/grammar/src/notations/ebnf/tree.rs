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
    /// A rule, by its index in [`Text::names`].
    Call(u32),
    Sequence(Vec<PartId>),
    Choice(Vec<PartId>),
    Repeat {
        body: PartId,
        min: u32,
        max: Option<u32>,
    },
    /// `a & b`: the texts that match all of these.
    And(Vec<PartId>),
    /// `~a`: every text that `a` does not match.
    Complement(PartId),
    /// `%not(a)`: every string of bytes that `a` does not match.
    Not(PartId),
    /// `%lexeme(a)`: `a` as one lexeme.
    Lexeme(PartId),
    /// `%lazy(a)`: the shortest match.
    Lazy(PartId),
    /// The shortest matches of a body and an ending, divided where the ending first begins.
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
    /// A node of the builder.
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
    /// How many of the members come in declared order; all, if it isn't given.
    pub ordered: Option<usize>,
    pub members: Vec<Member>,
    pub others: Vec<Others>,
    /// The names that the keys of the next `other` entry must not have, if given.
    pub taken: Option<Vec<String>>,
    pub count: Option<(u32, Option<u32>)>,
}

/// A class of additional members.
#[derive(Clone, Debug)]
pub(crate) struct Others {
    pub key: Option<PartId>,
    /// Names that the keys must not have, if given.
    pub taken: Option<Vec<String>>,
    pub value: PartId,
    pub some: Option<PartId>,
    /// The text that completes the key of the last member of a truncated object.
    pub last: Option<String>,
}

/// The entries of `%array { ... }`, in their order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Array {
    pub empty: Option<PartId>,
    pub open: Option<PartId>,
    pub item: Option<PartId>,
    pub close: Option<PartId>,
    /// The alternatives at each leading position: counters and value.
    pub prefix: Vec<Vec<(u32, PartId)>>,
    pub rest: Vec<(u32, PartId)>,
    pub count: Option<(u32, Option<u32>)>,
    /// The counters by name, with their bounds.
    pub contains: indexmap::IndexMap<String, (u32, Option<u32>)>,
    pub repeats: Repeats,
}

/// An object or an array that is being read.
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

/// A parsed text.
#[derive(Default, Debug)]
pub(crate) struct Text {
    pub parts: Vec<Part>,
    /// The position of each part.
    pub places: Vec<usize>,
    /// The rules by name: the body, and where the name first occurred.
    pub names: indexmap::IndexMap<String, (Option<PartId>, usize)>,
    /// The bytes before every text.
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

/// A body and its ending, each a terminal of its own.
#[derive(Clone, Debug)]
pub(crate) struct Divided {
    pub body: PartId,
    pub ending: PartId,
    /// What the two together must match as well.
    pub whole: Option<PartId>,
    /// The marks of the body, the innermost first.
    pub marks: Vec<Mark>,
    /// The mark of the ending.
    pub ending_mark: Option<Mark>,
}
