//! What is open while a Lark text is read, and the small steps that every part of the reading takes.

use super::params::Condition;
use super::scan::{Word, Words};
use super::tree::{Definition, PartId, Unit};
use crate::ir::syntax_error::SyntaxError;

/// The greatest nesting depth of grammars in braces, and of conditions.
pub(super) const MAX_NESTING: usize = 32;

/// What an opening bracket does with its alternatives.
pub(super) enum Opener {
    Definition,
    Group,
    Optional,
    /// `%declares("set": ...)`
    Declares(String),
    /// The arguments of a template so far.
    Arguments(String, Vec<PartId>),
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
    /// The condition of the current alternative.
    pub condition: Option<Condition>,
}

impl Level {
    pub(super) fn new(opener: Opener, place: usize) -> Level {
        let (choices, conjuncts, items, complements, condition) = Default::default();
        Level { opener, place, choices, conjuncts, items, complements, condition }
    }

    pub(super) fn is_empty(&self) -> bool {
        let no_parts = self.choices.is_empty() && self.conjuncts.is_empty() && self.items.is_empty();
        no_parts && self.complements.is_empty()
    }
}

/// A definition with `%override` or `%extend`, which has to wait for the imports.
pub(super) struct Later {
    pub name: String,
    pub definition: Definition,
    pub extends: bool,
}

/// A parsed text, and what waits for its imports.
pub(super) struct Parsed {
    pub unit: Unit,
    pub later: Vec<Later>,
}

/// The state while a Lark text is parsed.
pub(super) struct Parser<'a> {
    pub text: &'a str,
    pub words: Words<'a>,
    pub unit: Unit,
    pub later: Vec<Later>,
    pub levels: Vec<Level>,
    pub ahead: Option<(usize, Word)>,
    /// The nesting depth of grammars in braces.
    pub depth: usize,
}

/// Where a definition is added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Joins {
    New,
    /// `%override`: replaces an imported definition.
    Override,
    /// `%extend`: adds alternatives to an imported definition.
    Extend,
}

impl Parser<'_> {
    pub(super) fn next(&mut self) -> Result<(usize, Word), SyntaxError> {
        match self.ahead.take() {
            Some(word) => Ok(word),
            None => self.words.next(),
        }
    }

    pub(super) fn takes(&mut self, wanted: &Word) -> Result<bool, SyntaxError> {
        let (place, word) = self.next()?;
        if word == *wanted {
            return Ok(true);
        }
        self.ahead = Some((place, word));
        Ok(false)
    }

    pub(super) fn expect(&mut self, sign: char, after: &str) -> Result<(), SyntaxError> {
        match self.next()? {
            (_, Word::Sign(found)) if found == sign => Ok(()),
            (place, word) => {
                Err(SyntaxError::at(place, format!("{} stands where `{sign}` must follow {after}", word.shown())))
            }
        }
    }

    pub(super) fn name(&mut self, what: &str) -> Result<(usize, String), SyntaxError> {
        match self.next()? {
            (place, Word::Name(name)) => Ok((place, name)),
            (place, word) => Err(SyntaxError::at(place, format!("{} stands where {what} must be", word.shown()))),
        }
    }

    pub(super) fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("parts are read at some level")
    }
}
