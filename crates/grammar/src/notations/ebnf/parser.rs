//! What is open while an EBNF text is read, and the small steps that every part of the reading takes.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use stencilm_regex::syntax::{Alphabet, Anchoring, Dialect, PatternErrorKind, PatternOptions, Utf8, parse_pattern};
use stencilm_regex::{ExprId, ExprSet};

use super::escapes::Ranges;
use super::scan::Word;
use super::scanner::Scanner;
use super::tree::{Container, Part, PartId, Text};
use crate::error::ErrorKind;
use crate::ir::grammar::Mark;
use crate::ir::syntax_error::SyntaxError;
use crate::notations::symbols::SymbolTables;

/// The attributes in brackets between the name of a rule and `::=`.
#[derive(Clone, Default)]
pub(super) struct Attributes {
    pub place: usize,
    pub lazy: bool,
    pub capture: Option<String>,
    pub max_chars: Option<u32>,
    pub max_tokens: Option<Mark>,
    pub temperature: Option<Mark>,
}

/// The part of an object or an array that comes next.
pub(super) enum Entry {
    Surface(&'static str),
    Key(Slot),
    Value(Slot, Option<PartId>),
}

/// What the value of an entry belongs to.
pub(super) enum Slot {
    Member {
        name: String,
        required: bool,
    },
    Others,
    /// The value that at least one of the other members must have.
    Some,
    /// An element at a new leading position, or with `also` another alternative at the last one.
    Place {
        also: bool,
        counts: u32,
    },
    /// An element at any later position.
    Rest {
        counts: u32,
    },
}

/// What an opening bracket, or a rule, does with its alternatives.
pub(super) enum Opener {
    Rule(u32, Attributes),
    Group,
    /// `(= ...)`
    Lookahead,
    Lexeme,
    Lazy,
    Not,
    Marked(Mark),
    Entry(Entry),
}

/// Alternatives that are being read.
pub(super) struct Level {
    pub opener: Opener,
    pub place: usize,
    pub choices: Vec<PartId>,
    pub conjuncts: Vec<PartId>,
    pub items: Vec<PartId>,
    /// The position of each `~` before the next item.
    pub complements: Vec<usize>,
    /// Whether there was a `|` or a `&`.
    pub has_sign: bool,
}

impl Level {
    pub fn new(opener: Opener, place: usize) -> Level {
        let (choices, conjuncts, items, complements) = Default::default();
        Level { opener, place, choices, conjuncts, items, complements, has_sign: false }
    }
}

/// The state while an EBNF text is parsed.
pub(super) struct Parser<'a> {
    pub scanner: Scanner<'a>,
    pub text: Text,
    pub exprs: &'a mut ExprSet,
    pub symbols: &'a SymbolTables,
    pub classes: FxHashMap<Ranges, ExprId>,
    pub levels: Vec<Level>,
    /// The open objects and arrays, each with the position where it began.
    pub containers: Vec<(usize, Container)>,
    /// A word that was read ahead.
    pub ahead: Option<(usize, Word)>,
    /// The names of macros that are not those of rules.
    pub macros: Vec<&'static str>,
}

impl Parser<'_> {
    pub(super) fn next(&mut self) -> Result<(usize, Word), SyntaxError> {
        match self.ahead.take() {
            Some(word) => Ok(word),
            None => self.scanner.next(),
        }
    }

    /// Consumes the next word if it is this sign; returns whether it did.
    pub(super) fn takes(&mut self, sign: char) -> Result<bool, SyntaxError> {
        let (place, word) = self.next()?;
        if word == Word::Sign(sign) {
            return Ok(true);
        }
        self.ahead = Some((place, word));
        Ok(false)
    }

    pub(super) fn expect(&mut self, sign: char, after: &str) -> Result<(), SyntaxError> {
        let (place, word) = self.next()?;
        if word == Word::Sign(sign) {
            return Ok(());
        }
        Err(SyntaxError::at(place, format!("{} stands where `{sign}` must follow {after}", word.shown())))
    }

    pub(super) fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("words within a rule are read at some level")
    }

    pub(super) fn class(&mut self, ranges: Ranges) -> ExprId {
        if let Some(&known) = self.classes.get(&ranges) {
            return known;
        }
        let expr = Utf8.class(self.exprs, &ranges);
        self.classes.insert(ranges, expr);
        expr
    }

    pub(super) fn pattern(&mut self, place: usize, pattern: &str) -> Result<ExprId, SyntaxError> {
        self.pattern_after(place, pattern, 0)
    }

    /// A pattern with flags. Within a JSON string it matches only texts without escapes.
    pub(super) fn flagged(
        &mut self,
        place: usize,
        pattern: &str,
        flags: &str,
        json_string: bool,
    ) -> Result<ExprId, SyntaxError> {
        if let Some(flag) = flags.chars().find(|flag| !"imsxu".contains(*flag)) {
            let message = format!("the flag {flag:?} of the pattern is not known; there are i, m, s, x and u");
            return Err(SyntaxError::at(place, message));
        }
        // Patterns always match characters, so `u` changes nothing.
        let flags: BTreeSet<char> = flags.chars().filter(|&flag| flag != 'u').collect();
        let expr = if flags.is_empty() {
            self.pattern(place, pattern)?
        } else {
            let flags: String = flags.into_iter().collect();
            // With flag `x`, a comment ends with its line.
            let end = if flags.contains('x') { "\n)" } else { ")" };
            let flagged = self.pattern_after(place, &format!("(?{flags}:{pattern}{end}"), flags.len() + 3);
            // Only the pattern alone gives the right position of a missing bracket.
            flagged.map_err(|error| self.pattern(place, pattern).err().unwrap_or(error))?
        };
        if !json_string {
            return Ok(expr);
        }
        let plain = Utf8.class(self.exprs, &[(' ', '!'), ('#', '['), (']', char::MAX)]);
        let plain = self.exprs.repeat(plain, 0, None);
        Ok(self.exprs.and(&[expr, plain]))
    }

    /// Reads a pattern whose first `before` characters are not in the text.
    fn pattern_after(&mut self, place: usize, pattern: &str, before: usize) -> Result<ExprId, SyntaxError> {
        let options = PatternOptions { dialect: Dialect::Standard, anchoring: Anchoring::Whole };
        parse_pattern(self.exprs, pattern, &options, &mut Utf8).map_err(|error| {
            let kind = match error.kind {
                PatternErrorKind::Syntax => ErrorKind::Syntax,
                PatternErrorKind::Unsupported => ErrorKind::Unsupported,
                PatternErrorKind::Limit => ErrorKind::Limit,
            };
            let place = (place + 1 + error.offset.saturating_sub(before)).min(self.scanner.offset);
            SyntaxError { kind, ..SyntaxError::at(place, error.message) }
        })
    }

    /// Adds an item, with the operators after and before it.
    pub(super) fn item(&mut self, mut item: PartId) -> Result<(), SyntaxError> {
        let place = self.text.places[item.index()];
        loop {
            let (at, word) = self.next()?;
            let (min, max) = match word {
                Word::Sign('*') => (0, None),
                Word::Sign('+') => (1, None),
                Word::Sign('?') => (0, Some(1)),
                Word::Count(min, max) => (min, max),
                _ => {
                    self.ahead = Some((at, word));
                    break;
                }
            };
            item = self.text.add(place, Part::Repeat { body: item, min, max });
        }
        for place in std::mem::take(&mut self.level().complements).into_iter().rev() {
            item = self.text.add(place, Part::Complement(item));
        }
        self.level().items.push(item);
        Ok(())
    }
}
