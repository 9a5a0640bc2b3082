//! What is computed for a vocabulary before any grammar asks for it: masks of JSON ([`masks`]) and their canonical
//! counterparts ([`canonical`]).
//!
//! # Example
//! Nearly every schema has strings. Within one, `a`, `1`, `: ` and `{` stay inside and `"` ends it, whatever the schema
//! is, so this is known before the first.

mod canonical;
mod masks;
