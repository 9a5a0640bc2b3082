//! Any notation in, one [`Grammar`] out. This crate knows regular expressions and rules, never a vocabulary.

mod error;
mod holes;
mod ir;
mod json;
mod json_schema;
mod notations;
pub mod passes;
mod saved_text;
mod serialize;
mod word_trie;

pub use error::{ErrorKind, GrammarError};
pub use holes::{Holes, Piece};
pub use ir::builder::GrammarBuilder;
pub use ir::grammar::{
    AdditionalMembers, ArraySurface, DeclaredMember, Element, Grammar, Items, ItemsId, KeySpace, Mark, Members,
    MembersId, NameSet, Node, NodeId, Repeats, Rule, RuleId, Temperature, TokenPattern,
};
pub use ir::report::{Finding, KeptReport, Report};
pub use json::spelling::Spelling;
pub use json::string_value::{Escape, string_value};
pub use json::strings::json_strings_of;
pub use json::surface::Surface;
pub use json::values::{common_exprs, common_string};
pub use json_schema::options::JsonSchemaOptions;
pub use json_schema::read::canonical::canonical_json;
pub use json_schema::{any_json, from_json_schema};
pub use notations::ebnf::MAX_EBNF_BYTES;
pub use notations::lark::{LarkOptions, NamedGrammar};
pub use notations::regex::{RegexError, from_regex};
pub use notations::structural_tag::StructuralTagOptions;
pub use notations::symbols::SymbolTables;
pub use saved_text::SavedFormat;
