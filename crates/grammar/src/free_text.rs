//! Text that anything may stand in, until something comes that ends it.
//!
//! One idea: such a text is "any characters" and a complement, and the complement remembers no more than how much of a
//! marker was read. So its state is the same nearly everywhere, and one row of the vocabulary serves a whole text.

use stencilm_regex::syntax::{Alphabet, Utf8};
use stencilm_regex::{ByteSet, ExprId, ExprSet};

/// What a text without bounds must not run into.
pub(super) struct FreeText {
    /// Any text without regard to what ends it.
    characters: ExprId,
    /// Anything at all, be it text or not.
    anything: ExprId,
    /// Any of the strings that end the text, the first that comes.
    stops: ExprId,
    /// Texts that hold a string that must not come at all; `None` where every string may.
    forbidden: Option<ExprId>,
}

impl FreeText {
    /// Up to `max` characters, which the first of `stops` ends, and in which none of `excludes` may come.
    pub(super) fn new(exprs: &mut ExprSet, stops: &[&str], excludes: &[&str], max: Option<u32>) -> FreeText {
        let character = Utf8.class(exprs, &[('\0', '\u{d7ff}'), ('\u{e000}', '\u{10ffff}')]);
        let characters = exprs.repeat(character, 0, max);
        FreeText::of(exprs, characters, stops, excludes)
    }

    /// The same over texts of another kind than any characters.
    pub(super) fn of(exprs: &mut ExprSet, characters: ExprId, stops: &[&str], excludes: &[&str]) -> FreeText {
        let byte = exprs.bytes(ByteSet::ALL);
        let anything = exprs.repeat(byte, 0, None);
        let stops = exprs.literals(stops);
        let excluded = exprs.literals(excludes);
        let forbidden = (!excludes.is_empty()).then(|| exprs.concat_all(&[anything, excluded, anything]));
        FreeText { characters, anything, stops, forbidden }
    }

    /// The whole text, which nothing ended.
    pub(super) fn unended(&self, exprs: &mut ExprSet) -> ExprId {
        let stopped = exprs.concat_all(&[self.anything, self.stops, self.anything]);
        self.without(exprs, self.characters, stopped)
    }

    /// The text with the string that ended it, which is one of the `stops`: none of them is complete any earlier.
    pub(super) fn until(&self, exprs: &mut ExprSet, stop: &str) -> ExprId {
        let stop = exprs.literal(stop.as_bytes());
        let text = exprs.concat(self.characters, stop);
        let byte = exprs.bytes(ByteSet::ALL);
        let stopped = exprs.concat_all(&[self.anything, self.stops, byte, self.anything]);
        self.without(exprs, text, stopped)
    }

    /// The text before a string that ends it and is read apart: of such a text and the string, none of `stops` is complete
    /// before the end, and none of `excludes` comes.
    pub(super) fn before(&self, exprs: &mut ExprSet, stop: &str, stops: &[&str], excludes: &[&str]) -> ExprId {
        let within = |text: &str| stop.find(text).is_some_and(|at| at + text.len() < stop.len());
        if stops.iter().any(|text| within(text)) || excludes.iter().any(|text| stop.contains(text)) {
            return ExprId::NOTHING;
        }
        let mut begun: Vec<&str> = Vec::new();
        for (text, longest) in
            stops.iter().map(|text| (text, stop.len() - 1)).chain(excludes.iter().map(|text| (text, stop.len())))
        {
            let cuts = text.char_indices().map(|(at, _)| at).filter(|&at| at > 0 && text.len() - at <= longest);
            begun.extend(cuts.filter(|&at| stop.starts_with(&text[at..])).map(|at| &text[..at]));
        }
        let unended = self.unended(exprs);
        if begun.is_empty() {
            return unended;
        }
        let begun = exprs.literals(&begun);
        let bad = exprs.concat(self.anything, begun);
        let good = exprs.not(bad);
        exprs.and(&[unended, good])
    }

    fn without(&self, exprs: &mut ExprSet, text: ExprId, stopped: ExprId) -> ExprId {
        let mut bad = vec![stopped];
        bad.extend(self.forbidden);
        let bad = exprs.or(&bad);
        if bad == ExprId::NOTHING {
            return text;
        }
        let good = exprs.not(bad);
        exprs.and(&[text, good])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stencilm_regex::{Deriver, Limits};

    /// Where the first of the strings is complete, by looking at every place.
    fn first_end(text: &str, strings: &[&str]) -> Option<usize> {
        (0..=text.len()).find(|&end| strings.iter().any(|string| text.as_bytes()[..end].ends_with(string.as_bytes())))
    }

    proptest! {
        #[test]
        fn the_first_stop_ends_the_text(
            text in "[ab]{0,9}",
            stops in proptest::collection::vec("[ab]{1,3}", 1..3),
            excludes in proptest::collection::vec("[ab]{1,3}", 0..2),
            max in proptest::option::of(0u32..5),
        ) {
            let stops: Vec<&str> = stops.iter().map(|stop| &**stop).collect();
            let excludes: Vec<&str> = excludes.iter().map(|exclude| &**exclude).collect();
            let mut deriver = Deriver::new(Limits::default());
            let free = FreeText::new(&mut deriver.exprs, &stops, &excludes, max);
            let is_clean = first_end(&text, &excludes).is_none();
            let fits = |count: usize| max.is_none_or(|max| count <= max as usize);
            let unended = free.unended(&mut deriver.exprs);
            let expected = is_clean && fits(text.len()) && first_end(&text, &stops).is_none();
            prop_assert_eq!(deriver.matches(unended, text.as_bytes()).unwrap(), expected);
            for stop in &stops {
                let until = free.until(&mut deriver.exprs, stop);
                let expected = is_clean
                    && text.ends_with(stop)
                    && fits(text.len() - stop.len())
                    && first_end(&text, &stops) == Some(text.len());
                prop_assert_eq!(deriver.matches(until, text.as_bytes()).unwrap(), expected, "{} until {}", text, stop);
                let before = free.before(&mut deriver.exprs, stop, &stops, &excludes);
                let apart = text.strip_suffix(stop).is_some_and(|text| deriver.matches(before, text.as_bytes()).unwrap());
                prop_assert_eq!(apart, expected, "{} before {}", text, stop);
            }
        }
    }
}
