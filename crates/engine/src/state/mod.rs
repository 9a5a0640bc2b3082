//! State: what one sequence remembers, as hash-consed stacks and registers in vectors that only grow.
//!
//! One idea: a stack is a linked list in which a frame may have several parents (a graph-structured stack; Scott and
//! Johnstone, 2010), equal stacks have one number, and numbers only increase. So undoing is truncating vectors to an
//! earlier length, and forking is sharing them.
//!
//! Entry points: [`stacks::Stacks`], [`whitespace::Whitespace`].
//!
//! # Example
//! After `{"a": ` the stack is "after a value" above the end of the text. A rollback to `{` truncates both, and the
//! number of the earlier stack is still valid.

pub(crate) mod ids;
mod merged;
pub(crate) mod plain_number;
pub(crate) mod reads;
pub(crate) mod record;
pub(crate) mod stacks;
pub(crate) mod unions;
pub(crate) mod used_lists;
pub(crate) mod used_strings;
pub(crate) mod whitespace;
