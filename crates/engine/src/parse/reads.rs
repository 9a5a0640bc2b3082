//! Parts of an operation that report which sets they read.

use crate::parse::stepper::Run;
use crate::state::ids::SetId;

impl Run<'_> {
    /// Runs a part of an operation and returns which of the sets that existed before were read; `None` where there are
    /// too many. They count as reads of whatever is tracked around the part, too.
    pub(crate) fn tracked<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> (T, Option<Vec<SetId>>) {
        let around = self.stacks.reads.begin(self.stacks.num_sets());
        let found = part(self);
        (found, self.stacks.reads.end(around))
    }

    /// Runs a part of an operation whose result does not depend on existing sets, whatever it reads.
    pub(crate) fn untracked<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> T {
        let around = self.stacks.reads.pause();
        let found = part(self);
        self.stacks.reads.resume(around);
        found
    }
}
