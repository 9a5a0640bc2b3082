//! Numbers of sets, and numbers of texts with a special meaning.

/// The empty list of texts or bytes.
pub const NIL: u32 = 0;

/// A key or an element that was not recorded.
pub const UNKNOWN_TEXT: u32 = u32::MAX;

/// The number of a set of entries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SetId(pub u32);

impl SetId {
    /// No entry: nothing can follow.
    pub const EMPTY: SetId = SetId(0);
    /// Only the end of the text.
    pub const BOTTOM: SetId = SetId(1);
}
