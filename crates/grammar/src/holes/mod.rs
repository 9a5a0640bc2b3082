//! Texts with holes: whether bytes can fill them so that the result is a text of the grammar, and the grammar of what
//! may come up to the end of the first hole.
//!
//! One idea: the text after a hole is a regular language `R`, in which any bytes may fill the later holes. What may
//! come before it is the right quotient of the grammar by `R`, which is again a grammar. Reading `R` from its end says
//! which nodes may be cut where (`recogniser`); `quotient` makes the cut nodes. Masks, forced text and everything else
//! work on it as on any other grammar. Whether a text with holes can be completed at all is decided by reading it whole
//! in the same way.
//!
//! What cannot be decided, or not be written as a grammar, is never guessed: it is carried along as undecided, and is
//! an error only if the answer depends on it.
//!
//! Entry points: [`questions::Holes`], [`template::Piece`].
//!
//! # Example
//! A hole is followed by `1}`. In the object `{"a": 12}`, this ends the integer, whose beginnings are then
//! `-?([1-9][0-9]*)?`, and the object, of which `{"a": ` and such a beginning may come before it.

mod arrays;
mod cut;
mod elements;
mod facts;
mod goals;
mod heads;
mod lexemes;
mod members;
mod objects;
mod place;
mod questions;
mod quotient;
mod recogniser;
mod representatives;
mod template;

pub use questions::Holes;
pub use template::Piece;
