//! Parts of an operation that report what they read.

use crate::parse::stepper::Run;
use crate::state::ids::SetId;

impl Run<'_> {
    /// Does a part of an operation, and reports which sets it has read of those that were there before; `None` where they are
    /// very many. What is tracked around it has read them, too.
    pub(crate) fn tracked<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> (T, Option<Vec<SetId>>) {
        let around = self.stacks.reads.begin(self.stacks.num_sets());
        let found = part(self);
        (found, self.stacks.reads.end(around))
    }

    /// Does a part of an operation that hangs on none of the sets that are there, whatever it looks at.
    pub(crate) fn untracked<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> T {
        let around = self.stacks.reads.pause();
        let found = part(self);
        self.stacks.reads.resume(around);
        found
    }
}
