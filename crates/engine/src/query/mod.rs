//! Queries that do not change a matcher: the longest valid prefix, what is forced, candidates, a shortest completion,
//! captures, draft trees, and why a token is refused.
//!
//! One idea: each query steps on a copy of the state and truncates it afterwards.
//!
//! Entry points: [`prefix`], [`completion`], [`candidates`], [`captures`], [`draft_tree`].
//!
//! # Example
//! At the start the forced text is `{"a": `; after it nothing is forced, and the shortest completion is `0}`.

pub(crate) mod boundary_tokens;
pub(crate) mod candidates;
pub(crate) mod captures;
pub(crate) mod completion;
pub(crate) mod draft_tree;
pub(crate) mod prefix;
