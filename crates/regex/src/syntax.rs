//! Pattern text to expressions: a pattern of the user becomes one [`ExprId`] that matches exactly the same texts.
//!
//! `regex-syntax` does the parsing. Every stage is a file: `ecma` (the spelling of ECMA-262 → that of
//! `regex-syntax`) → the crate's AST → `checks` (our `\d`, `\s`, `\w`; refusals at their place) → the crate's HIR →
//! `build` and `tree` (a flat tree that knows which parts look at their neighbours) → `edges` (anchors and word
//! boundaries resolved) → expression. The tree has no offsets any more: from there on, only cost is refused.

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::hir::Hir;
use regex_syntax::hir::translate::TranslatorBuilder;

use crate::expr::expr_set::{ExprId, ExprSet};
use crate::limits::LimitExceeded;
use crate::watch::check_now;
use kinds::Edge;
use steps::Budget;

mod around;
mod build;
mod checks;
mod ecma;
mod edges;
mod error;
mod kinds;
mod lazy;
mod loops;
mod rewritten;
mod rounds;
mod steps;
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

/// Deepest nesting of look-around in look-around.
const MAX_AROUND_DEPTH: u32 = 8;

/// Which spelling a pattern is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Dialect {
    /// The syntax of the Rust crate `regex`, close to Python's `re`; an opening bracket within a class is a character.
    #[default]
    Standard,
    /// The same, where an opening bracket within a class begins a class within it, as in that crate.
    Nested,
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
    let rewritten = rewritten(pattern, options.dialect)?;
    let budget = Budget::default();
    let reading = Reading::whole(&budget);
    let Found { mut groups, .. } = read(exprs, rewritten, pattern, options, alphabet, reading)?;
    Ok(groups.pop().map_or(ExprId::NOTHING, |(texts, _)| texts))
}

/// The texts that a pattern matches within a longer text, from where it begins on: in groups, each with the condition that
/// what follows must match as a whole, [`ExprId::ANYTHING`] where there is none. A lazy repetition ends as early as it can.
///
/// # Errors
/// As [`parse_pattern`], and for anchors and boundaries that ask what follows.
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
    Ok(read(exprs, rewritten, pattern, &options, alphabet, reading)?.groups)
}

/// A pattern in the spelling of `regex-syntax`, if it is not too long.
fn rewritten(pattern: &str, dialect: Dialect) -> Result<rewritten::Rewritten, PatternError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(PatternError::too_long(pattern, MAX_PATTERN_BYTES));
    }
    let mut syntax = pattern.bytes().enumerate().filter(|(_, byte)| b"\\[({.^$*+?|".contains(byte));
    if let Some((offset, _)) = syntax.nth(MAX_SYNTAX) {
        let what = "more than 262144 characters of syntax; split the pattern";
        return Err(PatternError::about(PatternErrorKind::Limit, pattern, offset, offset + 1, what));
    }
    match dialect {
        Dialect::Standard => Ok(rewritten::Rewritten::standard(pattern, false)),
        Dialect::Nested => Ok(rewritten::Rewritten::standard(pattern, true)),
        Dialect::EcmaScript => ecma::rewrite(pattern),
    }
}

/// How a pattern is read: where it stands.
#[derive(Clone, Copy)]
struct Reading<'b> {
    /// What its look-around may still cost.
    budget: &'b Budget,
    /// Whether its texts go on behind it.
    open: bool,
    /// How many look-arounds it stands in.
    depth: u32,
    /// Whether the innermost of these is a look-ahead.
    ahead: Option<bool>,
    /// What stands before its texts and after them.
    before: Edge,
    after: Edge,
}

impl Reading<'_> {
    /// A pattern that is all of a text.
    fn whole(budget: &Budget) -> Reading<'_> {
        Reading { budget, open: false, depth: 0, ahead: None, before: Edge::default(), after: Edge::default() }
    }
}

/// What a pattern matches, as it was read.
#[derive(Default)]
struct Found {
    /// Its texts in groups, each with the condition on what follows.
    groups: Vec<(ExprId, ExprId)>,
    /// Whether they depend on the character before them or after them.
    before: bool,
    after: bool,
    /// Whether a look-around inside may look beyond the one that this pattern stands in.
    beyond: bool,
}

/// Reads a look-around that was cut out.
fn around_of(
    exprs: &mut ExprSet,
    cut: &around::Cut,
    pattern: &str,
    options: &PatternOptions,
    alphabet: &mut dyn Alphabet,
    reading: Reading<'_>,
) -> Result<around::Around, PatternError> {
    let refuse = |kind, what: &str| PatternError::about(kind, pattern, cut.offset, cut.offset + 3, what);
    if reading.depth >= MAX_AROUND_DEPTH {
        return Err(refuse(PatternErrorKind::Limit, "look-around nested more than 8 deep; flatten it"));
    }
    // An alphabet of ours, and whoever uses it asks for a bound only: nobody sees this error.
    if !alphabet.tells_apart() {
        return Err(refuse(PatternErrorKind::Unsupported, "look-around, where characters are not told apart"));
    }
    let whole = PatternOptions { anchoring: Anchoring::Whole, ..*options };
    let mut read_between = |edge: Edge| -> Result<(ExprId, Found), PatternError> {
        let (before, after) = if cut.ahead { (edge, Edge::Text) } else { (Edge::Text, edge) };
        let inner = Reading { open: false, depth: reading.depth + 1, ahead: Some(cut.ahead), before, after, ..reading };
        // Where the text goes on, a condition that is met is none any more: any bytes may follow, not only any text.
        let open = Reading { open: true, ..inner };
        let found = if reading.open && cut.ahead {
            read(exprs, cut.whole(pattern, false), pattern, &whole, alphabet, open).ok()
        } else {
            None
        };
        let (found, ways) = match found {
            Some(found) => {
                let ways: Vec<ExprId> = found.groups.iter().map(|&(texts, rest)| exprs.concat(texts, rest)).collect();
                (found, ways)
            }
            None => {
                let found = read(exprs, cut.whole(pattern, true), pattern, &whole, alphabet, inner)?;
                let ways = found.groups.iter().map(|&(texts, _)| texts).collect();
                (found, ways)
            }
        };
        Ok((exprs.or(&ways), found))
    };
    let (expr, found) = read_between(Edge::Text)?;
    let mut by_edge = [expr; 4];
    if if cut.ahead { found.before } else { found.after } {
        for edge in Edge::ALL {
            by_edge[edge as usize] = read_between(edge)?.0;
        }
    }
    let around::Cut { ahead, negative, offset, .. } = *cut;
    Ok(around::Around { ahead, negative, by_edge, beyond: found.beyond, offset })
}

/// Reads a pattern in groups of texts, each with the condition on what follows.
fn read(
    exprs: &mut ExprSet,
    rewritten: rewritten::Rewritten,
    pattern: &str,
    options: &PatternOptions,
    alphabet: &mut dyn Alphabet,
    reading: Reading<'_>,
) -> Result<Found, PatternError> {
    let (rewritten, cuts) = around::cut(rewritten, pattern)?;
    let mut arounds = Vec::with_capacity(cuts.len());
    for cut in &cuts {
        arounds.push(around_of(exprs, cut, pattern, options, alphabet, reading)?);
    }
    let rewritten = &rewritten;
    in_time(pattern)?;
    let mut ast = ParserBuilder::new()
        .nest_limit(MAX_NESTING)
        .empty_min_range(options.dialect != Dialect::EcmaScript)
        .build()
        .parse(&rewritten.text)
        .map_err(|error| PatternError::from_ast(&error, pattern, rewritten))?;
    in_time(pattern)?;
    checks::check(&mut ast, pattern, rewritten, options.dialect)?;
    let hir = TranslatorBuilder::new()
        .build()
        .translate(&rewritten.text, &ast)
        .map_err(|error| PatternError::from_hir(&error, pattern, rewritten))?;
    drop(ast);
    in_time(pattern)?;
    let place = Place { pattern, options, arounds: &arounds, reading };
    if !(reading.open && reading.depth == 0) {
        return groups_of(exprs, &hir, alphabet, &place);
    }
    let mut whole = Found::default();
    for lazy::Alternative { head, tail, is_lazy } in lazy::alternatives(&hir) {
        let mut found = groups_of(exprs, &head, alphabet, &place)?.groups;
        if is_lazy {
            lazy::shortest(exprs, &mut found);
        }
        if let Some(tail) = tail {
            let tails = groups_of(exprs, &tail, alphabet, &place)?.groups;
            found = lazy::joined(exprs, &found, &tails).map_err(|limit| {
                let what = format!("this pattern is too costly: {limit}");
                PatternError::about(PatternErrorKind::Limit, pattern, 0, pattern.len(), what)
            })?;
        }
        whole.groups.extend(found);
    }
    Ok(whole)
}

/// Between two steps of reading a pattern: ends what takes too long.
fn in_time(pattern: &str) -> Result<(), PatternError> {
    check_now().map_err(|limit| too_long(pattern, limit))
}

fn too_long(pattern: &str, limit: LimitExceeded) -> PatternError {
    PatternError::about(PatternErrorKind::Limit, pattern, 0, pattern.len(), limit.while_reading())
}

/// A part of a pattern, and where it stands.
struct Place<'p> {
    pattern: &'p str,
    options: &'p PatternOptions,
    arounds: &'p [around::Around],
    reading: Reading<'p>,
}

/// What a pattern, or a part of it, matches.
fn groups_of(
    exprs: &mut ExprSet,
    hir: &Hir,
    alphabet: &mut dyn Alphabet,
    place: &Place<'_>,
) -> Result<Found, PatternError> {
    let &Place { pattern, options, arounds, reading } = place;
    let mut tree = tree::Tree::new(exprs, alphabet);
    tree.arounds = arounds.iter().map(|around| around.asks().then_some(around.ahead)).collect();
    let root = build::add(&mut tree, hir).map_err(|limit| too_long(pattern, limit))?;
    let root = match options.anchoring {
        Anchoring::Whole => root,
        Anchoring::Search => tree.search(root),
    };
    in_time(pattern)?;
    let facts = tree.facts(root);
    let groups = if facts.arounds {
        around::resolve(&mut tree, root, place)?
    } else if reading.open && facts.after {
        let what = "an anchor or a boundary at its end asks what follows, which is another part of the grammar";
        return Err(PatternError::about(PatternErrorKind::Unsupported, pattern, 0, pattern.len(), what));
    } else {
        let texts = edges::resolve(&mut tree, root, options.dialect, reading.before, reading.after)?;
        vec![(texts, ExprId::ANYTHING)]
    };
    let beyond = reading.ahead.is_some_and(|ahead| arounds.iter().any(|around| around.ahead != ahead || around.beyond));
    Ok(Found { groups, before: facts.before, after: facts.after, beyond })
}
