//! Numbers of automata.

use stencilm_regex::{ExprId, StateId};

use stencilm_support::Bounded;

/// An automaton of one [`LexemeCache`](crate::lexeme::cache::LexemeCache).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DfaId(pub u32);

/// From an expression and a state within a character of an automaton: the states after all that it matches.
pub(crate) type Behind = Bounded<(DfaId, ExprId, StateId), Option<Box<[StateId]>>>;
