//! Any notation in, one [`Grammar`] out. This crate knows regular expressions and rules, never a vocabulary.

mod builder;
mod combine;
mod ebnf;
mod error;
mod exprs;
mod fixpoint;
mod free_text;
mod grammar;
mod json_schema;
mod key_space;
mod lark;
mod lookahead;
mod markers;
mod objects;
pub mod passes;
mod places;
mod productive;
mod regex;
mod report;
mod serialize;
mod structural_tag;
mod substring;
mod syntax_error;
mod word_trie;

pub use builder::GrammarBuilder;
pub use ebnf::MAX_EBNF_BYTES;
pub use error::{ErrorKind, GrammarError};
pub use grammar::{
    ArraySurface, Element, FreeMembers, Grammar, Items, ItemsId, KeySpace, KnownMember, Mark, Members, MembersId, Node,
    NodeId, Rule, RuleId, Surface, Temperature, TokenPattern,
};
pub use json_schema::{
    JsonSchemaOptions, Spelling, any_json, canonical_json, common_exprs, common_string, from_json_schema,
};
pub use lark::{LarkOptions, NamedGrammar};
pub use regex::{RegexError, from_regex};
pub use report::{Finding, KeptReport, Report};
pub use structural_tag::StructuralTagOptions;
