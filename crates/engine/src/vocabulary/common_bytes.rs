//! ASCII bytes that occur in many tokens, and the tokens in which each occurs.

use stencilm_support::LOOKED_AT;

use crate::vocabulary::token_set::TokenSet;

/// The number of ASCII bytes.
const ASCII: usize = 0x80;

/// By byte, the tokens in which it occurs, where these are many.
pub(crate) struct CommonBytes(Vec<Option<TokenSet>>);

impl CommonBytes {
    /// Collects the bytes of tokens, whose ids are below `vocab_size`.
    pub fn of<'t>(tokens: impl Iterator<Item = (u32, &'t [u8])>, vocab_size: usize) -> CommonBytes {
        let mut sets = vec![TokenSet::empty(vocab_size); ASCII];
        for (token, bytes) in tokens {
            bytes.iter().filter(|byte| byte.is_ascii()).for_each(|&byte| sets[usize::from(byte)].insert(token));
        }
        CommonBytes(sets.into_iter().map(|set| (set.len() >= LOOKED_AT).then_some(set)).collect())
    }

    /// The tokens with a byte; `None` where the byte is not stored.
    pub fn tokens_with(&self, byte: u8) -> Option<&TokenSet> {
        self.0.get(usize::from(byte))?.as_ref()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.0.iter().flatten().map(TokenSet::memory_bytes).sum::<usize>()
            + self.0.len() * size_of::<Option<TokenSet>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_many_tokens_are_known() {
        let texts: Vec<String> =
            (0..LOOKED_AT + 10).map(|number| format!("a{}", "b".repeat(usize::from(number < 10)))).collect();
        let tokens = texts.iter().zip(0..).map(|(text, token)| (token, text.as_bytes()));
        let common = CommonBytes::of(tokens, texts.len());
        assert_eq!(common.tokens_with(b'a').map(TokenSet::len), Some(texts.len()));
        assert!(common.tokens_with(b'b').is_none() && common.tokens_with(0xC3).is_none());
    }
}
