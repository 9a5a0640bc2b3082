//! Patterns that are held against values and against each other.

use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};
use stencilm_regex::{Deriver, ExprId, HashMap, Limits};

/// Most steps to find a string that meets several patterns.
pub(crate) const MAX_SEARCH: usize = 500;

/// Patterns as expressions over characters, to tell what excludes each other.
pub(crate) struct Patterns<'a> {
    pub(super) deriver: Deriver,
    known: HashMap<&'a str, Option<ExprId>>,
}

impl Default for Patterns<'_> {
    fn default() -> Self {
        let limits = Limits { max_search: MAX_SEARCH, ..Limits::default() };
        Patterns { deriver: Deriver::new(limits), known: HashMap::default() }
    }
}

impl<'a> Patterns<'a> {
    /// The strings with a match of a pattern; `None` where it is not understood.
    pub(super) fn texts(&mut self, pattern: &'a str) -> Option<ExprId> {
        let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Search };
        let exprs = &mut self.deriver.exprs;
        *self.known.entry(pattern).or_insert_with(|| parse_pattern(exprs, pattern, &options, &mut Utf8).ok())
    }
}
