//! What is known of a mask when it was found.

use std::sync::Arc;

use crate::lexeme::mask::Row;
use crate::parse::unverified::Unverified;

/// How a mask was made: a row, and the tokens in which it differs.
pub(crate) struct Finished {
    /// The row that the mask began with; `None` for an empty one.
    pub row: Option<Arc<Row>>,
    /// The tokens turned over since, in any order; one that was turned back is in it twice.
    pub flipped: Vec<u32>,
    /// Whether another row was added, so that `flipped` does not tell all.
    pub joined: bool,
    /// The tokens that were turned off, which may have been turned on again: few.
    pub cleared: Vec<u32>,
    /// Tokens for which taking keys and elements for new ones may be wrong.
    pub unverified: Vec<Unverified>,
}
