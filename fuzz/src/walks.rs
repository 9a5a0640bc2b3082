//! Walks through one compiled grammar, in which every answer is computed in every possible way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stencilm_engine::{
    CompiledGrammar, GrammarMatcher, Limits, MatcherError, MatcherOptions, TokenSet, Vocabulary, naive,
};
use stencilm_grammar::{Grammar, Node};

use crate::Counts;
use crate::choices::Choices;
use crate::oracle::{MAX_LEN, Oracle, Text};
use crate::sentences::Sentences;
use crate::vocabularies::Tokens;

/// Larger grammars are not given to the slow recogniser.
const MAX_ORACLE_NODES: usize = 400;

/// A case that has taken this long is ended where it is.
const ENOUGH: Duration = Duration::from_secs(5);

/// A grammar and a vocabulary.
pub struct Case {
    grammar: Arc<Grammar>,
    tokens: Tokens,
    vocabulary: Arc<Vocabulary>,
    compiled: Arc<CompiledGrammar>,
    texts: Vec<Vec<u8>>,
    is_json: bool,
    /// Whether the grammar asks for single tokens somewhere, so that bytes alone do not decide.
    has_token_nodes: bool,
    /// The origin of the grammar, for messages.
    what: String,
}

/// Why a walk ends early: a limit was reached.
struct Limit;

impl From<MatcherError> for Limit {
    fn from(error: MatcherError) -> Limit {
        match error {
            MatcherError::Engine(_) => Limit,
            other => panic!("not an error that may come here: {other}"),
        }
    }
}

/// A matcher, the steps that it has accepted, and its masks.
struct Walker {
    matcher: GrammarMatcher,
    steps: Vec<Step>,
    /// The mask before each step, and the one after the last.
    masks: Vec<TokenSet>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    Token(u32),
    Bytes(Vec<u8>),
}

impl Case {
    /// A case whose vocabulary the choices make.
    ///
    /// `None` if the grammar names tokens that the vocabulary lacks.
    pub fn new(grammar: Arc<Grammar>, choices: &mut Choices<'_>, is_json: bool, what: String) -> Option<Case> {
        let mut sentences = Sentences::new(&grammar);
        let texts: Vec<Vec<u8>> =
            (0..6).filter_map(|_| sentences.next(choices, 60)).filter(|text| !text.is_empty()).collect();
        let tokens = Tokens::random(choices, &texts);
        let vocabulary = tokens.vocabulary();
        let compiled = Arc::new(CompiledGrammar::new(grammar.clone(), vocabulary.clone()).ok()?);
        let has_token_nodes = grammar.nodes().iter().any(|node| matches!(node, Node::Token(_)));
        Some(Case { grammar, tokens, vocabulary, compiled, texts, is_json, has_token_nodes, what })
    }

    /// Several walks through one compiled grammar, so that later ones use what earlier ones have cached.
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn walk(&self, choices: &mut Choices<'_>) -> Counts {
        let mut counts = Counts::default();
        if self.walks(choices, &mut counts).is_err() {
            counts.limits += 1;
        }
        counts
    }

    fn walks(&self, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Limit> {
        let mut oracle =
            (self.grammar.nodes().len() <= MAX_ORACLE_NODES).then(|| Oracle::new(&self.grammar, &self.vocabulary));
        let walks = if self.tokens.few { 6 + choices.below(12) } else { 1 + choices.below(5) };
        let begun = Instant::now();
        for _ in 0..walks {
            if begun.elapsed() > ENOUGH {
                return Err(Limit);
            }
            let walker = self.one_walk(choices, oracle.as_mut(), counts)?;
            // Another sequence of the same compiled grammar, then one of a grammar in which nothing is cached.
            if choices.chance(3) {
                self.replay(&walker, &self.compiled, "cached")?;
                let fresh = |limits| {
                    let made = CompiledGrammar::with_limits(self.grammar.clone(), self.tokens.vocabulary(), limits);
                    Arc::new(made.expect("it was compiled before"))
                };
                self.replay(&walker, &fresh(Limits::default()), "computed anew")?;
                // Evict its lexemes as often as possible, so that the accepted text is read again.
                let limits = Limits { lexicon_bytes: 0, ..Limits::default() };
                self.replay(&walker, &fresh(limits), "read again")?;
            }
        }
        for text in &self.texts {
            self.compare_text(text, oracle.as_mut(), Some(true), counts)?;
            let mut other = text.clone();
            let at = choices.below(other.len());
            match choices.below(3) {
                0 => drop(other.remove(at)),
                1 => other[at] = *choices.pick(b"abc\"{}(),: "),
                _ => other.insert(at, *choices.pick(b"ab\",)}")),
            }
            self.compare_text(&other, oracle.as_mut(), None, counts)?;
        }
        Ok(())
    }

    fn matcher(&self, compiled: &Arc<CompiledGrammar>) -> Result<GrammarMatcher, Limit> {
        Ok(GrammarMatcher::new(compiled.clone(), &MatcherOptions::default())?)
    }

    fn mask(&self, matcher: &mut GrammarMatcher) -> Result<TokenSet, Limit> {
        let mut mask = TokenSet::empty(self.vocabulary.vocab_size());
        match matcher.fill_mask(mask.words_mut()) {
            Ok(restricts) => assert_eq!(restricts, mask.len() < self.vocabulary.vocab_size()),
            Err(MatcherError::NoTokenFits) if !self.tokens.has_all_bytes => {}
            Err(error) => return Err(error.into()),
        }
        Ok(mask)
    }

    fn one_walk(
        &self,
        choices: &mut Choices<'_>,
        mut oracle: Option<&mut Oracle<'_>>,
        counts: &mut Counts,
    ) -> Result<Walker, Limit> {
        let mut live = Walker { matcher: self.matcher(&self.compiled)?, steps: Vec::new(), masks: Vec::new() };
        let names_tokens = self.compiled.grammar().nodes().iter().any(|node| matches!(node, Node::Token(_)));
        for _ in 0..2 + choices.below(18) {
            let mask = self.mask(&mut live.matcher)?;
            let at = || format!("{} after {:?}", self.what, live.steps);
            assert_eq!(mask, naive::mask(&live.matcher)?, "mask and slow mask differ: {}", at());
            counts.masks += 1;
            counts.decisions += self.vocabulary.vocab_size() as u64;
            assert_eq!(live.matcher.num_allowed_tokens().unwrap_or(0), mask.len(), "{}", at());
            let is_completed = live.matcher.is_completed();
            for &stop in self.vocabulary.stop_token_ids() {
                // A stop token that the grammar asks for may also come before the end.
                let is_right = mask.contains(stop) == is_completed || (names_tokens && !is_completed);
                assert!(is_right, "stop token {stop}: {}", at());
            }
            if choices.chance(6) {
                for token in 0..self.vocabulary.vocab_size() as u32 + 2 {
                    let in_mask = (token as usize) < self.vocabulary.vocab_size() && mask.contains(token);
                    assert_eq!(live.matcher.is_allowed(token)?, in_mask, "is_allowed({token}): {}", at());
                }
            }
            if let (true, Some(oracle)) = (choices.chance(4), oracle.as_deref_mut()) {
                self.compare_completed(&live, oracle, counts);
            }
            if self.is_json && live.matcher.is_completed() {
                let text: Vec<u8> = live.text(&self.vocabulary).symbols.into_iter().flatten().collect();
                let parsed = serde_json::from_slice::<serde_json::Value>(&text);
                assert!(parsed.is_ok(), "{:?} is no JSON: {}", String::from_utf8_lossy(&text), at());
            }
            live.masks.truncate(live.steps.len());
            live.masks.push(mask.clone());
            if choices.chance(6) && !live.steps.is_empty() {
                self.go_back(&mut live, choices)?;
                continue;
            }
            if choices.chance(8) {
                let mut fork = live.matcher.fork();
                assert_eq!(self.mask(&mut fork)?, mask, "a fork's mask: {}", at());
                std::mem::swap(&mut live.matcher, &mut fork);
                // The original takes another path, which must not affect the fork.
                if let Some(token) = mask.iter().next() {
                    assert!(fork.accept_token(token)?, "token {token} is in the mask: {}", at());
                    fork.reset();
                }
            }
            if !self.step(&mut live, &mask, choices)? {
                break;
            }
        }
        let last = self.mask(&mut live.matcher)?;
        live.masks.truncate(live.steps.len());
        live.masks.push(last);
        Ok(live)
    }

    /// Rolls some steps back; the mask must be the earlier one.
    fn go_back(&self, live: &mut Walker, choices: &mut Choices<'_>) -> Result<(), Limit> {
        let back = 1 + choices.below(live.steps.len());
        live.matcher.rollback(back).expect("so many steps were taken");
        live.steps.truncate(live.steps.len() - back);
        let mask = self.mask(&mut live.matcher)?;
        assert_eq!(mask, live.masks[live.steps.len()], "rolled back: {} after {:?}", self.what, live.steps);
        Ok(())
    }

    /// Takes a step that the mask allows; `false` if there is none or the walk is over.
    fn step(&self, live: &mut Walker, mask: &TokenSet, choices: &mut Choices<'_>) -> Result<bool, Limit> {
        let is_stop = |token: &u32| self.vocabulary.stop_token_ids().contains(token);
        if let Some(refused) = (0..self.vocabulary.vocab_size() as u32).rfind(|&token| !mask.contains(token)) {
            assert!(!live.matcher.accept_token(refused)?, "token {refused} is not in the mask: {}", self.what);
        }
        if let Some(stop) = mask.iter().find(is_stop) {
            assert!(live.matcher.accept_token(stop)? && live.matcher.is_terminated());
            assert!(!live.matcher.accept_token(stop)?, "nothing follows a stop token");
            live.matcher.rollback(1).expect("a stop token was accepted");
            assert!(live.matcher.is_completed() && !live.matcher.is_terminated());
        }
        let mut allowed: Vec<u32> = mask.iter().filter(|token| !is_stop(token)).collect();
        if allowed.is_empty() {
            return Ok(false);
        }
        // Long tokens cross more borders.
        if choices.chance(2) {
            allowed.sort_by_key(|&token| std::cmp::Reverse(self.vocabulary.token_bytes(token).map_or(0, <[u8]>::len)));
            allowed.truncate(8);
        }
        let token = *choices.pick(&allowed);
        let bytes = self.vocabulary.token_bytes(token);
        let step = match bytes.filter(|_| !self.has_token_nodes && choices.chance(10)) {
            Some(bytes) => Step::Bytes(bytes.to_vec()),
            None => Step::Token(token),
        };
        assert!(apply(&mut live.matcher, &step)?, "{step:?} is in the mask: {} after {:?}", self.what, live.steps);
        live.steps.push(step);
        Ok(true)
    }

    /// Repeats the steps of a walk, and checks every mask on the way.
    fn replay(&self, walker: &Walker, compiled: &Arc<CompiledGrammar>, how: &str) -> Result<(), Limit> {
        let mut matcher = self.matcher(compiled)?;
        for (index, mask) in walker.masks.iter().enumerate() {
            let so_far = &walker.steps[..index];
            assert_eq!(&self.mask(&mut matcher)?, mask, "{how}: {} after {so_far:?}", self.what);
            if let Some(step) = walker.steps.get(index) {
                assert!(apply(&mut matcher, step)?, "{how}: {} refuses {step:?} after {so_far:?}", self.what);
            }
        }
        Ok(())
    }

    fn compare_completed(&self, live: &Walker, oracle: &mut Oracle<'_>, counts: &mut Counts) {
        let text = live.text(&self.vocabulary);
        if let Some(matches) = oracle.matches(&text) {
            counts.texts += 1;
            let completed = live.matcher.is_completed();
            assert_eq!(completed, matches, "complete or not: {} after {:?}, {text:?}", self.what, live.steps);
        }
    }

    /// Whether a text is complete, byte by byte and at once, by matcher and recogniser.
    fn compare_text(
        &self,
        text: &[u8],
        oracle: Option<&mut Oracle<'_>>,
        expected: Option<bool>,
        counts: &mut Counts,
    ) -> Result<(), Limit> {
        let mut bytes = self.matcher(&self.compiled)?;
        let mut byte_by_byte = true;
        for byte in text {
            byte_by_byte = byte_by_byte && bytes.accept_bytes(&[*byte])?;
        }
        byte_by_byte = byte_by_byte && bytes.is_completed();
        let mut at_once = self.matcher(&self.compiled)?;
        let at_once = at_once.accept_bytes(text)? && at_once.is_completed();
        let about = || format!("{} and the text {:?}", self.what, String::from_utf8_lossy(text));
        assert_eq!(byte_by_byte, at_once, "byte by byte or at once: {}", about());
        if let Some(matches) = oracle.filter(|_| text.len() <= MAX_LEN).and_then(|o| o.matches(&Text::of(text))) {
            counts.texts += 1;
            assert_eq!(at_once, matches, "matcher and recogniser: {}", about());
        }
        if let Some(expected) = expected {
            assert_eq!(at_once, expected, "spelled from the grammar: {}", about());
        }
        Ok(())
    }
}

impl Walker {
    fn text(&self, vocabulary: &Vocabulary) -> Text {
        let mut text = Text::default();
        for step in &self.steps {
            let start = text.symbols.len();
            match step {
                Step::Bytes(bytes) => text.symbols.extend(bytes.iter().copied().map(Some)),
                Step::Token(id) => {
                    match vocabulary.token_bytes(*id) {
                        Some(bytes) => text.symbols.extend(bytes.iter().copied().map(Some)),
                        None => text.symbols.push(None),
                    }
                    text.tokens.push((start, text.symbols.len(), *id));
                }
            }
        }
        text
    }
}

fn apply(matcher: &mut GrammarMatcher, step: &Step) -> Result<bool, Limit> {
    Ok(match step {
        Step::Token(token) => matcher.accept_token(*token)?,
        Step::Bytes(bytes) => matcher.accept_bytes(bytes)?,
    })
}
