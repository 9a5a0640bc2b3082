//! JSON strings as expressions: which byte sequences spell a character between the quotes (RFC 8259 section 7).
//!
//! A character is spelled plainly in UTF-8, by a short escape, by `\uXXXX`, or by an escaped surrogate pair; all of
//! them decode to one character, so spellings can be counted, searched and complemented like characters. Two alphabets:
//! every spelling, and the natural one, in which printable ASCII has exactly one. With the fewest escapes every
//! character has exactly one in both.

use std::convert::Infallible;

use stencilm_regex::syntax::{Alphabet, Utf8};
use stencilm_regex::{ByteSet, ExprId, ExprSet, LONG_TEXT};
use stencilm_support::{LimitExceeded, check_time};

use super::common::{Common, Ranges, Tables};
use super::spelling::Spelling;

/// Short escapes: the character, and the letter after the backslash.
const SHORT: [(char, u8); 8] = [
    ('"', b'"'),
    ('\\', b'\\'),
    ('/', b'/'),
    ('\u{8}', b'b'),
    ('\u{c}', b'f'),
    ('\n', b'n'),
    ('\r', b'r'),
    ('\t', b't'),
];

/// Characters that a JSON string can only contain escaped.
const NEVER_PLAIN: [(u32, u32); 3] = [(0, 0x1f), (0x22, 0x22), (0x5c, 0x5c)];

/// The spellings that were already built, and the spelling of constrained strings.
pub(crate) struct Strings {
    pub(super) spelling: Spelling,
    /// Whether only what must be escaped is escaped, in one way.
    is_minimal: bool,
    /// The expressions that are built once for all grammars, if they are used.
    pub(super) common: Option<&'static Common>,
    pub(super) own: Tables,
    /// Texts that no written string may contain, and the strings that don't contain them.
    without: Option<(Box<[Box<str>]>, ExprId)>,
}

impl Strings {
    /// Strings in a spelling. `common` may be given if the set of expressions begins with the common ones.
    pub(super) fn over(spelling: Spelling, common: Option<&'static Common>) -> Strings {
        Strings { spelling, is_minimal: false, common, own: Tables::default(), without: None }
    }

    /// For any set of expressions.
    pub(crate) fn alone(spelling: Spelling) -> Strings {
        Strings::over(spelling, None)
    }

    /// Strings with the fewest escapes, one spelling for each character, as `json.dumps(ensure_ascii=False)` writes
    /// them.
    pub(crate) fn minimal(spelling: Spelling) -> Strings {
        Strings { is_minimal: true, ..Strings::alone(spelling) }
    }

    /// Whether written strings must not contain some texts.
    pub(crate) fn are_restricted(&self) -> bool {
        self.without.is_some()
    }

    /// Forbids these texts in all written strings, because they would end the value around the string or are excluded:
    /// they must be escaped. `without` are the strings that contain none of them, with their quotes.
    pub(crate) fn never(&mut self, texts: Box<[Box<str>]>, without: ExprId) {
        self.without = Some((texts, without));
    }

    /// Whether a text contains something that would have to be escaped.
    fn is_forbidden(&self, text: &str) -> bool {
        self.without.as_ref().is_some_and(|(never, _)| never.iter().any(|never| text.contains(&**never)))
    }

    /// Whether a constrained character may have several spellings.
    pub(crate) fn have_many_spellings(&self) -> bool {
        self.spelling == Spelling::Any
    }

    /// Whether strings are bare: without quotes and escapes.
    pub(crate) fn are_bare(&self) -> bool {
        self.spelling == Spelling::Bare
    }

    /// The strings among these that may be written.
    fn allowed(&self, exprs: &mut ExprSet, strings: ExprId) -> ExprId {
        match &self.without {
            Some((_, without)) => exprs.and(&[strings, *without]),
            None => strings,
        }
    }

    /// The spellings that were built.
    pub(crate) fn into_tables(self) -> Tables {
        self.own
    }

    /// Looks something up in the common tables, then in those built here.
    pub(super) fn known(&self, find: impl Fn(&Tables) -> Option<ExprId>) -> Option<ExprId> {
        self.common.and_then(|common| find(&common.tables)).or_else(|| find(&self.own))
    }

    /// The alphabet of constrained strings, for patterns.
    pub(crate) fn alphabet(&mut self) -> Spelled<'_> {
        let spelling = self.spelling;
        Spelled { strings: self, spelling }
    }

    /// Any string of `min` to `max` characters, in any spelling, with its quotes.
    pub(crate) fn any_string(&mut self, exprs: &mut ExprSet, min: u32, max: Option<u32>) -> ExprId {
        if self.spelling == Spelling::Bare {
            let character = self.class(exprs, Spelling::Bare, &[(0, 0x10ffff)]);
            return exprs.repeat(character, min, max);
        }
        if let (Some(known), 0, None) = (self.known(|tables| tables.quoted_any), min, max) {
            return self.allowed(exprs, known);
        }
        let body = self.any_body(exprs, min, max);
        let string = quote(exprs, body);
        let string = self.allowed(exprs, string);
        if (min, max) == (0, None) {
            self.own.quoted_any = Some(string);
        }
        string
    }

    /// The text between the quotes of any string of `min` to `max` characters, in any spelling.
    pub(crate) fn any_body(&mut self, exprs: &mut ExprSet, min: u32, max: Option<u32>) -> ExprId {
        let character = self.class(exprs, Spelling::Any, &[(0, 0x10ffff)]);
        exprs.repeat(character, min, max)
    }

    /// Any of these strings, with quotes, in the current spelling.
    pub(crate) fn literals(&mut self, exprs: &mut ExprSet, texts: &[&str]) -> ExprId {
        let Ok(literals) = self.literals_while(exprs, texts, || Ok::<_, Infallible>(()));
        literals
    }

    /// As [`Strings::literals`], for the strings of a schema, which may be long or numerous.
    ///
    /// # Errors
    /// A limit, where it takes too long.
    pub(crate) fn literals_in_time(&mut self, exprs: &mut ExprSet, texts: &[&str]) -> Result<ExprId, LimitExceeded> {
        self.literals_while(exprs, texts, check_time)
    }

    fn literals_while<E>(
        &mut self,
        exprs: &mut ExprSet,
        texts: &[&str],
        may_go_on: impl Fn() -> Result<(), E>,
    ) -> Result<ExprId, E> {
        let mark = exprs.literal(if self.spelling == Spelling::Bare { &b""[..] } else { b"\"" });
        let (escaped, plain): (Vec<&str>, Vec<&str>) = texts.iter().partition(|text| self.is_forbidden(text));
        if escaped.is_empty() {
            let rest = self.trie(exprs, texts, mark, may_go_on)?;
            return Ok(exprs.concat(mark, rest));
        }
        let plain = self.trie(exprs, &plain, mark, &may_go_on)?;
        let spelling = std::mem::replace(&mut self.spelling, Spelling::Any);
        let escaped = self.trie(exprs, &escaped, mark, may_go_on);
        self.spelling = spelling;
        let rest = exprs.or(&[plain, escaped?]);
        let literals = exprs.concat(mark, rest);
        Ok(self.allowed(exprs, literals))
    }

    /// The key of a declared member with this name, as in [`DeclaredMember::key`](crate::DeclaredMember::key).
    ///
    /// # Errors
    /// A limit, where it takes too long.
    pub(crate) fn key(&mut self, exprs: &mut ExprSet, name: &str) -> Result<Option<ExprId>, LimitExceeded> {
        let is_plain = self.spelling == Spelling::Natural && is_plain(name) && !self.is_forbidden(name);
        if is_plain { Ok(None) } else { self.literals_in_time(exprs, &[name]).map(Some) }
    }

    /// Any of these strings, with quotes, in every spelling.
    ///
    /// # Errors
    /// A limit, where it takes too long.
    pub(crate) fn literals_in_any_spelling(
        &mut self,
        exprs: &mut ExprSet,
        texts: &[&str],
    ) -> Result<ExprId, LimitExceeded> {
        // Bare text has only one spelling.
        let every = if self.spelling == Spelling::Bare { Spelling::Bare } else { Spelling::Any };
        let spelling = std::mem::replace(&mut self.spelling, every);
        let literals = self.literals_in_time(exprs, texts);
        self.spelling = spelling;
        literals
    }

    /// Any string, with quotes, in the spelling of constrained strings.
    pub(crate) fn any_constrained(&mut self, exprs: &mut ExprSet) -> ExprId {
        let character = self.class(exprs, self.spelling, &[(0, 0x10ffff)]);
        let body = exprs.repeat(character, 0, None);
        self.quoted(exprs, body)
    }

    /// A body with quotes, if the spelling has quotes.
    pub(crate) fn quoted(&self, exprs: &mut ExprSet, body: ExprId) -> ExprId {
        if self.spelling == Spelling::Bare {
            return body;
        }
        let quoted = quote(exprs, body);
        self.allowed(exprs, quoted)
    }

    /// As [`Strings::literals`], without quotes.
    pub(crate) fn bodies(&mut self, exprs: &mut ExprSet, texts: &[&str]) -> ExprId {
        let Ok(bodies) = self.trie(exprs, texts, ExprId::EMPTY, || Ok::<_, Infallible>(()));
        bodies
    }

    /// A trie over the characters of the texts; every edge has all spellings of its character, and every text is
    /// followed by `end`.
    fn trie<E>(
        &mut self,
        exprs: &mut ExprSet,
        texts: &[&str],
        end: ExprId,
        may_go_on: impl Fn() -> Result<(), E>,
    ) -> Result<ExprId, E> {
        if let [text] = texts
            && text.len() <= LONG_TEXT
        {
            return text.chars().rev().try_fold(end, |tail, character| {
                may_go_on()?;
                let head = self.character(exprs, self.spelling, character);
                // Printable ASCII has only its plain spelling.
                let is_byte = matches!(character, ' '..='~') && !matches!(character, '"' | '\\');
                Ok(if is_byte && self.spelling == Spelling::Natural {
                    exprs.byte_then(head, tail)
                } else {
                    exprs.concat(head, tail)
                })
            });
        }
        let mut sorted: Vec<&str> = texts.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        // `path` is the current text. For each prefix of it, `open` says where its continuations in `alternatives`
        // start.
        let mut path: Vec<char> = Vec::new();
        let mut open: Vec<usize> = vec![0];
        let mut alternatives: Vec<ExprId> = Vec::new();
        for (at, text) in sorted.iter().enumerate() {
            let common = path.iter().zip(text.chars()).take_while(|(a, b)| **a == *b).count();
            self.close_to(exprs, common, &mut path, &mut open, &mut alternatives, &may_go_on)?;
            let mut shared = text.len();
            let mut tail = end;
            if text.len() > LONG_TEXT {
                // The part that no other text shares is split into pieces.
                let next = sorted.get(at + 1).unwrap_or(&"");
                let with_next = text.chars().zip(next.chars()).take_while(|(a, b)| a == b).count();
                shared = text.char_indices().nth(common.max(with_next)).map_or(text.len(), |(at, _)| at);
                tail = exprs.spelled(&text[shared..], end, |exprs, character| {
                    may_go_on()?;
                    Ok(self.character(exprs, self.spelling, character))
                })?;
            }
            for character in text[..shared].chars().skip(common) {
                path.push(character);
                open.push(alternatives.len());
            }
            alternatives.push(tail);
        }
        self.close_to(exprs, 0, &mut path, &mut open, &mut alternatives, &may_go_on)?;
        Ok(exprs.or(&alternatives))
    }

    fn close_to<E>(
        &mut self,
        exprs: &mut ExprSet,
        depth: usize,
        path: &mut Vec<char>,
        open: &mut Vec<usize>,
        alternatives: &mut Vec<ExprId>,
        may_go_on: &impl Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        while path.len() > depth
            && let (Some(character), Some(start)) = (path.pop(), open.pop())
        {
            may_go_on()?;
            let head = self.character(exprs, self.spelling, character);
            let tail = if let [only] = alternatives[start..] { only } else { exprs.or(&alternatives[start..]) };
            alternatives.truncate(start);
            alternatives.push(exprs.concat(head, tail));
        }
        Ok(())
    }

    /// One given character, in every spelling of the alphabet.
    fn character(&mut self, exprs: &mut ExprSet, spelling: Spelling, character: char) -> ExprId {
        if let Some(common) = self.common
            && spelling == Spelling::Natural
            && let Some(known) = common.ascii(character)
        {
            return known;
        }
        if let Some(known) = self.known(|tables| tables.characters[spelling as usize].get(&character).copied()) {
            return known;
        }
        let code = u32::from(character);
        let class = self.class(exprs, spelling, &[(code, code)]);
        self.own.characters[spelling as usize].insert(character, class);
        class
    }

    /// One character of the ranges, in every spelling of the alphabet.
    fn class(&mut self, exprs: &mut ExprSet, spelling: Spelling, ranges: &[(u32, u32)]) -> ExprId {
        let ranges = without_surrogates(ranges);
        if let Some(known) = self.known(|tables| tables.classes[spelling as usize].get(&ranges).copied()) {
            return known;
        }
        let never_plain: &[(u32, u32)] = if spelling == Spelling::Bare { &[] } else { &NEVER_PLAIN };
        let plain: Vec<(char, char)> = subtract(&ranges, never_plain)
            .into_iter()
            .filter_map(|(first, last)| Some((char::from_u32(first)?, char::from_u32(last)?)))
            .collect();
        let mut alternatives = vec![Utf8.class(exprs, &plain)];
        if spelling == Spelling::Bare {
            self.own.classes[spelling as usize].insert(ranges, alternatives[0]);
            return alternatives[0];
        }
        let backslash = exprs.literal(b"\\");
        let has_short = |character: char| match spelling {
            Spelling::Any => character != '/' || !self.is_minimal,
            Spelling::Natural | Spelling::Bare => character != '/',
        };
        let short: ByteSet = SHORT
            .iter()
            .filter(|(character, _)| has_short(*character) && contains(&ranges, u32::from(*character)))
            .map(|&(_, letter)| letter)
            .collect();
        let short = exprs.bytes(short);
        alternatives.push(exprs.concat(backslash, short));
        if self.is_minimal {
            let is_short = |code: u32| SHORT.iter().any(|(character, _)| u32::from(*character) == code);
            for code in (0..0x20).filter(|&code| contains(&ranges, code) && !is_short(code)) {
                alternatives.push(exprs.literal(format!("\\u{code:04x}").as_bytes()));
            }
        } else {
            let numbered = match spelling {
                Spelling::Any => ranges.clone(),
                Spelling::Natural | Spelling::Bare => subtract(&ranges, &[(0x20, 0x7e)]),
            };
            alternatives.push(self.numbered(exprs, &numbered));
        }
        let class = exprs.or(&alternatives);
        self.own.classes[spelling as usize].insert(ranges, class);
        class
    }

    /// `\uXXXX` for the code points up to U+FFFF, and surrogate pairs for those above.
    fn numbered(&mut self, exprs: &mut ExprSet, ranges: &[(u32, u32)]) -> ExprId {
        let escape = exprs.literal(b"\\u");
        let low = intersect(ranges, 0, 0xffff);
        let low = self.hex(exprs, low, 4);
        let mut alternatives = vec![exprs.concat(escape, low)];
        // Equal sets of low surrogates share one expression, for all high surrogates that lead to them. Between the
        // high surrogates where a range starts or ends, all lead to the same set.
        let mut halves: Vec<(Ranges, Ranges)> = Vec::new();
        let astral = intersect(ranges, 0x10000, 0x10ffff);
        let first_half = |code: u32| (code - 0x10000) >> 10;
        let mut cuts: Vec<u32> = astral.iter().flat_map(|&(from, to)| [first_half(from), first_half(to)]).collect();
        cuts.dedup();
        let gaps = cuts.windows(2).map(|pair| (pair[0] + 1, pair[1] - 1));
        for (first, last) in cuts.iter().map(|&cut| (cut, cut)).chain(gaps).filter(|(first, last)| first <= last) {
            let start = 0x10000 + (first << 10);
            let seconds = intersect(&astral, start, start + 0x3ff);
            if seconds.is_empty() {
                continue;
            }
            let seconds: Ranges =
                seconds.iter().map(|&(from, to)| (from - start + 0xdc00, to - start + 0xdc00)).collect();
            let firsts = (0xd800 + first, 0xd800 + last);
            match halves.iter_mut().find(|(known, _)| *known == seconds) {
                Some((_, known)) => known.push(firsts),
                None => halves.push((seconds, vec![firsts])),
            }
        }
        for (seconds, mut firsts) in halves {
            firsts.sort_unstable();
            let first = self.hex(exprs, firsts, 4);
            let second = self.hex(exprs, seconds, 4);
            alternatives.push(exprs.concat_all(&[escape, first, escape, second]));
        }
        exprs.or(&alternatives)
    }

    /// Numbers of the ranges as hexadecimal digits in either case: a trie that shares equal branches.
    fn hex(&mut self, exprs: &mut ExprSet, ranges: Ranges, length: u32) -> ExprId {
        if ranges.is_empty() {
            return ExprId::NOTHING;
        }
        if length == 0 {
            return ExprId::EMPTY;
        }
        if let [(code, last)] = *ranges
            && code == last
        {
            let digits = (0..length).rev().map(|place| code >> (4 * place) & 15);
            let letters: Vec<ExprId> = digits.map(|digit| exprs.bytes(hex_digit(digit))).collect();
            return exprs.concat_all(&letters);
        }
        let key = (ranges, length);
        if let Some(known) = self.known(|tables| tables.hex.get(&key).copied()) {
            return known;
        }
        let width = 1u32 << (4 * (length - 1));
        let mut branches: Vec<(Ranges, ByteSet)> = Vec::new();
        for digit in 0..16 {
            let start = digit * width;
            let rest = intersect(&key.0, start, start + width - 1);
            if rest.is_empty() {
                continue;
            }
            let rest: Ranges = rest.iter().map(|&(from, to)| (from - start, to - start)).collect();
            let position = branches.iter().position(|(known, _)| *known == rest).unwrap_or_else(|| {
                branches.push((rest, ByteSet::EMPTY));
                branches.len() - 1
            });
            branches[position].1 = branches[position].1.union(&hex_digit(digit));
        }
        let alternatives: Vec<ExprId> = branches
            .into_iter()
            .map(|(rest, letters)| {
                let head = exprs.bytes(letters);
                let tail = self.hex(exprs, rest, length - 1);
                exprs.concat(head, tail)
            })
            .collect();
        let expr = exprs.or(&alternatives);
        self.own.hex.insert(key, expr);
        expr
    }
}

/// Characters as they are spelled in a JSON string.
pub(crate) struct Spelled<'a> {
    strings: &'a mut Strings,
    spelling: Spelling,
}

impl Alphabet for Spelled<'_> {
    fn class(&mut self, exprs: &mut ExprSet, ranges: &[(char, char)]) -> ExprId {
        let ranges: Ranges = ranges.iter().map(|&(first, last)| (u32::from(first), u32::from(last))).collect();
        self.strings.class(exprs, self.spelling, &ranges)
    }
}

/// Double quotes around a body.
pub(crate) fn quote(exprs: &mut ExprSet, body: ExprId) -> ExprId {
    let mark = exprs.literal(b"\"");
    exprs.concat_all(&[mark, body, mark])
}

/// A hexadecimal digit in either case.
fn hex_digit(digit: u32) -> ByteSet {
    let letter = char::from_digit(digit, 16).expect("a hexadecimal digit is below 16") as u8;
    [letter, letter.to_ascii_uppercase()].into_iter().collect()
}

fn contains(ranges: &[(u32, u32)], code: u32) -> bool {
    ranges.iter().any(|&(first, last)| (first..=last).contains(&code))
}

fn intersect(ranges: &[(u32, u32)], first: u32, last: u32) -> Ranges {
    let overlap = |&(from, to): &(u32, u32)| (from.max(first), to.min(last));
    ranges.iter().map(overlap).filter(|(from, to)| from <= to).collect()
}

/// The ranges without some holes, which must be sorted and disjoint.
fn subtract(ranges: &[(u32, u32)], holes: &[(u32, u32)]) -> Ranges {
    let mut result = Vec::new();
    for &(first, last) in ranges {
        let mut start = first;
        for &(from, to) in holes.iter().filter(|(from, to)| *from <= last && *to >= first) {
            if start < from {
                result.push((start, from - 1));
            }
            start = start.max(to + 1);
        }
        if start <= last {
            result.push((start, last));
        }
    }
    result
}

fn without_surrogates(ranges: &[(u32, u32)]) -> Ranges {
    subtract(ranges, &[(0xd800, 0xdfff)])
}

/// A spelling between the quotes that both alphabets contain.
pub(crate) fn spelled(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => spelled.push_str("\\\""),
            '\\' => spelled.push_str("\\\\"),
            '\x08' => spelled.push_str("\\b"),
            '\x0c' => spelled.push_str("\\f"),
            '\n' => spelled.push_str("\\n"),
            '\r' => spelled.push_str("\\r"),
            '\t' => spelled.push_str("\\t"),
            '\0'..='\x1f' => spelled.push_str(&format!("\\u{:04x}", u32::from(character))),
            other => spelled.push(other),
        }
    }
    spelled
}

/// Whether a text is printable ASCII that JSON writes without escapes.
pub(crate) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\')
}

/// Any of these strings as a JSON string with its quotes, in every spelling, for the expressions of any grammar.
pub fn json_strings_of(exprs: &mut ExprSet, texts: &[&str]) -> ExprId {
    Strings::alone(Spelling::Any).literals(exprs, texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencilm_regex::{Deriver, Limits};

    fn check(expr: ExprId, deriver: &mut Deriver, accepted: &[&str], rejected: &[&str]) {
        for (texts, expected) in [(accepted, true), (rejected, false)] {
            for text in texts {
                assert_eq!(deriver.matches(expr, text.as_bytes()).unwrap(), expected, "{text}");
            }
        }
    }

    #[test]
    fn any_string_counts_characters() {
        let mut deriver = Deriver::new(Limits::default());
        let expr = Strings::alone(Spelling::Natural).any_string(&mut deriver.exprs, 1, Some(2));
        let accepted = [
            r#""a""#,
            r#""é😀""#,
            r#""\ud83d\uDE00x""#,
            r#""\/\n""#,
            r#""\u0000\u00e9""#,
            r#""\\""#,
            r#""\"\"""#,
            "\"\u{7f}\"",
        ];
        let rejected = [
            r#""""#,
            r#""abc""#,
            r#""\ud83d""#,
            r#""\ude00""#,
            r#""\ud83d\u0041""#,
            r#""\x""#,
            r#"""""#,
            "\"\n\"",
            r#""\u00e""#,
            r#""a"#,
            r#"a""#,
        ];
        check(expr, &mut deriver, &accepted, &rejected);
    }

    #[test]
    fn natural_literals_spell_ascii_plainly() {
        let mut deriver = Deriver::new(Limits::default());
        let mut strings = Strings::alone(Spelling::Natural);
        let expr = strings.literals(&mut deriver.exprs, &["a/\"\\", "é", "\n", "😀", "\u{7f}"]);
        let accepted = [
            r#""a/\"\\""#,
            r#""é""#,
            r#""\u00e9""#,
            r#""\u00E9""#,
            r#""\n""#,
            r#""\u000a""#,
            r#""\u000A""#,
            r#""😀""#,
            r#""\uD83D\ude00""#,
            "\"\u{7f}\"",
            r#""\u007F""#,
        ];
        let rejected = [r#""\u0061/\"\\""#, r#""a\/\"\\""#, r#""a/\u0022\\""#, r#""e""#, "\"\n\"", r#""""#];
        check(expr, &mut deriver, &accepted, &rejected);
    }

    #[test]
    fn the_fewest_escapes_spell_every_character_once() {
        for spelling in [Spelling::Natural, Spelling::Any] {
            let mut deriver = Deriver::new(Limits::default());
            let mut strings = Strings::minimal(spelling);
            let expr = strings.any_string(&mut deriver.exprs, 1, Some(2));
            let accepted =
                [r#""a/""#, r#""é😀""#, r#""\n\t""#, r#""\b\f""#, r#""\u0000\u001f""#, r#""\\\"""#, "\"\u{7f}\""];
            let rejected = [r#""\/""#, r#""\u0041""#, r#""\u000a""#, r#""\u001F""#, r#""\u00e9""#, r#""\ud83d\ude00""#];
            check(expr, &mut deriver, &accepted, &rejected);
            let literal = strings.literals(&mut deriver.exprs, &["a/\n"]);
            check(literal, &mut deriver, &[r#""a/\n""#], &[r#""a\/\n""#, r#""\u0061/\n""#, r#""a/\u000a""#]);
        }
    }

    #[test]
    fn any_spelling_reaches_every_character() {
        let mut deriver = Deriver::new(Limits::default());
        let mut strings = Strings::alone(Spelling::Any);
        let expr = strings.literals(&mut deriver.exprs, &["a/\""]);
        let accepted = [r#""a/\"""#, r#""\u0061\/\u0022""#, r#""a\u002F\"""#];
        check(expr, &mut deriver, &accepted, &[r#""a/"""#, r#""\a/\"""#]);
    }

    #[test]
    fn classes_are_exact() {
        let cuts =
            [0x41, 0x7f, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x103ff, 0x10400, 0x1abcd, 0x1f600, 0x10fc00, 0x10ffff];
        for (index, &from) in cuts.iter().enumerate() {
            for &to in &cuts[index..] {
                let ranges = [(from, from), (from + (to - from) / 2, to)];
                let ranges = if from == to { &ranges[1..] } else { &ranges[..] };
                let mut deriver = Deriver::new(Limits::default());
                let class = Strings::alone(Spelling::Any).class(&mut deriver.exprs, Spelling::Any, ranges);
                for code in cuts.iter().flat_map(|cut| cut - 1..=cut + 1).chain([0x19999, 0x50000, 0xfffff]) {
                    let Some(character) = char::from_u32(code) else { continue };
                    let escapes: String =
                        character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
                    for text in [character.to_string(), escapes] {
                        let found = deriver.matches(class, text.as_bytes()).unwrap();
                        assert_eq!(found, contains(ranges, code), "{text} in {ranges:x?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_any_character_is_small() {
        let mut exprs = ExprSet::new();
        let before = exprs.len();
        Strings::alone(Spelling::Natural).any_string(&mut exprs, 0, None);
        assert!(exprs.len() - before < 80, "{}", exprs.len() - before);
    }
}
