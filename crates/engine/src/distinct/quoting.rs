//! Where a text stands in the quotes of JSON, and what was read since then.

use crate::state::stacks::Stacks;

/// Whether a text is within a JSON string.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Quoting {
    #[default]
    Outside,
    Within,
    /// Behind a backslash.
    Escape,
}

impl Quoting {
    pub(crate) fn after(self, byte: u8) -> Quoting {
        match (self, byte) {
            (Quoting::Outside, b'"') | (Quoting::Escape, _) => Quoting::Within,
            (Quoting::Within, b'"') => Quoting::Outside,
            (Quoting::Within, b'\\') => Quoting::Escape,
            (same, _) => same,
        }
    }
}

/// What was read since the text was `start`.
pub(crate) fn text_since(stacks: &Stacks, text: u32, start: u32) -> Vec<u8> {
    let mut bytes = stacks.since(text, start);
    bytes.reverse();
    bytes
}
