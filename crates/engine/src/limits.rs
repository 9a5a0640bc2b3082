//! Limits on the work and memory that one grammar may take.

use stencilm_support::{CancelToken, Watch};

/// Limits for one compiled grammar and its matchers. Reaching one is an error that names it, unless noted otherwise,
/// and has no lasting effect: later matchers start afresh.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The greatest number of expressions in the lexemes of the grammar.
    pub grammar_expressions: usize,
    /// The greatest number of expressions derived in one operation, such as one mask.
    pub derived_expressions: usize,
    /// The greatest number of expressions visited to decide whether an intersection or a complement matches anything.
    pub search_steps: usize,
    /// The greatest number of states of one automaton, which belongs to the lexemes that may come at one point.
    pub automaton_states: usize,
    /// The greatest number of bytes by which one operation, such as one mask, may let automata and derived expressions
    /// grow. It also bounds what the text of one matcher may need when it is read again.
    pub working_bytes: usize,
    /// The greatest size of the stacks of one matcher, in bytes.
    pub stack_bytes: usize,
    /// The number of bytes that shared lexemes may hold, for grammars of one vocabulary with equal limits. Beyond it,
    /// lexemes that no call is using are dropped, and built again when they are needed. This is no error.
    pub lexicon_bytes: usize,
    /// The number of bytes that the cached masks of one grammar may hold. Beyond it, all of them are dropped. This is
    /// no error.
    pub mask_cache_bytes: usize,
    /// The longest time that one operation of a matcher may take.
    pub milliseconds: u64,
    /// Cancels any operation.
    pub cancel: Option<CancelToken>,
}

impl Limits {
    /// The watch for one operation within these limits.
    pub fn watch(&self) -> Watch {
        Watch::new(self.milliseconds, None).until(self.cancel.clone())
    }
}

impl Default for Limits {
    fn default() -> Limits {
        let lexemes = stencilm_regex::Limits::default();
        Limits {
            grammar_expressions: 1_200_000,
            derived_expressions: lexemes.max_exprs,
            search_steps: lexemes.max_search,
            automaton_states: lexemes.max_states,
            working_bytes: lexemes.max_bytes,
            stack_bytes: 256 << 20,
            lexicon_bytes: 128 << 20,
            mask_cache_bytes: 16 << 20,
            milliseconds: u64::MAX,
            cancel: None,
        }
    }
}

/// The limits that affect lexemes; grammars that agree in them share lexemes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LexiconLimits {
    pub work: stencilm_regex::Limits,
    pub bytes: usize,
}

impl From<&Limits> for LexiconLimits {
    fn from(limits: &Limits) -> LexiconLimits {
        let work = stencilm_regex::Limits {
            max_exprs: limits.derived_expressions,
            max_search: limits.search_steps,
            max_states: limits.automaton_states,
            max_bytes: limits.working_bytes,
        };
        LexiconLimits { work, bytes: limits.lexicon_bytes }
    }
}
