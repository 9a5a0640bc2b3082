//! The expressions that nearly every grammar of JSON has, built once: strings, numbers, blanks, formats, letters.
//!
//! Every grammar begins with them ([`common_exprs`]), and so does every set of lexemes that imports from grammars, so
//! they have the same ids everywhere and cost a grammar neither time nor memory.

use std::sync::LazyLock;

use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, parse_pattern};
use stencilm_regex::{ExprId, ExprSet, Held, SharedExprs, unwatched};

use super::intervals::{any_integer, any_number, scientific};
use super::layout::Surfaces;
use super::strings::{Strings, Tables};
use crate::ir::grammar::Surface;
use crate::json_schema::constraints::numbers::{Kind, any_readable};
use crate::json_schema::read::schema::Format;
use crate::json_schema::{JsonSchemaOptions, Spelling};

/// Classes of characters that many patterns use.
const CLASSES: &str = r"[\s\S].\d\D\w\W\s\S";

/// What is built once.
pub(crate) struct Common {
    exprs: SharedExprs,
    /// Spellings of the classes, characters and formats among the expressions.
    pub(crate) tables: Tables,
    pub(crate) null: ExprId,
    /// `false` and `true`.
    pub(crate) booleans: ExprId,
    number: ExprId,
    integer: ExprId,
    pointless: ExprId,
    /// Numbers that common readers have a number for, and those of them that are written by digits alone.
    readable: [ExprId; 2],
    /// Numbers with an exponent in the natural spelling, by which of them there are.
    scientific: [ExprId; 16],
    string: ExprId,
    /// The gaps of objects and of arrays, by the longest run of blanks.
    surfaces: [(Option<u32>, [Option<Surface>; 2]); 2],
    /// What spells each character of ASCII in the natural spelling.
    ascii: [ExprId; 128],
}

static COMMON: LazyLock<Common> = LazyLock::new(|| {
    let _held = Held::new();
    unwatched(Common::new)
});

/// A set of expressions that begins with the common ones.
pub fn common_exprs() -> ExprSet {
    ExprSet::extending(&COMMON.exprs)
}

/// Any JSON string among the [`common_exprs`], in the spelling that most grammars have.
pub fn common_string() -> ExprId {
    COMMON.string
}

/// What is built once.
pub(crate) fn common() -> &'static Common {
    &COMMON
}

impl Common {
    fn new() -> Common {
        let mut exprs = ExprSet::new();
        let number = any_number(&mut exprs);
        let integer = any_integer(&mut exprs, Kind::Integer);
        let pointless = any_integer(&mut exprs, Kind::Pointless);
        let readable = [Kind::Number, Kind::Pointless].map(|kind| any_readable(&mut exprs, kind));
        let scientific = std::array::from_fn(|which| scientific(&mut exprs, which as u8));
        let null = exprs.literal(b"null");
        let booleans = [exprs.literal(b"false"), exprs.literal(b"true")];
        let booleans = exprs.or(&booleans);
        let surfaces = [JsonSchemaOptions::default().max_whitespace, None].map(|max_whitespace| {
            let mut surfaces = Surfaces::of_blanks(max_whitespace);
            surfaces.object(&mut exprs, 0);
            surfaces.array(&mut exprs, 0);
            (max_whitespace, surfaces.into_known())
        });
        let mut strings = Strings::alone(Spelling::Natural);
        let string = strings.any_string(&mut exprs, 0, None);
        exprs.or(&[null, booleans, number, string]);
        exprs.or(&[null, booleans, readable[0], string]);
        for scalar in [number, integer, booleans, string] {
            exprs.or(&[null, scalar]);
        }
        let letters: Vec<String> = (0..128u8).map(|byte| char::from(byte).to_string()).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        strings.literals(&mut exprs, &letters);
        let ascii = std::array::from_fn(|code| strings.bodies(&mut exprs, &[letters[code]]));
        let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Search };
        parse_pattern(&mut exprs, CLASSES, &options, &mut strings.alphabet()).expect("CLASSES is a pattern");
        for format in Format::COMMON {
            strings.format(&mut exprs, format);
        }
        Common {
            tables: strings.into_tables(),
            exprs: exprs.freeze(),
            null,
            booleans,
            number,
            integer,
            pointless,
            readable,
            scientific,
            string,
            surfaces,
            ascii,
        }
    }

    /// The gaps of objects and of arrays with up to `max` blanks, where most grammars have them.
    pub(crate) fn surfaces(&self, max: Option<u32>) -> Option<[Option<Surface>; 2]> {
        self.surfaces.iter().find(|(known, _)| *known == max).map(|(_, surfaces)| *surfaces)
    }

    /// What spells a character in the natural spelling, where it is one of ASCII.
    pub(crate) fn ascii(&self, character: char) -> Option<ExprId> {
        self.ascii.get(character as usize).copied()
    }

    /// Numbers with an exponent in the natural spelling: by a bit for each, small and large ones above 0, small and large ones
    /// below.
    pub(crate) fn scientific(&self, which: u8) -> ExprId {
        self.scientific[usize::from(which)]
    }

    /// Any number of a kind, or any that common readers have a number for.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_expressions_are_found_again() {
        let mut exprs = common_exprs();
        let before = exprs.len();
        let mut strings = Strings::new(Spelling::Natural);
        let known = strings.any_string(&mut exprs, 0, None);
        assert_eq!(Strings::alone(Spelling::Natural).any_string(&mut exprs, 0, None), known);
        for format in Format::COMMON {
            let known = strings.format(&mut exprs, format);
            assert_eq!(Strings::alone(Spelling::Natural).format(&mut exprs, format), known, "{}", format.name());
        }
        for (kind, known) in
            [(Kind::Number, any_number(&mut exprs)), (Kind::Integer, any_integer(&mut exprs, Kind::Integer))]
        {
            assert_eq!(common().number(kind, false), known);
        }
        strings.literals(&mut exprs, &["a"]);
        Surfaces::of_blanks(Some(64)).object(&mut exprs, 0);
        assert!(exprs.len() <= before + 2, "only the quoted letter is new: {}", exprs.len() - before);
    }
}
