//! What is still to be printed.

use stencilm_regex::ExprId;

use super::print_expr::Place;
use crate::ir::grammar::NodeId;

/// One thing that still has to be printed.
pub(super) enum Step {
    Node(NodeId, Place),
    /// A lexeme of an object, which needs no `%lexeme`.
    Expr(ExprId),
    Text(&'static str),
    Owned(String),
    Count(u32, Option<u32>),
}
