//! How members are written between markers, and what is known of a schema that is written so.

use std::rc::Rc;

use stencilm_regex::ExprId;
use stencilm_support::Map;

use super::notation::Notation;
use crate::ir::grammar::{NodeId, RuleId};
use crate::ir::markers;
use crate::json::spelling::Spelling;
use crate::json::strings::Strings;
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::merged::Merged;
use crate::json_schema::read::schema::{SchemaId, Types};

/// How the arguments of a call are written, if not as JSON.
#[derive(Clone, Copy)]
pub(crate) enum Arguments {
    /// Each one between markers.
    Marked(&'static Marked),
    /// As literals.
    Notated(&'static Notation),
}

/// The markers around the name and the value of one member.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) struct Marked {
    /// Before the name.
    pub open: &'static str,
    /// Between the name and the value. `{}` is the word for the type of the value, and whitespace may stand where a
    /// line ends.
    pub middle: &'static str,
    /// After the value; `{}` is the name.
    pub close: &'static str,
    /// The word for a string, which is written bare.
    pub string: &'static str,
    /// The words for the other types, which are written as JSON.
    pub other: Words,
    /// Whether `true`, `false` and `null` may also be written as in Python, as chat templates do.
    pub python_words: bool,
    /// Whether a value may stand on lines of its own: a line break before it and one after it are not part of the
    /// value.
    pub own_lines: bool,
    /// The end of a name, which names therefore cannot contain.
    pub name_end: &'static str,
    /// Replacements for characters of a name that would have another meaning.
    pub name_escapes: &'static [(char, &'static str)],
    /// The marker around each element, if objects and arrays are written between markers, too.
    pub item: Option<&'static str>,
    /// The words for objects and arrays whose parts are written between markers, if these words distinguish them from
    /// JSON.
    pub parts: Option<Parts>,
    /// Other markers that no string may contain, because they would be tokens with another meaning.
    pub control: &'static [&'static str],
}

/// How the parts of values are written that may also be JSON.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) struct Parts {
    /// The word for an object.
    pub object: &'static str,
    /// The word for an array.
    pub array: &'static str,
    /// Before the word for the type of an element, which has no name.
    pub open: &'static str,
    /// From that word to the element, as in [`Marked::middle`].
    pub middle: &'static str,
}

/// The words for the types of values that are not strings.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) enum Words {
    /// The same word for all.
    One(&'static str),
    /// The type names of JSON Schema, with `number` for integers.
    Types,
}

impl Marked {
    /// The text that no value contains: the beginning of its end marker.
    pub(super) fn stop(&self) -> &'static str {
        let fixed = self.close.split("{}").next().unwrap_or(self.close);
        markers::first(fixed).unwrap_or(fixed)
    }

    /// The written form of a name; `None` if it cannot be written.
    pub(super) fn written(&self, name: &str) -> Option<String> {
        let is_space_or_control = |c: char| c.is_whitespace() || c.is_control();
        let mut text = String::with_capacity(name.len());
        for c in name.chars() {
            match self.name_escapes.iter().find(|(plain, _)| *plain == c) {
                Some((_, escape)) => text.push_str(escape),
                None => text.push(c),
            }
        }
        let fits = !text.is_empty()
            && !text.contains(self.name_end)
            && !text.contains(['\n', '\r'])
            && !text.starts_with(is_space_or_control)
            && !text.ends_with(is_space_or_control);
        fits.then_some(text)
    }

    /// The types of values other than strings, by the word for them.
    pub(super) fn other_words(&self) -> Vec<(&'static str, Types)> {
        match self.other {
            Words::One(word) => vec![(word, Types::ALL.without(Types::STRING))],
            Words::Types => vec![
                ("number", Types::NUMBER),
                ("boolean", Types::BOOLEAN),
                ("null", Types::NULL),
                ("object", Types::OBJECT),
                ("array", Types::ARRAY),
            ],
        }
    }
}

/// The state of a lowering whose root is written between markers.
pub(crate) struct Marking<'a> {
    pub(crate) marked: &'static Marked,
    /// Bare strings; swapped with the JSON strings when needed.
    pub(super) strings: Strings,
    pub(super) patterns: Map<&'a str, ExprId>,
    /// The names of a class that can be written.
    pub(super) names: Map<ExprId, ExprId>,
    /// The renderings of values that were seen, by their terms.
    pub(super) values: Map<Box<[Term]>, Rc<[Rendering]>>,
    /// The same by structural key, for schemas that mean the same.
    pub(super) by_key: Map<Box<[u8]>, Rc<[Rendering]>>,
    /// Members that were written, by their names and the renderings of their values: many tools have the same members.
    pub(super) arguments: Map<(Box<str>, Box<[Rendering]>), NodeId>,
    /// Fixed texts, and whether whitespace may stand before them.
    pub(super) texts: Map<(bool, Box<str>), NodeId>,
    /// The optional form of nodes.
    pub(super) optional: Map<NodeId, NodeId>,
    /// Values whose rules still have to be defined, if markers nest.
    pub(crate) work: Vec<Nested<'a>>,
    pub(super) whitespace: ExprId,
    /// Texts that contain neither the end of a value nor an excluded text.
    pub(super) clean: ExprId,
}

/// A rendering of a value: the word for its type, and what follows the marker of the name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Rendering {
    pub(super) word: &'static str,
    pub(super) value: NodeId,
    pub(super) end: End,
}

/// How the end marker follows a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// It's already part of the value's node.
    Read,
    /// Immediately: whitespace would be part of the value.
    AtOnce,
    /// After whitespace; whitespace may also come before the value.
    AfterWhitespace,
}

/// A rule for an array or an object within which markers nest.
pub(crate) struct Nested<'a> {
    pub(super) rule: RuleId,
    pub(super) at: SchemaId,
    pub(super) merged: Rc<Merged<'a>>,
    pub(super) is_object: bool,
}

impl<'a> Marking<'a> {
    pub(crate) fn new(marked: &'static Marked) -> Marking<'a> {
        Marking {
            marked,
            strings: Strings::new(Spelling::Bare),
            patterns: Map::default(),
            names: Map::default(),
            values: Map::default(),
            by_key: Map::default(),
            arguments: Map::default(),
            texts: Map::default(),
            optional: Map::default(),
            work: Vec::new(),
            whitespace: ExprId::EMPTY,
            clean: ExprId::NOTHING,
        }
    }
}

/// A written member, and whether it is required.
#[derive(Clone, Copy)]
pub(super) struct Argument {
    pub(super) node: NodeId,
    pub(super) required: bool,
}

/// Members with names that no schema names: the node of each, and what at least one must be.
pub(super) struct Others {
    pub(super) node: NodeId,
    pub(super) some: Option<NodeId>,
}
