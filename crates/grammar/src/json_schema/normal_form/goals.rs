//! What is normalised, and into what: goals and the plans to reach them, conjunctions and their alternatives.

use std::rc::Rc;

use super::atoms::Atom;
use crate::json_schema::read::document::JsonId;
use crate::json_schema::read::schema::{SchemaId, Types};

/// Atoms that must all hold, in the order of the text. None at all: any value.
pub(crate) type Conjunction = Rc<[Atom]>;
/// Conjunctions of which any may hold.
pub(crate) type Alternatives = Rc<[Conjunction]>;

/// What counts beside whether a schema holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mode {
    /// Nothing.
    Plain,
    /// Alternatives may allow more, and need no look at whether branches exclude each other.
    Loose,
    /// Also which annotations there are at least.
    Tracked,
    /// Also which annotations there are exactly.
    Exact,
    /// What looks like a schema is a value, and the goal is to be another one.
    Differs,
}

impl Mode {
    pub(crate) fn is_tracked(self) -> bool {
        matches!(self, Mode::Tracked | Mode::Exact)
    }

    /// No annotations come out of what must fail.
    pub(crate) fn inside_not(self) -> Mode {
        if self == Mode::Loose { Mode::Loose } else { Mode::Plain }
    }
}

/// That a schema holds, or fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Goal {
    pub(crate) schema: SchemaId,
    pub(crate) fails: bool,
    pub(crate) mode: Mode,
}

impl Goal {
    /// Another value than this one.
    pub(crate) fn differs(value: JsonId) -> Goal {
        Goal { schema: SchemaId { value, scope: 0 }, fails: true, mode: Mode::Differs }
    }
}

/// For every branch of a `oneOf` the other ones that may hold together with it.
pub(crate) type Overlaps = Vec<Box<[u32]>>;

/// A part of a product.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Atom(Atom),
    Goal(Goal),
}

/// Pieces that must all hold.
pub(crate) type Disjunct = Vec<Piece>;

/// A factor of a plan.
pub(crate) enum Factor {
    /// Any of these.
    Disjuncts(Vec<Disjunct>),
    /// At least one of these schemas, where it counts which of them hold, since their annotations do.
    AtLeastOne(Box<[SchemaId]>),
}

/// Factors that must all hold.
pub(crate) type Plan = Vec<Factor>;

/// Alternatives of which any must hold, all of them about texts.
#[derive(Clone)]
pub(crate) struct Texts {
    pub(crate) alternatives: Alternatives,
    /// The types of which a value may be.
    pub(crate) types: Types,
    pub(super) level: usize,
}
