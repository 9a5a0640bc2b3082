//! Constraints on null, booleans, numbers and strings to expressions.

use stencilm_regex::ExprId;
use stencilm_regex::syntax::{Anchoring, Dialect, PatternErrorKind, PatternOptions, parse_pattern};

use super::common::common;
use super::document::{Json, JsonId};
use super::explain::Branch;
use super::lengths::{self, Lengths};
use super::lower::Lowering;
use super::merge::{From, Merged};
use super::schema::{SchemaId, Schemas, Types};
use super::strings::quote;
use crate::error::{ErrorKind, GrammarError};

impl<'a> Lowering<'a> {
    /// Adds the expressions of all types but arrays and objects.
    pub(super) fn scalars(
        &mut self,
        merged: &Merged,
        at: SchemaId,
        scalars: &mut Vec<ExprId>,
        branches: &mut Vec<Branch>,
    ) -> Result<(), GrammarError> {
        for (types, words) in [(Types::NULL, common().null), (Types::BOOLEAN, common().booleans)] {
            if merged.types.meets(types) {
                scalars.push(words);
                branches.push(Branch::Possible);
            }
        }
        if merged.types.meets(Types::NUMBER) {
            let number = self.number(merged, at)?;
            branches.push(match self.without_numbers(merged, at, number) {
                Some(clash) => Branch::Impossible(vec![clash]),
                None => Branch::Possible,
            });
            scalars.push(number);
        }
        if merged.types.meets(Types::STRING) {
            let string = self.string(merged)?;
            let uncertain = string == ExprId::NOTHING || self.builder.exprs.has_boolean(string);
            branches.push(if uncertain { Branch::Text { expr: string, at } } else { Branch::Possible });
            scalars.push(string);
        }
        Ok(())
    }

    fn string(&mut self, merged: &Merged) -> Result<ExprId, GrammarError> {
        let (mut min, mut max) = (merged.min_length, merged.max_length);
        let bodies = self.text_bodies(merged)?;
        if bodies.is_empty() {
            return Ok(self.strings.any_string(&mut self.builder.exprs, min, max));
        }
        if min > 0 || max.is_some() {
            let lengths = self.text_lengths(merged);
            if u64::from(min) <= lengths.min {
                min = 0;
            }
            max = max.filter(|max| lengths.max.is_none_or(|longest| longest > u64::from(*max)));
        }
        let exprs = &mut self.builder.exprs;
        let body = exprs.and(&bodies);
        let mut string = quote(exprs, body);
        if min > 0 || max.is_some() {
            // Counted between the quotes, where every character is one of its spellings.
            let counted = self.strings.any_string(exprs, min, max);
            string = exprs.and(&[string, counted]);
        }
        Ok(string)
    }

    /// Bounds on the lengths that the patterns and formats in force leave.
    fn text_lengths(&self, merged: &Merged) -> Lengths {
        let patterns = merged.patterns.iter().filter_map(|pattern| match self.schemas.document.get(pattern.value) {
            // A relaxed pattern is not known here and bounds nothing.
            Json::String(text) if self.patterns.contains_key(&**text) => Some(lengths::of_pattern(text)),
            _ => None,
        });
        let formats = merged.formats.iter().map(|format| lengths::of_format(format.value));
        patterns.chain(formats).fold(Lengths::ANY, Lengths::and)
    }

    /// What stands between the quotes, once for each pattern and format.
    pub(super) fn text_bodies(&mut self, merged: &Merged) -> Result<Vec<ExprId>, GrammarError> {
        let mut bodies = Vec::with_capacity(merged.patterns.len() + merged.formats.len());
        for pattern in &merged.patterns {
            bodies.extend(self.pattern(pattern)?);
        }
        for format in &merged.formats {
            bodies.push(self.strings.format(&mut self.builder.exprs, format.value));
        }
        bodies.sort_unstable();
        bodies.dedup();
        Ok(bodies)
    }

    /// The body that contains a match of a pattern; `None` where the pattern is relaxed.
    fn pattern(&mut self, pattern: &From<JsonId>) -> Result<Option<ExprId>, GrammarError> {
        let schemas: &'a Schemas<'a> = self.schemas;
        let Json::String(text) = schemas.document.get(pattern.value) else { return Ok(None) };
        if let Some(&known) = self.patterns.get(&**text) {
            return Ok(Some(known));
        }
        let options = PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Search };
        let mut alphabet = self.strings.alphabet();
        let error = match parse_pattern(&mut self.builder.exprs, text, &options, &mut alphabet) {
            Ok(body) => {
                self.patterns.insert(text, body);
                return Ok(Some(body));
            }
            Err(error) => error,
        };
        let kind = match error.kind {
            PatternErrorKind::Unsupported => {
                self.relax(pattern.at, "pattern", &error.to_string())?;
                return Ok(None);
            }
            PatternErrorKind::Syntax => ErrorKind::Syntax,
            PatternErrorKind::Limit => ErrorKind::Limit,
        };
        Err(GrammarError::new(kind, self.schemas.place(pattern.at), format!("pattern: {error}")))
    }
}
