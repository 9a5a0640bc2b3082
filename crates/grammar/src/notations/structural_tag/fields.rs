//! The members of one JSON object of a structural tag, by their types. What nobody asks for is refused by name.

use stencilm_support::HashSet;

use super::tree::{Syntax, TokenRef};
use crate::error::{ErrorKind, GrammarError};
use crate::json_schema::read::document::{Document, Entries, Json, JsonId};

/// The greatest count that is accepted.
const MAX_COUNT: u32 = i32::MAX as u32;

/// An object with a `type`.
pub(super) struct Fields<'d, 't> {
    document: &'d Document<'t>,
    pub at: JsonId,
    /// The name of the object in messages.
    what: String,
    entries: &'d Entries<'t>,
}

pub(super) fn error(document: &Document<'_>, at: JsonId, message: impl Into<String>) -> GrammarError {
    GrammarError::new(ErrorKind::Syntax, document.pointer(at), message)
}

impl<'d, 't> Fields<'d, 't> {
    /// The members of an object.
    pub(super) fn of(document: &'d Document<'t>, at: JsonId, what: &str) -> Result<Fields<'d, 't>, GrammarError> {
        match document.entries(at) {
            Some(entries) => Ok(Fields { document, at, what: what.to_owned(), entries }),
            None => {
                let message = format!("{what} is {}, but must be an object", document.get(at).kind());
                Err(error(document, at, message))
            }
        }
    }

    /// Changes its name in messages.
    pub(super) fn named(self, what: &str) -> Fields<'d, 't> {
        Fields { what: what.to_owned(), ..self }
    }

    /// Refuses members with other names.
    pub(super) fn only(&self, names: &[&str]) -> Result<(), GrammarError> {
        for (name, &at) in self.entries.iter() {
            if name != "type" && !names.contains(&name) {
                let message = match names {
                    [] => format!("{} has no field {name:?}; leave it out", self.what),
                    _ => format!("{} has no field {name:?}, only {}; leave it out", self.what, names.join(", ")),
                };
                return Err(GrammarError::new(ErrorKind::Unsupported, self.document.pointer(at), message));
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Option<JsonId> {
        self.entries.get(name).copied()
    }

    /// A member that must be present.
    pub(super) fn required(&self, name: &str) -> Result<JsonId, GrammarError> {
        self.get(name).ok_or_else(|| {
            error(self.document, self.at, format!("{} has no field {name:?}, which it needs; add it", self.what))
        })
    }

    fn wrong(&self, at: JsonId, name: &str, expected: &str) -> GrammarError {
        let shown = self.document.show(at);
        error(self.document, at, format!("{name:?} of {} is {shown}, but must be {expected}", self.what))
    }

    pub(super) fn text_at(&self, at: JsonId, name: &str) -> Result<&'d str, GrammarError> {
        match self.document.get(at) {
            Json::String(text) => Ok(text),
            _ => Err(self.wrong(at, name, "a string")),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<&'d str, GrammarError> {
        self.text_at(self.required(name)?, name)
    }

    /// The syntax of a grammar; the default is EBNF.
    pub(super) fn syntax(&self) -> Result<Syntax, GrammarError> {
        let Some(at) = self.get("syntax") else { return Ok(Syntax::Ebnf) };
        match self.document.get(at) {
            Json::String(name) if name == "ebnf" => Ok(Syntax::Ebnf),
            Json::String(name) if name == "lark" => Ok(Syntax::Lark),
            _ => Err(self.wrong(at, "syntax", "\"ebnf\" or \"lark\"")),
        }
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, GrammarError> {
        match self.get(name) {
            None => Ok(default),
            Some(at) => match self.document.get(at) {
                Json::Bool(value) => Ok(*value),
                _ => Err(self.wrong(at, name, "true or false")),
            },
        }
    }

    /// A count; `None` if it is missing or null.
    pub(super) fn count(&self, name: &str) -> Result<Option<u32>, GrammarError> {
        let Some(at) = self.get(name) else { return Ok(None) };
        match self.document.get(at) {
            Json::Null => Ok(None),
            Json::Number(digits) => match digits.parse() {
                Ok(count) if count <= MAX_COUNT => Ok(Some(count)),
                _ => Err(self.wrong(at, name, &format!("an integer from 0 to {MAX_COUNT}"))),
            },
            _ => Err(self.wrong(at, name, &format!("an integer from 0 to {MAX_COUNT}"))),
        }
    }

    /// The greatest number of rounds; -1 means without limit.
    pub(super) fn most(&self, name: &str) -> Result<Option<u32>, GrammarError> {
        let at = self.required(name)?;
        match self.document.get(at) {
            Json::Number("-1") => Ok(None),
            _ => match self.count(name)? {
                None => Err(self.wrong(at, name, "an integer, or -1 for no bound")),
                some => Ok(some),
            },
        }
    }

    pub(super) fn items_at(&self, at: JsonId, name: &str) -> Result<&'d [JsonId], GrammarError> {
        match self.document.get(at) {
            Json::Array(items) => Ok(items),
            _ => Err(self.wrong(at, name, "an array")),
        }
    }

    /// The elements of an array, which must be present and not empty.
    pub(super) fn items(&self, name: &str) -> Result<&'d [JsonId], GrammarError> {
        let at = self.required(name)?;
        let items = self.items_at(at, name)?;
        if items.is_empty() {
            return Err(self.wrong(at, name, "an array of at least one element"));
        }
        Ok(items)
    }

    /// Nonempty strings; an empty list if the field is missing.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<&'d str>, GrammarError> {
        let Some(at) = self.get(name) else { return Ok(Vec::new()) };
        let (mut texts, mut seen) = (Vec::new(), HashSet::default());
        for &item in self.items_at(at, name)? {
            let text = self.text_at(item, name)?;
            if text.is_empty() {
                return Err(self.wrong(item, name, "a string of at least one character"));
            }
            if !seen.insert(text) {
                return Err(error(self.document, item, format!("{text:?} is in {name:?} twice; leave one out")));
            }
            texts.push(text);
        }
        Ok(texts)
    }

    pub(super) fn token_at(&self, at: JsonId, name: &str) -> Result<TokenRef<'d>, GrammarError> {
        match self.document.get(at) {
            Json::String(token) if !token.is_empty() => Ok(TokenRef::Name(token)),
            Json::Number(digits) => match digits.parse() {
                Ok(id) if id <= MAX_COUNT => Ok(TokenRef::Id(id)),
                _ => Err(self.wrong(at, name, &format!("a token: an id from 0 to {MAX_COUNT}, or a name"))),
            },
            _ => Err(self.wrong(at, name, "a token: its id, or its name")),
        }
    }

    /// Tokens; an empty list if the field is missing.
    pub(super) fn tokens(&self, name: &str) -> Result<Vec<TokenRef<'d>>, GrammarError> {
        let Some(at) = self.get(name) else { return Ok(Vec::new()) };
        self.items_at(at, name)?.iter().map(|&item| self.token_at(item, name)).collect()
    }
}
