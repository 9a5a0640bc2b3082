//! What is normalised, and into what: goals and the plans to reach them, conjunctions and their alternatives.

use std::rc::Rc;

use super::atoms::Atom;
use crate::json_schema::read::document::JsonId;
use crate::json_schema::read::schema::{SchemaId, Types};

/// Atoms that must all hold, in the order of the text. If there are none, every value fits.
pub(crate) type Conjunction = Rc<[Atom]>;
/// Conjunctions of which at least one must hold.
pub(crate) type Alternatives = Rc<[Conjunction]>;

/// What matters besides whether a schema holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mode {
    /// Nothing.
    Plain,
    /// The alternatives may be a superset, so it need not be decided whether branches exclude each other.
    Loose,
    /// Also a lower bound of the annotations.
    Tracked,
    /// Also the exact annotations.
    Exact,
    /// The schema id stands for a value, and the goal is to differ from it.
    Differs,
}

impl Mode {
    pub(crate) fn is_tracked(self) -> bool {
        matches!(self, Mode::Tracked | Mode::Exact)
    }

    /// A negated schema produces no annotations.
    pub(crate) fn inside_not(self) -> Mode {
        if self == Mode::Loose { Mode::Loose } else { Mode::Plain }
    }
}

/// The goal that a schema holds, or fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Goal {
    pub(crate) schema: SchemaId,
    pub(crate) fails: bool,
    pub(crate) mode: Mode,
}

impl Goal {
    /// The goal to differ from this value.
    pub(crate) fn differs(value: JsonId) -> Goal {
        Goal { schema: SchemaId { value, scope: 0 }, fails: true, mode: Mode::Differs }
    }
}

/// For every branch of a `oneOf`, the other branches that may hold together with it.
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
    /// At least one of these must hold.
    Disjuncts(Vec<Disjunct>),
    /// At least one of these schemas must hold; it matters which ones do, because their annotations count.
    AtLeastOne(Box<[SchemaId]>),
}

/// Factors that must all hold.
pub(crate) type Plan = Vec<Factor>;

/// Alternatives, at least one of which must hold; all of them only constrain strings and types.
#[derive(Clone)]
pub(crate) struct Texts {
    pub(crate) alternatives: Alternatives,
    /// The types that a value may have.
    pub(crate) types: Types,
    pub(super) level: usize,
}
