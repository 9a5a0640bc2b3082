//! The meaning of registers, as one trait.

use crate::machine::expansion::Expansion;
use crate::machine::frame::Phase;
use crate::machine::layout::Machine;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, Stacks};

/// The meaning of a frame's register.
pub(crate) trait Meaning: Copy {
    /// How a register of this kind changes when its frame is pushed.
    type Change;

    /// The guard: what of the register decides which lexemes may come.
    fn phase(self, _: &mut Machine, _: &Stacks, _register: u32) -> Phase {
        Phase::Plain
    }

    /// The register of a frame that a thread pushes after its expansion has matched; `None` where the frame must not be
    /// pushed.
    fn changed(run: &mut Run<'_>, change: Self::Change, expansion: &Expansion, thread: Entry) -> Option<u32>;

    /// The register of a thread after one more byte of a lexeme whose text the frame remembers.
    fn read(self, _: &mut Run<'_>, _: &Expansion, register: u32, _byte: u8) -> u32 {
        register
    }

    /// The register when everything above the frame has ended. None where it must not end here; two where an optimistic
    /// mask has to follow both.
    fn ended(self, _: &mut Run<'_>, register: u32) -> [Option<u32>; 2] {
        [Some(register), None]
    }

    /// Writes the part of a register that can make a difference to tokens of at most `horizon` bytes.
    fn describe(self, machine: &Machine, stacks: &Stacks, register: u32, horizon: u32, description: &mut Vec<u64>);
}
