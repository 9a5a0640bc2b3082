//! Masks as a row and the few tokens in which they differ from it, for callers that keep rows on another device. A row
//! is a lexeme mask, or a whole shared mask.

use std::sync::{Arc, Weak};

use stencilm_support::{Mutex, lock};

use crate::lexeme::mask::LexemeMask;
use crate::mask::reference::Base;

/// A mask as its difference from a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MaskPatch {
    /// The number of the row; 0 is the empty row.
    pub row: u32,
    /// The tokens whose bits are flipped, ascending.
    pub flipped: Vec<u32>,
}

/// The row that a number refers to.
enum Named {
    /// The row was dropped and its memory freed.
    Gone,
    LexemeMask(Weak<LexemeMask>),
    Base(Weak<Base>),
}

impl Named {
    fn is_gone(&self) -> bool {
        match self {
            Named::Gone => true,
            Named::LexemeMask(lexeme_mask) => lexeme_mask.strong_count() == 0,
            Named::Base(base) => base.strong_count() == 0,
        }
    }
}

/// The rows that were given out by number. A number means the same words forever. Once neither the row nor the grammar
/// is held by anybody, its words cannot be had again.
#[derive(Default)]
pub(crate) struct NamedRows(Mutex<Vec<Named>>);

impl NamedRows {
    /// The number of a lexeme mask.
    pub fn number_of_lexeme_mask(&self, lexeme_mask: &Arc<LexemeMask>) -> u32 {
        *lexeme_mask.number.get_or_init(|| self.add(Named::LexemeMask(Arc::downgrade(lexeme_mask))))
    }

    /// The number of a mask that others share.
    pub fn number_of_base(&self, base: &Arc<Base>) -> u32 {
        *base.number.get_or_init(|| self.add(Named::Base(Arc::downgrade(base))))
    }

    fn add(&self, named: Named) -> u32 {
        let mut all = lock(&self.0);
        if all.len() == all.capacity() {
            // A weak reference keeps the allocation of its target, so it is replaced once the target is gone.
            for named in all.iter_mut().filter(|named| named.is_gone()) {
                *named = Named::Gone;
            }
        }
        all.push(named);
        all.len() as u32
    }

    /// Writes the row with a number. Returns `false`, and writes nothing, where it no longer exists.
    pub fn write(&self, number: u32, mask: &mut [u32]) -> bool {
        if number == 0 {
            mask.fill(0);
            return true;
        }
        let all = lock(&self.0);
        match all.get(number as usize - 1) {
            Some(Named::LexemeMask(lexeme_mask)) => {
                lexeme_mask.upgrade().map(|lexeme_mask| lexeme_mask.write(mask)).is_some()
            }
            Some(Named::Base(base)) => base.upgrade().map(|base| base.write(mask)).is_some(),
            Some(Named::Gone) | None => false,
        }
    }
}
