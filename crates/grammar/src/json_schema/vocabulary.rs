//! The tables of keywords: which are annotations, which are refused and what to do instead; and the drafts.

use super::document::{Document, Json};

/// Drafts whose keywords mean different things.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Draft {
    D4,
    D7,
    D2019,
    D2020,
    /// No `$schema`, or an unknown one: 2020-12, reading what only older drafts had where that is unambiguous.
    Unnamed,
}

/// Keywords that the specification gives no force.
pub(super) const ANNOTATIONS: [&str; 19] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$schema",
    "$id",
    "contentMediaType",
    "contentEncoding",
    "contentSchema",
    "$vocabulary",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$defs",
    "definitions",
];

/// Keywords that constrain and are not supported, each with its way out.
pub(super) const REFUSED: [(&str, &str); 13] = [
    ("not", "negation is not supported; say what is allowed instead"),
    ("if", "conditions are not supported; use anyOf with one branch for each case"),
    ("dependentRequired", "dependencies are not supported; use anyOf with one branch for each case"),
    ("dependentSchemas", "dependencies are not supported; use anyOf with one branch for each case"),
    ("dependencies", "dependencies are not supported; use anyOf with one branch for each case"),
    ("propertyNames", "constraints on keys are not supported; name the keys in properties"),
    ("unevaluatedProperties", "use additionalProperties in one object schema that has all properties"),
    ("unevaluatedItems", "use items beside prefixItems"),
    ("contains", "use items, or prefixItems for fixed places"),
    ("minProperties", "counting members is not supported; name the needed ones in required"),
    ("maxProperties", "counting members is not supported; set additionalProperties to false"),
    ("$dynamicRef", "dynamic references are not supported; use $ref"),
    ("$recursiveRef", "dynamic references are not supported; use $ref"),
];

/// The draft that the schema names.
pub(super) fn draft_of(document: &Document) -> Draft {
    let named = document.entries(document.root()).and_then(|entries| entries.get("$schema"));
    match named.map(|&uri| document.get(uri)) {
        Some(Json::String(uri)) if uri.contains("draft-03") || uri.contains("draft-04") => Draft::D4,
        Some(Json::String(uri)) if uri.contains("draft-06") || uri.contains("draft-07") => Draft::D7,
        Some(Json::String(uri)) if uri.contains("2019-09") => Draft::D2019,
        Some(Json::String(uri)) if uri.contains("2020-12") => Draft::D2020,
        _ => Draft::Unnamed,
    }
}
