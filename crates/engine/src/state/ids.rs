//! Numbers of texts that mean something of their own.

/// The empty list of texts or bytes.
pub const NIL: u32 = 0;

/// A key or an element that was not recorded.
pub const UNKNOWN_TEXT: u32 = u32::MAX;
