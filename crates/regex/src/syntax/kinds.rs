//! Kinds of characters: the only property of its neighbours that an assertion sees.

use std::rc::Rc;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, Look};

use super::options::Dialect;

/// Characters as sorted, disjoint ranges.
pub(super) type Ranges = Rc<[(char, char)]>;

/// The ranges of a class.
pub(super) fn ranges_of(class: &ClassUnicode) -> Ranges {
    class.iter().map(|range| (range.start(), range.end())).collect()
}

/// What is next to a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Edge {
    /// The start or end of the text.
    #[default]
    Text,
    /// A word character: `[A-Za-z0-9_]`.
    Word,
    /// A line terminator.
    Line,
    /// Any other character; any character at all if no assertion of the pattern distinguishes them.
    Other,
}

impl Edge {
    pub const ALL: [Edge; 4] = [Edge::Text, Edge::Word, Edge::Line, Edge::Other];

    /// Whether the assertion holds between two edges.
    pub fn satisfy(look: Look, before: Edge, after: Edge) -> bool {
        let (word_before, word_after) = (before == Edge::Word, after == Edge::Word);
        match look {
            Look::Start => before == Edge::Text,
            Look::End => after == Edge::Text,
            Look::StartLF | Look::StartCRLF => matches!(before, Edge::Text | Edge::Line),
            Look::EndLF | Look::EndCRLF => matches!(after, Edge::Text | Edge::Line),
            Look::WordAscii | Look::WordUnicode => word_before != word_after,
            Look::WordAsciiNegate | Look::WordUnicodeNegate => word_before == word_after,
            Look::WordStartAscii | Look::WordStartUnicode => !word_before && word_after,
            Look::WordEndAscii | Look::WordEndUnicode => word_before && !word_after,
            Look::WordStartHalfAscii | Look::WordStartHalfUnicode => !word_before,
            Look::WordEndHalfAscii | Look::WordEndHalfUnicode => !word_after,
        }
    }
}

/// A set of character kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub const NONE: Kinds = Kinds(0);

    pub fn of(edge: Edge) -> Kinds {
        Kinds(1 << edge as u8)
    }

    pub fn has(self, edge: Edge) -> bool {
        self.0 & Kinds::of(edge).0 != 0
    }

    pub fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = Edge> {
        Edge::ALL.into_iter().filter(move |&edge| self.has(edge))
    }

    pub fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Any kind of the set, for a reader that does not distinguish them.
    pub fn any(self) -> Edge {
        self.iter().next().expect("empty sets of kinds are answered before anyone asks")
    }
}

/// The kinds of characters in one pattern.
pub(super) struct KindsOfPattern {
    /// The kinds that the pattern distinguishes.
    pub all: Kinds,
    /// The characters of every kind, by `Edge as usize`.
    sets: [ClassUnicode; 4],
}

impl KindsOfPattern {
    pub fn new((word, line): (bool, bool), dialect: Dialect) -> KindsOfPattern {
        let word = if word { set(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]) } else { ClassUnicode::empty() };
        let line = match (line, dialect) {
            (false, _) => ClassUnicode::empty(),
            (true, Dialect::Standard | Dialect::Nested) => set(&[('\n', '\n')]),
            (true, Dialect::EcmaScript) => set(&[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')]),
        };
        let mut other = set(&[('\0', char::MAX)]);
        other.difference(&word);
        other.difference(&line);
        let sets = [ClassUnicode::empty(), word, line, other];
        let distinguished = Edge::ALL.into_iter().filter(|&edge| !sets[edge as usize].ranges().is_empty());
        KindsOfPattern { all: distinguished.map(Kinds::of).fold(Kinds::NONE, Kinds::or), sets }
    }

    /// The kind of a character.
    pub fn of(&self, c: char) -> Edge {
        let within = |edge: &Edge| self.sets[*edge as usize].iter().any(|set| (set.start()..=set.end()).contains(&c));
        Edge::ALL.into_iter().find(within).expect("the kinds cover every character")
    }

    /// The characters of `ranges` with these kinds.
    pub fn within(&self, ranges: &[(char, char)], kinds: Kinds) -> Ranges {
        let mut wanted = ClassUnicode::empty();
        kinds.iter().for_each(|kind| wanted.union(&self.sets[kind as usize]));
        wanted.intersect(&set(ranges));
        ranges_of(&wanted)
    }
}

fn set(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(first, last)| ClassUnicodeRange::new(first, last)))
}

/// The ranges of all characters.
pub(super) fn ranges_of_any() -> Ranges {
    Rc::new([('\0', char::MAX)])
}
