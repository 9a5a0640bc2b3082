//! Which texts of a JSON value are meant.

/// Which JSON texts of a valid value belong to the grammar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Spelling {
    /// Every text of what is unconstrained; declared keys, `const`, `enum`, `pattern` and `format` strings spell
    /// printable ASCII plainly, and constrained numbers are plain decimals with trailing zeros allowed.
    #[default]
    Natural,
    /// Every text that a JSON reader maps to a valid value.
    Any,
    /// Strings as they are, without quotes and escapes; of use only for schemas that allow nothing but strings.
    Bare,
}
