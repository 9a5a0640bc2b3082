//! The data with which a tokenizer makes tokens of text: merges, a pre-tokenizer, and the role of each token. It never
//! changes.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_regex::ByteSet;

use super::merges::Merges;
use super::pairs::Pairs;
use super::source::EncodingSource;
use super::texts::Texts;
use crate::canonical::pretokenizer::pattern::PreTokenizer;
use crate::canonical::whitespace::json::json_whitespace;
use crate::vocabulary::token_set::TokenSet;
use crate::vocabulary::tokens::Tokens;
use crate::vocabulary::trie::Trie;

/// In place of a position in the trie of tokens that no merge makes: none of them begins so.
pub(crate) const OFF: u32 = u32::MAX;

/// The role of a token in the encoding.
#[derive(Clone, Copy)]
pub(crate) struct Role {
    /// It stands for a byte of a character that has no token.
    pub is_byte: bool,
    /// No merge makes it, so it is always a whole piece.
    pub is_whole: bool,
}

/// The constant data with which a tokenizer makes tokens of text.
pub(crate) struct Encoder {
    pub tokens: Arc<Tokens>,
    pub merges: Merges,
    /// By token; `None` for tokens that are never written.
    pub roles: Vec<Option<Role>>,
    pub pretokenizer: Option<PreTokenizer>,
    pub pattern: Option<String>,
    /// The texts of the tokens that no merge makes.
    pub whole_pieces: Option<Trie>,
    /// Their first bytes.
    pub whole_firsts: ByteSet,
    /// The whitespace tokens, ascending and as a set.
    pub whitespace_tokens: Vec<u32>,
    pub whitespace_set: TokenSet,
    /// First bytes of which every character has a token, so that no such character is written in bytes.
    pub closed_firsts: ByteSet,
    /// Tokens that are not simply read as their text: bytes of characters, tokens that no merge makes, and tokens that
    /// are never written.
    pub odd_tokens: Vec<u32>,
}

impl Encoder {
    /// # Errors
    /// A sentence that says what is not supported.
    pub fn new(source: &EncodingSource, tokens: Arc<Tokens>) -> Result<Encoder, String> {
        let size = tokens.vocab_size() as u32;
        let in_range = |id: u32| id < size;
        let merged = source.merges.iter().flat_map(|&(left, right, whole)| [left, right, whole]);
        let spelled = source.chars.iter().flatten().map(|&(_, id)| id).chain(source.bytes.iter().copied());
        if source.bytes.len() != 256 || !merged.chain(spelled).all(in_range) {
            return Err("its merges name tokens that the vocabulary does not have".into());
        }
        let chars = source.chars.as_ref().map(|chars| chars.iter().copied().collect::<FxHashMap<char, u32>>());
        let pretokenizer = source.pattern.as_deref().map(PreTokenizer::new).transpose()?;
        let pairs = Pairs::new(source.bytes.clone(), chars, source.changed, &source.merges);
        let merges = Merges::new(pairs, &Texts::new(source, &tokens)?);
        let mut whole_pieces = None;
        if source.whole_pieces {
            if pretokenizer.is_none() {
                return Err("whole texts are looked up among its tokens".into());
            }
            let mut texts: Vec<(&[u8], u32)> = (0..size)
                .filter(|&token| !merges.makes(token))
                .filter_map(|token| Some((tokens.token_bytes(token)?, token)))
                .collect();
            texts.sort_unstable();
            texts.dedup_by_key(|(text, _)| *text);
            whole_pieces = Some(Trie::from_sorted(texts.into_iter()));
        }
        let firsts = whole_pieces.iter().flat_map(|trie| (0..=u8::MAX).filter(|&byte| trie.begins_with(byte)));
        let whole_firsts = firsts.collect();
        let roles: Vec<Option<Role>> = (0..size)
            .map(|token| {
                let bytes = tokens.token_bytes(token)?;
                let is_byte = merges.pairs.chars.is_some()
                    && bytes.len() == 1
                    && merges.pairs.bytes[usize::from(bytes[0])] == token;
                let is_whole = !merges.makes(token);
                (!is_whole || whole_pieces.is_some()).then_some(Role { is_byte, is_whole })
            })
            .collect();
        let is_whitespace = |&token: &u32| {
            tokens.token_bytes(token).is_some_and(|bytes| bytes.iter().all(|byte| b" \t\n\r".contains(byte)))
        };
        let whitespace_tokens: Vec<u32> = (0..size).filter(is_whitespace).collect();
        let mut whitespace_set = TokenSet::empty(tokens.vocab_size());
        whitespace_tokens.iter().for_each(|&token| whitespace_set.insert(token));
        let pattern = source.pattern.clone();
        let closed_firsts = closed_firsts(&merges.pairs);
        let mut encoder = Encoder {
            tokens,
            closed_firsts,
            merges,
            roles,
            pretokenizer,
            pattern,
            whole_pieces,
            whole_firsts,
            whitespace_tokens,
            whitespace_set,
            odd_tokens: Vec::new(),
        };
        let is_odd = |&token: &u32| encoder.role(token).is_none_or(|role| role.is_byte || role.is_whole);
        encoder.odd_tokens = (0..size).filter(is_odd).collect();
        Ok(encoder)
    }

    /// The tokens that the tokenizer writes for a text by itself; `None` where it cannot.
    pub fn encode(&self, text: &str) -> Option<Vec<u32>> {
        let mut ids = Vec::new();
        let Some(pretokenizer) = &self.pretokenizer else {
            return self.encode_piece(text.as_bytes(), &mut ids).then_some(ids);
        };
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(pretokenizer.first_piece(rest));
            if !self.encode_piece(piece.as_bytes(), &mut ids) {
                return None;
            }
            rest = after;
        }
        Some(ids)
    }

    fn encode_piece(&self, piece: &[u8], ids: &mut Vec<u32>) -> bool {
        if self.whole_pieces.is_some()
            && let Some(token) = self.tokens.trie().find(piece).and_then(|node| self.tokens.trie().entry_at(node))
        {
            ids.push(token);
            return true;
        }
        let mut symbols = Vec::with_capacity(piece.len());
        let spelled = self.merges.pairs.spell(piece, &mut symbols);
        self.merges.pairs.merge_all(&mut symbols, |_, _, _| {});
        ids.append(&mut symbols);
        spelled
    }

    /// The source from which it was made.
    pub fn source(&self) -> EncodingSource {
        let Pairs { bytes, chars, changed, .. } = &self.merges.pairs;
        let chars = chars.as_ref().map(|chars| {
            let mut chars: Vec<(char, u32)> = chars.iter().map(|(&character, &id)| (character, id)).collect();
            chars.sort_unstable();
            chars
        });
        EncodingSource {
            bytes: bytes.clone(),
            chars,
            changed: *changed,
            merges: self.merges.pairs.in_order(),
            whole_pieces: self.whole_pieces.is_some(),
            pattern: self.pattern.clone(),
        }
    }

    /// Approximate bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.merges.memory_bytes() + self.roles.len() * size_of::<Option<Role>>()
    }

    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    pub fn splits(&self) -> bool {
        self.pretokenizer.is_some()
    }

    pub fn pretokenizer(&self) -> &PreTokenizer {
        self.pretokenizer.as_ref().expect("asked only where texts are split")
    }

    pub fn by_characters(&self) -> bool {
        self.merges.pairs.chars.is_some()
    }

    /// Whether a character is encoded as a token of its own, or not at all.
    pub fn is_symbol(&self, character: char) -> bool {
        let pairs = &self.merges.pairs;
        Some(character) == pairs.changed || pairs.chars.as_ref().is_some_and(|chars| chars.contains_key(&character))
    }

    /// Whether a token is only whitespace.
    pub fn is_whitespace(&self, token: u32) -> bool {
        self.whitespace_set.contains(token)
    }

    /// Whether merges may join a token with whitespace after it.
    pub fn may_merge_with_whitespace(&self, token: u32) -> bool {
        !self.merges.merging(token).intersect(&json_whitespace()).is_empty()
    }

    /// The role of a token; `None` for tokens that are never written.
    pub fn role(&self, token: u32) -> Option<Role> {
        self.roles.get(token as usize).copied().flatten()
    }

    /// Whether no merge joins two neighbours within a piece.
    pub fn stay_unmerged(&self, before: Option<u32>, token: u32) -> bool {
        before.is_none_or(|before| self.merges.stay_unmerged(before, token))
    }

    /// Whether a position in the trie of tokens that no merge makes is the end of one.
    pub fn is_whole_piece(&self, position: u32) -> bool {
        let Some(trie) = self.whole_pieces.as_ref().filter(|_| position != 0) else { return false };
        trie.entry_at(position as usize - 1).is_some()
    }

    /// The position in that trie after a character.
    pub fn whole_step(&self, position: u32, character: char) -> u32 {
        let Some(trie) = self.whole_pieces.as_ref().filter(|_| position != OFF) else { return OFF };
        let mut position = position;
        for byte in character.encode_utf8(&mut [0; 4]).bytes() {
            let node = match position {
                0 => trie.root(byte),
                _ => trie.child(position as usize - 1, byte),
            };
            let Some(node) = node else { return OFF };
            position = node as u32 + 1;
        }
        position
    }
}

/// The first bytes of two-byte characters of which every character has a token.
fn closed_firsts(pairs: &Pairs) -> ByteSet {
    let Some(chars) = &pairs.chars else { return ByteSet::EMPTY };
    let has_token = |character: char| Some(character) == pairs.changed || chars.contains_key(&character);
    let continues = |first: u8| (0x80..0xC0).map(move |last| [first, last]);
    let is_closed = |&first: &u8| {
        continues(first).all(|bytes| std::str::from_utf8(&bytes).is_ok_and(|text| text.chars().all(has_token)))
    };
    (0xC2..0xE0).filter(is_closed).collect()
}
