//! What a Lark text says, as a flat tree: parts stand before what is made of them, so that passes are loops.

use indexmap::IndexMap;

use super::params::{Condition, Parameter};
use crate::ir::grammar::TokenPattern;

/// A part of one [`Unit`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct PartId(pub u32);

impl PartId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
pub(super) enum Part {
    /// A text, and whether it is case-insensitive.
    Text(String, bool),
    /// A pattern and its flags.
    Pattern(String, String),
    /// `"a".."z"`
    Range(char, char),
    /// The name of a rule, a terminal or a parameter of a template, with the arguments of a template and the parameter
    /// of a parametric rule.
    Name {
        name: String,
        arguments: Vec<PartId>,
        parameter: Option<Parameter>,
    },
    /// A token of the model.
    Token(TokenPattern),
    /// `@name`
    Grammar(String),
    /// `%symbols("name")`: any name of a table.
    Symbols(String),
    /// `%declares("set": a)`
    Declares(String, PartId),
    /// `%refers("set")`
    Refers(String),
    /// `%json {...}`
    Json(Box<str>),
    /// `%regex {...}`
    Regex(Box<str>),
    /// `%lark {...}`, by its index among the nested grammars.
    Nested(usize),
    Sequence(Vec<PartId>),
    Choice(Vec<PartId>),
    Repeat {
        body: PartId,
        min: u32,
        max: Option<u32>,
    },
    /// `a & b`
    And(Vec<PartId>),
    /// `~a`
    Not(PartId),
    /// An alternative with `%if`.
    When(PartId, Condition),
}

impl Part {
    /// The direct parts.
    pub(super) fn children(&self) -> &[PartId] {
        match self {
            Part::Name { arguments: parts, .. } | Part::Sequence(parts) | Part::Choice(parts) | Part::And(parts) => {
                parts
            }
            Part::Repeat { body, .. } | Part::Not(body) | Part::When(body, _) | Part::Declares(_, body) => {
                std::slice::from_ref(body)
            }
            _ => &[],
        }
    }

    /// The same part with other ids for its direct parts.
    pub(super) fn moved(&self, new: impl Fn(PartId) -> PartId) -> Part {
        let mut part = self.clone();
        match &mut part {
            Part::Name { arguments: parts, .. } | Part::Sequence(parts) | Part::Choice(parts) | Part::And(parts) => {
                parts.iter_mut().for_each(|part| *part = new(*part));
            }
            Part::Repeat { body, .. } | Part::Not(body) | Part::When(body, _) | Part::Declares(_, body) => {
                *body = new(*body);
            }
            _ => {}
        }
        part
    }
}

/// One entry of the `[...]` of a rule.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub name: String,
    pub value: Option<Value>,
    pub place: usize,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Text(String, bool),
    Pattern(String, String),
    Name(String),
    Number(String),
}

/// A rule, a terminal or what is ignored.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub place: usize,
    pub is_terminal: bool,
    /// The parameters of a template.
    pub parameters: Vec<String>,
    /// Whether it was defined with `::_`.
    pub is_parametric: bool,
    pub attributes: Vec<Attribute>,
    /// The first of its parts: its parts are all from this one up to `body`.
    pub first: PartId,
    pub body: PartId,
}

/// One `%import`.
#[derive(Clone, Debug)]
pub(super) struct Import {
    pub module: String,
    pub name: String,
    pub alias: String,
    pub place: usize,
}

/// One Lark text.
#[derive(Clone, Default, Debug)]
pub(super) struct Unit {
    pub parts: Vec<Part>,
    /// The position of each part.
    pub places: Vec<usize>,
    pub definitions: IndexMap<String, Definition>,
    pub ignored: Vec<Definition>,
    pub imports: Vec<Import>,
    /// Terminals that are declared here and defined elsewhere.
    pub declared: IndexMap<String, usize>,
    /// Grammars in braces, each with positions in its own text.
    pub nested: Vec<Unit>,
    pub options: Options,
}

/// The options set by `%llguidance` and `%grammar_options`.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// Whether what is ignored may come at the very beginning.
    pub initial_skip: bool,
    /// Whether what is ignored may come repeatedly at one place.
    pub skips_repeat: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { initial_skip: true, skips_repeat: true }
    }
}

impl Unit {
    pub(super) fn add(&mut self, place: usize, part: Part) -> PartId {
        self.parts.push(part);
        self.places.push(place);
        PartId(self.parts.len() as u32 - 1)
    }

    pub(super) fn part(&self, id: PartId) -> &Part {
        &self.parts[id.index()]
    }

    /// The parts of a definition, children before their parents.
    pub(super) fn parts_of(&self, definition: &Definition) -> impl Iterator<Item = PartId> + use<> {
        (definition.first.0..=definition.body.0).map(PartId)
    }

    pub(super) fn place(&self, id: PartId) -> usize {
        self.places[id.index()]
    }
}
