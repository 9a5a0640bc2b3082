//! Any notation in, one [`Grammar`] out. This crate knows regular expressions and rules, never a vocabulary.

mod holes;
mod ir;
mod json;
mod json_schema;
mod notations;
pub mod passes;
mod serialize;

pub use holes::{Holes, Piece};
pub use ir::builder::GrammarBuilder;
pub use ir::error::{ErrorKind, GrammarError};
pub use ir::grammar::{
    ArraySurface, Element, FreeMembers, Grammar, Items, ItemsId, KeySpace, KnownMember, Mark, Members, MembersId, Node,
    NodeId, Rule, RuleId, Surface, Temperature, TokenPattern,
};
pub use ir::report::{Finding, KeptReport, Report};
pub use json::string_value::string_value;
pub use json_schema::{
    JsonSchemaOptions, Spelling, any_json, canonical_json, common_exprs, common_string, from_json_schema,
};
pub use notations::ebnf::MAX_EBNF_BYTES;
pub use notations::lark::{LarkOptions, NamedGrammar};
pub use notations::regex::{RegexError, from_regex};
pub use notations::structural_tag::StructuralTagOptions;
