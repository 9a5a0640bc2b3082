//! A tokenizer as the engine uses it: its tokens, and the lexemes that all grammars compiled for it share.

use std::ops::Deref;
use std::sync::{Arc, Once, OnceLock};

use stencilm_support::{Mutex, RECENT, lock};

use crate::canonical::encoder::source::EncodingSource;
use crate::canonical::encoding::Encoding;
use crate::lexeme::shared::SharedLexemes;
use crate::limits::LexiconLimits;
use crate::mask::delta::NamedRows;
use crate::vocabulary::ranks::Ranks;
use crate::vocabulary::tokens::{Tokens, VocabularyError};

/// The tokens of a tokenizer. Immutable, and shared by every grammar compiled for it.
pub struct Vocabulary {
    tokens: Arc<Tokens>,
    /// By limits; the ones used last come first.
    lexicons: Mutex<Vec<Arc<SharedLexemes>>>,
    ranks: OnceLock<Arc<Ranks>>,
    named: NamedRows,
    encoding: OnceLock<Arc<Encoding>>,
    /// See [`Vocabulary::prepare`].
    prepared: Once,
}

impl Vocabulary {
    /// A vocabulary of these tokens: see [`Tokens::new`].
    ///
    /// # Errors
    /// [`VocabularyError`] for ids or sizes that do not fit.
    pub fn new<T: AsRef<[u8]>>(
        tokens: &[Option<T>],
        vocab_size: usize,
        stop_token_ids: &[u32],
        special_tokens: &[(u32, String)],
    ) -> Result<Vocabulary, VocabularyError> {
        let tokens = Arc::new(Tokens::new(tokens, vocab_size, stop_token_ids, special_tokens)?);
        let (ranks, named, encoding) = (OnceLock::new(), NamedRows::default(), OnceLock::new());
        let (lexicons, prepared) = (Mutex::default(), Once::new());
        let vocabulary = Vocabulary { tokens, lexicons, ranks, named, encoding, prepared };
        vocabulary.lay_out();
        Ok(vocabulary)
    }

    /// Its tokens, to be shared.
    pub(crate) fn tokens(&self) -> &Arc<Tokens> {
        &self.tokens
    }

    pub(crate) fn once_prepared(&self) -> &Once {
        &self.prepared
    }

    /// Stores how its tokenizer makes tokens of text. If something was stored before, it stays.
    pub(crate) fn set_encoding(&self, encoding: Encoding) {
        self.encoding.get_or_init(|| Arc::new(encoding));
    }

    /// The tokens that its tokenizer writes for a text by itself; `None` where it cannot, or where the encoding was not
    /// learned.
    pub fn encode(&self, text: &str) -> Option<Vec<u32>> {
        self.encoding.get()?.encode(text)
    }

    /// What [`Vocabulary::learn_encoding`] has learned.
    pub fn encoding_source(&self) -> Option<EncodingSource> {
        self.encoding.get().map(|encoding| encoding.source())
    }

    /// Approximate bytes of memory held by the encoding and the data computed from it.
    pub fn encoding_bytes(&self) -> usize {
        self.encoding.get().map_or(0, |encoding| encoding.memory_bytes())
    }

    /// How its tokenizer makes tokens of text, if that was learned.
    pub(crate) fn encoding(&self) -> Option<&Arc<Encoding>> {
        self.encoding.get()
    }

    /// The lexemes that all grammars of this vocabulary with these limits share.
    pub(crate) fn lexeme_cache(&self, limits: LexiconLimits) -> Arc<SharedLexemes> {
        let mut lexicons = lock(&self.lexicons);
        let known =
            lexicons.iter().position(|known| known.limits() == limits).map(|position| lexicons.remove(position));
        let lexeme_cache =
            known.unwrap_or_else(|| Arc::new(SharedLexemes::new(limits, self.tokens.trie().max_depth())));
        // Lexemes that grammars still use must stay: their memory is bounded there, and a second set would not count
        // it.
        let mut unused = 0;
        lexicons.retain(|lexeme_cache| {
            unused += usize::from(Arc::strong_count(lexeme_cache) == 1);
            Arc::strong_count(lexeme_cache) > 1 || unused < RECENT
        });
        lexicons.insert(0, lexeme_cache.clone());
        lexeme_cache
    }

    /// Bytes of memory held by the shared lexemes, for all limits together.
    pub fn lexicon_bytes(&self) -> usize {
        // A copy, so that nobody who asks for lexemes has to wait until all are counted.
        let lexicons = lock(&self.lexicons).clone();
        lexicons.iter().map(|lexeme_cache| lexeme_cache.memory_bytes()).sum()
    }

    /// Writes the row of a [`MaskPatch`](crate::MaskPatch), in words of 32 bits. Returns `false`, and writes nothing,
    /// where the grammars that used it were dropped.
    ///
    /// # Panics
    /// When the mask has another number of words than the vocabulary.
    pub fn write_row(&self, row: u32, mask: &mut [u32]) -> bool {
        assert_eq!(mask.len(), self.mask_words(), "a mask has a bit for every token");
        self.named.write(row, mask)
    }

    /// The rows that were given out by number.
    pub(crate) fn named(&self) -> &NamedRows {
        &self.named
    }

    /// The tokens in the order of the trie, for all indexes.
    pub(crate) fn ranks(&self) -> Arc<Ranks> {
        self.ranks.get_or_init(|| Arc::new(Ranks::new(self.tokens.trie(), self.tokens.vocab_size()))).clone()
    }
}

impl Deref for Vocabulary {
    type Target = Tokens;

    fn deref(&self) -> &Tokens {
        &self.tokens
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::compiled::HeldLayout;
    use crate::lexeme::find::char_runs::ClassRuns;
    use crate::lexeme::shared::Lane;
    use crate::limits::Limits;
    use crate::{CompiledGrammar, GrammarMatcher, MatcherOptions};
    use stencilm_grammar::{JsonSchemaOptions, from_json_schema};

    #[test]
    fn a_new_lexicon_knows_the_lexeme_masks_that_most_grammars_need() {
        let tokens: Vec<Option<Vec<u8>>> = (0..=255u8).map(|byte| Some(vec![byte])).collect();
        let vocabulary = Arc::new(Vocabulary::new(&tokens, 257, &[256], &[]).unwrap());
        let limits = Limits { lexicon_bytes: 1 << 20, ..Limits::default() };
        let mask_in_a_string = || {
            let grammar = from_json_schema(r#"{"type": "string"}"#, &JsonSchemaOptions::default()).unwrap();
            let compiled = CompiledGrammar::with_limits(Arc::new(grammar), vocabulary.clone(), limits.clone()).unwrap();
            let mut matcher = GrammarMatcher::new(Arc::new(compiled), &MatcherOptions::default()).unwrap();
            assert!(matcher.accept_token(u32::from(b'"')).unwrap());
            let mut mask = vec![0; 257usize.div_ceil(32)];
            matcher.fill_mask(&mut mask).unwrap();
            mask
        };
        let first = mask_in_a_string();
        let lexeme_cache = vocabulary.lexeme_cache(LexiconLimits::from(&limits));
        lexeme_cache.retire(&lexeme_cache.current(Lane(0)));
        let masks: Vec<Arc<crate::lexeme::mask::LexemeMask>> =
            lexeme_cache.current(Lane(0)).lock().masks.values().cloned().collect();
        assert!(!masks.is_empty(), "the lexeme mask of the body of a string is taken over");
        assert!(lexeme_cache.current(Lane(0)).lock().dfas.is_empty(), "and nothing else");
        assert_eq!(mask_in_a_string(), first);
        lexeme_cache.retire(&lexeme_cache.current(Lane(0)));
        let current = lexeme_cache.current(Lane(0));
        let known = current.lock();
        assert!(masks.iter().all(|mask| known.masks.values().any(|other| Arc::ptr_eq(mask, other))));
    }

    #[test]
    fn new_lexemes_know_how_many_characters_of_strings_tokens_begin() {
        let mut tokens: Vec<Option<Vec<u8>>> = (0..=255u8).map(|byte| Some(vec![byte])).collect();
        tokens.extend([&b"abc"[..], b"de\"", "\u{e9}\u{e9}".as_bytes()].map(|token| Some(token.to_vec())));
        let vocabulary = Arc::new(Vocabulary::new(&tokens, tokens.len(), &[], &[]).unwrap());
        let limits = Limits { lexicon_bytes: 1 << 20, ..Limits::default() };
        let mask_in_a_string = || {
            let schema = r#"{"type": "string", "maxLength": 2}"#;
            let grammar = from_json_schema(schema, &JsonSchemaOptions::default()).unwrap();
            let compiled = CompiledGrammar::with_limits(Arc::new(grammar), vocabulary.clone(), limits.clone()).unwrap();
            let mut matcher = GrammarMatcher::new(Arc::new(compiled), &MatcherOptions::default()).unwrap();
            assert!(matcher.accept_token(u32::from(b'"')).unwrap());
            let mut mask = vec![0; vocabulary.mask_words()];
            matcher.fill_mask(&mut mask).unwrap();
            mask
        };
        let first = mask_in_a_string();
        assert_eq!(first[256 / 32], 0b110, "of the long tokens those of at most two characters");
        let lexeme_cache = vocabulary.lexeme_cache(LexiconLimits::from(&limits));
        lexeme_cache.retire(&lexeme_cache.current(Lane(0)));
        let counted = |runs: &Option<ClassRuns>| runs.as_ref().is_some_and(ClassRuns::is_counted);
        assert!(lexeme_cache.current(Lane(0)).lock().classes.values().any(counted));
        assert_eq!(mask_in_a_string(), first);
    }

    fn in_a_string(compiled: &Arc<CompiledGrammar>, text: &[u8]) -> (GrammarMatcher, Vec<u32>) {
        let mut matcher = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()).unwrap();
        assert!(matcher.accept_bytes(text).unwrap());
        let mut mask = vec![0; 257usize.div_ceil(32)];
        matcher.fill_mask(&mut mask).unwrap();
        (matcher, mask)
    }

    fn of_pattern(vocabulary: &Arc<Vocabulary>, limits: &Limits, pattern: &str) -> Arc<CompiledGrammar> {
        let grammar = Arc::new(stencilm_grammar::from_regex(pattern).unwrap());
        Arc::new(CompiledGrammar::with_limits(grammar, vocabulary.clone(), limits.clone()).unwrap())
    }

    fn bytes_as_tokens() -> Arc<Vocabulary> {
        let tokens: Vec<Option<Vec<u8>>> = (0..=255u8).map(|byte| Some(vec![byte])).collect();
        Arc::new(Vocabulary::new(&tokens, 257, &[256], &[]).unwrap())
    }

    #[test]
    fn no_mask_waits_until_a_large_lexeme_is_taken_over() {
        let (vocabulary, limits) = (bytes_as_tokens(), Limits::default());
        let before = vocabulary.lexicon_bytes();
        let small = of_pattern(&vocabulary, &limits, "[a-z]+(one|two)");
        assert_eq!(vocabulary.lexicon_bytes(), before, "a small one waits for its first mask");
        let name = |number: u64| format!("{:x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 14);
        let names: Vec<String> = (1..2_000).map(name).collect();
        let large = of_pattern(&vocabulary, &limits, &names.join("|"));
        let compiled = vocabulary.lexicon_bytes();
        in_a_string(&large, names[7].as_bytes());
        let growth = vocabulary.lexicon_bytes() - compiled;
        assert!(growth * 4 < compiled - before, "{growth} bytes for a mask, {} before", compiled - before);
        in_a_string(&small, b"abcone");
    }

    #[test]
    fn grammars_of_a_batch_get_lanes_in_turn_and_their_matchers_go_on() {
        let (vocabulary, limits) = (bytes_as_tokens(), Limits::default());
        let first = of_pattern(&vocabulary, &limits, "[ab]{3}c*");
        let (mut matcher, mask) = in_a_string(&first, b"ab");
        let before = first.lane();
        first.spread(2);
        let lanes = vocabulary.lexeme_cache(LexiconLimits::from(&limits)).lanes();
        let others: Vec<usize> =
            (0..4).map(|number| of_pattern(&vocabulary, &limits, &format!("x{number}")).lane()).collect();
        let all: Vec<usize> = [before].into_iter().chain(others).collect();
        // With a single processor there is only one lane.
        assert!(all.iter().all(|&lane| lane < lanes) && (lanes == 1 || all[1] != all[2]), "{all:?} of {lanes}");
        let mut again = vec![0; mask.len()];
        matcher.fill_mask(&mut again).unwrap();
        assert_eq!(again, mask);
        assert!(matcher.accept_bytes(b"bcc").unwrap());
        matcher.rollback(2).unwrap();
        assert!(matcher.accept_bytes(b"aabc").unwrap() && matcher.is_completed());
    }

    #[test]
    fn a_grammar_that_changes_its_lane_reads_what_it_has_accepted_again() {
        let (vocabulary, limits) = (bytes_as_tokens(), Limits::default());
        let compiled = of_pattern(&vocabulary, &limits, "([ab]{3}c*)*");
        let (mut matcher, mask) = in_a_string(&compiled, b"abaccab");
        for lane in [1, 2, 0, 1] {
            let layout = Arc::downgrade(HeldLayout::new(compiled.layout()).layout());
            compiled.move_to(Lane(lane));
            assert!(layout.upgrade().is_none(), "nobody keeps the layout of the lane that was left");
            let mut again = vec![0; mask.len()];
            matcher.fill_mask(&mut again).unwrap();
            assert_eq!(again, mask);
            assert_eq!(compiled.lane(), lane);
        }
        assert_eq!(in_a_string(&compiled, b"abaccab").1, mask);
    }

    #[test]
    fn a_grammar_whose_short_waits_add_up_changes_its_lane() {
        let (vocabulary, limits) = (bytes_as_tokens(), Limits::default());
        let compiled = of_pattern(&vocabulary, &limits, "([ab]{3}c*)*");
        let (mut matcher, mask) = in_a_string(&compiled, b"abaccab");
        let before = compiled.lane();
        // Each wait is shorter than a single one that would be too long.
        let mut waits = 0;
        while compiled.lane() == before && waits < 100 {
            compiled.layout().note_wait(Duration::from_micros(1_500));
            waits += 1;
        }
        // With a single processor there is only one lane.
        let lanes = vocabulary.lexeme_cache(LexiconLimits::from(&limits)).lanes();
        assert_eq!(compiled.lane() == before, lanes == 1, "{waits} of {lanes}");
        assert!(waits > 1, "one of them is short enough");
        let mut again = vec![0; mask.len()];
        matcher.fill_mask(&mut again).unwrap();
        assert_eq!(again, mask);
    }

    #[test]
    fn all_lanes_together_hold_no_more_than_the_budget() {
        let vocabulary = bytes_as_tokens();
        let limits = Limits { lexicon_bytes: 4 << 20, ..Limits::default() };
        let shared = vocabulary.lexeme_cache(LexiconLimits::from(&limits));
        shared.spread(4);
        let mut most = 0;
        for number in 0..12 {
            let compiled = of_pattern(&vocabulary, &limits, &format!(".*[ab]{number}.{{12}}"));
            let mut matcher = GrammarMatcher::new(compiled, &MatcherOptions::default()).unwrap();
            let mut state = 1u32;
            for _ in 0..4000 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                assert!(matcher.accept_bytes(&[b"ab0123456789"[(state >> 16) as usize % 12]]).unwrap());
            }
            most = most.max(shared.memory_bytes());
        }
        assert!(most < 2 * limits.lexicon_bytes, "{most} bytes");
    }

    #[test]
    fn nobody_goes_on_in_lexemes_that_were_let_go() {
        let tokens: Vec<Option<Vec<u8>>> = (0..=255u8).map(|byte| Some(vec![byte])).collect();
        let vocabulary = Arc::new(Vocabulary::new(&tokens, 257, &[256], &[]).unwrap());
        let limits = Limits { lexicon_bytes: 4 << 20, ..Limits::default() };
        let grammar = Arc::new(stencilm_grammar::from_regex(".*[ab].{16}").unwrap());
        let compiled = Arc::new(CompiledGrammar::with_limits(grammar, vocabulary, limits.clone()).unwrap());
        let held = HeldLayout::new(compiled.layout());
        let layout = Arc::downgrade(held.layout());
        let mut matcher = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default()).unwrap();
        let mut state = 1u32;
        while held.lexemes().held() <= limits.lexicon_bytes {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            assert!(matcher.accept_bytes(&[b'a' + (state >> 30) as u8]).unwrap());
        }
        assert!(!std::ptr::eq(held.lexemes(), compiled.layout().lexemes()), "full lexemes are followed by others");
        assert!(layout.upgrade().is_some(), "a call that runs in them keeps them");
        drop(held);
        assert!(layout.upgrade().is_none(), "and they end with it at once, though they are large");
    }
}
