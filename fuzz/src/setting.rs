//! A grammar over a vocabulary, small or large, and walks of its matchers: the basis of every query.

use std::sync::Arc;

use stencilm_engine::{
    CompiledGrammar, EngineError, GrammarMatcher, MatcherError, MatcherOptions, TokenSet, Vocabulary,
};
use stencilm_grammar::{Grammar, Node};
use stencilm_support::LimitExceeded;

use crate::Counts;
use crate::choices::{Choices, random_bytes};
use crate::sentences::Sentences;
use crate::tokenizers;
use crate::vocabularies::Tokens;

/// With more tokens than this, only some of them are checked.
const ALL: usize = 2_000;

/// The number of tokens that are checked then.
const SOME: usize = 200;

/// Why a query is not made or not answered: a limit, or a vocabulary that cannot spell the grammar.
pub struct Ended;

impl From<MatcherError> for Ended {
    fn from(error: MatcherError) -> Ended {
        match error {
            MatcherError::Engine(_) | MatcherError::NoTokenFits => Ended,
            other => panic!("not an error that may come here: {other}"),
        }
    }
}

/// A grammar compiled for a vocabulary.
pub struct Setting {
    /// The grammar.
    pub grammar: Arc<Grammar>,
    /// The vocabulary.
    pub vocabulary: Arc<Vocabulary>,
    /// The grammar compiled for the vocabulary.
    pub compiled: Arc<CompiledGrammar>,
    /// Texts of the grammar.
    pub texts: Vec<Vec<u8>>,
    /// The origin of the grammar, for messages.
    pub what: String,
    small: Option<Tokens>,
}

impl Setting {
    /// A vocabulary for a grammar, small in most cases; `None` if the two do not go together.
    pub fn new(grammar: Grammar, what: String, choices: &mut Choices<'_>) -> Option<Setting> {
        let grammar = Arc::new(grammar);
        let mut sentences = Sentences::new(&grammar);
        let texts: Vec<Vec<u8>> =
            (0..4).filter_map(|_| sentences.next(choices, 60)).filter(|text| !text.is_empty()).collect();
        let number = choices.below(tokenizers::COUNT);
        let large = if choices.chance(5) { tokenizers::vocabulary(number) } else { None };
        let (vocabulary, small) = match large {
            Some(large) => (large, None),
            None => {
                let tokens = Tokens::random(choices, &texts);
                (tokens.vocabulary(), Some(tokens))
            }
        };
        let compiled = Arc::new(CompiledGrammar::new(grammar.clone(), vocabulary.clone()).ok()?);
        Some(Setting { grammar, vocabulary, compiled, texts, what, small })
    }

    /// The same with nothing computed yet, as far as the vocabulary can be rebuilt.
    pub fn anew(&self) -> Arc<CompiledGrammar> {
        let vocabulary = self.small.as_ref().map_or_else(|| self.vocabulary.clone(), Tokens::vocabulary);
        Arc::new(CompiledGrammar::new(self.grammar.clone(), vocabulary).expect("it was compiled before"))
    }

    /// A matcher before the first token.
    pub fn matcher(&self) -> Result<GrammarMatcher, Ended> {
        Ok(GrammarMatcher::new(self.compiled.clone(), &MatcherOptions::default())?)
    }

    /// A matcher after a random walk.
    pub fn walked(&self, choices: &mut Choices<'_>) -> Result<GrammarMatcher, Ended> {
        let mut matcher = self.matcher()?;
        for _ in 0..choices.below(12) {
            let allowed = allowed(&mut matcher)?;
            assert!(matcher.accept_token(*choices.pick(&allowed))?, "a token of the mask: {}", self.what);
            if matcher.is_terminated() {
                break;
            }
        }
        Ok(matcher)
    }

    /// All tokens and two more ids if there are few, otherwise some.
    pub fn some_tokens(&self, choices: &mut Choices<'_>) -> Vec<u32> {
        let size = self.vocabulary.vocab_size();
        if size <= ALL {
            return (0..size as u32 + 2).collect();
        }
        let drawn = random_bytes(choices.below(1 << 16) as u64, 3 * SOME);
        let mut drawn = Choices::new(&drawn);
        (0..SOME).map(|_| drawn.below(size) as u32).chain([size as u32]).collect()
    }

    /// Whether the grammar asks for single tokens somewhere, so that bytes alone do not decide.
    pub fn has_token_nodes(&self) -> bool {
        self.compiled.grammar().nodes().iter().any(|node| matches!(node, Node::Token(_)))
    }
}

/// The mask of a matcher.
pub fn mask(matcher: &mut GrammarMatcher) -> Result<TokenSet, Ended> {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    matcher.fill_mask(mask.words_mut())?;
    Ok(mask)
}

/// The mask as a list of tokens.
pub fn allowed(matcher: &mut GrammarMatcher) -> Result<Vec<u32>, Ended> {
    Ok(mask(matcher)?.iter().collect())
}

/// Everything that a query might have changed.
#[derive(PartialEq, Eq, Debug)]
pub struct State {
    num_accepted_tokens: usize,
    is_completed: bool,
    is_terminated: bool,
    /// `None` if there is no mask.
    pub allowed: Option<Vec<u32>>,
}

/// The state of a matcher. An expired deadline of the case is no part of it.
pub fn state(matcher: &mut GrammarMatcher) -> Result<State, Ended> {
    let mut mask = TokenSet::empty(matcher.compiled().vocabulary().vocab_size());
    let allowed = match matcher.is_terminated() {
        true => None,
        false => match matcher.fill_mask(mask.words_mut()) {
            Ok(_) => Some(mask.iter().collect()),
            Err(MatcherError::Engine(EngineError::Limit(LimitExceeded::Time(_) | LimitExceeded::Interrupted))) => {
                return Err(Ended);
            }
            Err(error) => {
                let _ = Ended::from(error);
                None
            }
        },
    };
    Ok(State {
        num_accepted_tokens: matcher.num_accepted_tokens(),
        is_completed: matcher.is_completed(),
        is_terminated: matcher.is_terminated(),
        allowed,
    })
}

/// Makes a query about a grammar, and counts.
///
/// # Panics
/// If an invariant does not hold.
pub fn ask(
    grammar: Grammar,
    what: String,
    choices: &mut Choices<'_>,
    question: impl FnOnce(&Setting, &mut Choices<'_>, &mut Counts) -> Result<(), Ended>,
) -> Counts {
    let mut counts = Counts::default();
    let Some(setting) = Setting::new(grammar, what, choices) else { return counts };
    if question(&setting, choices, &mut counts).is_err() {
        counts.limits += 1;
    }
    counts
}
