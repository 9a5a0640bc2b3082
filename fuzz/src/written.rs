//! Grammars written and read again: as EBNF, as JSON, compiled, and as damaged texts.

use std::sync::Arc;

use stencilm_engine::{CompiledGrammar, GrammarMatcher, Limits, MatcherOptions};
use stencilm_grammar::{ErrorKind, Grammar};

use crate::Counts;
use crate::choices::Choices;
use crate::notations::damage;
use crate::setting::{Ended, Setting, state};

/// Longer texts are not read.
const MAX_PRINTED: usize = 1 << 20;

/// A printed grammar reads back, prints the same, and has the same masks.
pub fn round_trips(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let what = &setting.what;
    let printed = setting.grammar.to_ebnf();
    // Shared nodes may be printed again and again.
    if printed.len() > MAX_PRINTED {
        return Err(Ended);
    }
    let read = match Grammar::from_ebnf(&printed, "root") {
        Err(error) if error.kind == ErrorKind::Limit => return Err(Ended),
        read => read.unwrap_or_else(|error| panic!("{error} in\n{printed}\nof {what}")),
    };
    let again = read.to_ebnf();
    let settled = Grammar::from_ebnf(&again, "root").unwrap_or_else(|error| panic!("{error} in\n{again}\nof {what}"));
    assert_eq!(settled.to_ebnf(), again, "printed and read twice: {printed}\nof {what}");
    same_masks(setting, &read, choices, counts)?;
    let mut damaged = printed;
    damage(choices, &mut damaged);
    if let Ok(grammar) = Grammar::from_ebnf(&damaged, "root") {
        let printed = grammar.to_ebnf();
        assert!(Grammar::from_ebnf(&printed, "root").is_ok(), "{printed}\nof {damaged}");
    }
    Ok(())
}

/// A serialized grammar reads back as the same.
pub fn serialization(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let what = &setting.what;
    let text = setting.grammar.serialize_json();
    let read = Grammar::deserialize_json(&text).unwrap_or_else(|error| panic!("{error} in {text} of {what}"));
    assert_eq!(read.serialize_json(), text, "{what}");
    assert_eq!(read.report(), setting.grammar.report(), "{what}");
    same_masks(setting, &read, choices, counts)?;
    let saved = setting.compiled.serialize_json();
    let compiled = CompiledGrammar::deserialize_json(&saved, setting.vocabulary.clone(), Limits::default());
    let compiled = compiled.unwrap_or_else(|error| panic!("{error} in {saved} of {what}"));
    assert_eq!(compiled.serialize_json(), saved, "{what}");
    // A damaged text is refused, or is another grammar that works.
    let mut damaged = text;
    for _ in 0..1 + choices.below(3) {
        damage(choices, &mut damaged);
        change_a_number(choices, &mut damaged);
    }
    if let Ok(grammar) = Grammar::deserialize_json(&damaged) {
        assert!(!grammar.to_ebnf().is_empty());
        if let Ok(compiled) = CompiledGrammar::new(Arc::new(grammar), setting.vocabulary.clone()) {
            let mut matcher = GrammarMatcher::new(Arc::new(compiled), &MatcherOptions::default())?;
            state(&mut matcher)?;
        }
    }
    Ok(())
}

fn change_a_number(choices: &mut Choices<'_>, text: &mut String) {
    let digits: Vec<usize> =
        text.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit()).map(|(at, _)| at).collect();
    if let (Some(&at), true) = (digits.get(choices.below(digits.len())), choices.chance(2)) {
        let digit = (b'0' + choices.below(10) as u8) as char;
        text.replace_range(at..=at, &digit.to_string());
    }
}

/// A walk along both.
fn same_masks(setting: &Setting, other: &Grammar, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let compiled = CompiledGrammar::new(Arc::new(other.clone()), setting.vocabulary.clone());
    let compiled = Arc::new(compiled.unwrap_or_else(|error| panic!("{error}: {}", setting.what)));
    let (mut ours, mut theirs) = (setting.matcher()?, GrammarMatcher::new(compiled, &MatcherOptions::default())?);
    for _ in 0..8 {
        let expected = state(&mut ours)?;
        assert_eq!(state(&mut theirs)?, expected, "{}", setting.what);
        counts.masks += 1;
        let Some(allowed) = expected.allowed else { break };
        let token = *choices.pick(&allowed);
        assert!(ours.accept_token(token)? && theirs.accept_token(token)?, "{}", setting.what);
    }
    Ok(())
}
