//! Pattern text to expressions: a pattern of the user becomes one [`ExprId`] that matches exactly the same texts.
//!
//! `regex-syntax` does the parsing. Every stage is a file: `ecma` (the spelling of ECMA-262 → that of
//! `regex-syntax`) → the crate's AST → `checks` (our `\d`, `\s`, `\w`; refusals at their place) → the crate's HIR →
//! `build` and `tree` (a flat tree that knows which parts look at their neighbours) → `edges` (anchors and word
//! boundaries resolved) → expression. The tree has no offsets any more: from there on, only cost is refused.

mod around;
mod build;
mod checks;
mod choices;
mod ecma;
mod edges;
mod error;
mod kinds;
mod lazy;
mod loops;
mod options;
mod paths;
mod place;
mod read;
mod rewritten;
mod rounds;
mod sequences;
mod standard;
mod steps;
mod tree;
mod utf8;
mod walker;

pub use error::{PatternError, PatternErrorKind};
pub use options::{Anchoring, Dialect, MAX_NESTING, MAX_PATTERN_BYTES, MAX_SYNTAX, PatternOptions};
pub use utf8::{Alphabet, Utf8};

use stencilm_support::{LimitExceeded, after_freeing, unwatched};

use crate::expr::expr_set::ExprSet;
use crate::expr::node::ExprId;
use choices::Choice;
use place::Reading;
use read::{read, too_long};
use rewritten::Rewritten;
use steps::Budget;

/// The memory that reading a longer pattern took is released at once.
const LARGE_PATTERN: usize = 1 << 16;

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
    let texts = parse_choice(exprs, pattern, options, alphabet, Choice::All)?;
    Ok(texts.expect("a pattern has all of itself"))
}

/// The same for one of our own patterns, which is short: the deadline of a request does not interrupt it.
///
/// # Panics
/// Where it is not well-formed.
pub fn own_pattern(
    exprs: &mut ExprSet,
    pattern: &str,
    options: &PatternOptions,
    alphabet: &mut dyn Alphabet,
) -> ExprId {
    unwatched(|| parse_pattern(exprs, pattern, options, alphabet)).expect("a pattern of our own is well-formed")
}

/// Of the texts that a pattern matches: those that take the alternative with this number, and perhaps some others.
/// Every other match exists without that alternative. A part that may be repeated from zero on is an alternative, too.
/// `None` if there is no such number.
///
/// # Errors
/// As [`parse_pattern`].
pub fn parse_taking(
    exprs: &mut ExprSet,
    pattern: &str,
    options: &PatternOptions,
    alphabet: &mut dyn Alphabet,
    alternative: usize,
) -> Result<Option<ExprId>, PatternError> {
    parse_choice(exprs, pattern, options, alphabet, Choice::Taking(alternative))
}

/// What a pattern matches without the alternatives for which `dropped` is `true`, by number.
///
/// # Errors
/// As [`parse_pattern`].
pub fn parse_without(
    exprs: &mut ExprSet,
    pattern: &str,
    options: &PatternOptions,
    alphabet: &mut dyn Alphabet,
    dropped: &[bool],
) -> Result<ExprId, PatternError> {
    let texts = parse_choice(exprs, pattern, options, alphabet, Choice::Without(dropped))?;
    Ok(texts.expect("a pattern has all but some alternatives"))
}

fn parse_choice(
    exprs: &mut ExprSet,
    pattern: &str,
    options: &PatternOptions,
    alphabet: &mut dyn Alphabet,
    choice: Choice<'_>,
) -> Result<Option<ExprId>, PatternError> {
    let rewritten = rewritten(pattern, options.dialect)?;
    let budget = Budget::default();
    let reading = Reading { choice, ..Reading::whole(&budget) };
    let found = bounded(exprs, pattern, |exprs| read(exprs, rewritten, pattern, options, alphabet, reading));
    give_back(pattern);
    Ok(found?.map(|mut found| found.groups.pop().map_or(ExprId::NOTHING, |(texts, _)| texts)))
}

/// The texts that a pattern matches within a longer text, from their beginning on. They come in groups, each with a
/// condition that what follows must match as a whole; [`ExprId::ANYTHING`] is no condition. A lazy repetition ends as
/// early as it can.
///
/// # Errors
/// As [`parse_pattern`], and for anchors and boundaries that depend on what follows.
pub fn parse_part(
    exprs: &mut ExprSet,
    pattern: &str,
    dialect: Dialect,
    alphabet: &mut dyn Alphabet,
) -> Result<Vec<(ExprId, ExprId)>, PatternError> {
    let options = PatternOptions { dialect, anchoring: Anchoring::Whole };
    let rewritten = rewritten(pattern, dialect)?;
    let budget = Budget::default();
    let reading = Reading { open: true, ..Reading::whole(&budget) };
    let found = bounded(exprs, pattern, |exprs| read(exprs, rewritten, pattern, &options, alphabet, reading));
    give_back(pattern);
    Ok(found?.expect("a pattern has all of itself").groups)
}

/// Reads into a set that gives up where this takes too long. A set without a bound gets one until the pattern is read.
fn bounded<T>(
    exprs: &mut ExprSet,
    pattern: &str,
    read: impl FnOnce(&mut ExprSet) -> Result<T, PatternError>,
) -> Result<T, PatternError> {
    let is_bound = exprs.is_bound();
    if !is_bound {
        exprs.bound(usize::MAX);
    }
    let found = read(exprs);
    let given_up = exprs.given_up();
    if !is_bound {
        exprs.unbound();
    }
    match (found, given_up) {
        // The caller who bound the set reports in its own words that there are too many.
        (Ok(found), Some(LimitExceeded::Expressions(_))) => Ok(found),
        (Err(error), Some(_)) if error.kind == PatternErrorKind::Limit => Err(error),
        // The result, or the error, may be about parts of the pattern only.
        (_, Some(limit)) => Err(too_long(pattern, limit)),
        (found, None) => found,
    }
}

/// The syntax tree of a long pattern takes 140 bytes for each byte of the pattern. They are released at once.
fn give_back(pattern: &str) {
    if pattern.len() > LARGE_PATTERN {
        after_freeing();
    }
}

/// A pattern in the spelling of `regex-syntax`, if it is not too long.
fn rewritten(pattern: &str, dialect: Dialect) -> Result<Rewritten, PatternError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(PatternError::too_long(pattern, MAX_PATTERN_BYTES));
    }
    let mut syntax = pattern.bytes().enumerate().filter(|(_, byte)| b"\\[({.^$*+?|".contains(byte));
    if let Some((offset, _)) = syntax.nth(MAX_SYNTAX) {
        let what = "more than 262144 characters of syntax; split the pattern";
        return Err(PatternError::about(PatternErrorKind::Limit, pattern, offset, offset + 1, what));
    }
    match dialect {
        Dialect::Standard => standard::rewrite(pattern, false),
        Dialect::Nested => standard::rewrite(pattern, true),
        Dialect::EcmaScript => ecma::rewrite(pattern),
    }
}
