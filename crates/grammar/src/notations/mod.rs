//! Notations: each reads a text into the intermediate form; none knows another except where it can embed it.
//!
//! One idea: text → tree → grammar, each step a function, and every error with the location where the text is wrong.
//!
//! Entry points: [`regex`], [`ebnf`], [`lark`], [`structural_tag`]; JSON Schema has its own room.
//!
//! # Example
//! `root ::= "{\"a\": " [0-9]+ "}"` in EBNF is a rule of three lexemes, which a pass joins into one.

pub(crate) mod combine;
pub(crate) mod ebnf;
pub(crate) mod following;
pub(crate) mod lark;
pub(crate) mod lookahead;
pub(crate) mod regex;
pub(crate) mod structural_tag;
pub(crate) mod substring;
pub(crate) mod symbols;
