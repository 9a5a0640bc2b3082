//! The targets of fuzzing: each makes grammars of some kind and asks one kind of query about them.

use std::sync::Arc;

use stencilm_grammar::Grammar;

use crate::choices::Choices;
use crate::setting::ask;
use crate::source::{self, Source};
use crate::walks::Case;
use crate::without::Without;
use crate::{
    Counts, ambiguous, canonical, canonical_twin, deadlines, holes, names, questions, repetitions, sequences, show,
    written,
};

/// A grammar if the choices make one, and its origin.
type Made = (Option<Grammar>, String);

/// One kind of query, by name.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name that selects it on the command line.
    pub name: &'static str,
    /// What is compared with what.
    pub about: &'static str,
    grammar: fn(&mut Choices<'_>) -> Made,
    check: fn(Grammar, String, &mut Choices<'_>) -> Counts,
    /// Whether the slow twin recurses. The engine itself must work with the stack that threads usually have.
    recurses: bool,
    /// Whether some cases run without the optional parts of the engine.
    layers: bool,
}

impl Target {
    /// The target with a name.
    pub fn named(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Checks the case that the bytes choose.
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn check(&self, data: &[u8]) -> Counts {
        let mut choices = Choices::new(data);
        let mut counts = Counts { cases: 1, ..Counts::default() };
        if let (Some(grammar), what) = (self.grammar)(&mut choices) {
            counts.grammars = 1;
            let _without = self.layers.then(|| Without::some(&mut choices));
            counts += (self.check)(grammar, what, &mut choices);
        }
        counts
    }

    /// The grammar that the bytes choose, as text for people.
    pub fn shown(&self, data: &[u8]) -> String {
        let mut choices = Choices::new(data);
        let (grammar, mut what) = (self.grammar)(&mut choices);
        let without = self.layers.then(|| Without::some(&mut choices).names());
        if let Some(names) = without.filter(|names| !names.is_empty()) {
            what += &format!("\nwithout {}", names.join("; "));
        }
        format!("{what}\n{}", grammar.map_or("no grammar".into(), |grammar| show::grammar(&grammar)))
    }

    /// The stack size of the thread that runs cases, in bytes.
    pub fn stack_bytes(&self) -> usize {
        if self.recurses { 256 << 20 } else { 2 << 20 }
    }
}

/// Masks along walks, compared with every reference.
const fn masks(name: &'static str, about: &'static str, grammar: fn(&mut Choices<'_>) -> Made) -> Target {
    let check = |grammar, what: String, choices: &mut Choices<'_>| {
        let is_json = what.starts_with("schema ");
        let case = Case::new(Arc::new(grammar), choices, is_json, what);
        case.map_or(Counts::default(), |case| case.walk(choices))
    };
    Target { name, about, grammar, check, recurses: true, layers: true }
}

/// A query about a grammar of any source.
const fn asks(
    name: &'static str,
    about: &'static str,
    check: fn(Grammar, String, &mut Choices<'_>) -> Counts,
) -> Target {
    Target { name, about, grammar: source::any, check, recurses: false, layers: false }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    masks("nodes", "masks of grammars that are put together from nodes", |c| Source::Nodes.grammar(c)),
    masks("containers", "masks of objects and arrays in each other", |c| Source::Containers.grammar(c)),
    masks("regex", "masks of regular expressions", |c| Source::Regex.grammar(c)),
    masks("json-schema", "masks of JSON Schemas", |c| Source::JsonSchema.grammar(c)),
    masks("lark", "masks of Lark texts", |c| Source::Lark.grammar(c)),
    masks("ebnf", "masks of EBNF texts, GBNF among them", |c| Source::Ebnf.grammar(c)),
    masks("structural-tag", "masks of structural tags", |c| Source::StructuralTag.grammar(c)),
    masks("joined", "masks of grammars joined by concat and union", |c| Source::Joined.grammar(c)),
    masks("quotients", "masks of the beginnings of texts with a hole", |c| Source::Holes.grammar(c)),
    Target {
        name: "repetitions",
        about: "masks of repetitions next to and within each other, over large vocabularies",
        grammar: repetitions::grammar,
        check: repetitions::check,
        recurses: false,
        layers: true,
    },
    Target {
        name: "ambiguous",
        about: "masks of grammars that read one text in very many ways",
        grammar: ambiguous::grammar,
        check: ambiguous::check,
        recurses: false,
        layers: true,
    },
    Target {
        name: "names",
        about: "masks of grammars that declare names, against all of their texts",
        grammar: names::grammar,
        check: names::check,
        recurses: false,
        layers: true,
    },
    asks("canonical", "canonical masks against the encoder", canonical::check),
    Target {
        name: "canonical-twin",
        about: "canonical masks against the encodings of all texts, without some layers",
        grammar: canonical_twin::grammar,
        check: canonical_twin::check,
        recurses: false,
        layers: false,
    },
    asks("queries", "which tokens and texts fit and why, masks as rows", |g, w, c| ask(g, w, c, questions::queries)),
    asks("completions", "the shortest completion completes", |g, w, c| ask(g, w, c, questions::completions)),
    asks("budgets", "texts are complete within their budgets", |g, w, c| ask(g, w, c, questions::budgets)),
    asks("forced", "forced bytes and tokens, and tokens over their end", |g, w, c| ask(g, w, c, questions::forced)),
    asks("drafts", "rows of draft trees against masks behind their nodes", |g, w, c| ask(g, w, c, questions::drafts)),
    asks("index", "token indexes against masks", |g, w, c| ask(g, w, c, questions::index)),
    asks("forks", "rollback, fork and reset in any order", |g, w, c| ask(g, w, c, sequences::forks)),
    asks("batches", "batches of several threads against one thread", |g, w, c| ask(g, w, c, sequences::batches)),
    asks("captures", "captures, however the text was cut", |g, w, c| ask(g, w, c, sequences::captures)),
    Target {
        name: "deadlines",
        about: "operations that are ended leave no trace, and texts are read as ever or ended",
        grammar: deadlines::grammar,
        check: |g, w, c| ask(g, w, c, deadlines::check),
        recurses: false,
        layers: false,
    },
    Target {
        name: "holes",
        about: "texts with holes against a recogniser without, and masks within holes",
        grammar: source::any,
        check: holes::check,
        recurses: true,
        layers: false,
    },
    asks("round-trips", "what prints as EBNF reads back", |g, w, c| ask(g, w, c, written::round_trips)),
    asks("serialization", "what is serialized comes back", |g, w, c| ask(g, w, c, written::serialization)),
];
