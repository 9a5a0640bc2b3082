//! Whether a given value fits merged constraints: decides which values of an `enum` stay.

use stencilm_regex::{Decimal, End, NumberForm, NumberSet};

use super::canonical::canonical;
use super::document::{Json, JsonId, quoted};
use super::lower::Lowering;
use super::merge::{Merged, merge, type_of};
use super::schema::SchemaId;
use crate::error::{ErrorKind, GrammarError};

/// Deepest value checked against the schemas beside an `enum`.
const MAX_LEVEL: usize = 64;

impl Lowering<'_> {
    /// The first constraint that a value breaks, in words; `None` when it fits. The list of values itself is not checked.
    pub(super) fn misfit(
        &mut self,
        value: JsonId,
        merged: &Merged,
        level: usize,
    ) -> Result<Option<String>, GrammarError> {
        let schemas = self.schemas;
        let document = &schemas.document;
        if level > MAX_LEVEL {
            let message =
                "a value of enum or const is too deep to be checked against the schemas beside it; flatten it";
            return Err(GrammarError::new(ErrorKind::Limit, document.pointer(value), message));
        }
        if !merged.types.meets(type_of(document.get(value))) {
            return Ok(Some(format!("its type is not {}", merged.types)));
        }
        match document.get(value) {
            Json::Null | Json::Bool(_) => Ok(None),
            Json::Number(text) => Ok(Decimal::parse(text).and_then(|number| outside(&number, merged))),
            Json::String(text) => self.text_misfit(text, merged),
            Json::Array(items) => {
                let count = items.len();
                let most = if merged.closed_items { Some(merged.prefix.len()) } else { None };
                let most = merged.max_items.map(|max| max as usize).into_iter().chain(most).min();
                if count < merged.min_items as usize {
                    return Ok(Some(format!("it has fewer than {} elements", merged.min_items)));
                }
                if let Some(most) = most.filter(|&most| count > most) {
                    return Ok(Some(format!("it has more than {most} elements")));
                }
                for (place, &item) in items.iter().enumerate() {
                    if let Some(why) = self.misfit_all(item, merged.element(place), level + 1)? {
                        return Ok(Some(format!("at index {place}, {why}")));
                    }
                }
                Ok(None)
            }
            Json::Object(entries) => {
                let required = merged.known.iter().filter(|(_, known)| known.required.is_some());
                if let Some((name, _)) = required.into_iter().find(|(name, _)| !entries.contains_key(name)) {
                    return Ok(Some(format!("it lacks the required key {}", quoted(name))));
                }
                for (key, &inner) in entries.iter() {
                    let known = merged.known.get(key);
                    if known.is_none() && merged.closed {
                        return Ok(Some(format!("its key {} is not declared", quoted(key))));
                    }
                    let all = known.map_or(&merged.free, |known| &known.value);
                    if let Some(why) = self.misfit_all(inner, all, level + 1)? {
                        return Ok(Some(format!("at key {}, {why}", quoted(key))));
                    }
                }
                Ok(None)
            }
        }
    }

    /// The same for schemas that are not merged yet.
    fn misfit_all(&mut self, value: JsonId, all: &[SchemaId], level: usize) -> Result<Option<String>, GrammarError> {
        if all.is_empty() {
            return Ok(None);
        }
        let schemas = self.schemas;
        let alternatives = self.normal.alternatives(all)?;
        self.admit()?;
        let mut first = None;
        for alternative in alternatives.iter() {
            let merged = merge(schemas, alternative, self.options.strict_mode);
            let document = &schemas.document;
            let listed = merged.values.as_ref().is_none_or(|values| {
                let wanted = canonical(document, value);
                values.value.iter().any(|&known| canonical(document, known) == wanted)
            });
            let why = if listed { self.misfit(value, &merged, level)? } else { Some("it is not listed".into()) };
            match why {
                None => return Ok(None),
                Some(why) => first = first.or(Some(why)),
            }
        }
        Ok(first)
    }

    fn text_misfit(&mut self, text: &str, merged: &Merged) -> Result<Option<String>, GrammarError> {
        let count = text.chars().count();
        if count < merged.min_length as usize {
            return Ok(Some(format!("it is shorter than minLength {}", merged.min_length)));
        }
        if let Some(max) = merged.max_length.filter(|&max| count > max as usize) {
            return Ok(Some(format!("it is longer than maxLength {max}")));
        }
        if !merged.has_text_constraints() {
            return Ok(None);
        }
        let spelled = spelled(text);
        for body in self.text_bodies(merged)? {
            let copy = self.checker.exprs.import(&self.builder.exprs, body);
            let fits =
                self.checker.matches(copy, spelled.as_bytes()).map_err(|limit| GrammarError::limit("", limit))?;
            if !fits {
                return Ok(Some("it does not match a pattern or format".into()));
            }
        }
        Ok(None)
    }
}

fn outside(number: &Decimal, merged: &Merged) -> Option<String> {
    let below = |end: &End| *number < end.value || (end.exclusive && *number == end.value);
    let above = |end: &End| *number > end.value || (end.exclusive && *number == end.value);
    if let Some(end) = merged.lower.as_ref().filter(|end| below(&end.value)) {
        return Some(format!("it is below the minimum, {}", end.value.value));
    }
    if let Some(end) = merged.upper.as_ref().filter(|end| above(&end.value)) {
        return Some(format!("it is above the maximum, {}", end.value.value));
    }
    // Steps were checked when they were read, one by one.
    let is_multiple = |step: &Decimal| {
        NumberSet::new(None, None, std::slice::from_ref(step), &[], NumberForm::Any)
            .is_ok_and(|set| set.contains(number))
    };
    let step = merged.multiple_of.iter().find(|step| !is_multiple(&step.value));
    step.map(|step| format!("it is no multiple of {}", step.value))
}

/// A spelling between the quotes that belongs to both alphabets.
pub(super) fn spelled(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => spelled.push_str("\\\""),
            '\\' => spelled.push_str("\\\\"),
            '\0'..='\x1f' => spelled.push_str(&format!("\\u{:04x}", u32::from(character))),
            other => spelled.push(other),
        }
    }
    spelled
}
