//! Names that a text declares and refers to: masks against all texts of a grammar, each listed with the names declared
//! in it.
//!
//! The grammars are trees over two letters, so that names have common prefixes, occur within one token and are declared
//! twice. A rule that leads back to the tree makes some of them infinite; those are compared only with the slow twin.

use std::collections::BTreeSet;
use std::sync::Arc;

use stencilm_engine::{CompiledGrammar, GrammarMatcher, MatcherOptions, Vocabulary, naive};
use stencilm_grammar::Grammar;

use crate::Counts;
use crate::choices::Choices;
use crate::setting::{Ended, mask};

/// A grammar with more texts than this is compared only with the slow twin.
const MAX_TEXTS: usize = 2_000;
/// The depth of a tree, and the most parts next to each other in it.
const MAX_DEPTH: usize = 3;
const MAX_PARTS: usize = 4;
const NAMES: [&str; 6] = ["a", "b", "ab", "ba", "aa", "aba"];
const TEXTS: [&str; 6] = ["x", "y", "a", "xy", "", "b"];
const SETS: [&str; 3] = ["s", "s", "t"];
/// Tokens besides all texts of at most three of these letters.
const LONG_TOKENS: [&str; 5] = ["abxab", "axax", "abab", "xabxab", "baxba"];
const LETTERS: [&str; 4] = ["a", "b", "x", "y"];

/// A part of a grammar without recursion.
enum Part {
    Text(Vec<&'static str>),
    Declares(&'static str, Vec<&'static str>),
    Refers(&'static str),
    Sequence(Vec<Part>),
    Choice(Vec<Part>),
    Repeat(Box<Part>, usize, usize),
}

/// The names declared before a position, each with its set.
type Names = BTreeSet<(&'static str, String)>;
/// Texts, each with the names declared after it.
type Texts = BTreeSet<(String, Names)>;

impl Part {
    fn random(choices: &mut Choices<'_>, depth: usize) -> Part {
        let words = |choices: &mut Choices<'_>, of: &[&'static str]| {
            let mut words: Vec<&str> = (0..1 + choices.below(3)).map(|_| *choices.pick(of)).collect();
            words.sort_unstable();
            words.dedup();
            words
        };
        let parts = |choices: &mut Choices<'_>| {
            (0..2 + choices.below(MAX_PARTS - 1)).map(|_| Part::random(choices, depth - 1)).collect()
        };
        match choices.below(if depth == 0 { 3 } else { 8 }) {
            0 => Part::Text(words(choices, &TEXTS)),
            1 => Part::Declares(choices.pick::<&str>(&SETS), words(choices, &NAMES)),
            2 => Part::Refers(choices.pick::<&str>(&SETS)),
            3 => Part::Choice(parts(choices)),
            4 => {
                let min = choices.below(2);
                Part::Repeat(Box::new(Part::random(choices, depth - 1)), min, min + choices.below(2) + 1)
            }
            _ => Part::Sequence(parts(choices)),
        }
    }

    fn ebnf(&self) -> String {
        let words = |words: &[&str]| words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" | ");
        let parts = |parts: &[Part], between: &str| parts.iter().map(Part::ebnf).collect::<Vec<_>>().join(between);
        match self {
            Part::Text(texts) => format!("({})", words(texts)),
            Part::Declares(set, names) => format!("%declares({set:?}: {})", words(names)),
            Part::Refers(set) => format!("%refers({set:?})"),
            Part::Sequence(all) => format!("({})", parts(all, " ")),
            Part::Choice(all) => format!("({})", parts(all, " | ")),
            Part::Repeat(body, min, max) => format!("{}{{{min},{max}}}", body.ebnf()),
        }
    }

    /// All texts after some names; `None` if there are too many.
    fn texts(&self, before: &Names) -> Option<Texts> {
        let here = |text: &str| (text.to_owned(), before.clone());
        Some(match self {
            Part::Text(texts) => texts.iter().map(|text| here(text)).collect(),
            Part::Declares(set, names) => {
                let with = |name: &str| before.iter().cloned().chain([(*set, name.to_owned())]).collect();
                names.iter().map(|name| ((*name).to_owned(), with(name))).collect()
            }
            Part::Refers(set) => before.iter().filter(|(of, _)| of == set).map(|(_, name)| here(name)).collect(),
            Part::Choice(parts) => {
                let mut found = Texts::new();
                for part in parts {
                    found.append(&mut part.texts(before)?);
                }
                found
            }
            Part::Sequence(parts) => {
                let mut found = Texts::from([here("")]);
                for part in parts {
                    found = part.after(&found)?;
                }
                found
            }
            Part::Repeat(body, min, max) => {
                let (mut round, mut found) = (Texts::from([here("")]), Texts::new());
                for count in 0..=*max {
                    if count >= *min {
                        found.extend(round.iter().cloned());
                    }
                    round = body.after(&round)?;
                }
                found
            }
        })
    }

    fn after(&self, found: &Texts) -> Option<Texts> {
        let mut longer = Texts::new();
        for (text, names) in found {
            longer.extend(self.texts(names)?.into_iter().map(|(more, names)| (format!("{text}{more}"), names)));
            if longer.len() > MAX_TEXTS {
                return None;
            }
        }
        Some(longer)
    }
}

/// A random tree, and its text; some are recursive.
fn random(choices: &mut Choices<'_>) -> (Part, bool, String) {
    let part = Part::random(choices, MAX_DEPTH);
    let is_infinite = choices.chance(4);
    let text = match is_infinite {
        true => format!("root ::= {} (\"y\" root)?", part.ebnf()),
        false => format!("root ::= {}", part.ebnf()),
    };
    (part, is_infinite, text)
}

/// A random grammar that declares names, and its text.
pub fn grammar(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    let (part, is_infinite, text) = random(choices);
    let texts = part.texts(&Names::new()).filter(|_| !is_infinite);
    let grammar = Grammar::from_ebnf(&text, "root").ok();
    let listed = texts.map(|texts| texts.into_iter().map(|(text, _)| text + ",").collect::<BTreeSet<_>>());
    let listed = listed.map_or("-".to_owned(), |texts| texts.into_iter().collect());
    (grammar, format!("{text}\n{listed}"))
}

fn vocabulary() -> Vec<String> {
    let mut tokens: Vec<String> = vec![String::new()];
    for length in 0..3 {
        let last: Vec<String> = tokens.iter().filter(|token| token.len() == length).cloned().collect();
        tokens.extend(last.iter().flat_map(|token| LETTERS.iter().map(move |letter| format!("{token}{letter}"))));
    }
    tokens.remove(0);
    tokens.extend(LONG_TOKENS.map(str::to_owned));
    tokens
}

/// Walks through one grammar, comparing each mask with the listed texts and with the slow twin.
pub fn check(grammar: Grammar, what: String, choices: &mut Choices<'_>) -> Counts {
    let mut counts = Counts::default();
    if walk(grammar, &what, choices, &mut counts).is_err() {
        counts.limits += 1;
    }
    counts
}

fn walk(grammar: Grammar, what: &str, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let (_, listed) = what.split_once('\n').expect("the texts are listed below the grammar");
    let texts: Option<Vec<&str>> = (listed != "-").then(|| listed.split_terminator(',').collect());
    let tokens = vocabulary();
    let spelled: Vec<Option<&str>> = tokens.iter().map(|token| Some(token.as_str())).chain([Some("</s>")]).collect();
    let stop = tokens.len() as u32;
    let vocabulary = Arc::new(Vocabulary::new(&spelled, spelled.len(), &[stop], &[]).expect("the tokens are few"));
    let Ok(compiled) = CompiledGrammar::new(Arc::new(grammar), vocabulary) else { return Ok(()) };
    let compiled = Arc::new(compiled);
    for _ in 0..6 {
        let mut matcher = GrammarMatcher::new(compiled.clone(), &MatcherOptions::default())?;
        let (mut text, mut lengths) = (String::new(), Vec::new());
        for _ in 0..12 {
            let found = mask(&mut matcher)?;
            let about = || format!("behind {text:?} of {what}");
            assert_eq!(found, naive::mask(&matcher)?, "mask and slow mask differ {}", about());
            counts.masks += 1;
            counts.decisions += spelled.len() as u64;
            if let Some(texts) = &texts {
                counts.texts += 1;
                for (token, spelled) in (0..).zip(&tokens) {
                    let longer = format!("{text}{spelled}");
                    let is_viable = texts.iter().any(|text| text.starts_with(&longer));
                    assert_eq!(found.contains(token), is_viable, "{spelled:?} {}", about());
                }
                assert_eq!(found.contains(stop), texts.contains(&text.as_str()), "the end {}", about());
            }
            if choices.chance(5) && !lengths.is_empty() {
                let back = 1 + choices.below(lengths.len());
                matcher.rollback(back).expect("so many tokens were accepted");
                text.truncate(lengths[lengths.len() - back]);
                lengths.truncate(lengths.len() - back);
                continue;
            }
            if choices.chance(6) {
                let fork = matcher.fork();
                matcher = fork;
            }
            let allowed: Vec<u32> = found.iter().filter(|&token| token < stop).collect();
            if allowed.is_empty() {
                break;
            }
            let token = *choices.pick(&allowed);
            assert!(matcher.accept_token(token)?, "{:?} is in the mask {}", tokens[token as usize], about());
            lengths.push(text.len());
            text.push_str(&tokens[token as usize]);
        }
    }
    Ok(())
}
