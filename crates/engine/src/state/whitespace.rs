//! Whitespace in a JSON text: how much there is between its parts, and how much there may be.
//!
//! Only whitespace outside strings counts. Three states are enough to find it byte by byte.

use std::sync::{Arc, OnceLock};

/// Where the end of a JSON text is, as far as whitespace is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    #[default]
    Between,
    InString,
    /// After a backslash.
    Escaped,
}

/// The amount of whitespace between the parts of a text, and where its end is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Whitespace {
    place: Place,
    /// The whitespace bytes so far.
    pub(crate) bytes: usize,
}

impl Whitespace {
    /// The value after more of the text.
    pub(crate) fn after(mut self, text: &[u8]) -> Whitespace {
        for &byte in text {
            self.place = match (self.place, byte) {
                (Place::Between, b'"') => Place::InString,
                (Place::Between, byte) => {
                    self.bytes += usize::from(is_json_whitespace(byte));
                    Place::Between
                }
                (Place::InString, b'"') => Place::Between,
                (Place::InString, b'\\') => Place::Escaped,
                (Place::InString | Place::Escaped, _) => Place::InString,
            };
        }
        self
    }
}

fn is_json_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// A matcher's whitespace budget; forks share what is known about tokens.
#[derive(Clone)]
pub(crate) struct WhitespaceBudget {
    /// The number of whitespace bytes that the whole text may have.
    pub(crate) bytes: usize,
    spending: Arc<OnceLock<Spending>>,
}

/// The tokens that contain whitespace between parts.
struct Spending {
    between: Vec<u32>,
    /// For a text that ends within a string: these tokens close the string first.
    in_string: Vec<u32>,
}

impl WhitespaceBudget {
    pub(crate) fn new(bytes: usize) -> WhitespaceBudget {
        WhitespaceBudget { bytes, spending: Arc::default() }
    }

    /// The tokens that may add whitespace after such a text; `tokens` are those of the vocabulary with their bytes.
    pub(crate) fn spending<'v>(&self, here: Whitespace, tokens: impl Iterator<Item = (u32, &'v [u8])>) -> &[u32] {
        let spending = self.spending.get_or_init(|| {
            let mut spending = Spending { between: Vec::new(), in_string: Vec::new() };
            for (token, bytes) in tokens.filter(|(_, bytes)| bytes.iter().any(|&byte| is_json_whitespace(byte))) {
                spending.between.push(token);
                if bytes.contains(&b'"') {
                    spending.in_string.push(token);
                }
            }
            spending
        });
        if here.place == Place::Between { &spending.between } else { &spending.in_string }
    }
}

#[cfg(test)]
mod tests {
    use super::Whitespace;

    #[test]
    fn whitespace_counts_outside_strings() {
        for (text, bytes) in
            [("", 0), (" \t\r\n", 4), (r#"{"a b": 1 , "c\" d" :[] }"#, 5), (r#""\\" "\\\" ""#, 1), (r#""a "#, 0)]
        {
            let whole = Whitespace::default().after(text.as_bytes());
            assert_eq!(whole.bytes, bytes, "{text}");
            let parts = text.bytes().fold(Whitespace::default(), |here, byte| here.after(&[byte]));
            assert_eq!(parts, whole, "{text}");
        }
    }
}
