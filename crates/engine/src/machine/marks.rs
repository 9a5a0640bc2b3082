//! Which kinds of marks a grammar has: token budgets, temperatures and declared names.

use stencilm_grammar::{Mark, Node};

use crate::error::EngineError;
use crate::machine::left_corner::LeftGraph;

/// The kinds of marks that a grammar has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks {
    /// Some part has a token budget.
    pub budgets: bool,
    /// Some part has a temperature.
    pub temperatures: bool,
    /// Some part declares names or refers to them.
    pub names: bool,
}

impl Marks {
    /// Collects the marks of a grammar.
    ///
    /// # Errors
    /// [`EngineError::NotRun`] for a part with a budget or a temperature that may begin with itself: infinitely many
    /// such parts could be open at one position.
    pub fn new(left: &LeftGraph) -> Result<Marks, EngineError> {
        let mut marks = Marks::default();
        for node in left.grammar().nodes() {
            match node {
                Node::Marked { mark: Mark::MaxTokens(_), .. } => marks.budgets = true,
                Node::Marked { mark: Mark::Temperature(_), .. } => marks.temperatures = true,
                Node::Marked { mark: Mark::Declares(_) | Mark::Refers(_), .. } => marks.names = true,
                _ => {}
            }
        }
        if marks.any() && left.has_mark_in_cycle() {
            return Err(EngineError::NotRun(
                "a rule with max_tokens or temperature that begins with itself, whose budget would begin endlessly often,",
            ));
        }
        Ok(marks)
    }

    /// Whether the grammar has any marks.
    pub fn any(self) -> bool {
        self.budgets || self.temperatures || self.names
    }
}
