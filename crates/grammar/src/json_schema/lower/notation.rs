//! The words and marks of a notation of literals, and what is known of a schema whose values are written in it:
//! keywords of a call in Python, or names and values as the Gemma models write them.

use stencilm_regex::ExprId;
use stencilm_support::Map;

use crate::ir::grammar::{NodeId, RuleId};
use crate::json::spelling::Spelling;
use crate::json::strings::Strings;
use crate::json_schema::normal_form::atoms::Term;

/// The words and marks of a notation.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) struct Notation {
    pub name: &'static str,
    /// Between the name of an argument and its value.
    pub assign: &'static str,
    /// Between two arguments, two members, two elements.
    pub comma: &'static str,
    /// Between the key of a member and its value.
    pub colon: &'static str,
    /// The words for true, false and null.
    pub words: [&'static str; 3],
    /// What stands around a string, which is written bare. If `None`, strings and keys are written as in JSON, or in
    /// the same way in single quotes.
    pub quote: Option<&'static str>,
    /// Whether arguments and members may also come sorted by name, as chat templates do.
    pub sorted: bool,
}

/// The place of members: arguments of the call, or within a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Call,
    Value,
}

/// The state of a lowering whose values are written in a notation.
pub(crate) struct Notated<'a> {
    pub(super) notation: &'static Notation,
    /// Bare strings; swapped with the JSON strings when needed.
    pub(super) strings: Strings,
    pub(super) patterns: Map<&'a str, ExprId>,
    /// The names of a class that can be written, for each place.
    pub(super) names: Map<(ExprId, Place), ExprId>,
    /// The place of the object that is being defined.
    pub(super) place: Place,
    /// Whether every string has only one spelling: elements that must differ are then compared by spelling.
    pub(super) in_one_way: bool,
    /// The rules of values that were seen, by their terms, without and with a single spelling.
    pub(super) values: [Map<Box<[Term]>, NodeId>; 2],
    /// The same by structural key, for schemas that mean the same.
    pub(super) by_key: [Map<Box<[u8]>, NodeId>; 2],
    /// Values whose rules still have to be defined.
    pub(super) work: Vec<Value>,
}

/// A rule for a value, and the terms of the value.
pub(super) struct Value {
    pub(super) rule: RuleId,
    pub(super) node: NodeId,
    pub(super) all: Box<[Term]>,
    pub(super) in_one_way: bool,
}

impl<'a> Notated<'a> {
    pub(super) fn new(notation: &'static Notation) -> Notated<'a> {
        Notated {
            notation,
            strings: Strings::new(Spelling::Bare),
            patterns: Map::default(),
            names: Map::default(),
            place: Place::Call,
            in_one_way: false,
            values: [Map::default(), Map::default()],
            by_key: [Map::default(), Map::default()],
            work: Vec::new(),
        }
    }
}

/// The members of an object that come in any order, and the members that no schema names.
#[derive(Clone, Default)]
pub(super) struct Mixed {
    /// Each comes at most once; the flag says whether it's required.
    pub(super) named: Vec<(NodeId, bool)>,
    /// Any number of each; and, if given, what at least one of them must be.
    pub(super) others: Vec<(NodeId, Option<NodeId>)>,
}
