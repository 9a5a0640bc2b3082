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
pub(crate) use rebuild::expressions;
pub use rebuild::{children, drop_unreachable, share_equal};

use crate::grammar::Grammar;

/// One round makes nearly every grammar normal; the bound is for those made to need more.
const MAX_ROUNDS: usize = 8;

/// The normal form that EBNF is read to and printed from: nothing unreachable, no rule that only renames, equal nodes
/// shared, regular parts joined to lexemes, and a rule for every larger part that is used more than once.
pub fn normalised(grammar: &Grammar) -> Grammar {
    let mut grammar = inline_renames(grammar);
    for _ in 0..MAX_ROUNDS {
        let next = name_shared(&share_equal(&join_lexemes(&grammar)));
        let next = inline_renames(&next);
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
    grammar
}
