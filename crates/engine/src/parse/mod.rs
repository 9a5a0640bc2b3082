//! Parsing: the step from one state of a sequence to the next.
//!
//! One idea: the state is a set of threads, each an automaton state above a stack of frames. A step ([`stepper`]) moves
//! every thread by one byte. Read exactly ([`stepper::Mode`]), a step also checks registers such as the keys of an
//! object; read optimistically, it treats every additional key as new, so that masks do not depend on which keys there
//! are.
//!
//! Entry points: [`stepper`], [`walk`]; [`registers`] defines what a register means.
//!
//! # Example
//! After `{"a": 1` there are two threads: one within the integer, which may go on, and one after it, at `}`. The byte
//! `2` keeps the first and drops the second; the byte `}` drops the first and takes the second to the end of the text.

pub(crate) mod annotations;
pub(crate) mod assumptions;
pub(crate) mod clamp;
pub(crate) mod first_after;
pub(crate) mod memo;
pub(crate) mod names;
pub(crate) mod reads;
pub(crate) mod registers;
pub(crate) mod stepper;
pub(crate) mod together;
pub(crate) mod unverified;
pub(crate) mod walk;
