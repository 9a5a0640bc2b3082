//! The machine: a grammar as a pushdown automaton, each part built when it is first reached. It describes the grammar,
//! and knows nothing about any text.
//!
//! One idea: a **frame** is a place in the grammar that waits on a stack. What may come first at a frame is an
//! **expansion** ([`expansion`]): one automaton over all lexemes that may begin there, and for each the frames to push
//! once it has matched. Counts, the members seen and other facts about one text are registers beside the frame, so a
//! list of a billion elements has three expansions.
//!
//! Entry points: [`layout`], [`frame`], [`expansion`].
//!
//! # Example
//! The object's first frame has one expansion: the literal `{"a": `, after which the frame "value of `a`" is pushed.
//! That frame expands to the integer, after which "after a value" is pushed, which expands to `}`, since no further
//! member is declared and `a` is no longer missing.

pub(crate) mod arrays;
pub(crate) mod capturing;
pub(crate) mod declared_names;
pub(crate) mod expansion;
pub(crate) mod first;
pub(crate) mod first_bytes;
pub(crate) mod frame;
pub(crate) mod layout;
pub(crate) mod left_corner;
pub(crate) mod marks;
pub(crate) mod names;
pub(crate) mod object_facts;
pub(crate) mod objects;
pub(crate) mod property_trie;
pub(crate) mod readable;
pub(crate) mod reader;
