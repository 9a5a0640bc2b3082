//! What a vocabulary is made ready for before there is a grammar that asks for it: masks of JSON ([`masks`]) and their canonical
//! twins ([`canonical`]).

mod canonical;
mod masks;
