//! Whether a given value fits merged constraints: decides which values of an `enum` stay.

use rustc_hash::FxHashSet;
use stencilm_regex::{Decimal, End, NumberForm, NumberSet};

use super::lowering::Lowering;
use crate::error::{ErrorKind, GrammarError};
use crate::json::strings::spelled;
use crate::json_schema::normal_form::atoms::Term;
use crate::json_schema::normal_form::merge::merge;
use crate::json_schema::normal_form::merged::Merged;
use crate::json_schema::read::document::{Entries, Json, JsonId, quoted};
use crate::json_schema::read::schema::type_of;

/// The greatest nesting depth to which a value is checked against the schemas beside an `enum`.
pub(super) const MAX_LEVEL: usize = 64;

impl Lowering<'_> {
    /// The first constraint that a value violates, in words; `None` if it violates none. The list of values itself is
    /// not checked.
    pub(crate) fn misfit(
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
            _ if self.is_excluded(value, merged) => Ok(Some("it is excluded".into())),
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
                self.elements_misfit(items, merged, level)
            }
            Json::Object(entries) => {
                let count = entries.len();
                if count < merged.min_members as usize {
                    return Ok(Some(format!("it has fewer than {} members", merged.min_members)));
                }
                if let Some(max) = merged.max_members.filter(|&max| count > max as usize) {
                    return Ok(Some(format!("it has more than {max} members")));
                }
                let required = merged.known.iter().filter(|(_, known)| known.required.is_some());
                if let Some((name, _)) = required.into_iter().find(|(name, _)| !entries.contains_key(name)) {
                    return Ok(Some(format!("it lacks the required key {}", quoted(name))));
                }
                if !merged.rules.is_empty() || !merged.some.is_empty() || !merged.names.is_empty() {
                    return self.members_misfit(entries, merged, level);
                }
                for (key, &inner) in entries.iter() {
                    let known = merged.known.get(key);
                    if known.is_none() && merged.closed || known.is_some_and(|known| known.forbidden.is_some()) {
                        return Ok(Some(format!("its key {} is not allowed", quoted(key))));
                    }
                    let all: &[Term] = known.map_or(&merged.additional, |known| &known.value);
                    if let Some(why) = self.misfit_all(inner, all, level + 1)? {
                        return Ok(Some(format!("at key {}, {why}", quoted(key))));
                    }
                }
                Ok(None)
            }
        }
    }

    fn is_excluded(&self, value: JsonId, merged: &Merged) -> bool {
        let document = self.schemas.document;
        let same = |other: JsonId| document.value_id(other) == document.value_id(value);
        !merged.excluded.is_empty() && merged.excluded.iter().any(|excluded| same(excluded.value))
    }

    /// Checks elements that have to be counted or compared.
    fn elements_misfit(
        &mut self,
        items: &[JsonId],
        merged: &Merged,
        level: usize,
    ) -> Result<Option<String>, GrammarError> {
        let document = self.schemas.document;
        if merged.unique.is_some() || merged.repeated.is_some() {
            let mut seen = FxHashSet::default();
            let repeats = items.iter().any(|&item| !seen.insert(document.value_id(item)));
            if repeats && merged.unique.is_some() {
                return Ok(Some("two of its elements are equal".into()));
            }
            if !repeats && merged.repeated.is_some() {
                return Ok(Some("no two of its elements are equal".into()));
            }
        }
        for rule in &merged.contains {
            let mut count = 0;
            for &item in items.iter().skip(rule.from) {
                count += u32::from(self.misfit_all(item, &rule.terms, level + 1)?.is_none());
            }
            if count < rule.min || rule.max.is_some_and(|max| count > max) {
                return Ok(Some(format!("{count} of its elements match what contains asks for")));
            }
        }
        Ok(None)
    }

    /// Checks members whose keys have to be matched.
    fn members_misfit(
        &mut self,
        entries: &Entries,
        merged: &Merged<'_>,
        level: usize,
    ) -> Result<Option<String>, GrammarError> {
        let rules = self.key_rules(merged)?;
        let mut met = vec![false; rules.some.len()];
        let at = self.schemas.root;
        for (name, &value) in entries.iter() {
            let known = merged.known.get(name);
            let key = self.known_key(&rules, merged, name, known, at)?;
            if key.known.forbidden.is_some() || (merged.closed && known.is_none() && key.known.value.is_empty()) {
                return Ok(Some(format!("its key {} is not allowed", quoted(name))));
            }
            if let Some(why) = self.misfit_all(value, &key.known.value, level + 1)? {
                return Ok(Some(format!("at key {}, {why}", quoted(name))));
            }
            for (place, (_, rule)) in rules.some.iter().enumerate().filter(|(place, _)| key.some[*place]) {
                let terms: Vec<Term> = rule.value.into_iter().collect();
                met[place] = met[place] || self.misfit_all(value, &terms, level + 1)?.is_none();
            }
        }
        Ok(met.contains(&false).then(|| "none of its members fails what is negated".into()))
    }

    /// As [`Lowering::misfit`], for terms that are not merged yet.
    fn misfit_all(&mut self, value: JsonId, all: &[Term], level: usize) -> Result<Option<String>, GrammarError> {
        if all.is_empty() {
            return Ok(None);
        }
        let schemas = self.schemas;
        let alternatives = self.alternatives_or_more(all)?;
        self.admit()?;
        let mut first = None;
        for alternative in alternatives.iter() {
            let merged = merge(&self.normal, alternative);
            let document = &schemas.document;
            let listed = merged.values.as_ref().is_none_or(|values| {
                let wanted = document.value_id(value);
                values.value.iter().any(|&known| document.value_id(known) == wanted)
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
        for &id in &merged.texts {
            let choices = self.normal.text_alternatives(id);
            let mut first = None;
            let mut fits = false;
            for choice in &choices {
                match self.text_misfit(text, choice)? {
                    None => fits = true,
                    Some(why) => first = first.or(Some(why)),
                }
            }
            if !fits {
                return Ok(first.or(Some("no string fits".into())));
            }
        }
        if merged.patterns.is_empty() && merged.formats.is_empty() {
            return Ok(None);
        }
        let spelled = if self.strings.are_bare() { text.to_owned() } else { spelled(text) };
        for (body, fails) in self.text_bodies(merged, true)? {
            let (checker, body) = self.checker(body);
            let fits = checker.matches(body, spelled.as_bytes()).map_err(|limit| GrammarError::limit("", limit))?;
            if fits == fails {
                return Ok(Some(format!(
                    "it {} a pattern or format",
                    if fails { "matches" } else { "does not match" }
                )));
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
    // Steps were checked one by one when they were read.
    let is_multiple = |step: &Decimal| {
        NumberSet::new(None, None, std::slice::from_ref(step), &[], NumberForm::Any)
            .is_ok_and(|set| set.contains(number))
    };
    let step = merged.multiple_of.iter().find(|step| is_multiple(&step.value) == step.fails);
    step.map(|step| format!("it is {} multiple of {}", if step.fails { "a" } else { "no" }, step.value))
}
