//! The register of a marked part: when a part with a budget or a temperature began, or where in the text a declaration
//! began.

use crate::machine::expansion::Expansion;
use crate::machine::frame::Begun;
use crate::machine::layout::Machine;
use crate::parse::registers::meaning::Meaning;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, Stacks, UNKNOWN_TEXT};

/// The register of a marked part.
#[derive(Clone, Copy)]
pub(super) struct MarkRegister;

impl Meaning for MarkRegister {
    type Change = Begun;

    fn changed(run: &mut Run<'_>, begun: Begun, _: &Expansion, _: Entry) -> Option<u32> {
        Some(match begun {
            Begun::AtToken => run.tokens,
            Begun::InText => run.text_here(),
        })
    }

    /// How many tokens of a budget are left makes no difference to a mask: see `parse/annotations.rs`.
    fn describe(self, _: &Machine, _: &Stacks, _: u32, _: u32, description: &mut Vec<u64>) {
        description.push(0);
    }
}

impl Run<'_> {
    /// The text so far, where it is recorded.
    pub(super) fn text_here(&self) -> u32 {
        self.text.filter(|_| self.is_exact()).unwrap_or(UNKNOWN_TEXT)
    }
}
