//! Operations that are interrupted at some check of the clock. They must leave no trace; and a text that is read must
//! be read as without a deadline, or refused only for the time.

use std::time::Duration;

use stencilm_engine::{CompiledGrammar, EngineError, GrammarMatcher, Limits, MatcherError, SavedError, TokenSet};
use stencilm_grammar::{ErrorKind, Grammar, GrammarError};
use stencilm_support::LimitExceeded;

use crate::choices::Choices;
use crate::notations::damage;
use crate::setting::{Ended, Setting, state};
use crate::source::{self, Source};
use crate::{Counts, interrupt};

/// Longer texts are not read.
const MAX_PRINTED: usize = 1 << 20;

/// How soon an operation is interrupted: the first checks of the clock may end it, later ones do not.
fn soon(choices: &mut Choices<'_>) -> Duration {
    Duration::from_micros(1 + choices.below(200) as u64)
}

/// A grammar of any source. The text of a notation is read twice: the first time it is interrupted.
pub fn grammar(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    const TEXTS: [Source; 4] = [Source::JsonSchema, Source::Lark, Source::StructuralTag, Source::Regex];
    if choices.chance(3) {
        return source::any(choices);
    }
    let (soon, source) = (soon(choices), *choices.pick(&TEXTS));
    let mut same = choices.clone();
    let (ended, _) = interrupt::after(soon, || source.grammar(&mut same));
    let (grammar, what) = source.grammar(choices);
    if let (Some(ended), Some(grammar)) = (ended, &grammar) {
        assert_eq!(ended.serialize_json(), grammar.serialize_json(), "read in time and again: {what}");
    }
    (grammar, what)
}

/// A deadline ends whatever is asked, and leaves no trace.
pub fn check(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    reading(setting, choices, counts);
    matching(setting, choices, counts)
}

/// How reading differed from reading without a deadline.
#[derive(PartialEq, Debug)]
enum Refused {
    Time,
    For(String),
}

impl From<GrammarError> for Refused {
    fn from(error: GrammarError) -> Refused {
        match error.kind {
            ErrorKind::Limit if error.message.contains(&LimitExceeded::Interrupted.while_reading()) => Refused::Time,
            _ => Refused::For(error.to_string()),
        }
    }
}

impl From<SavedError> for Refused {
    fn from(error: SavedError) -> Refused {
        match error {
            SavedError::Grammar(error) => error.into(),
            SavedError::Engine(EngineError::Limit(LimitExceeded::Interrupted)) => Refused::Time,
            other => Refused::For(other.to_string()),
        }
    }
}

/// The texts of a grammar, intact and damaged, are read as without a deadline, or refused for the time.
fn reading(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) {
    type Read<'r> = &'r dyn Fn(&str) -> Result<String, Refused>;
    let compiled = |text: &str| -> Result<String, Refused> {
        let read = CompiledGrammar::deserialize_json(text, setting.vocabulary.clone(), Limits::default())?;
        Ok(read.serialize_json())
    };
    let texts: [(String, Read<'_>); 3] = [
        (setting.grammar.to_ebnf(), &|text| Ok(Grammar::from_ebnf(text, "root")?.serialize_json())),
        (setting.grammar.serialize_json(), &|text| Ok(Grammar::deserialize_json(text)?.serialize_json())),
        (setting.compiled.serialize_json(), &compiled),
    ];
    for (mut text, read) in texts {
        // Shared nodes may be printed again and again.
        if text.len() > MAX_PRINTED {
            continue;
        }
        damage(choices, &mut text);
        let ended = interrupt::after(soon(choices), || read(&text));
        counts.decisions += 1;
        if ended != Err(Refused::Time) {
            assert_eq!(ended, read(&text), "read in time and again: {text} of {}", setting.what);
        }
    }
}

/// The queries to a matcher.
fn matching(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let what = &setting.what;
    let mut matcher = setting.walked(choices)?;
    if matcher.is_terminated() {
        return Ok(());
    }
    let anew = setting.anew();
    let tokens = matcher.recent_tokens(usize::MAX);
    let ended = interrupt::after(soon(choices), || {
        let mut other = GrammarMatcher::new(anew.clone(), &Default::default())?;
        for &token in &tokens {
            other.accept_token(token)?;
        }
        let mut mask = TokenSet::empty(setting.vocabulary.vocab_size());
        other.fill_mask(mask.words_mut())?;
        other.shortest_completion(1_000)?;
        other.get_captures()?;
        Ok::<(), MatcherError>(())
    });
    // Caused by the interruption, or by a busy machine: not a limit of the case.
    counts.decisions += u64::from(ended.is_err());
    // An interruption must leave nothing half-done in shared state.
    let mut other = GrammarMatcher::new(anew, &Default::default())?;
    for &token in &tokens {
        assert!(other.accept_token(token)?, "after an interrupt: {what}");
    }
    assert_eq!(state(&mut other)?, state(&mut matcher)?, "after an interrupt: {what}");
    counts.masks += 1;
    Ok(())
}
