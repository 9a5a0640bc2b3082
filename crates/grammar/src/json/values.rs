//! The expressions that nearly every grammar of JSON has, built once: strings, numbers, whitespace, formats, letters.
//!
//! Every grammar begins with them ([`common_exprs`]), and so does every set of lexemes that imports from grammars, so
//! they have the same ids everywhere and cost a grammar neither time nor memory.

use std::sync::LazyLock;

use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, own_pattern};
use stencilm_regex::{ExprId, ExprSet};
use stencilm_support::{Held, unwatched};

use super::common::Common;
use super::format::Format;
use super::intervals::{any_integer, any_number, any_readable, scientific};
use super::kind::Kind;
use super::layout::{DEFAULT_MAX_WHITESPACE, LayoutOptions, Surfaces};
use super::spelling::Spelling;
use super::strings::Strings;
use crate::error::GrammarError;

/// Classes of characters that many patterns use.
const CLASSES: &str = r"[\s\S].\d\D\w\W\s\S";

static COMMON: LazyLock<Common> = LazyLock::new(|| {
    let _held = Held::new();
    unwatched(build)
});

/// A set of expressions that begins with the common ones.
pub fn common_exprs() -> ExprSet {
    COMMON.exprs()
}

/// Any JSON string among the [`common_exprs`], in the spelling that most grammars use.
pub fn common_string() -> ExprId {
    COMMON.string
}

/// The expressions that are built once for all grammars.
pub(crate) fn common() -> &'static Common {
    &COMMON
}

fn build() -> Common {
    let mut exprs = ExprSet::new();
    let number = any_number(&mut exprs);
    let integer = any_integer(&mut exprs, Kind::Integer);
    let pointless = any_integer(&mut exprs, Kind::Pointless);
    let readable = [Kind::Number, Kind::Pointless].map(|kind| any_readable(&mut exprs, kind));
    let scientific = std::array::from_fn(|which| scientific(&mut exprs, which as u8));
    let null = exprs.literal(b"null");
    let booleans = [exprs.literal(b"false"), exprs.literal(b"true")];
    let booleans = exprs.or(&booleans);
    let surfaces = [DEFAULT_MAX_WHITESPACE, None].map(|max_whitespace| {
        let mut surfaces = Surfaces::of_whitespace(max_whitespace);
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
    own_pattern(&mut exprs, CLASSES, &options, &mut strings.alphabet());
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

impl Strings {
    /// For sets of expressions that begin with the common ones.
    pub(crate) fn new(spelling: Spelling) -> Strings {
        Strings::over(spelling, Some(common()))
    }
}

impl Surfaces {
    /// For sets of expressions that begin with the common ones.
    pub(crate) fn new(options: &LayoutOptions<'_>) -> Result<Surfaces, GrammarError> {
        Surfaces::laid_out(options, common())
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
        Surfaces::of_whitespace(Some(64)).object(&mut exprs, 0);
        assert!(exprs.len() <= before + 2, "only the quoted letter is new: {}", exprs.len() - before);
    }
}
