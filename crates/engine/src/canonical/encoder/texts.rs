//! The text of every symbol of the merges, including symbols that are no text tokens of the vocabulary, such as a
//! newline that ends texts.
//!
//! Merges pass through such symbols, though no mask allows them. A symbol exists if text can begin with it as a symbol,
//! or if a merge of existing symbols makes it, so its text follows from theirs. Each text is longer than those of its
//! parts, so walks from a token to its parts end. This is checked here and relied on elsewhere.

use rustc_hash::FxHashMap;

use super::source::EncodingSource;
use crate::vocabulary::tokens::Tokens;

/// The texts of all symbols that merges may make.
pub(crate) struct Texts<'a> {
    tokens: &'a Tokens,
    /// The texts of those that are no text tokens of the vocabulary.
    others: FxHashMap<u32, Vec<u8>>,
}

impl<'a> Texts<'a> {
    /// # Errors
    /// A sentence about a token whose text is not that of its parts.
    pub fn new(source: &EncodingSource, tokens: &'a Tokens) -> Result<Texts<'a>, String> {
        let mut texts = Texts { tokens, others: FxHashMap::default() };
        // A part of a token is no longer than the longest token.
        let longest =
            (0..tokens.vocab_size() as u32).filter_map(|token| tokens.token_bytes(token)).map(<[u8]>::len).max();
        let longest = longest.unwrap_or(0);
        for (byte, &token) in (0..=u8::MAX).zip(&source.bytes) {
            texts.add(token, &[byte])?;
        }
        for &(character, token) in source.chars.iter().flatten() {
            texts.add(token, character.encode_utf8(&mut [0; 4]).as_bytes())?;
        }
        // Merges wait until the texts of their parts are known.
        let mut waiting: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        let mut ready: Vec<usize> = (0..source.merges.len()).rev().collect();
        while let Some(at) = ready.pop() {
            let (left, right, whole) = source.merges[at];
            let (first, second) = match (texts.of(left), texts.of(right)) {
                (Some(first), Some(second)) => (first, second),
                (known, _) => {
                    waiting.entry(if known.is_none() { left } else { right }).or_default().push(at);
                    continue;
                }
            };
            let rest = texts.of(whole).and_then(|known| known.strip_prefix(first));
            if rest != Some(second) && first.len() + second.len() <= longest {
                let text = [first, second].concat();
                texts.add(whole, &text)?;
                ready.extend(waiting.remove(&whole).into_iter().flatten());
            }
        }
        Ok(texts)
    }

    /// The text of a symbol; `None` where the symbol never exists.
    pub fn of(&self, token: u32) -> Option<&[u8]> {
        self.tokens.token_bytes(token).or_else(|| self.others.get(&token).map(Vec::as_slice))
    }

    /// Whether a symbol is a text token of the vocabulary.
    pub fn is_spelled(&self, token: u32) -> bool {
        self.tokens.token_bytes(token).is_some()
    }

    /// The size of the vocabulary.
    pub fn vocab_size(&self) -> usize {
        self.tokens.vocab_size()
    }

    fn add(&mut self, token: u32, text: &[u8]) -> Result<(), String> {
        match self.of(token) {
            None => {
                self.others.insert(token, text.into());
                Ok(())
            }
            Some(known) if known == text => Ok(()),
            Some(known) => Err(format!(
                "its merges make {:?} of token {token}, which spells {:?}",
                String::from_utf8_lossy(text),
                String::from_utf8_lossy(known)
            )),
        }
    }
}
