//! The slow reference for every mask: each token of the vocabulary is tried byte by byte, from the current state.

use crate::error::MatcherError;
use crate::matcher::GrammarMatcher;
use crate::vocabulary::token_set::TokenSet;

/// The tokens that may come next, stop tokens included, found by trying every one.
///
/// # Errors
/// As [`GrammarMatcher::fill_mask`], except that an empty mask is no error.
pub fn mask(matcher: &GrammarMatcher) -> Result<TokenSet, MatcherError> {
    let vocabulary = matcher.compiled().vocabulary().clone();
    let mut mask = TokenSet::empty(vocabulary.vocab_size());
    let mut probe = matcher.fork();
    for token in 0..vocabulary.vocab_size() as u32 {
        if probe.accept_token(token)? {
            mask.insert(token);
            probe.rollback(1)?;
        }
    }
    Ok(mask)
}
