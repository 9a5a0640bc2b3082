//! Which texts of a JSON value are meant.

/// Which JSON texts of a valid value belong to the grammar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Spelling {
    /// Every text of unconstrained values. In declared keys and in strings of `const`, `enum`, `pattern` and `format`,
    /// printable ASCII has no escapes. Constrained numbers are plain decimals; trailing zeros are allowed.
    #[default]
    Natural,
    /// Every text that a JSON reader maps to a valid value.
    Any,
    /// Bare strings, without quotes and escapes; useful only for schemas that allow only strings.
    Bare,
}
