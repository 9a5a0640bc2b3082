//! What a part of an operation reads of the stacks that existed before it. The result of the part may be cached under
//! exactly these reads.

use stencilm_support::MANY;

use crate::state::ids::SetId;

/// The reads of one part.
#[derive(Clone)]
pub(crate) struct Scope {
    /// Sets with this number or a higher one were made by the part itself.
    before: u32,
    /// The older sets that it read, in the order of the first read.
    sets: Vec<SetId>,
    too_many: bool,
}

/// The reads of the innermost tracked part. They count as reads of the parts around it, too.
#[derive(Clone, Default)]
pub(crate) struct Reads(Option<Scope>);

impl Reads {
    /// Whether reads are being tracked.
    pub fn are_tracked(&self) -> bool {
        self.0.is_some()
    }

    /// Begins a part when `num_sets` sets exist. Returns what was tracked around it.
    pub fn begin(&mut self, num_sets: u32) -> Option<Scope> {
        self.0.replace(Scope { before: num_sets, sets: Vec::new(), too_many: false })
    }

    /// Ends a part and resumes what was tracked around it. Returns the sets that the part read; `None` where there are
    /// too many.
    pub fn end(&mut self, around: Option<Scope>) -> Option<Vec<SetId>> {
        let part = std::mem::replace(&mut self.0, around)?;
        part.sets.iter().for_each(|&set| self.note(set));
        if part.too_many {
            self.note_too_many();
        }
        (!part.too_many).then_some(part.sets)
    }

    /// Stops tracking until [`Reads::resume`]. Returns what was tracked.
    pub fn pause(&mut self) -> Option<Scope> {
        self.0.take()
    }

    /// Resumes what [`Reads::pause`] returned.
    pub fn resume(&mut self, scope: Option<Scope>) {
        self.0 = scope;
    }

    /// Records that a set was read.
    pub fn note(&mut self, set: SetId) {
        if let Some(scope) = &mut self.0
            && set.0 < scope.before
            && !scope.too_many
            && !scope.sets.contains(&set)
        {
            scope.sets.push(set);
            scope.too_many = scope.sets.len() > MANY;
        }
    }

    /// Records that more sets were read than are listed.
    pub fn note_too_many(&mut self) {
        if let Some(scope) = &mut self.0 {
            scope.too_many = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_reads_for_what_is_around_it() {
        let mut reads = Reads::default();
        let outside = reads.begin(10);
        reads.note(SetId(3));
        let around = reads.begin(20);
        [SetId(15), SetId(3), SetId(7), SetId(20), SetId(7)].into_iter().for_each(|set| reads.note(set));
        assert_eq!(reads.end(around), Some(vec![SetId(15), SetId(3), SetId(7)]));
        let paused = reads.pause();
        reads.note(SetId(4));
        reads.resume(paused);
        assert_eq!(reads.end(outside), Some(vec![SetId(3), SetId(7)]), "15 was made by the part around");
        assert!(!reads.are_tracked());
    }

    #[test]
    fn very_many_reads_of_a_part_are_very_many_around_it() {
        let mut reads = Reads::default();
        let outside = reads.begin(u32::MAX);
        let around = reads.begin(u32::MAX);
        (0..=MANY as u32).for_each(|set| reads.note(SetId(set)));
        assert_eq!(reads.end(around), None);
        assert_eq!(reads.end(outside), None);
    }
}
