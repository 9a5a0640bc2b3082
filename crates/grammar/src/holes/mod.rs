//! Texts with holes: whether bytes can be put into them so that a text of the grammar comes of it, and the grammar of what may
//! stand up to the end of the first.
//!
//! One idea: the text after a hole is a regular language `R` in which any bytes stand at the later holes, and what may stand before it
//! is the right quotient of the grammar by `R`, which is again a grammar. Reading `R` from its end on says which nodes may be cut
//! where (`recogniser`); `quotient` makes the nodes that are cut. Masks, forced text and whatever else there is for grammars
//! works on it as on any other. Whether a text with holes can be completed at all is decided by reading it whole in the same
//! way.
//!
//! What cannot be decided or not be written as a grammar is never guessed: it is carried along as undecided, and is an error
//! only where the answer depends on it.
//!
//! Entry points: [`questions::Holes`], [`template::Piece`].
//!
//! # Example
//! After a hole stands `1}`. Of the object `{"a": 12}` this ends the integer, whose beginnings are then `-?([1-9][0-9]*)?`,
//! and the object, of which `{"a": ` and such a beginning may stand before it.

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
