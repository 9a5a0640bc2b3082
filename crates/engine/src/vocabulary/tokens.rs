//! The tokens of a tokenizer: the bytes of each, the stop tokens, and the trie of all.

use std::sync::{Arc, OnceLock};

use stencilm_support::FEW;

use crate::vocabulary::category_trie::CategoryTrie;
use crate::vocabulary::common_bytes::CommonBytes;
use crate::vocabulary::keys_within_tokens::WholeKeys;
use crate::vocabulary::token_lengths::Lengths;
use crate::vocabulary::token_set;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::trie::Trie;

/// Why [`Tokens::new`] refuses a vocabulary.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VocabularyError {
    /// There are more tokens than ids.
    #[error("{tokens} tokens do not fit in a vocabulary of size {vocab_size}; raise vocab_size or leave it out")]
    TooManyTokens {
        /// The number of tokens given.
        tokens: usize,
        /// The requested size.
        vocab_size: usize,
    },
    /// A stop or special token has an id outside of the vocabulary.
    #[error("token id {id} is outside of the vocabulary of size {vocab_size}; give ids from 0 to vocab_size - 1")]
    IdOutOfRange {
        /// The id.
        id: u32,
        /// The size of the vocabulary.
        vocab_size: usize,
    },
    /// The vocabulary has more tokens than ids are supported.
    #[error("a vocabulary of size {0} is not supported; the greatest size is 2^24")]
    TooLarge(usize),
    /// A token is too long.
    #[error("token {id} spells {len} bytes; the greatest length is 65,535")]
    TokenTooLong {
        /// The token.
        id: u32,
        /// Its length in bytes.
        len: usize,
    },
}

/// The start and length of a token's bytes.
type Span = (u32, u32);

/// The bytes of all tokens concatenated, and the span of each token.
fn concatenated<T: AsRef<[u8]>>(tokens: &[Option<T>]) -> Result<(Vec<u8>, Vec<Span>), VocabularyError> {
    let mut bytes = Vec::new();
    let mut spans = Vec::with_capacity(tokens.len());
    for (id, token) in tokens.iter().enumerate() {
        let token = token.as_ref().map_or(&[][..], AsRef::as_ref);
        if token.len() > usize::from(u16::MAX) {
            return Err(VocabularyError::TokenTooLong { id: id as u32, len: token.len() });
        }
        spans.push((bytes.len() as u32, token.len() as u32));
        bytes.extend_from_slice(token);
    }
    Ok((bytes, spans))
}

/// The tokens of a tokenizer.
pub struct Tokens {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    vocab_size: usize,
    stop_token_ids: Vec<u32>,
    special_tokens: Vec<(u32, String)>,
    trie: Trie,
    /// The tokens in the trie.
    spelled: TokenSet,
    /// For every group of tokens with equal bytes: the token in the trie, and the others.
    duplicates: Vec<(u32, Vec<u32>)>,
    fingerprint: u128,
    /// See [`Tokens::escaping`].
    escaping: OnceLock<Box<[u32]>>,
    /// See [`Tokens::quoting`].
    quoting: OnceLock<Box<[u32]>>,
    /// See [`Tokens::common_words`].
    common_words: OnceLock<Box<[u32]>>,
    whole_keys: OnceLock<WholeKeys>,
    lengths: OnceLock<Arc<Lengths>>,
    category_trie: OnceLock<CategoryTrie>,
    common_bytes: OnceLock<CommonBytes>,
}

impl Tokens {
    /// The tokens of a vocabulary, given the bytes of each id; `None` for a special token or an unused id. Ids from
    /// `tokens.len()` to `vocab_size` are padding.
    ///
    /// # Errors
    /// [`VocabularyError`] for ids or sizes that do not fit.
    pub fn new<T: AsRef<[u8]>>(
        tokens: &[Option<T>],
        vocab_size: usize,
        stop_token_ids: &[u32],
        special_tokens: &[(u32, String)],
    ) -> Result<Tokens, VocabularyError> {
        if tokens.len() > vocab_size {
            return Err(VocabularyError::TooManyTokens { tokens: tokens.len(), vocab_size });
        }
        if vocab_size > 1 << 24 {
            return Err(VocabularyError::TooLarge(vocab_size));
        }
        let named = stop_token_ids.iter().chain(special_tokens.iter().map(|(id, _)| id));
        if let Some(&id) = named.clone().find(|&&id| id as usize >= vocab_size) {
            return Err(VocabularyError::IdOutOfRange { id, vocab_size });
        }
        let (bytes, mut spans) = concatenated(tokens)?;
        // A stop or special token never has bytes, whatever its text is.
        for &id in named {
            if let Some(span) = spans.get_mut(id as usize) {
                span.1 = 0;
            }
        }
        let spelled = |id: u32| {
            let (start, len) = spans[id as usize];
            &bytes[start as usize..][..len as usize]
        };
        let mut order: Vec<u32> = (0..spans.len() as u32).filter(|&id| spans[id as usize].1 > 0).collect();
        order.sort_unstable_by(|&a, &b| spelled(a).cmp(spelled(b)).then(a.cmp(&b)));
        let mut duplicates: Vec<(u32, Vec<u32>)> = Vec::new();
        let mut unique: Vec<u32> = Vec::with_capacity(order.len());
        for id in order {
            match unique.last() {
                Some(&first) if spelled(first) == spelled(id) => match duplicates.last_mut() {
                    Some((known, others)) if *known == first => others.push(id),
                    _ => duplicates.push((first, vec![id])),
                },
                _ => unique.push(id),
            }
        }
        duplicates.sort_unstable_by_key(|&(first, _)| first);
        let trie = Trie::from_sorted(unique.iter().map(|&id| (spelled(id), id)));
        let mut in_trie = TokenSet::empty(vocab_size);
        unique.iter().for_each(|&id| in_trie.insert(id));
        let mut stop_token_ids = stop_token_ids.to_vec();
        stop_token_ids.sort_unstable();
        stop_token_ids.dedup();
        let mut special_tokens = special_tokens.to_vec();
        special_tokens.sort_unstable();
        let mut tokens = Tokens {
            fingerprint: 0,
            escaping: OnceLock::new(),
            quoting: OnceLock::new(),
            common_words: OnceLock::new(),
            whole_keys: OnceLock::new(),
            lengths: OnceLock::new(),
            category_trie: OnceLock::new(),
            common_bytes: OnceLock::new(),
            bytes,
            spans,
            vocab_size,
            stop_token_ids,
            special_tokens,
            trie,
            spelled: in_trie,
            duplicates,
        };
        tokens.fingerprint = tokens.hashed();
        Ok(tokens)
    }

    /// The hash of everything that defines the vocabulary.
    fn hashed(&self) -> u128 {
        let mut fingerprint = Fingerprint::new();
        fingerprint.number(self.vocab_size);
        for &(start, len) in &self.spans {
            fingerprint.bytes(&self.bytes[start as usize..][..len as usize]);
        }
        self.stop_token_ids.iter().for_each(|&id| fingerprint.number(id as usize));
        for (id, name) in &self.special_tokens {
            fingerprint.number(*id as usize);
            fingerprint.bytes(name.as_bytes());
        }
        fingerprint.0
    }

    /// The number of ids with padding, which is the number of bits of a mask.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// The number of 32-bit words of a mask.
    pub fn mask_words(&self) -> usize {
        self.vocab_size.div_ceil(32)
    }

    /// The tokens that end a text, ascending.
    pub fn stop_token_ids(&self) -> &[u32] {
        &self.stop_token_ids
    }

    /// The tokens that stand for no text, with their names, ascending by id.
    pub fn special_tokens(&self) -> &[(u32, String)] {
        &self.special_tokens
    }

    /// The bytes of a token; `None` for stop tokens, special tokens, unused ids, empty tokens and padding.
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        let &(start, len) = self.spans.get(id as usize)?;
        if len == 0 { None } else { Some(&self.bytes[start as usize..][..len as usize]) }
    }

    /// The tokens in the trie: all tokens with bytes, and only the first of those with equal bytes.
    pub(crate) fn spelled(&self) -> &TokenSet {
        &self.spelled
    }

    /// The trie of all tokens with bytes. Of tokens with equal bytes it contains the first.
    pub fn trie(&self) -> &Trie {
        &self.trie
    }

    /// The groups of tokens with equal bytes: the one in the trie, and the others.
    pub fn duplicates(&self) -> &[(u32, Vec<u32>)] {
        &self.duplicates
    }

    /// The tokens in the trie that contain a backslash.
    pub(crate) fn escaping(&self) -> &[u32] {
        self.escaping.get_or_init(|| {
            let tokens = (0..self.trie.len()).filter_map(|node| self.trie.entry_at(node));
            let escapes = |token: &u32| self.token_bytes(*token).is_some_and(|bytes| bytes.contains(&b'\\'));
            tokens.filter(escapes).collect()
        })
    }

    /// The tokens that contain a quote or a backslash, ascending: those that do more than continue a JSON string.
    pub(crate) fn quoting(&self) -> &[u32] {
        self.quoting.get_or_init(|| {
            let quotes = |bytes: &[u8]| bytes.iter().any(|byte| b"\"\\".contains(byte));
            let tokens = 0..self.vocab_size as u32;
            tokens.filter(|&token| self.token_bytes(token).is_some_and(quotes)).collect()
        })
    }

    /// Some common words, perhaps with a leading space, ascending. Tokenizers give common tokens low ids.
    pub(crate) fn common_words(&self) -> &[u32] {
        self.common_words.get_or_init(|| {
            let is_word = |bytes: &[u8]| {
                let word = bytes.strip_prefix(b" ").unwrap_or(bytes);
                word.len() > 1 && word.iter().all(u8::is_ascii_alphabetic)
            };
            let tokens = 0..self.vocab_size as u32;
            tokens.filter(|&token| self.token_bytes(token).is_some_and(is_word)).take(FEW).collect()
        })
    }

    /// The keys that lie within tokens.
    pub(crate) fn whole_keys(&self) -> &WholeKeys {
        self.whole_keys.get_or_init(|| WholeKeys::of(&self.trie, self.vocab_size, |token| self.token_bytes(token)))
    }

    /// The tokens in the trie by length.
    pub(crate) fn lengths(&self) -> &Arc<Lengths> {
        self.lengths.get_or_init(|| Arc::new(Lengths::new(&self.trie, self.vocab_size)))
    }

    /// The category strings of the tokens of the trie.
    pub(crate) fn category_trie(&self) -> &CategoryTrie {
        self.category_trie.get_or_init(|| CategoryTrie::new(&self.trie))
    }

    /// Adds the tokens in the trie that contain a byte.
    pub(crate) fn add_tokens_with(&self, byte: u8, tokens: &mut TokenSet) {
        if let Some(known) = self.common_bytes().tokens_with(byte) {
            return token_set::add(tokens.words_mut(), known.words());
        }
        let below = self.trie.nodes_of(byte).iter().flat_map(|&node| self.trie.entries_below(node as usize));
        below.for_each(|token| tokens.insert(token));
    }

    fn common_bytes(&self) -> &CommonBytes {
        self.common_bytes.get_or_init(|| {
            let tokens = self.spelled.iter().filter_map(|token| Some((token, self.token_bytes(token)?)));
            CommonBytes::of(tokens, self.vocab_size)
        })
    }

    /// Builds what masks of JSON need, so that no mask has to wait for it.
    pub(crate) fn lay_out(&self) {
        self.trie.lay_out();
        self.escaping();
        self.quoting();
        self.whole_keys();
        self.lengths();
        self.category_trie();
        self.common_bytes();
    }

    /// The bytes on the path to a node of the trie, including its own.
    pub(crate) fn bytes_to(&self, node: u32) -> &[u8] {
        let node = node as usize;
        let token = self.trie.entries_below(node).next().expect("every node leads to a token");
        let bytes = self.token_bytes(token).expect("a token in the trie spells bytes");
        &bytes[..self.trie.depth(node)]
    }

    /// The bytes on the path to a node of the trie, without its own.
    pub(crate) fn bytes_before(&self, node: u32) -> &[u8] {
        self.bytes_to(node).split_last().expect("a byte leads to every node").1
    }

    /// The other tokens with the same bytes as this token of the trie.
    pub fn same_bytes(&self, id: u32) -> &[u32] {
        let found = self.duplicates.binary_search_by_key(&id, |&(first, _)| first);
        found.map_or(&[], |at| &self.duplicates[at].1)
    }

    /// A number that is equal for equal vocabularies, on every machine.
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// Bytes of memory held by the tokens and the trie.
    pub fn memory_bytes(&self) -> usize {
        let listed = |list: &OnceLock<Box<[u32]>>| list.get().map_or(0, |tokens| size_of_val(&**tokens));
        self.bytes.len()
            + self.spans.len() * 8
            + self.trie.memory_bytes()
            + listed(&self.escaping)
            + listed(&self.quoting)
            + self.lengths.get().map_or(0, |lengths| lengths.memory_bytes())
            + self.category_trie.get().map_or(0, CategoryTrie::memory_bytes)
            + self.common_bytes.get().map_or(0, CommonBytes::memory_bytes)
    }
}

/// FNV-1a with 128 bits. Unlike the hashes of the standard library, it is the same on every machine and in every
/// version.
struct Fingerprint(u128);

impl Fingerprint {
    fn new() -> Fingerprint {
        Fingerprint(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        for &byte in bytes {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    fn number(&mut self, number: usize) {
        for byte in (number as u64).to_le_bytes() {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(tokens: &[Option<&str>], stop: &[u32]) -> Result<Tokens, VocabularyError> {
        Tokens::new(tokens, tokens.len() + 2, stop, &[])
    }

    #[test]
    fn holes_duplicates_and_stop_tokens() {
        let vocabulary = tokens(&[Some("a"), None, Some("b"), Some("a"), Some(""), Some("</s>")], &[5]).unwrap();
        assert_eq!(vocabulary.token_bytes(0), Some(&b"a"[..]));
        for id in [1, 4, 5, 6, 7, 8] {
            assert_eq!(vocabulary.token_bytes(id), None, "token {id}");
        }
        assert_eq!(vocabulary.duplicates(), [(0, vec![3])]);
        assert_eq!(vocabulary.trie().len(), 2);
        assert_eq!((vocabulary.vocab_size(), vocabulary.mask_words()), (8, 1));
    }

    #[test]
    fn ids_out_of_range_are_refused() {
        let error = tokens(&[Some("a")], &[9]).err().expect("id 9 does not exist");
        assert_eq!(error, VocabularyError::IdOutOfRange { id: 9, vocab_size: 3 });
        let tokens = [Some("a"), Some("b")];
        let error = Tokens::new(&tokens, 1, &[], &[]).err().expect("two tokens, one id");
        assert_eq!(error, VocabularyError::TooManyTokens { tokens: 2, vocab_size: 1 });
    }
}
