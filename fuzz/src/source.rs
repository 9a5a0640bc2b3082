//! The source of a case's grammar, and the check of its masks that all sources share.

use std::sync::Arc;

use stencilm_grammar::{Grammar, JsonSchemaOptions, LarkOptions, any_json, from_regex};

use crate::choices::Choices;
use crate::{Counts, grammars, lark, notations, repetitions, tags, walks};

/// The source of a case's grammar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Random nodes, including some that no notation can express.
    Nodes,
    /// Nested objects and arrays, with all kinds of constraints.
    Containers,
    /// A random regular expression.
    Regex,
    /// A random JSON Schema.
    JsonSchema,
    /// A random Lark text.
    Lark,
    /// The EBNF of a random grammar, now and then damaged.
    Ebnf,
    /// A random structural tag.
    StructuralTag,
    /// Patterns of repetitions, in any of the notations.
    Repetitions,
    /// Several grammars of other sources, as a sequence or as alternatives.
    Joined,
    /// The texts up to the end of a hole, in texts of a grammar of another source.
    Holes,
}

/// All sources.
pub const SOURCES: [Source; 10] = [
    Source::Nodes,
    Source::Containers,
    Source::Regex,
    Source::JsonSchema,
    Source::Lark,
    Source::Ebnf,
    Source::StructuralTag,
    Source::Repetitions,
    Source::Joined,
    Source::Holes,
];

impl Source {
    /// A grammar if the choices make one, and its origin as text for people.
    pub fn grammar(self, choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
        match self {
            Source::Nodes => (grammars::random_grammar(choices), "nodes".to_owned()),
            Source::Containers => (grammars::random_container(choices), "containers".to_owned()),
            Source::Regex => notations::regex(choices),
            Source::JsonSchema => notations::json_schema(choices),
            Source::Lark => lark::lark(choices),
            Source::Ebnf => ebnf(choices),
            Source::StructuralTag => tags::structural_tag(choices),
            Source::Repetitions => repetitions::grammar(choices),
            Source::Joined => joined(choices),
            Source::Holes => crate::holes::quotient(choices),
        }
    }
}

/// A grammar of any source.
pub fn any(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    // The most varied source is chosen most often.
    const DRAWN: [Source; 13] = [
        Source::Nodes,
        Source::Nodes,
        Source::Containers,
        Source::JsonSchema,
        Source::JsonSchema,
        Source::Lark,
        Source::StructuralTag,
        Source::Regex,
        Source::Ebnf,
        Source::Repetitions,
        Source::Joined,
        Source::Nodes,
        Source::Holes,
    ];
    DRAWN[choices.below(DRAWN.len())].grammar(choices)
}

fn ebnf(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    let source = [Source::Nodes, Source::Containers][choices.below(2)];
    let Some(grammar) = source.grammar(choices).0 else { return (None, String::new()) };
    let mut text = grammar.to_ebnf();
    notations::damage(choices, &mut text);
    let read = Grammar::from_ebnf(&text, "root");
    if let Err(error) = &read {
        assert!(!error.message.is_empty(), "an error says something");
    }
    (read.ok(), format!("ebnf {text}"))
}

fn joined(choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    let parts: Vec<Grammar> = (0..2 + choices.below(2)).filter_map(|_| simple(choices)).collect();
    let parts: Vec<&Grammar> = parts.iter().collect();
    if parts.is_empty() {
        return (None, String::new());
    }
    let (joined, how) = match choices.below(2) {
        0 => (Grammar::concat(&parts), "concat"),
        _ => (Grammar::union(&parts), "union"),
    };
    let shown: Vec<String> = parts.iter().map(|part| part.to_ebnf()).collect();
    (joined.ok(), format!("{how} of\n{}", shown.join("\nand\n")))
}

fn simple(choices: &mut Choices<'_>) -> Option<Grammar> {
    match choices.below(8) {
        0 => any_json(&JsonSchemaOptions::default()).ok(),
        1 => from_regex("(?s).*").ok(),
        2 => Grammar::from_lark("start: \"a\" start | \"b\"", &LarkOptions::default()).ok(),
        3 => Source::Containers.grammar(choices).0,
        4 => Source::JsonSchema.grammar(choices).0,
        5 => Source::Regex.grammar(choices).0,
        _ => Source::Nodes.grammar(choices).0,
    }
}

/// Checks the masks of the case that the choices make of a source.
///
/// # Panics
/// If an invariant does not hold.
pub fn check(source: Source, choices: &mut Choices<'_>) -> Counts {
    let mut counts = Counts { cases: 1, ..Counts::default() };
    if let (Some(grammar), what) = source.grammar(choices) {
        counts.grammars = 1;
        let case = walks::Case::new(Arc::new(grammar), choices, source == Source::JsonSchema, what);
        counts += case.map_or(Counts::default(), |case| case.walk(choices));
    }
    counts
}
