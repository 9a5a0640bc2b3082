//! Any notation in, one [`Grammar`] out. This crate knows regular expressions and rules, never a vocabulary.

mod error;
mod fixpoint;
mod grammar;
mod productive;
mod report;

pub use error::{ErrorKind, GrammarError};
pub use grammar::{
    FreeMembers, Grammar, GrammarBuilder, KnownMember, Members, MembersId, Node, NodeId, Rule, RuleId, Surface,
};
pub use report::{Finding, Report};
