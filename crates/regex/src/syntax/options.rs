//! How a pattern is read, and the limits on its size.

/// The greatest length of a pattern in bytes: a literal of this length takes about 200 MiB while it is parsed.
pub const MAX_PATTERN_BYTES: usize = 1 << 20;
/// The greatest number of syntax characters in a pattern; each may take ten times the memory of a literal character.
pub const MAX_SYNTAX: usize = 1 << 18;
/// The greatest nesting depth of groups, brackets, repetitions, alternations and sequences.
pub const MAX_NESTING: u32 = 1_000;

/// The syntax of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Dialect {
    /// The syntax of the Rust crate `regex`, close to Python's `re`; an opening bracket within a class is a character.
    #[default]
    Standard,
    /// The same, except that an opening bracket within a class begins a nested class, as in that crate.
    Nested,
    /// ECMA-262 with the `u` flag and the harmless part of Annex B, as `pattern` in JSON Schema requires.
    EcmaScript,
}

/// Which part of a text a pattern has to match.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Anchoring {
    /// The whole text.
    #[default]
    Whole,
    /// Any part of it: the result matches every text that contains a match.
    Search,
}

/// How a pattern is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PatternOptions {
    /// The syntax of the pattern.
    pub dialect: Dialect,
    /// The part of a text that it has to match.
    pub anchoring: Anchoring,
}
