//! What is left out where the caller asked for that: keywords that cannot be enforced, and what grows past a limit.
//!
//! The texts of a relaxed grammar are those of the schema and more, and the report says of every keyword left out where
//! and why.

use rustc_hash::FxHashSet;

use super::lowering::Lowering;
use crate::error::{ErrorKind, GrammarError};
use crate::ir::report::Finding;
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::goals::{Alternatives, Mode};
use crate::json_schema::read::schema::{Keyword, SchemaId, Schemas};

/// Keywords that combine schemas for one value.
const COMBINING: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "not", "if", "dependencies", "dependentRequired", "dependentSchemas"];

impl Schemas<'_> {
    /// The keywords of a schema that combine others.
    pub(crate) fn combining(&self, id: SchemaId) -> impl Iterator<Item = &str> {
        let fates = self.fates(id).iter().filter(|fate| fate.enforced);
        fates.map(|fate| fate.keyword).filter(|keyword| COMBINING.contains(keyword) || keyword.ends_with("ef"))
    }

    /// The schemas that apply to the same value as one of them.
    fn in_place(&self, id: SchemaId) -> Vec<SchemaId> {
        let document = self.document;
        let mut found = Vec::new();
        for keyword in &self.get(id).keywords {
            match keyword {
                Keyword::AllOf(parts) | Keyword::AnyOf(parts) | Keyword::OneOf(parts) => found.extend_from_slice(parts),
                Keyword::Ref(part) | Keyword::Not(part) => found.push(*part),
                Keyword::If { condition, then, otherwise } => {
                    found.extend([*condition].into_iter().chain(*then).chain(*otherwise));
                }
                Keyword::Dependent(map) => {
                    let values = document.entries(*map).into_iter().flat_map(|entries| entries.values());
                    let schemas = values.map(|&value| self.inner(id, value)).filter(|&inner| self.has(inner));
                    found.extend(schemas);
                }
                _ => {}
            }
        }
        found
    }
}

impl Lowering<'_> {
    /// Drops a constraint if relaxing is allowed; otherwise fails.
    pub(crate) fn relax(&mut self, at: SchemaId, keyword: &str, reason: &str) -> Result<(), GrammarError> {
        let place = self.schemas.place(at);
        let error = GrammarError::new(ErrorKind::Unsupported, place, format!("{keyword}: {reason}"));
        self.relax_error(at, error)
    }

    /// As [`Lowering::relax`], for an error message, which begins with the responsible keywords.
    pub(crate) fn relax_error(&mut self, at: SchemaId, error: GrammarError) -> Result<(), GrammarError> {
        // After the deadline nothing may be relaxed.
        self.normal.check_time(at)?;
        if !self.options.relax {
            return Err(error);
        }
        let (keywords, note) = error.message.split_once(": ").unwrap_or(("", &error.message));
        for keyword in keywords.split(", ") {
            let finding = Finding { keyword: keyword.into(), place: error.place.clone(), note: note.into() };
            self.relaxed.push((at, finding));
        }
        Ok(())
    }

    /// The alternatives of a value; if there are too many, or they are circular, a superset of them.
    pub(crate) fn alternatives_or_more(&mut self, all: &[Term]) -> Result<Alternatives, GrammarError> {
        let error = match GrammarError::unless_ended("", || self.normal.alternatives(all))? {
            Err(error) if matches!(error.kind, ErrorKind::Limit | ErrorKind::Unsupported) => error,
            other => return other,
        };
        let at = all.iter().find_map(|&term| self.normal.schema_of(term)).unwrap_or(self.schemas.root);
        self.relax_error(at, error)?;
        let mut work: Vec<SchemaId> = all.iter().filter_map(|&term| self.normal.schema_of(term)).collect();
        // The abandoned attempt has noted some of them as used.
        let mut seen = FxHashSet::default();
        while let Some(id) = work.pop() {
            if seen.insert(id) {
                self.normal.note_used(&[id]);
                work.extend(self.schemas.in_place(id));
            }
        }
        self.normal.alternatives_in(all, Mode::Loose)
    }
}
