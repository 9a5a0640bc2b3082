//! Tests of the engine through its public face.

mod common;
mod masks;
mod matcher;
