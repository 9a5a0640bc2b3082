//! Grammars that read one text in a great many ways: rules that call each other in every position and may match
//! nothing.
//!
//! The vocabulary holds every short text over two letters and long runs of them, so that a mask goes through all
//! parses.

use std::sync::Arc;

use stencilm_engine::{CompiledGrammar, GrammarMatcher, MatcherOptions, Vocabulary, naive};
use stencilm_grammar::Grammar;

use crate::Counts;
use crate::choices::Choices;
use crate::setting::{Ended, mask};

const RULES: [&str; 2] = ["root", "other"];
const LEAVES: [&str; 8] = ["\"a\"", "\"b\"", "[ab]", ".", "\"ab\"", "\"\"", "\"a\"?", "\"c\""];
const COUNTS: [&str; 8] = ["", "", "", "?", "*", "+", "{2}", "{1,3}"];

/// All texts over two letters up to this length are tokens.
const SHORT: usize = 6;

/// The lengths of runs of one letter that are tokens.
const RUNS: [usize; 3] = [8, 12, 16];

/// A random ambiguous grammar, and its text.
pub fn grammar(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    let rules: Vec<String> = RULES
        .iter()
        .map(|name| {
            let alternatives: Vec<String> = (0..1 + choices.below(3)).map(|_| sequence(choices)).collect();
            format!("{name} ::= {}", alternatives.join(" | "))
        })
        .collect();
    let text = rules.join("\n");
    (Grammar::from_ebnf(&text, "root").ok(), format!("ebnf {text:?}"))
}

fn sequence(choices: &mut Choices<'_>) -> String {
    let parts: Vec<String> = (0..1 + choices.below(4))
        .map(|_| {
            let part = match choices.below(6) {
                0..=2 => (*choices.pick(&LEAVES)).to_owned(),
                3 | 4 => (*choices.pick(&RULES)).to_owned(),
                _ => format!("({} {})", choices.pick(&RULES), choices.pick(&LEAVES)),
            };
            part + *choices.pick(&COUNTS)
        })
        .collect();
    parts.join(" ")
}

fn vocabulary() -> Arc<Vocabulary> {
    let mut texts: Vec<String> = vec![String::new()];
    let mut first = 0;
    for _ in 0..SHORT {
        let last = texts.len();
        for at in first..last {
            let shorter = texts[at].clone();
            texts.extend(["a", "b"].map(|letter| shorter.clone() + letter));
        }
        first = last;
    }
    texts.extend(RUNS.iter().flat_map(|&run| ["a", "b"].map(|letter| letter.repeat(run))));
    texts.extend(["c", "abc", "é"].map(str::to_owned));
    let stop = texts.len() as u32;
    let vocabulary = Vocabulary::new(&texts.into_iter().map(Some).collect::<Vec<_>>(), stop as usize + 1, &[stop], &[]);
    Arc::new(vocabulary.expect("the ids fit"))
}

/// Compares masks along a walk with the slow twin.
///
/// # Panics
/// If an invariant does not hold.
pub fn check(grammar: Grammar, what: String, choices: &mut Choices<'_>) -> Counts {
    let mut counts = Counts::default();
    if walk(grammar, &what, choices, &mut counts).is_err() {
        counts.limits = 1;
    }
    counts
}

fn walk(grammar: Grammar, what: &str, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let compiled = CompiledGrammar::new(Arc::new(grammar), vocabulary()).map_err(|_| Ended)?;
    let mut matcher = GrammarMatcher::new(Arc::new(compiled), &MatcherOptions::default())?;
    let mut tokens: Vec<u32> = Vec::new();
    for _ in 0..1 + choices.below(4) {
        let found = mask(&mut matcher)?;
        assert_eq!(found, naive::mask(&matcher)?, "after {tokens:?}: {what}");
        counts.masks += 1;
        counts.decisions += matcher.compiled().vocabulary().vocab_size() as u64;
        // Long runs make everything after them slow to try, and reveal nothing else.
        let allowed: Vec<u32> = found.iter().filter(|&token| token < 1 << (SHORT + 1)).collect();
        let Some(&token) = allowed.get(choices.below(allowed.len())) else { break };
        assert!(matcher.accept_token(token)?, "token {token} after {tokens:?}: {what}");
        tokens.push(token);
    }
    Ok(())
}
