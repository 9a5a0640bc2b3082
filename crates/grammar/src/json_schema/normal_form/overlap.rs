//! Which branches of a `oneOf` may hold together: only there must it be said that the others fail.
//!
//! Two branches are disjoint when every pair of their alternatives clashes: by type, by bounds, by `const` or `enum`,
//! or in a required member: by its values, as with the usual discriminator, or by its key, which the other branch
//! forbids. That is sound and not complete: where it is not proven, the normal form has the negation of the other
//! branch.

use stencilm_regex::{Deriver, ExprId};

use super::atoms::{Atom, Term};
use super::discriminators::{Marks, are_disjoint};
use super::goals::{Conjunction, Goal, Mode, Overlaps};
use super::merge::merge;
use super::merged::{Keys, Merged, Signed, with};
use super::normal::{MAX_PROOFS, Normal};
use super::sums::joined;
use crate::error::GrammarError;
use crate::json_schema::read::document::{Json, JsonId};
use crate::json_schema::read::schema::{Keyword, SchemaId, Types};

/// The greatest number of pairs of alternatives that are compared for one `oneOf`; beyond that, branches are assumed to
/// overlap.
const MAX_PAIRS: usize = 100_000;
/// The greatest number of patterns that are compared with each other.
const MAX_PATTERNS: usize = 8;
/// The greatest number of `enum` values that are matched against patterns.
const MAX_VALUES: usize = 64;
/// The greatest depth to which a clash is searched for.
const MAX_LEVEL: usize = 2;

impl<'a> Normal<'a> {
    /// For every branch of a `oneOf`, the other branches that may hold together with it. The loose forms of all must be
    /// known.
    pub(crate) fn find_overlaps(&mut self, id: SchemaId, branches: &[SchemaId]) -> Result<Overlaps, GrammarError> {
        let own: Conjunction = if self.schemas.get(id).constrains() { [Atom::Own(id)].into() } else { [].into() };
        let mut forms = Vec::with_capacity(branches.len());
        let mut marks = Marks::default();
        for &schema in branches {
            let mut form = Vec::new();
            let alternatives = self.of(Goal { schema, fails: false, mode: Mode::Loose })?;
            marks.next_branch(alternatives.len());
            for alternative in alternatives.iter() {
                let all = joined(&own, alternative);
                let merged = merge(self, &all);
                marks.add(self, &merged);
                form.push((all, merged.types));
            }
            forms.push(form);
        }
        let marks = marks.best();
        let mut overlaps: Vec<Vec<u32>> = vec![Vec::new(); branches.len()];
        let mut pairs = 0;
        for (right, right_form) in forms.iter().enumerate() {
            self.check_time(id)?;
            for (left, left_form) in forms[..right].iter().enumerate() {
                // In long lists, most branches are distinguished by one member, or are values themselves.
                if are_disjoint(&marks[left], &marks[right]) {
                    continue;
                }
                let mut apart = true;
                'pairs: for (a, a_types) in left_form {
                    for (b, b_types) in right_form {
                        pairs += 1;
                        self.check_time(id)?;
                        if pairs > MAX_PAIRS || (a_types.meets(*b_types) && !self.is_empty(&joined(a, b), MAX_LEVEL)?) {
                            apart = false;
                            break 'pairs;
                        }
                    }
                }
                if !apart {
                    overlaps[right].push(left as u32);
                    overlaps[left].push(right as u32);
                }
            }
        }
        Ok(overlaps.into_iter().map(Vec::into_boxed_slice).collect())
    }

    /// Whether it's certain that nothing satisfies all of these.
    pub(crate) fn is_empty(&mut self, all: &Conjunction, level: usize) -> Result<bool, GrammarError> {
        self.proofs += 1 + all.len();
        if self.proofs > MAX_PROOFS {
            return Ok(false);
        }
        let merged = merge(self, all);
        if merged.is_impossible() || self.no_value_fits(&merged)? || self.no_string_fits(&merged)? {
            return Ok(true);
        }
        if level == 0 {
            return Ok(false);
        }
        if merged.types == Types::ARRAY {
            return self.lacks_an_element(&merged, level);
        }
        if merged.types != Types::OBJECT {
            return Ok(false);
        }
        let required = merged.known.iter().filter(|(_, known)| known.required.is_some());
        let required: Vec<(&str, Vec<Term>)> = required.map(|(&name, known)| (name, known.value.to_vec())).collect();
        for (name, mut inner) in required {
            for rule in &merged.rules {
                let Some(term) = rule.value else { continue };
                if self.speaks_of(&rule.keys, name)? == Some(true) {
                    inner = with(inner, term);
                }
            }
            // What is too much to multiply out, or circular, is not proven to be empty.
            let loose = GrammarError::decided("", || self.alternatives_in(&inner, Mode::Loose))?;
            let Some(alternatives) = loose else { continue };
            let mut empty = true;
            for alternative in alternatives.iter() {
                empty = empty && self.is_empty(alternative, level - 1)?;
            }
            if empty {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether it's certain that nothing fits some required element.
    fn lacks_an_element(&mut self, merged: &Merged, level: usize) -> Result<bool, GrammarError> {
        for place in 0..(merged.min_items as usize).min(merged.prefix.len() + 1) {
            let loose = GrammarError::decided("", || self.alternatives_in(merged.element(place), Mode::Loose))?;
            let Some(alternatives) = loose else { continue };
            let mut empty = true;
            for alternative in alternatives.iter() {
                empty = empty && self.is_empty(alternative, level - 1)?;
            }
            if empty {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a rule applies to the member with a key; `None` if a pattern is too hard to decide.
    fn speaks_of(&mut self, keys: &Keys, name: &str) -> Result<Option<bool>, GrammarError> {
        let document = self.schemas.document;
        let schemas = match keys {
            Keys::Match(pattern) => return self.matches(document.key(*pattern), name),
            Keys::Outside(schemas) => schemas,
            Keys::Fail(_) => return Ok(None),
        };
        for &schema in schemas.iter() {
            for keyword in &self.schemas.get(schema).keywords {
                let (Keyword::Properties(map) | Keyword::PatternProperties(map)) = keyword else { continue };
                let Some(entries) = document.entries(*map) else { return Ok(None) };
                if matches!(keyword, Keyword::Properties(_)) {
                    if entries.contains_key(name) {
                        return Ok(Some(false));
                    }
                    continue;
                }
                for pattern in entries.keys() {
                    match self.matches(pattern, name)? {
                        Some(true) => return Ok(Some(false)),
                        Some(false) => {}
                        None => return Ok(None),
                    }
                }
            }
        }
        Ok(Some(true))
    }

    /// Whether there are only a few possible values, and each is a string that violates a pattern or a bound on its
    /// length.
    fn no_value_fits(&mut self, merged: &Merged) -> Result<bool, GrammarError> {
        let Some(values) = merged.values.as_ref().filter(|values| values.value.len() <= MAX_VALUES) else {
            return Ok(false);
        };
        if merged.patterns.is_empty() && merged.min_length == 0 && merged.max_length.is_none() {
            return Ok(false);
        }
        let document = self.schemas.document;
        for &value in &values.value {
            let Json::String(text) = document.get(value) else { return Ok(false) };
            let length = text.chars().count();
            let fits =
                length >= merged.min_length as usize && merged.max_length.is_none_or(|max| length <= max as usize);
            if fits && !self.fails_one(&merged.patterns, text)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a string contains a match of a pattern; `None` if that is too hard to decide.
    fn matches(&mut self, pattern: &'a str, text: &str) -> Result<Option<bool>, GrammarError> {
        let Some(expr) = self.pattern_texts(pattern)? else { return Ok(None) };
        GrammarError::decided("", || self.pattern_deriver().matches(expr, text.as_bytes()))
    }

    /// Whether a string certainly violates one of some patterns.
    fn fails_one(&mut self, asked: &[Signed<JsonId>], text: &str) -> Result<bool, GrammarError> {
        for asked in asked {
            if let Some(pattern) = self.pattern_of(asked)
                && self.matches(pattern, text)? == Some(asked.fails)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn pattern_of(&self, asked: &Signed<JsonId>) -> Option<&'a str> {
        match self.schemas.document.get(asked.value) {
            Json::String(pattern) => Some(pattern),
            _ => None,
        }
    }

    /// Whether it's certain that no string satisfies all patterns.
    fn no_string_fits(&mut self, merged: &Merged) -> Result<bool, GrammarError> {
        if merged.types != Types::STRING || merged.patterns.len() < 2 || merged.patterns.len() > MAX_PATTERNS {
            return Ok(false);
        }
        let mut all = Vec::with_capacity(merged.patterns.len());
        for pattern in &merged.patterns {
            let Some(text) = self.pattern_of(pattern) else { return Ok(false) };
            let Some(texts) = self.pattern_texts(text)? else { return Ok(false) };
            all.push(if pattern.fails { self.pattern_deriver().exprs.not(texts) } else { texts });
        }
        let deriver = self.pattern_deriver();
        let all = deriver.exprs.and(&all);
        Ok(GrammarError::decided("", || deriver.is_live(all))? == Some(false))
    }

    fn pattern_deriver(&mut self) -> &mut Deriver {
        &mut self.patterns.get_or_insert_default().deriver
    }

    /// The strings that contain a match of a pattern; `None` if the pattern is not supported.
    fn pattern_texts(&mut self, pattern: &'a str) -> Result<Option<ExprId>, GrammarError> {
        self.patterns.get_or_insert_default().texts(pattern).map_err(|limit| GrammarError::limit("", limit))
    }
}
