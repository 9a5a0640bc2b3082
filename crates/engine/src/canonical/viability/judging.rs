//! Judging all tokens that a lexeme reads, each by the bytes that may come where it ends.

use rustc_hash::FxHashMap;
use stencilm_regex::{ByteSet, StateId};
use stencilm_support::LimitExceeded;

use crate::canonical::encoder::facts::Encoder;
use crate::canonical::viability::ends::Anywhere;
use crate::lexeme::cache::LexemeCache;
use crate::machine::expansion::IN_WHITESPACE;
use crate::machine::reader::Reader;
use crate::vocabulary::automaton::Derived;
use crate::vocabulary::categories::{Categories, HIGH, OTHER, Read, WHITESPACE};
use crate::vocabulary::token_set::TokenSet;

/// A walk through the vocabulary within a lexeme, which judges the tokens that can be read.
pub(crate) struct Judging<'a> {
    pub lexeme_cache: &'a mut LexemeCache,
    pub encoding: &'a Encoder,
    pub reader: &'a Reader<'a>,
    pub anywhere: &'a mut Anywhere,
    /// The bytes that may come in most states.
    pub common: Option<ByteSet>,
    /// The tokens that keep their ends in any context, and the undecided ones.
    pub always: TokenSet,
    pub perhaps: TokenSet,
    /// The states met so far, numbered by first occurrence.
    pub numbers: FxHashMap<u32, u32>,
    pub states: Vec<Reached>,
}

/// A state that was reached.
#[derive(Clone, Copy)]
pub(crate) struct Reached {
    state: u32,
    /// The number of the set of bytes that may come; `None` within whitespace.
    live: Option<usize>,
    /// Whether this set is the one of most states, and whether it includes that one.
    is_common: bool,
    has_common: bool,
}

impl Judging<'_> {
    /// Walks byte by byte, for lexemes that begin few tokens.
    pub fn by_bytes(&mut self, start: u32) -> Result<(), LimitExceeded> {
        let start = self.number_of(start)?;
        self.encoding.tokens().trie().walk(start, |from, byte, node| self.look(from, byte, node), |_, _| {})
    }

    /// Walks by category strings, and byte by byte where the lexeme distinguishes characters of a category. Tokens
    /// after which the bytes of most states may come are already judged: they are in `most`.
    pub fn by_categories(&mut self, start: StateId, most: &mut TokenSet) -> Result<(), LimitExceeded> {
        let dfa = self.reader.dfa;
        let categories = self.lexeme_cache.categories.take().filter(|(known, _)| *known == dfa);
        let LexemeCache { dfas, deriver, .. } = &mut *self.lexeme_cache;
        let automaton = Derived { automaton: &mut dfas[dfa.0 as usize], deriver };
        let mut categories = categories.map_or_else(|| Categories::new(&automaton), |(_, categories)| categories);
        let walked = self.over(&mut categories, start, most);
        self.lexeme_cache.categories = Some((dfa, categories));
        walked?;
        self.over_non_utf8(start)
    }

    /// The number of a state.
    fn number_of(&mut self, state: u32) -> Result<u32, LimitExceeded> {
        if let Some(&known) = self.numbers.get(&state) {
            return Ok(known);
        }
        let mut reached = Reached { state, live: None, is_common: false, has_common: false };
        if state & IN_WHITESPACE == 0 {
            let live = *self.lexeme_cache.live_bytes(self.reader.dfa, StateId(state))?;
            reached.live = Some(self.anywhere.number(&live));
            reached.has_common = self.common.is_some_and(|common| common.intersect(&live) == common);
            reached.is_common = Some(live) == self.common;
        }
        let number = self.states.len() as u32;
        self.states.push(reached);
        self.numbers.insert(state, number);
        Ok(number)
    }

    /// The number of the state after one byte; judges the token that ends there. `None` where the byte is dead.
    #[inline]
    fn look(&mut self, from: u32, byte: u8, node: usize) -> Result<Option<u32>, LimitExceeded> {
        let next = self.reader.next(self.lexeme_cache, self.states[from as usize].state, byte)?;
        let Some(next) = next else { return Ok(None) };
        let number = self.number_of(next)?;
        if let Some(token) = self.encoding.tokens().trie().entry_at(node) {
            self.judge(number, token);
        }
        Ok(Some(number))
    }

    /// Adds a token that ends in a state to those that keep their ends in any context, or to the undecided ones. Within
    /// whitespace nothing is decided.
    #[inline]
    fn judge(&mut self, number: u32, token: u32) {
        let Some(live) = self.states[number as usize].live else { return };
        let keeps_end = self.anywhere.always_keeps_end(self.encoding, live, token);
        if keeps_end { &mut self.always } else { &mut self.perhaps }.insert(token);
    }

    /// Judges the tokens with category strings, and some of the others.
    fn over(&mut self, categories: &mut Categories, start: StateId, most: &mut TokenSet) -> Result<(), LimitExceeded> {
        let (vocabulary, dfa) = (self.encoding.tokens(), self.reader.dfa);
        let (category_trie, trie) = (vocabulary.category_trie(), vocabulary.trie());
        // By state: its number, if it was reached, and the categories that lead back to it.
        let mut known: Vec<(Option<u32>, u64)> = Vec::new();
        let mut states = vec![start; category_trie.max_depth() + 1];
        let mut trie_states = vec![0; trie.max_depth() + 1];
        let mut index = 0;
        while index < category_trie.len() {
            let here = category_trie.node(index);
            let (above, end) = (states[here.depth as usize - 1], index + here.size as usize);
            let LexemeCache { dfas, deriver, .. } = &mut *self.lexeme_cache;
            let mut automaton = Derived { automaton: &mut dfas[dfa.0 as usize], deriver };
            match categories.read(&mut automaton, above, here.category)? {
                Read::Dead => index = end,
                Read::Mixed => {
                    for &node in category_trie.places(index) {
                        let above = match here.category {
                            WHITESPACE | OTHER => self.after_first_bytes(above, node)?,
                            _ => above,
                        };
                        let from = self.number_of(above.0)?;
                        let node = node as usize;
                        trie.walk_mask_part(
                            (node, node + trie.size(node)),
                            trie.depth(node) - 1,
                            from,
                            &mut trie_states,
                            true,
                            &mut |from, byte, node| self.look(from, byte, node),
                            most.words_mut(),
                        )?;
                    }
                    index = end;
                }
                Read::To(next, _) => {
                    let state = next.0 as usize;
                    if state >= known.len() {
                        known.resize(state + 1, (None, 1 << HIGH));
                    }
                    let (number, same) = &mut known[state];
                    if next == above {
                        *same |= 1 << here.category;
                    }
                    let (number, same) = match *number {
                        Some(number) => (number, *same),
                        None => {
                            let reached = self.number_of(next.0)?;
                            *number = Some(reached);
                            (reached, *same)
                        }
                    };
                    let is_last = here.below & !same == 0;
                    let until = if is_last { end } else { index + 1 };
                    let tokens = category_trie.tokens(index, until);
                    match self.states[number as usize] {
                        Reached { is_common: true, .. } => {}
                        Reached { has_common: true, .. } => {
                            let others = tokens.iter().filter(|&&token| !most.contains(token));
                            others.for_each(|&token| self.judge(number, token));
                        }
                        Reached { live: Some(live), .. } => {
                            let tokens = (category_trie.first_token(index), tokens);
                            let (always, perhaps) = (&mut self.always, &mut self.perhaps);
                            self.anywhere.sort_category_strings(self.encoding, live, tokens, always, perhaps);
                        }
                        Reached { live: None, .. } => {}
                    }
                    states[here.depth as usize] = next;
                    index = until;
                }
            }
        }
        Ok(())
    }

    /// The state after all bytes but the last of the character that leads to a node.
    fn after_first_bytes(&mut self, above: StateId, node: u32) -> Result<StateId, LimitExceeded> {
        let before = self.encoding.tokens().bytes_before(node);
        let first = before.iter().rposition(|byte| byte & 0xC0 != 0x80).expect("a character has begun");
        before[first..]
            .iter()
            .try_fold(above, |state, &byte| Ok(self.lexeme_cache.step(self.reader.dfa, state, byte)?.0))
    }

    /// Judges the tokens without category strings.
    fn over_non_utf8(&mut self, start: StateId) -> Result<(), LimitExceeded> {
        let (non_utf8, trie) = (self.encoding.tokens().category_trie().non_utf8(), self.encoding.tokens().trie());
        let mut states = vec![self.number_of(start.0)?; trie.max_depth() + 1];
        let mut at = 0;
        while let Some(here) = non_utf8.get(at) {
            let (depth, node) = (trie.depth(here.node as usize), here.node as usize);
            let from = self.states[states[depth - 1] as usize].state;
            let Some(next) = self.reader.next(self.lexeme_cache, from, trie.byte(node))? else {
                at = here.end as usize;
                continue;
            };
            states[depth] = self.number_of(next)?;
            if let Some(token) = trie.entry_at(node).filter(|_| !here.has_category_string) {
                self.judge(states[depth], token);
            }
            at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stencilm_regex::Limits;
    use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};

    use super::*;
    use crate::canonical::encoder::source::EncodingSource;
    use crate::canonical::encoding::Encoding;
    use crate::canonical::viability::in_lexeme::independent_within;
    use crate::vocabulary::tokens::Tokens;

    const PIECES: [&str; 12] = ["a", "b", "Z", "7", "0", " ", "-", ".", "\"", "\n", "é", "\u{a0}"];

    const PATTERNS: [&str; 9] = [
        "[a-z]+-[a-z.]+\"",
        r"\S+( \S+){0,3}",
        "[a-f0-9]{2,4}(-[a-z]+)*",
        ".*",
        "(a|b|é)*\"?",
        "[^a]*b",
        "[a-zA-Z]+[0-7]?",
        "a(7|-b)*Z?",
        "(.{2})*\"",
    ];

    /// Some tokens of several characters, with the merges that make them.
    fn encoding(picks: &[(usize, usize)]) -> Encoding {
        let mut texts: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        let mut merges = Vec::new();
        let mut add = |texts: &mut Vec<Vec<u8>>, left: u32, right: u32| {
            let text = [&texts[left as usize][..], &texts[right as usize]].concat();
            let known = texts.iter().position(|known| *known == text);
            let whole = known.unwrap_or_else(|| {
                texts.push(text);
                texts.len() - 1
            }) as u32;
            if !merges.iter().any(|&(a, b, _)| (a, b) == (left, right)) {
                merges.push((left, right, whole));
            }
            whole
        };
        let pieces: Vec<u32> = PIECES
            .iter()
            .map(|piece| match *piece.as_bytes() {
                [byte] => u32::from(byte),
                [first, second] => add(&mut texts, u32::from(first), u32::from(second)),
                _ => unreachable!("pieces have one or two bytes"),
            })
            .collect();
        for &(left, right) in picks {
            let of = |pick: usize, texts: &[Vec<u8>]| match pieces.get(pick) {
                Some(&piece) => piece,
                None => (256 + (pick - pieces.len()) % (texts.len() - 256)) as u32,
            };
            let (left, right) = (of(left, &texts), of(right, &texts));
            if texts[left as usize].len() + texts[right as usize].len() <= 8 {
                add(&mut texts, left, right);
            }
        }
        let spelled: Vec<Option<Vec<u8>>> = texts.into_iter().map(Some).collect();
        let tokens = Tokens::new(&spelled, spelled.len(), &[], &[]).expect("ids fit");
        let source = EncodingSource {
            bytes: (0..256).collect(),
            chars: None,
            changed: None,
            merges,
            whole_pieces: false,
            pattern: Some(r" ?[a-zA-Zé]+|[0-9]{1,3}|\s+(?!\S)|\s+|[^\sa-zA-Z0-9é]+".into()),
        };
        Encoding::new(&source, std::sync::Arc::new(tokens)).expect("it can be laid out")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The walk judges every token as its end alone does.
        #[test]
        fn tokens_are_judged_by_the_states_that_they_lead_to(
            picks in prop::collection::vec((0usize..60, 0usize..60), 5..60),
            pattern in prop::sample::select(&PATTERNS[..]),
            before in prop::sample::select(&["", "a", "b7", "\u{e9}", "a-"][..]),
        ) {
            let encoding = encoding(&picks);
            let mut lexeme_cache = LexemeCache::new(encoding.tokens().trie().max_depth(), Limits::default());
            let options = PatternOptions { dialect: Dialect::Standard, anchoring: Anchoring::Whole };
            let expr = parse_pattern(&mut lexeme_cache.deriver().exprs, pattern, &options, &mut Utf8).unwrap();
            let reader = Reader { expansion: None, dfa: lexeme_cache.dfa(&[expr]).unwrap() };
            let run = |lexeme_cache: &mut LexemeCache, state: u32, bytes: &[u8]| {
                bytes.iter().try_fold(state, |state, &byte| reader.next(lexeme_cache, state, byte).unwrap())
            };
            let Some(start) = run(&mut lexeme_cache, StateId::START.0, before.as_bytes()) else { return Ok(()) };
            let size = encoding.tokens().vocab_size();
            let (mut tokens, mut expected) = (TokenSet::empty(size), TokenSet::empty(size));
            for token in 0..size as u32 {
                let Some(end) = run(&mut lexeme_cache, start, encoding.tokens().token_bytes(token).unwrap()) else { continue };
                tokens.insert(token);
                let live = *lexeme_cache.live_bytes(reader.dfa, StateId(end)).unwrap();
                if encoding.keeps_end_anywhere(token, &live) {
                    expected.insert(token);
                }
            }
            let mut known = Anywhere::default();
            let (independent, others) =
                independent_within(&mut lexeme_cache, &encoding, &mut known, &reader, start, tokens.clone()).unwrap();
            prop_assert_eq!(independent.iter().collect::<Vec<u32>>(), expected.iter().collect::<Vec<u32>>());
            prop_assert_eq!(others.len() + independent.len(), tokens.len());
        }
    }
}
