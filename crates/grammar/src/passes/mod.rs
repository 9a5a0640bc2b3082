//! Passes: functions from a grammar to a grammar that matches the same texts.
//!
//! Each is a walk that rebuilds everything reachable, children first (`rebuild`), and decides what each node becomes.
//!
//! # Example
//! The three lexemes of `root ::= "{\"a\": " [0-9]+ "}"` always follow one another, so `join` makes them one lexeme.

mod inline;
mod join;
mod name_shared;
pub(crate) mod rebuild;

pub use rebuild::children;

use std::convert::Infallible;

use stencilm_support::check_time;

use crate::error::GrammarError;
use crate::ir::grammar::Grammar;

/// One round makes nearly every grammar normal; the bound is for those made to need more.
const MAX_ROUNDS: usize = 8;

/// What a pass asks, again and again, where nothing ends it.
type Unlimited = fn() -> Result<(), Infallible>;

/// Runs a pass to its end.
fn whole(pass: impl FnOnce(Unlimited) -> Result<Grammar, Infallible>) -> Grammar {
    let Ok(grammar) = pass(|| Ok(()));
    grammar
}

/// Only what can be reached from the root.
pub fn drop_unreachable(grammar: &Grammar) -> Grammar {
    whole(|may_go_on| rebuild::drop_unreachable(grammar, may_go_on))
}

/// The same, ended where it takes too long.
pub(crate) fn drop_unreachable_in_time(grammar: &Grammar) -> Result<Grammar, GrammarError> {
    rebuild::drop_unreachable(grammar, check_time).map_err(|limit| GrammarError::limit("", limit))
}

/// Equal nodes become one, and equal objects.
pub fn share_equal(grammar: &Grammar) -> Grammar {
    whole(|may_go_on| rebuild::share_equal(grammar, may_go_on))
}

/// Joins lexemes that stand side by side, that are alternatives, or that are repeated; rules that are lexemes then are
/// inlined on the way.
pub fn join_lexemes(grammar: &Grammar) -> Grammar {
    whole(|may_go_on| join::join_lexemes(grammar, may_go_on))
}

/// Nodes that are used more than once get a rule of their own; where a rule has such a node as its body, that rule is
/// used instead. The grammar must have equal nodes shared.
pub fn name_shared(grammar: &Grammar) -> Grammar {
    whole(|may_go_on| name_shared::name_shared(grammar, may_go_on))
}

/// Uses of a rule that is only another rule, a lexeme, a token or nothing become that. A root that is a rule used
/// nowhere else becomes the body of that rule.
pub fn inline_renames(grammar: &Grammar) -> Grammar {
    whole(|may_go_on| inline::inline_renames(grammar, may_go_on))
}

/// The normal form that EBNF is read to and printed from: nothing unreachable, no rule that only renames, equal nodes
/// shared, regular parts joined to lexemes, and a rule for every larger part that is used more than once.
pub fn normalised(grammar: &Grammar) -> Grammar {
    whole(|may_go_on| normalised_while(grammar, may_go_on))
}

/// The same, ended where it takes too long.
pub(crate) fn normalised_in_time(grammar: &Grammar) -> Result<Grammar, GrammarError> {
    normalised_while(grammar, check_time).map_err(|limit| GrammarError::limit("", limit))
}

fn normalised_while<E>(grammar: &Grammar, may_go_on: impl Fn() -> Result<(), E>) -> Result<Grammar, E> {
    let may_go_on = &may_go_on;
    let mut grammar = inline::inline_renames(grammar, may_go_on)?;
    for _ in 0..MAX_ROUNDS {
        let next = join::join_lexemes(&grammar, may_go_on)?;
        let next = rebuild::share_equal(&next, may_go_on)?;
        let next = name_shared::name_shared(&next, may_go_on)?;
        let next = inline::inline_renames(&next, may_go_on)?;
        let is_same = next.nodes == grammar.nodes
            && next.rules == grammar.rules
            && next.members == grammar.members
            && next.items == grammar.items
            && next.exprs.len() == grammar.exprs.len();
        grammar = next;
        if is_same {
            break;
        }
    }
    Ok(grammar)
}
