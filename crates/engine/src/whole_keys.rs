//! Keys that lie whole within a token, from one quote to the next: what tells at a glance that none of them repeats a key.
//!
//! A mask takes every key for a new one, and a token such as `","` holds one. The vocabulary of Llama-3 has 230 tokens with
//! two quotes, but between these only 48 different texts, of at most three characters.

use rustc_hash::FxHashSet;

use crate::json_text;
use crate::tokens::Tokens;
use crate::tokenset::TokenSet;

/// Of a token with more quotes, or of one more when so many keys are known, the keys are not kept.
const MAX_QUOTES: usize = 16;
const MAX_KEYS: usize = 4_096;

/// The keys within the tokens of a vocabulary.
pub(crate) struct WholeKeys {
    /// The tokens that hold some.
    tokens: TokenSet,
    /// Those of which the keys that are known do not tell all: the same is there twice, or there are too many.
    unclear: TokenSet,
    /// The keys, as the values of JSON strings, once each.
    keys: Box<[Box<[u8]>]>,
}

impl WholeKeys {
    /// The keys within the tokens of a trie.
    pub fn of(vocabulary: &Tokens) -> WholeKeys {
        let size = vocabulary.vocab_size();
        let (mut tokens, mut unclear) = (TokenSet::empty(size), TokenSet::empty(size));
        let mut all: FxHashSet<Box<[u8]>> = FxHashSet::default();
        let trie = vocabulary.trie();
        for token in (0..trie.len()).filter_map(|node| trie.entry_at(node)) {
            let Some(bytes) = vocabulary.token_bytes(token) else { continue };
            let quotes = bytes.iter().filter(|&&byte| byte == b'"').count();
            if quotes < 2 {
                continue;
            }
            tokens.insert(token);
            if quotes > MAX_QUOTES || all.len() >= MAX_KEYS {
                unclear.insert(token);
                continue;
            }
            let mut keys: Vec<Vec<u8>> = match bytes.contains(&b'\\') {
                true => between_any_quotes(bytes),
                false => within_quotes(bytes).map(<[u8]>::to_vec).collect(),
            };
            all.extend(keys.iter().map(|key| Box::from(&key[..])));
            let count = keys.len();
            keys.sort_unstable();
            keys.dedup();
            if keys.len() < count {
                unclear.insert(token);
            }
        }
        let mut keys: Vec<Box<[u8]>> = all.into_iter().collect();
        keys.sort_unstable();
        WholeKeys { tokens, unclear, keys: keys.into() }
    }

    /// Whether a token holds a whole key.
    pub fn are_in(&self, token: u32) -> bool {
        self.tokens.contains(token)
    }

    /// The keys, as the values of JSON strings.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|key| &**key)
    }

    /// Whether a token may repeat a key though none of [`WholeKeys::keys`] is known.
    pub fn are_unclear_in(&self, token: u32) -> bool {
        self.unclear.contains(token)
    }
}

/// What stands between two quotes of some bytes, be it a key or what is between two strings.
pub(crate) fn within_quotes(bytes: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let quotes = bytes.iter().filter(|&&byte| byte == b'"').count();
    bytes.split(|&byte| byte == b'"').skip(1).take(quotes.saturating_sub(1))
}

/// The values between any two quotes of some bytes: with escapes it is not plain to see which of them begin a string.
fn between_any_quotes(bytes: &[u8]) -> Vec<Vec<u8>> {
    let quotes: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] == b'"').collect();
    let pairs =
        quotes.iter().enumerate().flat_map(|(at, &first)| quotes[at + 1..].iter().map(move |&last| first..=last));
    pairs.map(|pair| json_text::value_of(&bytes[pair])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_stands_between_quotes() {
        let keys = |bytes: &'static [u8]| within_quotes(bytes).collect::<Vec<_>>();
        assert!(keys(b"a\"b").is_empty());
        assert_eq!(keys(b"\"\""), [b""]);
        assert_eq!(keys(b"x\",\"y\":"), [&b","[..], b"y"]);
        let spelled: Vec<Option<Vec<u8>>> = ["\"", "\",\"", "\"a\":\"a\"", "\\\"", "ab", r#""\u0062\"""#]
            .map(|text| Some(text.as_bytes().to_vec()))
            .into();
        let vocabulary = Tokens::new(&spelled, spelled.len(), &[], &[]).expect("the tokens differ");
        let known = WholeKeys::of(&vocabulary);
        let tokens = |is: &dyn Fn(u32) -> bool| (0..6).filter(|&token| is(token)).collect::<Vec<_>>();
        assert_eq!(tokens(&|token| known.are_in(token)), [1, 2, 5]);
        assert_eq!(tokens(&|token| known.are_unclear_in(token)), [2]);
        // Of too many nothing is kept.
        let many = [Some([b"\\", &b"\"a"[..].repeat(400)[..]].concat())];
        let crowded = WholeKeys::of(&Tokens::new(&many, 1, &[], &[]).expect("there is one token"));
        assert!(crowded.are_in(0) && crowded.are_unclear_in(0) && crowded.keys().next().is_none());
        // A quote behind a backslash may be the end of a string that begins before the token, or a part of one.
        assert_eq!(known.keys().collect::<Vec<_>>(), [&b""[..], b",", b":", b"a", b"b\"", b"b\\"]);
    }
}
