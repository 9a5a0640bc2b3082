//! How many string values a class of keys has, in all and after every beginning: whether keys can run out.
//!
//! Values are counted as texts that spell them in one way, the canonical one.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};
use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, own_pattern};
use stencilm_regex::{ByteSet, Cardinalities, Cardinality, Deriver, Expr, ExprId, ExprSet, Steps};
use stencilm_support::LimitExceeded;

use crate::ir::grammar::KeySpace;
use crate::json::strings::spelled;

/// The greatest number of residuals that are examined.
const MAX_RESIDUALS: usize = 50_000;

/// The greatest number of bytes, and of states after each byte, that are followed to see that there are many texts.
const MAX_PATH: usize = 256;

/// This many values are more than a text can hold.
pub(crate) const BEYOND_ANY_TEXT: u64 = u32::MAX as u64;

/// JSON strings in which every character is spelled in one way: plain where it can be.
pub(crate) const CANONICAL: &str = r#""(?:[^"\\\x00-\x1f]|\\["\\bfnrt]|\\u00(?:0[0-7bef]|1[0-9a-f]))*""#;

const CANONICAL_WORD: &str = "null|true|false";

/// JSON numbers without an exponent, one spelling for each value.
const CANONICAL_NUMBER: &str = r"0|-?(?:[1-9][0-9]*(?:\.[0-9]*[1-9])?|0\.[0-9]*[1-9])";

/// JSON strings in any spelling. A key that isn't one has a single spelling.
const QUOTED: &str = r#""[\s\S]*""#;

/// How many values the keys of an expression have, which must match something; `None` if that takes too long to decide.
pub(crate) fn key_space(deriver: &mut Deriver, key: ExprId) -> Result<Option<KeySpace>, LimitExceeded> {
    if is_infinite(deriver, key)? {
        return Ok(Some(KeySpace::Infinite));
    }
    if at_least(&deriver.exprs, key) >= BEYOND_ANY_TEXT {
        return Ok(Some(KeySpace::LocallyFinite));
    }
    let canonical = canonical(deriver, key)?;
    if has_many_beginnings(deriver, canonical)? {
        return Ok(Some(KeySpace::LocallyFinite));
    }
    let steps = |place| Steps::of_texts(deriver, place).map(Some);
    Ok(match Cardinalities::default().of(canonical, MAX_RESIDUALS, steps)? {
        Cardinality::Finite(count) if count < BEYOND_ANY_TEXT => Some(KeySpace::Finite(count as u32)),
        Cardinality::Finite(_) | Cardinality::Infinite => Some(KeySpace::LocallyFinite),
        Cardinality::Unknown => None,
    })
}

/// How many values the JSON scalars of an expression have.
pub(crate) fn scalar_values(deriver: &mut Deriver, scalars: ExprId) -> Result<Cardinality, LimitExceeded> {
    let exprs = &mut deriver.exprs;
    let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
    let canonical =
        [CANONICAL, CANONICAL_WORD, CANONICAL_NUMBER].map(|pattern| own_pattern(exprs, pattern, &options, &mut Utf8));
    let canonical = exprs.or(&canonical);
    let scalars = exprs.without_exponents(scalars);
    let canonical = exprs.and(&[scalars, canonical]);
    if !deriver.is_live(canonical)? {
        return Ok(Cardinality::Finite(0));
    }
    let (mut rest, mut seen) = (canonical, FxHashSet::default());
    while let Some(after) = widest_step(deriver, rest)?.filter(|_| seen.len() < MAX_PATH) {
        if !seen.insert(rest) {
            return Ok(Cardinality::Infinite);
        }
        rest = after;
    }
    if has_many_beginnings(deriver, canonical)? {
        return Ok(Cardinality::Finite(BEYOND_ANY_TEXT));
    }
    let steps = |place| Steps::of_texts(deriver, place).map(Some);
    Cardinalities::default().of(canonical, MAX_RESIDUALS, steps)
}

/// The keys of an expression with finitely many, each in its canonical spelling.
pub(crate) fn canonical_keys(deriver: &mut Deriver, key: ExprId) -> Result<Vec<Vec<u8>>, LimitExceeded> {
    let canonical = canonical(deriver, key)?;
    let mut found = Vec::new();
    let mut work = vec![(canonical, Vec::new())];
    while let Some((rest, text)) = work.pop() {
        if deriver.exprs.is_nullable(rest) {
            found.push(text.clone());
        }
        for &(bytes, next) in deriver.derivatives(rest)?.iter() {
            if deriver.is_live(next)? {
                work.extend(bytes.iter().map(|byte| (next, [&text[..], &[byte]].concat())));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Whether a string value is a key of an expression.
pub(crate) fn is_key(deriver: &mut Deriver, key: ExprId, name: &str) -> Result<bool, LimitExceeded> {
    // A key that is not a JSON string is its own value.
    Ok(deriver.matches(key, format!("\"{}\"", spelled(name)).as_bytes())? || deriver.matches(key, name.as_bytes())?)
}

/// The keys of an expression in their canonical spelling.
fn canonical(deriver: &mut Deriver, key: ExprId) -> Result<ExprId, LimitExceeded> {
    let are_quoted = are_quoted_ascii(&deriver.exprs, key)?;
    let exprs = &mut deriver.exprs;
    let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
    let [canonical, quoted] = [CANONICAL, QUOTED].map(|pattern| own_pattern(exprs, pattern, &options, &mut Utf8));
    // That a key in another spelling doesn't equal one of the others shows only at its end, so all of it would be
    // searched in vain.
    let all = match are_quoted {
        true => canonical,
        false => {
            let others = exprs.not(quoted);
            exprs.or(&[canonical, others])
        }
    };
    Ok(exprs.and(&[key, all]))
}

/// Whether all texts of an expression obviously are in quotes with only ASCII between them.
fn are_quoted_ascii(exprs: &ExprSet, key: ExprId) -> Result<bool, LimitExceeded> {
    let quote = ByteSet::of(b'"');
    let is_quote = |bytes: Option<ByteSet>| bytes.is_some_and(|bytes| bytes.union(&quote) == quote);
    if exprs.shortest_at_least(key) < 2
        || !is_quote(exprs.may_begin_with(key, MAX_RESIDUALS))
        || !is_quote(exprs.may_end_with(key, MAX_RESIDUALS))
    {
        return Ok(false);
    }
    let ascii = ByteSet::range(0, 0x7f);
    exprs.fold(key, &mut FxHashMap::default(), |expr, known: &FxHashMap<ExprId, bool>| match expr {
        Expr::Nothing | Expr::Empty | Expr::Number(_) => true,
        Expr::Bytes(set) => set.union(&ascii) == ascii,
        Expr::Text(text) => text.is_ascii(),
        Expr::Concat { head, tail } => known[head] && known[tail],
        Expr::Or(parts) => parts.iter().all(|part| known[part]),
        Expr::And(parts) => parts.iter().any(|part| known[part]),
        Expr::Repeat { body, .. } => known[body],
        Expr::Not(_) | Expr::Language(_) => false,
    })
}

/// Whether infinitely many texts continue every residual of an expression, except at the end of a text; also `false` if
/// that takes too long to decide.
fn is_infinite(deriver: &mut Deriver, root: ExprId) -> Result<bool, LimitExceeded> {
    if ends_with_few(deriver, root)? {
        return Ok(false);
    }
    let mut counts = Cardinalities::default();
    let (mut work, mut seen) = (vec![root], FxHashSet::from_iter([root]));
    while let Some(place) = work.pop() {
        let count = counts.of(place, MAX_RESIDUALS, |place| Steps::of_texts(deriver, place).map(Some))?;
        if count != Cardinality::Infinite && place != ExprId::EMPTY {
            return Ok(false);
        }
        for &(_, next) in deriver.derivatives(place)?.iter() {
            if !seen.contains(&next) && deriver.is_live(next)? {
                if seen.len() >= MAX_RESIDUALS {
                    return Ok(false);
                }
                seen.insert(next);
                work.push(next);
            }
        }
    }
    Ok(true)
}

/// Whether few texts continue the last state of a short path to the end. An example is a date and time: there are very
/// many, but only one text continues after the `Z`. Also `false` if that isn't found.
fn ends_with_few(deriver: &mut Deriver, root: ExprId) -> Result<bool, LimitExceeded> {
    let mut path = vec![root];
    while let Some(&place) = path.last().filter(|&&place| !deriver.exprs.is_nullable(place))
        && path.len() < MAX_PATH
    {
        let mut after: Vec<ExprId> = deriver.derivatives(place)?.iter().map(|&(_, next)| next).collect();
        after.sort_by_key(|&next| deriver.exprs.shortest_at_least(next));
        let mut live = None;
        for next in after {
            if deriver.is_live(next)? {
                live = Some(next);
                break;
            }
        }
        let Some(next) = live else { break };
        path.push(next);
    }
    let Some(&last) = path.iter().rfind(|&&place| place != ExprId::EMPTY) else { return Ok(false) };
    let count = Cardinalities::default().of(last, MAX_PATH, |place| Steps::of_texts(deriver, place).map(Some))?;
    Ok(matches!(count, Cardinality::Finite(_)))
}

/// Whether an expression certainly has more texts than a text can hold: first along one path, then along several.
fn has_many_beginnings(deriver: &mut Deriver, root: ExprId) -> Result<bool, LimitExceeded> {
    for width in [1, MAX_PATH] {
        if has_many_along_paths(deriver, root, width)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an expression has that many beginnings of one length. Different beginnings are different texts, and every
/// state that is kept can be completed. For each length, at most `width` states are kept: those that most beginnings
/// lead to.
fn has_many_along_paths(deriver: &mut Deriver, root: ExprId, width: usize) -> Result<bool, LimitExceeded> {
    let mut places = vec![(root, 1u64)];
    for _ in 0..MAX_PATH {
        let mut after: FxHashMap<ExprId, u64> = FxHashMap::default();
        for (place, count) in places.drain(..) {
            for &(bytes, next) in deriver.derivatives(place)?.iter() {
                let beginnings = after.entry(next).or_default();
                *beginnings = beginnings.saturating_add(count.saturating_mul(bytes.len() as u64));
            }
        }
        let mut after: Vec<(ExprId, u64)> = after.into_iter().collect();
        after.sort_unstable_by_key(|&(place, count)| (Reverse(count), place));
        let mut sum = 0u64;
        for (place, count) in after {
            // Whether a state is live may take long to decide, so only states that will be kept are tested.
            if places.len() < width && deriver.is_live(place)? {
                places.push((place, count));
                sum = sum.saturating_add(count);
            }
        }
        if sum >= BEYOND_ANY_TEXT {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The state that most bytes lead to.
fn widest_step(deriver: &mut Deriver, place: ExprId) -> Result<Option<ExprId>, LimitExceeded> {
    let mut edges = deriver.derivatives(place)?.to_vec();
    edges.sort_by_key(|(bytes, _)| Reverse(bytes.len()));
    for (_, after) in edges {
        if deriver.is_live(after)? {
            return Ok(Some(after));
        }
    }
    Ok(None)
}

/// A lower bound of the number of values of an expression, computed from its parts: for each part, the number of its
/// texts of one length in plain characters.
fn at_least(exprs: &ExprSet, key: ExprId) -> u64 {
    let mut count = 1u64;
    let mut rest = key;
    loop {
        let (head, tail) = match *exprs.get(rest) {
            Expr::Concat { head, tail } => (head, Some(tail)),
            _ => (rest, None),
        };
        let factor = match *exprs.get(head) {
            Expr::Repeat { body, max, .. } => match (plain_characters(exprs, body), max) {
                (0 | 1, _) => 1,
                (choices, Some(rounds)) => choices.saturating_pow(rounds),
                (_, None) => u64::MAX,
            },
            _ => plain_characters(exprs, head).max(1),
        };
        count = count.saturating_mul(factor);
        match tail {
            Some(tail) => rest = tail,
            None => return count,
        }
    }
}

/// A lower bound of the one-byte characters that an expression matches and a JSON string may hold without escapes.
fn plain_characters(exprs: &ExprSet, expr: ExprId) -> u64 {
    let plain = |expr: ExprId| match exprs.get(expr) {
        Expr::Bytes(set) => {
            let plain: ByteSet = (0x20..0x7f).filter(|byte| !b"\"\\".contains(byte)).collect();
            set.intersect(&plain).len() as u64
        }
        _ => 0,
    };
    match exprs.get(expr) {
        Expr::Or(parts) => parts.iter().map(|&part| plain(part)).max().unwrap_or(0),
        _ => plain(expr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencilm_regex::{Limits, parse_pattern};

    fn parsed(pattern: &str) -> (Deriver, ExprId) {
        let mut deriver = Deriver::new(Limits::default());
        let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
        let key = parse_pattern(&mut deriver.exprs, pattern, &options, &mut Utf8).unwrap();
        (deriver, key)
    }

    #[test]
    fn keys_run_out_or_not() {
        use KeySpace::{Finite, Infinite, LocallyFinite};
        for (pattern, expected) in [
            ("\"(a|bc?)\"", Finite(3)),
            ("\"[a-c]{2}\"", Finite(9)),
            ("\"[a-z]{3,4}\"", Finite(26 * 26 * 26 * 27)),
            ("\"a*\"", Infinite),
            ("\"[a-z]+\"", Infinite),
            ("\"a*b\"", LocallyFinite),
            ("\"(ac|b.*)\"", LocallyFinite),
            ("\"[a-z]{9}\"", LocallyFinite),
            ("\"[^\"]{1,256}\"", LocallyFinite),
            ("\"[a-z]*[0-9]{2}\"", LocallyFinite),
            // Values are counted, not their spellings.
            (r#""(a|\\u006[12])""#, Finite(1)),
            (r#""(\\n|\\u000[aA]|\\t)""#, Finite(2)),
            // What is not entirely in quotes, or is not UTF-8, is its own value.
            (r#""(a|\\u0061)"|"(\\u0062|b)"x|"b"#, Finite(4)),
            ("\"(é|\\\\u00[eE]9)\"", Finite(1)),
            ("[a-b]{3}", Finite(8)),
            ("\"[a-z]{3}\"&~(\"a.*)", Finite(25 * 26 * 26)),
        ] {
            let (part, without) = pattern.split_once("&~").unwrap_or((pattern, "[]"));
            let (mut deriver, key) = parsed(part);
            let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
            let without = without.trim_start_matches('(').trim_end_matches(')');
            let without = parse_pattern(&mut deriver.exprs, without, &options, &mut Utf8).unwrap();
            let others = deriver.exprs.not(without);
            let key = deriver.exprs.and(&[key, others]);
            assert_eq!(key_space(&mut deriver, key).unwrap(), Some(expected), "{pattern}");
        }
    }

    #[test]
    fn scalars_are_counted_by_value() {
        use Cardinality::{Finite, Infinite};
        for (pattern, expected) in [
            ("[1-3]?[0-9]", Finite(40)),
            (r"-?[01](\.0*)?|1\.50*", Finite(4)),
            (r#"true|null|"a"|"\\u0061"|"b""#, Finite(4)),
            ("-?[0-9]+", Infinite),
            (r#""a*""#, Infinite),
            ("xyz", Finite(0)),
        ] {
            let (mut deriver, scalars) = parsed(pattern);
            assert_eq!(scalar_values(&mut deriver, scalars).unwrap(), expected, "{pattern}");
        }
        let (mut deriver, scalars) = parsed("\"[a-z]{9}\"");
        assert!(matches!(scalar_values(&mut deriver, scalars).unwrap(), Finite(count) if count >= BEYOND_ANY_TEXT));
    }

    #[test]
    fn many_are_seen_by_their_beginnings() {
        let many = |pattern| {
            let (mut deriver, key) = parsed(pattern);
            has_many_beginnings(&mut deriver, key).unwrap()
        };
        assert!(many("\"[a-z]{9}\"") && many("\"(http|ftp)://[a-z]+(/[a-z0-9]*)?\"") && many("\"([a-z]|b+c)*x\""));
        // Most bytes lead to an early end, and few continue.
        assert!(many("\"([0-9]{2}){2}([a-z]|:([0-9]{4}){2}z)\""));
        // Nothing is found where there is only one continuation, or where the paths end early.
        assert!(!many("\"a*b\"") && !many("\"[a-z]{5}\"") && !many("\"(abc|[0-9])\""));
    }

    #[test]
    fn few_keys_are_counted() {
        let (mut deriver, key) = parsed(r#""(bc?|\\n|\\u000[aA]|é)""#);
        let keys: Vec<String> =
            canonical_keys(&mut deriver, key).unwrap().into_iter().map(|key| String::from_utf8(key).unwrap()).collect();
        assert_eq!(keys, [r#""\n""#, "\"b\"", "\"bc\"", "\"é\""]);
    }
}
