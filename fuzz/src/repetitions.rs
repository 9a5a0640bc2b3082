//! Patterns in which a repetition is next to, around or after another one, over vocabularies of real size.
//!
//! Patterns like `X* m X{n} X+` are those that the normal form rewrites most, and for which the mask of one expression
//! is derived from that of another. They are written as a regular expression, as a `pattern` of a schema, in EBNF and
//! as a Lark terminal. Several patterns may also have to match at once.

use std::sync::Arc;

use serde_json::{Value, json};
use stencilm_engine::{CompiledGrammar, GrammarMatcher, MatcherOptions, TokenSet};
use stencilm_grammar::{Grammar, JsonSchemaOptions, LarkOptions, from_json_schema, from_regex};

use crate::Counts;
use crate::choices::{Choices, random_bytes};
use crate::vocabularies;

/// The number of tokens of each mask that are tried one by one.
const TRIED: usize = 48;

/// The repeated parts, and the parts between them. No slash and no quotation mark, so that every notation can contain
/// them.
const PARTS: [&str; 20] = [
    ".",
    "[ab]",
    "[a-z]",
    "\\w",
    "\\d",
    "\\s",
    "a",
    "[^a]",
    "(?:ab|c)",
    "(?:[ab][cd])",
    "(?:a|bc)",
    "[0-9a-f]",
    "\\p{L}",
    "[é-ü]",
    "(?:a[bc]?)",
    "[ -~]",
    "(?i:k)",
    "(?:ab)",
    "\\S",
    "(?:.a)",
];

const MARKS: [&str; 9] = ["a", "x", "[ab]", "-", "ab", ".", "é", "(?:a|b)", "1"];

fn number(choices: &mut Choices<'_>) -> usize {
    match choices.below(8) {
        0..=5 => 1 + choices.below(7),
        6 => 8 + choices.below(30),
        _ => *choices.pick(&[63, 100, 255, 1000]),
    }
}

/// A part followed by some count.
fn counted(choices: &mut Choices<'_>, part: &str) -> String {
    match choices.below(8) {
        0 | 1 => format!("{part}*"),
        2 => format!("{part}+"),
        3 => format!("{part}{{{}}}", number(choices)),
        4 => format!("{part}{{{},}}", number(choices)),
        5 => {
            let from = number(choices);
            format!("{part}{{{from},{}}}", from + number(choices))
        }
        6 => format!("{part}{{0,{}}}", number(choices)),
        _ => format!("{part}?"),
    }
}

/// A pattern of repetitions.
pub fn pattern(choices: &mut Choices<'_>) -> String {
    let part = *choices.pick(&PARTS);
    let other = if choices.chance(3) { *choices.pick(&PARTS) } else { part };
    let mark = *choices.pick(&MARKS);
    let count = number(choices);
    let text = match choices.below(8) {
        0..=2 => format!("{part}*{mark}{other}{{{count}}}{part}+"),
        3 => format!("{part}{{{count}}}{part}*"),
        4 => {
            let inner = counted(choices, part) + &counted(choices, other);
            counted(choices, &format!("(?:{inner})")) + &counted(choices, part)
        }
        5 => {
            let inner = counted(choices, part) + mark;
            counted(choices, &format!("(?:{inner})")) + &counted(choices, other)
        }
        6 => {
            let parts = 2 + choices.below(4);
            (0..parts).map(|_| if choices.chance(4) { mark.to_owned() } else { counted(choices, part) }).collect()
        }
        _ => format!("(?:{}|{mark}{})", pattern_of(choices, part, mark), counted(choices, other)),
    };
    let again = choices.chance(6);
    if again { text.clone() + mark + &text } else { text }
}

fn pattern_of(choices: &mut Choices<'_>, part: &str, mark: &str) -> String {
    counted(choices, part) + mark + &counted(choices, part) + &counted(choices, part)
}

/// The parts of patterns that must match at once: runs of characters that exclude different ones, and the excluded
/// ones.
const RUNS: [&str; 14] =
    [".*", "[^x]*", "[^xq]*", "[^q]*", "[^\\s]*", "[a-z]*", ".{2,}", "x", "q", "a", "-", "ab", "(?:x|7)", "[0-9]+"];

/// A text that must match several patterns, some of them negated; each may have alternatives.
fn together(choices: &mut Choices<'_>) -> Value {
    let mut parts = Vec::new();
    for _ in 0..2 + choices.below(2) {
        let alternatives: Vec<String> = (0..1 + choices.below(3))
            .map(|_| (0..1 + choices.below(4)).map(|_| *choices.pick(&RUNS)).collect())
            .map(|pieces: String| format!("^{pieces}$"))
            .collect();
        let pattern = json!({ "pattern": alternatives.join("|") });
        parts.push(if choices.chance(4) { json!({ "not": pattern }) } else { pattern });
    }
    json!({ "type": "string", "allOf": parts })
}

/// The pattern in one of the notations, as a grammar if it is valid, and as text.
pub fn grammar(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    if choices.chance(4) {
        let text = together(choices).to_string();
        return (from_json_schema(&text, &JsonSchemaOptions::default()).ok(), format!("schema {text}"));
    }
    let pattern = pattern(choices);
    match choices.below(4) {
        0 => (from_regex(&pattern).ok(), format!("regex {pattern:?}")),
        1 => {
            let mut schema = json!({ "type": "string", "pattern": format!("^(?:{pattern})$") });
            if choices.chance(3) {
                schema["maxLength"] = json!(number(choices) * 4);
            }
            if choices.chance(4) {
                schema = json!({ "type": "object", "patternProperties": { pattern: schema } });
            }
            let text = schema.to_string();
            (from_json_schema(&text, &JsonSchemaOptions::default()).ok(), format!("schema {text}"))
        }
        2 => {
            let text = format!("start: A\nA: /{pattern}/\n");
            let options = LarkOptions::default();
            (Grammar::from_lark(&text, &options).ok(), format!("lark {text:?}"))
        }
        _ => {
            let text = format!("root ::= /{pattern}/");
            (Grammar::from_ebnf(&text, "root").ok(), format!("ebnf {text:?}"))
        }
    }
}

/// Compares the first masks of a pattern over a vocabulary of real size with the slow twin, for some of the tokens.
///
/// # Panics
/// If an invariant does not hold.
pub fn check(grammar: Grammar, what: String, choices: &mut Choices<'_>) -> Counts {
    let mut counts = Counts::default();
    if walk(Arc::new(grammar), &what, choices, &mut counts).is_none() {
        counts.limits = 1;
    }
    counts
}

fn walk(grammar: Arc<Grammar>, what: &str, choices: &mut Choices<'_>, counts: &mut Counts) -> Option<()> {
    let vocabulary = vocabularies::large_or_small(choices);
    let compiled = Arc::new(CompiledGrammar::new(grammar, vocabulary.clone()).ok()?);
    let mut matcher = GrammarMatcher::new(compiled, &MatcherOptions::default()).ok()?;
    for step in 0..2 + choices.below(4) {
        let mut mask = TokenSet::empty(vocabulary.vocab_size());
        matcher.fill_mask(mask.words_mut()).ok()?;
        counts.masks += 1;
        let drawn = random_bytes(choices.below(1 << 16) as u64, 3 * TRIED);
        let mut drawn = Choices::new(&drawn);
        for _ in 0..TRIED {
            let token = drawn.below(vocabulary.vocab_size()) as u32;
            let mut probe = matcher.fork();
            let fits = probe.accept_token(token).ok()?;
            assert_eq!(mask.contains(token), fits, "token {token} at step {step} of {what}");
            counts.decisions += 1;
        }
        let allowed: Vec<u32> = mask.iter().collect();
        let token = *choices.pick(&allowed);
        assert!(matcher.accept_token(token).ok()?, "token {token} is in the mask at step {step} of {what}");
        if matcher.is_terminated() {
            break;
        }
    }
    Some(())
}
