//! One way to find the lexeme mask of a residual, which [`order`](super::order) tries if those before it find nothing.

use std::sync::Arc;

use stencilm_regex::{ExprId, StateId};
use stencilm_support::LimitExceeded;

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::mask::LexemeMask;
use crate::vocabulary::tokens::Tokens;

/// With more nodes to look at than this part of all, a walk that takes characters together is cheaper.
pub(crate) const FEW_OF: usize = 8;

/// A way to find the lexeme mask of a residual.
pub(crate) trait Finder: Sync {
    /// The lexeme mask, or a larger language whose mask it is made from; `None` where the residual is nothing of the kind.
    fn find(&self, lexemes: &mut LexemeCache, vocabulary: &Tokens, this: Unfinished) -> Found;
}

/// What a finder has found.
pub(crate) type Found = Result<Option<Next>, LimitExceeded>;

/// Makes the mask of a residual from that of the larger language; `None` where that does not say enough.
type Finish = dyn FnOnce(
    &mut LexemeCache,
    &Tokens,
    Unfinished,
    &Arc<LexemeMask>,
) -> Result<Option<Arc<LexemeMask>>, LimitExceeded>;

/// What is next in making a mask.
pub(crate) enum Next {
    Found(Arc<LexemeMask>),
    After(Larger),
}

/// A larger language whose mask another mask is made from.
pub(crate) struct Larger {
    pub expr: ExprId,
    pub finish: Box<Finish>,
    /// Whether it is the same language, said with less.
    pub is_same: bool,
    /// Whether it is read with others that have lost their limits of length.
    pub is_limited: bool,
    /// The finder to go on with where its mask does not say enough.
    pub next: usize,
}

impl Next {
    /// A lexeme mask that is there.
    pub fn found(mask: LexemeMask) -> Next {
        Next::Found(Arc::new(mask))
    }
}

impl Larger {
    /// A language from whose mask `finish` makes that of another.
    pub fn new(
        expr: ExprId,
        finish: impl FnOnce(
            &mut LexemeCache,
            &Tokens,
            Unfinished,
            &Arc<LexemeMask>,
        ) -> Result<Option<Arc<LexemeMask>>, LimitExceeded>
        + 'static,
    ) -> Larger {
        Larger { expr, finish: Box::new(finish), is_same: false, is_limited: false, next: 0 }
    }
}

/// A residual whose mask is being made.
#[derive(Clone, Copy)]
pub(crate) struct Unfinished {
    pub residual: ExprId,
    /// The state that it is what is left of.
    pub from: Start,
    /// Whether what says nothing was left out already.
    pub is_pruned: bool,
}

/// A state to read a lexeme from.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    pub dfa: DfaId,
    pub state: StateId,
    /// Whether there is a single residual, so that it goes without saying which one matches.
    pub one: bool,
}

impl LexemeCache {
    /// Whether a state reads so many tokens that it pays to look at its expression.
    pub(crate) fn is_dense_enough(&mut self, vocabulary: &Tokens, from: Start) -> Result<bool, LimitExceeded> {
        let trie = vocabulary.trie();
        Ok(trie.nodes_after(*self.live_bytes(from.dfa, from.state)?) > trie.len() / FEW_OF)
    }
}
