//! Whether a text ends within the quotes of JSON.

/// The position of a text's end relative to JSON strings.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Quoting {
    #[default]
    Outside,
    Within,
    /// After a backslash.
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
