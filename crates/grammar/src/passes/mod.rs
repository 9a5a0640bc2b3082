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

/// One round is enough for nearly every grammar; the bound is for adversarial ones.
const MAX_ROUNDS: usize = 8;

/// The type of a `may_go_on` that never ends a pass.
type Unlimited = fn() -> Result<(), Infallible>;

/// Runs a pass without a limit.
fn whole(pass: impl FnOnce(Unlimited) -> Result<Grammar, Infallible>) -> Grammar {
    let Ok(grammar) = pass(|| Ok(()));
    grammar
}

/// Removes everything that is not reachable from the root.
pub fn drop_unreachable(grammar: &Grammar) -> Grammar {
    whole(|may_go_on| rebuild::drop_unreachable(grammar, may_go_on))
}

/// As [`drop_unreachable`], but ends if it takes too long.
pub(crate) fn drop_unreachable_in_time(grammar: &Grammar) -> Result<Grammar, GrammarError> {
    rebuild::drop_unreachable(grammar, check_time).map_err(|limit| GrammarError::limit("", limit))
}

/// Makes equal nodes one node, and equal objects one object.
pub fn share_equal(grammar: &Grammar) -> Grammar {
    whole(|may_go_on| rebuild::share_equal(grammar, may_go_on))
}

/// Joins lexemes that follow each other, are alternatives, or are repeated; rules that become lexemes are inlined on
/// the way.
pub fn join_lexemes(grammar: &Grammar) -> Grammar {
    whole(|may_go_on| join::join_lexemes(grammar, may_go_on))
}

/// Gives nodes that are used more than once a rule of their own; if such a node is already the body of a rule, that
/// rule is used. Equal nodes of the grammar must be shared.
pub fn name_shared(grammar: &Grammar) -> Grammar {
    whole(|may_go_on| name_shared::name_shared(grammar, may_go_on))
}

/// Replaces uses of a rule whose body is only another rule, a lexeme, a token or nothing by that body. If the root is a
/// rule that is used nowhere else, the body of that rule becomes the root.
pub fn inline_renames(grammar: &Grammar) -> Grammar {
    whole(|may_go_on| inline::inline_renames(grammar, may_go_on))
}

/// The normal form of grammars that are read from or printed as EBNF: everything is reachable, no rule only renames
/// another, equal nodes are shared, regular parts are joined to lexemes, and every larger part that is used more than
/// once is a rule.
pub fn normalised(grammar: &Grammar) -> Grammar {
    whole(|may_go_on| normalised_while(grammar, may_go_on))
}

/// As [`normalised`], but ends if it takes too long.
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
