//! How a pattern is read, and how large it may be.

/// Longest pattern accepted, in bytes: a literal of this length takes about 200 MiB while it is parsed.
pub const MAX_PATTERN_BYTES: usize = 1 << 20;
/// Most characters of syntax accepted in a pattern; each may cost ten times the memory of a literal character.
pub const MAX_SYNTAX: usize = 1 << 18;
/// Deepest nesting of groups, brackets, repetitions, alternations and sequences accepted.
pub const MAX_NESTING: u32 = 1_000;

/// Which spelling a pattern is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Dialect {
    /// The syntax of the Rust crate `regex`, close to Python's `re`; an opening bracket within a class is a character.
    #[default]
    Standard,
    /// The same, where an opening bracket within a class begins a class within it, as in that crate.
    Nested,
    /// ECMA-262 with the `u` flag, and the harmless part of Annex B: what JSON Schema `pattern` asks for.
    EcmaScript,
}

/// Which part of a text a pattern has to match.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Anchoring {
    /// The whole text.
    #[default]
    Whole,
    /// Any part of it: the result matches whatever text contains a match.
    Search,
}

/// How a pattern is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PatternOptions {
    /// Which spelling it is in.
    pub dialect: Dialect,
    /// Which part of a text it has to match.
    pub anchoring: Anchoring,
}
