//! Bounded sets, for expressions of unforeseeable size.
//!
//! One idea: constructors cannot fail, and a single one may take as long as a whole grammar, since a concatenation is
//! rebuilt from all its parts. So a bounded set gives up in the middle of a constructor, remembers why, and from then
//! on returns only some part of what it is asked for. The caller checks [`ExprSet::given_up`] before using anything
//! from the set.

use stencilm_support::LimitExceeded;

use crate::expr::bound::Bound;
use crate::expr::expr_set::ExprSet;

impl ExprSet {
    /// Lets constructors give up at the deadline, and when the set has more than `max_exprs` expressions of its own or
    /// takes too much memory.
    pub fn bound(&mut self, max_exprs: usize) {
        let given_up = self.given_up();
        self.bound = Some(Bound { given_up, ..Bound::new(max_exprs) });
    }

    /// Whether constructors may give up.
    pub fn is_bound(&self) -> bool {
        self.bound.is_some()
    }

    /// Lets constructors run to completion again.
    pub fn unbound(&mut self) {
        self.bound = None;
    }

    /// Why the set was given up, if it was. Then the results of constructors mean nothing.
    #[inline]
    pub fn given_up(&self) -> Option<LimitExceeded> {
        self.bound.and_then(|bound| bound.given_up)
    }

    /// Whether the set may grow further. To be called between two expressions whose number depends on user input.
    ///
    /// # Errors
    /// Why it was given up, or is now.
    pub fn may_grow(&mut self) -> Result<(), LimitExceeded> {
        self.gives_up(0);
        self.given_up().map_or(Ok(()), Err)
    }

    /// The same before at least `exprs` more expressions are added.
    ///
    /// # Errors
    /// As [`ExprSet::may_grow`].
    pub fn may_grow_by(&mut self, exprs: usize) -> Result<(), LimitExceeded> {
        self.bound = self.bound.map(|bound| bound.foreseeing(self.arena.own_len().saturating_add(exprs)));
        self.may_grow()
    }

    /// Replaces the expressions by those of another set; the bound stays.
    pub fn take_over(&mut self, other: &ExprSet) {
        self.arena.clone_from(&other.arena);
    }

    /// Whether a constructor that is about to work on a list of `parts` parts has to give up.
    #[inline]
    pub(crate) fn gives_up(&mut self, parts: usize) -> bool {
        let Some(bound) = self.bound else { return false };
        let bound = bound.after(self.arena.own_len(), self.arena.children(), parts);
        self.bound = Some(bound);
        bound.given_up.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::node::ExprId;
    use stencilm_support::Watch;

    /// `x x`, `(x x) (x x)` and so on, `times` times, each time with `others` beside it.
    fn doubled(set: &mut ExprSet, times: usize) -> ExprId {
        let word = set.literal(b"ab");
        let digit = set.literal(b"c");
        let first = set.concat(word, digit);
        (0..times).fold(first, |half, _| set.concat_all(&[half, half]))
    }

    #[test]
    fn a_set_is_given_up_in_the_midst_of_a_constructor() {
        let mut set = ExprSet::new();
        set.bound(10_000);
        doubled(&mut set, 40);
        assert_eq!(set.given_up(), Some(LimitExceeded::Expressions(10_000)));
        assert!(set.own_len() < 10_010, "it ends at once");
        let mut set = ExprSet::new();
        set.bound(usize::MAX);
        Watch::new(0, None).over(|| doubled(&mut set, 40));
        assert_eq!(set.given_up(), Some(LimitExceeded::Time(0)));
    }

    #[test]
    fn a_set_is_given_up_before_what_is_known_to_be_too_much() {
        let mut set = ExprSet::new();
        assert_eq!(set.may_grow_by(usize::MAX), Ok(()), "it has no bound");
        set.bound(10);
        assert_eq!(set.may_grow_by(10), Ok(()));
        set.literal(b"a");
        assert_eq!(set.may_grow_by(10), Err(LimitExceeded::Expressions(10)));
        assert_eq!(set.may_grow(), Err(LimitExceeded::Expressions(10)), "for good");
    }

    #[test]
    fn lists_of_lists_are_given_up_before_they_fill_the_memory() {
        let mut set = ExprSet::new();
        let words: Vec<ExprId> = (0..2_000u32).map(|number| set.literal(format!("x{number}").as_bytes())).collect();
        let others: Vec<ExprId> = words.iter().map(|&word| set.not(word)).collect();
        for (join, parts) in [(ExprSet::or as fn(&mut ExprSet, &[ExprId]) -> ExprId, words), (ExprSet::and, others)] {
            let mut set = set.clone();
            set.bound = Some(Bound { max_bytes: 1 << 20, ..Bound::new(1_000_000) });
            let mut all = parts[0];
            let ended = parts.iter().find_map(|&part| {
                all = join(&mut set, &[all, part]);
                set.may_grow().err()
            });
            assert_eq!(ended, Some(LimitExceeded::Memory(1 << 20)));
        }
    }

    #[test]
    fn what_stays_within_its_bound_is_the_same() {
        let (mut set, mut bound) = (ExprSet::new(), ExprSet::new());
        bound.bound(10_000);
        assert_eq!(doubled(&mut set, 10), doubled(&mut bound, 10));
        assert_eq!((set.own_len(), bound.given_up()), (bound.own_len(), None));
    }
}
