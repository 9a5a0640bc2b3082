//! The alternatives of a pattern, one by one: the texts that take one, and the pattern without some.
//!
//! They are numbered in the order in which they stand, those within another one after it. What is optional, or may be
//! repeated from zero on, is an alternative to nothing. Those within look-arounds do not count.

use regex_syntax::hir::{Hir, HirKind, Repetition};

use super::around;

/// What is read of a pattern.
#[derive(Clone, Copy)]
pub(super) enum Choice<'a> {
    All,
    /// The texts that take the alternative of a number, and perhaps some more.
    Taking(usize),
    /// What takes none of these alternatives.
    Without(&'a [bool]),
}

impl Choice<'_> {
    /// This of a pattern; `None` where it has no such alternative.
    pub fn of(self, hir: Hir) -> Option<Hir> {
        match self {
            Choice::All => Some(hir),
            Choice::Taking(mut number) => taking(&hir, &mut number),
            Choice::Without(dropped) => Some(without(&hir, dropped, &mut 0)),
        }
    }
}

/// What a look-around was cut out for is no group.
fn is_around(name: Option<&str>) -> bool {
    name.is_some_and(|name| around::number(name).is_some())
}

/// Whether a repetition is an alternative to nothing. Of a single character that is plain to see where it comes.
fn is_optional(repetition: &Repetition) -> bool {
    repetition.min == 0 && !matches!(repetition.sub.kind(), HirKind::Class(_) | HirKind::Literal(_))
}

/// The texts that take an alternative, of which so many others stand before it.
fn taking(hir: &Hir, before: &mut usize) -> Option<Hir> {
    match hir.kind() {
        HirKind::Alternation(parts) => parts.iter().find_map(|part| taking_all(part, before)),
        HirKind::Concat(parts) => parts.iter().enumerate().find_map(|(index, part)| {
            let taken = taking(part, before)?;
            let mut parts = parts.clone();
            parts[index] = taken;
            Some(Hir::concat(parts))
        }),
        HirKind::Capture(group) if !is_around(group.name.as_deref()) => taking(&group.sub, before),
        HirKind::Repetition(repetition) => {
            let optional = is_optional(repetition);
            let taken = if optional { taking_all(&repetition.sub, before) } else { taking(&repetition.sub, before) };
            let others = Repetition { min: 0, max: None, ..repetition.clone() };
            let others = if repetition.max == Some(1) { Hir::empty() } else { Hir::repetition(others) };
            Some(Hir::concat(vec![others.clone(), taken?, others]))
        }
        _ => None,
    }
}

/// The same, where this is an alternative itself.
fn taking_all(hir: &Hir, before: &mut usize) -> Option<Hir> {
    if *before == 0 {
        return Some(hir.clone());
    }
    *before -= 1;
    taking(hir, before)
}

/// A pattern without some alternatives; `next` is the number of the next one.
fn without(hir: &Hir, dropped: &[bool], next: &mut usize) -> Hir {
    match hir.kind() {
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.iter().filter_map(|part| unless_dropped(part, dropped, next)).collect())
        }
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(|part| without(part, dropped, next)).collect()),
        HirKind::Capture(group) if !is_around(group.name.as_deref()) => without(&group.sub, dropped, next),
        HirKind::Repetition(repetition) => {
            let sub = match is_optional(repetition) {
                true => unless_dropped(&repetition.sub, dropped, next),
                false => Some(without(&repetition.sub, dropped, next)),
            };
            let repeated = |sub| Hir::repetition(Repetition { sub: Box::new(sub), ..repetition.clone() });
            sub.map_or_else(Hir::empty, repeated)
        }
        _ => hir.clone(),
    }
}

fn unless_dropped(hir: &Hir, dropped: &[bool], next: &mut usize) -> Option<Hir> {
    let number = *next;
    *next += 1;
    let rest = without(hir, dropped, next);
    (!dropped.get(number).is_some_and(|&dropped| dropped)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use crate::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern, parse_taking, parse_without};
    use crate::{Deriver, Limits};

    const PATTERNS: [&str; 10] = [
        "b|^a1",
        "^(?:a|b)1$",
        "^(?:a1|.*b)*$",
        "^(?:(?:ab)?1|b(?:a|11))*a",
        "(?=a)(?:ab|1)+",
        "^(?:a?b){1,2}$",
        "^(?:ab|a|(?:b|1a){2})+$",
        "^(?:a(?:|b|1))*?b",
        "a",
        "(?:)|b+",
    ];

    proptest::proptest! {
        /// A text of the pattern is one without some alternatives, or takes one of them, and nothing else is.
        #[test]
        fn a_text_takes_an_alternative_or_does_without(
            pattern in proptest::sample::select(PATTERNS.to_vec()),
            dropped in proptest::collection::vec(proptest::bool::ANY, 12),
            text in "[ab1]{0,6}",
        ) {
            let mut deriver = Deriver::new(Limits::default());
            let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Search };
            let exprs = &mut deriver.exprs;
            let whole = parse_pattern(exprs, pattern, &options, &mut Utf8).unwrap();
            let fewer = parse_without(exprs, pattern, &options, &mut Utf8, &dropped).unwrap();
            let all: Vec<_> = (0..)
                .map_while(|number| parse_taking(exprs, pattern, &options, &mut Utf8, number).unwrap())
                .collect();
            proptest::prop_assert!(all.len() <= dropped.len());
            proptest::prop_assert_eq!(parse_without(exprs, pattern, &options, &mut Utf8, &[]).unwrap(), whole);
            let mut matches = |expr| deriver.matches(expr, text.as_bytes()).unwrap();
            let takes_dropped = all.iter().zip(&dropped).any(|(&taking, &dropped)| dropped && matches(taking));
            let (whole, fewer) = (matches(whole), matches(fewer));
            proptest::prop_assert!(whole || !fewer, "{} without some matches {:?}", pattern, text);
            proptest::prop_assert!(!whole || fewer || takes_dropped, "{} loses {:?}", pattern, text);
        }
    }

    #[test]
    fn alternatives_are_distinguished() {
        let mut deriver = Deriver::new(Limits::default());
        let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Whole };
        let exprs = &mut deriver.exprs;
        let mut taking = |number| parse_taking(exprs, "ab|(?:c(?:d1|e)?f)*", &options, &mut Utf8, number).unwrap();
        let taken: Vec<_> = (0..6).map_while(&mut taking).collect();
        // `ab`; the repetition, as an alternative and as an optional one; what is optional in it, and the two within.
        assert_eq!(taken.len(), 6);
        assert_eq!(taking(6), None);
        for (number, text) in ["ab", "cf", "cf", "cef", "cd1f", "cef"].into_iter().enumerate() {
            assert!(deriver.matches(taken[number], text.as_bytes()).unwrap(), "{text}");
        }
        assert!(!deriver.matches(taken[4], b"cef").unwrap());
    }
}
