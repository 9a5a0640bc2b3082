//! Reads a pattern in the syntax of `regex-syntax` as groups of texts: first its look-arounds, each as a separate
//! pattern, then the rest.

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::hir::Hir;
use regex_syntax::hir::translate::TranslatorBuilder;
use stencilm_support::{LimitExceeded, check_time_now, decided};

use super::around::{Around, Cut, cut};
use super::choices::Choice;
use super::error::{PatternError, PatternErrorKind};
use super::kinds::Edge;
use super::lazy::{self, Alternative};
use super::options::{Anchoring, Dialect, MAX_NESTING, PatternOptions};
use super::place::{Found, Place, Reading};
use super::rewritten::Rewritten;
use super::sequences::resolve;
use super::tree::Tree;
use super::utf8::Alphabet;
use super::{build, checks, edges};
use crate::expr::expr_set::ExprSet;
use crate::expr::node::ExprId;

/// The deepest nesting of look-around in look-around.
const MAX_AROUND_DEPTH: u32 = 8;

/// Reads a look-around that was cut out.
fn around_of(
    exprs: &mut ExprSet,
    cut: &Cut,
    pattern: &str,
    options: &PatternOptions,
    alphabet: &mut dyn Alphabet,
    reading: Reading<'_>,
) -> Result<Around, PatternError> {
    let refuse = |kind, what: &str| PatternError::about(kind, pattern, cut.offset, cut.offset + 3, what);
    if reading.depth >= MAX_AROUND_DEPTH {
        return Err(refuse(PatternErrorKind::Limit, "look-around nested more than 8 deep; flatten it"));
    }
    // Only an internal alphabet, used to estimate a bound, fails to distinguish characters: users never see this error.
    if !alphabet.distinguishes() {
        return Err(refuse(PatternErrorKind::Unsupported, "look-around, where characters are not told apart"));
    }
    let whole = PatternOptions { anchoring: Anchoring::Whole, ..*options };
    let mut read_between = |edge: Edge| -> Result<(ExprId, Found), PatternError> {
        let (before, after) = if cut.ahead { (edge, Edge::Text) } else { (Edge::Text, edge) };
        let (depth, ahead, choice) = (reading.depth + 1, Some(cut.ahead), Choice::All);
        let inner = Reading { open: false, depth, ahead, before, after, choice, ..reading };
        // If the text continues, a condition that is met must vanish: any bytes may follow, not only text.
        let open = Reading { open: true, ..inner };
        let found = if reading.open && cut.ahead {
            let part = decided(|| read(exprs, cut.whole(pattern, false), pattern, &whole, alphabet, open));
            part.map_err(|limit| too_long(pattern, limit))?.flatten()
        } else {
            None
        };
        let (found, alternatives) = match found {
            Some(found) => {
                let alternatives: Vec<ExprId> =
                    found.groups.iter().map(|&(texts, rest)| exprs.concat(texts, rest)).collect();
                (found, alternatives)
            }
            None => {
                let found = read(exprs, cut.whole(pattern, true), pattern, &whole, alphabet, inner)?;
                let found = found.expect("a look-around is read as a whole");
                let alternatives = found.groups.iter().map(|&(texts, _)| texts).collect();
                (found, alternatives)
            }
        };
        Ok((exprs.or(&alternatives), found))
    };
    let (expr, found) = read_between(Edge::Text)?;
    let mut by_edge = [expr; 4];
    if if cut.ahead { found.before } else { found.after } {
        for edge in Edge::ALL {
            by_edge[edge as usize] = read_between(edge)?.0;
        }
    }
    let Cut { ahead, negative, offset, .. } = *cut;
    Ok(Around { ahead, negative, by_edge, beyond: found.beyond, offset })
}

/// Reads a pattern as groups of texts, each with the condition on what follows. `None` if the pattern lacks the
/// alternative that was asked for.
pub(super) fn read(
    exprs: &mut ExprSet,
    rewritten: Rewritten,
    pattern: &str,
    options: &PatternOptions,
    alphabet: &mut dyn Alphabet,
    reading: Reading<'_>,
) -> Result<Option<Found>, PatternError> {
    let (rewritten, cuts) = cut(rewritten, pattern)?;
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
    let Some(hir) = reading.choice.of(hir) else { return Ok(None) };
    in_time(pattern)?;
    let place = Place { pattern, options, arounds: &arounds, reading };
    if !(reading.open && reading.depth == 0) {
        return groups_of(exprs, &hir, alphabet, &place).map(Some);
    }
    let mut whole = Found::default();
    for Alternative { head, tail, is_lazy } in lazy::alternatives(&hir) {
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
    Ok(Some(whole))
}

/// Checks the deadline between two stages of reading a pattern.
fn in_time(pattern: &str) -> Result<(), PatternError> {
    check_time_now().map_err(|limit| too_long(pattern, limit))
}

/// The error for a pattern that exceeds a limit.
pub(super) fn too_long(pattern: &str, limit: LimitExceeded) -> PatternError {
    PatternError::about(PatternErrorKind::Limit, pattern, 0, pattern.len(), limit.while_reading())
}

/// The texts that a pattern, or a part of it, matches.
fn groups_of(
    exprs: &mut ExprSet,
    hir: &Hir,
    alphabet: &mut dyn Alphabet,
    place: &Place<'_>,
) -> Result<Found, PatternError> {
    let &Place { pattern, options, arounds, reading } = place;
    let mut tree = Tree::new(exprs, alphabet);
    tree.arounds = arounds.iter().map(|around| around.asks().then_some(around.ahead)).collect();
    let root = build::add(&mut tree, hir).map_err(|limit| too_long(pattern, limit))?;
    let root = match options.anchoring {
        Anchoring::Whole => root,
        Anchoring::Search => tree.search(root),
    };
    in_time(pattern)?;
    let facts = tree.facts(root);
    let groups = if facts.arounds {
        resolve(&mut tree, root, place)?
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
