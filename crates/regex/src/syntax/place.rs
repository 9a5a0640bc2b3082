//! Where a pattern stands while it is read, and what it was found to match.

use super::around::Around;
use super::choices::Choice;
use super::kinds::Edge;
use super::options::PatternOptions;
use super::steps::Budget;
use crate::expr::node::ExprId;

/// How a pattern is read: where it stands.
#[derive(Clone, Copy)]
pub(super) struct Reading<'b> {
    /// What its look-around may still cost.
    pub budget: &'b Budget,
    /// Whether its texts go on after it.
    pub open: bool,
    /// How many look-arounds it stands in.
    pub depth: u32,
    /// Whether the innermost of these is a look-ahead.
    pub ahead: Option<bool>,
    /// What stands before its texts and after them.
    pub before: Edge,
    pub after: Edge,
    /// What is read of it.
    pub choice: Choice<'b>,
}

impl Reading<'_> {
    /// A pattern that is all of a text.
    pub fn whole(budget: &Budget) -> Reading<'_> {
        let (before, after) = Default::default();
        Reading { budget, open: false, depth: 0, ahead: None, before, after, choice: Choice::All }
    }
}

/// What a pattern matches, as it was read.
#[derive(Default)]
pub(super) struct Found {
    /// Its texts in groups, each with the condition on what follows.
    pub groups: Vec<(ExprId, ExprId)>,
    /// Whether they depend on the character before them or after them.
    pub before: bool,
    pub after: bool,
    /// Whether a look-around inside may look beyond the one that this pattern stands in.
    pub beyond: bool,
}

/// A part of a pattern, and where it stands.
pub(super) struct Place<'p> {
    pub pattern: &'p str,
    pub options: &'p PatternOptions,
    pub arounds: &'p [Around],
    pub reading: Reading<'p>,
}
