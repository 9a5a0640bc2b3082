//! What is computed for a vocabulary before any grammar asks for it: masks of JSON ([`masks`]) and their canonical
//! counterparts ([`canonical`]).

mod canonical;
mod masks;
