//! One schema while it is read: where it stands, what was found of it, and the errors that name its place.

use std::borrow::Cow;

use stencilm_regex::Decimal;

use super::document::{Document, Json, JsonId};
use super::refs::Refs;
use super::schema::{Fate, Refusal, Schema, SchemaId};
use super::scopes::Scopes;
use super::vocabulary::Draft;
use crate::error::{ErrorKind, GrammarError};

/// The state while one schema is read.
pub(crate) struct Reader<'t, 'r> {
    pub(crate) document: &'t Document<'t>,
    pub(crate) refs: &'r Refs<'t>,
    pub(crate) scopes: &'r mut Scopes<'t>,
    pub(crate) draft: Draft,
    pub(crate) id: SchemaId,
    pub(crate) at: JsonId,
    pub(crate) schema: Schema<'t>,
    pub(super) fates: &'r mut Vec<Fate<'t>>,
    /// Contained schemas that still have to be read.
    pub(crate) inner: &'r mut Vec<SchemaId>,
    pub(crate) is_dynamic: bool,
    pub(super) enforce_formats: bool,
    pub(super) nullable: bool,
}

impl<'t> Reader<'t, '_> {
    fn count(&self, name: &str, value: JsonId) -> Result<Option<u64>, GrammarError> {
        let Json::Number(text) = self.document.get(value) else {
            return Err(self.wrong(name, value, "an integer of 0 or more"));
        };
        match Decimal::parse(text) {
            Some(number) if number.negative || !number.is_integer() => {
                Err(self.wrong(name, value, "an integer of 0 or more"))
            }
            number => Ok(number.and_then(|number| number.to_u64())),
        }
    }

    pub(crate) fn least(&self, name: &str, value: JsonId) -> Result<u32, GrammarError> {
        self.count(name, value)?.and_then(|count| u32::try_from(count).ok()).ok_or_else(|| {
            let message = format!("{name} {} is above {}; use a smaller one", self.document.show(value), u32::MAX);
            GrammarError::new(ErrorKind::Limit, self.place(), message)
        })
    }

    /// An upper bound; `u32::MAX` means no limit, because no text is that long.
    pub(crate) fn greatest(&self, name: &str, value: JsonId) -> Result<u32, GrammarError> {
        Ok(self.count(name, value)?.map_or(u32::MAX, |count| u32::try_from(count).unwrap_or(u32::MAX)))
    }

    pub(crate) fn check_names(&self, keyword: &str, names: &[JsonId]) -> Result<(), GrammarError> {
        match names.iter().find(|&&id| !matches!(self.document.get(id), Json::String(_))) {
            Some(&id) => Err(self.wrong(keyword, id, "a key")),
            None => Ok(()),
        }
    }

    pub(crate) fn enforce(&mut self, keyword: &'t str) {
        self.fates.push(Fate { enforced: true, keyword, note: "".into() });
    }

    pub(crate) fn annotate(&mut self, keyword: &'t str, note: impl Into<Cow<'static, str>>) {
        self.fates.push(Fate { enforced: false, keyword, note: note.into() });
    }

    #[cold]
    pub(crate) fn refuse(&mut self, keyword: &'t str, reason: impl Into<Cow<'static, str>>) {
        self.schema.refusals.push(Refusal { keyword, reason: reason.into() });
    }

    pub(crate) fn place(&self) -> String {
        self.document.pointer(self.at)
    }

    #[cold]
    pub(crate) fn invalid(&self, message: impl Into<String>) -> GrammarError {
        GrammarError::new(ErrorKind::Syntax, self.place(), message)
    }

    #[cold]
    pub(crate) fn wrong(&self, keyword: &str, value: JsonId, wanted: &str) -> GrammarError {
        self.invalid(format!("{keyword} is {}; it must be {wanted}", self.document.show(value)))
    }
}
