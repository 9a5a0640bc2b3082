//! Passes: functions from a grammar to a grammar that matches the same texts.
//!
//! Each is a walk that rebuilds everything reachable, children first (`rebuild`), and says of each node what it becomes.

mod inline;
mod join;
mod name_shared;
mod rebuild;

pub use inline::inline_renames;
pub use join::join_lexemes;
pub use name_shared::name_shared;
pub use rebuild::{children, drop_unreachable, share_equal};

use stencilm_regex::{LimitExceeded, check_time_now};

use crate::error::GrammarError;
use crate::ir::grammar::Grammar;

/// One round makes nearly every grammar normal; the bound is for those made to need more.
const MAX_ROUNDS: usize = 8;

/// The normal form that EBNF is read to and printed from: nothing unreachable, no rule that only renames, equal nodes
/// shared, regular parts joined to lexemes, and a rule for every larger part that is used more than once.
pub fn normalised(grammar: &Grammar) -> Grammar {
    normalised_while(grammar, || Ok(())).expect("nothing ends it before it is done")
}

/// The same, ended between two passes where it takes too long.
pub(crate) fn normalised_in_time(grammar: &Grammar) -> Result<Grammar, GrammarError> {
    normalised_while(grammar, check_time_now).map_err(|limit| GrammarError::limit("", limit))
}

fn normalised_while(
    grammar: &Grammar,
    may_go_on: impl Fn() -> Result<(), LimitExceeded>,
) -> Result<Grammar, LimitExceeded> {
    let mut grammar = inline_renames(grammar);
    for _ in 0..MAX_ROUNDS {
        let mut next = join_lexemes(&grammar);
        for pass in [share_equal, name_shared, inline_renames] {
            may_go_on()?;
            next = pass(&next);
        }
        may_go_on()?;
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
