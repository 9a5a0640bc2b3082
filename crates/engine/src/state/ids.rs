//! Numbers of sets, and those of texts with a special meaning.

/// The empty list of texts or bytes.
pub const NIL: u32 = 0;

/// A key or an element that was not recorded.
pub const UNKNOWN_TEXT: u32 = u32::MAX;

/// A set of entries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SetId(pub u32);

impl SetId {
    /// No entry: no continuation.
    pub const EMPTY: SetId = SetId(0);
    /// The end of the text, and nothing else.
    pub const BOTTOM: SetId = SetId(1);
}
