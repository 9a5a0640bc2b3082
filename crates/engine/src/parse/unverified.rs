//! Tokens that an optimistic mask may wrongly allow, and why: they are verified when the mask is used.

/// A token for which it may be wrong that keys and elements were taken for new ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unverified {
    /// The token.
    pub token: u32,
    /// What may be known already.
    pub cause: VerifyReason,
}

/// What may be known already, though it was taken for new.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VerifyReason {
    /// A key that lies whole within the token; `unclear` where the keys that are known do not decide.
    WholeKey {
        /// See [`crate::vocabulary::keys_within_tokens::WholeKeys::are_unclear_in`].
        unclear: bool,
    },
    /// A key that had begun before the token.
    BegunKey,
    /// An element of an array whose elements must differ.
    Element,
    /// The end of an array of which two elements must be equal.
    Repeat,
}

impl Unverified {
    /// A token that may end a known key which had begun before.
    pub fn begun_key(token: u32) -> Unverified {
        Unverified { token, cause: VerifyReason::BegunKey }
    }

    /// A token that may end an array which has no two equal elements and needs them.
    pub fn repeat(token: u32) -> Unverified {
        Unverified { token, cause: VerifyReason::Repeat }
    }

    /// A token that may end a known element.
    pub fn element(token: u32) -> Unverified {
        Unverified { token, cause: VerifyReason::Element }
    }
}
