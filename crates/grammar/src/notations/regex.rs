//! A regular expression as a grammar: one lexeme that the whole text must match.

use stencilm_regex::syntax::{Anchoring, Dialect, PatternError, PatternOptions, Utf8, parse_pattern};

use crate::error::{ErrorKind, GrammarError};
use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::Grammar;
use crate::ir::report::Report;

/// Why a regular expression cannot be made into a grammar.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RegexError {
    /// The pattern is malformed or not supported; contains an offset into the pattern.
    Pattern(PatternError),
    /// The pattern is valid but matches nothing, or is too hard.
    Grammar(GrammarError),
}

/// The grammar of all texts that the pattern matches as a whole.
///
/// # Errors
/// [`RegexError::Pattern`] for a malformed or unsupported pattern, [`RegexError::Grammar`] for one that matches
/// nothing.
pub fn from_regex(pattern: &str) -> Result<Grammar, RegexError> {
    let mut builder = GrammarBuilder::default();
    let options = PatternOptions { dialect: Dialect::Standard, anchoring: Anchoring::Whole };
    let expr = parse_pattern(&mut builder.exprs, pattern, &options, &mut Utf8).map_err(RegexError::Pattern)?;
    let root = builder.lexeme(expr);
    builder.finish(root, Report::default()).map_err(|error| {
        RegexError::Grammar(match error.kind {
            ErrorKind::Unsatisfiable => {
                GrammarError::new(ErrorKind::Unsatisfiable, "offset 0", matches_nothing(pattern))
            }
            _ => GrammarError { place: "offset 0".into(), ..error },
        })
    })
}

/// The error message for a pattern that matches no text.
pub(super) fn matches_nothing(pattern: &str) -> String {
    let shown: String = pattern.chars().take(60).collect();
    format!("no text matches the regular expression `{shown}`; loosen its classes or anchors")
}
