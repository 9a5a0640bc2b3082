//! What is open while a Lark text is read, and the small steps that every part of the reading takes.

use super::params::Condition;
use super::scan::{Word, Words};
use super::tree::{Definition, PartId, Unit};
use crate::ir::syntax_error::SyntaxError;

/// Deepest nesting of grammars in braces, and of conditions.
pub(super) const MAX_NESTING: usize = 32;

/// What an open bracket makes of its alternatives.
pub(super) enum Opener {
    Definition,
    Group,
    Optional,
    /// The arguments of a template so far.
    Arguments(String, Vec<PartId>),
}

/// Alternatives under way.
pub(super) struct Level {
    pub opener: Opener,
    pub place: usize,
    pub choices: Vec<PartId>,
    pub conjuncts: Vec<PartId>,
    pub items: Vec<PartId>,
    /// Where each `~` before the next item stands.
    pub complements: Vec<usize>,
    /// The condition of the alternative that ends next.
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

/// A definition that was overridden or extended, which imports have to bring in first.
pub(super) struct Later {
    pub name: String,
    pub definition: Definition,
    pub extends: bool,
}

/// A text that has been read, and what waits for its imports.
pub(super) struct Parsed {
    pub unit: Unit,
    pub later: Vec<Later>,
}

/// A Lark text while it is read.
pub(super) struct Parser<'a> {
    pub text: &'a str,
    pub words: Words<'a>,
    pub unit: Unit,
    pub later: Vec<Later>,
    pub levels: Vec<Level>,
    pub ahead: Option<(usize, Word)>,
    /// How many grammars in braces it stands in.
    pub depth: usize,
}

/// Which list of a unit a definition joins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Joins {
    New,
    /// `%override`: in place of an imported one.
    Override,
    /// `%extend`: more alternatives for an imported one.
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
