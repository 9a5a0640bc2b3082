//! Grammars that a Lark text uses by name, each read once.

use std::rc::Rc;

use stencilm_support::HashMap;

use crate::error::{ErrorKind, GrammarError};
use crate::ir::grammar::Grammar;
use crate::notations::symbols::SymbolTables;

/// The longest chain of named grammars that use each other.
const MAX_CHAIN: usize = 32;

/// How many names an error message lists.
const MAX_LISTED: usize = 20;

/// A grammar that a Lark text uses by name.
#[derive(Clone, Copy, Debug)]
pub enum NamedGrammar<'a> {
    /// Any grammar, used as `@name` or as a terminal of that name that `%declare` announces.
    Grammar(&'a Grammar),
    /// A Lark text: used in the same way, and definitions can be imported from it.
    Lark(&'a str),
}

/// The named grammars, and those that were already read.
pub(super) struct Names<'a> {
    grammars: &'a [(&'a str, NamedGrammar<'a>)],
    /// Tables of names that are given by the caller.
    pub(super) symbols: &'a SymbolTables,
    read: HashMap<&'a str, Rc<Grammar>>,
    /// The names of the grammars that are being read.
    chain: Vec<&'a str>,
    /// Parses a Lark text with this start rule; the text may use others by name.
    read_text: ReadText,
}

/// Parses a Lark text that others use by its name.
type ReadText = fn(&str, &str, &mut Names<'_>) -> Result<Grammar, GrammarError>;

impl<'a> Names<'a> {
    pub(super) fn new(
        grammars: &'a [(&'a str, NamedGrammar<'a>)],
        symbols: &'a SymbolTables,
        read_text: ReadText,
    ) -> Names<'a> {
        Names { grammars, symbols, read: HashMap::default(), chain: Vec::new(), read_text }
    }

    pub(super) fn get(&self, name: &str) -> Option<NamedGrammar<'a>> {
        self.grammars.iter().find(|(known, _)| *known == name).map(|&(_, grammar)| grammar)
    }

    /// The names of the grammars that are kept by `accept`, as a sentence lists them: the first of them, if many.
    pub(super) fn listed(&self, accept: impl Fn(NamedGrammar<'a>) -> bool) -> Option<String> {
        let known: Vec<String> =
            self.grammars.iter().filter(|(_, grammar)| accept(*grammar)).map(|(name, _)| format!("`{name}`")).collect();
        let more = known.len().saturating_sub(MAX_LISTED);
        let listed = known[..known.len() - more].join(", ");
        match more {
            _ if known.is_empty() => None,
            0 => Some(listed),
            _ => Some(format!("{listed} and {more} more")),
        }
    }

    /// The grammar with a name; `None` if there is none.
    pub(super) fn read(&mut self, name: &str) -> Result<Option<Rc<Grammar>>, GrammarError> {
        let Some(&(name, named)) = self.grammars.iter().find(|(known, _)| *known == name) else { return Ok(None) };
        if let Some(known) = self.read.get(name) {
            return Ok(Some(known.clone()));
        }
        if self.chain.contains(&name) {
            let chain: Vec<String> = self.chain.iter().chain([&name]).map(|name| format!("@{name}")).collect();
            let message = format!("grammars use each other in a circle: {}; break it", chain.join(" -> "));
            return Err(GrammarError::new(ErrorKind::Syntax, "", message));
        }
        if self.chain.len() >= MAX_CHAIN {
            let message = format!("grammars use each other more than {MAX_CHAIN} deep; join some of them");
            return Err(GrammarError::new(ErrorKind::Limit, "", message));
        }
        let grammar = match named {
            NamedGrammar::Grammar(grammar) => {
                grammar.check_begun()?;
                Rc::new(grammar.clone())
            }
            NamedGrammar::Lark(text) => {
                self.chain.push(name);
                let grammar = (self.read_text)(text, "start", self);
                self.chain.pop();
                Rc::new(grammar.map_err(|GrammarError { kind, place, message }| {
                    let place = if place.is_empty() { place } else { format!(", {place}") };
                    GrammarError::new(kind, "", format!("in the grammar `{name}`{place}: {message}"))
                })?)
            }
        };
        self.read.insert(name, grammar.clone());
        Ok(Some(grammar))
    }
}
