//! Tests of the engine through its public face.

mod common;
mod earley;
mod masks;
mod matcher;
mod random;
mod recognition;
mod token_edges;
