//! Numbers of automata.

use stencilm_regex::{ExprId, StateId};

use stencilm_support::Bounded;

/// The number of an automaton in one [`LexemeCache`](crate::lexeme::cache::LexemeCache).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DfaId(pub u32);

/// By an automaton of a character, an expression, and a state within a character: the states after all matches of the
/// expression.
pub(crate) type Behind = Bounded<(DfaId, ExprId, StateId), Option<Box<[StateId]>>>;
