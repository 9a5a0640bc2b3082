//! Tables of names given at run time: a terminal may match the tables of a database, or the ids of records.
//!
//! One idea: a table is one terminal, a trie over its names, so that thousands of them cost about as much as their
//! characters.

use stencilm_regex::{ExprId, ExprSet};

use crate::ir::syntax_error::SyntaxError;
use crate::json::spelling::Spelling;
use crate::json::strings::Strings;
use crate::json_schema::options::symbols_uri;
use crate::json_schema::read::document::quoted;

/// Sets of names, each with the name of its table.
#[derive(Clone, Default, Debug)]
pub struct SymbolTables {
    tables: Vec<(String, Vec<String>)>,
}

impl SymbolTables {
    /// No table at all.
    pub const NONE: &'static SymbolTables = &SymbolTables { tables: Vec::new() };

    /// The tables with their names. Tables and names must not be empty, and the names of tables must be unique.
    pub fn new(tables: Vec<(String, Vec<String>)>) -> SymbolTables {
        SymbolTables { tables }
    }

    /// Any one of the names of a table.
    pub(crate) fn expr(&self, exprs: &mut ExprSet, table: &str, place: usize) -> Result<ExprId, SyntaxError> {
        let Some((_, names)) = self.tables.iter().find(|(known, _)| known == table) else {
            return Err(SyntaxError::at(place, self.missing(table)));
        };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let names = Strings::new(Spelling::Bare).literals_in_time(exprs, &names);
        names.map_err(|limit| SyntaxError::limit(place, limit.while_reading()))
    }

    fn missing(&self, table: &str) -> String {
        let known: Vec<String> = self.tables.iter().take(8).map(|(name, _)| format!("{name:?}")).collect();
        let known = match (known.len(), self.tables.len()) {
            (0, _) => "none is".to_string(),
            (shown, all) if shown < all => format!("{} and {} more are", known.join(", "), all - shown),
            (1, _) => format!("only {} is", known[0]),
            _ => format!("{} are", known.join(", ")),
        };
        format!("no table of symbols is named {}; give it in `symbols`, where {known}", quoted(table))
    }

    /// The tables as JSON documents beside a schema, which may refer to them.
    pub(crate) fn documents(&self) -> Vec<(String, String)> {
        let listed = |names: &Vec<String>| serde_json::to_string(names).expect("strings are JSON");
        self.tables.iter().map(|(name, names)| (symbols_uri(name), listed(names))).collect()
    }
}
