//! Labels of host names in Punycode (RFC 3492): `xn--` and an encoding of a label that [`super::idn`] allows.
//!
//! What a label decodes to is decided by all of it, so a program tells them ([`Language`]). The last hyphen ends the letters of
//! ASCII, and behind it stand numbers, each of which inserts a character. While [`ROOM`] characters are left, any beginning may
//! still become letters of ASCII by one more hyphen, and a few insertions mend whatever is wrong with them. With less room, so many
//! digits are tried ([`MAX_TRIED`]), and a beginning of which no end is found by then is refused: hardly any, and none of a label
//! that is not near a limit of length.

use std::sync::OnceLock;

use stencilm_regex::syntax::{Alphabet, Anchoring, Dialect, PatternOptions, parse_pattern};
use stencilm_regex::{ByteSet, ExprId, ExprSet, Held, Language, LanguageReader, unwatched};

use super::letters::{self, Letters};
use super::whole::whole;
use crate::json::format::Punycode;
use crate::json::strings::Strings;

mod reader;

use reader::Reader;

const PREFIX: &[u8] = b"xn--";
/// The longest label without its prefix.
const MAX_ENCODED: usize = 59;
/// With so many characters left every beginning can be completed: a hyphen, three digits for the first insertion, and three
/// for two more.
const ROOM: usize = 7;
/// The shortest label, as `xn--zca`.
const SHORTEST: usize = 7;
/// So many digits are tried to see whether an encoding with little room left is open. Of those that could be
/// completed, one in thirty would take more.
const MAX_TRIED: u32 = 16;
/// Fewer digits insert no character that a label may have: the first one is `ß`.
const FIRST_INSERTION: usize = 3;
const FIRST_LETTER: u32 = 0xdf;
/// Digits of Punycode.
const BASE: u32 = 36;

/// Labels by the names in which they may stand. Their characters are not escaped in any spelling of JSON: whoever writes
/// Punycode writes it plainly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ALabels {
    name: &'static str,
    /// For names with letters from right to left; otherwise for names without.
    turning: bool,
}

static LANGUAGES: [ALabels; 2] =
    [ALabels { name: "a-label", turning: false }, ALabels { name: "a-label bidi", turning: true }];

/// The language of a name.
///
/// # Errors
/// Where there is none, with the names that there are.
pub(crate) fn language(name: &str) -> Result<&'static dyn Language, String> {
    match LANGUAGES.iter().find(|language| language.name == name) {
        Some(language) => Ok(language),
        None => {
            let names = LANGUAGES.map(|language| format!("{:?}", language.name)).join(", ");
            Err(format!("there is no language {name:?}; known are {names}"))
        }
    }
}

/// The labels for names with letters from right to left, or for names without.
pub(super) fn expr(exprs: &mut ExprSet, strings: &mut Strings, turning: bool, punycode: Punycode) -> ExprId {
    match punycode {
        Punycode::Checked => exprs.language(&LANGUAGES[usize::from(turning)]),
        Punycode::Refused => ExprId::NOTHING,
        Punycode::Unchecked => {
            whole(exprs, strings, &format!(r"[Xx][Nn]--[A-Za-z0-9\-]{{0,{}}}[A-Za-z0-9]", MAX_ENCODED - 1))
        }
    }
}

impl Language for ALabels {
    fn name(&self) -> &'static str {
        self.name
    }

    fn classes(&self) -> Vec<ByteSet> {
        let letters = (b'a'..=b'z').map(|letter| [letter, letter.to_ascii_uppercase()].into_iter().collect());
        (b'0'..=b'9').chain([b'-']).map(ByteSet::of).chain(letters).collect()
    }

    fn after(&self, read: &[u8], bytes: &[u8]) -> Option<Box<[u8]>> {
        let mut reader = Reader::behind(*self, read);
        reader.read(bytes).then(|| reader.text.into_boxed_slice())
    }

    fn is_member(&self, read: &[u8]) -> bool {
        Reader::behind(*self, read).is_member()
    }

    fn shortest(&self, read: &[u8]) -> u32 {
        SHORTEST.saturating_sub(read.len()).max(1) as u32
    }

    fn longest(&self, read: &[u8]) -> u32 {
        (PREFIX.len() + MAX_ENCODED - read.len()) as u32
    }

    fn completion(&self, read: &[u8], least: u32, most: u32) -> Option<Vec<u8>> {
        completed(self, read, least as usize, most as usize)
    }

    fn easy_completion(&self, read: &[u8]) -> Option<Vec<u8>> {
        if self.is_member(read) {
            return Some(Vec::new());
        }
        match read.strip_prefix(PREFIX) {
            Some(encoded) => (FIRST_INSERTION + 1..=ROOM).find_map(|most| hyphenated(encoded, 0, most, self.turning)),
            None => completed(self, read, 0, SHORTEST),
        }
    }

    fn most(&self) -> u32 {
        SHORTEST as u32
    }

    fn run(&self, read: &[u8]) -> Option<u32> {
        Some((MAX_ENCODED - ROOM).saturating_sub(read.strip_prefix(PREFIX)?.len()) as u32)
    }

    fn reader(&self, read: &[u8]) -> Box<dyn LanguageReader> {
        Box::new(Reader::behind(*self, read))
    }
}

/// At least and at most so many characters that complete a label, as few as are found.
fn completed(language: &ALabels, label: &[u8], least: usize, most: usize) -> Option<Vec<u8>> {
    match label.strip_prefix(PREFIX) {
        Some(encoded) => {
            let lengths = least..=most.min(least + ROOM);
            let decoder = Decoder::read(encoded);
            lengths.into_iter().find_map(|most| completion(encoded, decoder.as_ref(), least, most, language.turning))
        }
        None => {
            let prefix = &PREFIX[label.len()..];
            let more = |all: usize| all.saturating_sub(prefix.len());
            let rest = completed(language, PREFIX, more(least), most.checked_sub(prefix.len())?)?;
            Some([prefix, &rest].concat())
        }
    }
}

/// Whether the first insertion, which may be at the end, makes letters of ASCII a label, as far as that is plain to see.
fn is_mended_once(letters: &[u8], turning: bool) -> bool {
    let is_first = |letter: &u8| letter.is_ascii_lowercase() || (!turning && letter.is_ascii_digit());
    letters.first().is_some_and(is_first) && letters.get(2..4) != Some(b"--")
}

/// At least and at most so many characters that complete an encoding, of which `decoder` tells what was decoded; `None` where none
/// are found soon.
fn completion(encoded: &[u8], decoder: Option<&Decoder>, least: usize, most: usize, turning: bool) -> Option<Vec<u8>> {
    let most = most.min(MAX_ENCODED.checked_sub(encoded.len())?);
    if least == 0 && decoder.is_some_and(|decoder| decoder.is_label(turning)) {
        return Some(Vec::new());
    }
    if most == 0 {
        return None;
    }
    let mended = || {
        let decoder = decoder?;
        let begun = &encoded[encoded.len() - decoder.number.digits as usize..];
        decoder.mended(begun, most, turning).filter(|digits| digits.len() >= least)
    };
    let searched = || {
        // All digits are tried where one must do.
        let (mut digits, mut tries) = (Vec::new(), if most == 1 { BASE } else { MAX_TRIED });
        decoder?.goes_on(least, most, turning, &mut digits, &mut tries).then_some(digits)
    };
    hyphenated(encoded, least, most, turning).or_else(searched).or_else(mended)
}

/// Such characters with one more hyphen: what was read is letters of ASCII, perhaps with more of them, which mend a hyphen
/// at the end, too. Behind the hyphen are insertions that mend the rest.
fn hyphenated(encoded: &[u8], least: usize, most: usize, turning: bool) -> Option<Vec<u8>> {
    let most = most.min(MAX_ENCODED.checked_sub(encoded.len())?);
    let letters = most.checked_sub(FIRST_INSERTION + 1)?;
    let fewest = least.saturating_sub(ROOM);
    (fewest..=letters.min(fewest + ROOM)).find_map(|letters| {
        let begun = [&vec![b'a'; letters][..], b"-"].concat();
        let mended = Decoder::read(&[encoded, &begun].concat())?.mended(b"", most - begun.len(), turning)?;
        let all = [begun, mended].concat();
        (all.len() >= least).then_some(all)
    })
}

/// A decoder behind some of its input (RFC 3492, section 6.2).
#[derive(Clone, Debug)]
struct Decoder {
    text: Vec<Character>,
    inserted: u32,
    point: u32,
    place: u32,
    bias: u32,
    number: Number,
}

/// A number that was begun: how many digits were read, its value so far, and what the next digit counts.
#[derive(Clone, Copy, Debug)]
struct Number {
    digits: u32,
    value: u64,
    weight: u64,
}

/// A number behind one more digit.
enum Pushed {
    Begun(Number),
    /// The letter and the place that it stands for, and the number.
    Whole(u32, usize, u64),
}

impl Number {
    const NONE: Number = Number { digits: 0, value: 0, weight: 1 };
}

impl Decoder {
    /// `None` where the input is no beginning of an encoding.
    fn read(encoded: &[u8]) -> Option<Decoder> {
        let (basic, digits) = match encoded.iter().rposition(|&byte| byte == b'-') {
            Some(0) => return None,
            Some(hyphen) => (&encoded[..hyphen], &encoded[hyphen + 1..]),
            None => (&encoded[..0], encoded),
        };
        let text = basic.iter().map(|&byte| Character::of(char::from(byte))).collect();
        let mut decoder = Decoder { text, inserted: 0, point: 128, place: 0, bias: 72, number: Number::NONE };
        digits.iter().try_for_each(|&digit| decoder.push(value_of(digit)))?;
        Some(decoder)
    }

    /// Whether what was decoded is a label.
    fn is_label(&self, turning: bool) -> bool {
        let is_whole = self.number.digits == 0 && self.inserted > 0;
        is_whole && kind(&self.text).is_some_and(|kind| kind != if turning { Kind::Plain } else { Kind::Back })
    }

    fn threshold(&self, digits: u32) -> u64 {
        u64::from((BASE * (digits + 1)).saturating_sub(self.bias).clamp(1, 26))
    }

    /// One more digit; `None` where no character of a label is inserted any more.
    fn push(&mut self, digit: u64) -> Option<()> {
        match self.pushed(self.number, digit)? {
            Pushed::Begun(number) => self.number = number,
            Pushed::Whole(letter, place, delta) => self.insert(letter, place, delta),
        }
        Some(())
    }

    fn pushed(&self, number: Number, digit: u64) -> Option<Pushed> {
        let threshold = self.threshold(number.digits);
        let value = number.value.checked_add(digit.checked_mul(number.weight)?)?;
        let (least, place) = self.target(value)?;
        let letter = at_least(least)?.first.max(least);
        if digit >= threshold {
            let weight = number.weight.checked_mul(u64::from(BASE) - threshold)?;
            return Some(Pushed::Begun(Number { digits: number.digits + 1, value, weight }));
        }
        (letter == least).then_some(Pushed::Whole(letter, place, value))
    }

    /// The letter and its place that a number stands for.
    fn target(&self, delta: u64) -> Option<(u32, usize)> {
        let places = self.text.len() as u64 + 1;
        let at = u64::from(self.place).checked_add(delta)?;
        Some((u32::try_from(u64::from(self.point).checked_add(at / places)?).ok()?, (at % places) as usize))
    }

    fn insert(&mut self, letter: u32, place: usize, delta: u64) {
        let places = self.text.len() as u32 + 1;
        let delta = delta as u32;
        let mut delta = if self.inserted == 0 { delta / 700 } else { delta / 2 };
        delta += delta / places;
        let mut k = 0;
        while delta > 35 * 26 / 2 {
            delta /= 35;
            k += BASE;
        }
        self.bias = k + BASE * delta / (delta + 38);
        let character = char::from_u32(letter).expect("the characters of labels are characters");
        self.text.insert(place, Character::of(character));
        self.inserted += 1;
        (self.point, self.place) = (letter, place as u32 + 1);
        self.number = Number::NONE;
    }

    /// At least so many digits make it a label, which it is not: an insertion takes one or more.
    fn least(&self, turning: bool) -> usize {
        let first = if self.inserted == 0 { FIRST_INSERTION.saturating_sub(self.number.digits as usize) } else { 1 };
        first.max(1) + needed(&self.text, turning).max(1) - 1
    }

    /// Whether at least and at most so many digits make it a label; they are put behind those that there are.
    fn goes_on(&self, least: usize, most: usize, turning: bool, digits: &mut Vec<u8>, tries: &mut u32) -> bool {
        let is_label = self.is_label(turning);
        if is_label && least == 0 {
            return true;
        }
        if is_beyond_mending(&self.text, turning) {
            return false;
        }
        let needed = if is_label { least } else { self.least(turning) };
        most >= needed && self.number_goes_on(self.number, (least, most), turning, digits, tries)
    }

    /// The same with a number that was begun, of which the digits are tried without a copy of the rest.
    fn number_goes_on(
        &self,
        number: Number,
        (least, most): (usize, usize),
        turning: bool,
        digits: &mut Vec<u8>,
        tries: &mut u32,
    ) -> bool {
        let left = (least.saturating_sub(1), most - 1);
        // The last digit ends a number.
        let end = if most == 1 { self.threshold(number.digits) } else { u64::from(BASE) };
        (0..end).any(|digit| {
            let Some(left_to_try) = tries.checked_sub(1) else { return false };
            *tries = left_to_try;
            let Some(pushed) = self.pushed(number, digit) else { return false };
            digits.push(digit_of(digit));
            let goes_on = match pushed {
                Pushed::Begun(number) => self.number_goes_on(number, left, turning, digits, tries),
                Pushed::Whole(letter, place, delta) => {
                    let mut next = self.clone();
                    next.insert(letter, place, delta);
                    next.goes_on(left.0, left.1, turning, digits, tries)
                }
            };
            if !goes_on {
                digits.pop();
            }
            goes_on
        })
    }

    /// At most so many digits that make letters of ASCII a label, by insertions of the first letters that there are: those
    /// of others take as many digits, or more. `begun` are the digits of a number that was begun.
    fn mended(&self, begun: &[u8], most: usize, turning: bool) -> Option<Vec<u8>> {
        if self.is_label(turning) {
            return Some(Vec::new());
        }
        if most == 0 || self.is_beyond_mending(most, turning) || most < self.least(turning) {
            return None;
        }
        let first = if self.inserted == 0 { FIRST_LETTER } else { self.point };
        let letters = first..=first + u32::from(self.inserted > 0);
        let places = (0..4.min(self.text.len())).chain([self.text.len()]);
        places.flat_map(|place| letters.clone().map(move |letter| (letter, place))).find_map(|(letter, place)| {
            let mut digits = self.digits_to(letter, place, begun).filter(|digits| digits.len() <= most)?;
            let rest = self.behind(&digits)?.mended(b"", most - digits.len(), turning)?;
            digits.extend(rest);
            Some(digits)
        })
    }

    /// Whether at most so many insertions of the first letters that there are make no label of it. Each may be one behind the last
    /// in the order of letters.
    fn is_beyond_mending(&self, most: usize, turning: bool) -> bool {
        if is_beyond_mending(&self.text, turning) {
            return true;
        }
        let Some(first) = self.text.first().filter(|_| self.inserted > 0) else { return false };
        let all = traits_of(&self.text);
        let begins = |traits: u16| may_begin(traits, all, turning);
        let is_first =
            |letter: u32| at_least(letter).is_some_and(|block| block.first <= letter && begins(block.traits));
        let is_wrong = first.character == '-' || !begins(first.traits);
        is_wrong && !(self.point..=self.point + most as u32).any(is_first)
    }

    /// The digits of the number that inserts a letter at a place, behind those that it was `begun` with.
    fn digits_to(&self, letter: u32, place: usize, begun: &[u8]) -> Option<Vec<u8>> {
        let places = self.text.len() as u64 + 1;
        let at = u64::from(letter.checked_sub(self.point)?) * places + place as u64;
        let mut delta = at.checked_sub(u64::from(self.place))?;
        let mut digits = Vec::new();
        for number in 0.. {
            let threshold = self.threshold(number);
            let is_last = delta < threshold;
            let radix = u64::from(BASE) - threshold;
            let digit = digit_of(if is_last { delta } else { threshold + (delta - threshold) % radix });
            match begun.get(number as usize) {
                Some(&known) if known != digit || is_last => return None,
                Some(_) => {}
                None => digits.push(digit),
            }
            if is_last {
                break;
            }
            delta = (delta - threshold) / radix;
        }
        Some(digits)
    }

    /// Behind more digits.
    fn behind(&self, digits: &[u8]) -> Option<Decoder> {
        let mut next = self.clone();
        digits.iter().try_for_each(|&digit| next.push(value_of(digit)))?;
        Some(next)
    }
}

fn value_of(digit: u8) -> u64 {
    u64::from(if digit.is_ascii_digit() { digit - b'0' + 26 } else { digit - b'a' })
}

fn digit_of(value: u64) -> u8 {
    if value < 26 { b'a' + value as u8 } else { b'0' + (value - 26) as u8 }
}

/// A character of a label, and what the rules say of it.
#[derive(Clone, Copy, Debug)]
struct Character {
    character: char,
    traits: u16,
}

/// Letters from left to right that may be the first character.
const FORTH: u16 = 1;
/// Letters from right to left.
const BACK: u16 = 1 << 1;
const MARK: u16 = 1 << 2;
const SPACING_MARK: u16 = 1 << 3;
const DIGIT: u16 = 1 << 4;
const ARABIC_DIGIT: u16 = 1 << 5;
const VIRAMA: u16 = 1 << 6;
const JOINS_AHEAD: u16 = 1 << 7;
const JOINS_BACK: u16 = 1 << 8;
const GREEK: u16 = 1 << 9;
const HEBREW: u16 = 1 << 10;
const KANA: u16 = 1 << 11;
/// Characters that ask for others beside them.
const IN_CONTEXT: u16 = 1 << 12;

impl Character {
    fn of(character: char) -> Character {
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

    fn is(self, traits: u16) -> bool {
        self.traits & traits != 0
    }
}

/// In which names a label may stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// In names without letters from right to left.
    Plain,
    /// In all names.
    Forth,
    /// In names with letters from right to left, for it has some.
    Back,
}

/// The kind of a label, of characters that labels may have; the rules are those of [`super::idn`]. `None` where they are broken.
fn kind(text: &[Character]) -> Option<Kind> {
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

/// Whether the characters that ask for others have them beside them.
fn are_in_context(text: &[Character]) -> bool {
    text.iter().enumerate().filter(|(_, this)| this.is(IN_CONTEXT)).all(|(index, this)| {
        let before = index.checked_sub(1).map(|before| text[before]);
        let behind = text.get(index + 1).copied();
        match this.character {
            '\u{b7}' => [before, behind].iter().all(|other| other.is_some_and(|other| other.character == 'l')),
            '\u{375}' => behind.is_some_and(|behind| behind.is(GREEK)),
            '\u{5f3}' | '\u{5f4}' => before.is_some_and(|before| before.is(HEBREW)),
            '\u{200d}' => before.is_some_and(|before| before.is(VIRAMA)),
            '\u{200c}' => before.is_some_and(|before| before.is(VIRAMA)) || joins(text, index),
            '\u{30fb}' => text.iter().any(|other| other.is(KANA)),
            _ => true,
        }
    })
}

/// Whether characters of a label with letters from right to left, which have these traits together, are none that stand side by
/// side.
fn is_mixed(text: &[Character], all: u16) -> bool {
    let is_part = |this: &Character| {
        this.is(BACK | MARK | DIGIT | ARABIC_DIGIT) || matches!(this.character, '-' | '\u{200c}' | '\u{200d}')
    };
    all & DIGIT != 0 && all & ARABIC_DIGIT != 0 || !text.iter().all(is_part)
}

/// What the rules say of any of the characters.
fn traits_of(text: &[Character]) -> u16 {
    text.iter().fold(0, |all, this| all | this.traits)
}

/// Whether a label may begin with a character of these traits, where it has characters of all of those.
fn may_begin(traits: u16, all: u16, turning: bool) -> bool {
    let may = if all & (BACK | ARABIC_DIGIT) != 0 { BACK } else { FORTH | BACK };
    traits & (MARK | SPACING_MARK) == 0 && (!turning || traits & may != 0)
}

/// Whether no insertion makes characters a label.
fn is_beyond_mending(text: &[Character], turning: bool) -> bool {
    let all = traits_of(text);
    all & (BACK | ARABIC_DIGIT) != 0 && (!turning || is_mixed(text, all))
}

/// Whether there are hyphens in the third and fourth place.
fn has_hyphens(text: &[Character]) -> bool {
    text.get(2..4).is_some_and(|middle| middle.iter().all(|this| this.character == '-'))
}

/// Whether a zero-width non-joiner stands between two letters that would join.
fn joins(text: &[Character], index: usize) -> bool {
    let is_seen = |this: &&Character| !this.is(MARK);
    let before = text[..index].iter().rfind(is_seen);
    let behind = text[index + 1..].iter().find(is_seen);
    before.is_some_and(|before| before.is(JOINS_AHEAD)) && behind.is_some_and(|behind| behind.is(JOINS_BACK))
}

/// At least so many insertions make characters a label.
fn needed(text: &[Character], turning: bool) -> usize {
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
    // Where they are near each other, one insertion may do.
    if text.len() > 4 { front + end } else { front.max(end) }
}

/// Sorted, disjoint ranges of characters.
#[derive(Default)]
struct Ranges(Vec<(char, char)>);

impl Ranges {
    fn of(class: &str) -> Ranges {
        let mut ranges = Ranges::default();
        let options = PatternOptions { dialect: Dialect::Nested, anchoring: Anchoring::Whole };
        parse_pattern(&mut ExprSet::new(), class, &options, &mut ranges)
            .expect("the classes of this file are well-formed");
        ranges.0.sort_unstable();
        ranges
    }

    fn has(&self, character: char) -> bool {
        let next = self.0.partition_point(|&(_, last)| last < character);
        self.0.get(next).is_some_and(|&(first, _)| first <= character)
    }
}

/// Keeps the characters of a class.
impl Alphabet for Ranges {
    fn class(&mut self, exprs: &mut ExprSet, ranges: &[(char, char)]) -> ExprId {
        self.0.extend_from_slice(ranges);
        exprs.literal(b"x")
    }
}

/// Characters beyond ASCII that may stand in a label, one after the other, of which the rules say the same.
struct Block {
    first: u32,
    last: u32,
    traits: u16,
}

/// All blocks in order, which are asked for each digit that is read.
struct Blocks {
    blocks: Vec<Block>,
    /// By pages of code points, the first block that does not end before.
    pages: Vec<u16>,
}

impl Blocks {
    /// Code points to a page: few blocks begin in one.
    const PAGE: u32 = 64;

    fn new(blocks: Vec<Block>) -> Blocks {
        let end = blocks.last().map_or(0, |block| block.last / Blocks::PAGE + 1);
        let first = |page: u32| blocks.partition_point(|block| block.last < page * Blocks::PAGE);
        let pages = (0..end).map(|page| u16::try_from(first(page)).expect("there are a few thousand blocks")).collect();
        Blocks { blocks, pages }
    }
}

/// The first block with characters from a code point on.
fn at_least(point: u32) -> Option<&'static Block> {
    static BLOCKS: OnceLock<Blocks> = OnceLock::new();
    let known = BLOCKS.get_or_init(|| {
        let _held = Held::new();
        Blocks::new(unwatched(blocks))
    });
    let &first = known.pages.get((point / Blocks::PAGE) as usize)?;
    known.blocks[usize::from(first)..].iter().find(|block| block.last >= point)
}

fn blocks() -> Vec<Block> {
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

#[cfg(test)]
mod tests;
