//! The whitespace of JSON.

use stencilm_regex::ByteSet;

/// The bytes that may stand between the tokens of JSON.
pub(crate) const JSON_WHITESPACE: [u8; 4] = *b" \t\n\r";

/// The same as a set.
pub(crate) const fn json_whitespace() -> ByteSet {
    const SET: ByteSet = {
        let (mut set, mut at) = (ByteSet::EMPTY, 0);
        while at < JSON_WHITESPACE.len() {
            set.insert(JSON_WHITESPACE[at]);
            at += 1;
        }
        set
    };
    SET
}
