//! Constraints on null, booleans, numbers and strings to expressions.

use stencilm_regex::syntax::{Anchoring, Dialect, PatternErrorKind, PatternOptions, parse_pattern};
use stencilm_regex::{Expr, ExprId};

use super::explain::Branch;
use super::lowering::Lowering;
use crate::error::{ErrorKind, GrammarError};
use crate::json::format::{Format, Punycode};
use crate::json::lengths;
use crate::json::lengths::Lengths;
use crate::json::values::common;
use crate::json_schema::normal_form::merged::Merged;
use crate::json_schema::read::document::Json;
use crate::json_schema::read::schema::{SchemaId, Types};

/// How a pattern of a schema is parsed.
pub(super) const PATTERN: PatternOptions =
    PatternOptions { dialect: Dialect::EcmaScript, anchoring: Anchoring::Search };

impl<'a> Lowering<'a> {
    /// Adds the expressions of all types except arrays and objects.
    pub(crate) fn scalars(
        &mut self,
        merged: &Merged,
        at: SchemaId,
        scalars: &mut Vec<ExprId>,
        branches: &mut Vec<Branch>,
    ) -> Result<(), GrammarError> {
        let document = self.schemas.document;
        let is_excluded = |wanted: &dyn Fn(&Json) -> bool| {
            merged.excluded.iter().any(|excluded| wanted(document.get(excluded.value)))
        };
        if merged.types.meets(Types::NULL) && !is_excluded(&|value| matches!(value, Json::Null)) {
            scalars.push(common().null);
            branches.push(Branch::Possible);
        }
        if merged.types.meets(Types::BOOLEAN) {
            let left =
                [false, true].map(|word| !is_excluded(&|value| matches!(value, Json::Bool(known) if *known == word)));
            match left {
                [true, true] => scalars.push(common().booleans),
                [false, false] => {}
                [no, _] => scalars.push(self.builder.exprs.literal(if no { b"false" } else { b"true" })),
            }
            if left != [false, false] {
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
            let string = self.value_string(merged)?;
            let uncertain = string == ExprId::NOTHING || self.builder.exprs.has_boolean(string);
            branches.push(if uncertain { Branch::Text { expr: string, at } } else { Branch::Possible });
            scalars.push(string);
        }
        Ok(())
    }

    /// The strings of a value. Labels of host names in Punycode are checked if there are no other constraints than
    /// limits of the length. With others, the search for a text that satisfies all of them would take too long.
    fn value_string(&mut self, merged: &Merged) -> Result<ExprId, GrammarError> {
        let document = self.schemas.document;
        let is_text = |value| matches!(document.get(value), Json::String(_));
        let [format] = &merged.formats[..] else { return self.string_decided_plainly(merged) };
        let is_beside = !merged.patterns.is_empty()
            || !merged.texts.is_empty()
            || merged.excluded.iter().any(|excluded| is_text(excluded.value))
            || self.strings.are_bare()
            || self.strings.are_restricted();
        if format.fails || is_beside || !matches!(format.value, Format::Hostname | Format::IdnHostname) {
            return self.string_decided_plainly(merged);
        }
        let exprs = &mut self.builder.exprs;
        let name = self.strings.format(exprs, format.value);
        let lengths = self.strings.any_body(exprs, merged.min_length, merged.max_length);
        let name = if (merged.min_length, merged.max_length) == (0, None) { name } else { exprs.and(&[name, lengths]) };
        Ok(self.strings.quoted(exprs, name))
    }

    /// The strings of a value or a key. If unchecked, no label in Punycode is allowed, and none is excluded.
    pub(crate) fn string(&mut self, merged: &Merged) -> Result<ExprId, GrammarError> {
        let (mut min, mut max) = (merged.min_length, merged.max_length);
        let mut bodies = self.text_bodies(merged, false)?;
        let document = self.schemas.document;
        let excluded: Vec<&str> = (merged.excluded.iter())
            .filter_map(
                |excluded| if let Json::String(text) = document.get(excluded.value) { Some(&**text) } else { None },
            )
            .collect();
        let mut texts = Vec::with_capacity(merged.texts.len());
        for &id in &merged.texts {
            texts.push(self.any_text(id)?);
        }
        if bodies.is_empty() {
            let exprs = &mut self.builder.exprs;
            let any = self.strings.any_string(exprs, min, max);
            texts.push(any);
            if !excluded.is_empty() {
                // Excludes every spelling, since the allowed strings may have any.
                let excluded = self.strings.literals_in_any_spelling(exprs, &excluded);
                let excluded = excluded.map_err(|limit| GrammarError::limit("", limit))?;
                texts.push(exprs.not(excluded));
            }
            return Ok(exprs.and(&texts));
        }
        if min > 0 || max.is_some() {
            let lengths = self.text_lengths(merged)?;
            if u64::from(min) <= lengths.min {
                min = 0;
            }
            max = max.filter(|max| lengths.max.is_none_or(|longest| longest > u64::from(*max)));
            if let Some((body, counted)) = self.counted_class(merged, &bodies, lengths, (min, max)) {
                bodies.iter_mut().filter(|(other, _)| *other == body).for_each(|(body, _)| *body = counted);
                (min, max) = (0, None);
            }
        }
        let exprs = &mut self.builder.exprs;
        let mut parts = texts;
        let mut holding = Vec::new();
        for (body, fails) in bodies {
            if fails {
                let body = self.strings.quoted(exprs, body);
                parts.push(exprs.not(body));
            } else {
                holding.push(body);
            }
        }
        if holding.is_empty() {
            parts.push(self.strings.any_constrained(exprs));
        } else {
            let body = exprs.and(&holding);
            parts.push(self.strings.quoted(exprs, body));
        }
        if !excluded.is_empty() {
            let excluded = self.strings.literals_in_time(exprs, &excluded);
            let excluded = excluded.map_err(|limit| GrammarError::limit("", limit))?;
            parts.push(exprs.not(excluded));
        }
        if min > 0 || max.is_some() {
            // Counts between the quotes, where every character is one of its spellings.
            parts.push(self.strings.any_string(exprs, min, max));
        }
        Ok(exprs.and(&parts))
    }

    /// The strings for which some alternative holds.
    fn any_text(&mut self, id: u32) -> Result<ExprId, GrammarError> {
        let choices = self.normal.text_alternatives(id);
        let mut strings = Vec::with_capacity(choices.len());
        for choice in &choices {
            strings.push(self.string(choice)?);
        }
        Ok(self.builder.exprs.or(&strings))
    }

    /// Bounds on the length that follow from the patterns and formats.
    fn text_lengths(&self, merged: &Merged) -> Result<Lengths, GrammarError> {
        let holding = merged.formats.iter().filter(|format| !format.fails);
        let mut all = holding.map(|format| lengths::of_format(format.value)).fold(Lengths::ANY, Lengths::and);
        for pattern in merged.patterns.iter().filter(|pattern| !pattern.fails) {
            // A relaxed pattern isn't in the map and gives no bounds.
            if let Json::String(text) = self.schemas.document.get(pattern.value)
                && self.patterns.contains_key(&**text)
            {
                let own = lengths::of_pattern(text);
                all = all.and(own.map_err(|limit| GrammarError::limit(self.schemas.place(pattern.at), limit))?);
            }
        }
        Ok(all)
    }

    /// The intersection of a counted class, `^[a-z]{1,100}$`, with bounds on the length: the same class with other
    /// counts instead of a product of two counters.
    fn counted_class(
        &mut self,
        merged: &Merged,
        bodies: &[(ExprId, bool)],
        lengths: Lengths,
        (min, max): (u32, Option<u32>),
    ) -> Option<(ExprId, ExprId)> {
        let mut holding = bodies.iter().filter(|(_, fails)| !fails).map(|(body, _)| *body);
        let (Some(body), None) = (holding.next(), holding.next()) else { return None };
        let exprs = &mut self.builder.exprs;
        let Expr::Repeat { body: round, min: least, max: Some(most) } = *exprs.get(body) else { return None };
        // If the text has at most as many characters as rounds, and no round is empty, each round is one character.
        let rounds = Lengths { min: least.into(), max: Some(most.into()) };
        if rounds != lengths || exprs.is_nullable(round) || merged.formats.iter().any(|format| !format.fails) {
            return None;
        }
        let (least, most) = (least.max(min), max.map_or(most, |max| most.min(max)));
        (least <= most).then(|| (body, exprs.repeat(round, least, Some(most))))
    }

    /// For each pattern and format, what stands between the quotes, and whether it is negated. If not `checked`, labels
    /// of host names in Punycode are approximated: a negated format excludes more names, and a format that isn't
    /// negated allows fewer.
    pub(crate) fn text_bodies(&mut self, merged: &Merged, checked: bool) -> Result<Vec<(ExprId, bool)>, GrammarError> {
        let mut bodies = Vec::with_capacity(merged.patterns.len() + merged.formats.len());
        for pattern in &merged.patterns {
            let Json::String(text) = self.schemas.document.get(pattern.value) else { continue };
            bodies.extend(self.pattern(text, "pattern", pattern.at)?.map(|body| (body, pattern.fails)));
        }
        for format in &merged.formats {
            let punycode = match format.fails {
                _ if checked => Punycode::Checked,
                true => Punycode::Unchecked,
                false => Punycode::Refused,
            };
            bodies.push((self.strings.format_with(&mut self.builder.exprs, format.value, punycode), format.fails));
        }
        bodies.sort_unstable();
        bodies.dedup();
        Ok(bodies)
    }

    /// The body that contains a match of a pattern; `None` if the pattern is relaxed.
    pub(crate) fn pattern(
        &mut self,
        text: &'a str,
        keyword: &str,
        at: SchemaId,
    ) -> Result<Option<ExprId>, GrammarError> {
        if let Some(&known) = self.patterns.get(text) {
            return Ok(Some(known));
        }
        let mut alphabet = self.strings.alphabet();
        let error = match parse_pattern(&mut self.builder.exprs, text, &PATTERN, &mut alphabet) {
            Ok(body) => {
                self.patterns.insert(text, body);
                return Ok(Some(body));
            }
            Err(error) => error,
        };
        let kind = match error.kind {
            PatternErrorKind::Unsupported => {
                self.relax(at, keyword, &error.to_string())?;
                return Ok(None);
            }
            PatternErrorKind::Syntax => ErrorKind::Syntax,
            PatternErrorKind::Limit => ErrorKind::Limit,
        };
        Err(GrammarError::new(kind, self.schemas.place(at), format!("{keyword}: {error}")))
    }
}
