//! The drafts: which keywords each of them has, and which keywords are annotations.

use super::document::{Document, Json, JsonId};

/// Drafts whose keywords differ in meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Draft {
    D4,
    D6,
    D7,
    D2019,
    D2020,
    /// No `$schema`, or an unknown one: 2020-12, plus keywords that only older drafts have, if that is unambiguous.
    Unnamed,
}

/// Keywords that have no validation effect by the specification.
pub(crate) const ANNOTATIONS: [&str; 19] = [
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

impl Draft {
    /// Whether the draft has a keyword that other drafts lack. `dependencies` and `definitions` are also read in drafts
    /// after 7, as those recommend.
    pub(crate) fn has(self, keyword: &str) -> bool {
        use Draft::{D4, D6, D7, D2019, D2020};
        let (first, last) = match keyword {
            "const" | "contains" | "propertyNames" | "examples" | "$id" => (D6, D2020),
            "if" | "then" | "else" | "$comment" | "readOnly" | "writeOnly" | "contentMediaType" | "contentEncoding" => {
                (D7, D2020)
            }
            "unevaluatedProperties"
            | "unevaluatedItems"
            | "dependentRequired"
            | "dependentSchemas"
            | "minContains"
            | "maxContains"
            | "deprecated"
            | "contentSchema"
            | "$vocabulary"
            | "$anchor"
            | "$defs" => (D2019, D2020),
            "prefixItems" | "$dynamicRef" | "$dynamicAnchor" => (D2020, D2020),
            "$recursiveRef" | "$recursiveAnchor" => (D2019, D2019),
            "additionalItems" => (D4, D2019),
            "id" => (D4, D4),
            _ => (D4, D2020),
        };
        self == Draft::Unnamed || (first..=last).contains(&self)
    }
}

/// The draft that a text names.
pub(crate) fn draft_of(document: &Document, root: JsonId) -> Option<Draft> {
    let named = document.entries(root)?.get("$schema")?;
    let Json::String(uri) = document.get(*named) else { return None };
    let drafts = [
        ("draft-03", Draft::D4),
        ("draft-04", Draft::D4),
        ("draft-06", Draft::D6),
        ("draft-07", Draft::D7),
        ("2019-09", Draft::D2019),
        ("2020-12", Draft::D2020),
    ];
    drafts.iter().find(|(name, _)| uri.contains(name)).map(|&(_, draft)| draft)
}
