//! How a schema is read and how its instances are written.

use crate::ir::builder::MAX_EXPRS;
use crate::json::layout::{DEFAULT_MAX_WHITESPACE, GapPatterns, LayoutOptions};
use crate::json::spelling::Spelling;

/// The greatest length of a schema in bytes, unless the caller sets another bound.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// The keyword that names a table of symbols: only the names in the table are valid strings.
pub(crate) const SYMBOLS: &str = "x-stencilm-symbols";

/// The keywords for a string that declares a name, and for a string that must be a declared name; each gives the name
/// of a set.
pub(crate) const DECLARES: &str = "x-stencilm-declares";
pub(crate) const REFERS: &str = "x-stencilm-refers";

/// The URI of the document with a table of symbols, a JSON array of strings.
pub(crate) fn symbols_uri(table: &str) -> String {
    format!("{SYMBOLS}:{table}")
}

/// How a schema is read and how its instances are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonSchemaOptions {
    /// Whether whitespace may stand between any two tokens; `indent` and `separators` are then ignored.
    pub any_whitespace: bool,
    /// The number of spaces for each level of an indented text, with one entry per line.
    pub indent: Option<u32>,
    /// The texts between entries, and between key and value; the default is that of Python's `json.dumps`.
    pub separators: Option<(String, String)>,
    /// The texts between tokens, instead of what the fields above say.
    pub gaps: Option<GapPatterns>,
    /// Whether members and elements that the schema doesn't mention are forbidden.
    pub strict_mode: bool,
    /// The greatest length of a run of whitespace with `any_whitespace`; `None` without limit.
    pub max_whitespace: Option<u32>,
    /// Whether members may come in any order; otherwise declared members come first, in their order.
    pub any_order: bool,
    /// Which spellings of a valid value are allowed.
    pub spelling: Spelling,
    /// Whether strings may only contain escapes that JSON requires.
    pub minimal_escapes: bool,
    /// Whether integers are written without a point or exponent, as in draft 4.
    pub integers_as_digits: bool,
    /// Whether formats are enforced; otherwise they are annotations.
    pub enforce_formats: bool,
    /// Whether `nullable` adds null to the types beside it, as in OpenAPI 3.0; otherwise it is an annotation.
    pub nullable: bool,
    /// Whether unsupported keywords are relaxed and reported, where that only allows more.
    pub relax: bool,
    /// Texts that must not occur within a string or a name, as they are written between the quotes.
    pub excludes: Vec<Box<str>>,
    /// Schemas that `$ref` may refer to, each with its URI. Nothing else is ever loaded.
    pub documents: Vec<(String, String)>,
    /// The greatest length of a schema in bytes.
    pub max_bytes: usize,
    /// The greatest number of expressions in the lexemes of its grammar.
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
    /// The options for the layout of a text.
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
