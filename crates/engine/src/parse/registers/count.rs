//! The register of a repetition: how many rounds are complete.

use stencilm_grammar::NodeId;

use crate::machine::expansion::Expansion;
use crate::machine::frame::{CountUp, Phase};
use crate::machine::layout::Machine;
use crate::parse::registers::meaning::Meaning;
use crate::parse::stepper::Run;
use crate::state::stacks::{Entry, Stacks};

/// The register of a repetition.
#[derive(Clone, Copy)]
pub(super) struct CountRegister {
    pub body: NodeId,
    pub min: u32,
    pub max: Option<u32>,
}

impl Meaning for CountRegister {
    type Change = CountUp;

    fn phase(self, machine: &mut Machine, _: &Stacks, count: u32) -> Phase {
        Phase::Repeat {
            may_end: count >= self.min || machine.left.is_nullable(self.body),
            may_go_on: self.max.is_none_or(|max| count < max),
        }
    }

    fn changed(_: &mut Run<'_>, CountUp { limit }: CountUp, _: &Expansion, thread: Entry) -> Option<u32> {
        Some(thread.register.saturating_add(1).min(limit))
    }

    /// Each round reads at least one byte, so no token of at most `horizon` bytes can distinguish counts that are
    /// further from the bounds.
    fn describe(self, _: &Machine, _: &Stacks, count: u32, horizon: u32, description: &mut Vec<u64>) {
        let CountRegister { min, max, .. } = self;
        let far = horizon.saturating_add(1);
        let clamped = if min.saturating_sub(count) > far {
            // Both bounds are far away: the minimum is, and the maximum is not smaller.
            min - far
        } else if count > min && max.is_none_or(|max| max - count > far) {
            min
        } else {
            count
        };
        description.push(u64::from(clamped));
    }
}
