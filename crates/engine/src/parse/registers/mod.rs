//! Registers: what a frame remembers of one text, besides its place in the grammar.
//!
//! One idea: the meaning of a register is one trait, [`meaning::Meaning`]: which lexemes may come ([`Phase`]), what it
//! becomes when a lexeme or an element ends, and which part of it can affect the next token. Each kind of register has
//! a file that implements it: [`count`] for repetitions, [`object`], [`array`] with its distinct elements, [`mark`] for
//! budgets and declarations, [`names`]. A new kind is a new file and one arm in [`kinds`].
//!
//! [`Phase`]: crate::machine::frame::Phase
//!
//! # Example
//! After `{"a": 1`, the register of the object's frame says that the member `a` was seen: its phase is "may close". The
//! integer's frame has none.

pub(crate) mod array;
mod count;
pub(crate) mod kinds;
mod mark;
mod meaning;
mod names;
mod object;
