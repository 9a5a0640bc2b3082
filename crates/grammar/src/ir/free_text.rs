//! Text that anything may stand in, until something comes that ends it.
//!
//! One idea: such a text is "any characters" and a complement, and the complement remembers no more than how much of a
//! marker was read. So its state is the same nearly everywhere, and one row of the vocabulary serves a whole text.

use indexmap::IndexMap;
use stencilm_regex::{ByteSet, ExprId, ExprSet};
use stencilm_regex::{syntax::Alphabet, syntax::Utf8};
use stencilm_support::{HashMap, HashSet};

/// With more strings than this, a text and the string that ends it are separate lexemes: one lexeme for each string
/// would be as many threads in every state of the text.
pub(crate) const FEW_STRINGS: usize = 16;

/// Free text, with the strings that end it and those that must not occur in it.
pub(crate) struct FreeText {
    /// Any text, regardless of what ends it.
    characters: ExprId,
    /// Any bytes, valid text or not.
    anything: ExprId,
    /// The strings that end the text.
    stops: Box<[Box<str>]>,
    /// The strings of which none may begin in the text and be completed.
    excludes: Box<[Box<str>]>,
    /// Any of the strings that end the text.
    stop: ExprId,
    /// Texts that contain an excluded string; `None` if none is excluded.
    forbidden: Option<ExprId>,
}

impl FreeText {
    /// Up to `max` characters. The first of `stops` ends the text, and none of `excludes` may begin in it.
    pub(crate) fn new(exprs: &mut ExprSet, stops: &[&str], excludes: &[&str], max: Option<u32>) -> FreeText {
        let character = Utf8.class(exprs, &[('\0', '\u{d7ff}'), ('\u{e000}', '\u{10ffff}')]);
        let characters = exprs.repeat(character, 0, max);
        FreeText::of(exprs, characters, stops, excludes)
    }

    /// As [`FreeText::new`], over other texts than any characters.
    pub(crate) fn of(exprs: &mut ExprSet, characters: ExprId, stops: &[&str], excludes: &[&str]) -> FreeText {
        let byte = exprs.bytes(ByteSet::ALL);
        let anything = exprs.repeat(byte, 0, None);
        let stop = exprs.literals(stops);
        let excluded = exprs.literals(excludes);
        let forbidden = (!excludes.is_empty()).then(|| exprs.concat_all(&[anything, excluded, anything]));
        let kept = |texts: &[&str]| texts.iter().map(|&text| text.into()).collect();
        FreeText { characters, anything, stops: kept(stops), excludes: kept(excludes), stop, forbidden }
    }

    /// The whole text, without a string that ends it.
    pub(crate) fn unended(&self, exprs: &mut ExprSet) -> ExprId {
        let stopped = exprs.concat_all(&[self.anything, self.stop, self.anything]);
        self.without(exprs, self.characters, stopped)
    }

    /// The text with the string that ended it, one of the `stops`: none of them is complete any earlier.
    pub(crate) fn until(&self, exprs: &mut ExprSet, stop: &str) -> ExprId {
        // An excluded string may occur within the string that ends the text, so the two are treated separately.
        if self.excludes.iter().any(|exclude| stop.contains(&**exclude)) {
            let before = self.before(exprs, stop);
            let stop = exprs.literal(stop.as_bytes());
            return exprs.concat(before, stop);
        }
        let stop = exprs.literal(stop.as_bytes());
        let text = exprs.concat(self.characters, stop);
        let byte = exprs.bytes(ByteSet::ALL);
        let stopped = exprs.concat_all(&[self.anything, self.stop, byte, self.anything]);
        self.without(exprs, text, stopped)
    }

    /// The text before a string that ends it and is a separate lexeme. In the text and the string together, none of
    /// `stops` is complete before the end, and none of `excludes` that begins in the text is complete.
    pub(crate) fn before(&self, exprs: &mut ExprSet, stop: &str) -> ExprId {
        self.groups(exprs, &[stop]).first().map_or(ExprId::NOTHING, |&(text, _)| text)
    }

    /// As [`FreeText::before`], for many strings: their indexes, grouped by the text before them, which is the same for
    /// nearly all of them. Strings that can never be completed are in no group.
    pub(crate) fn groups(&self, exprs: &mut ExprSet, strings: &[&str]) -> Vec<(ExprId, Vec<usize>)> {
        let stops: Vec<&str> = self.stops.iter().map(|stop| &**stop).collect();
        let earlier = Within::new(&stops);
        // For each possible beginning of a string: the beginnings of others that it completes.
        let mut begun: HashMap<&str, Vec<(&str, bool)>> = HashMap::default();
        let excludes = self.excludes.iter().map(|text| (&**text, false));
        for (text, is_stop) in stops.iter().map(|&text| (text, true)).chain(excludes) {
            for (at, _) in text.char_indices().skip(1) {
                begun.entry(&text[at..]).or_default().push((&text[..at], is_stop));
            }
        }
        let mut groups: IndexMap<Vec<(&str, bool)>, Vec<usize>> = IndexMap::new();
        for (position, string) in strings.iter().enumerate() {
            if earlier.find(string, string.len().saturating_sub(1)).is_some() {
                continue;
            }
            let beginnings = string.char_indices().skip(1).map(|(at, _)| at).chain([string.len()]);
            // A stop that is completed only by the whole string doesn't come earlier. An excluded string must not come
            // even then.
            let keys = beginnings.map(|end| (&string[..end], end < string.len()));
            groups.entry(keys.filter(|(start, _)| begun.contains_key(start)).collect()).or_default().push(position);
        }
        let unended = self.unended(exprs);
        let texts = groups.into_iter().map(|(keys, positions)| {
            let ended = keys.iter().flat_map(|&(start, stops)| {
                begun[start].iter().filter(move |&&(_, is_stop)| stops || !is_stop).map(|&(begun, _)| begun)
            });
            let ended: Vec<&str> = ended.collect();
            if ended.is_empty() {
                return (unended, positions);
            }
            let ended = exprs.literals(&ended);
            let bad = exprs.concat(self.anything, ended);
            let good = exprs.not(bad);
            (exprs.and(&[unended, good]), positions)
        });
        texts.collect()
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

/// Strings that are searched for within others.
pub(crate) struct Within<'t> {
    strings: HashSet<&'t str>,
    lengths: Vec<usize>,
}

impl<'t> Within<'t> {
    pub(crate) fn new(strings: &[&'t str]) -> Within<'t> {
        let mut lengths: Vec<usize> = strings.iter().map(|string| string.len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        Within { strings: strings.iter().copied().collect(), lengths }
    }

    /// One of the strings, if it occurs within the first `end` bytes of a text.
    pub(crate) fn find(&self, text: &str, end: usize) -> Option<&'t str> {
        let starts = text.char_indices().map(|(at, _)| at);
        let mut pieces = starts
            .flat_map(|at| self.lengths.iter().map(move |length| at..at + length))
            .filter(|piece| piece.end <= end);
        pieces.find_map(|piece| self.strings.get(text.get(piece)?).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stencilm_regex::{Deriver, Limits};

    /// Where the first of the strings is complete, by trying every place.
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
            // Whether no excluded string begins before a place.
            let is_clean = |end: usize| !(0..end).any(|at| excludes.iter().any(|exclude| text[at..].starts_with(exclude)));
            let fits = |count: usize| max.is_none_or(|max| count <= max as usize);
            let unended = free.unended(&mut deriver.exprs);
            let expected = is_clean(text.len()) && fits(text.len()) && first_end(&text, &stops).is_none();
            prop_assert_eq!(deriver.matches(unended, text.as_bytes()).unwrap(), expected);
            for stop in &stops {
                let until = free.until(&mut deriver.exprs, stop);
                let expected = text.ends_with(stop)
                    && is_clean(text.len() - stop.len())
                    && fits(text.len() - stop.len())
                    && first_end(&text, &stops) == Some(text.len());
                prop_assert_eq!(deriver.matches(until, text.as_bytes()).unwrap(), expected, "{} until {}", text, stop);
                let before = free.before(&mut deriver.exprs, stop);
                let groups = free.groups(&mut deriver.exprs, &stops);
                let group = groups.iter().find(|(_, group)| group.iter().any(|&position| stops[position] == *stop));
                prop_assert_eq!(group.map_or(ExprId::NOTHING, |&(text, _)| text), before);
                let apart = text.strip_suffix(stop).is_some_and(|text| deriver.matches(before, text.as_bytes()).unwrap());
                prop_assert_eq!(apart, expected, "{} before {}", text, stop);
            }
        }
    }
}
