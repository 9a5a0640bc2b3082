//! One case of fuzzing: bytes choose a grammar, a vocabulary and walks, and everything that must hold is checked.
//!
//! The flow is one way: bytes ([`Choices`]) → a grammar ([`grammars`], or a text from [`notations`] or [`lark`]) × a vocabulary
//! ([`vocabularies`]) → walks ([`walks`]), judged by the slow mask and by a recogniser of its own ([`oracle`]). Bytes make
//! a failure small by making the input small ([`minimize`]), and let a coverage-guided fuzzer choose.

pub mod choices;
pub mod exprs;
pub mod grammars;
pub mod lark;
pub mod minimize;
pub mod notations;
pub mod oracle;
pub mod sentences;
pub mod show;
pub mod vocabularies;
pub mod walks;

use std::ops::AddAssign;
use std::sync::Arc;

use stencilm_grammar::Grammar;

pub use choices::Choices;

/// What a number of cases has compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Inputs.
    pub cases: u64,
    /// Inputs that made a grammar, whose masks were compared.
    pub grammars: u64,
    /// Masks held against the slow twin.
    pub masks: u64,
    /// Pairs of state and token for which the mask and the slow twin were compared.
    pub decisions: u64,
    /// Texts of which the matcher and the recogniser said the same.
    pub texts: u64,
    /// Cases that ended early because a limit was reached.
    pub limits: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.cases += other.cases;
        self.grammars += other.grammars;
        self.masks += other.masks;
        self.decisions += other.decisions;
        self.texts += other.texts;
        self.limits += other.limits;
    }
}

/// Where the grammar of a case comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Nodes put together at random, with what no notation writes.
    Nodes,
    /// Objects and arrays in each other, with all that they can ask for.
    Containers,
    /// A random regular expression.
    Regex,
    /// A random JSON Schema.
    JsonSchema,
    /// A random Lark text.
    Lark,
}

/// All sources.
pub const SOURCES: [Source; 5] = [Source::Nodes, Source::Containers, Source::Regex, Source::JsonSchema, Source::Lark];

/// Checks the case that the bytes choose, whatever its source.
///
/// # Panics
/// When something that must hold does not.
pub fn fuzz_one(data: &[u8]) -> Counts {
    let mut choices = Choices::new(data);
    let source = source(&mut choices);
    check(source, &mut choices)
}

fn source(choices: &mut Choices<'_>) -> Source {
    const DRAWN: [Source; 7] = [
        Source::Nodes,
        Source::Nodes,
        Source::Containers,
        Source::Containers,
        Source::Regex,
        Source::JsonSchema,
        Source::Lark,
    ];
    DRAWN[choices.below(DRAWN.len())]
}

/// The grammar that the bytes choose, as text for people.
pub fn shown(data: &[u8]) -> String {
    let mut choices = Choices::new(data);
    let source = source(&mut choices);
    let (grammar, what) = grammar(source, &mut choices);
    format!("{what}\n{}", grammar.map_or("no grammar".into(), |grammar| show::grammar(&grammar)))
}

fn grammar(source: Source, choices: &mut Choices<'_>) -> (Option<Grammar>, String) {
    match source {
        Source::Nodes => (grammars::random_grammar(choices), "nodes".to_owned()),
        Source::Containers => (grammars::random_container(choices), "containers".to_owned()),
        Source::Regex => notations::regex(choices),
        Source::JsonSchema => notations::json_schema(choices),
        Source::Lark => lark::lark(choices),
    }
}

/// Checks the case that the choices make of a source.
///
/// # Panics
/// When something that must hold does not.
pub fn check(source: Source, choices: &mut Choices<'_>) -> Counts {
    let mut counts = Counts { cases: 1, ..Counts::default() };
    let (grammar, what) = grammar(source, choices);
    if let Some(grammar) = grammar {
        counts.grammars = 1;
        let case = walks::Case::new(Arc::new(grammar), choices, source == Source::JsonSchema, what);
        counts += case.map_or(Counts::default(), |case| case.walk(choices));
    }
    counts
}
