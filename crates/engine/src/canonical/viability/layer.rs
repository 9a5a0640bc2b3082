//! The layers of the viability query. [`order`](super::order) lists them in the order in which they are asked.
//!
//! There are two kinds. Most tokens of a mask are decided many at once, by what is known about their lexeme, about
//! whitespace or about the configuration after them: [`Layer`]. The rest is decided one by one, by what may come after
//! the token: [`EndLayer`].

use super::question::Question;
use super::search::{EndQuestion, Search};
use crate::error::EngineError;

/// Decides some tokens of a mask and leaves the others open.
pub(crate) trait Layer: Sync {
    fn decide(&self, question: &mut Question<'_, '_>) -> Result<(), EngineError>;
}

/// Decides whether there is a continuation after a token; `None` where it does not know.
pub(crate) trait EndLayer: Sync {
    fn is_viable(&self, search: &mut Search<'_, '_>, question: &EndQuestion) -> Result<Option<bool>, EngineError>;
}
