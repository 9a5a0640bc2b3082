//! Reading a schema: JSON text to a document with locations, resolved references, and the keywords of its draft.
//!
//! [`document`] is the JSON, [`schema`] the typed schema; [`keywords`] and [`applicators`] turn one into the other.
//!
//! One idea: nothing is decided here except what the text says. A keyword that the draft does not have is an
//! annotation.
//!
//! # Example
//! `{"properties": {"a": {"type": "integer"}}, "required": ["a"]}` is a document of six values, each with its JSON
//! pointer.

pub(crate) mod applicators;
pub(crate) mod canonical;
pub(crate) mod document;
pub(crate) mod equal;
pub(crate) mod keywords;
pub(crate) mod metaschemas;
pub(crate) mod parse;
pub(crate) mod reader;
pub(crate) mod refs;
pub(crate) mod schema;
pub(crate) mod scopes;
pub(crate) mod uri;
pub(crate) mod vocabulary;
