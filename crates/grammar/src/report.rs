//! What became of every constraint in the input: enforced, an annotation by the specification, or relaxed on request.

/// One constraint and where it stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Finding {
    /// The keyword, for example `maxLength`.
    pub keyword: String,
    /// JSON pointer of the schema that holds the keyword, for example `#/properties/name`.
    pub place: String,
    /// More, where there is more to say; else empty.
    pub note: String,
}

/// The fate of every keyword of a schema, in the order of the schema text. Empty for other notations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Enforced exactly.
    pub enforced: Vec<Finding>,
    /// Annotations, which the specification itself gives no force.
    pub annotations: Vec<Finding>,
    /// Not enforced, because the caller asked to relax what is not supported.
    pub relaxed: Vec<Finding>,
}
