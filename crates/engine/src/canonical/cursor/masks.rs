//! Cursor masks: the tokens that fit a cursor, and those of them that may follow a certain token.

use std::convert::Infallible;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stencilm_support::LARGE_BUDGET;

use super::class_strings::ClassStrings;
use super::table::{CursorId, Cursors, Reading};
use crate::canonical::cursor::state::CursorKey;
use crate::canonical::encoder::facts::{Encoder, Role};
use crate::switches::Switch;
use crate::vocabulary::token_set::{self, TokenSet};

/// The tokens that fit a cursor.
struct Fitting {
    /// All tokens that fit if no merge joins them with the token before.
    all: Arc<[u32]>,
    /// The tokens that fit even if a merge would join them with the token before, because a piece ends between the two;
    /// often all of them.
    anyway: Arc<[u32]>,
    /// By the token before, the tokens that fit after it.
    after: FxHashMap<u32, Arc<[u32]>>,
}

/// The cursor masks computed so far, within a budget.
#[derive(Default)]
pub(crate) struct CursorMasks {
    fitting: FxHashMap<CursorKey, Fitting>,
    bytes: usize,
    /// Where text is encoded from bytes and cut by a pattern.
    class_strings: Option<ClassStrings>,
}

impl CursorMasks {
    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.class_strings.as_ref().map_or(0, ClassStrings::memory_bytes)
    }

    /// Forgets the masks after tokens. The masks of cursors take longer to compute; they are dropped only where there
    /// are many.
    fn forget(&mut self, encoding: &Encoder) {
        self.fitting.values_mut().for_each(|fitting| fitting.after = FxHashMap::default());
        self.bytes = self.fitting.len() * 2 * encoding.tokens().mask_words() * 4;
        if self.bytes > LARGE_BUDGET / 2 {
            (self.fitting, self.bytes) = Default::default();
        }
    }

    /// Computes the tokens that fit a cursor, given without the parts that do not affect them.
    fn lay_out(&mut self, encoding: &Encoder, cursors: &mut Cursors, key: &CursorKey) {
        if !self.fitting.contains_key(key) {
            if self.class_strings.is_none() && encoding.splits() && !encoding.by_characters() {
                self.class_strings = Some(ClassStrings::new(encoding));
            }
            let [mut all, anyway] = fitting(encoding, self.class_strings.as_ref(), cursors, key);
            token_set::add(all.words_mut(), anyway.words());
            let all: Arc<[u32]> = all.words().into();
            let anyway = if anyway.words() == &all[..] { all.clone() } else { anyway.words().into() };
            self.fitting.insert(key.clone(), Fitting { all, anyway, after: FxHashMap::default() });
            self.bytes += 2 * encoding.tokens().mask_words() * 4;
        }
    }

    /// The tokens that fit a cursor after a token.
    pub fn after(
        &mut self,
        encoding: &Encoder,
        cursors: &mut Cursors,
        key: &CursorKey,
        before: Option<u32>,
    ) -> Arc<[u32]> {
        let key = key.for_mask();
        let before = before.unwrap_or(u32::MAX);
        if let Some(mask) = self
            .fitting
            .get(key)
            .and_then(|fitting| fitting.after.get(&before))
            .filter(|_| Switch::CanonicalCursorMaskCache.is_on())
        {
            return mask.clone();
        }
        if self.bytes > LARGE_BUDGET {
            self.forget(encoding);
        }
        self.lay_out(encoding, cursors, key);
        let fitting = self.fitting.get_mut(key).expect("it was there or is there now");
        let mask = if before == u32::MAX || Arc::ptr_eq(&fitting.all, &fitting.anyway) {
            fitting.all.clone()
        } else if !encoding.merges.makes(before) {
            fitting.anyway.clone()
        } else {
            self.bytes += encoding.tokens().mask_words() * 4;
            let mut mask: Arc<[u32]> = fitting.all[..].into();
            let words = Arc::get_mut(&mut mask).expect("nobody else has the mask yet");
            encoding.merges.clear_merging(before, words, &fitting.anyway);
            mask
        };
        fitting.after.insert(before, mask.clone());
        mask
    }
}

/// The tokens that fit a cursor, where no merge joins them with the token before and where one does, by walks through
/// the vocabulary.
fn fitting(
    encoding: &Encoder,
    class_strings: Option<&ClassStrings>,
    cursors: &mut Cursors,
    key: &CursorKey,
) -> [TokenSet; 2] {
    let size = encoding.tokens().vocab_size();
    let (mut unmerged, mut anyway) = (TokenSet::empty(size), TokenSet::empty(size));
    let cursor = cursors.of(key);
    let plain = Role { is_byte: false, is_whole: false };
    for (is_unmerged, set) in [(true, &mut unmerged), (false, &mut anyway)] {
        if let Some(start) = cursors.begin(encoding, cursor, plain, is_unmerged) {
            // The set starts full, since nearly all tokens fit.
            set.clone_from(encoding.tokens().spelled());
            if let Some(class_strings) =
                class_strings.filter(|_| !key.within_character() && Switch::CanonicalClassStrings.is_on())
            {
                class_strings.keep_readable(encoding, cursors, start, set);
            } else {
                walk(encoding, cursors, start, set);
            }
        }
        for (first, others) in encoding.tokens().duplicates() {
            if set.contains(*first) {
                others.iter().for_each(|&other| set.insert(other));
            }
        }
        for &token in &encoding.odd_tokens {
            set.remove(token);
            // A token that no merge makes is always a whole piece, so it follows no other token within a piece.
            let fits = match encoding.role(token) {
                Some(role) if is_unmerged && role.is_whole => false,
                Some(_) => cursors.advance(encoding, cursor, token, is_unmerged).is_some(),
                None => false,
            };
            if fits {
                set.insert(token);
            }
        }
    }
    [unmerged, anyway]
}

/// Removes the tokens from a set that cannot be read from a cursor. This is the slow reference of the walk by class
/// strings, which also handles cursors within a character and tokenizers without a pattern.
fn walk(encoding: &Encoder, cursors: &mut Cursors, start: CursorId, set: &mut TokenSet) {
    let Ok(()) = encoding.tokens().trie().walk_mask::<_, Infallible>(
        Reading::at(start),
        true,
        |reading, byte, _| Ok(cursors.read_on(encoding, reading, byte)),
        set.words_mut(),
    );
}

impl Encoder {
    /// The cursor after a token that follows another one; `None` where it does not fit.
    pub(crate) fn follow(
        &self,
        cursors: &mut Cursors,
        cursor: CursorId,
        before: Option<u32>,
        token: u32,
    ) -> Option<CursorId> {
        cursors.advance(self, cursor, token, self.stay_unmerged(before, token))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical::cursor::state::Cursor;
    use crate::canonical::cursor::table::tests::encoding;

    proptest! {
        #[test]
        fn a_cursor_mask_has_the_tokens_that_can_be_read(
            picks in prop::collection::vec((0u32..264, any::<bool>()), 0..8),
        ) {
            let encoding = encoding();
            let class_strings = ClassStrings::new(&encoding);
            let mut cursors = Cursors::default();
            let mut cursor = cursors.of(&Cursor::start().into());
            for (token, unmerged) in picks {
                cursor = cursors.advance(&encoding, cursor, token, unmerged).unwrap_or(cursor);
                // Later masks reuse parts of earlier ones.
                let key = cursors.key(cursor).for_mask().clone();
                fitting(&encoding, Some(&class_strings), &mut cursors, &key);
            }
            let key = cursors.key(cursor).for_mask().clone();
            let [unmerged, anyway] = fitting(&encoding, Some(&class_strings), &mut cursors, &key);
            let cursor = cursors.of(&key);
            for token in 0..encoding.tokens().vocab_size() as u32 {
                for (is_unmerged, set) in [(true, &unmerged), (false, &anyway)] {
                    let is_whole = encoding.role(token).is_some_and(|role| role.is_whole);
                    let fits = cursors.advance(&encoding, cursor, token, is_unmerged).is_some() && !(is_unmerged && is_whole);
                    prop_assert_eq!(set.contains(token), fits, "{} {}", token, is_unmerged);
                }
            }
            // Directly by the vocabulary, where only the bytes of tokens are known.
            for is_unmerged in [true, false] {
                let Some(start) = cursors.begin(&encoding, cursor, Role { is_byte: false, is_whole: false }, is_unmerged) else {
                    continue;
                };
                if !key.within_character() {
                    let mut by_class_strings = encoding.tokens().spelled().clone();
                    let mut by_tokens = by_class_strings.clone();
                    class_strings.keep_readable(&encoding, &mut cursors, start, &mut by_class_strings);
                    walk(&encoding, &mut cursors, start, &mut by_tokens);
                    prop_assert_eq!(by_class_strings, by_tokens);
                }
            }
        }
    }
}
