//! One error for every notation: its kind, its location, and one sentence with the value and the way out.

use std::fmt;

use stencilm_support::{LimitExceeded, unless_ended};

/// What went wrong; Python raises one exception class for each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The text is not valid in its notation.
    Syntax,
    /// The notation allows it, but it cannot be enforced exactly.
    Unsupported,
    /// No text can match.
    Unsatisfiable,
    /// A limit of size, depth or work was exceeded.
    Limit,
}

/// A grammar that cannot be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GrammarError {
    /// What went wrong.
    pub kind: ErrorKind,
    /// Where: a JSON pointer such as `#/properties/age`, or `line 3, column 7`, or `offset 12`. Empty if unknown.
    pub place: String,
    /// The details and what to do instead, as one sentence without the place.
    pub message: String,
}

impl GrammarError {
    /// An error of this kind at this place.
    #[cold]
    pub fn new(kind: ErrorKind, place: impl Into<String>, message: impl Into<String>) -> GrammarError {
        GrammarError { kind, place: place.into(), message: message.into() }
    }

    /// An exceeded limit at this place.
    #[cold]
    pub fn limit(place: impl Into<String>, limit: LimitExceeded) -> GrammarError {
        GrammarError::new(ErrorKind::Limit, place, limit.while_reading())
    }

    /// The result of a search that may fail; `None` if it reached a bound of its own. If the operation itself has to
    /// end, that decides nothing about the search and is returned as an error.
    ///
    /// # Errors
    /// A limit at this place, if the operation has to end.
    pub(crate) fn decided<T, E>(
        place: impl Into<String>,
        search: impl FnOnce() -> Result<T, E>,
    ) -> Result<Option<T>, GrammarError> {
        Ok(GrammarError::unless_ended(place, search)?.ok())
    }

    /// The result of a part of an operation, successful or not, unless the operation has to end.
    ///
    /// # Errors
    /// As [`GrammarError::decided`].
    pub(crate) fn unless_ended<T>(place: impl Into<String>, part: impl FnOnce() -> T) -> Result<T, GrammarError> {
        unless_ended(part).map_err(|limit| GrammarError::limit(place, limit))
    }

    /// An error in another text, for use within a message. An error about the whole text shows no place.
    pub(crate) fn described(&self) -> String {
        match &*self.place {
            "" | "#" => self.message.clone(),
            place => format!("at {place}: {}", self.message),
        }
    }
}

impl fmt::Display for GrammarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.place, self.message) }
    }
}

impl std::error::Error for GrammarError {}
