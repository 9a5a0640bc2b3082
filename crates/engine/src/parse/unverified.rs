//! Tokens that an optimistic mask may wrongly allow, and why: they are verified when the mask is used.

/// A token for which the assumption that keys and elements are new may be wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unverified {
    pub token: u32,
    /// What may not be new.
    pub cause: VerifyReason,
}

/// Why a token has to be verified: something that was taken for new may not be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VerifyReason {
    /// A key within the token; `unclear` where a comparison with the known keys does not decide.
    WholeKey {
        /// See [`crate::vocabulary::keys_within_tokens::WholeKeys::are_unclear_in`].
        unclear: bool,
    },
    /// A key that began before the token.
    BegunKey,
    /// An element of an array whose elements must differ.
    Element,
    /// The end of an array that needs two equal elements.
    Repeat,
}

impl Unverified {
    /// A token that may end a known key that began before it.
    pub fn begun_key(token: u32) -> Unverified {
        Unverified { token, cause: VerifyReason::BegunKey }
    }

    /// A token that may end an array without the two equal elements that it needs.
    pub fn repeat(token: u32) -> Unverified {
        Unverified { token, cause: VerifyReason::Repeat }
    }

    /// A token that may repeat an element.
    pub fn element(token: u32) -> Unverified {
        Unverified { token, cause: VerifyReason::Element }
    }
}
