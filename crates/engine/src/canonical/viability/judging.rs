//! Judging all tokens that a lexeme reads: each by the bytes that may come where it ends.

use stencilm_regex::{LimitExceeded, StateId};

use crate::canonical::Encoding;
use crate::canonical::pretokenizer::probes::Anywhere;
use crate::canonical::pretokenizer::reader::Reader;
use crate::lexeme::cache::LexemeCache;
use crate::machine::expansion::IN_BLANKS;
use crate::vocabulary::categories::Kinds;
use crate::vocabulary::category_walk::{self, Automaton, Derived};
use crate::vocabulary::token_set::TokenSet;

/// Those of some tokens, which a lexeme reads from a state, that surely lead on wherever they come; and the others.
pub(crate) fn sure_within(
    lexeme_cache: &mut LexemeCache,
    encoding: &Encoding,
    known: &mut Anywhere,
    reader: &Reader<'_>,
    state: u32,
    tokens: &TokenSet,
) -> Result<(TokenSet, Vec<u32>), LimitExceeded> {
    let vocabulary = encoding.tokens();
    known.begin(encoding);
    let mut sure = TokenSet::empty(vocabulary.vocab_size());
    if state & IN_BLANKS == 0 {
        let dfa = reader.dfa;
        let kinds = lexeme_cache.kinds.take().filter(|(known, _)| *known == dfa);
        let LexemeCache { dfas, deriver, .. } = &mut *lexeme_cache;
        let automaton = Derived { automaton: &mut dfas[dfa.0 as usize], deriver };
        let mut kinds = kinds.map_or_else(|| Kinds::new(&automaton), |(_, kinds)| kinds);
        let mut judge = Judge { automaton, encoding, known, numbers: Vec::new(), sure: &mut sure, failed: None };
        let walked = category_walk::read(vocabulary, &mut kinds, &mut judge, StateId(state), false);
        let failed = judge.failed;
        lexeme_cache.kinds = Some((dfa, kinds));
        walked?;
        failed.map_or(Ok(()), Err)?;
    } else {
        let mut read = Vec::new();
        let step = |state, byte, _| reader.next(lexeme_cache, state, byte);
        vocabulary.trie().walk(state, step, |token, state| read.push((token, state)))?;
        // Among blanks nothing is told.
        for (token, state) in read.into_iter().filter(|&(_, state)| state & IN_BLANKS == 0) {
            let live = *lexeme_cache.live_bytes(reader.dfa, StateId(state))?;
            let number = known.number(&live);
            known.add_sure(encoding, number, (&[token], None), &mut sure);
        }
    }
    sure.words_mut().iter_mut().zip(tokens.words()).for_each(|(sure, token)| *sure &= token);
    let others = tokens.iter().filter(|&token| !sure.contains(token)).collect();
    Ok((sure, others))
}

/// A walk of the vocabulary that judges the tokens which are read.
struct Judge<'w> {
    automaton: Derived<'w>,
    encoding: &'w Encoding,
    known: &'w mut Anywhere,
    /// By state the number of the set of bytes that may come.
    numbers: Vec<Option<usize>>,
    sure: &'w mut TokenSet,
    failed: Option<LimitExceeded>,
}

impl Automaton for Judge<'_> {
    #[inline]
    fn step(&mut self, state: StateId, byte: u8) -> Result<(StateId, bool), LimitExceeded> {
        self.automaton.step(state, byte)
    }

    fn representative(&self, byte: u8) -> u8 {
        self.automaton.representative(byte)
    }
}

impl category_walk::Reader for Judge<'_> {
    type At = StateId;
    const FINDS: bool = false;

    fn state(at: StateId) -> StateId {
        at
    }

    #[inline]
    fn reads(&mut self, at: StateId, next: StateId, _ends: bool, _nodes: &[u32]) -> (StateId, bool) {
        (next, next == at)
    }

    #[inline]
    fn byte(&mut self, at: StateId, byte: u8, _node: Option<usize>) -> Result<Option<StateId>, LimitExceeded> {
        let (next, _) = self.automaton.step(at, byte)?;
        Ok((next != StateId::DEAD).then_some(next))
    }

    fn lists(&self) -> bool {
        true
    }

    #[inline]
    fn ends(&mut self, at: StateId, tokens: &[u32], first: Option<usize>) {
        let state = at.0 as usize;
        if state >= self.numbers.len() {
            self.numbers.resize(state + 1, None);
        }
        let number = match self.numbers[state] {
            Some(known) => known,
            None => match self.automaton.automaton.live_bytes(self.automaton.deriver, at) {
                Ok(live) => *self.numbers[state].insert(self.known.number(live)),
                Err(limit) => {
                    self.failed = Some(limit);
                    return;
                }
            },
        };
        self.known.add_sure(self.encoding, number, (tokens, first), self.sure);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stencilm_regex::Limits;
    use stencilm_regex::syntax::{Anchoring, Dialect, PatternOptions, Utf8, parse_pattern};

    use super::*;
    use crate::canonical::EncodingSource;
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

        /// The walk says of every token what its end says by itself.
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
                if encoding.surely_goes_on_anywhere(token, &live) {
                    expected.insert(token);
                }
            }
            let mut known = Anywhere::default();
            let (sure, others) =
                sure_within(&mut lexeme_cache, &encoding, &mut known, &reader, start, &tokens).unwrap();
            prop_assert_eq!(sure.iter().collect::<Vec<u32>>(), expected.iter().collect::<Vec<u32>>());
            prop_assert_eq!(others.len() + sure.len(), tokens.len());
        }
    }
}
