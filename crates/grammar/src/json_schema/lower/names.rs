//! Strings that declare names, and strings that refer to them: marked lexemes, of which a matcher keeps account.

use stencilm_regex::ExprId;

use super::lowering::Lowering;
use crate::error::GrammarError;
use crate::ir::free_text::FreeText;
use crate::ir::grammar::{Mark, NameSet, NodeId};
use crate::json_schema::normal_form::merged::Merged;
use crate::json_schema::options::{DECLARES, REFERS};
use crate::json_schema::read::document::Json;
use crate::json_schema::read::schema::{NameUse, Types};

impl Lowering<'_> {
    /// Whether the uses of names can be enforced. If not, refuses them, or drops them if relaxing is allowed.
    pub(crate) fn admits_names(&mut self, merged: &Merged) -> Result<bool, GrammarError> {
        let Some(name) = merged.name_uses.first() else { return Ok(false) };
        let is_bound = !(merged.patterns.is_empty() && merged.formats.is_empty() && merged.texts.is_empty())
            || merged.min_length > 0
            || merged.max_length.is_some()
            || !merged.excluded.is_empty();
        let reason = if merged.name_uses.iter().any(|name| name.fails) {
            "it is negated here, which cannot be decided; keep it out of not, of if, and of alternatives that exclude \
             each other by nothing else"
        } else if merged.name_uses.len() > 1 {
            "another schema says of the same value that it is a name; keep one of both"
        } else if merged.types != Types::STRING {
            "only strings are names, and the value may be something else; add \"type\": \"string\" beside it"
        } else if merged.values.is_some() {
            "enum and const list the values already; leave one of them out"
        } else if is_bound && !name.value.declares {
            "a reference is any name that was declared; put patterns, formats and lengths where names are declared"
        } else if !self.is_written_as_before(name.value) {
            "names of this set are JSON strings at one place and stand as they are at another, where arguments are written \
             one by one; refer to them at the same depth, or write the arguments as JSON"
        } else {
            return Ok(true);
        };
        let keyword = if name.value.declares { DECLARES } else { REFERS };
        self.relax(name.at, keyword, reason)?;
        Ok(false)
    }

    /// Whether the names of a set are written in the same way as where the set was seen before: as JSON strings, or
    /// bare.
    fn is_written_as_before(&mut self, name: NameUse) -> bool {
        let (set, quoted) = (self.set_of(name), !self.strings.are_bare());
        match self.name_sets.iter().find(|(known, _)| *known == set) {
            Some((_, before)) => *before == quoted,
            None => {
                self.name_sets.push((set, quoted));
                true
            }
        }
    }

    /// The name of the set that a name is in.
    fn set_of(&self, name: NameUse) -> Box<str> {
        let Json::String(set) = self.schemas.document.get(name.set) else {
            unreachable!("the name of a set was checked when it was read")
        };
        (&**set).into()
    }

    /// What may be a name where strings are bare: it's not empty and ends where its marker does.
    fn bare_names(&mut self) -> ExprId {
        let excludes: Vec<&str> = self.options.excludes.iter().map(|exclude| &**exclude).collect();
        let (mut never, mut own_lines) = (excludes, false);
        if let Some(marking) = &self.marking {
            never.push(marking.marked.stop());
            never.extend(marking.marked.control);
            own_lines = marking.marked.own_lines;
        }
        if let Some(notated) = &self.notated {
            never.extend(notated.notation.quote);
        }
        let exprs = &mut self.builder.exprs;
        let held = FreeText::of(exprs, ExprId::ANYTHING, &[], &never).unended(exprs);
        let mut all = vec![held, exprs.not(ExprId::EMPTY)];
        if own_lines {
            // A line break at either end is not part of the value.
            let (line, any) = (exprs.literal(b"\n"), ExprId::ANYTHING);
            for lined in [exprs.concat(line, any), exprs.concat(any, line)] {
                all.push(exprs.not(lined));
            }
        }
        exprs.and(&all)
    }

    /// The node of a string that declares a name or refers to one.
    pub(crate) fn name(&mut self, merged: &Merged) -> Result<NodeId, GrammarError> {
        let name = merged.name_uses[0].value;
        let set = NameSet { name: self.set_of(name), quoted: !self.strings.are_bare() };
        let mut string = self.string(merged)?;
        if self.strings.are_bare() {
            let named = self.bare_names();
            string = self.builder.exprs.and(&[string, named]);
        }
        let string = self.builder.lexeme(string);
        let mark = if name.declares { Mark::Declares(set) } else { Mark::Refers(set) };
        Ok(self.builder.marked(mark, string))
    }
}
