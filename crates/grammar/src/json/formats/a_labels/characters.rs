//! Characters of labels, what the rules of host names say of them (RFC 5892, RFC 5893), and whether a text of them
//! keeps the rules.

use std::sync::OnceLock;

use stencilm_regex::syntax::{Alphabet, Anchoring, Dialect, PatternOptions, own_pattern};
use stencilm_regex::{ExprId, ExprSet};
use stencilm_support::{Held, unwatched};

use crate::json::formats::letters::{self, Letters};

/// A character of a label, and its properties for the rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Character {
    pub(super) character: char,
    pub(super) traits: u16,
}

/// Left-to-right letters that may be the first character.
pub(super) const FORTH: u16 = 1;
/// Right-to-left letters.
pub(super) const BACK: u16 = 1 << 1;
pub(super) const MARK: u16 = 1 << 2;
pub(super) const SPACING_MARK: u16 = 1 << 3;
pub(super) const DIGIT: u16 = 1 << 4;
pub(super) const ARABIC_DIGIT: u16 = 1 << 5;
pub(super) const VIRAMA: u16 = 1 << 6;
pub(super) const JOINS_AHEAD: u16 = 1 << 7;
pub(super) const JOINS_BACK: u16 = 1 << 8;
pub(super) const GREEK: u16 = 1 << 9;
pub(super) const HEBREW: u16 = 1 << 10;
pub(super) const KANA: u16 = 1 << 11;
/// Characters that require certain neighbours.
pub(super) const IN_CONTEXT: u16 = 1 << 12;

impl Character {
    pub(super) fn of(character: char) -> Character {
        let traits = match character {
            'a'..='z' => FORTH,
            '0'..='9' => DIGIT,
            '-' => 0,
            _ => at_least(u32::from(character))
                .filter(|block| block.first <= u32::from(character))
                .map_or(0, |block| block.traits),
        };
        Character { character, traits }
    }

    pub(super) fn is(self, traits: u16) -> bool {
        self.traits & traits != 0
    }
}

/// In which names a label may stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// In names without right-to-left letters.
    Plain,
    /// In all names.
    Forth,
    /// In names with right-to-left letters, because the label has some.
    Back,
}

/// The kind of a label, given characters that labels may have; the rules are those of [`crate::json::formats::idn`].
/// `None` if the rules are violated.
pub(super) fn kind(text: &[Character]) -> Option<Kind> {
    let (first, last) = (*text.first()?, *text.last()?);
    if first.is(MARK | SPACING_MARK) || first.character == '-' || last.character == '-' || has_hyphens(text) {
        return None;
    }
    let all = traits_of(text);
    if all & IN_CONTEXT != 0 && !are_in_context(text) {
        return None;
    }
    let end = text.iter().rfind(|character| !character.is(MARK))?;
    if all & (BACK | ARABIC_DIGIT) == 0 {
        let is_forth = first.is(FORTH) && end.is(FORTH | SPACING_MARK | DIGIT);
        return Some(if is_forth { Kind::Forth } else { Kind::Plain });
    }
    let ends = end.is(BACK | DIGIT | ARABIC_DIGIT);
    (!is_mixed(text, all) && ends && first.is(BACK)).then_some(Kind::Back)
}

/// Whether all characters that require certain neighbours have them.
fn are_in_context(text: &[Character]) -> bool {
    text.iter().enumerate().filter(|(_, this)| this.is(IN_CONTEXT)).all(|(index, this)| {
        let before = index.checked_sub(1).map(|before| text[before]);
        let after = text.get(index + 1).copied();
        match this.character {
            '\u{b7}' => [before, after].iter().all(|other| other.is_some_and(|other| other.character == 'l')),
            '\u{375}' => after.is_some_and(|after| after.is(GREEK)),
            '\u{5f3}' | '\u{5f4}' => before.is_some_and(|before| before.is(HEBREW)),
            '\u{200d}' => before.is_some_and(|before| before.is(VIRAMA)),
            '\u{200c}' => before.is_some_and(|before| before.is(VIRAMA)) || joins(text, index),
            '\u{30fb}' => text.iter().any(|other| other.is(KANA)),
            _ => true,
        }
    })
}

/// Whether the characters of a right-to-left label, which together have the traits `all`, include some that must not
/// occur together.
fn is_mixed(text: &[Character], all: u16) -> bool {
    let is_part = |this: &Character| {
        this.is(BACK | MARK | DIGIT | ARABIC_DIGIT) || matches!(this.character, '-' | '\u{200c}' | '\u{200d}')
    };
    all & DIGIT != 0 && all & ARABIC_DIGIT != 0 || !text.iter().all(is_part)
}

/// The union of the traits of the characters.
pub(super) fn traits_of(text: &[Character]) -> u16 {
    text.iter().fold(0, |all, this| all | this.traits)
}

/// Whether a label may begin with a character of these traits, if its characters together have the traits `all`.
pub(super) fn may_begin(traits: u16, all: u16, turning: bool) -> bool {
    let may = if all & (BACK | ARABIC_DIGIT) != 0 { BACK } else { FORTH | BACK };
    traits & (MARK | SPACING_MARK) == 0 && (!turning || traits & may != 0)
}

/// Whether no insertions can make a label of the characters.
pub(super) fn is_beyond_mending(text: &[Character], turning: bool) -> bool {
    let all = traits_of(text);
    all & (BACK | ARABIC_DIGIT) != 0 && (!turning || is_mixed(text, all))
}

/// Whether the third and fourth characters are hyphens.
fn has_hyphens(text: &[Character]) -> bool {
    text.get(2..4).is_some_and(|middle| middle.iter().all(|this| this.character == '-'))
}

/// Whether a zero-width non-joiner stands between two letters that would otherwise join.
fn joins(text: &[Character], index: usize) -> bool {
    let is_seen = |this: &&Character| !this.is(MARK);
    let before = text[..index].iter().rfind(is_seen);
    let after = text[index + 1..].iter().find(is_seen);
    before.is_some_and(|before| before.is(JOINS_AHEAD)) && after.is_some_and(|after| after.is(JOINS_BACK))
}

/// A lower bound of the number of insertions that make a label of the characters.
pub(super) fn needed(text: &[Character], turning: bool) -> usize {
    let Some(&last) = text.last() else { return 1 };
    let is_right = |text: &[Character]| {
        let first = text[0];
        let is_wrong = first.is(MARK | SPACING_MARK) || first.character == '-' || (turning && !first.is(FORTH | BACK));
        !is_wrong && !has_hyphens(text)
    };
    let beginning = &text[..text.len().min(4)];
    let front = match is_right(beginning) {
        true => 0,
        false => {
            let (mut beginning, letter) = (beginning.to_vec(), Character::of('a'));
            let mended = (0..=beginning.len()).any(|place| {
                beginning.insert(place, letter);
                let is_right = is_right(&beginning);
                beginning.remove(place);
                is_right
            });
            if mended { 1 } else { 2 }
        }
    };
    let end = usize::from(last.character == '-');
    // If both are near each other, one insertion may be enough.
    if text.len() > 4 { front + end } else { front.max(end) }
}

/// Sorted, disjoint ranges of characters.
#[derive(Default)]
struct Ranges(Vec<(char, char)>);

impl Ranges {
    fn of(class: &str) -> Ranges {
        let mut ranges = Ranges::default();
        let options = PatternOptions { dialect: Dialect::Nested, anchoring: Anchoring::Whole };
        own_pattern(&mut ExprSet::new(), class, &options, &mut ranges);
        ranges.0.sort_unstable();
        ranges
    }

    fn has(&self, character: char) -> bool {
        let next = self.0.partition_point(|&(_, last)| last < character);
        self.0.get(next).is_some_and(|&(first, _)| first <= character)
    }
}

/// Collects the characters of a class.
impl Alphabet for Ranges {
    fn class(&mut self, exprs: &mut ExprSet, ranges: &[(char, char)]) -> ExprId {
        self.0.extend_from_slice(ranges);
        exprs.literal(b"x")
    }
}

/// Consecutive non-ASCII characters of labels with the same traits.
pub(super) struct Block {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) traits: u16,
}

/// All blocks in order; they are searched at every digit that is read.
struct Blocks {
    blocks: Vec<Block>,
    /// By page of code points, the first block that ends in the page or later.
    pages: Vec<u16>,
}

impl Blocks {
    /// The number of code points in a page; few blocks begin in one.
    const PAGE: u32 = 64;

    fn new(blocks: Vec<Block>) -> Blocks {
        let end = blocks.last().map_or(0, |block| block.last / Blocks::PAGE + 1);
        let first = |page: u32| blocks.partition_point(|block| block.last < page * Blocks::PAGE);
        let pages = (0..end).map(|page| u16::try_from(first(page)).expect("there are a few thousand blocks")).collect();
        Blocks { blocks, pages }
    }
}

/// The first block with characters at or after a code point.
pub(super) fn at_least(point: u32) -> Option<&'static Block> {
    static BLOCKS: OnceLock<Blocks> = OnceLock::new();
    let known = BLOCKS.get_or_init(|| {
        let _held = Held::new();
        Blocks::new(unwatched(blocks))
    });
    let &first = known.pages.get((point / Blocks::PAGE) as usize)?;
    known.blocks[usize::from(first)..].iter().find(|block| block.last >= point)
}

pub(super) fn blocks() -> Vec<Block> {
    let characters = Letters::new();
    let Letters { left, right, marks } = &characters;
    let both = format!("[{left}{right}]");
    let [ahead, back] = letters::joining(&both);
    let traits = [
        (FORTH, characters.first()),
        (BACK, format!(r"[{right}\x{{5f3}}\x{{5f4}}]")),
        (MARK, marks.clone()),
        (SPACING_MARK, r"[\p{Mc}]".into()),
        (DIGIT, format!("[{}]", letters::DIGITS)),
        (ARABIC_DIGIT, format!("[{}]", letters::ARABIC_DIGITS)),
        (VIRAMA, letters::viramas(&format!("{both}{marks}"))),
        (JOINS_AHEAD, ahead),
        (JOINS_BACK, back),
        (GREEK, format!(r"[[\p{{Greek}}&&[{left}{marks}]]\x{{375}}]")),
        (HEBREW, format!(r"[[\p{{Hebrew}}&&[{right}{marks}]]\x{{5f3}}\x{{5f4}}]")),
        (KANA, characters.kana()),
        (IN_CONTEXT, format!(r"[\x{{b7}}\x{{375}}\x{{200c}}\x{{200d}}{}{}]", letters::GERESH, letters::KATAKANA_DOT)),
    ]
    .map(|(one, class)| (one, Ranges::of(&class)));
    let possible = Ranges::of(&characters.beyond_ascii());
    let all = traits.iter().map(|(_, ranges)| ranges).chain([&possible]).flat_map(|ranges| &ranges.0);
    let mut starts: Vec<u32> = all.flat_map(|&(first, last)| [u32::from(first), u32::from(last) + 1]).collect();
    starts.sort_unstable();
    starts.dedup();
    let block = |next: &[u32]| {
        let character = char::from_u32(next[0]).filter(|&character| possible.has(character))?;
        let traits = traits.iter().filter(|(_, ranges)| ranges.has(character)).fold(0, |all, (one, _)| all | one);
        Some(Block { first: next[0], last: next[1] - 1, traits })
    };
    starts.windows(2).filter_map(block).collect()
}
