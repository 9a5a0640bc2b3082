//! Patterns that are held against values and against each other.

use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};
use stencilm_regex::{Deriver, ExprId, Limits};
use stencilm_support::{HashMap, LimitExceeded, decided};

/// The greatest number of steps to find a string that satisfies several patterns.
pub(crate) const MAX_SEARCH: usize = 500;

/// Patterns as expressions over characters, to find out which ones exclude each other.
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
    /// The strings that contain a match of a pattern; `None` if the pattern is not supported.
    ///
    /// # Errors
    /// A limit of time.
    pub(super) fn texts(&mut self, pattern: &'a str) -> Result<Option<ExprId>, LimitExceeded> {
        if let Some(&known) = self.known.get(pattern) {
            return Ok(known);
        }
        let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Search };
        let texts = decided(|| parse_pattern(&mut self.deriver.exprs, pattern, &options, &mut Utf8))?;
        self.known.insert(pattern, texts);
        Ok(texts)
    }
}
