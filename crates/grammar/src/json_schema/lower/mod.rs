//! Lowering: the normal form of a schema to nodes of the intermediate form.
//!
//! One idea: each constraint has one kind of node or lexeme that enforces it; a constraint without one is refused by
//! name, or, if the caller asked for that, left out and reported.
//!
//! [`lowering`] is a grammar under construction; every other file adds what lowers one part of a schema. [`schemas`] is
//! the start.
//!
//! # Example
//! The alternative for objects becomes an object node with the declared member `a`.

pub(crate) mod arrays;
pub(crate) mod dead_alternatives;
pub(crate) mod existential;
pub(crate) mod explain;
pub(crate) mod keys;
pub(crate) mod literal;
pub(crate) mod lowering;
pub(crate) mod marked;
pub(crate) mod marked_values;
pub(crate) mod marking;
pub(crate) mod names;
pub(crate) mod notated;
pub(crate) mod notated_members;
pub(crate) mod notation;
pub(crate) mod numbers;
pub(crate) mod objects;
pub(crate) mod relaxing;
pub(crate) mod scalars;
pub(crate) mod schemas;
pub(crate) mod validate;
pub(crate) mod value_classes;
pub(crate) mod value_counts;
pub(crate) mod values;
