//! Patterns of formats as expressions.

use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, own_pattern};
use stencilm_regex::{ExprId, ExprSet};

use crate::json::strings::Strings;

/// A pattern that must match as a whole.
pub(super) fn whole(exprs: &mut ExprSet, strings: &mut Strings, pattern: &str) -> ExprId {
    let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
    own_pattern(exprs, pattern, &options, &mut strings.alphabet())
}
