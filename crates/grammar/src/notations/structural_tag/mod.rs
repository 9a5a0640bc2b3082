//! Structural tags: free text and structure in one tree of formats, as a JSON document.
//!
//! The flow is one way: JSON ([`crate::json_schema::read::document`]) → [`read`] (a flat [`tree`] of formats, by the
//! types of their [`fields`]) → [`lower`] (nodes). [`texts`] has free text, [`embedded`] parts in other notations,
//! [`crate::ir::markers`] the words that may be tokens, and [`styles`] the ways in which models write the arguments of
//! calls.
//!
//! # Example
//! `{"type": "json_schema", "json_schema": {"type": "integer"}}` is a tree of one format, whose nodes are those of the
//! schema.

mod embedded;
mod fields;
mod lower;
mod read;
mod styles;
mod texts;
mod tree;

use lower::Lowering;
use stencilm_support::memory;
use tree::Tree;

use crate::error::GrammarError;
use crate::ir::builder::MAX_EXPRS;
use crate::ir::grammar::Grammar;
use crate::ir::report::{KeptReport, Later};
use crate::json_schema::options::MAX_BYTES;
use crate::json_schema::read::parse::parse_in_time;

/// The whole structural tag may be this many times as long as its longest part: enough for a thousand tools, each
/// written in several ways.
pub const MOST_PARTS: usize = 8;

/// Limits on the size of a structural tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StructuralTagOptions {
    /// The greatest length of a schema, grammar or pattern within it, in bytes; the whole text may be `MOST_PARTS`
    /// times as long.
    pub max_bytes: usize,
    /// The greatest number of expressions in the lexemes of its grammar.
    pub max_exprs: usize,
}

impl Default for StructuralTagOptions {
    fn default() -> StructuralTagOptions {
        StructuralTagOptions { max_bytes: MAX_BYTES, max_exprs: MAX_EXPRS }
    }
}

impl Grammar {
    /// The grammar of a structural tag, a JSON document as described in `docs/structural-tags.md`.
    ///
    /// # Errors
    /// [`ErrorKind::Syntax`](crate::ErrorKind::Syntax) for what is not a structural tag,
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for what cannot be enforced,
    /// [`ErrorKind::Unsatisfiable`](crate::ErrorKind::Unsatisfiable) if no text matches, each with its JSON pointer;
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if it is too large.
    pub fn from_structural_tag(text: &str, options: &StructuralTagOptions) -> Result<Grammar, GrammarError> {
        // Few callers read the report, and parsing the tag again for it costs them little.
        let later = KeptReport::later(Again { text: text.into(), options: *options });
        read(text, options, |lowering, tree| lowering.grammar(tree, options.max_exprs, later))
    }
}

/// Parses a structural tag and passes it on.
fn read<T>(
    text: &str,
    options: &StructuralTagOptions,
    then: impl for<'a> FnOnce(Lowering<'a>, &Tree<'a>) -> Result<T, GrammarError>,
) -> Result<T, GrammarError> {
    let document = parse_in_time(text, &[], options.max_bytes.saturating_mul(MOST_PARTS))?;
    let tree = read::read(&document)?;
    then(Lowering::new(&document, text, options.max_bytes), &tree)
}

/// The data to parse a structural tag again for its report.
#[derive(Debug)]
struct Again {
    text: Box<str>,
    options: StructuralTagOptions,
}

impl Later for Again {
    fn report(&self) -> Result<KeptReport, GrammarError> {
        read(&self.text, &self.options, |lowering, tree| lowering.report_alone(tree, self.options.max_exprs))
    }

    fn memory_bytes(&self) -> usize {
        memory::of_shared::<Again>(1) + memory::allocated(self.text.len())
    }
}
