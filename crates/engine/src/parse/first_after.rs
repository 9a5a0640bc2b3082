//! The bytes that a thread may read after a lexeme, computed from the frames on its stack without expanding them.

use stencilm_regex::{ByteSet, Tag};
use stencilm_support::FEW;

use crate::error::EngineError;
use crate::machine::expansion::{Continuations, Expansion};
use crate::machine::frame::FrameId;
use crate::parse::stepper::Run;
use crate::state::stacks::Entry;
use crate::switches::Switch;

impl Run<'_> {
    /// The bytes that a thread may read after some of its lexemes; the set may be too large. `None` where only
    /// expanding what follows would tell.
    pub(crate) fn first_after(
        &mut self,
        expansion: &Expansion,
        tags: &[Tag],
        thread: Entry,
    ) -> Result<Option<ByteSet>, EngineError> {
        if !Switch::MaskFirstAfter.is_on() {
            return Ok(None);
        }
        let Continuations::Listed(continuations) = &expansion.continuations else { return Ok(None) };
        let (mut first, mut nullable) = (ByteSet::EMPTY, false);
        for &tag in tags {
            for continuation in &continuations[tag as usize] {
                let Some(begins) = self.machine.begins_after(continuation) else { return Ok(None) };
                first = first.union(&begins.bytes);
                nullable |= begins.nullable;
            }
        }
        let mut sets = if nullable { vec![thread.below] } else { Vec::new() };
        let mut done = 0;
        while let Some(&set) = sets.get(done) {
            done += 1;
            if done > FEW {
                return Ok(None);
            }
            self.stacks.spend(self.stacks.entries(set).len() + 1)?;
            self.stacks.look_at(set);
            for &entry in self.stacks.entries(set) {
                if entry == Entry::BOTTOM {
                    continue;
                }
                let Some(begins) = self.machine.begins(FrameId(entry.head)) else { return Ok(None) };
                first = first.union(&begins.bytes);
                if begins.nullable && !sets.contains(&entry.below) {
                    sets.push(entry.below);
                }
            }
        }
        Ok(Some(first))
    }
}
