//! The context in which a pattern is read, and what it was found to match.

use super::around::Around;
use super::choices::Choice;
use super::kinds::Edge;
use super::options::PatternOptions;
use super::steps::Budget;
use crate::expr::node::ExprId;

/// The context in which a pattern is read.
#[derive(Clone, Copy)]
pub(super) struct Reading<'b> {
    /// The budget left for its look-around.
    pub budget: &'b Budget,
    /// Whether its texts may be followed by others.
    pub open: bool,
    /// The number of look-arounds around it.
    pub depth: u32,
    /// Whether the innermost of these is a look-ahead.
    pub ahead: Option<bool>,
    /// What is before its texts, and after them.
    pub before: Edge,
    pub after: Edge,
    /// The part of it that is read.
    pub choice: Choice<'b>,
}

impl Reading<'_> {
    /// A pattern that is all of a text.
    pub fn whole(budget: &Budget) -> Reading<'_> {
        let (before, after) = Default::default();
        Reading { budget, open: false, depth: 0, ahead: None, before, after, choice: Choice::All }
    }
}

/// What a pattern matches in its context.
#[derive(Default)]
pub(super) struct Found {
    /// Its texts in groups, each with a condition on what follows.
    pub groups: Vec<(ExprId, ExprId)>,
    /// Whether they depend on the character before them, or after them.
    pub before: bool,
    pub after: bool,
    /// Whether a look-around inside may look beyond the one around this pattern.
    pub beyond: bool,
}

/// A part of a pattern, and its position.
pub(super) struct Place<'p> {
    pub pattern: &'p str,
    pub options: &'p PatternOptions,
    pub arounds: &'p [Around],
    pub reading: Reading<'p>,
}
