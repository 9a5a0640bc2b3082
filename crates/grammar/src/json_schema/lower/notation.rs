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
    /// What stands around a string, which is written as it is; without it strings and keys are those of JSON, or the
    /// same in single quotes.
    pub quote: Option<&'static str>,
    /// Whether arguments and members may also come in the order of their names, as chat templates sort them.
    pub sorted: bool,
}

/// Where members stand: as the arguments of the call, or within a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Call,
    Value,
}

/// What a lowering knows whose values are written in a notation.
pub(crate) struct Notated<'a> {
    pub(super) notation: &'static Notation,
    /// Strings as they are, in exchange with those in JSON.
    pub(super) strings: Strings,
    pub(super) patterns: Map<&'a str, ExprId>,
    /// The names of a class that can be written, for each place.
    pub(super) names: Map<(ExprId, Place), ExprId>,
    /// Where the object stands that is laid out.
    pub(super) place: Place,
    /// Whether every string is written in one way: elements that must differ are distinguished by how they are written.
    pub(super) in_one_way: bool,
    /// The rules of values that were seen, by what is asked of them, and of those in one way.
    pub(super) values: [Map<Box<[Term]>, NodeId>; 2],
    /// The same by what schemas say, where they mean the same.
    pub(super) by_key: [Map<Box<[u8]>, NodeId>; 2],
    /// Values whose rules are still to be laid out.
    pub(super) work: Vec<Value>,
}

/// A rule for a value, and what is asked of it.
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

/// The members of an object that may mix, and what one that no schema names may be.
#[derive(Clone, Default)]
pub(super) struct Mixed {
    /// Each at most once, and whether it must come.
    pub(super) named: Vec<(NodeId, bool)>,
    /// Any number of each; and where there is one, what one of them at least must be.
    pub(super) others: Vec<(NodeId, Option<NodeId>)>,
}
