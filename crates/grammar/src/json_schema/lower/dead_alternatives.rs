//! Strings in any spelling, without the alternatives that no text takes.
//!
//! If constraints exclude each other, a search for a text finds that out. In any spelling, it goes through all digits
//! of all escapes, and what one constraint needs as a letter also occurs in escapes that the other allows. But what is
//! excluded is excluded in every spelling. So it is found in the spelling without escapes, where each character has a
//! single form, for the strings as a whole and for each alternative of their patterns.

use std::mem;

use stencilm_regex::syntax::{parse_taking, parse_without};
use stencilm_regex::{Deriver, ExprId, Limits};

use super::lowering::Lowering;
use super::scalars::PATTERN;
use crate::error::GrammarError;
use crate::json::spelling::Spelling;
use crate::json::strings::Strings;
use crate::json::values::common_exprs;
use crate::json_schema::normal_form::merged::Merged;
use crate::json_schema::normal_form::patterns::MAX_SEARCH;
use crate::json_schema::normal_form::sums::FEW;
use crate::json_schema::read::document::Json;

/// A pattern, and which of its alternatives match no possible text.
struct Fewer<'a> {
    pattern: &'a str,
    dropped: Vec<bool>,
}

impl<'a> Lowering<'a> {
    /// The strings of a value; nothing if constraints exclude each other.
    pub(crate) fn string_decided_plainly(&mut self, merged: &Merged) -> Result<ExprId, GrammarError> {
        let string = self.string(merged)?;
        if !self.strings.have_many_spellings() || !self.builder.exprs.has_boolean(string) {
            return Ok(string);
        }
        let strings = mem::replace(&mut self.strings, Strings::new(Spelling::Bare));
        let patterns = mem::take(&mut self.patterns);
        let fewer = self.dead_alternatives(merged);
        (self.strings, self.patterns) = (strings, patterns);
        let Some(fewer) = fewer? else { return Ok(ExprId::NOTHING) };
        if fewer.is_empty() {
            return Ok(string);
        }
        let mut before = Vec::with_capacity(fewer.len());
        for Fewer { pattern, dropped } in fewer {
            let mut alphabet = self.strings.alphabet();
            let exprs = &mut self.builder.exprs;
            let rest = || parse_without(exprs, pattern, &PATTERN, &mut alphabet, &dropped);
            // Patterns that were read as a whole are replaced by their remaining alternatives.
            let Some(rest) = GrammarError::decided("", rest)? else { continue };
            before.extend(self.patterns.insert(pattern, rest).map(|whole| (pattern, whole)));
        }
        let string = self.string(merged);
        for (pattern, whole) in before.into_iter().rev() {
            self.patterns.insert(pattern, whole);
        }
        string
    }

    /// The alternatives of patterns that no string without escapes takes; `None` if there is no such string at all.
    fn dead_alternatives(&mut self, merged: &Merged) -> Result<Option<Vec<Fewer<'a>>>, GrammarError> {
        let string = self.string(merged)?;
        let (checker, string) = self.checker(string);
        match GrammarError::decided("", || checker.is_live(string))? {
            Some(false) => return Ok(None),
            Some(true) => {}
            // If it's too hard to decide here, it's decided when a text reaches that alternative.
            None => return Ok(Some(Vec::new())),
        }
        let limits = Limits { max_search: MAX_SEARCH, ..Limits::default() };
        let mut checker = Deriver::over(common_exprs(), limits);
        let document = self.schemas.document;
        let mut all = Vec::new();
        for pattern in merged.patterns.iter().filter(|pattern| !pattern.fails) {
            let Json::String(text) = document.get(pattern.value) else { continue };
            // A relaxed pattern isn't in the map.
            let Some(&whole) = self.patterns.get(&**text) else { continue };
            let mut dropped = Vec::new();
            for number in 0..FEW {
                let mut alphabet = self.strings.alphabet();
                let exprs = &mut self.builder.exprs;
                let taking = || parse_taking(exprs, text, &PATTERN, &mut alphabet, number);
                let Some(Some(taking)) = GrammarError::decided("", taking)? else { break };
                self.patterns.insert(text, taking);
                let string = self.string(merged)?;
                let string = checker.exprs.import(&self.builder.exprs, string);
                dropped.push(GrammarError::decided("", || checker.is_live(string))? == Some(false));
            }
            self.patterns.insert(text, whole);
            if dropped.contains(&true) {
                all.push(Fewer { pattern: text, dropped });
            }
        }
        Ok(Some(all))
    }
}
