//! Lark: the grammar language of the parsing toolkit, and the dialect that constrained-generation engines share.
//!
//! One idea: a Lark text is an EBNF text with shorthands, so the flow is one way: `scan` (words) -> `parse`, with
//! `statements` and `conditions` (a flat tree) -> `imports` (definitions copied from other texts) -> `expand`, with
//! `parts` (templates, parameters, attributes and ignored terminals written out: the tree of EBNF; with `heads` and
//! `trailing`) -> `ebnf::lower`. There is no lexer between characters and rules, so a text matches however it may be
//! cut into terminals, and priorities change nothing.
//!
//! # Example
//! `start: "{\"a\": " /[0-9]+/ "}"` becomes the same tree as `root ::= "{\"a\": " [0-9]+ "}"` in EBNF.

mod attributes;
mod common;
mod conditions;
mod context;
mod expand;
mod expansion;
mod foreign;
mod heads;
mod imports;
mod names;
mod params;
mod parse;
mod parser;
mod parts;
mod patterns;
mod scan;
mod spread;
mod statements;
mod terminals;
mod trailing;
mod tree;

use crate::error::{ErrorKind, GrammarError};
use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::Grammar;
use crate::ir::syntax_error::SyntaxError;
use crate::notations::ebnf::MAX_EBNF_BYTES;
use crate::notations::symbols::SymbolTables;
use crate::passes;

pub use names::NamedGrammar;
use names::Names;

/// The options for reading a Lark text.
#[derive(Clone, Copy, Debug)]
pub struct LarkOptions<'a> {
    /// The rule that texts start from.
    pub start: &'a str,
    /// Other grammars by name.
    pub grammars: &'a [(&'a str, NamedGrammar<'a>)],
    /// Tables of names, available to the text and to the Lark texts among the other grammars.
    pub symbols: &'a SymbolTables,
}

impl Default for LarkOptions<'_> {
    fn default() -> Self {
        LarkOptions { start: "start", grammars: &[], symbols: SymbolTables::NONE }
    }
}

impl Grammar {
    /// The grammar of a Lark text, described in `docs/lark.md`.
    ///
    /// # Errors
    /// [`ErrorKind::Syntax`] with line and column; [`ErrorKind::Unsupported`] for what cannot be enforced exactly;
    /// [`ErrorKind::Unsatisfiable`] if no text matches, [`ErrorKind::Limit`] if the text is too long or too costly.
    pub fn from_lark(text: &str, options: &LarkOptions<'_>) -> Result<Grammar, GrammarError> {
        let mut names = Names::new(options.grammars, options.symbols, read);
        read(text, options.start, &mut names)
    }
}

fn read(text: &str, start: &str, names: &mut Names<'_>) -> Result<Grammar, GrammarError> {
    if text.len() > MAX_EBNF_BYTES {
        let message = format!("the text has {} bytes and at most {MAX_EBNF_BYTES} are accepted; split it", text.len());
        return Err(GrammarError::new(ErrorKind::Limit, "", message));
    }
    let parsed = parse::parse(text, 0, text.len(), 0).map_err(|error| error.placed(text))?;
    let unit = imports::with_imports(parsed, text, names, &[])?;
    let mut builder = GrammarBuilder::default();
    let (tree, root, report) = expand::expand(&mut builder, &unit, start, text, names)?;
    let (_, start) = tree.names[root as usize];
    let root =
        crate::notations::ebnf::lower::lower(&mut builder, &tree, root as usize).map_err(|error| error.placed(text))?;
    let grammar = builder.finish(root, report).and_then(|grammar| passes::normalised_in_time(&grammar));
    grammar.map_err(|error| SyntaxError::of_whole(error, text, start))
}
