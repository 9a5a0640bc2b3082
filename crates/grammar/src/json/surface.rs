//! How an object is written around its keys and values.

use stencilm_regex::ExprId;

/// How an object is written: the text between its keys and values, whitespace included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Surface {
    /// The whole object when it has no member, `{` to `}`.
    pub empty: ExprId,
    /// From `{` to before the first key.
    pub open: ExprId,
    /// Between a key and its value.
    pub colon: ExprId,
    /// Between a value and the next key.
    pub item: ExprId,
    /// After the last value, to `}`.
    pub close: ExprId,
}
