//! A budget of whitespace for the whole of a JSON text: near its end masks leave out the tokens that would overrun it.
//!
//! Whitespace counts where it stands outside strings, and three states tell byte by byte where that is. It can nearly always
//! be left out, so nothing is looked for behind a token. Where the grammar or the vocabulary has nothing else to go on with,
//! the budget gives way and not the text.

use std::sync::{Arc, OnceLock};

use super::GrammarMatcher;
use crate::shared::Vocabulary;
use crate::vocabulary::token_set;

/// Where a JSON text is, as far as its whitespace asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    #[default]
    Between,
    InString,
    /// Behind a backslash.
    Escaped,
}

/// How much whitespace a text holds between its parts, and where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Whitespace {
    place: Place,
    bytes: usize,
}

impl Whitespace {
    /// The same behind more of the text.
    pub(super) fn behind(mut self, text: &[u8]) -> Whitespace {
        for &byte in text {
            self.place = match (self.place, byte) {
                (Place::Between, b'"') => Place::InString,
                (Place::Between, byte) => {
                    self.bytes += usize::from(is_blank(byte));
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

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// What a matcher knows of its budget of whitespace; forks share what is found out about tokens.
#[derive(Clone)]
pub(super) struct WhitespaceBudget {
    bytes: usize,
    spending: Arc<OnceLock<Spending>>,
}

/// The tokens that may spend anything.
struct Spending {
    between: Vec<u32>,
    /// They end the string first.
    in_string: Vec<u32>,
}

impl WhitespaceBudget {
    pub(super) fn new(bytes: usize) -> WhitespaceBudget {
        WhitespaceBudget { bytes, spending: Arc::default() }
    }

    fn spending(&self, vocabulary: &Vocabulary, place: Place) -> &[u32] {
        let spending = self.spending.get_or_init(|| {
            let mut spending = Spending { between: Vec::new(), in_string: Vec::new() };
            for token in 0..u32::try_from(vocabulary.vocab_size()).expect("ids of tokens are 32 bits wide") {
                let Some(bytes) = vocabulary.token_bytes(token) else { continue };
                if bytes.iter().any(|&byte| is_blank(byte)) {
                    spending.between.push(token);
                    if bytes.contains(&b'"') {
                        spending.in_string.push(token);
                    }
                }
            }
            spending
        });
        if place == Place::Between { &spending.between } else { &spending.in_string }
    }
}

impl GrammarMatcher {
    /// How many bytes of whitespace between the parts of a JSON text are left; less than none where the budget gave way, and
    /// `None` without a budget.
    pub fn whitespace_budget_left(&self) -> Option<i64> {
        let budget = self.whitespace.as_ref()?;
        Some(budget.bytes as i64 - self.now().whitespace.bytes as i64)
    }

    /// How many bytes of whitespace the whole text may have between its parts, where that is bounded.
    pub fn whitespace_budget(&self) -> Option<usize> {
        self.whitespace.as_ref().map(|budget| budget.bytes)
    }

    /// Whether some token could overrun the budget.
    pub(super) fn is_short_of_whitespace(&self) -> bool {
        let longest = self.compiled.vocabulary().trie().max_depth();
        self.whitespace_budget_left().is_some_and(|left| left < i64::try_from(longest).unwrap_or(i64::MAX))
    }

    /// Takes from a mask the tokens that would overrun the budget, if others are left; says whether it did anything.
    pub(super) fn spare_whitespace(&self, mask: &mut [u32]) -> bool {
        if !self.is_short_of_whitespace() {
            return false;
        }
        let Some(budget) = &self.whitespace else { return false };
        let (vocabulary, now) = (self.compiled.vocabulary(), self.now().whitespace);
        let most = budget.bytes.max(now.bytes);
        let mut taken: Vec<u32> = Vec::new();
        for &token in budget.spending(vocabulary, now.place) {
            let bytes = vocabulary.token_bytes(token).filter(|_| token_set::get(mask, token));
            if bytes.is_some_and(|bytes| now.behind(bytes).bytes > most) {
                token_set::clear(mask, token);
                taken.push(token);
            }
        }
        if mask.iter().all(|&word| word == 0) {
            taken.drain(..).for_each(|token| token_set::set(mask, token));
        }
        !taken.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Whitespace;

    #[test]
    fn whitespace_counts_outside_strings() {
        for (text, bytes) in
            [("", 0), (" \t\r\n", 4), (r#"{"a b": 1 , "c\" d" :[] }"#, 6), (r#""\\" "\\\" ""#, 1), (r#""a "#, 0)]
        {
            let whole = Whitespace::default().behind(text.as_bytes());
            assert_eq!(whole.bytes, bytes, "{text}");
            let parts = text.bytes().fold(Whitespace::default(), |here, byte| here.behind(&[byte]));
            assert_eq!(parts, whole, "{text}");
        }
    }
}
