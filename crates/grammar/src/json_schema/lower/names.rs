//! Strings that declare names, and strings that refer to them: marked lexemes, of which a matcher keeps account.

use super::lowering::Lowering;
use crate::error::GrammarError;
use crate::ir::grammar::{Mark, NameSet, NodeId};
use crate::json_schema::normal_form::merged::Merged;
use crate::json_schema::options::{DECLARES, REFERS};
use crate::json_schema::read::document::Json;
use crate::json_schema::read::schema::Types;

impl Lowering<'_> {
    /// Whether what is said of names can be kept; refuses it where not, or drops it where that was asked for.
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
        } else if self.strings.are_bare() {
            "strings are written without quotes here, and names in JSON have some; write JSON"
        } else {
            return Ok(true);
        };
        let keyword = if name.value.declares { DECLARES } else { REFERS };
        self.relax(name.at, keyword, reason)?;
        Ok(false)
    }

    /// The node of a string that declares a name, or refers to one.
    pub(crate) fn name(&mut self, merged: &Merged) -> Result<NodeId, GrammarError> {
        let name = merged.name_uses[0].value;
        let Json::String(set) = self.schemas.document.get(name.set) else {
            unreachable!("the name of a set was checked when it was read")
        };
        let set = NameSet { name: (&**set).into(), quoted: true };
        let string = self.string(merged)?;
        let string = self.builder.lexeme(string);
        let mark = if name.declares { Mark::Declares(set) } else { Mark::Refers(set) };
        Ok(self.builder.marked(mark, string))
    }
}
