//! The whitespace of a JSON text: how much of it there is between its parts, and how much there may be.
//!
//! Only whitespace outside strings counts, and three states tell byte by byte where that is.

use std::sync::{Arc, OnceLock};

/// Where a JSON text is, as far as its whitespace asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    #[default]
    Between,
    InString,
    /// After a backslash.
    Escaped,
}

/// How much whitespace a text holds between its parts, and where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Whitespace {
    place: Place,
    /// What was spent.
    pub(crate) bytes: usize,
}

impl Whitespace {
    /// The same after more of the text.
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

/// What a matcher knows of its budget of whitespace; forks share what is found out about tokens.
#[derive(Clone)]
pub(crate) struct WhitespaceBudget {
    /// What may be spent in all.
    pub(crate) bytes: usize,
    spending: Arc<OnceLock<Spending>>,
}

/// The tokens that may spend anything.
struct Spending {
    between: Vec<u32>,
    /// They end the string first.
    in_string: Vec<u32>,
}

impl WhitespaceBudget {
    pub(crate) fn new(bytes: usize) -> WhitespaceBudget {
        WhitespaceBudget { bytes, spending: Arc::default() }
    }

    /// The tokens that may spend anything where a text is; `tokens` are those of the vocabulary, with what they spell.
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
