//! What is known while shorthands are written out.

use rustc_hash::FxHashMap;
use stencilm_regex::ExprId;
use stencilm_support::{HashMap, HashSet};

use super::names::Names;
use super::tree::{PartId, Unit};
use crate::ir::builder::GrammarBuilder;
use crate::ir::grammar::NodeId;
use crate::ir::report::KeptReport;
use crate::notations::ebnf::tree::{Part as Made, PartId as MadeId, Text};

/// A rule that is expanded once for its arguments and its parameter.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub definition: usize,
    pub parameter: Option<u64>,
    /// The arguments as they are written, with the arguments of enclosing templates filled in.
    pub arguments: Vec<String>,
    pub variant: Variant,
}

/// How a rule differs from its definition, because of its context.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Variant {
    /// The heads that are alternatives to its first part, ascending: see [`super::heads`].
    pub beside: Vec<usize>,
    /// Whether what is ignored after its last terminal is left out: see [`super::trailing`].
    pub trimmed: bool,
}

/// The argument for a parameter of a template.
#[derive(Clone)]
pub(super) struct Argument {
    pub part: MadeId,
    pub is_terminal: bool,
    pub key: String,
}

/// A rule that still has to be expanded.
pub(super) struct Job {
    pub key: Key,
    pub arguments: Vec<Argument>,
    /// Its rule in the tree.
    pub rule: u32,
}

/// Whether whitespace and rules may occur between parts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    Rule,
    Terminal,
}

/// The state while one text, or one nested grammar, is expanded.
pub(super) struct Scope<'u> {
    pub unit: &'u Unit,
    pub known: HashMap<Key, u32>,
    pub jobs: Vec<Job>,
    /// The key and the arguments of each rule.
    pub made: FxHashMap<u32, (Key, Vec<Argument>)>,
    /// The rule for what is ignored.
    pub ignored: Option<u32>,
    /// Whether each definition may be empty.
    pub nullable: Vec<bool>,
    /// The terminals that depend on their context, and (the next field) the texts of their alternatives.
    pub context: Vec<bool>,
    pub groups: FxHashMap<PartId, Vec<(ExprId, ExprId)>>,
}

/// The state while a grammar is expanded.
pub(super) struct Expansion<'a, 'n> {
    pub builder: &'a mut GrammarBuilder,
    pub tree: Text,
    pub names: &'a mut Names<'n>,
    pub reports: Vec<KeptReport>,
    pub rule_names: HashSet<String>,
    /// How many rules have been made with each name.
    pub numbers: HashMap<String, u32>,
    pub embedded: HashMap<String, NodeId>,
    pub rules: usize,
}

impl Expansion<'_, '_> {
    /// A terminal as one lexeme, followed by what is ignored.
    pub fn lexeme(&mut self, scope: &Scope<'_>, part: MadeId) -> MadeId {
        let place = self.tree.places[part.index()];
        let lexeme = self.tree.add(place, Made::Lexeme(part));
        self.followed(scope, lexeme)
    }

    pub fn followed(&mut self, scope: &Scope<'_>, part: MadeId) -> MadeId {
        let place = self.tree.places[part.index()];
        match scope.ignored {
            Some(ignored) => {
                let ignored = self.tree.add(place, Made::Call(ignored));
                self.tree.add(place, Made::Sequence(vec![part, ignored]))
            }
            None => part,
        }
    }
}
