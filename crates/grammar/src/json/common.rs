//! What nearly every grammar of JSON has, once it is built: see [`values`](super::values), which builds it.

use stencilm_regex::{ExprId, ExprSet, SharedExprs};
use stencilm_support::Map;

use super::format::{Format, Punycode};
use super::kind::Kind;
use super::spelling::Spelling;
use super::surface::Surface;

/// Sorted, disjoint ranges of code points, or of the smaller numbers in their escapes.
pub(super) type Ranges = Vec<(u32, u32)>;

/// The spellings that were already built.
#[derive(Default)]
pub(crate) struct Tables {
    pub(super) classes: [Map<Ranges, ExprId>; 3],
    pub(super) characters: [Map<char, ExprId>; 3],
    pub(super) hex: Map<(Ranges, u32), ExprId>,
    pub(super) formats: Map<(Spelling, Format, Punycode), ExprId>,
    pub(super) quoted_any: Option<ExprId>,
}

/// The expressions that are built once for all grammars.
pub(crate) struct Common {
    pub(super) exprs: SharedExprs,
    /// The spellings of classes, characters and formats among the expressions.
    pub(crate) tables: Tables,
    pub(crate) null: ExprId,
    /// `false` and `true`.
    pub(crate) booleans: ExprId,
    pub(super) number: ExprId,
    pub(super) integer: ExprId,
    pub(super) pointless: ExprId,
    /// Numbers that common readers can represent; and those of them that are written with digits only.
    pub(super) readable: [ExprId; 2],
    /// Numbers with an exponent in the natural spelling, by the bits of [`Common::scientific`].
    pub(super) scientific: [ExprId; 16],
    pub(super) string: ExprId,
    /// The gaps of objects and arrays, by the longest run of whitespace.
    pub(super) surfaces: [(Option<u32>, [Option<Surface>; 2]); 2],
    /// The spelling of each ASCII character in the natural spelling.
    pub(super) ascii: [ExprId; 128],
}

impl Common {
    /// A set of expressions that begins with the common ones.
    pub(crate) fn exprs(&self) -> ExprSet {
        ExprSet::extending(&self.exprs)
    }

    /// The gaps of objects and arrays with up to `max` whitespace characters, if they are among the common ones.
    pub(crate) fn surfaces(&self, max: Option<u32>) -> Option<[Option<Surface>; 2]> {
        self.surfaces.iter().find(|(known, _)| *known == max).map(|(_, surfaces)| *surfaces)
    }

    /// The spelling of a character in the natural spelling, if it is an ASCII character.
    pub(crate) fn ascii(&self, character: char) -> Option<ExprId> {
        self.ascii.get(character as usize).copied()
    }

    /// Numbers with an exponent in the natural spelling. Bit 0 selects small positive numbers, bit 1 large positive
    /// ones, bits 2 and 3 the small and large negative ones.
    pub(crate) fn scientific(&self, which: u8) -> ExprId {
        self.scientific[usize::from(which)]
    }

    /// Any number of a kind; if `readable`, only those that common readers can represent.
    pub(crate) fn number(&self, kind: Kind, readable: bool) -> ExprId {
        match kind {
            Kind::Pointless if readable => self.readable[1],
            Kind::Number | Kind::Fraction | Kind::Pointed if readable => self.readable[0],
            Kind::Number | Kind::Fraction | Kind::Pointed => self.number,
            Kind::Integer => self.integer,
            Kind::Pointless => self.pointless,
        }
    }
}
