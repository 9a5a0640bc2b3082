//! The decoder of Punycode (RFC 3492), and digits that make a label of what it has decoded.

use super::characters::{Character, Kind, at_least, is_beyond_mending, kind, may_begin, needed, traits_of};

/// With fewer digits no character of a label can be inserted: the first one is `ß`.
pub(super) const FIRST_INSERTION: usize = 3;
pub(super) const FIRST_LETTER: u32 = 0xdf;
/// Digits of Punycode.
pub(super) const BASE: u32 = 36;

/// A decoder after some of its input (RFC 3492, section 6.2).
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    pub(super) text: Vec<Character>,
    pub(super) inserted: u32,
    pub(super) point: u32,
    place: u32,
    bias: u32,
    pub(super) number: Number,
}

/// An incomplete number: how many digits were read, its value so far, and the weight of the next digit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) digits: u32,
    value: u64,
    weight: u64,
}

/// A number after one more digit.
pub(super) enum Pushed {
    Begun(Number),
    /// The letter and the position that the number stands for, and the number.
    Whole(u32, usize, u64),
}

impl Number {
    pub(super) const NONE: Number = Number { digits: 0, value: 0, weight: 1 };
}

impl Decoder {
    /// `None` if the input is not a prefix of an encoding.
    pub(super) fn read(encoded: &[u8]) -> Option<Decoder> {
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

    /// Whether the decoded text is a label.
    pub(super) fn is_label(&self, turning: bool) -> bool {
        let is_whole = self.number.digits == 0 && self.inserted > 0;
        is_whole && kind(&self.text).is_some_and(|kind| kind != if turning { Kind::Plain } else { Kind::Back })
    }

    fn threshold(&self, digits: u32) -> u64 {
        u64::from((BASE * (digits + 1)).saturating_sub(self.bias).clamp(1, 26))
    }

    /// Reads one more digit; `None` if no character of a label can be inserted any more.
    fn push(&mut self, digit: u64) -> Option<()> {
        match self.pushed(self.number, digit)? {
            Pushed::Begun(number) => self.number = number,
            Pushed::Whole(letter, place, delta) => self.insert(letter, place, delta),
        }
        Some(())
    }

    pub(super) fn pushed(&self, number: Number, digit: u64) -> Option<Pushed> {
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

    /// The letter and the position that a number stands for.
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

    /// A lower bound of the number of digits that make it a label, if it isn't one: an insertion takes at least one.
    pub(super) fn least(&self, turning: bool) -> usize {
        let first = if self.inserted == 0 { FIRST_INSERTION.saturating_sub(self.number.digits as usize) } else { 1 };
        first.max(1) + needed(&self.text, turning).max(1) - 1
    }

    /// Whether some number of digits, from `least` to `most`, makes it a label; they are appended to `digits`.
    pub(super) fn goes_on(
        &self,
        least: usize,
        most: usize,
        turning: bool,
        digits: &mut Vec<u8>,
        tries: &mut u32,
    ) -> bool {
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

    /// As [`Decoder::goes_on`], for an incomplete number; its digits are tried without copying the rest.
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

    /// At most `most` digits that make a label of ASCII letters, by insertions of the first available letters: those of
    /// other letters take at least as many digits. `begun` are the digits of an incomplete number.
    pub(super) fn mended(&self, begun: &[u8], most: usize, turning: bool) -> Option<Vec<u8>> {
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
            let rest = self.after(&digits)?.mended(b"", most - digits.len(), turning)?;
            digits.extend(rest);
            Some(digits)
        })
    }

    /// Whether `most` insertions of the first available letters cannot make a label of it. Each letter may be one after
    /// the last in the order of letters.
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

    /// The digits of the number that inserts a letter at a position, after the digits `begun`.
    pub(super) fn digits_to(&self, letter: u32, place: usize, begun: &[u8]) -> Option<Vec<u8>> {
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

    /// The decoder after more digits.
    pub(super) fn after(&self, digits: &[u8]) -> Option<Decoder> {
        let mut next = self.clone();
        digits.iter().try_for_each(|&digit| next.push(value_of(digit)))?;
        Some(next)
    }
}

pub(super) fn value_of(digit: u8) -> u64 {
    u64::from(if digit.is_ascii_digit() { digit - b'0' + 26 } else { digit - b'a' })
}

pub(super) fn digit_of(value: u64) -> u8 {
    if value < 26 { b'a' + value as u8 } else { b'0' + (value - 26) as u8 }
}
