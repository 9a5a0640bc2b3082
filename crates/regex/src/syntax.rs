//! Pattern text to expressions: a pattern of the user becomes one [`ExprId`] that matches exactly the same texts.
//!
//! `regex-syntax` does the parsing. Every stage is a file: `ecma` (the spelling of ECMA-262 → that of
//! `regex-syntax`) → the crate's AST → `checks` (our `\d`, `\s`, `\w`; refusals at their place) → the crate's HIR →
//! `build` and `tree` (a flat tree that knows which parts look at their neighbours) → `edges` (anchors and word
//! boundaries resolved) → expression. The tree has no offsets any more: from there on, only cost is refused.

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::hir::translate::TranslatorBuilder;

use crate::expr::{ExprId, ExprSet};

mod build;
mod checks;
mod ecma;
mod edges;
mod error;
mod kinds;
mod rewritten;
mod tree;
mod utf8;

pub use error::{PatternError, PatternErrorKind};
pub use utf8::{Alphabet, Utf8};

/// Longest pattern accepted, in bytes: a literal of this length takes about 200 MiB while it is parsed.
pub const MAX_PATTERN_BYTES: usize = 1 << 20;
/// Most characters of syntax accepted in a pattern; each may cost ten times the memory of a literal character.
pub const MAX_SYNTAX: usize = 1 << 18;
/// Deepest nesting of groups, brackets, repetitions, alternations and sequences accepted.
pub const MAX_NESTING: u32 = 1_000;

/// Which spelling a pattern is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Dialect {
    /// The syntax of the Rust crate `regex`, close to Python's `re`.
    #[default]
    Standard,
    /// ECMA-262 with the `u` flag, and the harmless part of Annex B: what JSON Schema `pattern` asks for.
    EcmaScript,
}

/// Which part of a text a pattern has to match.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Anchoring {
    /// The whole text.
    #[default]
    Whole,
    /// Any part of it: the result matches whatever text contains a match.
    Search,
}

/// How a pattern is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PatternOptions {
    /// Which spelling it is in.
    pub dialect: Dialect,
    /// Which part of a text it has to match.
    pub anchoring: Anchoring,
}

/// The expression that matches exactly the texts, spelled through `alphabet`, that `pattern` matches.
///
/// # Errors
/// [`PatternError`] with the offset of what is malformed, not supported or too large.
pub fn parse_pattern(
    exprs: &mut ExprSet,
    pattern: &str,
    options: &PatternOptions,
    alphabet: &mut dyn Alphabet,
) -> Result<ExprId, PatternError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(PatternError::too_long(pattern, MAX_PATTERN_BYTES));
    }
    let mut syntax = pattern.bytes().enumerate().filter(|(_, byte)| b"\\[({.^$*+?|".contains(byte));
    if let Some((offset, _)) = syntax.nth(MAX_SYNTAX) {
        let what = "more than 262144 characters of syntax; split the pattern";
        return Err(PatternError::about(PatternErrorKind::Limit, pattern, offset, offset + 1, what));
    }
    let rewritten = match options.dialect {
        Dialect::Standard => rewritten::Rewritten::end_anchors_only(pattern),
        Dialect::EcmaScript => ecma::rewrite(pattern)?,
    };
    let mut ast = ParserBuilder::new()
        .nest_limit(MAX_NESTING)
        .empty_min_range(options.dialect == Dialect::Standard)
        .build()
        .parse(&rewritten.text)
        .map_err(|error| PatternError::from_ast(&error, pattern, &rewritten))?;
    checks::check(&mut ast, pattern, &rewritten, options.dialect)?;
    let hir = TranslatorBuilder::new()
        .build()
        .translate(&rewritten.text, &ast)
        .map_err(|error| PatternError::from_hir(&error, pattern, &rewritten))?;
    drop(ast);
    let mut tree = tree::Tree::new(exprs, alphabet);
    let root = build::add(&mut tree, &hir);
    drop(hir);
    let root = match options.anchoring {
        Anchoring::Whole => root,
        Anchoring::Search => tree.search(root),
    };
    edges::resolve(&mut tree, root, options.dialect)
}
