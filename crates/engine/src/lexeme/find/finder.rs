//! A method of finding the lexeme mask of a residual. [`order`](super::order) tries the methods one after another.

use std::sync::Arc;

use stencilm_regex::{ExprId, StateId};
use stencilm_support::LimitExceeded;

use crate::lexeme::cache::{DfaId, LexemeCache};
use crate::lexeme::mask::LexemeMask;
use crate::vocabulary::tokens::Tokens;

/// If more than this part of all nodes would be visited, a walk by category strings is cheaper.
pub(crate) const FEW_OF: usize = 8;

/// A method of finding the lexeme mask of a residual.
pub(crate) trait Finder: Sync {
    /// The lexeme mask, or a larger language from whose mask it is made; `None` where the method does not apply.
    fn find(&self, lexemes: &mut LexemeCache, vocabulary: &Tokens, this: Unfinished) -> Found;
}

/// The result of a finder.
pub(crate) type Found = Result<Option<Next>, LimitExceeded>;

/// Makes the mask of a residual from that of the larger language; `None` where that is not enough to tell.
type Finish = dyn FnOnce(
    &mut LexemeCache,
    &Tokens,
    Unfinished,
    &Arc<LexemeMask>,
) -> Result<Option<Arc<LexemeMask>>, LimitExceeded>;

/// The next step towards a mask.
pub(crate) enum Next {
    Found(Arc<LexemeMask>),
    After(Larger),
}

/// A larger language from whose mask another mask is made.
pub(crate) struct Larger {
    pub expr: ExprId,
    pub finish: Box<Finish>,
    /// Whether it is the same language in a simpler form.
    pub is_same: bool,
    /// Whether it is read together with others that have lost their limits of length.
    pub is_limited: bool,
    /// The finder to continue with, if its mask is not enough to tell.
    pub next: usize,
}

impl Next {
    /// A finished lexeme mask.
    pub fn found(mask: LexemeMask) -> Next {
        Next::Found(Arc::new(mask))
    }
}

impl Larger {
    /// A language from whose mask `finish` makes another one.
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
    /// The state of which it is the residual.
    pub from: Start,
    /// Whether redundant parts were already removed.
    pub is_pruned: bool,
}

/// A state from which a lexeme is read.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    pub dfa: DfaId,
    pub state: StateId,
    /// Whether there is only one residual, so that it need not be asked which one matches.
    pub one: bool,
}

impl LexemeCache {
    /// Whether a state reads so many tokens that examining its expression pays.
    pub(crate) fn is_dense_enough(&mut self, vocabulary: &Tokens, from: Start) -> Result<bool, LimitExceeded> {
        let trie = vocabulary.trie();
        Ok(trie.nodes_after(*self.live_bytes(from.dfa, from.state)?) > trie.len() / FEW_OF)
    }
}
