//! The alternatives of a pattern, one by one: the texts that take one, and the pattern without some.
//!
//! They are numbered in the order in which they are written, nested ones after the one that contains them. An optional
//! part, or one that may be repeated from zero on, is an alternative to nothing. Alternatives within look-arounds do
//! not count.

use regex_syntax::hir::{Hir, HirKind, Repetition};

use super::around;

/// The part of a pattern that is read.
#[derive(Clone, Copy)]
pub(super) enum Choice<'a> {
    All,
    /// The texts that take the alternative with this number, and perhaps some others.
    Taking(usize),
    /// The texts that take none of these alternatives.
    Without(&'a [bool]),
}

impl Choice<'_> {
    /// Applies the choice to a pattern; `None` where it has no such alternative.
    pub fn of(self, hir: Hir) -> Option<Hir> {
        match self {
            Choice::All => Some(hir),
            Choice::Taking(mut number) => taking(&hir, &mut number),
            Choice::Without(dropped) => Some(without(&hir, dropped, &mut 0)),
        }
    }
}

/// Whether a group is the placeholder of a look-around.
fn is_around(name: Option<&str>) -> bool {
    name.is_some_and(|name| around::number(name).is_some())
}

/// Whether a repetition is an alternative to nothing. A single optional character is not counted, since its reading is
/// obvious.
fn is_optional(repetition: &Repetition) -> bool {
    repetition.min == 0 && !matches!(repetition.sub.kind(), HirKind::Class(_) | HirKind::Literal(_))
}

/// The texts that take the alternative that has `before` others before it.
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

/// The same, if this part is an alternative itself.
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
        /// Every text of the pattern matches without some alternatives or takes one of them, and no other text does.
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
        // `ab`; the repetition, as an alternative and as an optional part; the optional part in it, and its two
        // alternatives.
        assert_eq!(taken.len(), 6);
        assert_eq!(taking(6), None);
        for (number, text) in ["ab", "cf", "cf", "cef", "cd1f", "cef"].into_iter().enumerate() {
            assert!(deriver.matches(taken[number], text.as_bytes()).unwrap(), "{text}");
        }
        assert!(!deriver.matches(taken[4], b"cef").unwrap());
    }
}
