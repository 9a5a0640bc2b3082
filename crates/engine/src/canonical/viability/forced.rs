//! Forced text: if a grammar allows only one continuation for a few bytes, what the tokenizer makes of it is the same
//! in all grammars.
//!
//! Nearly all searches are for such positions, after a prefix of `true` or of a key, and find no continuation: the
//! tokenizer writes more of the word at once. The result for a text is cached under the text.

use std::convert::Infallible;

use stencilm_regex::ByteSet;
use stencilm_support::MANY;

use super::layer::EndLayer;
use super::search::{EndQuestion, Search, TokenEnd};
use crate::canonical::cursor::table::{CursorId, Cursors, MAX_BYTES, Text};
use crate::canonical::encoder::facts::Encoder;
use crate::canonical::viability::ahead::Next;
use crate::error::EngineError;
use crate::state::stacks::SetId;

/// A text is forced after the token and decides.
pub(crate) struct ForcedText;

impl EndLayer for ForcedText {
    fn is_viable(&self, search: &mut Search<'_, '_>, question: &EndQuestion) -> Result<Option<bool>, EngineError> {
        // Within a lexeme it matters whether anything beyond the lexeme was read.
        if search.home.is_some() || question.next.may_end || question.next.bytes.single().is_none() {
            return Ok(None);
        }
        let decided = search.by_forced_text(question.end)?;
        debug_assert!(match decided {
            Some(decided) => search.agrees(question, decided)?,
            None => true,
        });
        Ok(decided)
    }
}

impl Search<'_, '_> {
    /// Whether a token has a continuation, if a text is forced after it and decides that.
    fn by_forced_text(
        &mut self,
        TokenEnd { configuration, token, cursor }: TokenEnd,
    ) -> Result<Option<bool>, EngineError> {
        let Some(text) = self.forced_text(configuration)? else { return Ok(None) };
        let key = (cursor, token, text);
        if let Some(&known) = self.cursors.forced.get(&key) {
            return Ok(known);
        }
        let mut tries = 0;
        let bytes = &text.bytes[..usize::from(text.len)];
        let found = is_viable(self.encoding, self.cursors, (token, cursor), (bytes, &text.after), &mut tries);
        self.cursors.forced.insert(key, found, 0);
        Ok(found)
    }

    /// The text that is forced at a configuration, if it has at least one byte.
    fn forced_text(&mut self, configuration: SetId) -> Result<Option<Text>, EngineError> {
        if let Some(known) = self.found.ahead.of(configuration).forced {
            return Ok(known);
        }
        let mut next = self.next(configuration)?;
        let mut text = Text { bytes: [0; MAX_BYTES], len: 0, after: next.bytes };
        let mut here = configuration;
        while let Some(byte) = text.after.single().filter(|_| !next.may_end && usize::from(text.len) < MAX_BYTES) {
            here = self.step(here, byte)?;
            if here == SetId::EMPTY {
                break;
            }
            text.bytes[usize::from(text.len)] = byte;
            text.len += 1;
            next = self.next(here)?;
            text.after = next.bytes;
        }
        let text = (here != SetId::EMPTY).then_some(text);
        self.found.ahead.of(configuration).forced = Some(text);
        Ok(text)
    }

    /// Whether every text with this continuation is written with this viable token; `false` where that is not known.
    pub fn is_in_all_texts(&mut self, end: TokenEnd) -> Result<bool, EngineError> {
        let Next { bytes, may_end, .. } = self.next(end.configuration)?;
        if may_end && !self.cursors.may_end(self.encoding, end.cursor) {
            return Ok(false);
        }
        // What a forced text decides holds for every continuation.
        Ok(self.settling_bytes(end, &bytes) == bytes
            || (!may_end && bytes.single().is_some() && self.by_forced_text(end)? == Some(true)))
    }

    /// The slow reference: by the grammar itself.
    fn agrees(&mut self, question: &EndQuestion, decided: bool) -> Result<bool, EngineError> {
        if let Some(found) = self.decided(question.end)? {
            return Ok(found == decided);
        }
        let before = (self.looked, self.circular, self.given_up);
        let found = self.some_successor_is_viable(&EndQuestion { depth: 0, ..*question })?;
        let is_open = self.given_up || self.circular;
        (self.looked, self.circular, self.given_up) = before;
        Ok(is_open || found == decided)
    }
}

/// Whether a token has a continuation, from the cursor after it, if a text is forced there; `None` where the text does
/// not decide.
fn is_viable(
    encoding: &Encoder,
    cursors: &mut Cursors,
    (token, cursor): (u32, CursorId),
    (text, behind): (&[u8], &ByteSet),
    tries: &mut usize,
) -> Option<bool> {
    let first = *text.first()?;
    let key = cursors.key(cursor);
    if !encoding.settling_bytes(key, token, &ByteSet::of(first)).is_empty()
        || shows_end(encoding, cursors, cursor, token, text)
    {
        return Some(true);
    }
    let vocabulary = encoding.tokens();
    let trie = vocabulary.trie();
    let (mut node, mut found) = (trie.root(first), Some(false));
    // The tokens that are prefixes of the text.
    for depth in 1..=text.len() {
        let Some(here) = node else { return found };
        let entry = trie.entry_at(here);
        for &next in entry.iter().chain(entry.iter().flat_map(|&entry| vocabulary.same_bytes(entry))) {
            let Some(reached) = encoding.follow(cursors, cursor, Some(token), next) else { continue };
            match is_viable(encoding, cursors, (next, reached), (&text[depth..], behind), tries) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => found = None,
            }
        }
        node = match text.get(depth) {
            Some(&byte) => trie.child(here, byte),
            None => Some(here),
        };
    }
    // And the tokens of which the text is a prefix.
    let children = node.into_iter().flat_map(|node| trie.child_nodes(node));
    for child in children.filter(|&child| behind.contains(trie.byte(child))) {
        for entry in trie.entries_below(child) {
            for &next in std::iter::once(&entry).chain(vocabulary.same_bytes(entry)) {
                *tries += 1;
                if *tries > MANY || encoding.follow(cursors, cursor, Some(token), next).is_some() {
                    return None;
                }
            }
        }
    }
    found
}

/// Whether a text shows that a token keeps its end.
fn shows_end(encoding: &Encoder, cursors: &mut Cursors, cursor: CursorId, token: u32, text: &[u8]) -> bool {
    // Anything may come after the text.
    let mut bytes = |at: usize| Ok::<_, Infallible>(text.get(at).map_or(ByteSet::ALL, |&byte| ByteSet::of(byte)));
    let mut step = |at: usize, _: u8| Ok((at < text.len()).then_some(at + 1));
    let Ok(keeps) = encoding.keeps_end(cursors, cursor, token, 0, &mut bytes, &mut step);
    keeps == Some(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical::cursor::state::Cursor;
    use crate::canonical::cursor::table::tests::encoding;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// The decision by a text agrees with what is written where the text comes, with anything after it.
        #[test]
        fn a_forced_text_decides_what_is_written(
            characters in prop::collection::vec(prop::sample::select(vec!['a', 'a', 'b', ' ', '1', '\n', 'é', '?']), 2..12),
            cut in any::<prop::sample::Index>(),
            len in 1usize..=MAX_BYTES,
        ) {
            let encoding = encoding();
            let (before, behind) = characters.split_at(1 + cut.index(characters.len() - 1));
            let tokens = encoding.encode(&before.iter().collect::<String>()).expect("it is text");
            let mut cursors = Cursors::default();
            let (mut cursor, mut last) = (cursors.of(&Cursor::start().into()), None);
            for &token in &tokens {
                cursor = encoding.follow(&mut cursors, cursor, last, token).expect("it is what the tokenizer writes");
                last = Some(token);
            }
            let forced: Vec<u8> = behind.iter().take(len).map_while(|&character| u8::try_from(character).ok().filter(u8::is_ascii)).collect();
            prop_assume!(!forced.is_empty());
            let after = behind.get(forced.len()).map(|after| after.encode_utf8(&mut [0; 4]).as_bytes()[0]);
            let mut next = after.map_or(ByteSet::EMPTY, ByteSet::of);
            next.insert(b'b');
            let token = last.expect("some text stands before");
            let decided = is_viable(&encoding, &mut cursors, (token, cursor), (&forced, &next), &mut 0);
            let written = encoding.encode(&characters.iter().collect::<String>()).expect("it is text");
            prop_assert!(decided.is_none_or(|decided| decided == written.starts_with(&tokens)), "{:?} {:?}", decided, written);
        }
    }
}
