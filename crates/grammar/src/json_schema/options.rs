//! How a schema is read and how its instances are written.

use crate::ir::builder::MAX_EXPRS;
use crate::json::layout::{DEFAULT_MAX_WHITESPACE, GapPatterns, LayoutOptions};
use crate::json::spelling::Spelling;

/// Longest schema, in bytes, where the caller gives no other bound.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// The keyword that names a table of symbols: the strings that are valid are its names.
pub(crate) const SYMBOLS: &str = "x-stencilm-symbols";

/// The keywords of a string that is a name from here on, and of one that is a name declared before; each names its set.
pub(crate) const DECLARES: &str = "x-stencilm-declares";
pub(crate) const REFERS: &str = "x-stencilm-refers";

/// The URI under which a table of symbols stands beside a schema, as a JSON array of strings.
pub(crate) fn symbols_uri(table: &str) -> String {
    format!("{SYMBOLS}:{table}")
}

/// How a schema is read and how its instances are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonSchemaOptions {
    /// Whether whitespace may stand between any two tokens; `indent` and `separators` then mean nothing.
    pub any_whitespace: bool,
    /// Whitespace for each level of an indented text, one entry per line.
    pub indent: Option<u32>,
    /// What stands between entries and between key and value; by default as Python's `json.dumps` has it.
    pub separators: Option<(String, String)>,
    /// What stands between tokens, in place of what the fields above say.
    pub gaps: Option<GapPatterns>,
    /// Whether members and elements that the schema does not speak of are forbidden.
    pub strict_mode: bool,
    /// The most whitespace in a row where `any_whitespace`; `None` without limit.
    pub max_whitespace: Option<u32>,
    /// Whether members may come in any order, instead of declared ones in their order, then the others.
    pub any_order: bool,
    /// Which texts of a valid value belong.
    pub spelling: Spelling,
    /// Whether strings have no escapes but those that JSON needs.
    pub minimal_escapes: bool,
    /// Whether integers are written without a point or exponent, as draft 4 has it.
    pub integers_as_digits: bool,
    /// Whether formats are enforced; where not they are annotations.
    pub enforce_formats: bool,
    /// Whether `nullable` adds null to the types beside it, as in OpenAPI 3.0; where not it is an annotation.
    pub nullable: bool,
    /// Whether what is not supported is left out and reported, where that only allows more.
    pub relax: bool,
    /// Texts that must not come within a string or a name, as they are written between the quotes.
    pub excludes: Vec<Box<str>>,
    /// Schemas that `$ref` may reach, each under its URI. Nothing else is ever looked for.
    pub documents: Vec<(String, String)>,
    /// Longest schema, in bytes.
    pub max_bytes: usize,
    /// Most expressions in the lexemes of its grammar.
    pub max_exprs: usize,
}

impl Default for JsonSchemaOptions {
    fn default() -> JsonSchemaOptions {
        JsonSchemaOptions {
            any_whitespace: true,
            indent: None,
            separators: None,
            gaps: None,
            strict_mode: false,
            max_whitespace: DEFAULT_MAX_WHITESPACE,
            any_order: false,
            spelling: Spelling::Natural,
            minimal_escapes: false,
            integers_as_digits: false,
            enforce_formats: true,
            nullable: false,
            relax: false,
            excludes: Vec::new(),
            documents: Vec::new(),
            max_bytes: MAX_BYTES,
            max_exprs: MAX_EXPRS,
        }
    }
}

impl JsonSchemaOptions {
    /// Those that say how a text is laid out.
    pub(crate) fn layout(&self) -> LayoutOptions<'_> {
        LayoutOptions {
            any_whitespace: self.any_whitespace,
            indent: self.indent,
            separators: self.separators.as_ref(),
            gaps: self.gaps.as_ref(),
            max_whitespace: self.max_whitespace,
        }
    }
}
