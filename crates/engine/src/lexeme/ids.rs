//! Numbers of automata.

use rustc_hash::FxHashMap;
use stencilm_regex::{ExprId, StateId};

/// An automaton of one [`LexemeCache`](crate::lexeme::cache::LexemeCache).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DfaId(pub u32);

/// From an expression and a state within a character of an automaton: the states behind all that it matches.
pub type Behind = FxHashMap<(DfaId, ExprId, StateId), Option<Box<[StateId]>>>;
