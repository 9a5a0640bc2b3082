//! Keys that lie entirely within a token, from one quote to the next: a quick check that none of them repeats a key.
//!
//! A mask treats every key as new, and a token such as `","` holds one. The vocabulary of Llama-3 has 230 tokens with
//! two quotes, but between these only 48 different texts, of at most three characters.

use rustc_hash::FxHashMap;
use stencilm_support::LOOKED_AT;

use crate::vocabulary::json_text;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::trie::Trie;

/// The keys within the tokens of a vocabulary.
pub(crate) struct WholeKeys {
    /// The tokens that contain keys, each with the positions of these keys in `keys`.
    tokens: FxHashMap<u32, Box<[u32]>>,
    /// The tokens for which a comparison of these keys with the known ones is not enough: a token has the same key
    /// twice, or too many keys.
    unclear: TokenSet,
    /// The distinct keys, as values of JSON strings.
    keys: Box<[Box<[u8]>]>,
}

impl WholeKeys {
    /// Collects the keys within the tokens of a trie; `spelled` gives the bytes of a token.
    pub fn of<'t>(trie: &Trie, vocab_size: usize, spelled: impl Fn(u32) -> Option<&'t [u8]>) -> WholeKeys {
        let mut unclear = TokenSet::empty(vocab_size);
        let mut tokens: FxHashMap<u32, Box<[u32]>> = FxHashMap::default();
        let mut all: FxHashMap<Box<[u8]>, u32> = FxHashMap::default();
        // By depth, the number of quotes on the path.
        let mut quotes_to = vec![0; trie.max_depth() + 1];
        for node in 0..trie.len() {
            let depth = trie.depth(node);
            let quotes = quotes_to[depth - 1] + usize::from(trie.byte(node) == b'"');
            quotes_to[depth] = quotes;
            let Some(token) = trie.entry_at(node).filter(|_| quotes >= 2) else { continue };
            let Some(bytes) = spelled(token) else { continue };
            // With escapes, a key may lie between any two quotes.
            if quotes * quotes + all.len() > LOOKED_AT {
                tokens.insert(token, Box::default());
                unclear.insert(token);
                continue;
            }
            let mut keys: Vec<Vec<u8>> = match bytes.contains(&b'\\') {
                true => between_any_quotes(bytes),
                false => within_quotes(bytes).map(<[u8]>::to_vec).collect(),
            };
            let count = keys.len();
            keys.sort_unstable();
            keys.dedup();
            if keys.len() < count {
                unclear.insert(token);
            }
            let positions = keys.into_iter().map(|key| {
                let next = all.len() as u32;
                *all.entry(key.into()).or_insert(next)
            });
            tokens.insert(token, positions.collect());
        }
        let mut keys: Vec<(Box<[u8]>, u32)> = all.into_iter().collect();
        keys.sort_unstable_by_key(|&(_, position)| position);
        WholeKeys { tokens, unclear, keys: keys.into_iter().map(|(key, _)| key).collect() }
    }

    /// Whether a token contains a whole key.
    pub fn are_in(&self, token: u32) -> bool {
        self.tokens.contains_key(&token)
    }

    /// The keys within a token, each with its position in the list of all.
    pub fn of_token(&self, token: u32) -> impl Iterator<Item = (usize, &[u8])> {
        let positions = self.tokens.get(&token).into_iter().flatten();
        positions.map(|&position| (position as usize, &*self.keys[position as usize]))
    }

    /// The distinct keys, as values of JSON strings.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.keys.iter().map(|key| &**key)
    }

    /// Whether a token may repeat a key even if none of [`WholeKeys::keys`] is known.
    pub fn are_unclear_in(&self, token: u32) -> bool {
        self.unclear.contains(token)
    }
}

/// The texts between adjacent quotes, whether these are keys or lie between two strings.
pub(crate) fn within_quotes(bytes: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let quotes = bytes.iter().filter(|&&byte| byte == b'"').count();
    bytes.split(|&byte| byte == b'"').skip(1).take(quotes.saturating_sub(1))
}

/// The values between any two quotes: with escapes it is not obvious which quotes begin a string.
fn between_any_quotes(bytes: &[u8]) -> Vec<Vec<u8>> {
    let quotes: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] == b'"').collect();
    let pairs =
        quotes.iter().enumerate().flat_map(|(at, &first)| quotes[at + 1..].iter().map(move |&last| first..=last));
    pairs.map(|pair| json_text::value_of(&bytes[pair])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::tokens::Tokens;

    fn of(vocabulary: &Tokens) -> WholeKeys {
        WholeKeys::of(vocabulary.trie(), vocabulary.vocab_size(), |token| vocabulary.token_bytes(token))
    }

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
        let known = of(&vocabulary);
        let tokens = |is: &dyn Fn(u32) -> bool| (0..6).filter(|&token| is(token)).collect::<Vec<_>>();
        assert_eq!(tokens(&|token| known.are_in(token)), [1, 2, 5]);
        assert_eq!(tokens(&|token| known.are_unclear_in(token)), [2]);
        // Of too many keys none are stored.
        let many = [Some([b"\\", &b"\"a"[..].repeat(400)[..]].concat())];
        let crowded = of(&Tokens::new(&many, 1, &[], &[]).expect("there is one token"));
        assert!(crowded.are_in(0) && crowded.are_unclear_in(0) && crowded.keys().next().is_none());
        // A quote after a backslash may end a string that began before the token, or be a part of one.
        let mut keys: Vec<&[u8]> = known.keys().collect();
        keys.sort_unstable();
        assert_eq!(keys, [&b""[..], b",", b":", b"a", b"b\"", b"b\\"]);
        let of = |token| known.of_token(token).map(|(_, key)| key).collect::<Vec<_>>();
        assert_eq!((of(1), of(2), of(4)), (vec![&b","[..]], vec![&b":"[..], b"a"], vec![]));
    }
}
