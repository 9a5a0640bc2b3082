//! Parts that are redundant beside another part that begins with any number of a character: `C* abc C* "` is in `C* "`.
//!
//! After the pattern, the residual of a text that contains it is any text, or a text that contains it once more:
//! together, any text. Without this rule, beside other patterns or where such a text is excluded, a search would find
//! that out state by state, and an automaton would have several states for one.

use stencilm_support::LimitExceeded;

use crate::derivative::deriver::{Derivatives, Deriver};
use crate::derivative::search::Found;
use crate::expr::byte_set::ByteSet;
use crate::expr::expr_set::ExprSet;
use crate::expr::node::{Expr, ExprId};

/// If there are more parts, they are not compared with each other.
const MAX_PARTS: usize = 16;
/// The greatest number of parts of a concatenation that are examined.
const MAX_SPINE: usize = 64;
/// The greatest number of expressions in the search for whether something is a run of characters.
const MAX_SEARCH: usize = 64;

impl Deriver {
    /// The derivatives, each without redundant parts.
    pub(super) fn all_absorbed(&mut self, derivatives: Derivatives) -> Result<Derivatives, LimitExceeded> {
        // The search for runs is short, and must not start another one, so that nothing recurses.
        if self.is_searching_runs {
            return Ok(derivatives);
        }
        let mut changed: Option<Vec<(ByteSet, ExprId)>> = None;
        for (place, &(_, rest)) in derivatives.iter().enumerate() {
            let absorbed = self.absorbed(rest)?;
            if absorbed != rest {
                changed.get_or_insert_with(|| derivatives.to_vec())[place].1 = absorbed;
            }
        }
        let Some(mut changed) = changed else { return Ok(derivatives) };
        changed.retain(|&(_, rest)| rest != ExprId::NOTHING);
        Ok(changed.into())
    }

    /// The same language in a simpler form: alternatives without those included in another one, an intersection without
    /// parts that include another one, and nothing where one part excludes another one.
    fn absorbed(&mut self, id: ExprId) -> Result<ExprId, LimitExceeded> {
        let (parts, is_and) = match self.exprs.get(id) {
            Expr::Or(parts) => (parts, false),
            Expr::And(parts) => (parts, true),
            _ => return Ok(id),
        };
        if parts.len() > MAX_PARTS || parts.iter().all(|&part| open_parts(&self.exprs, part, is_and).0.is_empty()) {
            return Ok(id);
        }
        if let Some(&known) = self.absorbed.get(&id) {
            return Ok(known);
        }
        let parts = parts.to_vec();
        let absorbed = match self.without_absorbed(&parts, is_and)? {
            None => ExprId::NOTHING,
            Some(kept) if kept.len() == parts.len() => id,
            Some(kept) if is_and => self.exprs.and(&kept),
            Some(kept) => self.exprs.or(&kept),
        };
        self.absorbed.insert(id, absorbed);
        Ok(absorbed)
    }

    /// The parts that are not redundant; `None` where they contradict each other.
    fn without_absorbed(&mut self, parts: &[ExprId], is_and: bool) -> Result<Option<Vec<ExprId>>, LimitExceeded> {
        let mut kept = parts.to_vec();
        for &large in parts {
            let (open, excludes) = open_parts(&self.exprs, large, is_and);
            for &small in parts.iter().filter(|&&small| small != large) {
                // Of two equal parts one is kept.
                if !kept.contains(&large) || !kept.contains(&small) {
                    continue;
                }
                let (inner, is_excluded) = match *self.exprs.get(small) {
                    Expr::Not(inner) if is_and => (inner, true),
                    _ => (small, false),
                };
                if is_excluded && !excludes {
                    continue;
                }
                for &language in &open {
                    if !self.holds(language, inner)? {
                        continue;
                    }
                    if excludes && !is_excluded {
                        return Ok(None);
                    }
                    let says_nothing = if is_and && !excludes { large } else { small };
                    kept.retain(|&part| part != says_nothing);
                }
            }
        }
        Ok(Some(kept))
    }

    /// Whether a language is obviously included in `C* X`: each match is a run of `C` followed by a match of `C* X`.
    fn holds(&mut self, large: ExprId, small: ExprId) -> Result<bool, LimitExceeded> {
        let Expr::Or(parts) = self.exprs.get(small) else { return self.ends_with(small, large) };
        for &part in &*parts.clone() {
            if !self.ends_with(part, large)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn ends_with(&mut self, small: ExprId, large: ExprId) -> Result<bool, LimitExceeded> {
        let mut before = Vec::new();
        let mut rest = small;
        while rest != large {
            match *self.exprs.get(rest) {
                Expr::Concat { head, tail } if before.len() < MAX_SPINE => {
                    before.push(head);
                    rest = tail;
                }
                _ => return Ok(false),
            }
        }
        let Some(characters) = any_run(&self.exprs, large) else { return Ok(false) };
        for part in before {
            if part != characters && !self.is_run(part, characters)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether everything that an expression matches is in `C*`.
    fn is_run(&mut self, expr: ExprId, characters: ExprId) -> Result<bool, LimitExceeded> {
        let body = |expr| match *self.exprs.get(expr) {
            Expr::Repeat { body, .. } => body,
            _ => expr,
        };
        let (round, character) = (body(expr), body(characters));
        if let (Expr::Bytes(set), Some(single)) = (self.exprs.get(round), self.exprs.arena.single_bytes(character))
            && set.intersect(&single.complement()).is_empty()
        {
            return Ok(true);
        }
        if self.exprs.has_boolean(round) || self.exprs.has_language(round) {
            return Ok(false);
        }
        let outside = self.exprs.not(characters);
        let others = self.exprs.and(&[round, outside]);
        if let Some(&known) = self.live.get(&others) {
            return Ok(known.is_none());
        }
        // Expressions for which this took too long are also in the map: nothing is removed from them.
        if others == ExprId::NOTHING || self.absorbed.contains_key(&others) {
            return Ok(others == ExprId::NOTHING);
        }
        self.is_searching_runs = true;
        let found = self.search(others, MAX_SEARCH);
        self.is_searching_runs = false;
        let found = found?;
        if found.is_none() {
            self.absorbed.insert(others, others);
        }
        Ok(matches!(found, Some(Found::Dead)))
    }
}

/// The unbounded repetition with which an expression begins.
fn any_run(exprs: &ExprSet, expr: ExprId) -> Option<ExprId> {
    let first = match *exprs.get(expr) {
        Expr::Concat { head, .. } => head,
        _ => expr,
    };
    matches!(exprs.get(first), Expr::Repeat { min: 0, max: None, .. }).then_some(first)
}

/// The alternatives of a part, or of what it excludes, that begin with an unbounded repetition, and whether they are
/// excluded.
fn open_parts(exprs: &ExprSet, part: ExprId, is_and: bool) -> (Vec<ExprId>, bool) {
    let is_open = |part: &ExprId| any_run(exprs, *part).is_some();
    let (inner, excludes) = match *exprs.get(part) {
        Expr::Not(inner) if is_and => (inner, true),
        _ => (part, false),
    };
    match exprs.get(inner) {
        Expr::Or(parts) if excludes => (parts.iter().copied().filter(is_open).collect(), true),
        _ => (Some(inner).filter(is_open).into_iter().collect(), excludes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::{PatternOptions, Utf8, parse_pattern};

    fn parsed(deriver: &mut Deriver, pattern: &str) -> ExprId {
        parse_pattern(&mut deriver.exprs, pattern, &PatternOptions::default(), &mut Utf8).expect(pattern)
    }

    fn behind(deriver: &mut Deriver, expr: ExprId, text: &str) -> ExprId {
        text.bytes().fold(expr, |left, byte| deriver.after(left, byte).expect("small"))
    }

    #[test]
    fn after_a_pattern_any_text_is_left() {
        let mut deriver = Deriver::new(Limits::default());
        let [any, one, other] = [".*", ".*(ab|é).*", ".*c{2}.*"].map(|pattern| parsed(&mut deriver, pattern));
        assert_eq!(behind(&mut deriver, one, "xab"), any);
        let both = deriver.exprs.and(&[one, other]);
        assert_eq!(behind(&mut deriver, both, "é"), other);
        assert_eq!(behind(&mut deriver, both, "éccab"), any);
        let not_one = deriver.exprs.not(one);
        let without = deriver.exprs.and(&[other, not_one]);
        assert_eq!(behind(&mut deriver, without, "xab"), ExprId::NOTHING);
        let not_other = deriver.exprs.not(other);
        let neither = deriver.exprs.and(&[not_one, not_other]);
        // Texts that match neither.
        let no_text = deriver.exprs.not(any);
        assert_eq!(behind(&mut deriver, neither, "ccx"), no_text);
        let text = deriver.exprs.and(&[any, neither]);
        assert_eq!(behind(&mut deriver, text, "ccx"), ExprId::NOTHING);
    }

    #[test]
    fn of_parts_that_say_the_same_one_stays() {
        let mut deriver = Deriver::new(Limits::default());
        let [any, first, second, text] =
            ["[a-z]*0", "b[a-z]*0", "c[a-z]*0", "[a-z0-9]*"].map(|pattern| parsed(&mut deriver, pattern));
        // As alternatives that were combined without this rule.
        let mut without = |part: ExprId| {
            let either = deriver.exprs.intern(Expr::Or([any, part].into()));
            deriver.exprs.intern(Expr::Not(either))
        };
        let (one, other) = (without(first), without(second));
        let all = deriver.exprs.intern(Expr::And([one, other, text].into()));
        let absorbed = deriver.absorbed(all).unwrap();
        for expr in [all, absorbed] {
            assert!(deriver.matches(expr, b"ab1").unwrap() && !deriver.matches(expr, b"ab0").unwrap());
        }
    }

    #[test]
    fn what_is_no_run_stays() {
        let mut deriver = Deriver::new(Limits::default());
        let [letters, with_digit] = ["[a-z]*", "([a-z]*[0-9][a-z]*)?b"].map(|pattern| parsed(&mut deriver, pattern));
        let both = deriver.exprs.and(&[letters, with_digit]);
        assert_eq!(deriver.absorbed(both), Ok(both));
        let either = deriver.exprs.or(&[letters, with_digit]);
        assert!(deriver.matches(either, b"a1b").unwrap() && !deriver.matches(both, b"a1b").unwrap());
    }

    const PATTERNS: [&str; 10] = [
        "[ab]*",
        ".*a.*",
        ".*(ab|ba).*",
        "[ab]*b[ab]*",
        "[ab]*c[ab]*",
        ".*bb+.*",
        "a.*b",
        "(a|bc)*",
        "[ab]*(a[ab]*)?",
        "[^c]*cc[^c]*",
    ];

    proptest::proptest! {
        /// Three patterns, some of them excluded, together and as alternatives, match what they match one by one.
        #[test]
        fn nothing_is_left_out_that_says_something(
            chosen in proptest::collection::vec((0..PATTERNS.len(), proptest::bool::ANY), 3),
            is_and in [proptest::bool::ANY, proptest::bool::ANY],
            text in "[abc]{0,6}",
        ) {
            let mut deriver = Deriver::new(Limits::default());
            let parts: Vec<(ExprId, bool)> = chosen
                .iter()
                .map(|&(pattern, negated)| {
                    let mut alone = Deriver::new(Limits::default());
                    let expr = parsed(&mut alone, PATTERNS[pattern]);
                    let matches = alone.matches(expr, text.as_bytes()).unwrap();
                    let expr = parsed(&mut deriver, PATTERNS[pattern]);
                    let expr = if negated { deriver.exprs.not(expr) } else { expr };
                    (expr, matches != negated)
                })
                .collect();
            let join = |deriver: &mut Deriver, (one, a): (ExprId, bool), (other, b): (ExprId, bool), is_and: bool| {
                match is_and {
                    true => (deriver.exprs.and(&[one, other]), a && b),
                    false => (deriver.exprs.or(&[one, other]), a || b),
                }
            };
            let first = join(&mut deriver, parts[0], parts[1], is_and[0]);
            let (whole, expected) = join(&mut deriver, first, parts[2], is_and[1]);
            proptest::prop_assert_eq!(deriver.matches(whole, text.as_bytes()).unwrap(), expected);
            let absorbed = deriver.absorbed(whole).unwrap();
            proptest::prop_assert_eq!(deriver.matches(absorbed, text.as_bytes()).unwrap(), expected);
        }
    }
}
