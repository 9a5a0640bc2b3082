//! EBNF: the notation that people write and in which every grammar can be printed.
//!
//! One idea: the dialect adds to GBNF what the intermediate form has and GBNF lacks, so that each grammar has a text
//! which reads back as the same grammar. The flow is one way: `scan` (words) -> `parse` (a flat tree) -> `lower` (nodes
//! and expressions) -> the normalising passes. `print` is the way back.
//!
//! # Example
//! `root ::= "{\"a\": " [0-9]+ "}"` is read as three lexemes, which a pass joins; it prints as
//! `root ::= %lexeme("{\"a\": " [0-9]+ "}")`.

mod array;
mod divided;
mod entries;
pub(crate) mod escapes;
pub(crate) mod lower;
pub(crate) mod macros;
mod object;
mod parse;
mod parser;
mod print;
mod print_containers;
mod print_expr;
mod print_steps;
pub(crate) mod scan;
pub(crate) mod scanner;
mod spans;
pub(crate) mod terminals;
pub(crate) mod tree;

use std::convert::Infallible;
use std::fmt;

use stencilm_support::check_time;

use crate::error::{ErrorKind, GrammarError};
use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::Grammar;
use crate::ir::report::Report;
use crate::ir::syntax_error::SyntaxError;
use crate::notations::symbols::SymbolTables;
use crate::passes;

/// The greatest length of a text in bytes.
pub const MAX_EBNF_BYTES: usize = 1 << 20;

impl Grammar {
    /// The grammar of an EBNF text: a superset of GBNF, described in `docs/ebnf.md`.
    ///
    /// # Errors
    /// [`ErrorKind::Syntax`] with line and column; [`ErrorKind::Unsatisfiable`] if no text matches,
    /// [`ErrorKind::Limit`] if the text is too long or too costly.
    pub fn from_ebnf(text: &str, root_rule_name: &str) -> Result<Grammar, GrammarError> {
        Grammar::from_ebnf_with(text, root_rule_name, SymbolTables::NONE)
    }

    /// As [`Grammar::from_ebnf`], for a text that may refer to tables of symbols.
    ///
    /// # Errors
    /// As [`Grammar::from_ebnf`]; [`ErrorKind::Syntax`] if the text refers to a table that is not given.
    pub fn from_ebnf_with(text: &str, root_rule_name: &str, symbols: &SymbolTables) -> Result<Grammar, GrammarError> {
        if text.len() > MAX_EBNF_BYTES {
            let message =
                format!("the text has {} bytes and at most {MAX_EBNF_BYTES} are accepted; split it", text.len());
            return Err(GrammarError::new(ErrorKind::Limit, "", message));
        }
        let mut builder = GrammarBuilder::default();
        let parsed = parse::parse(text, &mut builder.exprs, symbols).map_err(|error| error.placed(text))?;
        let Some(root) = parsed.names.get_index_of(root_rule_name) else {
            let message = format!(
                "no rule is named `{}`, which is where texts start; add `{0} ::= ...` or give another root_rule_name",
                escapes::excerpt(root_rule_name)
            );
            return Err(GrammarError::new(ErrorKind::Syntax, "line 1, column 1", message));
        };
        let (_, start) = parsed.names[root];
        let root = lower::lower(&mut builder, &parsed, root).map_err(|error| error.placed(text))?;
        let finished = builder.finish(root, Report::default());
        let finished = finished.map(|grammar| Grammar { begun: parsed.begun.as_slice().into(), ..grammar });
        let grammar = finished.and_then(|grammar| passes::normalised_in_time(&grammar));
        grammar.map_err(|error| SyntaxError::of_whole(error, text, start))
    }

    /// The normalised grammar as EBNF, with `root` as the start rule. [`Grammar::from_ebnf`] reads it as a grammar with
    /// the same texts, which is printed as the same EBNF.
    pub fn to_ebnf(&self) -> String {
        let Ok(text) = print::print(&passes::normalised(self), || Ok::<_, Infallible>(()));
        text
    }

    /// As [`Grammar::to_ebnf`], but stops where the thread has to.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`].
    pub fn to_ebnf_in_time(&self) -> Result<String, GrammarError> {
        let normalised = passes::normalised_in_time(self)?;
        print::print(&normalised, check_time).map_err(|limit| GrammarError::limit("", limit))
    }
}

impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_ebnf())
    }
}
